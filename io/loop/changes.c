/*
 * Files that change: inotify, one descriptor for all of a loop.
 *
 * Several may watch one inode, which has one watch in the kernel: an entry counts them.  While
 * those of an entry are called it is held, and each is moved back behind the rest before its
 * callback, which may stop any of them.
 */
#include "io/loop/guest.h"

#include "base/base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EVENTS_SIZE = 16 << 10, BUCKETS = 256 };

/* Of a file what is done to it, with its last name gone among that; of a directory what comes. */
enum {
    FILE_EVENTS = IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF,
    DIRECTORY_EVENTS = IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_ATTRIB | IN_ONLYDIR,
};

struct io_change_entry {
    int wd;
    size_t count; /* of those who watch, and of who calls them */
    struct io_change *first;
    struct io_change_entry *next;
};

struct io_changes {
    struct loop_guest guest; /* first */
    struct loop *loop;
    int fd;
    struct io_watch watch;
    size_t count; /* entries */
    struct io_change_entry *buckets[BUCKETS];
};

/* The loop goes, maybe before those who watch: the last of them ends it then. */
static void changes_close(struct loop_guest *guest)
{
    struct io_changes *changes = (struct io_changes *)guest;

    io_watch_stop(&changes->watch);
    (void)close(changes->fd); /* nothing was written to it */
    changes->fd = -1;
    if (changes->count == 0)
        free(changes);
}

static struct io_change_entry **find_entry(struct io_changes *changes, int wd)
{
    struct io_change_entry **at = &changes->buckets[(unsigned)wd % BUCKETS];

    while (*at != NULL && (*at)->wd != wd)
        at = &(*at)->next;
    return at;
}

static struct io_changes *changes_of(struct loop *loop)
{
    struct io_changes *changes = (struct io_changes *)(void *)loop_guest_find(loop, changes_close);

    if (changes != NULL)
        return changes;
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd < 0)
        return NULL;
    changes = calloc(1, sizeof(*changes));
    check(changes != NULL);
    changes->guest.close = changes_close;
    changes->loop = loop;
    changes->fd = fd;
    loop_guest_add(loop, &changes->guest);
    return changes;
}

static void link_change(struct io_change **list, struct io_change *change)
{
    change->next = *list;
    change->link = list;
    if (change->next != NULL)
        change->next->link = &change->next;
    *list = change;
}

static void unlink_change(struct io_change *change)
{
    *change->link = change->next;
    if (change->next != NULL)
        change->next->link = change->link;
}

static void let_go(struct io_changes *changes, struct io_change_entry *entry)
{
    check(entry->count > 0);
    if (--entry->count > 0)
        return;
    if (changes->fd >= 0)
        (void)inotify_rm_watch(changes->fd, entry->wd); /* of a file that is gone it is gone, too */
    struct io_change_entry **at = find_entry(changes, entry->wd);
    check(*at == entry);
    *at = entry->next;
    free(entry);
    if (--changes->count > 0)
        return;
    io_watch_stop(&changes->watch); /* nothing can wake the loop by this */
    if (changes->fd < 0)
        free(changes);
}

static void tell(struct io_changes *changes, struct io_change_entry *entry)
{
    struct io_change *due = entry->first;

    if (due == NULL)
        return;
    entry->count++;
    entry->first = NULL;
    due->link = &due;
    while (due != NULL) {
        struct io_change *change = due;

        unlink_change(change);
        link_change(&entry->first, change);
        change->cb(change);
    }
    let_go(changes, entry);
}

/* Events were lost: anything may have changed. */
static void tell_all(struct io_changes *changes)
{
    int wds[64];
    size_t count = 0;

    for (size_t i = 0; i < BUCKETS; i++) {
        count = 0;
        for (struct io_change_entry *at = changes->buckets[i]; at != NULL && count < COUNT_OF(wds);
             at = at->next)
            wds[count++] = at->wd;
        while (count > 0) {
            struct io_change_entry *entry = *find_entry(changes, wds[--count]);

            if (entry != NULL)
                tell(changes, entry);
        }
    }
}

static void on_events(struct io_watch *watch, int events)
{
    struct io_changes *changes = watch->ctx;
    char bytes[EVENTS_SIZE] __attribute__((aligned(__alignof__(struct inotify_event))));
    (void)events;

    ssize_t length = read(changes->fd, bytes, sizeof(bytes));
    for (ssize_t at = 0; at < length;) {
        const struct inotify_event *event = (const struct inotify_event *)(void *)(bytes + at);
        struct io_change_entry *entry = *find_entry(changes, event->wd);

        at += (ssize_t)(sizeof(*event) + event->len);
        if ((event->mask & IN_Q_OVERFLOW) != 0)
            tell_all(changes);
        else if (entry != NULL)
            tell(changes, entry);
    }
}

bool io_change_start(struct loop *loop, struct io_change *change, int fd,
                     void (*cb)(struct io_change *change), void *ctx)
{
    char path[32];
    struct stat found;
    struct io_changes *changes = changes_of(loop);

    io_change_stop(change);
    if (changes == NULL || fstat(fd, &found) != 0)
        return false;
    (void)text_format(path, sizeof(path), "/proc/self/fd/%d", fd); /* it fits */
    int wd = inotify_add_watch(changes->fd, path,
                               S_ISDIR(found.st_mode) ? DIRECTORY_EVENTS : FILE_EVENTS);
    if (wd < 0)
        return false;
    struct io_change_entry **at = find_entry(changes, wd);
    if (*at == NULL) {
        *at = calloc(1, sizeof(**at));
        check(*at != NULL);
        (*at)->wd = wd;
        if (changes->count++ == 0)
            io_watch_start(loop, &changes->watch, changes->fd, IO_READABLE, on_events, changes);
    }
    *change = (struct io_change){.cb = cb, .ctx = ctx, .changes = changes, .entry = *at};
    change->entry->count++;
    link_change(&change->entry->first, change);
    return true;
}

void io_change_stop(struct io_change *change)
{
    if (change->entry == NULL)
        return;
    unlink_change(change);
    let_go(change->changes, change->entry);
    change->entry = NULL;
}
