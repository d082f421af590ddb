/*
 * What a shim gives up once its payload has been made.
 *
 * A filter of system calls is inherited and never taken off, so it may only come after the fork of
 * the payload, which must not notice.  From then on the shim starts nothing, connects to nobody,
 * mounts, traces and loads nothing; whoever found a way into it could not either.  It is a list of
 * what is taken away and not of what is left: forgetting a call that the next C library makes in
 * the place of another would end the supervision of every payload.
 */
#include "drivers/shim/shim.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#define FOREIGN_FROM 0x40000000u /* the x32 calls */
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#define FOREIGN_FROM UINT32_MAX
#else
#error "say how this machine numbers its calls"
#endif

/* clang-format off */
#define TAKEN_AWAY(X)                                                                              \
    X(execve) X(execveat) X(clone) X(clone3) X(ptrace) X(process_vm_readv) X(process_vm_writev)    \
    X(socket) X(connect) X(bind) X(listen) X(mount) X(umount2) X(move_mount) X(open_tree)          \
    X(fsopen) X(fsmount) X(pivot_root) X(chroot) X(setns) X(unshare) X(init_module)                \
    X(finit_module) X(delete_module) X(kexec_load) X(bpf) X(perf_event_open) X(userfaultfd)        \
    X(keyctl) X(add_key) X(request_key) X(io_uring_setup) X(open_by_handle_at) X(setuid)           \
    X(setgid) X(setresuid) X(setresgid) X(setgroups) X(capset) X(swapon) X(reboot) X(settimeofday) \
    X(clock_settime) X(sethostname) X(memfd_create) X(pidfd_getfd)
/* clang-format on */

#define LOAD(field)                                                                                \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
#define REFUSE BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define X(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), REFUSE,

static const struct sock_filter filter[] = {
    LOAD(arch),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1, 0),
    REFUSE,
    LOAD(nr),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FOREIGN_FROM, 0, 1),
    REFUSE,
    TAKEN_AWAY(X) /* each ends in a comma */
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

#undef X

void shim_confine(void)
{
    struct sock_fprog program = {.len = COUNT_OF(filter),
                                 .filter = (struct sock_filter *)(uintptr_t)filter};

    /* A kernel without filters, or one that lets us have none, is no reason to run nothing. */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        (void)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}
