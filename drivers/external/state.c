/* What the daemon knows of a task of a plugin: from nothing, and to nothing. */
#include "drivers/external/external.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool external_may_come(const struct drivers *drivers, const char *name)
{
    return !driver_is_own(name) && drivers->config.plugins != NULL &&
           plugins_may_have_more(drivers->config.plugins);
}

void external_cancel(struct grpc_request **request)
{
    struct grpc_request *open = *request;

    *request = NULL;
    if (open != NULL)
        grpc_cancel(open);
}

/* A callback that comes within the cancelling finds that nothing is waited for. */
void external_forget_request(struct external *external)
{
    struct run *run = external->run;

    io_timer_stop(&run->timer);
    external->run = NULL;
    external_cancel(&external->request);
    external->run = run;
}

struct external *external_new(const struct drivers *drivers, const struct driver_start *start,
                              struct err *err)
{
    const struct spec_logs *logs = &start->task->logs;
    struct external *external = calloc(1, sizeof(*external));
    struct external_record *record;

    check(external != NULL);
    record = &external->record;
    external->reader_fd = external->pipe_fds[0] = external->pipe_fds[1] = -1;
    if (!text_copy(record->alloc_dir, sizeof(record->alloc_dir), start->alloc_dir)) {
        (void)err_set(err, ERR_LIMIT, "the path of alloc_dir is too long");
        external_free(external);
        return NULL;
    }
    (void)text_copy(record->boot_id, sizeof(record->boot_id), drivers->boot_id); /* fits */
    (void)text_copy(record->driver, sizeof(record->driver), start->key.driver);  /* of its size */
    check(text_format(record->id, sizeof(record->id), "%s/%s/%08x", start->key.alloc,
                      start->key.task, start->key.generation));
    if (!logs->disabled)
        record->log_bytes_max =
            (uint64_t)(logs->max_file_size_mb > 0 ? logs->max_file_size_mb : LOG_FILE_MB) << 20;
    record->log_files_max = logs->max_files > 0 ? logs->max_files : LOG_FILES_MAX;
    if (external_describe(external, drivers, start, err) != 0) {
        external_free(external);
        return NULL;
    }
    return external;
}

void external_free(struct external *external)
{
    if (external == NULL)
        return;
    if (external->run != NULL) {
        external_forget_request(external);
        external->run = NULL;
        external_cancel(&external->stopping);
        external_cancel(&external->signaling);
        external_cancel(&external->measuring);
        io_timer_stop(&external->kill);
        output_let_go(external);
    }
    if (external->task != NULL)
        explicit_bzero(external->task, external->task_length);
    free(external->task);
    free(external->signal_call);
    json_decref(external->config);
    free(external);
}
