/*
 * Listening sockets, made here rather than by the HTTP library: one clear error for an address in
 * use, the port that the system chose, and UNIX sockets whose paths are longer than the 108 bytes
 * of a socket address, as those in a task's secrets directory are.
 */
#include "io/net/listen.h"

#include "io/host.h"
#include "io/scope.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

union socket_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    struct sockaddr_un local;
};

static bool parse_address(const char *text, uint16_t port, union socket_address *ret_address,
                          socklen_t *ret_length)
{
    union socket_address address = {0};

    if (inet_pton(AF_INET, text, &address.four.sin_addr) == 1) {
        address.four.sin_family = AF_INET;
        address.four.sin_port = htons(port);
        *ret_length = sizeof(address.four);
    } else if (inet_pton(AF_INET6, text, &address.six.sin6_addr) == 1) {
        address.six.sin6_family = AF_INET6;
        address.six.sin6_port = htons(port);
        *ret_length = sizeof(address.six);
    } else {
        return false;
    }
    *ret_address = address;
    return true;
}

int listen_tcp(const char *address, uint16_t port, int *ret_fd, uint16_t *ret_port, struct err *err)
{
    union socket_address at;
    socklen_t length;
    const int on = 1;

    if (!parse_address(address, port, &at, &length))
        return err_set(err, ERR_INVALID, "\"%s\" is not a numeric address", address);
    scoped_fd int fd = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot make a socket");
    /* Connections of an earlier run that linger in TIME_WAIT do not keep us from starting. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0)
        return err_os(err, ERR_IO, errno, "cannot set up a socket");
    if (bind(fd, &at.any, length) != 0 || listen(fd, SOMAXCONN) != 0) {
        bool six = at.any.sa_family == AF_INET6;
        const char *before = six ? "[" : "", *behind = six ? "]" : "";

        if (errno == EADDRINUSE)
            return err_set(err, ERR_EXISTS,
                           "address %s%s%s:%u is already in use by another program, maybe by "
                           "another agent on this machine",
                           before, address, behind, (unsigned)port);
        return err_os(err, err_from_errno(errno), errno, "cannot listen on %s%s%s:%u", before,
                      address, behind, (unsigned)port);
    }
    if (getsockname(fd, &at.any, &length) != 0)
        return err_os(err, ERR_IO, errno, "cannot read the address of a socket");
    *ret_port = ntohs(at.any.sa_family == AF_INET6 ? at.six.sin6_port : at.four.sin_port);
    *ret_fd = take_fd(&fd);
    return 0;
}

/* True if a connection to ADDRESS is taken: the socket there is alive.  In doubt it is. */
static bool is_answered(const union socket_address *address, socklen_t length)
{
    scoped_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    return fd < 0 || connect(fd, &address->any, length) == 0 || errno == EAGAIN;
}

static int bind_unix(int fd, int directory_fd, const char *name, const char *path, struct err *err)
{
    union socket_address at = {.local.sun_family = AF_UNIX};
    socklen_t length = sizeof(at.local);
    struct stat status;

    /* Through the directory's descriptor the address is short however long the path is. */
    if (!text_format(at.local.sun_path, sizeof(at.local.sun_path), "/proc/self/fd/%d/%s",
                     directory_fd, name))
        return err_set(err, ERR_LIMIT, "the name of socket %s is too long", path);
    if (bind(fd, &at.any, length) == 0)
        return 0;
    if (errno != EADDRINUSE)
        return err_os(err, err_from_errno(errno), errno, "cannot listen on %s", path);
    if (is_answered(&at, length))
        return err_set(err, ERR_EXISTS, "socket %s is already in use by another program", path);
    if (fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISSOCK(status.st_mode))
        return err_set(err, ERR_EXISTS, "%s is there already and is not a socket", path);
    if (unlinkat(directory_fd, name, 0) != 0 || bind(fd, &at.any, length) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot listen on %s", path);
    return 0;
}

/* Nobody can connect yet: it does not listen. */
static int admit(int directory_fd, const char *name, const struct http_admission *admits)
{
    if (admits->gives &&
        fchownat(directory_fd, name, admits->uid, admits->gid, AT_SYMLINK_NOFOLLOW) != 0)
        return -errno;
    scoped_fd int place =
        openat(directory_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC); /* modes follow links */
    if (place < 0)
        return -errno;
    return admits->mode == 0 ? 0 : place_chmod(place, admits->mode);
}

/* PATH is what messages call it. */
static int listen_in(int directory_fd, const char *name, const char *path,
                     const struct http_admission *admits, int *ret_fd, struct err *err)
{
    scoped_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot make a socket");
    /* Before it has a name: there is no moment in which others can connect. */
    if (fchmod(fd, 0600) != 0)
        return err_os(err, ERR_IO, errno, "cannot set up a socket");
    int code = bind_unix(fd, directory_fd, name, path, err);
    if (code != 0)
        return code;
    int failed = admit(directory_fd, name, admits);
    if (failed == 0 && listen(fd, SOMAXCONN) != 0)
        failed = -errno;
    if (failed != 0) {
        code = err_os(err, err_from_errno(-failed), -failed, "cannot listen on %s", path);
        (void)unlinkat(directory_fd, name, 0); /* ours, and of no use */
        return code;
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

int listen_unix(const char *path, const struct http_admission *admits, int *ret_fd, struct err *err)
{
    char directory[PATH_SIZE], name[NAME_SIZE];
    int code = path_split(path, directory, name, err);

    if (code != 0)
        return code;
    scoped_fd int directory_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory_fd < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot open directory %s", directory);
    return listen_in(directory_fd, name, path, admits, ret_fd, err);
}

int listen_unix_in(int directory_fd, const char *name, const struct http_admission *admits,
                   int *ret_fd, struct err *err)
{
    return listen_in(directory_fd, name, name, admits, ret_fd, err);
}
