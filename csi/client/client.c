/*
 * The client of one plugin: a checked request, a call of gRPC, a judged answer.
 *
 * Invariant: each operation has one callback, from csi_cancel or from the loop, and is in its
 * client's list until then.
 */
#include "csi/client/part.h"

#include "io/grpc.h"

#include <string.h>

_Static_assert((int)GRPC_STATUS_COUNT == (int)CSI_STATUS_COUNT,
               "what fsm judges is what gRPC says");

enum { NAME_SIZE = 256 };

struct csi_client {
    struct loop *loop;
    char name[NAME_SIZE];
    char socket[CSI_SOCKET_MAX + 1];
    struct csi_operation *operations;
};

struct csi_operation {
    struct csi_client *client;
    struct csi_operation *next, **link; /* in the client's list */
    enum csi_call call;
    struct csi_secrets *secrets; /* owned: not to be told by what the plugin says */
    struct grpc_request *grpc;
    void (*cb)(void *ctx, const struct csi_result *result);
    void *ctx;
};

static const struct {
    const char *path, *name;
    uint64_t limit_ms;
} calls[] = {
#define X(call, service, method, kind, limit_ms)                                                   \
    {"/csi.v1." #service "/" #method, #method, (limit_ms)},
    CSI_CALLS(X)
#undef X
};

const char *csi_call_name(enum csi_call call)
{
    check((unsigned)call < CSI_CALL_COUNT);
    return calls[call].name;
}

struct csi_client *csi_client_new(struct loop *loop, const char *name, const char *socket,
                                  struct err *err)
{
    struct csi_client *client = calloc(1, sizeof(*client));

    check(client != NULL);
    client->loop = loop;
    if (text_copy(client->name, sizeof(client->name), name) &&
        text_copy(client->socket, sizeof(client->socket), socket))
        return client;
    (void)err_set(err, ERR_INVALID,
                  "plugin %.60s: its name or the path of its socket is too long: %d and %d bytes "
                  "are allowed",
                  name, NAME_SIZE - 1, CSI_SOCKET_MAX); /* only to be filled */
    free(client);
    return NULL;
}

void csi_client_free(struct csi_client *client)
{
    while (client->operations != NULL)
        csi_cancel(client->operations);
    free(client);
}

static void operation_free(struct csi_operation *operation)
{
    *operation->link = operation->next;
    if (operation->next != NULL)
        operation->next->link = operation->link;
    csi_secrets_free(operation->secrets);
    free(operation);
}

/* What the plugin said, which may be a secret that it was told. */
static void tell_refusal(struct csi_operation *operation, const struct grpc_reply *reply,
                         struct csi_result *result)
{
    char said[ERR_TEXT_SIZE];

    result->error = reply->error;
    if (!reply->answered || reply->detail[0] == '\0')
        return;
    csi_secrets_hide(operation->secrets, reply->detail, said, sizeof(said));
    (void)text_format(result->error.text, sizeof(result->error.text), "%s: %s",
                      grpc_status_name((int)reply->status), said); /* cut is fine */
    text_whole(result->error.text);
}

static void on_reply(void *ctx, const struct grpc_reply *reply)
{
    struct csi_operation *operation = ctx;
    struct arena arena = {0};
    struct csi_answer answer;
    struct csi_result result = {
        .call = operation->call, .status = reply->status, .answered = reply->answered};

    if (reply->status != GRPC_OK)
        tell_refusal(operation, reply, &result);
    else if (csi_decode(operation->call, reply->message, reply->message_length, &arena, &answer,
                        &result.error) == 0)
        result.answer = &answer;
    else
        result.status = GRPC_INTERNAL;
    result.outcome =
        policy_csi_outcome(operation->call, result.status, reply->sent, reply->answered);
    if (result.answer == NULL) {
        result.error.recoverable = result.outcome.verdict != CSI_REFUSED;
        (void)err_wrap(&result.error, "plugin %s: %s", operation->client->name,
                       csi_call_name(operation->call)); /* the code is told in the struct */
    }
    operation->cb(operation->ctx, &result);
    arena_free(&arena);
    operation_free(operation);
}

struct csi_operation *csi_start(struct csi_client *client, const struct csi_request *request,
                                void (*cb)(void *ctx, const struct csi_result *result), void *ctx,
                                struct err *err)
{
    struct err own = {0};
    size_t length;

    err = err == NULL ? &own : err;
    check(cb != NULL);
    if (csi_check_request(request, err) != 0) {
        (void)err_wrap(err, "plugin %s: %s", client->name, csi_call_name(request->call));
        return NULL;
    }
    struct csi_operation *operation = calloc(1, sizeof(*operation));
    check(operation != NULL);
    operation->client = client;
    operation->call = request->call;
    operation->secrets = csi_secrets_copy(request->secrets);
    operation->cb = cb;
    operation->ctx = ctx;
    operation->link = &client->operations;
    operation->next = client->operations;
    if (operation->next != NULL)
        operation->next->link = &operation->next;
    client->operations = operation;

    void *message = csi_encode(request, &length);
    const struct grpc_call call = {.unix_socket = client->socket,
                                   .method = calls[request->call].path,
                                   .message = message,
                                   .message_length = length,
                                   .timeout_ms = calls[request->call].limit_ms,
                                   .cb = on_reply,
                                   .ctx = operation};
    operation->grpc = grpc_start(client->loop, &call, err);
    explicit_bzero(message, length);
    free(message);
    if (operation->grpc == NULL) {
        (void)err_wrap(err, "plugin %s: %s", client->name, csi_call_name(request->call));
        operation_free(operation);
        return NULL;
    }
    return operation;
}

void csi_cancel(struct csi_operation *operation)
{
    grpc_cancel(operation->grpc);
}
