/* What the daemon knows of a container: from nothing, and to nothing. */
#include "drivers/docker/docker.h"

#include "io/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- waiting, with others, for one thing --- */

void container_wait(struct container *container, struct container **list, void (*left)(void *of),
                    void *of)
{
    check(container->wait_link == NULL);
    container->wait_left = left;
    container->wait_of = of;
    container->wait_next = *list;
    container->wait_link = list;
    if (container->wait_next != NULL)
        container->wait_next->wait_link = &container->wait_next;
    *list = container;
}

static void unlink_it(struct container *container)
{
    *container->wait_link = container->wait_next;
    if (container->wait_next != NULL)
        container->wait_next->wait_link = container->wait_link;
    container->wait_next = NULL;
    container->wait_link = NULL;
}

void container_wait_no_more(struct container *container)
{
    if (container->wait_link == NULL)
        return;
    unlink_it(container);
    if (container->wait_left != NULL)
        container->wait_left(container->wait_of);
}

void container_wait_ends(struct container *container, const struct err *err)
{
    unlink_it(container);
    container->wait_over(container, err);
}

/* Nothing is waited for any more. */
void container_forget_request(struct container *container)
{
    struct run *run = container->run;
    struct http_request *request = container->request;

    io_timer_stop(&run->timer);
    container_wait_no_more(container);
    container->request = NULL;
    if (request == NULL)
        return;
    container->run = NULL; /* its callback comes now, and has nothing to do */
    http_cancel(request);
    container->run = run;
    container->request = NULL;
}

struct container *container_new(const struct drivers *drivers, const struct driver_start *start,
                                const struct command *command, struct err *err)
{
    const struct drivers_docker *node = &drivers->config.docker;
    const struct spec_logs *logs = &start->task->logs;
    struct container *container = calloc(1, sizeof(*container));
    struct container_record *record;

    check(container != NULL);
    record = &container->record;
    if (!text_copy(record->alloc_dir, sizeof(record->alloc_dir), start->alloc_dir) ||
        !text_copy(container->image, sizeof(container->image), command->docker.image) ||
        !text_copy(container->namespace, sizeof(container->namespace),
                   start->network == NULL ? "" : start->network)) {
        (void)err_set(err, ERR_LIMIT, "docker: a path or a name is too long");
        container_free(container);
        return NULL;
    }
    (void)text_copy(record->boot_id, sizeof(record->boot_id), drivers->boot_id); /* fits */
    if (!logs->disabled && !node->logs_disabled)
        record->log_bytes_max =
            (uint64_t)(logs->max_file_size_mb > 0 ? logs->max_file_size_mb : LOG_FILE_MB) << 20;
    record->log_files_max = logs->max_files > 0 ? logs->max_files : LOG_FILES_MAX;
    if (command->docker.load != NULL && command->docker.load[0] != '\0' &&
        (text_goes_up(command->docker.load) ||
         !text_format(container->load, sizeof(container->load), "%s/local/%s",
                      start->task_dir + strlen(start->alloc_dir) + 1, command->docker.load))) {
        (void)err_set(err, ERR_REFUSED, "docker: \"load\" leads out of the task's directory");
        container_free(container);
        return NULL;
    }
    container->force_pull = command->docker.force_pull;
    container->auth_soft_fail = command->docker.auth_soft_fail;
    container->pull_timeout_ms = command->docker.pull_timeout_ms != 0
                                     ? command->docker.pull_timeout_ms
                                     : node->pull_timeout_ms;
    container->sharer = create_sharer(drivers, start, command);
    container->wanted = create_body(drivers, start, command, err);
    if (container->wanted == NULL ||
        image_auth(drivers, command, &container->auth, container->helper, err) != 0) {
        container_free(container);
        return NULL;
    }
    return container;
}

void container_free(struct container *container)
{
    if (container == NULL)
        return;
    struct run *run = container->run;
    if (run != NULL) {
        container_forget_request(container);
        logs_close(container);
        io_timer_stop(&container->kill);
        container->run = NULL;
        if (container->signaling != NULL)
            http_cancel(container->signaling);
    }
    if (container->auth != NULL)
        explicit_bzero(container->auth, strlen(container->auth));
    free(container->auth);
    free(container->signal_call);
    json_decref(container->wanted);
    json_decref(container->sharer);
    free(container);
}

void container_cgroup_of(const struct drivers *drivers, pid_t pid, char to[CGROUP_NAME_SIZE])
{
    bool unified = drivers->config.cgroup_mode == CGROUP_V2;
    char path[PLACE_PATH_SIZE], line[CGROUP_NAME_SIZE + 128];

    to[0] = '\0';
    check(text_format(path, sizeof(path), "/proc/%d/cgroup", (int)pid));
    scoped_file FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        char *controllers = strchr(line, ':');
        char *name = controllers == NULL ? NULL : strchr(controllers + 1, ':');

        if (name == NULL)
            continue;
        *name++ = '\0';
        name[strcspn(name, "\n")] = '\0';
        if (unified ? controllers[1] == '\0' : text_lists(controllers + 1, "memory"))
            (void)text_copy(to, CGROUP_NAME_SIZE,
                            name[0] == '/' ? name + 1 : name); /* one that is cut is none */
    }
}
