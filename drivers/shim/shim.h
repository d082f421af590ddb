/*
 * The parts of cairn-shim.
 *
 * One process, one thread, one poll loop.  Everything it keeps is in one struct; it allocates
 * nothing, and what it needed only to start (launch record, paths) is given back to the kernel,
 * because one of these exists for each task.
 */
#ifndef CAIRN_DRIVERS_SHIM_SHIM_H
#define CAIRN_DRIVERS_SHIM_SHIM_H

#include "drivers/shim/protocol.h"
#include "drivers/shim/record.h"
#include "spec/spec.h"

#include <limits.h>

enum {
    CLIENTS_MAX = 4,          /* a new daemon may come while the old connection is dying */
    LOG_BUFFER_BYTES = 65536, /* one read: a pipe's whole content */
    DRAIN_MS = 2000,          /* how long grandchildren may hold the pipes after the end */
    KILL_AGAIN_MS = 1000,     /* between two kills of what does not die */
    REST_AGAIN_MS = 20,       /* and of what outlives the main process, at first */
    REST_MS = 2000,           /* how long that may take, less than a daemon waits for us */
};

/* --- launch.c: what to do --- */

/* Views into the mapped launch record, valid until launch_close. */
struct launch {
    void *record; /* mapped */
    size_t record_bytes;
    void *arrays; /* argv, envp, groups and paths being built */
    size_t arrays_bytes;

    const char *key, *cgroup, *shim_cgroup, *command, *alloc_dir, *task_dir, *log_dir, *log_name,
        *user_name, *work_dir, *network, *hostname, *share;
    const char *task_in_alloc, *logs_in_alloc; /* parts of task_dir and log_dir */
    uint64_t key_digest, cgroup_mode, log_files_max, log_bytes_max;
    uint64_t isolation; /* enum launch_isolation; 0: it runs as any process of the host */
    uint64_t bounding, ambient;
    uint64_t oom_score_adj, terminal;
    struct cgroup_limits limits;
    struct launch_bind *binds;
    size_t binds_count;
    bool switch_user;
    uint32_t user_id, group_id;
    uint32_t *groups;
    size_t groups_count;
    char **argv; /* argv[0] is the command */
    char **envp;
    char *program; /* PATH_MAX bytes: the command, found */
};

int launch_open(struct launch *launch, struct err *err);
void launch_close(struct launch *launch);

/* --- log.c: one stream into rotated files --- */

struct log_settings {
    int alloc_fd;       /* a place; -1: not there, everything is lost */
    char directory[64]; /* below it; looked up each time, for payloads may exchange it */
    char name[SPEC_NAME_SIZE];
    uint64_t files_max, bytes_max;
};

struct log_stream {
    const char *suffix; /* "stdout", "stderr" */
    int pipe_fd;        /* what the payload writes to, -1 when it is over */
    int file_fd;
    uint64_t index, size;
    bool at_line_start;
    uint64_t bytes_written, bytes_lost;

    uint64_t look_at_ms; /* when the file is looked for under its name again */
    uint64_t unproven;   /* bytes written to it since it was seen there */

    /* What is missing at this place and has not been told yet. */
    uint64_t missing_bytes, missing_lines;
    const char *why_missing;
    bool missing_end; /* the last of it is half a line */
};

/* Goes on with the newest file there is, as nomad v1.1.2 client/lib/../logging/rotator.go. */
void log_open(struct log_stream *stream, const struct log_settings *settings, const char *suffix);
void log_write(struct log_stream *stream, const struct log_settings *settings, const char *bytes,
               size_t length, uint64_t now_ms);

/* Makes sure that the file is where it should be. */
void log_look(struct log_stream *stream, const struct log_settings *settings, uint64_t now_ms);
void log_close(struct log_stream *stream);

/* --- the shim --- */

struct client {
    int fd;            /* -1: free */
    uint16_t protocol; /* 0: has not said hello */
};

enum { SHIM_SIGNALS = 65, STEP_TEXT_SIZE = 64 };

/* Where on its way to the exec the payload's process failed, and why. */
struct payload_failure {
    int step; /* enum step of payload.c, 0: it did not */
    int os;
    char what[STEP_TEXT_SIZE];
};

struct shim {
    int task_fd, signal_fd, timer_fd, listen_fd;
    struct client clients[CLIENTS_MAX];

    enum shim_phase phase;
    bool finished; /* nothing left but to tell */
    struct payload_failure failure;
    struct proc_identity self, payload;
    pid_t payload_pid; /* 0: none, or reaped: its number may be somebody else's */
    uint64_t key_digest;
    int64_t started_unix_ns;
    enum cgroup_mode cgroup_mode;  /* as the daemon's */
    char cgroup[CGROUP_NAME_SIZE]; /* "": a process group only */
    char socket[TASK_SOCKET_SIZE]; /* "": not bound */
    char command[64];              /* for messages */
    char user_name[32];

    uint64_t kill_at_ms;  /* 0: no stop was asked for */
    uint64_t drain_at_ms; /* 0: still running, or no more output is waited for */
    uint64_t rest_at_ms; /* when what outlives the main process is left to the daemon; 0: no rest */
    uint64_t trim_at_ms; /* 0: the log buffer is not in memory */
    uint64_t timer_set_ms;
    bool stop_asked;
    bool host_ends;              /* somebody who may has asked all to end: the host is shut down */
    uint32_t told[SHIM_SIGNALS]; /* of each signal, the number that it was sent under last */
    bool childless; /* nothing of the payload is alive: its orphans would be our children */
    uint32_t rest_again_ms;
    uint64_t strays; /* that were found outside the cgroup */

    struct log_settings log;
    struct log_stream streams[2];
    char *log_buffer;

    struct exit_record exit;
};

/* payload.c */

/* The task's directory as a place, reached from the alloc's without a link. */
int payload_open_task(const struct launch *launch, int *ret_fd, struct err *err);

/* Finds the command where LAUNCH's payload may name it, seen from where the caller is; TASK_FD is
 * the task's directory there. */
bool payload_find_program(struct launch *launch, int task_fd);

/* CLONE_NEW*: the namespaces that LAUNCH's payload has of its own, but for its network. */
uint64_t payload_namespaces(const struct launch *launch);
void payload_set_oom_score(uint64_t adjustment);

/* Everything from cgroup to exec.  Afterwards the program runs, or has failed. */
int payload_start(struct shim *shim, struct launch *launch, struct err *err);

/* True if the program could not be run, and then why. */
bool payload_failed(const struct shim *shim, struct err *err);

/* Sends SIGNAL to the main process; ERR_GONE if it has ended. */
int payload_signal(struct shim *shim, int signal);

/* Kills the main process, its group, and what is in the cgroup. */
void payload_kill_all(struct shim *shim);

/* Kills whatever else came of the main process, wherever it went; the main process has ended. */
void payload_kill_rest(struct shim *shim);

/* Puts what does not die where a daemon will look for it. */
void payload_leave_rest(struct shim *shim);

/* isolate.c: in the child, between its birth and its exec */

/* Makes the task's directory the root of the calling process, in a mount namespace of its own, with
 * what LAUNCH binds into it and the kernel's file systems; it is the working directory then.  0, or
 * a negative errno and in RET_WHAT what could not be done; -ESTALE: what is to be mounted on the
 * host is not (any more). */
int isolate_root(const struct launch *launch, char ret_what[STEP_TEXT_SIZE]);

/* Takes what LAUNCH does not grant from the calling process for good and makes it the user that it
 * is to run as; 0 or a negative errno. */
int isolate_user(const struct launch *launch);

/* confine.c: the calls that nothing after the payload's fork needs are taken from the shim. */
void shim_confine(void);

/* clients.c */

int clients_listen(struct shim *shim, struct err *err);
void clients_add(struct shim *shim, int fd);
void clients_accept(struct shim *shim);
void clients_receive(struct shim *shim, struct client *client);
void clients_tell_exit(struct shim *shim);
bool clients_any(const struct shim *shim); /* is a daemon listening? */

/* session.c: the program by its other name; runs one command in a task that runs already */
_Noreturn void session_main(void);

/* --- network.c: cairn-shim under another name, too --- */

_Noreturn void network_main(void);

/* reader.c: the program by another name; reads the output of a task that has no shim */
_Noreturn void reader_main(int count, char **words);

/* nothing.c: opens a mount namespace with nothing in it as SHIM_FD_NOTHING, which roots of payloads
 * begin in; not if it may not, as without root.  Signals of children are ignored. */
void nothing_open(void);

/* nursery.c: the program by another name; returns in each shim that it makes, as that one */
void nursery_main(char **argv);

/* main.c */

/* What every helper of ours does first, and what it makes inherits: out of reach of signals and of
 * the memory's killer. */
void shim_withdraw(void);

/* A core of ours would have a payload's environment in it. */
void shim_dump_nothing(void);

/* For what is no helper any more: signals as they were. */
void shim_reset_signals(void);

/* What each does for itself: a session of its own, to which its payload's orphans come. */
void shim_stand_alone(void);

/* Tells the daemon behind FD in the place of a shim that there is none, for lack of OS. */
void shim_not_made(int fd, int os);

/* A request to stop: signals once, and sets or shortens the deadline. */
void shim_stop(struct shim *shim, int signal, uint64_t timeout_ms);
uint64_t shim_now_ms(void);

#endif
