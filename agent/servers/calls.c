/*
 * Calls of servers that have one answer: statistics, files, what users ask of an alloc.
 *
 * Names and fields follow nomad v1.1.2 to v2.0.5 client (the *_endpoint.go).  What servers have no
 * answer for here is refused as by a client that is older.
 */
#include "agent/servers/part.h"

#include "agent/api/format/values.h"
#include "base/list.h"

#include <stdlib.h>
#include <string.h>

#define ASKED(called, how, where, ...)                                                             \
    {                                                                                              \
        .method = called, .verb = how, .path = where, __VA_ARGS__                                  \
    }

/* clang-format off */
static const struct {
    struct question question;
    const char *answer; /* the field that has it; NULL: there is none; "": all of it */
} rows[] = {
    {ASKED("ClientStats.Stats", "GET", "/v1/client/stats",), "HostStats"},
    {ASKED("Allocations.Stats", "GET", "/v1/client/allocation/*/stats",
           .query = {{"Task", "task", NULL}}), "Stats"},
    {ASKED("Allocations.Checks", "GET", "/v1/client/allocation/*/checks",), "Results"},
    {ASKED("Allocations.Signal", "PUT", "/v1/client/allocation/*/signal",
           .body = {"Task", "Signal"}), NULL},
    {ASKED("Allocations.Restart", "PUT", "/v1/client/allocation/*/restart",
           .body = {"TaskName", "AllTasks"}), NULL},
    {ASKED("Allocations.GarbageCollect", "PUT", "/v1/client/allocation/*/gc",), NULL},
    {ASKED("Allocations.GarbageCollectAll", "PUT", "/v1/client/gc",), NULL},
    {ASKED("FileSystem.List", "GET", "/v1/client/fs/ls/*",
           .query = {{"Path", "path", NULL}}), "Files"},
    {ASKED("FileSystem.Stat", "GET", "/v1/client/fs/stat/*",
           .query = {{"Path", "path", NULL}}), "Info"},
    {ASKED("NodeMeta.Read", "GET", "/v1/client/metadata",), ""},
    {ASKED("NodeMeta.Apply", "PUT", "/v1/client/metadata", .body = {"Meta"}), ""},
};
/* clang-format on */

/* One under way. */
struct call {
    struct rpc_called *called;
    const char *answer;
    int status;
    char *items; /* of the answer */
    size_t count, size;
};

/* --- answers --- */

static void wire_times(json_t *file)
{
    const char *text = json_string_value(json_object_get(file, "ModTime"));

    if (text != NULL)
        check(json_object_set_new(file, "ModTime", api_wire_time(text)) == 0);
}

static void answer(struct call *call)
{
    json_t *said = json_loadb(call->items, call->count, JSON_DECODE_ANY, NULL), *one;
    json_t *reply = json_object();
    size_t i;

    json_array_foreach(said, i, one) wire_times(one);
    wire_times(said);
    if (call->answer != NULL && call->answer[0] != '\0' && said != NULL)
        check(json_object_set(reply, call->answer, said) == 0);
    else if (call->answer != NULL && json_is_object(said))
        check(json_object_update(reply, said) == 0);
    rpc_answer(call->called, reply);
    json_decref(reply);
    json_decref(said);
}

/* As Nomad's API hands on what it hears. */
static void refuse(struct call *call)
{
    char text[ERR_TEXT_SIZE];

    (void)text_format(text, sizeof(text), "RPC Error:: %d,%.*s", call->status, (int)call->count,
                      call->items == NULL ? "" : call->items); /* may be cut */
    rpc_refuse(call->called, text);
}

static void on_begin(void *ctx, int status)
{
    ((struct call *)ctx)->status = status;
}

static size_t on_bytes(void *ctx, const void *bytes, size_t length)
{
    struct call *call = ctx;

    call->items = list_room(call->items, &call->size, call->count + length, 1);
    memcpy(call->items + call->count, bytes, length);
    call->count += length;
    return 0;
}

static void on_end(void *ctx)
{
    struct call *call = ctx;

    if (call->status == 200)
        answer(call);
    else
        refuse(call);
    free(call->items);
    free(call);
}

void calls_begin(struct api *api, struct rpc_called *called, const char *method, const json_t *args)
{
    size_t row = 0;

    while (row < COUNT_OF(rows) && !text_equal(rows[row].question.method, method))
        row++;
    if (row == COUNT_OF(rows)) {
        rpc_refuse_unknown(called);
        return;
    }
    struct call *call = calloc(1, sizeof(*call));
    check(call != NULL);
    *call = (struct call){.called = called, .answer = rows[row].answer};
    struct http_guest guest = {
        .on_begin = on_begin, .on_bytes = on_bytes, .on_end = on_end, .ctx = call};
    api_serve(api, question_begin(&rows[row].question, args, NULL, 0, &guest));
}
