/* Whatever a driver may answer that is a plugin: the first byte says to what. */
#include "test/fuzz.h"

#include "drivers/external/external.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct external_status status = {.runs = false};
    struct grpc_reply reply = {.status = GRPC_FAILED_PRECONDITION, .answered = true, .detail = ""};
    struct external_usage usage = {.user_percent = 0};
    struct err err = {0};
    size_t length;
    char *handle;

    if (size == 0)
        return 0;
    switch (data[0] % 5) {
    case 0:
        if (external_read_handle(data + 1, size - 1, &handle, &length, &err) == 0) {
            check(length > 0 && length <= HANDLE_BYTES_MAX);
            free(handle);
        }
        break;
    case 1:
        (void)external_read_wait(data + 1, size - 1, &status, &err);
        check(!status.has_result || status.error[0] == '\0');
        break;
    case 2:
        (void)external_read_status(data + 1, size - 1, &status, &err);
        check(!status.runs || !status.has_ended);
        break;
    case 3:
        (void)external_read_usage(data + 1, size - 1, &usage, &err);
        check(usage.stats.cpu_percent >= 0 && usage.stats.timestamp_unix_ns >= 0);
        break;
    case 4:
        reply.more = data + 1;
        reply.more_length = size - 1;
        external_fault(&reply, "d", &err);
        break;
    }
    check(text_is_utf8(status.error, strlen(status.error)));
    check(text_is_utf8(err.text, strlen(err.text)));
    return 0;
}
