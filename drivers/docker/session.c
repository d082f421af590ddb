/*
 * Commands in a container, by the Engine: made, then begun over a connection that is theirs alone
 * from its answer on (RFC 9110, 7.8), by which input goes in and output comes out.
 *
 * The Engine ends no command for want of somebody who listens, and has no request for it; so what
 * is left of one is killed by us, by the process that the Engine names, as long as that is in the
 * container's cgroup.
 */
#include "drivers/docker/docker.h"

#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    HEAD_MAX = 8 << 10, /* of the answer that hands the connection over */
    READ_SIZE = 16 << 10,
    CONNECT_AGAIN_MS = 20,
    CONNECT_MAX = 250, /* times: the Engine is busy */
    CODE_AGAIN_MS = 20,
    CODE_MAX = 250, /* times: the end of the output comes before that of the command */
    ID_SIZE = 80,
    SWEPT_MAX = 256, /* commands of a container that are looked at after a crash */
};

#define SESSION_MARKER "CAIRN_SESSION=" /* and the node's mark: in the environment of a command */

struct container_session {
    struct drivers *drivers;
    struct driver_session_calls calls;
    struct container_session *next, **link;
    unsigned busy; /* with telling: until then an end is only noted */
    bool is_ended; /* nobody is told any more */

    struct http_request *request; /* making it, how it has ended, or how it is */
    struct http_request *sizing;
    char cgroup[CGROUP_NAME_SIZE], id[ID_SIZE];
    bool terminal;
    uint16_t rows, columns; /* 0: not told */

    struct io_watch watch;
    int fd; /* -1: not connected yet, or all has come */
    struct io_timer timer;
    unsigned tries;
    char head[HEAD_MAX];
    size_t head_used;
    bool handed_over; /* the connection is ours */
    struct frames frames;
    char bytes[READ_SIZE]; /* of output, from FROM to TO not told yet */
    size_t from, to;
    bool held;
    char *queue; /* of input, owned */
    size_t queue_used, queue_size;
    bool input_closed, is_shut;
};

static void pump(struct container_session *session);
static void give_up(struct container_session *session);
static void on_socket(struct io_watch *watch, int events);

/* --- its end --- */

static void close_connection(struct container_session *session)
{
    io_watch_stop(&session->watch);
    io_timer_stop(&session->timer);
    if (session->fd >= 0)
        (void)close(session->fd); /* all that counts has been read */
    session->fd = -1;
}

static void session_free(struct container_session *session)
{
    struct http_request *request = session->request, *sizing = session->sizing;

    close_connection(session);
    session->drivers = NULL; /* callbacks that come now have nothing to do */
    if (request != NULL)
        http_cancel(request);
    if (sizing != NULL)
        http_cancel(sizing);
    *session->link = session->next;
    if (session->next != NULL)
        session->next->link = session->link;
    if (session->queue != NULL)
        explicit_bzero(session->queue, session->queue_size);
    free(session->queue);
    free(session);
}

/* Around all that is told, from within which the session may be ended; false: it was. */
static void enter(struct container_session *session)
{
    session->busy++;
}

static bool leave(struct container_session *session)
{
    bool is_ended = session->is_ended;

    session->busy--;
    if (is_ended && session->busy == 0)
        give_up(session);
    return !is_ended;
}

/* The last thing that is done: who hears it ends the session. */
static void tell_end(struct container_session *session, int code, const struct err *err)
{
    close_connection(session);
    session->id[0] = '\0'; /* nothing is left of it */
    enter(session);
    session->calls.on_end(session->calls.ctx, code, err);
    (void)leave(session);
}

static void fail(struct container_session *session, const struct http_reply *reply)
{
    struct err err = {0};

    if (reply->status == 404 || reply->status == 409)
        (void)err_set(&err, ERR_GONE, "the task has ended, and the session with it");
    else
        (void)engine_fault(reply, &err);
    tell_end(session, -1, &err);
}

static void lost(struct container_session *session, const char *why)
{
    struct err err = {0};

    (void)err_set(&err, ERR_IO, "%s", why);
    tell_end(session, -1, &err);
}

/* How the command is. */
static void ask_of_it(struct container_session *session,
                      void (*cb)(void *, const struct http_reply *))
{
    char path[ID_SIZE + 16];
    struct err err = {0};

    check(text_format(path, sizeof(path), "/exec/%s/json", session->id));
    const struct engine_ask asked = {.method = "GET", .path = path, .cb = cb, .ctx = session};
    session->request = engine_ask(session->drivers, &asked, &err);
    if (session->request == NULL)
        tell_end(session, -1, &err);
}

static void ask_code(struct io_timer *timer);

static void on_code(void *ctx, const struct http_reply *reply)
{
    struct container_session *session = ctx;

    if (session->drivers == NULL)
        return;
    session->request = NULL;
    if (reply->status != 200) {
        fail(session, reply);
        return;
    }
    json_t *body = json_loadb(reply->body, reply->body_length, 0, NULL);
    const json_t *code = json_object_get(body, "ExitCode");
    bool runs = json_is_true(json_object_get(body, "Running")), is_known = json_is_integer(code);
    int value = (int)(json_integer_value(code) & 255);

    json_decref(body);
    if (is_known && !runs)
        tell_end(session, value, NULL);
    else if (++session->tries < CODE_MAX)
        io_timer_start(session->drivers->config.loop, &session->timer,
                       loop_now_ms() + CODE_AGAIN_MS, ask_code, session);
    else
        lost(session, "the Docker Engine does not tell how the command has ended");
}

static void ask_code(struct io_timer *timer)
{
    ask_of_it(timer->ctx, on_code);
}

/* --- output --- */

static void watch(struct container_session *session)
{
    int events = (session->held && session->handed_over ? 0 : IO_READABLE) |
                 (session->queue_used > 0 && session->handed_over ? IO_WRITABLE : 0);

    if (session->fd < 0)
        return;
    if (events == 0)
        io_watch_stop(&session->watch);
    else
        io_watch_start(session->drivers->config.loop, &session->watch, session->fd, events,
                       on_socket, session);
}

/* All has come, and was told. */
static void all_told(struct container_session *session)
{
    close_connection(session);
    enter(session);
    session->calls.on_closed(session->calls.ctx, false);
    if (!session->is_ended && !session->terminal)
        session->calls.on_closed(session->calls.ctx, true);
    if (!leave(session))
        return;
    session->tries = 0;
    ask_of_it(session, on_code);
}

/* Tells what was read, as long as somebody wants to hear; false: the session is gone, or ends. */
static bool tell_output(struct container_session *session)
{
    while (session->from < session->to && !session->held) {
        const char *bytes = session->bytes + session->from;
        size_t length = session->to - session->from, left = length;
        struct frame_part part = {.bytes = bytes, .length = length};
        enum frames_found found = FRAMES_PART;

        if (session->terminal)
            left = 0;
        else
            found = frames_next(&session->frames, &bytes, &left, &part);
        session->from += length - left;
        if (found == FRAMES_WAIT)
            break;
        if (found == FRAMES_STRANGE) {
            lost(session, "what the Docker Engine sends is no output of a command");
            return false;
        }
        enter(session);
        session->calls.on_output(session->calls.ctx, part.stream == 1, part.bytes, part.length);
        if (!leave(session))
            return false;
    }
    return true;
}

static void on_time(struct io_timer *timer)
{
    pump(timer->ctx);
}

/* --- input --- */

/* What is queued goes as far as there is room; false: nobody takes it any more. */
static bool send_queued(struct container_session *session)
{
    size_t done = 0;

    while (done < session->queue_used) {
        ssize_t sent = send(session->fd, session->queue + done, session->queue_used - done,
                            MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN)
            return false;
        if (sent < 0)
            break;
        done += (size_t)sent;
    }
    session->queue_used -= done;
    memmove(session->queue, session->queue + done, session->queue_used);
    return true;
}

/* The command is told that there is no more, once it has all that was queued. */
static void shut_input(struct container_session *session)
{
    if (session->queue_used > 0 || !session->input_closed || session->terminal || session->is_shut)
        return;
    session->is_shut = true;
    (void)shutdown(session->fd, SHUT_WR); /* it has ended: then nobody reads */
}

/* Passes on what is queued; whoever emptied the queue, a producer that holds back hears of it.
 * False: the session was ended. */
static bool pass_input(struct container_session *session)
{
    bool was_queued = session->queue_used > 0;

    if (session->fd < 0 || !session->handed_over)
        return true;
    if (!send_queued(session))
        session->queue_used = 0; /* it has ended, and that is heard by the other side */
    watch(session);
    if (session->queue_used > 0)
        return true;
    shut_input(session);
    enter(session);
    if (was_queued && session->calls.on_taken != NULL)
        session->calls.on_taken(session->calls.ctx);
    return leave(session);
}

static void queue_input(struct container_session *session, const char *bytes, size_t length)
{
    session->queue =
        list_room(session->queue, &session->queue_size, session->queue_used + length, 1);
    memcpy(session->queue + session->queue_used, bytes, length);
    session->queue_used += length;
}

/* --- the connection --- */

/* An answer that hands nothing over, and its body behind HEAD_LENGTH bytes, as far as that has
 * come. */
static void take_refusal(struct container_session *session, int status, size_t head_length)
{
    struct http_reply reply = {.status = status,
                               .body = session->head + head_length,
                               .body_length = session->head_used - head_length};

    if (status == 0)
        lost(session, "what answers is no Docker Engine");
    else
        fail(session, &reply);
}

static void take_over(struct container_session *session, size_t head_length)
{
    session->handed_over = true;
    session->from = 0;
    session->to = session->head_used - head_length;
    check(session->to <= sizeof(session->bytes));
    memcpy(session->bytes, session->head + head_length, session->to);
    if (session->rows != 0)
        container_session_way.resize(session, session->rows, session->columns);
    if (pass_input(session))
        pump(session);
}

/* How long the body is behind a head that says it, 0: it does not. */
static size_t body_length(const char *head)
{
    static const char name[] = "\r\nContent-Length:";
    const char *found = strcasestr(head, name);

    return found == NULL ? 0 : (size_t)strtoul(found + strlen(name), NULL, 10);
}

/* The head of the answer is whole: 101, or 200 of older Engines; false: there is more to come of
 * another one. */
static bool take_head(struct container_session *session, size_t length, bool is_over)
{
    char *head = session->head, kept = head[length - 1];
    int status = 0;

    head[length - 1] = '\0'; /* of the empty line */
    if (text_starts_with(head, "HTTP/1.1 "))
        status = (int)strtol(head + strlen("HTTP/1.1 "), NULL, 10);
    bool is_whole = is_over || session->head_used - length >= body_length(head);
    head[length - 1] = kept;
    if (status == 101 || status == 200)
        take_over(session, length);
    else if (is_whole || session->head_used == sizeof(session->head))
        take_refusal(session, status, length);
    else
        return false;
    return true;
}

static void read_head(struct container_session *session)
{
    ssize_t got = recv(session->fd, session->head + session->head_used,
                       sizeof(session->head) - session->head_used, MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0)
        session->head_used += (size_t)got;
    const char *end = memmem(session->head, session->head_used, "\r\n\r\n", 4);
    if (end != NULL && take_head(session, (size_t)(end - session->head) + 4, got <= 0))
        return;
    if (got <= 0 || session->head_used == sizeof(session->head))
        lost(session, "the Docker Engine does not begin the command");
}

/* Tells what there is, and reads more of it. */
static void pump(struct container_session *session)
{
    for (;;) {
        if (!tell_output(session))
            return;
        watch(session);
        if (session->held)
            return;
        ssize_t got = recv(session->fd, session->bytes, sizeof(session->bytes), MSG_DONTWAIT);

        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            all_told(session);
            return;
        }
        session->from = 0;
        session->to = (size_t)got;
    }
}

static void on_socket(struct io_watch *watch_of_it, int events)
{
    struct container_session *session = watch_of_it->ctx;

    if ((events & IO_WRITABLE) != 0 && !pass_input(session))
        return;
    if ((events & IO_READABLE) == 0 || session->fd < 0)
        return;
    if (session->handed_over)
        pump(session);
    else
        read_head(session);
}

/* Asks for the connection.  Nothing of the input goes with it: what an Engine has read before it
 * hands the connection over is lost.  A socket that is new has room for it. */
static bool ask_for_it(struct container_session *session)
{
    const char *how =
        session->terminal ? "{\"Detach\":false,\"Tty\":true}" : "{\"Detach\":false,\"Tty\":false}";
    char request[ID_SIZE + 256];

    check(text_format(request, sizeof(request),
                      "POST /exec/%s/start HTTP/1.1\r\nHost: engine\r\nConnection: Upgrade\r\n"
                      "Upgrade: tcp\r\nContent-Type: application/json\r\nContent-Length: "
                      "%zu\r\n\r\n%s",
                      session->id, strlen(how), how));
    return send(session->fd, request, strlen(request), MSG_NOSIGNAL | MSG_DONTWAIT) ==
           (ssize_t)strlen(request);
}

static void connect_it(struct io_timer *timer)
{
    struct container_session *session = timer->ctx;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    bool fits = text_copy(address.sun_path, sizeof(address.sun_path),
                          session->drivers->config.docker.socket);
    scoped_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool is_connected =
        fits && fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;

    if (!is_connected && fits && fd >= 0 && errno == EAGAIN && ++session->tries < CONNECT_MAX) {
        io_timer_start(session->drivers->config.loop, &session->timer,
                       loop_now_ms() + CONNECT_AGAIN_MS, connect_it, session);
        return;
    }
    session->fd = is_connected ? take_fd(&fd) : -1;
    if (is_connected && ask_for_it(session))
        watch(session);
    else
        lost(session, "the Docker Engine cannot be reached");
}

/* --- making it --- */

static bool take_id(struct container_session *session, const char *id)
{
    if (id == NULL || id[0] == '\0' || id[strspn(id, "0123456789abcdef")] != '\0' ||
        strlen(id) >= sizeof(session->id))
        return false;
    (void)text_copy(session->id, sizeof(session->id), id); /* fits */
    return true;
}

static void on_made(void *ctx, const struct http_reply *reply)
{
    struct container_session *session = ctx;

    if (session->drivers == NULL)
        return;
    session->request = NULL;
    json_t *body =
        reply->status == 201 ? json_loadb(reply->body, reply->body_length, 0, NULL) : NULL;
    bool is_id = take_id(session, json_string_value(json_object_get(body, "Id")));
    json_decref(body);
    if (!is_id && reply->status == 201) {
        lost(session, "the Docker Engine's answer is none");
        return;
    }
    if (!is_id) {
        fail(session, reply);
        return;
    }
    connect_it(&session->timer);
}

static struct container_session *session_new(struct run *run)
{
    struct drivers *drivers = run->drivers;
    struct container_session *session = calloc(1, sizeof(*session));

    check(session != NULL);
    *session = (struct container_session){.drivers = drivers,
                                          .fd = -1,
                                          .timer = {.ctx = session},
                                          .next = drivers->container_sessions,
                                          .link = &drivers->container_sessions};
    if (session->next != NULL)
        session->next->link = &session->next;
    drivers->container_sessions = session;
    (void)text_copy(session->cgroup, sizeof(session->cgroup), run->container->cgroup); /* fits */
    return session;
}

struct container_session *container_session_new(struct run *run, const struct texts *command,
                                                bool terminal,
                                                const struct driver_session_calls *calls,
                                                struct err *err)
{
    struct container_session *session = session_new(run);
    char name[CONTAINER_NAME_SIZE], path[CONTAINER_NAME_SIZE + 32];

    session->calls = *calls;
    session->terminal = terminal;
    container_name(&run->key, name);
    json_t *words = json_array();
    for (size_t i = 0; i < command->count; i++)
        check(json_array_append_new(words, json_string(command->items[i])) == 0);
    json_t *marker = json_sprintf(SESSION_MARKER "%s", run->drivers->node_mark);
    json_t *body =
        json_pack("{s:b, s:b, s:b, s:b, s:o, s:[o]}", "AttachStdin", true, "AttachStdout", true,
                  "AttachStderr", true, "Tty", terminal, "Cmd", words, "Env", marker);
    check(body != NULL);
    check(text_format(path, sizeof(path), "/containers/%s/exec", name));
    const struct engine_ask asked = {.method = "POST",
                                     .path = path,
                                     .body = body,
                                     .secret = true,
                                     .cb = on_made,
                                     .ctx = session};
    session->request = engine_ask(run->drivers, &asked, err);
    json_decref(body);
    if (session->request != NULL)
        return session;
    session_free(session);
    return NULL;
}

/* --- while it runs --- */

static void container_session_hold(void *others, bool hold)
{
    struct container_session *session = others;

    session->held = hold;
    if (session->fd < 0 || !session->handed_over)
        return;
    watch(session);
    if (!hold)
        io_timer_start(session->drivers->config.loop, &session->timer, 0, on_time, session);
}

static size_t container_session_write(void *others, const char *bytes, size_t length)
{
    struct container_session *session = others;
    size_t room = DRIVER_SESSION_QUEUE_MAX - session->queue_used;

    if (session->input_closed || length == 0 || (session->fd < 0 && session->handed_over))
        return session->queue_used;
    queue_input(session, bytes, length < room ? length : room);
    return pass_input(session) ? session->queue_used : 0;
}

static void container_session_close_input(void *others)
{
    static const char end_of_input[] = {4};
    struct container_session *session = others;

    if (session->terminal)
        (void)container_session_write(session, end_of_input, sizeof(end_of_input));
    session->input_closed = true;
    if (session->handed_over && session->fd >= 0)
        shut_input(session);
}

static void on_sized(void *ctx, const struct http_reply *reply)
{
    struct container_session *session = ctx;
    (void)reply; /* it has ended, or keeps the size that it has */

    if (session->drivers != NULL)
        session->sizing = NULL;
}

static void container_session_resize(void *others, uint16_t rows, uint16_t columns)
{
    struct container_session *session = others;
    char path[ID_SIZE + 64];

    session->rows = rows;
    session->columns = columns;
    if (!session->terminal || !session->handed_over || session->fd < 0)
        return;
    struct http_request *older = session->sizing;
    check(text_format(path, sizeof(path), "/exec/%s/resize?h=%u&w=%u", session->id, rows, columns));
    const struct engine_ask asked = {
        .method = "POST", .path = path, .cb = on_sized, .ctx = session};
    if (older != NULL)
        http_cancel(older);
    session->sizing = engine_ask(session->drivers, &asked, NULL);
}

/* --- what is left of one that nobody listens to --- */

/* True if it was begun as a command of this node, and not by somebody who uses the Engine, too. */
static bool is_ours(const struct container_session *session, const struct proc_identity *process)
{
    char marker[sizeof(SESSION_MARKER) + NODE_MARK_SIZE];

    check(text_format(marker, sizeof(marker), SESSION_MARKER "%s", session->drivers->node_mark));
    return proc_has_variable(process, marker);
}

static void on_rest(void *ctx, const struct http_reply *reply)
{
    struct container_session *session = ctx;
    struct proc_identity process;
    char cgroup[CGROUP_NAME_SIZE];

    if (session->drivers == NULL)
        return;
    session->request = NULL;
    json_t *body =
        reply->status == 200 ? json_loadb(reply->body, reply->body_length, 0, NULL) : NULL;
    pid_t pid = (pid_t)json_integer_value(json_object_get(body, "Pid"));
    bool runs = json_is_true(json_object_get(body, "Running"));

    json_decref(body);
    if (runs && pid > 1 && proc_identify(pid, &process, NULL) == 0) {
        container_cgroup_of(session->drivers, pid, cgroup);
        if (cgroup[0] != '\0' && text_equal(cgroup, session->cgroup) && is_ours(session, &process))
            (void)proc_signal(&process, SIGKILL, NULL); /* it has just ended */
    }
    session_free(session);
}

static void ask_for_rest(struct container_session *session)
{
    char path[ID_SIZE + 16];

    check(session->request == NULL); /* what was asked before has been answered */
    check(text_format(path, sizeof(path), "/exec/%s/json", session->id));
    const struct engine_ask asked = {.method = "GET", .path = path, .cb = on_rest, .ctx = session};
    session->request = engine_ask(session->drivers, &asked, NULL);
    if (session->request == NULL)
        session_free(session);
}

/* Nobody listens any more: what runs is ended, if something does. */
static void give_up(struct container_session *session)
{
    bool may_run = session->id[0] != '\0' && session->handed_over && session->fd >= 0;

    close_connection(session);
    if (may_run)
        ask_for_rest(session);
    else
        session_free(session);
}

void container_sessions_sweep(struct run *run, const struct http_reply *reply)
{
    json_t *body = json_loadb(reply->body, reply->body_length, 0, NULL);
    const json_t *ids = json_object_get(body, "ExecIDs");

    for (size_t i = 0; i < json_array_size(ids) && i < SWEPT_MAX; i++) {
        const char *id = json_string_value(json_array_get(ids, i));
        struct container_session *session = session_new(run);

        session->is_ended = true;
        if (take_id(session, id))
            ask_for_rest(session);
        else
            session_free(session);
    }
    json_decref(body);
}

static void container_session_end(void *others)
{
    struct container_session *session = others;

    session->is_ended = true;
    if (session->busy == 0)
        give_up(session);
}

const struct session_way container_session_way = {.end = container_session_end,
                                                  .hold = container_session_hold,
                                                  .write = container_session_write,
                                                  .close_input = container_session_close_input,
                                                  .resize = container_session_resize};

void container_sessions_close(struct drivers *drivers)
{
    while (drivers->container_sessions != NULL)
        session_free(drivers->container_sessions);
}
