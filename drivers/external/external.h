/*
 * Inside drivers only: a task of a driver that is a plugin.
 *
 * The plugin starts, watches and ends what runs, and names it by an id that we give it; that a task
 * runs, and how it has ended, is what it says.  It lives as long as it lives, we as long as we do,
 * and tasks go on without either.  What is found again by what:
 *
 *   the file of the task   written before the plugin is asked to start anything: a payload may
 *                          exist; then with the handle behind it, by which a plugin that does not
 *                          know a task finds it
 *   the task's id          <alloc>/<task>/<generation>, in eight hexadecimal digits
 *   its pipes              <digest of the key>.out and .err: where the driver writes the output
 *
 * A start is not asked for twice: after one whose answer is lost it is looked whether there is such
 * a task.  A plugin that is not there is waited for; it says nothing about its tasks.  A handle of
 * another boot is given to nobody: what it names is gone, and its numbers are somebody else's.
 *
 * Files: life.c the life, table.c the drivers there are, state.c what is known of one task, ask.c
 * what is asked and what is read of the answers, config.c the task as a plugin is told of it,
 * record.c what is written down, output.c who reads what it writes, usage.c what it uses, orphans.c
 * what its plugin does not know of.
 */
#ifndef CAIRN_DRIVERS_EXTERNAL_EXTERNAL_H
#define CAIRN_DRIVERS_EXTERNAL_EXTERNAL_H

#include "drivers/part.h"
#include "io/grpc.h"
#include "plugins/plugins.h"

#include <jansson.h>

enum {
    TASK_ID_SIZE = UUID_TEXT_SIZE + SPEC_NAME_SIZE + 16,
    OUTPUTS = 2, /* standard output and error */
    HANDLE_BYTES_MAX = 1 << 20,
    HANDLE_AT = TASK_FILE_SIZE,
    READER_AT = TASK_FILE_SIZE - 64, /* who reads its output: a struct proc_identity */
};

enum external_stage {
    STAGE_ASKED = 1, /* the plugin may have been asked to start it */
    STAGE_STARTED,   /* it was started, and its handle is behind the record */
};

/* In the task's file, in place of the record of what a shim has started. */
struct external_record {
    struct record_head head;
    int64_t begun_unix_ns;
    char boot_id[40];
    uint32_t stage;         /* enum external_stage */
    uint32_t once;          /* number of the last signal that was sent: driver_signal */
    uint32_t handle_length; /* of what lies at HANDLE_AT, with this digest */
    int32_t stop_signal;    /* 0: what the driver does by itself */
    uint64_t handle_digest;
    uint64_t stop_ms, kill_ms; /* CLOCK_BOOTTIME of this boot, 0: nobody has asked for it */
    uint64_t log_bytes_max, log_files_max; /* 0 bytes: output is not collected */
    char driver[SPEC_DRIVER_SIZE];
    char id[TASK_ID_SIZE];
    char alloc_dir[512];
};

_Static_assert(sizeof(struct external_record) == 856, "part of a format on disk");
_Static_assert(sizeof(struct external_record) <= TASK_RECORD_SIZE, "it has its place");
_Static_assert(TASK_EXIT_AT + sizeof(struct exit_record) <= READER_AT, "it has its place");

/* One that the list of drivers has from a plugin. */
struct external_driver {
    struct driver driver;
    char name[SPEC_DRIVER_SIZE];
};

enum external_step {
    STEP_AWAIT,   /* the plugin is not there, or could not say */
    STEP_START,   /* from here on it may run */
    STEP_INSPECT, /* how is it? */
    STEP_RECOVER, /* the plugin is told of it */
    STEP_WAIT,    /* it runs */
    STEP_DRAIN,   /* it has ended; its last output is read */
    STEP_DESTROY, /* what is left of it goes */
};

/* How a plugin says that a task is. */
struct external_status {
    bool runs, has_ended, has_result;
    int32_t code, signal;
    bool oom_killed;
    int64_t finished_unix_ns;  /* 0: not said */
    char error[ERR_TEXT_SIZE]; /* why nothing is known, in the driver's words; "": none */
};

/* What a plugin says that a task uses. */
struct external_usage {
    struct driver_stats stats;           /* but for times of processors */
    double user_percent, system_percent; /* of one core, of late */
};

struct external {
    struct run *run; /* borrowed */
    struct external_record record;
    bool recorded; /* it is in the task's file */
    enum external_step step;
    struct grpc_request *request; /* that the step waits for */

    json_t *config; /* of a start: the driver's own block; owned, may be secret */
    char *task;     /* and all else that the plugin is told; owned, secret */
    size_t task_length;
    char resolv[PATH_SIZE], hosts[PATH_SIZE]; /* files that are /etc's in a root of its own; "" */
    uint64_t give_up_ms;                      /* a start that nobody answers */
    struct err failed;                        /* of the start */
    bool start_sent; /* by this life of the daemon, and its answer is lost */
    unsigned looks;  /* for one that may be there */

    bool told_running;             /* that it runs was told to whoever asked */
    bool has_ended;                /* how is in `end` */
    struct external_status waited; /* what was said of its end */
    bool was_waited;
    struct exit_record end;
    struct io_timer kill;          /* when it is ended by force */
    struct grpc_request *stopping; /* a stop, or what ends it by force */
    struct grpc_request *signaling;
    struct grpc_request *measuring; /* what it uses is said by this one, NULL: by none */
    struct driver_stats used;       /* last said; times are since we listen */
    uint64_t used_at_ms;            /* loop time of that, 0: never */
    struct call *signal_call;       /* that it is for; owned */

    struct io_watch reader_watch;
    struct proc_identity reader;
    int reader_fd;         /* of who reads its output, -1: nobody */
    int pipe_fds[OUTPUTS]; /* that bytes stay in them while nobody does; -1: not open */
    void (*on_drained)(struct external *external);
};

/* --- ask.c --- */

/* Asks METHOD of its driver about it, which takes ID alone; NULL and a reason. */
struct grpc_request *external_ask(struct external *external, const char *method,
                                  uint64_t timeout_ms,
                                  void (*cb)(void *ctx, const struct grpc_reply *reply),
                                  struct err *err);
struct grpc_request *external_ask_start(struct external *external, const char *config,
                                        size_t length,
                                        void (*cb)(void *ctx, const struct grpc_reply *reply),
                                        struct err *err);
struct grpc_request *external_ask_recover(struct external *external, const char *handle,
                                          void (*cb)(void *ctx, const struct grpc_reply *reply),
                                          struct err *err);
struct grpc_request *
external_ask_wait(struct external *external,
                  bool (*on_message)(void *ctx, const void *message, size_t length),
                  void (*cb)(void *ctx, const struct grpc_reply *reply), struct err *err);
struct grpc_request *external_ask_stop(struct external *external, uint64_t timeout_ms,
                                       void (*cb)(void *ctx, const struct grpc_reply *reply),
                                       struct err *err);
struct grpc_request *external_ask_signal(struct external *external, int signal,
                                         void (*cb)(void *ctx, const struct grpc_reply *reply),
                                         struct err *err);

/* With force: whatever of it runs is ended. */
struct grpc_request *external_ask_destroy(struct external *external,
                                          void (*cb)(void *ctx, const struct grpc_reply *reply),
                                          struct err *err);

/* A stream of what it uses, a message each INTERVAL_MS. */
struct grpc_request *
external_ask_usage(struct external *external, uint64_t interval_ms,
                   bool (*on_message)(void *ctx, const void *message, size_t length),
                   void (*cb)(void *ctx, const struct grpc_reply *reply), struct err *err);

/* The handle in the answer to a start, owned by the caller (free); ERR_*. */
int external_read_handle(const void *bytes, size_t length, char **ret_handle, size_t *ret_length,
                         struct err *err);

/* How a wait has ended, or how a task is; ERR_*. */
int external_read_wait(const void *bytes, size_t length, struct external_status *ret_status,
                       struct err *err);
int external_read_status(const void *bytes, size_t length, struct external_status *ret_status,
                         struct err *err);

/* What a task uses; ERR_*. */
int external_read_usage(const void *bytes, size_t length, struct external_usage *ret_usage,
                        struct err *err);

/* Why REPLY is none that was hoped for: the driver's own words, or what became of the call. */
void external_fault(const struct grpc_reply *reply, const char *driver, struct err *ret_err);

/* The plugin has said that it knows no such task. */
bool external_is_unknown(const struct grpc_reply *reply);

/* --- config.c --- */

/* What START asks for, as the plugin is told of it but for the driver's own block; 0, ERR_*. */
int external_describe(struct external *external, const struct drivers *drivers,
                      const struct driver_start *start, struct err *err);

/* --- state.c --- */

/* Nothing that the step waits for comes any more. */
void external_forget_request(struct external *external);

/* REQUEST, of one that may be NULL, is NULL, and then it ends. */
void external_cancel(struct grpc_request **request);

/* --- usage.c --- */

/* What it uses is asked for from now on, unless it is already. */
void usage_begin(struct external *external);

/* --- record.c --- */

/* All of it at once, on the disk: from here on somebody may have to look for a task. */
int external_put_first(struct external *external, struct err *err);

/* Into the task's file: its record as it is now, or how it has ended. */
void external_put(struct external *external);
void external_put_end(struct external *external);

/* HANDLE is behind the record from now on; ERR_*. */
int external_put_handle(struct external *external, const char *handle, size_t length,
                        struct err *err);

/* The handle, owned by the caller (free); ERR_GONE: it is not whole. */
int external_get_handle(const struct external *external, char **ret_handle, struct err *err);

/* --- orphans.c --- */

/* Ends what its plugin has started of it and does not know, if there is any. */
void external_end_orphans(const struct external *external);

/* --- output.c --- */

enum { OUTPUT_NAME_SIZE = 24 };

/* Where the driver writes what goes to STREAM; in the directory of all shims. */
void output_name(const struct driver_key *key, size_t stream, char to[OUTPUT_NAME_SIZE]);

/* Whoever reads it is there from now on, as before or anew; ERR_*. */
int output_begin(struct external *external, struct err *err);

/* The same of one that runs, and only said if it cannot be. */
void output_see(struct external *external);

/* The one that may still read of a task that has ended. */
void output_find(struct external *external);

/* All that comes is read to its end; ON_DRAINED when that is written. */
void output_drain(struct external *external, void (*on_drained)(struct external *external));
bool output_is_open(const struct external *external);

/* Nobody waits for it any more; who reads goes on. */
void output_let_go(struct external *external);

#endif
