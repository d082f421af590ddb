/*
 * Users, and letting one of them into a directory that is closed to all others.
 *
 * Owner, group and others are too few: the directory of an alloc is root's, is for the users of its
 * tasks, who need share no group, and for nobody else.  The file system's access lists say just
 * that (acl(5)); the few entries we need are written by hand rather than with another library.
 */
#include "io/host.h"

#include "io/scope.h"

#include <errno.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <pwd.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>

enum { USER_RECORD_BYTES = 16384, ENTRIES_MAX = 128 };

/* --- users --- */

int host_user_find(const char *name, struct host_user *ret_user, struct err *err)
{
    scoped_string char *text = malloc(USER_RECORD_BYTES);
    struct passwd entry, *found = NULL;

    check(text != NULL);
    int os = getpwnam_r(name, &entry, text, USER_RECORD_BYTES, &found);
    if (found == NULL) {
        (void)err_set(err, ERR_GONE, "there is no user \"%s\"", name);
        if (err != NULL)
            err->recoverable = os != 0; /* the directory of users did not answer */
        return ERR_GONE;
    }
    *ret_user = (struct host_user){.uid = entry.pw_uid, .gid = entry.pw_gid, .home = "/"};
    if (entry.pw_dir[0] == '/' && strlen(entry.pw_dir) < sizeof(ret_user->home))
        (void)text_copy(ret_user->home, sizeof(ret_user->home), entry.pw_dir); /* fits */
    return 0;
}

/* --- the way to a directory --- */

bool directory_is_open(const char *path, char ret_closed[PATH_SIZE])
{
    size_t length = strlen(path);

    for (size_t end = 1; end <= length && end < PATH_SIZE; end++) {
        struct stat status;

        if (path[end] != '/' && path[end] != '\0')
            continue;
        memcpy(ret_closed, path, end);
        ret_closed[end] = '\0';
        if (stat(ret_closed, &status) != 0 || (status.st_mode & S_IXOTH) == 0)
            return false;
    }
    return true;
}

/* --- access lists --- */

/* As the kernel hands it out and takes it. */
struct list {
    struct posix_acl_xattr_header header;
    struct posix_acl_xattr_entry entries[ENTRIES_MAX];
};

static const char list_name[] = "system.posix_acl_access";

static size_t list_bytes(size_t count)
{
    return offsetof(struct list, entries) + count * sizeof(struct posix_acl_xattr_entry);
}

/* The list that says no more than MODE does. */
static size_t list_of_mode(struct list *list, mode_t mode)
{
    const struct posix_acl_xattr_entry entries[] = {
        {ACL_USER_OBJ, (__le16)(mode >> 6 & 7), (__le32)ACL_UNDEFINED_ID},
        {ACL_GROUP_OBJ, (__le16)(mode >> 3 & 7), (__le32)ACL_UNDEFINED_ID},
        {ACL_OTHER, (__le16)(mode & 7), (__le32)ACL_UNDEFINED_ID},
    };

    list->header.a_version = POSIX_ACL_XATTR_VERSION;
    memcpy(list->entries, entries, sizeof(entries));
    return COUNT_OF(entries);
}

/* The list of the directory FD: the number of its entries, or a negative errno. */
static int read_list(int fd, struct list *list)
{
    struct stat status;
    ssize_t bytes = fgetxattr(fd, list_name, list, sizeof(*list));

    if (bytes < 0 && errno == ENODATA && fstat(fd, &status) == 0)
        return (int)list_of_mode(list, status.st_mode);
    if (bytes < 0)
        return errno == ERANGE ? -E2BIG : -errno;
    size_t count = ((size_t)bytes - list_bytes(0)) / sizeof(list->entries[0]);
    return (size_t)bytes < list_bytes(3) || list->header.a_version != POSIX_ACL_XATTR_VERSION
               ? -EINVAL
               : (int)count;
}

/* Puts ENTRY in its place, tags and ids ascending, or widens the one that is there; false if that
 * allows it already. */
static bool put_entry(struct list *list, size_t *count, struct posix_acl_xattr_entry entry)
{
    struct posix_acl_xattr_entry *entries = list->entries;
    size_t at = 0;

    while (at < *count && (entries[at].e_tag < entry.e_tag ||
                           (entries[at].e_tag == entry.e_tag && entries[at].e_id < entry.e_id)))
        at++;
    if (at < *count && entries[at].e_tag == entry.e_tag && entries[at].e_id == entry.e_id) {
        bool allowed = (entries[at].e_perm & entry.e_perm) == entry.e_perm;

        entries[at].e_perm |= entry.e_perm;
        return !allowed;
    }
    memmove(&entries[at + 1], &entries[at], (*count - at) * sizeof(entries[0]));
    entries[at] = entry;
    ++*count;
    return true;
}

/* Adds that UID may enter: 1, 0 if it may already, or -E2BIG if there is no room.  The mask bounds
 * what all but the owner and others get: it has to allow what was allowed before, and this. */
static int admit(struct list *list, size_t *count, uid_t uid)
{
    struct posix_acl_xattr_entry mask = {ACL_MASK, ACL_EXECUTE, (__le32)ACL_UNDEFINED_ID};
    bool has_mask = false;

    if (*count + 2 > ENTRIES_MAX)
        return -E2BIG;
    for (size_t i = 0; i < *count; i++)
        has_mask |= list->entries[i].e_tag == ACL_MASK;
    for (size_t i = 0; i < *count && !has_mask; i++)
        mask.e_perm |= list->entries[i].e_tag == ACL_GROUP_OBJ ? list->entries[i].e_perm : 0;
    bool added = put_entry(list, count, (struct posix_acl_xattr_entry){ACL_USER, ACL_EXECUTE, uid});
    bool widened = put_entry(list, count, mask);
    return added || widened ? 1 : 0;
}

int directory_admit(int fd, uid_t uid, struct err *err)
{
    scoped_fd int locked = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct list list;
    int got = -EBADF;

    /* Two tasks of one alloc may come at once, and neither must lose the other's entry. */
    if (locked >= 0 && flock(locked, LOCK_EX) == 0)
        got = read_list(locked, &list);
    else
        got = -errno;
    if (got == -ENOTSUP)
        return err_set(err, ERR_UNSUPPORTED, "the file system keeps no access lists");
    size_t count = got < 0 ? 0 : (size_t)got;
    if (got >= 0)
        got = admit(&list, &count, uid);
    if (got > 0 && fsetxattr(locked, list_name, &list, list_bytes(count), 0) != 0)
        got = -errno;
    return got >= 0 ? 0
                    : err_os(err, err_from_errno(-got), -got, "cannot let user %u into it",
                             (unsigned)uid);
}
