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

/* The order: the path in the task's directory, a line's end, and the payload in base64; of what is
 * written already, nothing of it but that end. */
int hooks_payload_begin(const struct hooks *hooks, const struct hook_run *asked, char **ret_order,
                        struct err *err)
{
    const char *file = asked->task->payload_file, *payload = asked->alloc->payload;
    size_t size = strlen(file) + strlen(payload) + sizeof("local/\n");

    (void)hooks;
    (void)err; /* nothing can go wrong */
    if (file[0] == '\0' || payload[0] == '\0')
        return 0;
    *ret_order = malloc(size);
    check(*ret_order != NULL);
    if (is_done(asked))
        check(text_copy(*ret_order, size, "\n"));
    else
        check(text_format(*ret_order, size, "local/%s\n%s", file, payload));
    return 0;
}

static int write_payload(const struct hook_request *request, int task_fd,
                         const struct host_user *owner, const char *payload, struct err *err)
{
    const struct stat wanted = {
        .st_mode = PAYLOAD_MODE, .st_uid = owner->uid, .st_gid = owner->gid};
    size_t length = (size_t)(payload - request->order) - 1;
    char path[SPEC_PLACE_SIZE + 16], name[NAME_SIZE];
    scoped_fd int directory = -1;
    bool gives = request->privileged;
    uint8_t *bytes;

    check(text_format(path, sizeof(path), "%.*s", (int)length, request->order));
    check(jobspec_payload(payload, &bytes, &length)); /* it was looked at when it was decoded */
    int code = hooks_file_enter(task_fd, path, gives ? owner : NULL, name, &directory, err);
    if (code == 0)
        code = hooks_file_replace(directory, name, bytes, length, &wanted, gives, err);
    free(bytes);
    return code == 0 ? 0 : err_wrap(err, "failed to write the dispatch payload");
}

int hooks_payload_write(const struct hook_request *request, int task_fd,
                        const struct host_user *owner, struct err *err)
{
    const char *line_end = strchr(request->order, '\n');

    if (line_end == NULL)
        return 0;
    if (line_end != request->order) {
        int code = write_payload(request, task_fd, owner, line_end + 1, err);
        if (code != 0)
            return code;
    }
    return results_set(request->results, TASK_HOOK_TASK_DIR, RESULT_DATA, done_key, "", 0) == 0
               ? 0
               : err_set(err, ERR_LIMIT, "too many results"); /* it is the first */
}
