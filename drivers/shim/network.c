/* cairn-shim as the process whose network a container shares: see network.h. */
#include "drivers/shim/network.h"
#include "drivers/shim/shim.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { EXIT_NO_NETWORK = 1 };

static void drop_rights(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

    (void)syscall(SYS_capset, &head, none); /* fewer of them can always be had */
}

static void on_end(int signal)
{
    _exit(128 + signal); /* the first process of a container hears only what it asked for */
}

void network_main(void)
{
    int fd = open(NETWORK_NAMESPACE, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0)
        _exit(EXIT_NO_NETWORK);
    (void)close(fd);
    drop_rights();
    (void)signal(SIGTERM, on_end);
    shim_confine();
    for (;;)
        (void)pause();
}
