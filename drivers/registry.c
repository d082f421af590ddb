/*
 * The drivers there are, the runs there are, and the one place from which completions leave.
 *
 * Completions wait in a queue until the loop's next iteration: a driver_* call never completes
 * inside itself, a callback may make new calls or end this room's work on its key, and what
 * happened first is told first (running before exited).
 */
#include "drivers/part.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUCKETS_FIRST = 64 };

static const struct driver *const all_drivers[] = {&raw_exec_driver};

const struct driver *driver_named(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(all_drivers); i++) {
        if (text_equal(all_drivers[i]->name, name))
            return all_drivers[i];
    }
    return NULL;
}

void command_close(struct command *command)
{
    free(command->arguments);
    json_decref(command->config);
    *command = (struct command){0};
}

int driver_validate(const struct task_spec *task, struct err *err)
{
    const struct driver *driver = driver_named(task->driver);
    struct command command;

    if (driver == NULL)
        return err_set(err, ERR_INVALID, "unknown driver \"%s\"", task->driver);
    if (task->kill_signal[0] != '\0' && proc_signal_number(task->kill_signal) == 0)
        return err_set(err, ERR_INVALID, "unknown kill_signal \"%s\"", task->kill_signal);
    int code = driver->read_config(task, &command, err);
    if (code != 0)
        return code;
    command_close(&command);
    return 0;
}

size_t drivers_list(const struct drivers *drivers, struct driver_info *ret_infos, size_t max)
{
    size_t count = COUNT_OF(all_drivers) < max ? COUNT_OF(all_drivers) : max;

    for (size_t i = 0; i < count; i++) {
        struct driver_info *info = &ret_infos[i];

        *info = (struct driver_info){.name = all_drivers[i]->name};
        info->detected = all_drivers[i]->is_enabled(&drivers->config);
        if (!info->detected) {
            (void)text_copy(info->description, sizeof(info->description), "disabled");
        } else if (access(drivers->shim_path, X_OK) != 0) {
            (void)text_format(info->description, sizeof(info->description), "%s: %s",
                              drivers->shim_path, strerror(errno)); /* may be cut */
        } else {
            info->healthy = true;
            (void)text_copy(info->description, sizeof(info->description), "Healthy");
        }
    }
    return count;
}

/* --- runs --- */

static struct run **bucket_of(const struct drivers *drivers, uint64_t digest)
{
    return &drivers->buckets[digest & (drivers->buckets_count - 1)];
}

static void grow(struct drivers *drivers)
{
    struct run **old = drivers->buckets;
    size_t old_count = drivers->buckets_count;

    drivers->buckets_count = old_count == 0 ? BUCKETS_FIRST : old_count * 2;
    drivers->buckets = calloc(drivers->buckets_count, sizeof(struct run *));
    check(drivers->buckets != NULL);
    for (size_t i = 0; i < old_count; i++) {
        while (old[i] != NULL) {
            struct run *run = old[i], **to = bucket_of(drivers, run->digest);

            old[i] = run->next;
            run->next = *to;
            *to = run;
        }
    }
    free(old);
}

struct run *run_find(const struct drivers *drivers, const struct driver_key *key)
{
    uint64_t digest = key_digest(key);
    struct run *run = *bucket_of(drivers, digest);

    while (run != NULL && !(run->digest == digest && key_equal(&run->key, key)))
        run = run->next;
    return run;
}

struct run *run_new(struct drivers *drivers, const struct driver_key *key)
{
    struct run *run = calloc(1, sizeof(*run)), **bucket;

    check(run != NULL);
    check(run_find(drivers, key) == NULL);
    if (drivers->runs_count >= drivers->buckets_count)
        grow(drivers);
    run->drivers = drivers;
    run->key = *key;
    run->digest = key_digest(key);
    run->fd = -1;
    calls_init(&run->calls);
    bucket = bucket_of(drivers, run->digest);
    run->next = *bucket;
    *bucket = run;
    drivers->runs_count++;
    return run;
}

void run_free(struct run *run)
{
    struct drivers *drivers = run->drivers;
    struct run **at = bucket_of(drivers, run->digest);

    check(run->calls.first == NULL);
    while (*at != run)
        at = &(*at)->next;
    *at = run->next;
    drivers->runs_count--;
    run_off_watch(run);
    io_timer_stop(&run->timer);
    if (run->plan != NULL && run->plan->looking)
        run->plan->run = NULL; /* freed when the look-up comes back */
    else
        plan_free(run->plan);
    free(run);
}

/* --- calls --- */

void calls_init(struct call_list *list)
{
    list->first = NULL;
    list->end = &list->first;
}

void calls_add(struct call_list *list, struct call *call)
{
    call->next = NULL;
    *list->end = call;
    list->end = &call->next;
}

struct call *calls_take(struct call_list *list)
{
    struct call *call = list->first;

    if (call == NULL)
        return NULL;
    list->first = call->next;
    if (list->first == NULL)
        list->end = &list->first;
    return call;
}

struct call *call_new(enum call_kind kind, driver_done *done, void *ctx)
{
    struct call *call = calloc(1, sizeof(*call));

    check(call != NULL);
    call->kind = kind;
    call->done = done;
    call->ctx = ctx;
    return call;
}

static void deliver(struct io_timer *timer)
{
    struct drivers *drivers = timer->ctx;
    struct call_list due = drivers->due;

    calls_init(&drivers->due); /* what a callback adds comes in the next iteration */
    for (struct call *call; (call = calls_take(&due)) != NULL; free(call)) {
        if (call->kind == CALL_EXIT)
            drivers->config.on_exit(drivers->config.ctx, &call->key, &call->result.exit);
        else
            call->done(call->ctx, &call->result);
    }
}

void call_finish(struct drivers *drivers, struct call *call, enum driver_outcome outcome)
{
    call->result.outcome = outcome;
    calls_add(&drivers->due, call);
    if (drivers->due.first == call)
        io_timer_start(drivers->config.loop, &drivers->deliver, 0, deliver, drivers);
}

void call_fail(struct drivers *drivers, struct call *call, const struct err *err)
{
    check(err->code != 0);
    call->result.error = *err;
    call_finish(drivers, call, DRIVER_FAILED);
}

/* --- the room --- */

static int open_state(struct drivers *drivers, const char *state_dir, struct err *err)
{
    char path[PATH_SIZE], shims[CGROUP_NAME_SIZE];
    int code = path_join(path, state_dir, "shim");

    if (code != 0)
        return err_set(err, code, "the state directory's path is too long");
    code = directory_make_all(path, 0700, err);
    if (code != 0)
        return code;
    drivers->shim_dir = realpath(path, NULL); /* as links in /proc name it */
    if (drivers->shim_dir == NULL)
        return err_os(err, err_from_errno(errno), errno, "cannot find %s", path);
    drivers->shim_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (drivers->shim_fd < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot open %s", path);
    code = proc_boot_id(drivers->boot_id, err);
    if (code != 0)
        return code;
    shims_cgroup(drivers->node_mark, shims);
    return cgroup_create(drivers->config.cgroup_mode, shims, err);
}

struct drivers *drivers_new(const struct drivers_config *config, struct err *err)
{
    struct drivers *drivers = calloc(1, sizeof(*drivers));

    check(drivers != NULL);
    check(config->on_exit != NULL);
    check(config->shim_path[0] == '/');
    drivers->config = *config;
    drivers->shim_fd = -1;
    check(text_copy(drivers->node_mark, sizeof(drivers->node_mark), config->node_mark));
    check(strspn(drivers->node_mark, "0123456789abcdef") == strlen(drivers->node_mark));
    drivers->shim_path = strdup(config->shim_path);
    check(drivers->shim_path != NULL);
    calls_init(&drivers->due);
    grow(drivers);
    if (open_state(drivers, config->state_dir, err) != 0) {
        drivers_free(drivers);
        return NULL;
    }
    return drivers;
}

/* Calls still under way, and completions not yet delivered, are dropped. */
void drivers_free(struct drivers *drivers)
{
    char shims[CGROUP_NAME_SIZE];

    if (drivers == NULL)
        return;
    for (size_t i = 0; i < drivers->buckets_count; i++) {
        while (drivers->buckets[i] != NULL) {
            struct run *run = drivers->buckets[i];

            for (struct call *call; (call = calls_take(&run->calls)) != NULL;)
                free(call);
            run_free(run);
        }
    }
    for (struct call *call; (call = calls_take(&drivers->due)) != NULL;)
        free(call);
    io_timer_stop(&drivers->deliver);
    shims_cgroup(drivers->node_mark, shims);
    /* It stays while shims live in it. */
    (void)cgroup_remove(drivers->config.cgroup_mode, shims, NULL);
    if (drivers->shim_fd >= 0)
        (void)close(drivers->shim_fd); /* only names */
    free(drivers->shim_dir);
    free(drivers->shim_path);
    free(drivers->buckets);
    free(drivers);
}
