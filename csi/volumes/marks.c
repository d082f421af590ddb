/*
 * Which mount a volume is: what was seen at its place when its plugin had published it.
 *
 * A place that is a mount need not be ours: somebody may have mounted something over it, or in its
 * place (I-31).  So there is a file for each claim that is published, with the device and inode of
 * what is mounted.  It is written whole, and not synced: it has to outlive this process, but not
 * the host, with which the mounts go as well.  Where it is missing, or makes no sense, nothing is
 * known, and what is there is believed.
 */
#include "csi/volumes/part.h"

#include "base/hash.h"
#include "io/scope.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { MARK_SIZE = 3 * 17 + 1 }; /* as it is written */

int csi_mark_path(const char *directory, const struct csi_claim *claim, char to[PATH_SIZE])
{
    uint64_t name = hash_bytes(0, claim->name, strlen(claim->name));
    bool fits = text_format(to, PATH_SIZE, "%s/%s.%016llx", directory, claim->alloc,
                            (unsigned long long)name);

    return fits ? 0 : ERR_LIMIT;
}

bool csi_mark_look(int root_fd, const char *path, struct csi_mark *ret_mark)
{
    scoped_fd int fd = beneath_open(root_fd, path, O_PATH, 0);
    struct statx status;

    if (fd < 0 || statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
                        STATX_TYPE | STATX_INO, &status) != 0)
        return false; /* of a server that is gone nothing is known */
    *ret_mark = (struct csi_mark){
        .device = makedev(status.stx_dev_major, status.stx_dev_minor),
        .inode = status.stx_ino,
        .raw = makedev(status.stx_rdev_major, status.stx_rdev_minor),
    };
    return true;
}

bool csi_mark_is(const struct csi_mark *one, const struct csi_mark *other)
{
    return one->device == other->device && one->inode == other->inode && one->raw == other->raw;
}

bool csi_mark_read(const char *file, struct csi_mark *ret_mark)
{
    char *text;
    size_t length;
    struct err err;
    unsigned long long device, inode, raw;

    if (file_read(file, MARK_SIZE, &text, &length, &err) != 0)
        return false;
    bool whole = length == MARK_SIZE - 1 &&
                 sscanf(text, "%16llx %16llx %16llx", &device, &inode, &raw) == 3; /* our own */
    free(text);
    if (whole)
        *ret_mark = (struct csi_mark){device, inode, raw};
    return whole;
}

/* Beside it first: two daemons never run, and two steps of one claim neither. */
int csi_mark_write(const char *file, const struct csi_mark *mark, struct err *err)
{
    char beside[PATH_SIZE], text[MARK_SIZE + 1];

    check(text_format(text, sizeof(text), "%016llx %016llx %016llx\n",
                      (unsigned long long)mark->device, (unsigned long long)mark->inode,
                      (unsigned long long)mark->raw));
    if (!text_format(beside, sizeof(beside), "%s.new", file))
        return err_set(err, ERR_LIMIT, "the path %s is too long", file);
    scoped_fd int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || write(fd, text, MARK_SIZE - 1) != MARK_SIZE - 1 || rename(beside, file) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot write %s", file);
    return 0;
}

void csi_mark_remove(const char *file)
{
    (void)unlink(file); /* an old one is replaced when the place is used again */
}
