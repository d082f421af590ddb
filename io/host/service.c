/*
 * What systemd says to a process that it starts, and hears from it.
 *
 * The variables are this process' alone.  They are taken away, so that no task believes that it is
 * the service, or finds the directory of its credentials.
 */
#include "io/service.h"

#include "io/scope.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { PASSED_FIRST = 3, TELL_TIMEOUT_S = 1 };

static const char *const ours[] = {
    "NOTIFY_SOCKET",    "WATCHDOG_USEC",  "WATCHDOG_PID",          "LISTEN_FDS",
    "LISTEN_PID",       "LISTEN_FDNAMES", "JOURNAL_STREAM",        "INVOCATION_ID",
    "SYSTEMD_EXEC_PID", "MAINPID",        "CREDENTIALS_DIRECTORY", "MANAGERPID",
};

/* True if the variable NAME names this process, or UNSAID. */
static bool is_for_us(const char *name, bool unsaid)
{
    const char *text = getenv(name);
    uint64_t pid;

    if (text == NULL)
        return unsaid;
    return text_to_u64(text, &pid) && pid == (uint64_t)getpid();
}

static int open_notify(struct service *service, struct err *err)
{
    const struct timeval patience = {.tv_sec = TELL_TIMEOUT_S};
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un *to = &service->notify;

    if (path == NULL)
        return 0;
    size_t length = strlen(path);
    if ((path[0] != '/' && path[0] != '@') || length < 2 || length >= sizeof(to->sun_path))
        return err_set(err, ERR_INVALID,
                       "NOTIFY_SOCKET is %s: only a path or @name of at most %zu bytes can be told",
                       text_value(path), sizeof(to->sun_path) - 1);
    to->sun_family = AF_UNIX;
    memcpy(to->sun_path, path, length); /* no NUL is counted in the name of an abstract one */
    if (path[0] == '@')
        to->sun_path[0] = '\0';
    service->notify_length = (unsigned)(offsetof(struct sockaddr_un, sun_path) + length);
    service->notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (service->notify_fd < 0)
        return err_os(err, ERR_IO, errno, "cannot make a socket");
    if (setsockopt(service->notify_fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) != 0)
        return err_os(err, ERR_IO, errno, "cannot set up a socket");
    return 0;
}

static int read_watchdog(struct service *service, struct err *err)
{
    const char *text = getenv("WATCHDOG_USEC");
    uint64_t us;

    if (text == NULL || !is_for_us("WATCHDOG_PID", true))
        return 0;
    if (!text_to_u64(text, &us) || us < 2000)
        return err_set(err, ERR_INVALID, "WATCHDOG_USEC is %s: no time of 2 ms or more",
                       text_value(text));
    service->watchdog_ms = us / 1000;
    return 0;
}

static int read_address(struct service *service, struct err *err)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
        struct sockaddr_storage room;
    } at = {.any.sa_family = AF_UNSPEC};
    socklen_t length = sizeof(at), small = sizeof(int);
    int type = 0, listens = 0;

    if (getsockopt(service->listen_fd, SOL_SOCKET, SO_TYPE, &type, &small) != 0 ||
        getsockopt(service->listen_fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &small) != 0 ||
        getsockname(service->listen_fd, &at.any, &length) != 0)
        return err_os(err, ERR_INVALID, errno, "what was passed to listen on is no socket");
    bool four = at.any.sa_family == AF_INET, six = at.any.sa_family == AF_INET6;
    if ((!four && !six) || type != SOCK_STREAM || listens == 0)
        return err_set(err, ERR_INVALID,
                       "the socket that was passed is not TCP, or does not listen: have one "
                       "ListenStream=ADDRESS:PORT, and Accept=no");
    check(inet_ntop(at.any.sa_family, four ? (void *)&at.four.sin_addr : (void *)&at.six.sin6_addr,
                    service->address, sizeof(service->address)) != NULL);
    service->port = ntohs(four ? at.four.sin_port : at.six.sin6_port);
    return 0;
}

static int take_passed(struct service *service, struct err *err)
{
    const char *text = getenv("LISTEN_FDS");
    uint64_t count;

    if (text == NULL || !is_for_us("LISTEN_PID", false))
        return 0;
    if (!text_to_u64(text, &count) || count > 1)
        return err_set(err, ERR_INVALID,
                       "LISTEN_FDS is %s: one socket is listened on, have one ListenStream=",
                       text_value(text));
    if (count == 0)
        return 0;
    int flags = fcntl(PASSED_FIRST, F_GETFL);
    if (flags < 0 || fcntl(PASSED_FIRST, F_SETFD, FD_CLOEXEC) != 0 ||
        fcntl(PASSED_FIRST, F_SETFL, flags | O_NONBLOCK) != 0)
        return err_os(err, ERR_INVALID, errno, "no socket was passed, as LISTEN_FDS says there is");
    service->listen_fd = PASSED_FIRST;
    return read_address(service, err);
}

/* As systemd.exec(5) has it: DEVICE:INODE of what it connected. */
static bool is_journal(int fd)
{
    const char *text = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat status;

    return text != NULL && sscanf(text, "%llu:%llu", &device, &inode) == 2 &&
           fstat(fd, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

int service_open(struct service *ret_service, struct err *err)
{
    struct service service = {.notify_fd = -1, .listen_fd = -1};
    int code = open_notify(&service, err);

    if (code == 0)
        code = read_watchdog(&service, err);
    if (code == 0)
        code = take_passed(&service, err);
    service.logs_to_journal = is_journal(STDERR_FILENO);
    for (size_t i = 0; i < COUNT_OF(ours); i++)
        (void)unsetenv(ours[i]); /* fails for no such name */
    if (code != 0) {
        service_close(&service);
        return code;
    }
    *ret_service = service;
    return 0;
}

bool service_tell(const struct service *service, const char *format, ...)
{
    char text[SERVICE_TEXT_SIZE];
    va_list args;

    if (service->notify_fd < 0)
        return false;
    va_start(args, format);
    int length = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    check(length > 0 && (size_t)length < sizeof(text));
    return sendto(service->notify_fd, text, (size_t)length, MSG_NOSIGNAL,
                  (const struct sockaddr *)&service->notify, service->notify_length) == length;
}

bool service_tell_reloading(const struct service *service)
{
    struct timespec now;

    check(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return service_tell(service, "RELOADING=1\nMONOTONIC_USEC=%llu",
                        (unsigned long long)now.tv_sec * 1000000u +
                            (unsigned long long)now.tv_nsec / 1000u);
}

void service_close(struct service *service)
{
    if (service->notify_fd >= 0)
        (void)close(service->notify_fd); /* nothing waits in it */
    if (service->listen_fd >= 0)
        (void)close(service->listen_fd); /* the same */
    service->notify_fd = service->listen_fd = -1;
}
