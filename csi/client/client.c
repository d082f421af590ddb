/*
 * The client of one plugin: a checked request, a call of gRPC, a judged answer.
 *
 * Invariant: each operation has one callback, from csi_cancel or from the loop, and is in its
 * client's list until then.  One waits only while CSI_PARALLEL_MAX are under way.
 */
#include "csi/client/part.h"

#include "io/grpc.h"
#include "io/http.h"

#include <string.h>

#include <utlist.h>

_Static_assert((int)GRPC_STATUS_COUNT == (int)CSI_STATUS_COUNT,
               "what fsm judges is what gRPC says");

_Static_assert(2 * (int)CSI_PARALLEL_MAX <= (int)GRPC_CALLS_MAX,
               "a plugin that hangs keeps nobody from another one");

enum { NAME_SIZE = 256 };

struct csi_client {
    struct loop *loop;
    char name[NAME_SIZE];
    char socket[CSI_SOCKET_MAX + 1];
    struct csi_operation *operations; /* in the order in which they came */
    struct csi_load load;
    bool closes; /* nobody is to come after who is canceled now */
};

struct csi_operation {
    struct csi_client *client;
    struct csi_operation *prev, *next; /* in the client's list */
    enum csi_call call;
    struct csi_secrets *secrets; /* owned: not to be told by what the plugin says */
    void *message;               /* owned; NULL once it is sent */
    size_t message_length;
    struct io_timer patience;  /* while it waits */
    bool counts;               /* as one that the plugin works on */
    struct grpc_request *grpc; /* NULL: it waits */
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

void csi_client_load(const struct csi_client *client, struct csi_load *ret_load)
{
    *ret_load = client->load;
}

void csi_client_free(struct csi_client *client)
{
    client->closes = true;
    while (client->operations != NULL)
        csi_cancel(client->operations);
    free(client);
}

static void forget_message(struct csi_operation *operation)
{
    if (operation->message != NULL)
        explicit_bzero(operation->message, operation->message_length);
    free(operation->message);
    operation->message = NULL;
}

static void operation_free(struct csi_operation *operation)
{
    DL_DELETE(operation->client->operations, operation);
    io_timer_stop(&operation->patience);
    forget_message(operation);
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

/* TEXT of an answer without secrets, in ARENA. */
static const char *hidden_text(const struct csi_operation *operation, const char *text,
                               struct arena *arena)
{
    char said[CSI_TEXT_MAX + 1];

    if (text == NULL || text[0] == '\0')
        return text;
    csi_secrets_hide(operation->secrets, text, said, sizeof(said));
    return arena_copy(arena, said, strlen(said));
}

/* Its words for people, which a caller may show. */
static void hide_in_answer(const struct csi_operation *operation, struct csi_answer *answer,
                           struct arena *arena)
{
    struct csi_volume *volumes = arena_new(arena, answer->volumes_count * sizeof(*volumes));

    answer->text = hidden_text(operation, answer->text, arena);
    answer->condition.text = hidden_text(operation, answer->condition.text, arena);
    for (size_t i = 0; i < answer->volumes_count; i++) {
        volumes[i] = answer->volumes[i];
        volumes[i].condition.text = hidden_text(operation, volumes[i].condition.text, arena);
    }
    answer->volumes = volumes;
}

static void conclude(struct csi_operation *operation, const struct grpc_reply *reply)
{
    struct arena arena = {0};
    struct csi_answer answer;
    struct csi_result result = {
        .call = operation->call, .status = reply->status, .answered = reply->answered};

    if (reply->status != GRPC_OK)
        tell_refusal(operation, reply, &result);
    else if (csi_decode(operation->call, reply->message, reply->message_length, &arena, &answer,
                        &result.error) == 0) {
        hide_in_answer(operation, &answer, &arena);
        result.answer = &answer;
    } else {
        result.status = GRPC_INTERNAL;
    }
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

static void send_waiting(struct csi_client *client);

static void on_reply(void *ctx, const struct grpc_reply *reply)
{
    struct csi_operation *operation = ctx;
    struct csi_client *client = operation->client;
    bool counts = operation->counts;

    conclude(operation, reply);
    client->load.calls -= counts;
    send_waiting(client);
}

/* --- who waits --- */

/* About the plugin, and not about what it keeps. */
static bool is_about_itself(enum csi_call call)
{
    return call == CSI_PROBE || call == CSI_PLUGIN_INFO || call == CSI_PLUGIN_CAPABILITIES ||
           call == CSI_NODE_INFO || call == CSI_NODE_CAPABILITIES ||
           call == CSI_CONTROLLER_CAPABILITIES;
}

/* Sends it; what is left of its limit is the plugin's. */
static int send_now(struct csi_operation *operation, uint64_t limit_ms, struct err *err)
{
    const struct grpc_call call = {.unix_socket = operation->client->socket,
                                   .method = calls[operation->call].path,
                                   .message = operation->message,
                                   .message_length = operation->message_length,
                                   .timeout_ms = limit_ms,
                                   .cb = on_reply,
                                   .ctx = operation};

    operation->grpc = grpc_start(operation->client->loop, &call, err);
    if (operation->grpc == NULL)
        return err->code;
    forget_message(operation);
    operation->counts = !is_about_itself(operation->call);
    operation->client->load.calls += operation->counts;
    return 0;
}

/* It has waited, and the plugin has heard nothing of it. */
static void end_waiting(struct csi_operation *operation, enum grpc_status status,
                        const struct err *err)
{
    const struct grpc_reply reply = {.status = status, .detail = "", .error = *err};

    check(operation->grpc == NULL);
    operation->client->load.waiting--;
    conclude(operation, &reply);
}

static void on_patience(struct io_timer *timer)
{
    struct csi_operation *operation = timer->ctx;
    struct err err;

    operation->client->load.gave_up++;
    (void)err_set(
        &err, ERR_TIMEOUT,
        "%u calls are under way and %u wait, of which none has ended for so long: nothing "
        "was asked",
        operation->client->load.calls, operation->client->load.waiting); /* only to be told */
    end_waiting(operation, GRPC_DEADLINE_EXCEEDED, &err);
}

static struct csi_operation *first_waiting(struct csi_client *client)
{
    struct csi_operation *operation = client->load.waiting == 0 ? NULL : client->operations;

    while (operation != NULL && operation->grpc != NULL)
        operation = operation->next;
    return operation;
}

/* A callback may have asked for more, which is behind those that wait. */
static void send_waiting(struct csi_client *client)
{
    struct csi_operation *operation;

    while (!client->closes && client->load.calls < CSI_PARALLEL_MAX &&
           (operation = first_waiting(client)) != NULL) {
        uint64_t at_ms = operation->patience.at_ms, now_ms = loop_now_ms();
        uint64_t left_ms = at_ms > now_ms ? at_ms - now_ms : 0;
        struct err err = {0};

        io_timer_stop(&operation->patience);
        if (send_now(operation, calls[operation->call].limit_ms / 2 + left_ms, &err) == 0)
            client->load.waiting--;
        else
            end_waiting(operation, GRPC_UNAVAILABLE, &err);
    }
}

struct csi_operation *csi_start(struct csi_client *client, const struct csi_request *request,
                                void (*cb)(void *ctx, const struct csi_result *result), void *ctx,
                                struct err *err)
{
    struct err own = {0};

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
    operation->secrets = csi_secrets_of(request);
    operation->cb = cb;
    operation->ctx = ctx;
    operation->message = csi_encode(request, &operation->message_length);
    DL_APPEND(client->operations, operation);
    uint64_t limit_ms = calls[request->call].limit_ms;
    bool waits = !is_about_itself(request->call) &&
                 (client->load.waiting > 0 || client->load.calls >= CSI_PARALLEL_MAX);
    if (waits) {
        client->load.waiting++;
        io_timer_start(client->loop, &operation->patience, loop_now_ms() + limit_ms / 2,
                       on_patience, operation);
    } else if (send_now(operation, limit_ms, err) != 0) {
        (void)err_wrap(err, "plugin %s: %s", client->name, csi_call_name(request->call));
        operation_free(operation);
        return NULL;
    }
    return operation;
}

void csi_cancel(struct csi_operation *operation)
{
    struct err err;

    if (operation->grpc != NULL) {
        grpc_cancel(operation->grpc);
        return;
    }
    (void)err_set(&err, ERR_CANCELED,
                  "canceled while it waited for its turn"); /* only to be told */
    end_waiting(operation, GRPC_CANCELLED, &err);
}
