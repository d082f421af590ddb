/*
 * A command in a task of a plugin: a call that both sides stream, the command's input and output.
 */
#include "drivers/external/external.h"

#include "drivers/external/task.pb-c.h"
#include "plugins/protocol/read.h"

#include <stdlib.h>
#include <string.h>

enum { KEPT_BYTES_MAX = 2 * GRPC_MESSAGE_MAX, INPUT_PIECE_MAX = 32 << 10, STREAMS = 2 };

struct external_session {
    struct grpc_request *request;
    struct driver_session_calls calls;
    struct loop *loop;
    struct io_timer turn;
    bool held, exited, over, has_terminal, is_closed;
    int code;
    struct err err;
    struct {
        bool told_closed;
        char *bytes; /* that have come, and are not told yet; owned */
        size_t length;
    } streams[STREAMS];
};

/* --- what is told: one thing in a turn of the loop, and the last in it, as whoever hears it may
 * end the session --- */

static void on_turn(struct io_timer *timer);

static void go_on(struct external_session *session)
{
    if (!session->held)
        io_timer_start(session->loop, &session->turn, 0, on_turn, session);
}

static void on_turn(struct io_timer *timer)
{
    struct external_session *session = timer->ctx;
    const struct driver_session_calls calls = session->calls;

    for (size_t i = 0; i < STREAMS; i++) {
        char *bytes = session->streams[i].bytes;
        size_t length = session->streams[i].length;

        if (length == 0)
            continue;
        session->streams[i].bytes = NULL;
        session->streams[i].length = 0;
        go_on(session);
        calls.on_output(calls.ctx, i == 1, bytes, length);
        free(bytes);
        return;
    }
    for (size_t i = 0; session->over && i < STREAMS; i++) {
        if (session->streams[i].told_closed)
            continue;
        session->streams[i].told_closed = true;
        go_on(session);
        calls.on_closed(calls.ctx, i == 1);
        return;
    }
    if (!session->over)
        return;
    const struct err err = session->err;
    bool exited = session->exited;
    calls.on_end(calls.ctx, exited ? session->code : -1, exited ? NULL : &err);
}

static void hold_it(void *ctx, bool hold)
{
    struct external_session *session = ctx;

    session->held = hold;
    if (session->request != NULL)
        grpc_hold(session->request, hold);
    if (hold)
        io_timer_stop(&session->turn);
    else
        go_on(session);
}

/* --- what is heard --- */

/* False: more has come than is kept. */
static bool take(struct external_session *session, size_t stream, const Task__ExecBytes *said)
{
    size_t had = session->streams[stream].length, length = said == NULL ? 0 : said->data.len;

    if (length == 0)
        return true;
    if (had + length > KEPT_BYTES_MAX) {
        (void)err_set(&session->err, ERR_LIMIT, "it writes more than is read of it");
        return false;
    }
    session->streams[stream].bytes = realloc(session->streams[stream].bytes, had + length);
    check(session->streams[stream].bytes != NULL);
    memcpy(session->streams[stream].bytes + had, said->data.data, length);
    session->streams[stream].length += length;
    return true;
}

static bool on_message(void *ctx, const void *message, size_t length)
{
    struct external_session *session = ctx;
    struct arena arena = {0};
    struct reading from = reading_begin(&arena, &session->err);
    const Task__ExecAnswer *said =
        reading_unpack(&from, &task__exec_answer__descriptor, message, length);
    bool more = said != NULL && take(session, 0, said->output) && take(session, 1, said->errors);

    if (more && said->exited && !session->over) {
        session->exited = true;
        session->code = said->result == NULL ? 0 : said->result->code;
    }
    arena_free(&arena);
    go_on(session);
    return more;
}

static void on_end(void *ctx, const struct grpc_reply *reply)
{
    struct external_session *session = ctx;

    session->request = NULL;
    if (session->calls.on_end == NULL)
        return; /* it is being freed */
    if (!session->exited && session->err.code == 0 && reply->error.code != 0)
        external_fault(reply, "of the task", &session->err);
    if (!session->exited && session->err.code == 0)
        (void)err_set(&session->err, ERR_IO, "the driver has not said how the command ended");
    session->over = true;
    go_on(session);
}

/* --- what is said --- */

static void on_sent(void *ctx)
{
    const struct external_session *session = ctx;

    if (session->calls.on_end != NULL && session->calls.on_taken != NULL)
        session->calls.on_taken(session->calls.ctx);
}

/* The bytes that wait to be sent; none is taken of a command that is over, or has all its input. */
static size_t send_request(struct external_session *session, const Task__ExecRequest *request)
{
    size_t size = task__exec_request__get_packed_size(request);
    uint8_t *bytes = malloc(size + 1);

    check(bytes != NULL);
    check(task__exec_request__pack(request, bytes) == size);
    bool can = session->request != NULL && !session->is_closed;
    size_t waits = can ? grpc_send(session->request, bytes, size) : 0;
    explicit_bzero(bytes, size); /* what is typed may be a password */
    free(bytes);
    return waits;
}

static size_t write_input(void *ctx, const char *bytes, size_t length)
{
    size_t waits = 0;

    for (size_t piece; length > 0; bytes += piece, length -= piece) {
        Task__ExecBytes input = TASK__EXEC_BYTES__INIT;
        Task__ExecRequest request = TASK__EXEC_REQUEST__INIT;

        piece = length < INPUT_PIECE_MAX ? length : INPUT_PIECE_MAX;
        input.data = (ProtobufCBinaryData){piece, (uint8_t *)(uintptr_t)bytes};
        request.input = &input;
        waits = send_request(ctx, &request);
    }
    return waits;
}

/* A terminal is told by its character for that, and goes on to be one. */
static void close_input(void *ctx)
{
    static const char end_of_input[] = {4};
    struct external_session *session = ctx;
    Task__ExecBytes input = TASK__EXEC_BYTES__INIT;
    Task__ExecRequest request = TASK__EXEC_REQUEST__INIT;

    if (session->has_terminal) {
        (void)write_input(session, end_of_input, sizeof(end_of_input)); /* nothing follows */
        return;
    }
    input.close = true;
    request.input = &input;
    (void)send_request(session, &request); /* likewise */
    if (session->request != NULL && !session->is_closed)
        grpc_send_end(session->request);
    session->is_closed = true;
}

static void resize(void *ctx, uint16_t rows, uint16_t columns)
{
    const struct external_session *session = ctx;
    Task__ExecSize size = TASK__EXEC_SIZE__INIT;
    Task__ExecRequest request = TASK__EXEC_REQUEST__INIT;

    if (!session->has_terminal)
        return;
    size.rows = rows;
    size.columns = columns;
    request.size = &size;
    (void)send_request(ctx, &request); /* the next one says it again */
}

static void end_it(void *ctx)
{
    struct external_session *session = ctx;

    session->calls.on_end = NULL;
    io_timer_stop(&session->turn);
    if (session->request != NULL)
        grpc_cancel(session->request);
    for (size_t i = 0; i < STREAMS; i++)
        free(session->streams[i].bytes);
    free(session);
}

const struct session_way external_session_way = {.end = end_it,
                                                 .hold = hold_it,
                                                 .write = write_input,
                                                 .close_input = close_input,
                                                 .resize = resize};

void *external_session_new(struct run *run, const struct texts *command, bool terminal,
                           const struct driver_session_calls *calls, struct err *err)
{
    struct external_session *session = calloc(1, sizeof(*session));
    ProtobufCBinaryData *words = calloc(command->count, sizeof(*words));
    Task__ExecSetup setup = TASK__EXEC_SETUP__INIT;
    Task__ExecRequest request = TASK__EXEC_REQUEST__INIT;
    const char *id = run->external->record.id;

    check(session != NULL && words != NULL);
    session->calls = *calls;
    session->loop = run->drivers->config.loop;
    session->has_terminal = terminal;
    for (size_t i = 0; i < command->count; i++)
        words[i] = (ProtobufCBinaryData){strlen(command->items[i]),
                                         (uint8_t *)(uintptr_t)command->items[i]};
    setup.id = (ProtobufCBinaryData){strlen(id), (uint8_t *)(uintptr_t)id};
    setup.command = words;
    setup.n_command = command->count;
    setup.terminal = terminal;
    request.setup = &setup;
    size_t size = task__exec_request__get_packed_size(&request);
    uint8_t *bytes = malloc(size);
    check(bytes != NULL);
    check(task__exec_request__pack(&request, bytes) == size);
    const struct grpc_call call = {
        .message = bytes,
        .message_length = size,
        .sends_more = true,
        .on_sent = on_sent,
        .lasts = true,
        .on_message = on_message,
        .cb = on_end,
        .ctx = session,
    };
    session->request = plugins_ask(run->drivers->config.plugins, run->external->record.driver,
                                   "ExecTaskStreaming", &call, err);
    explicit_bzero(bytes, size); /* words may be secret */
    free(bytes);
    free(words);
    if (session->request != NULL)
        return session;
    free(session);
    return NULL;
}
