/*
 * Commands in running tasks, by WebSocket: /v1/client/allocation/:id/exec, and /v1/job/:id/action,
 * where the task's own job says what the command is.
 *
 * Follows nomad v1.1.2 command/agent/alloc_endpoint.go and plugins/drivers (ExecTaskStreaming): the
 * client sends {"stdin":{"data","close"}}, {"tty_size":{"height","width"}}, {} to show that he is
 * there; he gets {"stdout"|"stderr":{"data"|"close"}} and, as the last, {"exited","result"}.  What
 * cannot be done is told by the status that the socket is closed with.  With ws_handshake in the
 * query his first message is {"version":1,"auth_token"}, as a browser sets no headers of these.
 *
 * A peer that takes nothing makes the command wait, a command that takes nothing the peer: neither
 * makes us hold more than a few blocks.  Whoever of the two goes ends the session.
 */
#include "agent/api/part.h"
#include "agent/launch.h"

#include "io/log.h"
#include "io/websocket.h"

#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    MESSAGE_MAX = 256 << 10,     /* of the client: what Nomad's sends is 4 KiB */
    OUTPUT_QUEUE_MAX = 64 << 10, /* bytes that the client has not taken */
    INPUT_QUEUE_MAX = 64 << 10,  /* and the command */
    HANDSHAKE_MS = 10 * 1000,
};

struct api_session {
    struct api *api;
    struct http_exchange *exchange; /* NULL: it is over, and this goes soon */
    struct websocket *socket;
    struct driver_session *session; /* NULL: not yet, or not any more */
    struct io_timer gone;
    bool shakes_hands; /* its first message is one */
    bool terminal;
    char alloc[UUID_TEXT_SIZE], task[SPEC_NAME_SIZE];
    char job[SPEC_NAME_SIZE];           /* whose alloc that has to be, "": anybody's */
    char action[SPEC_ACTION_NAME_SIZE]; /* "": the command is given */
    json_t *command;                    /* array of texts, owned; NULL: it is an action's */
    struct api_session *next, **link;
};

/* --- its end --- */

static void session_free(struct api_session *session)
{
    io_timer_stop(&session->gone);
    if (session->session != NULL)
        driver_session_end(session->session);
    *session->link = session->next;
    if (session->next != NULL)
        session->next->link = session->link;
    session->api->sessions_count--;
    websocket_free(session->socket);
    json_decref(session->command);
    free(session);
}

static void on_gone(struct io_timer *timer)
{
    session_free(timer->ctx);
}

/* The peer is told why; he goes, and then all that is left of it. */
static void hang_up(struct api_session *session, uint16_t status, const char *reason)
{
    if (session->exchange == NULL)
        return;
    websocket_close(session->socket, status, reason);
    http_tunnel_end(session->exchange);
    session->exchange = NULL;
    if (session->session != NULL)
        driver_session_end(session->session);
    session->session = NULL;
    /* Not at once: this may be called from within the codec. */
    io_timer_start(session->api->parts->loop, &session->gone, 0, on_gone, session);
}

static void hang_up_err(struct api_session *session, const struct err *err)
{
    bool his = err->code == ERR_GONE || err->code == ERR_INVALID || err->code == ERR_REFUSED ||
               err->code == ERR_UNSUPPORTED || err->code == ERR_LIMIT;

    log_debug("api", "session refused alloc=%s task=%s error=%s", session->alloc, session->task,
              log_value(err->text));
    hang_up(session, his ? WEBSOCKET_REFUSED : WEBSOCKET_INTERNAL, err->text);
}

/* --- to the peer --- */

static void on_frame(void *ctx, const void *bytes, size_t length)
{
    struct api_session *session = ctx;

    if (session->exchange != NULL &&
        http_tunnel_write(session->exchange, bytes, length) > OUTPUT_QUEUE_MAX &&
        session->session != NULL)
        driver_session_hold(session->session, true);
}

static void on_drain(void *ctx)
{
    struct api_session *session = ctx;

    if (session->session != NULL)
        driver_session_hold(session->session, false);
}

static void on_output(void *ctx, bool is_stderr, const char *bytes, size_t length)
{
    static const char behind[] = "\"}}";
    struct api_session *session = ctx;
    const char *before = is_stderr ? "{\"stderr\":{\"data\":\"" : "{\"stdout\":{\"data\":\"";
    size_t used = strlen(before);
    char *text = malloc(used + BASE64_ENCODE_RAW_LENGTH(length) + sizeof(behind));

    check(text != NULL);
    memcpy(text, before, used);
    base64_encode_raw(text + used, length, (const uint8_t *)bytes);
    used += BASE64_ENCODE_RAW_LENGTH(length);
    memcpy(text + used, behind, sizeof(behind));
    websocket_send(session->socket, text, used + strlen(behind));
    free(text);
}

static void on_closed(void *ctx, bool is_stderr)
{
    struct api_session *session = ctx;
    const char *text =
        is_stderr ? "{\"stderr\":{\"close\":true}}" : "{\"stdout\":{\"close\":true}}";

    websocket_send(session->socket, text, strlen(text));
}

static void on_end(void *ctx, int code, const struct err *err)
{
    struct api_session *session = ctx;
    char text[80];

    session->session = NULL;
    if (err != NULL) {
        hang_up_err(session, err);
        return;
    }
    (void)text_format(text, sizeof(text), "{\"exited\":true,\"result\":{\"exit_code\":%d}}",
                      code); /* it fits */
    websocket_send(session->socket, text, strlen(text));
    hang_up(session, WEBSOCKET_NORMAL, "");
}

/* --- from the peer --- */

static void on_taken(void *ctx)
{
    struct api_session *session = ctx;

    if (session->exchange != NULL)
        http_tunnel_hold(session->exchange, false);
}

static void take_input(struct api_session *session, const char *data, size_t length)
{
    struct base64_decode_ctx base64;
    uint8_t *bytes = malloc(BASE64_DECODE_LENGTH(length) + 1);
    size_t used = BASE64_DECODE_LENGTH(length);

    check(bytes != NULL);
    base64_decode_init(&base64);
    if (base64_decode_update(&base64, &used, bytes, length, data) != 1 ||
        base64_decode_final(&base64) != 1)
        hang_up(session, WEBSOCKET_REFUSED, "stdin.data is no base64");
    else if (driver_session_write(session->session, (const char *)bytes, used) > INPUT_QUEUE_MAX)
        http_tunnel_hold(session->exchange, true);
    explicit_bzero(bytes, used); /* what is typed may be a password */
    free(bytes);
}

static uint16_t size_of(const json_t *size, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(size, name));

    return value > 0 && value <= UINT16_MAX ? (uint16_t)value : 0;
}

static void start(struct api_session *session);

/* True if whoever has RIGHTS may run something in the task.  One that is not isolated is a process
 * of the node, and so is what is run in it. */
static bool may_enter(const struct api_session *session, const struct acl_rights *rights)
{
    const struct core *core = session->api->parts->core;
    const struct alloc *alloc = core_alloc(core, session->alloc);
    const struct task *task = core_task(core, session->alloc, session->task);
    const struct spec_driver *driver =
        task == NULL ? NULL : driver_kind(session->api->parts->drivers, task->define.driver);
    const char *namespace = alloc == NULL ? "*" : alloc->assign.namespace;

    return rights != NULL && acl_allows(rights, namespace, ACL_BIT(ACL_ALLOC_EXEC)) &&
           (driver == NULL || driver->isolation != ISOLATION_NONE ||
            acl_allows(rights, namespace, ACL_BIT(ACL_ALLOC_NODE_EXEC)));
}

/* The first message of a peer that cannot set headers, which says who he is. */
static void shake_hands(struct api_session *session, const json_t *message)
{
    const char *secret = json_string_value(json_object_get(message, "auth_token"));

    session->shakes_hands = false;
    io_timer_stop(&session->gone);
    if (json_integer_value(json_object_get(message, "version")) != 1)
        hang_up(session, WEBSOCKET_REFUSED, "unexpected handshake value: its version must be 1");
    else if (!may_enter(session, api_rights_of(session->api, secret)))
        hang_up(session, WEBSOCKET_REFUSED, "Permission denied");
    else
        start(session);
}

static void on_silence(struct io_timer *timer)
{
    hang_up(timer->ctx, WEBSOCKET_REFUSED, "no handshake came");
}

static void on_message(void *ctx, const char *bytes, size_t length)
{
    struct api_session *session = ctx;

    if (session->exchange == NULL)
        return;
    json_t *message = json_loadb(bytes, length, 0, NULL);
    const json_t *input = json_object_get(message, "stdin");
    const json_t *data = json_object_get(input, "data");
    const json_t *size = json_object_get(message, "tty_size");
    if (!json_is_object(message)) {
        hang_up(session, WEBSOCKET_REFUSED, "a message must be a JSON object");
    } else if (session->shakes_hands) {
        shake_hands(session, message);
    } else if (session->session != NULL) {
        if (json_is_object(size))
            driver_session_resize(session->session, size_of(size, "height"),
                                  size_of(size, "width"));
        if (json_is_string(data))
            take_input(session, json_string_value(data), json_string_length(data));
        if (session->session != NULL && json_is_true(json_object_get(input, "close")))
            driver_session_close_input(session->session);
    }
    json_decref(message);
}

static void on_bytes(void *ctx, const char *bytes, size_t length)
{
    struct api_session *session = ctx;

    if (session->exchange != NULL && !websocket_take(session->socket, bytes, length))
        hang_up(session, WEBSOCKET_NORMAL, "");
}

static void on_left(void *ctx)
{
    struct api_session *session = ctx;

    session->exchange = NULL;
    session_free(session);
}

/* --- its beginning --- */

/* What is to be run, borrowed from SPEC and SESSION: how many texts, 0 after saying why not. */
static size_t arguments_of(const struct api_session *session, const struct task_spec *spec,
                           const char *ret_arguments[DRIVER_SESSION_ARGUMENTS_MAX], struct err *err)
{
    size_t i = 0, at;
    const json_t *word;

    json_array_foreach(session->command, at, word)
    {
        ret_arguments[at] = json_string_value(word);
    }
    if (session->action[0] == '\0')
        return json_array_size(session->command);
    while (i < spec->actions_count && !text_equal(spec->actions[i].name, session->action))
        i++;
    if (i == spec->actions_count) {
        (void)err_set(err, ERR_GONE, "action %s not found in task %s", session->action,
                      session->task);
        return 0;
    }
    const struct spec_action *action = &spec->actions[i];
    ret_arguments[0] = action->command;
    for (i = 0; i < action->arguments.count; i++)
        ret_arguments[i + 1] = action->arguments.items[i];
    return action->arguments.count + 1;
}

static struct driver_session *start_in(struct api_session *session, struct err *err)
{
    const char *arguments[DRIVER_SESSION_ARGUMENTS_MAX];
    struct parts *parts = session->api->parts;
    const struct task *task = core_task(parts->core, session->alloc, session->task);
    const struct alloc_spec *alloc = specs_find(parts->specs, session->alloc, err);
    const struct task_spec *spec = alloc == NULL ? NULL : launch_task(alloc, session->task);
    const struct driver_session_calls calls = {.on_output = on_output,
                                               .on_closed = on_closed,
                                               .on_taken = on_taken,
                                               .on_end = on_end,
                                               .ctx = session};
    struct launch launch;

    if (alloc == NULL)
        return NULL;
    if (session->job[0] != '\0' && !text_equal(session->job, alloc->job_id)) {
        (void)err_set(err, ERR_GONE, "job %s does not have allocation %s", session->job,
                      session->alloc);
        return NULL;
    }
    if (task == NULL || spec == NULL) {
        (void)err_set(err, ERR_GONE, "unknown task name \"%s\"", session->task);
        return NULL;
    }
    size_t count = arguments_of(session, spec, arguments, err);
    if (count == 0 || launch_open(parts, alloc, spec, task, &launch, err) < 0)
        return NULL;
    struct driver_session *made = driver_session_new(parts->drivers, &launch.start, arguments,
                                                     count, session->terminal, &calls, err);
    launch_close(&launch);
    return made;
}

static void start(struct api_session *session)
{
    struct err err = {0};

    session->session = start_in(session, &err);
    if (session->session == NULL)
        hang_up_err(session, &err);
    else
        log_info("api", "session begins alloc=%s task=%s action=%s", session->alloc, session->task,
                 log_value(session->action));
}

/* The command of the request, a new reference; NULL after refusing it. */
static json_t *command_of(struct api_request *request)
{
    const char *given = http_query(request->exchange, "command");
    json_t *command = given == NULL ? NULL : json_loads(given, 0, NULL);
    size_t at, count = json_array_size(command);
    const json_t *word;
    bool fits = count > 0 && count <= DRIVER_SESSION_ARGUMENTS_MAX;

    json_array_foreach(command, at, word)
    {
        fits = fits && json_is_string(word);
    }
    if (fits)
        return command;
    json_decref(command);
    api_refuse(request, 400, "command must be an array of 1 to %d texts, as JSON",
               DRIVER_SESSION_ARGUMENTS_MAX);
    return NULL;
}

/* What answers the key of a request that asks for a WebSocket; false after refusing another. */
static bool accept(struct api_request *request, char to[WEBSOCKET_KEY_SIZE])
{
    const char *upgrade = http_header(request->exchange, "upgrade");
    const char *connection = http_header(request->exchange, "connection");
    const char *version = http_header(request->exchange, "sec-websocket-version");
    const char *key = http_header(request->exchange, "sec-websocket-key");

    if (upgrade != NULL && strcasecmp(upgrade, "websocket") == 0 && connection != NULL &&
        strcasestr(connection, "upgrade") != NULL && version != NULL && text_equal(version, "13") &&
        key != NULL && websocket_accept(key, to))
        return true;
    api_refuse(request, 400, "this is for WebSockets (version 13)");
    return false;
}

static void begin(struct api_request *request, struct api_session *session, const char *accepted)
{
    const struct http_header_line headers[] = {{"Upgrade", "websocket"},
                                               {"Sec-WebSocket-Accept", accepted}};
    const struct websocket_calls calls = {
        .send = on_frame, .on_message = on_message, .ctx = session};
    const struct http_tunnel tunnel = {
        .on_bytes = on_bytes, .on_drain = on_drain, .on_close = on_left, .ctx = session};
    struct api *api = request->api;

    session->exchange = request->exchange;
    session->socket = websocket_new(false, MESSAGE_MAX, &calls);
    session->next = api->sessions;
    session->link = &api->sessions;
    if (session->next != NULL)
        session->next->link = &session->next;
    api->sessions = session;
    api->sessions_count++;
    http_tunnel_begin(session->exchange, headers, COUNT_OF(headers), &tunnel);
    if (!session->shakes_hands)
        start(session);
    else
        io_timer_start(api->parts->loop, &session->gone, loop_now_ms() + HANDSHAKE_MS, on_silence,
                       session);
}

/* Who is to shake hands says there who he is, and is told nothing before. */
static bool is_welcome(struct api_request *request, const struct api_session *session)
{
    struct machine_id id;

    if (session->shakes_hands)
        return true;
    if (may_enter(session, request->rights))
        return api_alloc_of(request, session->alloc, &id) != NULL;
    api_refuse(request, 403, "Permission denied");
    return false;
}

/* In TASK of ALLOC of JOB, as they were given (JOB may be NULL); ACTION of it, or what the request
 * says. */
static void enter_task(struct api_request *request, const char *job, const char *alloc,
                       const char *task, const char *action)
{
    char accepted[WEBSOCKET_KEY_SIZE];
    bool terminal = false, shakes_hands = false;

    if (!api_query_bool(request, "tty", &terminal) ||
        !api_query_bool(request, "ws_handshake", &shakes_hands) || !accept(request, accepted))
        return;
    if (alloc == NULL || !uuid_is_valid(alloc)) {
        api_refuse(request, 404, "Unknown allocation \"%.40s\"", alloc == NULL ? "" : alloc);
        return;
    }
    if (task == NULL || task[0] == '\0' || strlen(task) >= SPEC_NAME_SIZE) {
        api_refuse(request, 400, "must provide task name");
        return;
    }
    if (request->api->sessions_count == API_SESSIONS_MAX) {
        api_refuse(request, 503, "%d commands are run in tasks already: end one", API_SESSIONS_MAX);
        return;
    }
    json_t *command = action == NULL ? command_of(request) : NULL;
    if (command == NULL && action == NULL)
        return;
    struct api_session *session = calloc(1, sizeof(*session));
    check(session != NULL);
    session->api = request->api;
    session->shakes_hands = shakes_hands;
    session->terminal = terminal;
    session->command = command;
    (void)text_copy(session->alloc, sizeof(session->alloc), alloc); /* a UUID */
    (void)text_copy(session->task, sizeof(session->task), task);    /* it fits */
    (void)text_copy(session->action, sizeof(session->action),
                    action == NULL ? "" : action); /* likewise */
    (void)text_copy(session->job, sizeof(session->job),
                    job == NULL ? "" : job); /* a cut one is none */
    if (!is_welcome(request, session)) {
        json_decref(command);
        free(session);
        return;
    }
    begin(request, session, accepted);
}

/* The action that the request names; RET_GOOD is false after refusing it. */
static const char *action_of(struct api_request *request, bool *ret_good)
{
    const char *action = http_query(request->exchange, "action");

    *ret_good = action == NULL || strlen(action) < SPEC_ACTION_NAME_SIZE;
    if (!*ret_good)
        api_refuse(request, 400, "the name of an action has at most %d bytes",
                   SPEC_ACTION_NAME_SIZE - 1);
    return action != NULL && action[0] != '\0' ? action : NULL;
}

void api_alloc_exec(struct api_request *request)
{
    bool good;
    const char *action = action_of(request, &good);

    if (good)
        enter_task(request, http_query(request->exchange, "job"), request->argument,
                   http_query(request->exchange, "task"), action);
}

void api_job_action(struct api_request *request)
{
    bool good;
    const char *action = action_of(request, &good);

    if (good && action == NULL)
        api_refuse(request, 400, "must provide action name");
    else if (good)
        enter_task(request, request->argument, http_query(request->exchange, "allocID"),
                   http_query(request->exchange, "task"), action);
}

void api_sessions_close(struct api *api)
{
    while (api->sessions != NULL)
        session_free(api->sessions);
}
