/*
 * What the files of the drivers room share.
 *
 * A `run` is what the daemon knows of one key while there is something to wait for; the truth is
 * in the task's file, so a run may be thrown away and found again at any time.  A `call` is
 * one driver_* call until its completion has been delivered.
 *
 *   attach --lock held--> CONNECTING -> HELLO -> STARTING -> RUNNING --EXIT--> LEAVING
 *      |  \-> FOUND ---later----/                    \----- connection lost ----/  |
 *      +--lock free--> settle: exit record, or start, or EMPTYING <------ gone ----+
 *                          \-- of a driver that holds its tasks: HELD
 *                           |- of one whose tasks are containers of an Engine: CONTAINED
 *                           \- of one that is a plugin: EXTERNAL
 */
#ifndef CAIRN_DRIVERS_PART_H
#define CAIRN_DRIVERS_PART_H

#include "drivers/drivers.h"
#include "drivers/shim/protocol.h"
#include "drivers/shim/record.h"
#include "io/host.h"
#include "spec/names.h"

enum {
    CGROUP_PARENT_SIZE = 40,                              /* of all cgroups of a node */
    KEY_NAME_SIZE = UUID_TEXT_SIZE + SPEC_NAME_SIZE + 16, /* <alloc>.<task>.<generation> */
    NODE_MARK_SIZE = 16,
    FILES_KEPT = 64,    /* descriptors, at most, that payloads leave to others */
    LOG_FILES_MAX = 10, /* of a stream of a task that does not say, and how large each gets */
    LOG_FILE_MB = 10,

    /* Bounds of waiting, all in milliseconds. */
    CONNECT_BOUND_MS = 10000, /* a shim that is being made binds its socket within a few */
    ANSWER_BOUND_MS = 10000,  /* hello, request and reply */
    START_BOUND_MS = 30000,   /* until the payload's exec; file systems may be slow */
    EMPTY_BOUND_MS = 15000,   /* from SIGKILL to the last process gone */
    OBEY_BOUND_MS = 3000,     /* a shim told to kill everything, before it is killed itself */
    DIE_BOUND_MS = 5000,      /* a killed shim */
    HANG_UP_BOUND_MS = 200,   /* from its end of connection to its end */
    RETRY_FIRST_MS = 5,
    RETRY_LONGEST_MS = 500,
    KILL_REPEAT_MS = 1000,

    BEGIN_MS = 20,   /* of each iteration of the loop go to beginning runs */
    BIRTHS_MAX = 32, /* at once: processors have something to do while the loop waits for a disk */
};

_Static_assert((int)KEY_NAME_SIZE <= (int)NURSERY_NAME_MAX,
               "the nursery takes the name of any shim");

/* --- paths.c: what a key is called --- */

/* "<alloc>.<task>.<generation>", ERR_INVALID for names that cannot be parts of a path; and back. */
int key_name(const struct driver_key *key, char to[KEY_NAME_SIZE], struct err *err);
bool key_from_name(const char *name, struct driver_key *ret_key);
/* Where the payload of KEY is: on v2 beside those of others if it has processors of its own, which
 * CORES says before it is there. */
void key_cgroup(const struct drivers *drivers, const struct driver_key *key, bool cores,
                char to[CGROUP_NAME_SIZE]);
/* The two cgroups that those of keys are in; false: the second is not used here. */
bool keys_cgroup(const struct drivers *drivers, bool cores, char to[CGROUP_NAME_SIZE]);
void shims_cgroup(const struct drivers *drivers, char to[CGROUP_NAME_SIZE]);

#define CGROUP_PARENT_DEFAULT "cairn"

/* Where all of them are: the parent that the configuration names, or where what runs is. */
int parent_take(struct drivers *drivers, struct err *err);

uint64_t key_digest(const struct driver_key *key);
bool key_equal(const struct driver_key *a, const struct driver_key *b); /* but for the driver */

enum lock_state { LOCK_ABSENT, LOCK_FREE, LOCK_HELD };

/* Takes the lock of the key if it is free: then RET_BEGUN says whether a payload may have existed.
 * RET_FD is the task's file (owned) if there is one: while somebody else has the lock, to be read
 * only.  CREATE makes the file first. */
int key_lock_take(int shim_fd, const struct driver_key *key, bool create,
                  enum lock_state *ret_state, int *ret_fd, bool *ret_begun, struct err *err);

/* True if a payload may have existed, or may come to exist because a shim is being made. */
bool key_was_begun(int shim_fd, const struct driver_key *key);

/* What the shim of this key wrote down when its payload ran; 0 or ERR_*. */
int started_read(int shim_fd, const struct driver_key *key, struct started_record *ret_record);

/* True of a descriptor that must not be held for as long as a payload runs: the last ones of those
 * behind SHIM_FD, one of the first, for the lowest that is free is taken.  They are for what is
 * opened at its first use, and for what ends and looks at things.  A payload without a connection
 * runs on, but one that has ended and cannot be looked after would keep its own for ever. */
bool fd_is_kept_back(int shim_fd, int fd);

/* A connection to the shim of this key, non-blocking, or an error. */
int shim_connect(int shim_fd, const struct driver_key *key, int *ret_fd, struct err *err);
bool shim_greet(int fd); /* says what must come first; false: it has hung up already */

/* Who holds the lock of this key, found among our shims by the descriptor itself. */
int shim_find(const struct drivers *drivers, const struct driver_key *key,
              struct proc_identity *ret_identity, struct err *err);

/* Deletes what the key has in the directory of all shims. */
int key_remove_files(int shim_fd, const struct driver_key *key, struct err *err);

/* --- config.c: what a task asks of its driver --- */

struct texts {
    const char **items; /* owned, the texts borrowed */
    size_t count;
};

struct isolation {
    uint64_t parts; /* enum launch_isolation; 0: none */
    uint64_t bounding, ambient;
    const struct spec_pairs *root; /* what of the host is in its root; borrowed */
};

enum { MOCK_OUTPUTS = 2 }; /* standard output and error */

/* What a task of mock_driver pretends. */
struct mock_config {
    uint64_t run_for_ms, start_block_for_ms, kill_after_ms, plugin_exit_after_ms;
    int64_t exit_code, exit_signal;
    const char *exit_message, *start_error, *signal_error; /* NULL: none */
    bool start_error_recoverable;
    struct mock_output {
        const char *text; /* NULL: none */
        int64_t repeat;   /* after the first time */
        uint64_t repeat_ms;
    } outputs[MOCK_OUTPUTS];
    bool has_exec;
    struct mock_exec {
        uint64_t run_for_ms;
        int64_t exit_code, exit_signal;
        const char *exit_message; /* NULL: none */
        struct mock_output outputs[MOCK_OUTPUTS];
    } exec; /* what is pretended in place of any command */
};

/* What a task of docker asks for besides a command; lists and maps are JSON, as config.c has made
 * them: an array of objects, an object of texts. */
struct docker_config {
    const char *image, *hostname, *cgroupns, *runtime, *network_mode, *uts_mode, *userns_mode;
    const char *ipv4_address, *ipv6_address, *mac_address, *volume_driver;
    const char *auth_username, *auth_password, *auth_server, *load;
    const char *logging_type, *logging_driver;
    struct texts entrypoint, dns_servers, dns_searches, dns_options, extra_hosts, group_add, ports,
        security_opt, volumes, network_aliases;
    struct json_t *labels, *storage_opt, *sysctl, *ulimit, *logging_config;
    struct json_t *mount, *mounts, *devices;
    bool has_auth, has_logging, has_healthchecks, auth_soft_fail, force_pull, init, interactive,
        tty, privileged, readonly_rootfs, no_healthchecks, cpu_hard_limit;
    int64_t cpu_period_us; /* 0: the usual */
    int64_t memory_hard_limit, pids_limit, shm_size;
    uint64_t pull_timeout_ms; /* 0: the node's */
};

/* A task's config, and what the driver makes of it on this node. */
struct command {
    const char *program;
    const char *class, *class_path, *jar_path; /* java's */
    struct texts jvm_options;
    struct texts arguments, cap_add, cap_drop;
    struct texts denied_env;                    /* patterns of variables that it does not get */
    const char *pid_mode, *ipc_mode, *work_dir; /* NULL: not said */
    int64_t oom_score_adj;
    struct json_t *config; /* owned; all texts are its */
    struct json_t *made;   /* owned; maps and blocks are in it */
    bool as_written;       /* not interpolated yet: nothing is wrong with what is going to be */

    struct mock_config mock;
    struct docker_config docker;

    const char *node_denied_env;         /* the same of the node, commas between; NULL: none */
    const struct drivers_denied *denied; /* users it may not run as; borrowed */
    bool has_cgroup;                     /* or a process group only */
    bool has_limits; /* the task's resources bound it, and not only its place on the node */
    struct isolation isolation;
};

enum config_kind {
    CONFIG_TEXT,
    CONFIG_TEXTS,
    CONFIG_NUMBER,   /* int64_t; a text of one, too */
    CONFIG_BOOL,     /* the same */
    CONFIG_DURATION, /* uint64_t, milliseconds; from a text as "1h30m" */
    CONFIG_BLOCK,    /* bool: it is there; its keys are "<its name>.<key>" of the same list */
    CONFIG_MAP,      /* struct json_t *: an object of texts; from one, or a list of some */
    CONFIG_BLOCKS,   /* struct json_t *: an array of objects; from one, or a list of some */
    CONFIG_REFUSED,
};

struct config_key {
    const char *name;
    enum config_kind kind;
    size_t offset;   /* in struct command */
    const char *why; /* CONFIG_REFUSED: Nomad has it */
};

/* What a probe has found. */
struct driver_probed {
    bool done, found;
    bool ill;                /* it was found before, and does not answer now */
    char why[ERR_TEXT_SIZE]; /* not found, or ill */
    char program[PATH_SIZE]; /* "": there is none */
    uint64_t inode;          /* of it, and when that was changed */
    int64_t changed_ns;
    struct driver_attribute attributes[DRIVER_ATTRIBUTES_MAX];
    size_t attributes_count;
};

/* Who looks after the tasks of a driver: a shim each; the daemon, of those that have no process
 * (held.c); an Engine (docker/container.c); a plugin (external/life.c). */
enum driver_way { WAY_SHIM, WAY_HELD, WAY_CONTAINED, WAY_PLUGIN };

/* All of one driver, in a file of its own; registry.c lists them. */
struct driver {
    struct spec_driver kind;
    const char *stop_signal; /* when the task names none */
    const struct config_key *keys;
    size_t keys_count;
    /* What the keys' kinds do not say of a config. */
    int (*validate)(const struct command *command, struct err *err);
    /* Fills in what the node has to say; ERR_REFUSED with a reason. */
    int (*prepare)(const struct drivers *drivers, const struct driver_probed *probed,
                   struct command *command, struct err *err);
    /* True if it can work here, else why not. */
    bool (*look)(const struct drivers *drivers, char ret_why[ERR_TEXT_SIZE]);
    /* What only a program can tell, in bounded time; on a thread of the pool.  NULL: nothing. */
    void (*probe)(const struct drivers_config *config, struct driver_probed *ret_probed);
    /* False if asking again may give another answer; seen without waiting.  NULL: always. */
    bool (*is_current)(const struct driver_probed *probed);
    enum driver_way way;
};

extern const struct driver docker_driver, raw_exec_driver, exec_driver, java_driver, mock_driver;

/* The keys of drivers whose payloads are isolated, in their lists. */
/* clang-format off */
#define ISOLATED_KEYS                                                                              \
    {"pid_mode", CONFIG_TEXT, offsetof(struct command, pid_mode), NULL},                           \
    {"ipc_mode", CONFIG_TEXT, offsetof(struct command, ipc_mode), NULL},                           \
    {"cap_add", CONFIG_TEXTS, offsetof(struct command, cap_add), NULL},                            \
    {"cap_drop", CONFIG_TEXTS, offsetof(struct command, cap_drop), NULL},                          \
    {"work_dir", CONFIG_TEXT, offsetof(struct command, work_dir), NULL}
/* clang-format on */

/* exec.c, for drivers that isolate as it does */
int isolated_check(const char *driver, const struct command *command, struct err *err);
int isolated_prepare(const char *driver, const struct drivers_exec *exec, struct command *command,
                     struct err *err);
bool isolated_look(const struct drivers *drivers, const struct drivers_exec *exec,
                   char ret_why[ERR_TEXT_SIZE]);

int command_read(const struct driver *driver, const struct task_spec *task,
                 struct command *ret_command, struct err *err);
/* Of a task whose config is as it was written, and not interpolated. */
int command_check(const struct driver *driver, const struct task_spec *task, struct err *err);
bool config_is_open(const struct command *command, const char *text);
int config_check_program(const char *driver, const struct command *command, struct err *err);
int config_check_work_dir(const char *driver, const struct command *command, struct err *err);
void command_close(struct command *command);

/* --- denied.c: what a node keeps from its tasks --- */

/* 0, or ERR_REFUSED for an id that DENIED has; of the daemon's own user where UID is -1. */
int denied_check(const struct drivers_denied *denied, uint32_t uid, const uint32_t *groups,
                 size_t groups_count, struct err *err);
int denied_check_own(const struct drivers_denied *denied, struct err *err);

/* True if COMMAND does not get the variable NAME. */
bool denied_variable(const struct command *command, const char *name);

/* --- launch.c: what to start --- */

struct plan {
    struct io_work work; /* looks the user up, which may ask the network */
    struct run *run;     /* NULL: nobody waits for it any more */
    bool looking, isolated;
    char user[SPEC_NAME_SIZE];
    const struct drivers_denied *denied; /* borrowed from the configuration */
    struct host_user found;
    uint32_t groups[LAUNCH_GROUPS_MAX];
    int groups_count;
    struct err error;

    /* In place of all that follows, of a driver that holds its tasks, of containers, or of one that
     * is a plugin; owned. */
    struct mock *mock;
    struct container *container;
    struct external *external;
    char *bytes; /* the launch record; owned */
    size_t length, capacity;
    bool failed; /* it grew too large */
};

struct plan *plan_new(const struct drivers *drivers, const struct driver_start *start,
                      const struct command *command, struct err *err);
/* SHARES of processors, 2 to 262144 on v1, as a weight of v2, 1 to 10000: in both the kernel gives
 * 1024 or 100 to who was given nothing.  Follows opencontainers/cgroups, which Nomad uses. */
uint64_t plan_cpu_weight(uint64_t shares);
struct plan *plan_new_held(const struct drivers *drivers, const struct driver_start *start,
                           struct err *err);
struct plan *plan_new_external(const struct drivers *drivers, const struct driver_start *start,
                               struct err *err);
struct plan *plan_new_contained(const struct drivers *drivers, const struct driver_start *start,
                                const struct command *command, struct err *err);
void plan_free(struct plan *plan);
void plan_add_terminal(struct plan *plan);
void plan_add_user(struct plan *plan); /* after the look-up */
void plan_look_up_user(struct io_work *work);
int plan_open(struct plan *plan, int *ret_fd, struct err *err); /* as the shim inherits it */

/* --- starts.c --- */

/* What START asks for, or INSTEAD of its command another one with its arguments (NULL: none), as a
 * launch record; NULL and the reason why it cannot be. */
struct plan *plan_make(const struct drivers *drivers, const struct driver_start *start,
                       const struct texts *instead, struct err *err);

/* --- sessions.c --- */

void sessions_close(struct drivers *drivers); /* all end, and nobody is told */

/* Commands that others than a helper of ours look after: what a session is to them.  Each tells its
 * end by on_end of the calls that it was given, and is ended after that or before it. */
struct session_way {
    void (*end)(void *session); /* it is gone then */
    void (*hold)(void *session, bool hold);
    /* As driver_session_write and the two behind it; NULL: input goes nowhere. */
    size_t (*write)(void *session, const char *bytes, size_t length);
    void (*close_input)(void *session);
    void (*resize)(void *session, uint16_t rows, uint16_t columns);
};

/* --- found.c: runs that an earlier life of the daemon left --- */

/* True if TASK_FD, whose lock is held, says that the payload runs: who wanted to know is told, and
 * the shim is spoken with later. */
bool found_take_up(struct run *run, int task_fd);

/* A call was added to one of those.  May free the run. */
void found_advance(struct run *run);

/* Ends what sessions of that life left in RUN's task, if nobody has done so. */
void found_sweep(struct run *run);

/* --- registry.c --- */

const struct driver *driver_named(const struct drivers *drivers, const char *name);
const struct driver *driver_at(const struct drivers *drivers, size_t i); /* NULL: no more */

/* --- external/table.c: those that plugins are --- */

/* Takes in what plugins are drivers for; the list only grows. */
void table_look(struct drivers *drivers);
void table_close(struct drivers *drivers);

/* How DRIVER, one of the list, is. */
void table_tell(const struct drivers *drivers, const struct driver *driver,
                struct driver_info *ret_info);

/* 0, or ERR_INVALID: a driver of this kind cannot do what TASK of ALLOC asks for, whatever its
 * config says. */
int driver_check_kind(const struct spec_driver *kind, const struct alloc_spec *alloc,
                      const struct task_spec *task, struct err *err);

/* 0, or ERR_UNSUPPORTED: tasks of this kind are sent no signals, or run no commands.  NULL: nobody
 * knows the driver any more, and what its tasks can do is seen when it is tried. */
int driver_check_signals(const struct spec_driver *kind, struct err *err);
int driver_check_commands(const struct spec_driver *kind, struct err *err);

/* --- manager.c --- */

/* Why the driver NAME may not be used here, NULL: it may. */
const char *manager_denial(const struct drivers_config *config, const char *name);

void manager_open(struct drivers *drivers); /* looks at all, and says so */
void manager_close(struct drivers *drivers);

/* What the probe of DRIVER has found so far. */
const struct driver_probed *manager_probed(const struct drivers *drivers,
                                           const struct driver *driver);

/* How DRIVER is now; false if it cannot be used here, as the description says. */
bool manager_look(const struct drivers *drivers, const struct driver *driver,
                  struct driver_info *ret_info);

/* Looks at all, and tells what has changed; by itself, or for who cannot wait. */
void drivers_look_again(struct drivers *drivers);

/* --- share.c --- */

/* Where tasks get the processors that they share: on v2 a cgroup above theirs, else one of the
 * hierarchy for processors that they enter. */
void share_cgroup(const struct drivers *drivers, char to[CGROUP_NAME_SIZE]);
void share_close(struct drivers *drivers);

/* --- completions.c: calls under way --- */

enum call_kind { CALL_START, CALL_RECOVER, CALL_STOP, CALL_SIGNAL, CALL_DESTROY, CALL_EXIT };

struct call {
    struct call *next;
    enum call_kind kind;
    uint32_t ticket; /* of the request that was sent for it, 0: none yet */
    int signal;
    uint32_t once;  /* signal: see driver_signal */
    uint64_t at_ms; /* stop: when everything is killed */
    driver_done *done;
    void *ctx;
    struct driver_key key; /* CALL_EXIT: whose */
    struct driver_result result;
};

struct call_list {
    struct call *first, **end;
};

void calls_init(struct call_list *list);
void calls_add(struct call_list *list, struct call *call);
struct call *calls_take(struct call_list *list); /* the first, or NULL */
void calls_drop(struct call_list *list);         /* nobody is told */

struct call *call_new(enum call_kind kind, driver_done *done, void *ctx);

/* Hands the call's result over; from the loop, in order, never from inside a driver_* call. */
void call_finish(struct drivers *drivers, struct call *call, enum driver_outcome outcome);
void call_fail(struct drivers *drivers, struct call *call, const struct err *err);

/* --- runs.c: those there are, and what each of them holds --- */

enum run_phase {
    RUN_NEW,        /* waits for the look-up of its user, or for its turn to begin */
    RUN_CONNECTING, /* the lock is held, nobody answers yet */
    RUN_HELLO,
    RUN_STARTING,
    RUN_RUNNING,
    RUN_FOUND,     /* runs, as its file says; not spoken with so far */
    RUN_HELD,      /* without a shim: starts, runs and ends by the clock */
    RUN_CONTAINED, /* without a shim: an Engine has it, or is to have it */
    RUN_EXTERNAL,  /* without a shim: a plugin has it, or is to have it */
    RUN_LEAVING,   /* the connection is over, the shim is not yet seen to have ended */
    RUN_EMPTYING,  /* no shim any more; the cgroup is being killed */
};

struct run {
    struct run *next;       /* in its bucket */
    struct run *begin_next; /* of those that wait for their turn to begin */
    struct drivers *drivers;
    struct driver_key key;
    uint64_t digest;
    enum run_phase phase;

    struct io_watch watch; /* the connection, then the shim's pidfd, then cgroup.events */
    int fd;                /* that it watches, or -1 */
    struct io_timer timer; /* the bound of the phase, or the next try */
    uint64_t bound_ms;     /* when trying ends */
    uint32_t retry_ms;

    struct proc_identity shim, payload;
    uint16_t protocol;
    bool reported;    /* as running, so that on_exit is owed */
    bool ended;       /* how it ended is known, or known to be unknown */
    bool stop_sent;   /* destroy has told the shim to kill everything */
    bool shim_killed; /* and not even that has helped so far */
    bool is_found;    /* its shim was there already, and what else is has not been looked at */
    bool is_born;     /* its shim is being made, and has said nothing so far */
    uint32_t next_ticket;

    struct mock *mock;           /* RUN_HELD: what it is; owned */
    struct container *container; /* RUN_CONTAINED: the same */
    struct external *external;   /* RUN_EXTERNAL: the same */
    struct plan *plan;           /* a start that may still have to be done; owned */
    struct call_list calls;

    uint64_t stats_cpu_us, stats_at_ms; /* of the previous driver_stats */
};

/* One that an earlier life of the daemon left. */
struct generation {
    uint64_t task; /* digest of alloc and task */
    uint32_t number;
    bool there; /* not yet seen to be gone */
};

struct generations {
    struct generation *items; /* by task */
    size_t count, size;
};

struct external_driver; /* external/table.c */

struct drivers {
    struct drivers_config config;
    uint64_t opened_ms;
    char *shim_dir;  /* <state>/shim */
    char *shim_path; /* the program */
    char node_mark[NODE_MARK_SIZE];
    char cgroup_parent[CGROUP_PARENT_SIZE]; /* "cairn" */
    int shim_fd;                            /* shim_dir, opened */
    char boot_id[BOOT_ID_SIZE];

    struct run **buckets;
    size_t buckets_count, runs_count;

    struct external_driver *external[DRIVERS_MAX]; /* owned */
    size_t external_count;
    struct driver_info infos[DRIVERS_MAX]; /* as they were when they were last looked at */
    size_t infos_count;
    struct driver_probed probed[DRIVERS_MAX];
    struct probe *probes; /* under way */
    bool told;            /* how all of them are */
    struct io_timer look;
    uint64_t wait_ms; /* for the next look while something is amiss, 0: nothing is */

    struct generations found;
    uint64_t found_count;          /* runs that were taken up by what their files say */
    struct waiting_start *waiting; /* starts, for other generations to be gone */

    struct {
        struct share_work *work; /* under way, or NULL */
        bool again;              /* it has changed meanwhile */
        bool restricted, told;
        char cpus[CORES_TEXT_SIZE];
    } share; /* what tasks have that ask for no processors */

    struct driver_session *sessions;
    struct pretended *pretended;                  /* those of tasks without a process */
    struct container_session *container_sessions; /* and of containers */
    struct io_timer dangling;                     /* looks for containers that nobody knows */
    struct stray *strays;   /* those that are being removed, and the list of them */
    struct image *images;   /* that tasks have used */
    int images_fd;          /* where they are noted, or -1 */
    struct pull *pulls;     /* of images, under way */
    struct asking *askings; /* for credentials, under way */
    struct load *loads;     /* the same, or waiting for their turn; the newest first */
    struct call_list due;   /* completions to deliver */
    struct io_timer deliver;

    struct run *begin_first, **begin_end; /* that wait for their turn to begin, oldest first */
    uint64_t begin_until_ms;              /* of this iteration, 0: nothing has begun in it */
    struct io_timer begin;                /* the next iteration */
    struct nursery {
        int fd, pidfd; /* -1: there is none */
        struct proc_identity process;
    } nursery;
    unsigned births;                              /* under way */
    void (*begin_go_on)(struct drivers *drivers); /* once some wait: when a birth is over */
};

struct run *run_find(const struct drivers *drivers, const struct driver_key *key);
struct run *run_new(struct drivers *drivers, const struct driver_key *key);
void run_free(struct run *run);
void runs_close(struct drivers *drivers); /* drops their calls, and starts that wait, too */

void run_on_watch(struct run *run, int fd, int events,
                  void (*cb)(struct io_watch *watch, int events));
void run_off_watch(struct run *run); /* and closes the descriptor */
void run_at(struct run *run, uint64_t delay_ms, void (*cb)(struct io_timer *timer));

/* The same after a time that doubles from FIRST_MS on, each time until retry_ms is 0 again. */
void run_retry(struct run *run, uint32_t first_ms, uint32_t longest_ms,
               void (*cb)(struct io_timer *timer));
bool run_has(const struct run *run, enum call_kind kind);

/* TEXT is to be read of its task. */
void run_say(const struct run *run, const char *text);

/* Fails all calls but destroys, or all. */
void run_fail_calls(struct run *run, const struct err *err);
void run_fail_all(struct run *run, const struct err *err);

/* --- files.c: of tasks without a shim --- */

/* The task's file, opened (owned), or -1. */
int run_file(const struct run *run);

/* RECORD, sealed, and all of the file, on the disk: from here on somebody may have to look for a
 * payload.  ERR_*, recoverable: nothing is in it. */
int run_put_first(const struct run *run, void *record, uint32_t magic, size_t length,
                  struct err *err);

/* RECORD, sealed, to its place. */
void run_put(const struct run *run, off_t at, void *record, uint32_t magic, size_t length);

struct waiting_start {
    struct waiting_start *next, **link;
    struct drivers *drivers;
    struct driver_key key;
    struct call *call; /* owned, as is the plan */
    struct plan *plan;
    size_t blockers;
    struct err error; /* of one that could not be ended */
};

struct waiting_start *waiting_new(struct drivers *drivers, const struct driver_key *key,
                                  struct call *call, struct plan *plan);
void waiting_free(struct waiting_start *waiting); /* and the call and plan that it still has */

/* --- generations.c: what an earlier life left --- */

int generations_open(struct drivers *drivers, struct err *err);
void generations_close(struct drivers *drivers);

/* Steps through the other generations of KEY's task that are there; *AT is 0 first. */
bool generations_other(const struct drivers *drivers, const struct driver_key *key, size_t *at,
                       struct driver_key *ret_key);

/* Nothing is left of KEY. */
void generations_gone(struct drivers *drivers, const struct driver_key *key);

/* --- calls.c --- */

/* Adds CALL to the run of KEY, which is made if there is none. */
void call_add(struct drivers *drivers, const struct driver_key *key, struct call *call);

/* --- run.c --- */

/* Looks what there is of the run's key and goes on from there.  May free the run. */
void run_attach(struct run *run);

/* A call was added: does for it what the phase allows. */
void run_advance(struct run *run);

/* Tells those who wanted to know that the payload runs. */
void run_tell_running(struct run *run);

/* True as long as no end of what was told to run is known. */
bool run_is_running(const struct run *run);

/* --- birth.c: making shims --- */

/* Has the shim of what PLAN asks for made, which inherits the lock of TASK_FD; RET_FD (owned) is
 * where it will speak. */
int birth_begin(struct run *run, struct plan *plan, int task_fd, int *ret_fd, struct err *err);
void birth_over(struct run *run); /* it has spoken, or nobody listens any more */
void nursery_close(struct drivers *drivers);

/* --- mock.c: tasks without a process --- */

/* What START asks for; NULL and a reason. */
struct mock *mock_new(const struct drivers *drivers, const struct driver_start *start,
                      struct err *err);
void mock_free(struct mock *mock);

/* --- held.c: their runs; all may free the run --- */

/* MOCK (moved) begins, and is in the file TASK_FD from now on. */
int held_begin(struct run *run, struct mock *mock, int task_fd, struct err *err);

/* True if TASK_FD tells of one that began in this boot: it goes on. */
bool held_take_up(struct run *run, int task_fd);

/* Time has passed, or a call was added. */
void held_advance(struct run *run);

/* --- docker/: tasks that are containers of an Engine --- */

/* What START asks for; NULL and a reason. */
struct container *container_new(const struct drivers *drivers, const struct driver_start *start,
                                const struct command *command, struct err *err);
void container_free(struct container *container); /* what it is of the Engine's lives on */

/* CONTAINER (moved) is made ready and started; before the Engine is asked to make it, it is in the
 * task's file.  May free the run. */
void container_begin(struct run *run, struct container *container);

/* True if TASK_FD tells of one: it goes on, or its end is told.  May free the run. */
bool container_take_up(struct run *run, int task_fd);

/* A call was added.  May free the run. */
void container_advance(struct run *run);

bool container_is_running(const struct run *run);

/* Where its processes are, "" if that is not known. */
const char *container_cgroup(const struct run *run);

/* Commands in containers: what is still asked for them is not any more. */
void container_sessions_close(struct drivers *drivers);

/* Images that tasks have used, as an earlier life of the daemon left them; what none uses any more
 * is removed after a while. */
int images_open(struct drivers *drivers, struct err *err);
void images_close(struct drivers *drivers);

/* Archives with images, on their way to an Engine, and who knows credentials and is just asked for
 * them: they are given up. */
void loads_close(struct drivers *drivers);
void helpers_close(struct drivers *drivers);

/* Nothing of KEY needs its image any more, if it had one. */
void images_leave(struct drivers *drivers, const struct driver_key *key);

/* Removes containers of this node that no file tells of, now and again and again. */
void strays_look(struct drivers *drivers);
void strays_close(struct drivers *drivers);

/* --- external/: tasks of drivers that are plugins --- */

/* What START asks for; NULL and a reason. */
struct external *external_new(const struct drivers *drivers, const struct driver_start *start,
                              struct err *err);
void external_free(struct external *external); /* what it is of the plugin's lives on */

/* True if the plugin of driver NAME may still have to say that it is one. */
bool external_may_come(const struct drivers *drivers, const char *name);

/* EXTERNAL (moved) is started; before the plugin is asked to, it is in the task's file.  May free
 * the run. */
void external_begin(struct run *run, struct external *external);

/* True if TASK_FD tells of one: it goes on, or its end is told.  May free the run. */
bool external_take_up(struct run *run, int task_fd);

/* A call was added, or its plugin is there again.  May free the run. */
void external_advance(struct run *run);
void external_plugin_changed(struct run *run, const char *driver);

bool external_is_running(const struct run *run);

/* What it uses, as its driver has said last. */
void external_look(struct run *run, struct driver_stats *ret_stats);

/* A command in the running task of RUN; it is told of as sessions are, later, and never from within
 * the call.  NULL and a reason. */
void *external_session_new(struct run *run, const struct texts *command, bool terminal,
                           const struct driver_session_calls *calls, struct err *err);
extern const struct session_way external_session_way;

/* --- ending.c; all but conclude may free the run --- */

/* The connection is over: waits for the shim's own end. */
void run_leave(struct run *run);

/* No shim and no exit record, or a destroy: kills the cgroup and sees it empty. */
void run_empty(struct run *run);

/* How it ended is known: RECORD, or NULL if it cannot be known any more.  Tells everyone. */
void run_conclude(struct run *run, const struct exit_record *record);

/* What comes after the end: a destroy, or nothing. */
void run_go_on(struct run *run);

/* Ends the shim itself: it neither obeys nor answers. */
void run_kill_shim(struct run *run);

#endif
