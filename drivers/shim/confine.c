/*
 * What a shim gives up once its payload has been made.
 *
 * A filter of system calls is inherited and never taken off, so it may only come after the fork of
 * the payload, which must not notice.  From then on the shim starts nothing, connects to nobody,
 * mounts, traces and loads nothing; whoever found a way into it could not either.  It is a list of
 * what is taken away and not of what is left: forgetting a call that the next C library makes in
 * the place of another would end the supervision of every payload.
 */
#include "base/native.h"
#include "drivers/shim/shim.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

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

#define X(name) SYS_##name,
static const uint16_t taken_away[] = {TAKEN_AWAY(X)};
#undef X

/* As many calls as one test passes over.  The kernel runs the whole filter for each call there is
 * when it is set, to know those that need not be asked about: that is most of what it costs. */
enum { BLOCK = 8, HEAD = 5 };

struct filter {
    struct sock_filter code[HEAD + COUNT_OF(taken_away) + COUNT_OF(taken_away) / BLOCK + 3];
    size_t length;
};

static void put(struct filter *filter, uint16_t code, size_t if_true, size_t if_false, uint32_t k)
{
    check(filter->length < COUNT_OF(filter->code));
    filter->code[filter->length++] =
        (struct sock_filter){code, (uint8_t)if_true, (uint8_t)if_false, k};
}

static void load(struct filter *filter, size_t field)
{
    put(filter, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)field);
}

static void sort(uint16_t *numbers, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        for (size_t j = i; j > 0 && numbers[j - 1] > numbers[j]; j--) {
            uint16_t moved = numbers[j];

            numbers[j] = numbers[j - 1];
            numbers[j - 1] = moved;
        }
    }
}

/* The instructions after the one at AT, up to one at TO. */
static size_t over(size_t at, size_t to)
{
    return to - at - 1;
}

static void make_filter(struct filter *filter)
{
    const size_t blocks = (COUNT_OF(taken_away) + BLOCK - 1) / BLOCK;
    const size_t allow = HEAD + COUNT_OF(taken_away) + blocks, refuse = allow + 1;
    uint16_t numbers[COUNT_OF(taken_away)];

    memcpy(numbers, taken_away, sizeof(numbers));
    sort(numbers, COUNT_OF(numbers));
    filter->length = 0;
    load(filter, offsetof(struct seccomp_data, arch));
    put(filter, BPF_JMP | BPF_JEQ | BPF_K, 0, over(filter->length, refuse), NATIVE);
    load(filter, offsetof(struct seccomp_data, nr));
    put(filter, BPF_JMP | BPF_JGE | BPF_K, over(filter->length, refuse), 0, FOREIGN_FROM);
    put(filter, BPF_JMP | BPF_JGT | BPF_K, over(filter->length, allow), 0,
        numbers[COUNT_OF(numbers) - 1]);
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        size_t next = i - i % BLOCK + BLOCK; /* where the block after this one begins */
        size_t last = next < COUNT_OF(numbers) ? next - 1 : COUNT_OF(numbers) - 1;

        if (i % BLOCK == 0)
            put(filter, BPF_JMP | BPF_JGT | BPF_K, last - i + 1, 0, numbers[last]);
        put(filter, BPF_JMP | BPF_JEQ | BPF_K, over(filter->length, refuse),
            i == last ? over(filter->length, allow) : 0, numbers[i]);
    }
    check(filter->length == allow);
    put(filter, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
    put(filter, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM);
}

void shim_confine(void)
{
    struct filter filter;

    make_filter(&filter);
    struct sock_fprog program = {.len = (unsigned short)filter.length, .filter = filter.code};
    /* A kernel without filters, or one that lets us have none, is no reason to run nothing. */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        (void)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}
