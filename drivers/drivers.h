/*
 * drivers: starting, finding, stopping payloads.  Effects of the task machine on lane DRIVER.
 *
 * Every call names its work by a key: alloc, task, generation.  Performing a call again under the
 * same key finds what the first attempt left (file, lock, cgroup, exit record) and gives
 * the same completion; it never makes a second payload.  All calls return at once; exactly one
 * completion follows on the loop, never from inside the call.
 *
 * What exists for a key, in order of creation:
 *   <state>/shim/                      mode 0700
 *     <alloc>.<task>.<generation>      flock held by daemon, then shim, for as long as a shim
 * exists or is being made.  Empty until just before a payload can exist; then one block that holds
 *         started                        identity of shim and payload, boot id
 *         exit                           the exit record, written last, after every other
 *                                        descriptor is closed
 *     <digest of the key>.sock         where the shim answers
 *   <state>/images/<id>                of an Engine, that tasks have used (docker/images.c)
 *   cgroup cairn/<node>/<alloc>.<task>.<generation>   the payload and all it starts; never the shim
 *   cgroup cairn/<node>/shims                         every shim
 * What to run travels in memory (a memfd), so that no secret of an environment lies on a disk.
 *
 * A task of mock_driver has neither shim nor cgroup: its file says what it is (mock/mock.c).  Nor
 * has one of docker: its file says which container of an Engine it is (docker/docker.h).
 *
 * With the lock free, nobody will write for this key any more, and every process of the payload is
 * in its cgroup: an exit record is the truth, an empty file means that nothing was ever started,
 * and anything else that the end cannot be known.  drivers/shim/record.h has the formats.
 *
 * A payload with the right to may leave its cgroup.  Its shim finds it all the same, since orphans
 * become the shim's children: before it ends, it ends them, and says so in the exit record.  Who
 * kills a shim does that first; and after one that somebody else killed, what is left is looked for
 * in the main process's session.
 */
#ifndef CAIRN_DRIVERS_DRIVERS_H
#define CAIRN_DRIVERS_DRIVERS_H

#include "base/base.h"
#include "io/loop.h"
#include "io/proc.h"
#include "spec/spec.h"

#include <stdbool.h>
#include <stdint.h>

struct drivers;
struct plugins;

struct driver_key {
    char alloc[UUID_TEXT_SIZE];
    char task[SPEC_NAME_SIZE];
    char driver[SPEC_DRIVER_SIZE];
    uint32_t generation;
};

/* How a payload ended. */
struct driver_exit {
    bool known;     /* false: neither shim nor exit record; counts as failure */
    int32_t code;   /* exit status, or 128 + signal */
    int32_t signal; /* 0: exited by itself */
    bool oom_killed;
    bool with_host;              /* its supervisor had been told to end, as all are by a shutdown */
    int64_t finished_unix_ns;    /* 0 if unknown */
    char message[ERR_TEXT_SIZE]; /* why, when there is more to say than the code */
};

enum driver_outcome {
    DRIVER_RUNNING,     /* start, recover: the payload runs; identity is set */
    DRIVER_EXITED,      /* start, recover: it ran and ended; exit is set */
    DRIVER_NOT_STARTED, /* recover: its start is known to have failed; error is that of the start */
    DRIVER_LOST,        /* recover: no shim, no exit record, cgroup emptied (or none) */
    DRIVER_DONE,        /* stop, signal, destroy: done, also if there was nothing to do */
    DRIVER_FAILED,      /* error says why; error.recoverable: trying again may help */
};

struct driver_result {
    enum driver_outcome outcome;
    struct proc_identity shim, payload;
    struct driver_exit exit;
    struct err error;
};

typedef void driver_done(void *ctx, const struct driver_result *result);

/* Users of the host that no task of a driver may run as: numbers and ranges as in "0,10-20".  NULL
 * or empty: none; borrowed. */
struct drivers_denied {
    const char *uids, *gids;
};

/* NULL, or why RANGES are none. */
const char *driver_ids_fault(const char *ranges);

/* The node's word on driver exec, or on java. */
struct drivers_exec {
    bool disabled;
    uint64_t allowed_capabilities; /* a bit for each: what a task may have or add */
    struct drivers_denied denied;
    bool shares_pids, shares_ipc; /* with the host, if the task does not say */
    struct spec_pairs root;       /* directories and files of the host (key) and where they are in a
                                     payload's root (value), none below a later one; borrowed */
};

/* The node's word on mock_driver. */
struct drivers_mock {
    bool enabled;
    bool shuts_down; /* it is there no more, that long after the room was opened */
    uint64_t shutdown_after_ms;
};

/* The node's word on docker. */
struct drivers_docker {
    const char *socket;      /* path of the Engine's, NULL or "": none; all texts are borrowed */
    const char *auth_config; /* a file of credentials for registries, "": none */
    const char *auth_helper; /* who is asked for what it has none for, "": nobody */
    bool allow_privileged, volumes_enabled, logs_disabled;
    uint64_t allowed_capabilities;
    const char *allowed_runtimes; /* names, commas between */
    int64_t pids_limit;           /* of each task, 0: none */
    uint64_t pull_timeout_ms, pull_activity_timeout_ms;
    uint64_t usable_mhz; /* of all processors, of which there are CORES; 0: not known */
    uint32_t cores;
    uint64_t pull_report_ms; /* between two words about one that takes long */
    bool collects_images;
    uint64_t image_delay_ms; /* after which an image is removed that no task uses any more */
    struct {
        bool are_left, are_only_said;
        uint64_t period_ms; /* between two looks */
        uint64_t grace_ms;  /* for which one may be as it is */
    } strays;               /* containers of this node that no task has */
};

/* What a task gets that says nothing. */
extern const uint64_t driver_default_capabilities;

/* The bit of a capability by its name ("chown", with "cap_" before it or not, in capitals or not),
 * or all bits for "all"; false if this machine does not know it. */
bool driver_capability(const char *name, uint64_t *ret_set);

struct drivers_config {
    struct loop *loop;                /* borrowed */
    const char *state_dir;            /* absolute; shim/ is made below it */
    const char *node_mark;            /* 8 hex digits: our cgroups' parent */
    const char *cgroup_parent;        /* whose own parent is this; NULL or "": "cairn" */
    const char *shim_path;            /* absolute path of cairn-shim */
    enum cgroup_mode cgroup_mode;     /* of io/proc.h: what the machine offers */
    const char *allowlist, *denylist; /* of drivers, between commas; NULL: all, none; borrowed */
    bool raw_exec_enabled;
    bool raw_exec_no_cgroups;
    struct drivers_denied raw_exec_denied;
    const char
        *raw_exec_denied_env; /* patterns of variables, commas between; NULL: none; borrowed */
    struct drivers_exec exec, java;
    struct drivers_mock mock;
    struct drivers_docker docker;
    struct plugins *plugins; /* which may be drivers; borrowed, NULL: there are none */
    /* What they are told of the node; borrowed, NULL: nothing. */
    const char *node_name, *node_id;
    uint64_t node_mhz; /* of all its processors, 0: not known */
    /* What drivers_list says is something else than it was; NULL: nobody cares. */
    void (*on_change)(void *ctx);
    uint64_t files_soft; /* soft limit of descriptors that shims and payloads get, 0: ours */
    /* A payload that was reported running has ended.  Called once for each, on the loop. */
    void (*on_exit)(void *ctx, const struct driver_key *key, const struct driver_exit *exit);
    /* What users may read of a task while it is being started; NULL: nobody cares. */
    void (*on_said)(void *ctx, const struct driver_key *key, const char *text);
    void *ctx;
};

struct drivers *drivers_new(const struct drivers_config *config, struct err *err);
void drivers_free(struct drivers *drivers); /* payloads and shims live on */

/* --- facts, for the node's fingerprint and job validation --- */

enum { DRIVER_ATTRIBUTES_MAX = 3 };

struct driver_attribute {
    const char *name; /* "driver.java.version" */
    char value[128];
};

struct driver_info {
    const char *name;
    bool asked;    /* all that it takes to know the rest was looked at */
    bool detected; /* it can work here, as far as the node and its configuration go */
    bool healthy;  /* and would, if it was asked now */
    char description[ERR_TEXT_SIZE];
    int64_t since_unix_ns; /* that it is so */
    struct driver_attribute attributes[DRIVER_ATTRIBUTES_MAX];
    size_t attributes_count;
    const struct json_t *more; /* of a plugin's: texts by their names; borrowed, NULL: none */
};

enum { DRIVERS_MAX = 32 }; /* that there are, and more */

/* As they were when they were last looked at, which is done again and again. */
size_t drivers_list(const struct drivers *drivers, struct driver_info *ret_infos, size_t max);
bool driver_is_healthy(const struct drivers *drivers, const char *name);

/* What the driver NAME is to those who make its tasks ready; NULL: there is no such.  That of a
 * plugin is known from when it has said what it is, for as long as the room is open.  Of DRIVERS
 * NULL are our own alone, here and in driver_validate(). */
const struct spec_driver *driver_kind(const struct drivers *drivers, const char *name);

/* Whether NAME is a driver of ours, and can be no plugin's. */
bool driver_is_own(const char *name);

/* The plugin of driver NAME is there, or no more, or says something else than before. */
void drivers_plugin_changed(struct drivers *drivers, const char *name);

/* Checks the driver's config block of TASK (types, unknown keys, required keys), and that it can
 * run in the network of ALLOC; 0 or ERR_* with a sentence a user can act on.  Needs no driver to be
 * running. */
int driver_validate(const struct drivers *drivers, const struct alloc_spec *alloc,
                    const struct task_spec *task, struct err *err);

/* --- the calls --- */

struct driver_start {
    struct driver_key key;
    const struct task_spec *task; /* config and user already interpolated; borrowed for the call */
    const char *alloc_dir;        /* <alloc root>, absolute; what is below it, payloads change */
    const char *task_dir;         /* <alloc root>/<task>; the payload's working directory */
    const char *log_dir;          /* <alloc root>/alloc/logs */
    struct spec_pairs env;        /* the payload's whole environment */
    struct spec_mounts mounts;    /* what of the host it sees besides; of drivers that can */
    struct spec_ports ports;      /* of the alloc, for drivers that publish them */
    const char *network;          /* path of the network namespace it runs in, "" or NULL: ours */
    const char *resolv;           /* its /etc/resolv.conf, if it is isolated; "" or NULL: ours */
    const char *hosts;            /* its /etc/hosts, the same */
    const char *hostname;         /* "" or NULL: ours */
};

/* Finds the shim of this key, or its exit record, else starts one.  RUNNING, EXITED or FAILED.
 * Whatever an earlier life of the daemon left of other generations of the task is ended first, and
 * seen to be gone: an older copy of the journal may name a generation while a later one runs. */
void driver_start(struct drivers *drivers, const struct driver_start *start, driver_done *done,
                  void *ctx);

/* True if a payload may have existed under this key, or still may because a shim is just being
 * made; false: the world is as it was before.  Ask before recover or destroy, which remove the
 * traces. */
bool driver_was_begun(const struct drivers *drivers, const struct driver_key *key);

/* Only looks.  RUNNING (and on_exit will follow), EXITED, NOT_STARTED, or LOST after emptying the
 * cgroup; FAILED: it could not look.
 * A journaled pid or socket counts only if its boot id is this boot's (I-5); an exit record always
 * does. */
void driver_recover(struct drivers *drivers, const struct driver_key *key, driver_done *done,
                    void *ctx);

/* Asks the shim to send SIGNAL_NAME ("" is the driver's default) and, TIMEOUT_MS after the first
 * such request, to kill the cgroup; a request with a shorter rest shortens it.  DONE when the
 * shim has accepted; the end itself comes as on_exit.  Without a shim the cgroup is killed. */
void driver_stop(struct drivers *drivers, const struct driver_key *key, const char *signal_name,
                 uint64_t timeout_ms, driver_done *done, void *ctx);

/* Sends a signal to the main process.  FAILED for unknown signals or when nothing runs.  ONCE, if
 * it is not 0, numbers the reason: sent under the number of the last one, by this or an earlier
 * life of the daemon, it is DONE already. */
void driver_signal(struct drivers *drivers, const struct driver_key *key, const char *signal_name,
                   uint32_t once, driver_done *done, void *ctx);

/* Ends all that is left of the key: kills the cgroup and sees it empty and removed, waits for the
 * shim to be gone, deletes its directory.  DONE or FAILED (then try again later). */
void driver_destroy(struct drivers *drivers, const struct driver_key *key, driver_done *done,
                    void *ctx);

/* --- sessions: a command beside what the task runs --- */

enum {
    DRIVER_SESSION_ARGUMENTS_MAX = SPEC_SCRIPT_ARGUMENTS_MAX,
    DRIVER_SESSION_QUEUE_MAX = 1 << 20
};

struct driver_session;

struct driver_session_calls {
    void (*on_output)(void *ctx, bool is_stderr, const char *bytes, size_t length);
    void (*on_closed)(void *ctx, bool is_stderr); /* no more of this one comes */
    void (*on_taken)(void *ctx); /* nothing is queued, also from within a write; may be NULL */
    /* The last: how the command ended, or with ERR why it was not run.  The session is gone. */
    void (*on_end)(void *ctx, int code, const struct err *err);
    void *ctx;
};

/* Runs ARGUMENTS (the first is the command, found as a task's is) in the running task of START's
 * key, as its payload is: root, namespaces, user, rights, environment; in a cgroup below its own.
 * With TERMINAL it gets one.  All that came of it ends with the session, with the task, and with
 * the daemon.  NULL and a reason; what goes wrong later is told by on_end. */
struct driver_session *driver_session_new(struct drivers *drivers, const struct driver_start *start,
                                          const char *const *arguments, size_t arguments_count,
                                          bool terminal, const struct driver_session_calls *calls,
                                          struct err *err);

/* Ends it; none of its calls comes any more. */
void driver_session_end(struct driver_session *session);

/* Copies input; returns the bytes that wait to be taken.  Of more than DRIVER_SESSION_QUEUE_MAX the
 * rest is lost: wait for on_taken.  After the second nothing more is given: on a terminal that is
 * its character for the end of input. */
size_t driver_session_write(struct driver_session *session, const char *bytes, size_t length);
void driver_session_close_input(struct driver_session *session);

void driver_session_resize(struct driver_session *session, uint16_t rows, uint16_t columns);

/* Output is not read meanwhile: the command waits. */
void driver_session_hold(struct driver_session *session, bool hold);

struct driver_stats {
    struct cgroup_stats usage;
    double cpu_percent; /* of one core, since the previous call for this key */
    int64_t timestamp_unix_ns;
};

/* Statistics of a running payload, read now; ERR_GONE if it is not running. */
int driver_stats(struct drivers *drivers, const struct driver_key *key,
                 struct driver_stats *ret_stats, struct err *err);

/* The same in three steps, for who must not wait for the kernel: begin and end belong to the loop,
 * reading may be done by any thread.  ERR_GONE: the task is not running, or not any more. */
struct driver_look {
    struct driver_key key;
    enum cgroup_mode cgroup_mode;
    char cgroup[CGROUP_NAME_SIZE];
    struct proc_identity payload;
    bool is_held; /* without a process that is known here: STATS are what is known */
    struct driver_stats stats;
    uint64_t at_ms;
    struct err err; /* of reading */
};
int driver_look_begin(struct drivers *drivers, const struct driver_key *key,
                      struct driver_look *ret_look, struct err *err);
void driver_look_read(struct driver_look *look);
int driver_look_end(struct drivers *drivers, const struct driver_look *look,
                    struct driver_stats *ret_stats, struct err *err);

/* ERR_REFUSED if tasks run under our mark whose files lie in another directory that is still there:
 * then this one is a copy, and a sweep would end what is not ours.  Ask before anything else.  What
 * was moved by copying and deleting is told by nothing here. */
int drivers_foreign(const struct drivers *drivers, struct err *err);

/* Tasks that ask for no cores run on CPUS ("0-2,7", "": nothing is known), those that do and have
 * no cgroup anywhere.  RESTRICTED: these are not all that there are.  To be told again by each
 * daemon and whenever it changes. */
void drivers_share_cores(struct drivers *drivers, const char *cpus, bool restricted);

/* Ends whatever carries our mark but is not in the list of KEEP(ctx, key): cgroups, shims and
 * shim directories of finished or unknown work (I-1).  Call once, after every machine has been
 * restored.  DONE when nothing unknown is left. */
void drivers_sweep(struct drivers *drivers, bool (*keep)(void *ctx, const struct driver_key *key),
                   void *keep_ctx, driver_done *done, void *ctx);

#endif
