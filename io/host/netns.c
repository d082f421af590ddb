/*
 * Network namespaces that live without a process: each is pinned by a mount on an empty file, as
 * `ip netns` does it, and ends when that is taken away.
 *
 * A thread of ours goes into one for some system calls and comes back, so all of this is for the
 * pool.  A thread that could not come back would do the work of others in the wrong network: then
 * the process ends instead.
 */
#include "io/host.h"
#include "io/scope.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/magic.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#define OWN_NAMESPACE "/proc/thread-self/ns/net"

static void come_back(int home)
{
    check(setns(home, CLONE_NEWNET) == 0);
}

static int raise_loopback(void)
{
    scoped_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_name = "lo"};

    if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) != 0)
        return -errno;
    request.ifr_flags = (short)(request.ifr_flags | IFF_UP);
    return ioctl(fd, SIOCSIFFLAGS, &request) == 0 ? 0 : -errno;
}

static int pin(const char *path)
{
    int code = raise_loopback();

    return code != 0 ? code : mount(OWN_NAMESPACE, path, NULL, MS_BIND, NULL) == 0 ? 0 : -errno;
}

int netns_is_there(const char *path, struct err *err)
{
    struct statfs status;

    if (statfs(path, &status) == 0)
        return status.f_type == NSFS_MAGIC;
    return errno == ENOENT ? 0
                           : err_os(err, err_from_errno(errno), errno, "cannot look at %s", path);
}

int netns_make(const char *path, struct err *err)
{
    int there = netns_is_there(path, err);

    if (there != 0)
        return there < 0 ? there : 0;
    scoped_fd int place = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0444);
    scoped_fd int home = open(OWN_NAMESPACE, O_RDONLY | O_CLOEXEC);
    if (place < 0 || home < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot make the network namespace %s",
                      path);
    int failed = unshare(CLONE_NEWNET) == 0 ? 0 : -errno;
    if (failed == 0) {
        failed = pin(path);
        come_back(home);
    }
    return failed == 0 ? 0
                       : err_os(err, err_from_errno(-failed), -failed,
                                "cannot make the network namespace %s", path);
}

int netns_remove(const char *path, struct err *err)
{
    while (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0) {
    }
    if ((errno != EINVAL && errno != ENOENT) || (unlink(path) != 0 && errno != ENOENT))
        return err_os(err, err_from_errno(errno), errno, "cannot remove the network namespace %s",
                      path);
    return 0;
}

/* True if INTERFACE has ADDRESS in the namespace of the calling thread. */
static bool has_address(const char *interface, const char *address)
{
    struct ifaddrs *all, *one;
    bool found = false;

    if (getifaddrs(&all) != 0)
        return false;
    for (one = all; one != NULL && !found; one = one->ifa_next) {
        char text[INET6_ADDRSTRLEN] = "";
        const void *bytes = NULL;

        if (one->ifa_addr != NULL && one->ifa_addr->sa_family == AF_INET)
            bytes = &((const struct sockaddr_in *)(const void *)one->ifa_addr)->sin_addr;
        if (one->ifa_addr != NULL && one->ifa_addr->sa_family == AF_INET6)
            bytes = &((const struct sockaddr_in6 *)(const void *)one->ifa_addr)->sin6_addr;
        found = bytes != NULL && text_equal(one->ifa_name, interface) &&
                inet_ntop(one->ifa_addr->sa_family, bytes, text, sizeof(text)) != NULL &&
                text_equal(text, address);
    }
    freeifaddrs(all);
    return found;
}

int netns_has_address(const char *path, const char *interface, const char *address, struct err *err)
{
    scoped_fd int there = open(path, O_RDONLY | O_CLOEXEC);
    scoped_fd int home = open(OWN_NAMESPACE, O_RDONLY | O_CLOEXEC);

    if (there < 0 || home < 0 || setns(there, CLONE_NEWNET) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot enter the network namespace %s",
                      path);
    bool found = has_address(interface, address);
    come_back(home);
    return found;
}

bool netns_knows_bridges(void)
{
    scoped_fd int home = open(OWN_NAMESPACE, O_RDONLY | O_CLOEXEC);
    bool known = false;

    if (home < 0 || unshare(CLONE_NEWNET) != 0)
        return false;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        known = ioctl(fd, SIOCBRADDBR, "probe") == 0;
        (void)close(fd); /* the namespace ends with it, and the bridge */
    }
    come_back(home);
    return known;
}
