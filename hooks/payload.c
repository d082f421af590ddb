/*
 * What a job was dispatched with, as a file in the task's `local`.
 *
 * Part of the hook task_dir, so that all that comes after it finds the file: artifacts, templates,
 * the task.  Follows nomad v2.0.5 client/allocrunner/taskrunner/dispatch_hook.go: it is written
 * once, before the first start, and is the task's from then on.  That it was is a result of the
 * hook, and so in the journal.
 */
#include "hooks/file.h"

#include "spec/job.h"
#include "spec/names.h"

#include <stdlib.h>
#include <string.h>

enum { PAYLOAD_MODE = 0777 };

static const char done_key[] = "payload";

static bool is_done(const struct hook_run *asked)
{
    struct result result;

    for (uint32_t at = 0; results_next(asked->results, asked->results_bytes, &at, &result);) {
        if (result.hook == TASK_HOOK_TASK_DIR && result.kind == RESULT_DATA &&
            text_equal(result.key, done_key))
            return true;
    }
    return false;
}

/* The order: path in the task's directory, and payload; of what is written already, neither. */
json_t *hooks_payload_order(const struct hook_run *asked)
{
    const char *file = asked->task->payload_file, *payload = asked->alloc->payload;

    if (file[0] == '\0' || payload[0] == '\0')
        return NULL;
    return is_done(asked) ? json_object()
                          : json_pack("{s:o, s:s}", "Path", json_sprintf("local/%s", file),
                                      "Payload", payload);
}

static int write_payload(const struct hook_request *request, int task_fd,
                         const struct host_user *owner, const char *path, const char *payload,
                         struct err *err)
{
    const struct stat wanted = {
        .st_mode = PAYLOAD_MODE, .st_uid = owner->uid, .st_gid = owner->gid};
    char name[NAME_SIZE];
    scoped_fd int directory = -1;
    bool gives = request->privileged;
    uint8_t *bytes;
    size_t length;

    check(jobspec_payload(payload, &bytes, &length)); /* it was looked at when it was decoded */
    int code = hooks_file_enter(task_fd, path, gives ? owner : NULL, name, &directory, err);
    if (code == 0)
        code = hooks_file_replace(directory, name, bytes, length, &wanted, gives, err);
    free(bytes);
    return code == 0 ? 0 : err_wrap(err, "failed to write the dispatch payload");
}

int hooks_payload_write(const struct hook_request *request, const json_t *order, int task_fd,
                        const struct host_user *owner, struct err *err)
{
    const char *path = json_string_value(json_object_get(order, "Path"));
    int code = 0;

    if (order == NULL)
        return 0;
    if (path != NULL)
        code = write_payload(request, task_fd, owner, path,
                             json_string_value(json_object_get(order, "Payload")), err);
    if (code != 0)
        return code;
    return results_set(request->results, TASK_HOOK_TASK_DIR, RESULT_DATA, done_key, "", 0) == 0
               ? 0
               : err_set(err, ERR_LIMIT, "too many results"); /* it is the first */
}
