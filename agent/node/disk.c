#include "agent/node/disk.h"

#include "io/host.h"
#include "io/log.h"

#include <stdlib.h>

/* What was just destroyed is gone by then, and one look is enough for many. */
enum { SOON_MS = 50 };

struct disk_watch {
    struct parts *parts;
    struct io_timer timer;
    bool asked, failed;
};

static void look(struct io_timer *timer);

static void arm(struct disk_watch *watch, uint64_t in_ms)
{
    io_timer_start(watch->parts->loop, &watch->timer, loop_now_ms() + in_ms, look, watch);
}

static void look(struct io_timer *timer)
{
    struct disk_watch *watch = timer->ctx;
    const struct config *config = watch->parts->config;
    struct host_disk disk;
    struct err err = {0};

    watch->asked = false;
    if (host_read_disk(config->alloc_dir, &disk, &err) == 0) {
        struct disk_use use = {
            .bytes_used = disk.bytes_used,
            .bytes_free = disk.bytes_free,
            .inodes_used = disk.inodes_used,
            .inodes_free = disk.inodes_free,
        };
        watch->failed = false;
        alone_disk_measured(watch->parts->alone, &use);
    } else if (!watch->failed) {
        watch->failed = true;
        log_warn("agent", "the disk of the allocs cannot be measured error=%s",
                 log_value(err.text));
    }
    if (!watch->asked) /* by what came of it */
        arm(watch, config->gc_interval_ms > SOON_MS ? config->gc_interval_ms : SOON_MS);
}

struct disk_watch *disk_watch_new(struct parts *parts)
{
    struct disk_watch *watch = calloc(1, sizeof(*watch));

    check(watch != NULL);
    watch->parts = parts;
    disk_watch_ask(watch);
    return watch;
}

void disk_watch_free(struct disk_watch *watch)
{
    if (watch == NULL)
        return;
    io_timer_stop(&watch->timer);
    free(watch);
}

void disk_watch_ask(struct disk_watch *watch)
{
    if (watch->asked)
        return;
    watch->asked = true;
    io_timer_stop(&watch->timer);
    arm(watch, SOON_MS);
}
