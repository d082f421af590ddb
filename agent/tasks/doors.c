/* Which tasks have a socket, and that they have it in time. */
#include "agent/tasks/part.h"

#include "fsm/policy.h"
#include "io/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <uthash.h>

enum {
    DOOR_CONNECTIONS_MAX = 16, /* of one task */
    CONNECTIONS_MAX = 256,     /* of all of them */
    BODY_MAX = 128 << 10,      /* twice what a variable may hold */
    BODIES_MAX = 4 << 20,
    ANSWERS_MAX = 64 << 20,
    IDLE_MS = 60 * 1000,
};

struct task_door {
    char task[MACHINE_ID_SIZE];
    struct http_door *door;
    UT_hash_handle hh;
};

int task_api_new(struct parts *parts, struct api *api, struct task_api **ret_tasks, struct err *err)
{
    struct task_api *tasks = calloc(1, sizeof(*tasks));
    const struct http_listen listen = {
        .body_bytes_max = BODY_MAX,
        .bodies_bytes_max = BODIES_MAX,
        .answers_bytes_max = ANSWERS_MAX,
        .connections_max = CONNECTIONS_MAX,
        .idle_ms = IDLE_MS,
        .handle = requests_handle,
        .ctx = tasks,
    };

    check(tasks != NULL);
    tasks->parts = parts;
    tasks->api = api;
    tasks->server = http_server_new(parts->loop, &listen, err);
    if (tasks->server == NULL) {
        free(tasks);
        return err->code;
    }
    *ret_tasks = tasks;
    return 0;
}

static void close_door(struct task_api *tasks, struct task_door *door)
{
    http_door_close(door->door);
    HASH_DEL(tasks->doors, door);
    free(door);
}

void task_api_free(struct task_api *tasks)
{
    struct task_door *door, *next;

    if (tasks == NULL)
        return;
    tasks->ended = true;
    HASH_ITER(hh, tasks->doors, door, next)
    close_door(tasks, door);
    http_server_free(tasks->server);
    requests_end(tasks);
    free(tasks);
}

/* Whoever may look into the secrets of the task may connect: they are its user's. */
static int open_in(struct task_api *tasks, const struct machine_id *id, struct http_door **ret_door,
                   struct err *err)
{
    struct machine_id owner = machine_id_owner(id);
    struct stat status;
    int secrets;
    if (HASH_COUNT(tasks->doors) == TASK_DOORS_MAX)
        return err_set(err, ERR_LIMIT, "%d tasks of this node have one", TASK_DOORS_MAX);
    int code =
        hooks_open_secrets(tasks->parts->hooks, owner.text, machine_id_name(id), &secrets, err);
    if (code != 0)
        return code;
    if (fstat(secrets, &status) != 0) {
        code = err_os(err, ERR_IO, errno, "cannot look at its secrets");
    } else {
        const struct http_admission admits = {
            .mode = 0600, .gives = geteuid() == 0, .uid = status.st_uid, .gid = status.st_gid};
        code = http_door_open(tasks->server, secrets, "api.sock", &admits, DOOR_CONNECTIONS_MAX,
                              ret_door, err);
    }
    (void)close(secrets); /* nothing was written to it */
    return code;
}

/* Few tasks ask for anything: one that cannot is no reason not to run it (nomad api_hook.go). */
static void open_door(struct task_api *tasks, const struct machine_id *id)
{
    struct http_door *opened;
    struct err err = {0};

    if (open_in(tasks, id, &opened, &err) != 0) {
        log_warn("api", "the task has no socket of the Task API task=%s error=%s", id->text,
                 log_value(err.text));
        return;
    }
    struct task_door *door = calloc(1, sizeof(*door));
    check(door != NULL);
    (void)text_copy(door->task, sizeof(door->task), id->text); /* of that size */
    door->door = opened;
    HASH_ADD_STR(tasks->doors, task, door);
}

void task_api_note(struct task_api *tasks, const struct journal_event *event)
{
    struct task_door *door;

    if (tasks == NULL || event->id.kind != MACHINE_TASK)
        return;
    HASH_FIND_STR(tasks->doors, event->id.text, door);
    bool wanted = policy_has_task_api(event->after);
    if (wanted && door == NULL)
        open_door(tasks, &event->id);
    else if (!wanted && door != NULL)
        close_door(tasks, door);
}
