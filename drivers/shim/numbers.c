/*
 * Which files a stream of output has: <task>.<stdout|stderr>.<n>, counted from 0.
 *
 * The directory belongs to the payload as much as to us: it is reached from the alloc's own without
 * a link by whoever asks, and names that are not ours are passed over.
 */
#include "drivers/shim/numbers.h"

#include "base/base.h"
#include "io/host.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Numbers above this are not ours: there is room to count on from here. */
#define NUMBER_MAX (UINT64_MAX / 4)

struct scan {
    int fd;
    const char *prefix;
    uint64_t delete_below, newest;
    bool found;
};

static int scan_entry(void *ctx, const char *name, unsigned char type)
{
    struct scan *scan = ctx;
    uint64_t number;

    (void)type; /* a file's kind is looked at when it is opened */
    if (!text_starts_with(name, scan->prefix) ||
        !text_to_u64(name + strlen(scan->prefix), &number) || number > NUMBER_MAX)
        return 0;
    if (number < scan->delete_below)
        (void)unlinkat(scan->fd, name, 0); /* an old file too many is no reason to fail */
    if (!scan->found || number > scan->newest)
        scan->newest = number;
    scan->found = true;
    return 0;
}

bool numbers_scan(int directory_fd, const char *prefix, uint64_t delete_below, uint64_t *ret_newest)
{
    struct scan scan = {.fd = directory_fd, .prefix = prefix, .delete_below = delete_below};

    if (directory_fd >= 0)
        (void)directory_each(directory_fd, scan_entry, &scan); /* unlisted is as good as absent */
    if (scan.found)
        *ret_newest = scan.newest;
    return scan.found;
}
