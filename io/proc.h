/*
 * Processes: identity, spawning, signalling, cgroups.
 *
 * A pid alone proves nothing (I-4): whoever signals or trusts a process gives an identity of
 * (boot id, pid, start time) or a pidfd, or names a cgroup.  Values of 1 and less are refused.
 * This part is also linked into the static shim: base and system calls only, no allocation.
 */
#ifndef CAIRN_IO_PROC_H
#define CAIRN_IO_PROC_H

#include "base/base.h"

#include <stdint.h>
#include <sys/types.h>

enum { BOOT_ID_SIZE = UUID_TEXT_SIZE };

struct proc_identity {
    int32_t pid;          /* 0: none */
    uint64_t start_ticks; /* field 22 of /proc/<pid>/stat */
};

/* This boot's id from /proc/sys/kernel/random/boot_id. */
int proc_boot_id(char to[BOOT_ID_SIZE], struct err *err);

/* Fills RET_IDENTITY for the process that has PID now; ERR_GONE if there is none.  A zombie still
 * has its pid: its parent may ask who it was. */
int proc_identify(pid_t pid, struct proc_identity *ret_identity, struct err *err);

/* True if the process is alive (zombies are not) and is the one IDENTITY names. */
bool proc_is_alive(const struct proc_identity *identity);

/* A pidfd for exactly this process, or ERR_GONE; the caller owns it. */
int proc_open(const struct proc_identity *identity, int *ret_fd, struct err *err);

/* Sends SIGNAL to exactly this process; ERR_GONE if it is not there any more, ERR_INVALID for a
 * pid of 1 or less. */
int proc_signal(const struct proc_identity *identity, int signal, struct err *err);

/* True if exactly this process was begun with VARIABLE, "NAME=value"; not for the shim. */
bool proc_has_variable(const struct proc_identity *identity, const char *variable);

/* Calls CB for each child that PARENT has now, zombies too; for none where the kernel keeps no
 * lists of children in /proc.  A number stays its child's as long as the caller is the parent and
 * reaps none. */
void proc_each_child(pid_t parent, void (*cb)(void *ctx, pid_t pid), void *ctx);

/* Kills every descendant of ANCESTOR that there is now, whatever group, session or cgroup it went
 * to; each is stopped before those below it are looked for.  If ANCESTOR takes in orphans, calling
 * again until it has no children misses nobody.  Returns how many lived, of those that IS_COUNTED
 * says yes to (NULL: all). */
size_t proc_kill_descendants(const struct proc_identity *ancestor,
                             bool (*is_counted)(void *ctx, pid_t pid), void *ctx);

/* Kills this process and its whole session, unless that is the caller's own.  The process is
 * stopped first and ended last, so that the session's number cannot pass to somebody else. */
int proc_kill_session(const struct proc_identity *member, struct err *err);

enum { SIGNAL_NAME_SIZE = 24 };

/* "SIGTERM", "TERM" or "15" to a number; 0 if unknown.  And back: "SIGTERM", or "signal 77";
 * returns TO. */
int proc_signal_number(const char *name);
const char *proc_signal_name(int number, char to[SIGNAL_NAME_SIZE]);

/* --- making processes --- */

enum { PROC_SPAWN_FDS_MAX = 8 };

struct proc_spawn {
    const char *path; /* absolute path of the program */
    char *const *argv;
    char *const *envp;
    const char *directory; /* working directory, NULL: unchanged */
    const int *fds;        /* inherited as 3, 4, ... in this order; 0, 1, 2 are /dev/null */
    size_t fds_count;      /* at most PROC_SPAWN_FDS_MAX */
    const char *cgroup;    /* v2 directory to be born in (CLONE_INTO_CGROUP), NULL: ours */
    uint64_t files_soft;   /* its soft limit of descriptors, 0: ours */
    int out_fd, err_fd;    /* its 1 and 2, 0: /dev/null */
    bool ends_with_us;     /* killed with the thread that has made it */
    /* Where it writes its struct proc_identity, at offset NOTE_AT, before its program begins; 0:
     * nowhere.  What is locked with it stays so until then, whoever ends meanwhile. */
    int note_fd;
    uint32_t note_at;
};

/* Starts a process in a session of its own, all signals at their defaults, umask 022, no other
 * descriptor open.  The pid is not a zombie trap: the caller reaps it (pidfd, waitid) or double
 * forks.  Returns when the program runs or could not be run; nothing is left behind then.
 * RET_PIDFD may be NULL. */
int proc_spawn(const struct proc_spawn *spawn, pid_t *ret_pid, int *ret_pidfd, struct err *err);

/* On what runs in a child that borrows its parent's memory, and does not return from it: it leaves
 * nothing behind that an instrumented frame of the parent would stumble over. */
#define PROC_IN_CHILD __attribute__((noinline, no_sanitize("address", "undefined")))

/* A child in the v2 directory CGROUP (NULL: ours) and in new NAMESPACES (CLONE_NEW*, 0: ours), that
 * RUN makes another program of, in our memory and on our stack, while we wait: nothing is copied
 * for it.  What RUN writes we see; when it returns the child ends.  The caller has no handlers of
 * signals, which the child would run as well. */
int proc_become(const char *cgroup, uint64_t namespaces, void (*run)(void *ctx), void *ctx,
                pid_t *ret_pid, struct err *err);

/* fork() into the v2 directory CGROUP (NULL: ours) and into new NAMESPACES (CLONE_NEW*, 0: ours).
 * RET_PID is 0 in the child. */
int proc_fork(const char *cgroup, uint64_t namespaces, pid_t *ret_pid, struct err *err);

/* --- cgroups --- */

enum cgroup_mode {
    CGROUP_NONE,   /* nothing mounted or not writable: process groups are all we have */
    CGROUP_V2,     /* one unified hierarchy with controllers */
    CGROUP_HYBRID, /* v2 for tracking and killing, v1 for controllers */
    CGROUP_V1,     /* freezer hierarchy for tracking, kill by freeze, signal, thaw */
};

enum { CGROUP_NAME_SIZE = 256 };

/* What this machine offers, looked at now: ask once and hand it on. */
enum cgroup_mode cgroup_mode(void);
const char *cgroup_mode_name(enum cgroup_mode mode);

/* A cgroup is named by a path relative to the hierarchy's root, "cairn/<node>/<key>".
 * Creating one that exists, removing one that is gone, are success.  MODE is what the machine
 * offers, or less of it: a hybrid machine can do all four.  In mode NONE all calls but events and
 * stats succeed and find nothing. */
int cgroup_create(enum cgroup_mode mode, const char *name, struct err *err);
int cgroup_enter(enum cgroup_mode mode, const char *name, pid_t pid,
                 struct err *err); /* 0: the caller itself, which has one thread */

/* The controllers' own directories alone, for who was born in the one that tracks it. */
int cgroup_enter_controllers(enum cgroup_mode mode, const char *name, pid_t pid, struct err *err);

/* Where systemd has made a cgroup of version 1 for NAME, or for one above it, the caller is in it
 * then, or in the nearest one above, in the hierarchy by which systemd knows whose a process is and
 * in those of controllers.  Else it would stay the daemon's, which is limited and ended alone. */
void cgroup_enter_unit(enum cgroup_mode mode, const char *name);

/* The directory to give to proc_spawn.cgroup on v2 and hybrid; "" on others. */
void cgroup_directory(enum cgroup_mode mode, const char *name, char *to, size_t size);

/* Memory and CPU limits where the hierarchy has the controllers; no controller is success.
 * Comes between create and enter: on v1 and hybrid it makes the controllers' own directories,
 * which enter then fills. */
struct cgroup_limits {
    uint64_t memory_bytes_max; /* 0: none; with one, nothing of it is swapped out */
    uint64_t memory_bytes_low; /* kept for it when memory is short, 0: none */
    uint64_t cpu_shares;       /* on v1 and hybrid, 2 to 262144; 0: none */
    uint64_t cpu_weight;       /* on v2, 1 to 10000; 0: none */
    const char *cpus;          /* the processors it may use, "0-2,7"; NULL: any */
};
int cgroup_limit(enum cgroup_mode mode, const char *name, const struct cgroup_limits *limits,
                 struct err *err);

/* True if the processors of NAME were once limited by themselves (v2: are). */
bool cgroup_has_own_cpus(enum cgroup_mode mode, const char *name);

/* True if PID has the processors of NAME itself, and not of one above or below. */
bool cgroup_has_cpus_of(const char *name, pid_t pid);

/* 1 if any process is in it or below, 0 if none or the cgroup does not exist, ERR_* otherwise. */
int cgroup_populated(enum cgroup_mode mode, const char *name, struct err *err);

/* A descriptor that polls as POLLPRI (IO_URGENT) when `populated` changes (v2, hybrid); open it
 * before asking cgroup_populated.  ERR_UNSUPPORTED on v1 (ask again instead), ERR_GONE without
 * the cgroup.  The caller owns it. */
int cgroup_events_open(enum cgroup_mode mode, const char *name, int *ret_fd, struct err *err);

/* True if the process that has PID now is in it or below.  PID must not pass to another meanwhile:
 * it is a child not reaped, or compared again by its start time. */
bool cgroup_has(enum cgroup_mode mode, const char *name, pid_t pid);

/* SIGKILLs every process in it and below, forks in flight included.  Does not wait.  On v1 a
 * process may escape a busy machine's freezer: repeat until cgroup_populated says 0. */
int cgroup_kill(enum cgroup_mode mode, const char *name, struct err *err);

/* Removes it and its children, and parents left empty; ERR_AGAIN while something lives in it. */
int cgroup_remove(enum cgroup_mode mode, const char *name, struct err *err);

/* Calls CB for each child of it (last part of the name), or each process right in it, until CB
 * returns false.  A cgroup that does not exist has none. */
int cgroup_each_child(enum cgroup_mode mode, const char *name,
                      bool (*cb)(void *ctx, const char *child), void *ctx, struct err *err);
int cgroup_each_process(enum cgroup_mode mode, const char *name, bool (*cb)(void *ctx, pid_t pid),
                        void *ctx, struct err *err);

struct cgroup_stats {
    uint64_t memory_rss_bytes, memory_cache_bytes, memory_swap_bytes, memory_mapped_bytes,
        memory_usage_bytes, memory_usage_bytes_max;
    uint64_t cpu_user_us, cpu_system_us; /* since birth */
    uint64_t throttled_periods, throttled_us;
    uint32_t processes;
    bool oom_killed;
};

/* Sums the processes in it (RSS, swap, CPU from /proc) or takes the controllers' counts. */
int cgroup_stats(enum cgroup_mode mode, const char *name, struct cgroup_stats *ret_stats,
                 struct err *err);

/* The same for one process, where there is no cgroup to ask. */
int proc_stats(const struct proc_identity *identity, struct cgroup_stats *ret_stats,
               struct err *err);

/* True if the kernel killed something in it for want of memory; false where it does not tell. */
bool cgroup_oom_killed(enum cgroup_mode mode, const char *name);

#endif
