/*
 * Calls to plugins of host volumes: who is called when, and what comes back to the loop.
 *
 * Programs may take long, or hang: one call of each at a time, and a few in all, so that the others
 * and the pool go on.  What is inside waits for none of them.
 */
#include "hooks/hosted/part.h"

#include "io/scope.h"
#include "spec/arena.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { PROGRAMS_AT_ONCE = 2 }; /* the pool has other things to do */

struct hosted {
    struct hosted_config config;
    struct call *calls;                      /* in the order in which they were asked for */
    struct call *programs[PROGRAMS_AT_ONCE]; /* of those that run, or NULL */
    struct look *look;                       /* under way, or NULL */
    int cancel_fd;                           /* readable once it is over with */
};

struct hosted *hosted_new(const struct hosted_config *config)
{
    struct hosted *hosted = calloc(1, sizeof(*hosted));

    check(hosted != NULL);
    hosted->config = *config;
    hosted->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    check(hosted->cancel_fd >= 0);
    return hosted;
}

bool hosted_has(const struct hosted *hosted, const char *plugin)
{
    char path[PATH_SIZE];

    return text_equal(plugin, "mkdir") || hosted_find(hosted->config.plugin_dir, plugin, path);
}

/* --- calls --- */

struct call {
    struct io_work work;
    struct hosted *hosted; /* NULL once it is gone: nobody is told */
    struct hosted_request request;
    struct hosted_result result;
    hosted_done *done;
    void *ctx;
    bool runs, is_program;
    struct call *next;
};

static char *copy(const char *text)
{
    char *own = strdup(text);

    check(own != NULL);
    return own;
}

static void call_free(struct call *call)
{
    const struct hosted_request *request = &call->request;
    const char *const texts[] = {request->plugin_dir,    request->volumes_dir,   request->node_id,
                                 request->node_pool,     request->ask.plugin,    request->ask.id,
                                 request->ask.name,      request->ask.namespace, request->ask.path,
                                 request->ask.parameters};

    for (size_t i = 0; i < COUNT_OF(texts); i++)
        free((char *)(uintptr_t)texts[i]);
    scope_close_fd(&call->request.cancel_fd);
    free(call);
}

/* Of what somebody else has made only that it is there matters. */
static void look_at_path(const struct hosted_request *request, struct hosted_result *result)
{
    const char *path = request->ask.path;

    if (path[0] != '/' || !text_copy(result->path, sizeof(result->path), path) ||
        access(path, F_OK) != 0)
        hosted_fail(result, ERR_GONE, true, "could not verify host path for \"%.100s\": %.300s",
                    request->ask.name, path);
}

static void on_pool(struct io_work *work)
{
    struct call *call = work->ctx;

    if (call->request.ask.plugin[0] == '\0')
        look_at_path(&call->request, &call->result);
    else if (text_equal(call->request.ask.plugin, "mkdir"))
        hosted_mkdir(&call->request, &call->result);
    else
        hosted_program(&call->request, &call->result);
}

static void begin_calls(struct hosted *hosted);

static void leave_slot(struct hosted *hosted, const struct call *call)
{
    for (size_t i = 0; i < PROGRAMS_AT_ONCE; i++) {
        if (hosted->programs[i] == call)
            hosted->programs[i] = NULL;
    }
}

static void on_done(struct io_work *work)
{
    struct call *call = work->ctx;
    struct hosted *hosted = call->hosted;

    if (hosted != NULL) {
        struct call **at = &hosted->calls;
        while (*at != call)
            at = &(*at)->next;
        *at = call->next;
        leave_slot(hosted, call);
        call->result.answer.path = call->result.path;
        call->result.answer.text = call->result.text;
        call->done(call->ctx, &call->result.answer);
        begin_calls(hosted);
    }
    call_free(call);
}

/* It may be asked longer than HOSTED is there. */
static int own_cancel_fd(const struct hosted *hosted)
{
    int fd = fcntl(hosted->cancel_fd, F_DUPFD_CLOEXEC, 0);

    check(fd >= 0);
    return fd;
}

/* A free one for PROGRAM, NULL: one of its calls runs, or too many do. */
static struct call **slot_for(struct hosted *hosted, const char *program)
{
    struct call **slot = NULL;

    for (size_t i = 0; i < PROGRAMS_AT_ONCE; i++) {
        const struct call *running = hosted->programs[i];

        if (running != NULL && text_equal(running->request.ask.plugin, program))
            return NULL;
        if (running == NULL)
            slot = &hosted->programs[i];
    }
    return slot;
}

static void begin_calls(struct hosted *hosted)
{
    for (struct call *call = hosted->calls; call != NULL; call = call->next) {
        struct call **slot = NULL;

        if (call->runs)
            continue;
        if (call->is_program && (slot = slot_for(hosted, call->request.ask.plugin)) == NULL)
            continue;
        if (slot != NULL) {
            *slot = call;
            call->request.cancel_fd = own_cancel_fd(hosted);
        }
        call->runs = true;
        io_work_submit(hosted->config.loop, &call->work, on_pool, on_done, call);
    }
}

void hosted_call(struct hosted *hosted, const struct hosted_ask *ask, hosted_done *done, void *ctx)
{
    struct call *call = calloc(1, sizeof(*call)), **at = &hosted->calls;

    check(call != NULL);
    call->hosted = hosted;
    call->done = done;
    call->ctx = ctx;
    call->result.answer.is_known = true;
    call->is_program = ask->plugin[0] != '\0' && !text_equal(ask->plugin, "mkdir");
    call->request = (struct hosted_request){
        .plugin_dir = copy(hosted->config.plugin_dir),
        .volumes_dir = copy(hosted->config.volumes_dir),
        .node_id = copy(hosted->config.node_id),
        .node_pool = copy(hosted->config.node_pool),
        .cancel_fd = -1,
        .ask = {.deletes = ask->deletes,
                .plugin = copy(ask->plugin),
                .id = copy(ask->id),
                .name = copy(ask->name),
                .namespace = copy(ask->namespace),
                .path = copy(ask->path),
                .bytes_min = ask->bytes_min,
                .bytes_max = ask->bytes_max,
                .parameters = copy(ask->parameters)},
    };
    while (*at != NULL)
        at = &(*at)->next;
    *at = call;
    begin_calls(hosted);
}

/* --- who is there --- */

struct look {
    struct io_work work;
    struct hosted *hosted; /* NULL once it is gone */
    hosted_found *found;
    void *ctx;
    struct arena arena;
    struct spec_pairs versions;
    int cancel_fd; /* owned */
    char directory[PATH_SIZE];
};

static int look_at(void *ctx, const char *name, unsigned char type)
{
    struct look *look = ctx;
    struct spec_pairs *found = &look->versions;
    char version[PLUGIN_NAME_SIZE];

    (void)type; /* links are followed */
    if (!hosted_version(look->directory, name, look->cancel_fd, version))
        return 0;
    found->items = arena_more(&look->arena, found->items, found->count, sizeof(*found->items));
    found->items[found->count++] =
        (struct spec_pair){arena_text(&look->arena, name), arena_text(&look->arena, version)};
    return found->count == HOSTED_PLUGINS_MAX;
}

static void look_for(struct io_work *work)
{
    struct look *look = work->ctx;
    scoped_fd int fd = open(look->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0)
        (void)directory_each(fd, look_at, look); /* what cannot be read has none */
}

static void tell_found(struct io_work *work)
{
    struct look *look = work->ctx;

    if (look->hosted != NULL) {
        look->hosted->look = NULL;
        look->found(look->ctx, &look->versions);
    }
    arena_free(&look->arena);
    scope_close_fd(&look->cancel_fd);
    free(look);
}

void hosted_look(struct hosted *hosted, hosted_found *found, void *ctx)
{
    struct look *look = calloc(1, sizeof(*look));

    check(look != NULL);
    check(hosted->look == NULL); /* once is enough */
    (void)text_copy(look->directory, sizeof(look->directory), hosted->config.plugin_dir); /* fits */
    look->cancel_fd = own_cancel_fd(hosted);
    look->hosted = hosted;
    look->found = found;
    look->ctx = ctx;
    hosted->look = look;
    io_work_submit(hosted->config.loop, &look->work, look_for, tell_found, look);
}

/* What is on the pool cannot be called back: it ends, soon, and is forgotten. */
void hosted_free(struct hosted *hosted)
{
    struct call *next;

    if (hosted == NULL)
        return;
    if (hosted->look != NULL)
        hosted->look->hosted = NULL;
    for (struct call *call = hosted->calls; call != NULL; call = next) {
        next = call->next;
        call->hosted = NULL;
        if (!call->runs)
            call_free(call);
    }
    check(eventfd_write(hosted->cancel_fd, 1) == 0);
    scope_close_fd(&hosted->cancel_fd);
    free(hosted);
}
