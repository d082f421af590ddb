/*
 * Hook identity, before a start: tokens of the identities that the task asks for by name.
 *
 * Tokens that an earlier start has left are good until shortly before they expire: a restart of the
 * task asks nobody, and neither does one of the daemon, so that a task starts again while servers
 * are away.  If one is missing or too old all are asked for anew, again and again for a minute;
 * what servers refuse to sign is asked for once.  Files are written before every start, since a
 * reboot has emptied `secrets`, and the task may have removed them.  Follows nomad v2.0.6
 * client/allocrunner/taskrunner/identity_hook.go and client/widmgr.
 */
#include "hooks/signing.h"

#include "base/hash.h"
#include "hooks/directory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

enum {
    TRY_MS = 60 * 1000, /* for so long */
    AGAIN_MS = 500,
    AGAIN_MS_MAX = 8000,
    VARIABLE_SIZE = SPEC_IDENTITY_NAME_SIZE + sizeof("NOMAD_TOKEN_"),
};

/* --- what is to be had --- */

static const char *order_text(const json_t *value, const char *field)
{
    const char *text = json_string_value(json_object_get(value, field));

    check(text != NULL); /* we have made it */
    return text;
}

/* Where the token of such an identity is among the results. */
static enum result_kind place_of(const char *name, bool env, char ret_key[VARIABLE_SIZE])
{
    (void)text_format(ret_key, VARIABLE_SIZE, "%s%s", env ? "NOMAD_TOKEN_" : "token/",
                      name); /* it fits */
    return env ? RESULT_ENV : RESULT_DATA;
}

static bool find(const uint8_t *results, uint32_t bytes, enum result_kind kind, const char *key,
                 struct result *ret_result)
{
    for (uint32_t at = 0; results_next(results, bytes, &at, ret_result);) {
        if (ret_result->hook == TASK_HOOK_IDENTITY && ret_result->kind == kind &&
            text_equal(ret_result->key, key))
            return true;
    }
    return false;
}

/* When the token of the identity that is the NUMBER-th of COUNT expires; -1: nobody knows. */
static int64_t expires_of(const uint8_t *results, uint32_t bytes, size_t number, size_t count)
{
    struct result result;
    int64_t expires = -1;

    if (find(results, bytes, RESULT_DATA, EXPIRES_KEY, &result) &&
        result.value_length == count * sizeof(expires))
        memcpy(&expires, result.value + number * sizeof(expires), sizeof(expires));
    return expires;
}

/* The key of IDENTITY, one of an order, among results. */
static enum result_kind place_in(const json_t *identity, char ret_key[VARIABLE_SIZE])
{
    return place_of(order_text(identity, "Name"), json_is_true(json_object_get(identity, "Env")),
                    ret_key);
}

/* What is not known is not there. */
static void put_token(json_t *identity, const uint8_t *results, uint32_t bytes, size_t number,
                      size_t count)
{
    int64_t expires = expires_of(results, bytes, number, count);
    char key[VARIABLE_SIZE];
    struct result result;
    enum result_kind kind = place_in(identity, key);
    bool known = expires >= 0 && find(results, bytes, kind, key, &result);
    json_t *token = known ? json_stringn(result.value, result.value_length) : NULL;

    if (token == NULL)
        return;
    check(json_object_set_new(identity, "Token", token) == 0);
    check(json_object_set_new(identity, "Expires", json_integer((json_int_t)expires)) == 0);
}

static json_t *order_of(const struct hook_run *asked, size_t number)
{
    const struct task_spec *task = asked->task;
    const struct spec_named_identity *identity = &task->identities[number];
    json_t *value =
        json_pack("{s:s, s:b, s:s, s:i, s:i, s:b}", "Name", identity->name, "Env", identity->env,
                  "Path", identity->file, "Change", (int)identity->change, "Number",
                  identity->change == SPEC_CHANGE_SIGNAL ? proc_signal_number(identity->signal) : 0,
                  "Expiring", identity->ttl_ms > 0);

    check(value != NULL);
    put_token(value, asked->results, asked->results_bytes, number, task->identities_count);
    return value;
}

int hooks_identities_begin(const struct hooks *hooks, const struct hook_run *asked,
                           char **ret_order, struct err *err)
{
    json_t *list = json_array();

    if (hooks->signer == NULL) {
        json_decref(list);
        return err_set(err, ERR_UNSUPPORTED, "nobody signs identities here");
    }
    for (size_t i = 0; i < asked->task->identities_count; i++)
        check(json_array_append_new(list, order_of(asked, i)) == 0);
    json_t *order =
        json_pack("{s:s, s:s, s:I, s:o}", "Alloc", asked->alloc->id, "Task", asked->task->name,
                  "Index", (json_int_t)asked->alloc->create_index, "Identities", list);
    check(order != NULL);
    *ret_order = json_dumps(order, JSON_COMPACT);
    check(*ret_order != NULL);
    json_decref(order);
    return 0;
}

static json_t *identity_of(const struct signing_order *order, size_t number)
{
    return json_array_get(json_object_get(order->order, "Identities"), number);
}

static void take_token(struct signing_order *order, size_t number)
{
    const json_t *identity = identity_of(order, number);

    order->tokens[number] = (struct spec_signed){
        .token = json_string_value(json_object_get(identity, "Token")),
        .expires_unix_ns = json_integer_value(json_object_get(identity, "Expires"))};
}

void signing_open(struct signing_order *order, const char *text)
{
    *order = (struct signing_order){.order = json_loads(text, 0, NULL)};
    check(order->order != NULL); /* likewise */
    order->alloc = order_text(order->order, "Alloc");
    order->index = (uint64_t)json_integer_value(json_object_get(order->order, "Index"));
    order->count = json_array_size(json_object_get(order->order, "Identities"));
    check(order->count > 0 && order->count <= SPEC_IDENTITIES_MAX);
    for (size_t i = 0; i < order->count; i++) {
        const json_t *identity = identity_of(order, i);

        order->bearers[i] = (struct spec_bearer){.identity = order_text(identity, "Name"),
                                                 .workload = order_text(order->order, "Task")};
        order->expiring[i] = json_is_true(json_object_get(identity, "Expiring"));
        take_token(order, i);
    }
}

void signing_read(struct signing_order *order, const uint8_t *results, uint32_t bytes)
{
    for (size_t i = 0; i < order->count; i++) {
        put_token(identity_of(order, i), results, bytes, i, order->count);
        take_token(order, i);
    }
}

void signing_close(struct signing_order *order)
{
    json_decref(order->order);
    *order = (struct signing_order){0};
}

/* --- what is had --- */

int signing_results(const struct signing_order *order, const struct spec_signed *tokens,
                    struct results *results, struct err *err)
{
    struct rendered said[SPEC_IDENTITIES_MAX] = {{0}};
    int64_t expires[SPEC_IDENTITIES_MAX];
    int code = 0;

    for (size_t i = 0; code == 0 && i < order->count; i++) {
        const json_t *identity = identity_of(order, i);
        const char *token = tokens[i].token;

        if (token == NULL) /* of a version of the job that came later */
            return err_set(err, ERR_GONE, "the identity \"%.130s\" was not signed",
                           order->bearers[i].identity);
        const uint64_t halves[] = {hash_bytes(1, token, strlen(token)),
                                   hash_bytes(2, token, strlen(token))};
        char key[VARIABLE_SIZE];
        enum result_kind kind = place_in(identity, key);

        said[i].mode = (uint8_t)json_integer_value(json_object_get(identity, "Change"));
        said[i].number = (uint8_t)json_integer_value(json_object_get(identity, "Number"));
        memcpy(said[i].digest, halves, sizeof(said[i].digest));
        expires[i] = tokens[i].expires_unix_ns;
        code = results_set(results, TASK_HOOK_IDENTITY, kind, key, token, (uint32_t)strlen(token));
    }
    if (code == 0)
        code = results_set(results, TASK_HOOK_IDENTITY, RESULT_DATA, RENDERED_KEY, said,
                           (uint32_t)(order->count * sizeof(*said)));
    if (code == 0)
        code = results_set(results, TASK_HOOK_IDENTITY, RESULT_DATA, EXPIRES_KEY, expires,
                           (uint32_t)(order->count * sizeof(*expires)));
    return code == 0 ? 0 : err_set(err, code, "the tokens are too long");
}

/* The token of IDENTITY among the results of REQUEST, if it is to be in a file. */
static bool is_filed(const struct hook_request *request, const json_t *identity,
                     struct result *ret_result)
{
    char key[VARIABLE_SIZE];
    enum result_kind kind = place_in(identity, key);

    return *order_text(identity, "Path") != '\0' &&
           find(request->results->bytes, request->results->used, kind, key, ret_result);
}

static int write_one(const struct hook_request *request, const json_t *identity, int task_fd,
                     const struct host_user *owner, struct err *err)
{
    struct result token;

    if (!is_filed(request, identity, &token))
        return 0;
    int code = hooks_token_write(request, order_text(identity, "Path"), token.value,
                                 token.value_length, task_fd, owner, err);
    return code == 0 ? 0
                     : err_wrap(err, "failed to write token for identity \"%.130s\"",
                                order_text(identity, "Name"));
}

static int open_task(const struct hook_request *request, int *ret_fd, struct err *err)
{
    scoped_fd int root = -1;
    int code = hooks_open_root(request, &root, err);

    return code == 0 ? hooks_directory_open(root, request->task, request->task, ret_fd, err) : code;
}

int hooks_identities_write(const struct hook_request *request, struct err *err)
{
    json_t *order = json_loads(request->order, 0, NULL), *identity;
    scoped_fd int task = -1;
    struct host_user owner;
    size_t i;
    int code = open_task(request, &task, err);

    check(order != NULL);
    if (code == 0)
        code = hooks_owner(request, &owner, err);
    json_array_foreach(json_object_get(order, "Identities"), i, identity)
    {
        if (code == 0)
            code = write_one(request, identity, task, &owner, err);
    }
    json_decref(order);
    return code;
}

static bool has_another(int task_fd, const char *path, const struct result *token)
{
    scoped_fd int fd = beneath_open(task_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    char bytes[SPEC_TOKEN_SIZE];
    ssize_t length = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));

    return length > 0 && ((size_t)length != token->value_length ||
                          memcmp(bytes, token->value, token->value_length) != 0);
}

bool signing_differs(const struct hook_request *request)
{
    json_t *order = json_loads(request->order, 0, NULL), *identity;
    scoped_fd int task = -1;
    struct err err = {0};
    struct result token;
    bool differs = false;
    size_t i;

    check(order != NULL);
    if (open_task(request, &task, &err) == 0) {
        json_array_foreach(json_object_get(order, "Identities"), i, identity)
        {
            if (is_filed(request, identity, &token))
                differs |= has_another(task, order_text(identity, "Path"), &token);
        }
    }
    json_decref(order);
    return differs;
}

/* --- asking --- */

struct signing {
    struct hooks_asking asking; /* what others know of it */
    struct hooks *hooks;
    struct signing_order order;
    struct io_timer timer; /* before it asks, and before it asks again */
    bool waits;            /* for an answer */
    uint64_t until_ms;
    uint32_t tries;
    hooks_asked *done; /* NULL: nobody waits any more */
    void *ctx;
    struct signing *prev, *next; /* of all that there are */
};

static void end(struct signing *signing)
{
    io_timer_stop(&signing->timer);
    DL_DELETE(signing->hooks->signings, signing);
    signing_close(&signing->order);
    free(signing);
}

static void finish(struct signing *signing, const struct spec_signed *tokens, struct err *err)
{
    struct results results = {.bytes = calloc(1, RESULTS_BYTES_MAX), .size = RESULTS_BYTES_MAX};
    hooks_asked *done = signing->done;
    void *ctx = signing->ctx;

    check(results.bytes != NULL);
    if (tokens != NULL)
        (void)signing_results(&signing->order, tokens, &results, err); /* it fills that */
    bool had = tokens != NULL && err->code == 0;
    end(signing);
    done(ctx, had ? &results : NULL, had ? NULL : err);
    free(results.bytes);
}

static bool all_last(const struct signing_order *order)
{
    for (size_t i = 0; i < order->count; i++) {
        if (order->tokens[i].token == NULL ||
            !policy_token_lasts(order->tokens[i].expires_unix_ns, loop_now_unix_ns()))
            return false;
    }
    return true;
}

static void on_time(struct io_timer *timer);

static void on_signed(void *ctx, const struct spec_signed *tokens, const struct err *err)
{
    struct signing *signing = ctx;
    uint64_t now_ms = loop_now_ms();
    struct err why = {0};

    signing->waits = false;
    if (signing->done == NULL) {
        end(signing);
        return;
    }
    if (tokens == NULL && err->recoverable && now_ms < signing->until_ms) {
        signing->tries++;
        io_timer_start(signing->hooks->loop, &signing->timer,
                       now_ms + policy_backoff_ms(AGAIN_MS, AGAIN_MS_MAX, signing->tries, now_ms),
                       on_time, signing);
        return;
    }
    if (tokens == NULL) {
        why = *err;
        (void)err_wrap(&why, "failed to fetch signed identities"); /* only to be filled */
    }
    finish(signing, tokens, &why);
}

static void on_time(struct io_timer *timer)
{
    struct signing *signing = timer->ctx;
    const struct hooks_signer *signer = signing->hooks->signer;
    struct err err = {0};

    if (all_last(&signing->order)) {
        finish(signing, signing->order.tokens, &err);
        return;
    }
    signing->waits = true;
    signer->sign(signer->ctx, signing->order.alloc, signing->order.index, signing->order.bearers,
                 signing->order.count, on_signed, signing);
}

static void forget(struct hooks_asking *asking)
{
    end((struct signing *)(void *)asking);
}

static void abandon(struct hooks_asking *asking)
{
    struct signing *signing = (struct signing *)(void *)asking;

    signing->done = NULL;
    if (!signing->waits)
        end(signing);
}

struct hooks_asking *hooks_identities_ask(struct hooks *hooks, const struct hook_request *request,
                                          hooks_asked *done, void *ctx)
{
    const char *order = request->order;
    struct signing *signing = calloc(1, sizeof(*signing));

    check(signing != NULL);
    signing->asking = (struct hooks_asking){.forget = forget, .abandon = abandon};
    signing->hooks = hooks;
    signing_open(&signing->order, order);
    signing->until_ms = loop_now_ms() + TRY_MS;
    signing->done = done;
    signing->ctx = ctx;
    DL_APPEND(hooks->signings, signing);
    io_timer_start(hooks->loop, &signing->timer, loop_now_ms(), on_time, signing);
    return &signing->asking;
}

void signings_free(struct hooks *hooks)
{
    while (hooks->signings != NULL)
        end(hooks->signings);
}
