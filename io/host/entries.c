/*
 * Listing a directory without the library's stream, which allocates: the shim has no heap, and
 * walks over cgroups nest.
 */
#include "io/host.h"

#include "io/host/part.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

struct entry { /* struct linux_dirent64 */
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

int entries_each(int fd, int (*cb)(void *ctx, const char *name, unsigned char type, uint64_t inode),
                 void *ctx)
{
    char buffer[1024] __attribute__((aligned(8)));
    long got;

    if (lseek(fd, 0, SEEK_SET) < 0)
        return -errno;
    while ((got = syscall(SYS_getdents64, fd, buffer, sizeof(buffer))) > 0) {
        for (long at = 0; at < got;) {
            const struct entry *entry = (const struct entry *)(const void *)(buffer + at);

            check(entry->length > 0);
            at += entry->length;
            if (text_equal(entry->name, ".") || text_equal(entry->name, ".."))
                continue;
            int code = cb(ctx, entry->name, entry->type, entry->inode);
            if (code != 0)
                return code;
        }
    }
    return got < 0 ? -errno : 0;
}

struct named {
    int (*cb)(void *ctx, const char *name, unsigned char type);
    void *ctx;
};

static int see_named(void *ctx, const char *name, unsigned char type, uint64_t inode)
{
    const struct named *named = ctx;

    (void)inode;
    return named->cb(named->ctx, name, type);
}

int directory_each(int fd, int (*cb)(void *ctx, const char *name, unsigned char type), void *ctx)
{
    return entries_each(fd, see_named, &(struct named){cb, ctx});
}
