/*
 * Inside drivers only: a task of docker, a container of an Engine.
 *
 * The Engine is spoken with by HTTP over its UNIX socket.  It is the truth of what runs and of how
 * it ended; the daemon holds no process for a container and need not be there.  What is found again
 * by what:
 *
 *   the file of the task   written before the Engine is asked to make anything: a payload may exist
 *   the container's name   <task>-<alloc>.<generation>
 *   its labels             whose it is: this node's mark, alloc, task, generation
 *
 * A task in a network of its alloc has a second container, whose name and labels are the same with
 * an addition: network.c.
 *
 * Making and starting are two requests; of each it is looked afterwards what came of it, so that
 * one whose answer is lost is found done or undone.  An Engine that does not answer is asked again,
 * as long as it takes: it says nothing about its containers.
 *
 * Files: container.c the life, image.c looking for its image, pull.c pulling one, progress.c
 * how far that is, load.c loading one, images.c which are used and which are removed, create.c what
 * is asked for, credentials.c and helper.c for
 * whom, logs.c output, state.c what is known of one, record.c what
 * is written down, engine.c requests and what is read of their answers, frames.c output as it
 * comes, session.c commands in it, stray.c what nobody knows, config.c the driver and what a job
 * may say, probe.c whether there is an Engine.
 */
#ifndef CAIRN_DRIVERS_DOCKER_DOCKER_H
#define CAIRN_DRIVERS_DOCKER_DOCKER_H

#include "drivers/part.h"
#include "io/http.h"

#include <jansson.h>

enum {
    CONTAINER_NAME_SIZE = SPEC_NAME_SIZE + UUID_TEXT_SIZE + 16,
    SHARER_NAME_SIZE = CONTAINER_NAME_SIZE + 8,
    IMAGE_NAME_SIZE = 512,
    IMAGE_ID_SIZE = 128,
    HELPER_NAME_SIZE = 64,
    NAMESPACE_PATH_SIZE = 256,
    LOG_STREAMS = 2, /* standard output and error */

    CPU_PERIOD_US = 100000, /* what the kernel reckons by, if nobody says anything else */
    CPU_PERIOD_LEAST_US = 1000,
    CPU_PERIOD_MOST_US = 1000000,

    ENGINE_BOUND_MS = 120000, /* a request that makes or removes; storage may be slow */
    ENGINE_LASTS_MS = 24 * 3600 * 1000,
    ENGINE_ANSWER_MAX = 8 << 20,
};

/* How far the output of a container has been written: of all messages of the Engine's log, in its
 * order, that are not older than SINCE the first COUNT.  Two streams may come in another order than
 * that of their times, so that SINCE lies some seconds behind the newest; NEXT takes its place.
 * This is kept in step with the log files: what they have beyond it was written just before a
 * crash, and is cut off and written again. */
struct log_position {
    int64_t since_ns; /* of the Engine's clock, 0: the beginning */
    uint64_t count;
    int64_t next_ns;
    uint64_t next_count;
    int64_t newest_ns;
    uint64_t newest_count;                           /* of messages with just that time */
    uint64_t number[LOG_STREAMS], size[LOG_STREAMS]; /* of the file that each goes to */
};

/* In the task's file, in place of the record of what a shim has started. */
struct container_record {
    struct record_head head;
    int64_t begun_unix_ns;
    char boot_id[40];
    uint32_t payload_pid; /* the container's first process, 0: never seen to run */
    uint32_t once;        /* number of the last signal that was sent: driver_signal */
    uint64_t payload_ticks;
    uint64_t stop_ms, kill_ms; /* CLOCK_BOOTTIME of this boot, 0: nobody has asked for it */
    int32_t stop_signal;       /* 0: what the image says */
    uint32_t stop_sent;
    uint64_t log_bytes_max, log_files_max; /* 0 bytes: output is not collected */
    struct log_position logs;
    char alloc_dir[512];
    uint32_t has_network; /* there may be a container that shares its network with this one */
    uint32_t zero;
    char image[IMAGE_ID_SIZE]; /* what it is of, "": made by one that did not say */
};

_Static_assert(sizeof(struct container_record) == 856, "part of a format on disk");
_Static_assert(sizeof(struct container_record) <= TASK_RECORD_SIZE, "it has its place");

enum container_step {
    STEP_IMAGE,   /* is the image there, or just being removed? */
    STEP_BRING,   /* it is not, and is pulled or loaded */
    STEP_NETWORK, /* the container that shares its network is made, started, and has it */
    STEP_CREATE,  /* from here on the container may exist */
    STEP_START,   /* from here on it may run */
    STEP_LOOK,    /* how is it? */
    STEP_WAIT,    /* it runs */
    STEP_DRAIN,   /* it has ended; its last output is fetched */
    STEP_REMOVE,  /* what is left of it goes */
    STEP_LATER,   /* the Engine could not be asked; it is asked again */
};

/* What the Engine says of a container. */
struct container_state {
    bool ours; /* it has this key's labels */
    bool runs, was_started, oom_killed, terminal;
    pid_t pid;
    int64_t code, finished_unix_ns;
    int stop_signal; /* of the image, 0: none */
    char id[80], error[ERR_TEXT_SIZE];
};

struct logs; /* logs.c */

struct container {
    struct run *run; /* borrowed */
    struct container_record record;
    bool recorded; /* it is in the task's file */
    char name[CONTAINER_NAME_SIZE];
    enum container_step step;
    struct http_request *request; /* that the step waits for */

    json_t *wanted; /* what to make; owned, secret; NULL: made, or found */
    json_t *sharer; /* and what shares its network with that; owned; NULL: nothing does */
    char namespace[NAMESPACE_PATH_SIZE]; /* of that network, "": none */
    bool is_removed;                     /* and what shares its network with it goes now */
    char image[IMAGE_NAME_SIZE];
    char *auth; /* the header that shows who we are to a registry; owned, secret; NULL: nobody */
    char helper[HELPER_NAME_SIZE]; /* who knows it and is to be asked; "": nobody */
    bool auth_soft_fail;           /* what cannot be known is done without */
    bool force_pull, pulled;
    uint64_t pull_timeout_ms;
    char load[IMAGE_NAME_SIZE]; /* an archive with it, beneath alloc_dir; "": none */
    struct container *wait_next,
        **wait_link;             /* of those that wait for the same; NULL: it does not */
    void (*wait_left)(void *of); /* for that, if it is told */
    void *wait_of;
    void (*wait_over)(struct container *container, const struct err *err);
    struct err failed; /* of pulling, making or starting, as the Engine says it */

    bool told_running; /* that it runs was told to whoever asked */
    bool has_started;  /* the Engine has said so */
    bool start_asked;  /* and what failed, if it has not started, is that */
    bool is_swept;     /* of what commands of an earlier life left in it */
    bool end_seen;     /* the Engine has told of the end by itself */
    bool has_ended;    /* how is in `end` */
    struct container_state state;
    struct exit_record end;
    char cgroup[CGROUP_NAME_SIZE];
    struct io_timer kill;           /* what is to be sent next */
    struct http_request *signaling; /* a stop, a kill or a signal, one after another */
    struct call *signal_call;       /* that it is for, NULL: a stop; owned */
    bool killed;                    /* the last one that was sent is SIGKILL */
    struct logs *logs;              /* NULL: not followed */
};

/* --- engine.c --- */

struct engine_ask {
    const char *method;
    const char *path;   /* with the query, as it is written */
    const json_t *body; /* NULL: none */
    const char *header; /* one more, or NULL */
    bool lasts, secret;
    uint64_t timeout_ms; /* 0: ENGINE_BOUND_MS */
    bool (*on_data)(void *ctx, const char *bytes, size_t length);
    void (*cb)(void *ctx, const struct http_reply *reply);
    void *ctx;
};

/* NULL and a reason: nobody can be asked here. */
struct http_request *engine_ask(const struct drivers *drivers, const struct engine_ask *ask,
                                struct err *err);

/* Why REPLY is none that was hoped for: the Engine's own words, or what became of the request. */
int engine_fault(const struct http_reply *reply, struct err *err);

/* Reads the answer to "how is it?"; false: it is no such answer. */
bool engine_read_state(const struct http_reply *reply, const char *node_mark,
                       const struct driver_key *key, struct container_state *ret_state);

/* TEXT as part of a path or query; owned by the caller. */
char *engine_quote(const char *text);

/* A time as the Engine writes it, "2026-11-28T06:14:38.784738047Z"; false: it is none.  Of the
 * zero time of Go it is 0. */
bool engine_time(const char *text, size_t length, int64_t *ret_unix_ns);

void container_name(const struct driver_key *key, char to[CONTAINER_NAME_SIZE]);

/* The labels of KEY, and back; a new reference. */
json_t *container_labels(const char *node_mark, const struct driver_key *key);
bool container_key(const json_t *labels, const char *node_mark, struct driver_key *ret_key);

/* The same of what shares its network with the container of KEY. */
void sharer_name(const struct driver_key *key, char to[SHARER_NAME_SIZE]);
json_t *sharer_labels(const char *node_mark, const struct driver_key *key);
bool labels_are_sharers(const json_t *labels);

/* --- create.c --- */

/* What the Engine is asked to make for START; NULL and a reason. */
json_t *create_body(const struct drivers *drivers, const struct driver_start *start,
                    const struct command *command, struct err *err);

/* The time that a task of MHZ may have of all processors, CORES, which can be given USABLE_MHZ,
 * within PERIOD_US. */
int64_t cpu_quota_us(uint64_t mhz, uint64_t usable_mhz, uint32_t cores, int64_t period_us);

/* The same for what shares the network of START with it, NULL if nothing has to: the task is in the
 * host's network, or in one of the Engine's. */
json_t *create_sharer(const struct drivers *drivers, const struct driver_start *start,
                      const struct command *command);

/* --- config.c --- */

/* The text NAME of a block, "" if it says none; and numbers and truths, which may be texts. */
const char *block_text(const json_t *block, const char *name);
int64_t block_number(const json_t *block, const char *name);
bool block_is(const json_t *block, const char *name);

/* The inner block NAME of a block, which HCL has in a list; NULL: none. */
const json_t *block_inner(const json_t *block, const char *name);

/* --- probe.c --- */

bool docker_look(const struct drivers *drivers, char ret_why[ERR_TEXT_SIZE]);
void docker_probe(const struct drivers_config *config, struct driver_probed *ret_probed);

/* --- credentials.c --- */

/* REPOSITORY and TAG ("" with a digest) of IMAGE; false: it is no name of one. */
bool image_split(const char *image, char repository[IMAGE_NAME_SIZE], char tag[IMAGE_NAME_SIZE]);

/* The header with the credentials that COMMAND has, or else the node for the registry of IMAGE;
 * owned by the caller, NULL: none, or those that HELPER knows, "": nobody does.  ERR_* where there
 * should be some. */
int image_auth(const struct drivers *drivers, const struct command *command, char **ret_header,
               char helper[HELPER_NAME_SIZE], struct err *err);

/* The same header of what a helper says for REGISTRY, NULL: it says no credentials. */
char *helper_header(const char *answer, const char *registry);

/* What a helper is asked for to pull IMAGE. */
void helper_registry(const char *image, char to[IMAGE_NAME_SIZE]);

/* --- helper.c --- */

/* Asks the container's helper, which is waited for. */
void helper_begin(struct container *container);

/* --- image.c --- */

/* The next step from STEP_IMAGE on.  May free the run. */
void image_look(struct container *container);

/* --- pull.c --- */

/* Pulls the container's image, or waits for whoever does. */
void pull_begin(struct container *container);

/* --- load.c --- */

/* The Engine is given the archive that the container's task has brought, which is waited for. */
void load_begin(struct container *container);

/* 0, or why ANSWER of LENGTH bytes, a NUL behind them, is none that was hoped for. */
int load_fault(const char *answer, size_t length, struct err *err);

/* --- progress.c --- */

#define PULL_BYTES_MAX ((int64_t)1 << 50)

enum {
    PULL_LAYERS_MAX = 128, /* as many as an Engine takes */
    PULL_TEXT_SIZE = 256,
};

enum layer_step {
    LAYER_UNKNOWN, /* nothing that counts was said of it */
    LAYER_WAITS,
    LAYER_COMES,
    LAYER_THERE,
};

/* Zeroed at the beginning. */
struct pull_progress {
    struct pull_layer {
        char id[32];
        enum layer_step step;
        int64_t bytes, bytes_of;
    } layers[PULL_LAYERS_MAX];
    size_t count;
};

/* A LINE of the Engine's. */
void progress_take(struct pull_progress *progress, const json_t *line);

/* How far it has come within ELAPSED_MS, in Nomad's words. */
void progress_text(const struct pull_progress *progress, uint64_t elapsed_ms,
                   char to[PULL_TEXT_SIZE]);

/* --- images.c --- */

/* False: an Engine calls no image so. */
bool image_is_id(const char *id);

/* The container is to be of its record's image, which is kept until images_leave().  ERR_AGAIN: it
 * is being removed, which is waited for; or `failed` says why not. */
int images_take(struct container *container);

/* --- container.c, for the files beside it; all may free the run --- */

void container_make(struct container *container);
void container_fail(struct container *container); /* a start, as `failed` says */
void container_drained(struct container *container);

/* Asks what the step waits for, MORE of what the container NAME is; if nobody can be asked, later.
 */
void container_ask(struct container *container, enum container_step step, const char *method,
                   const char *name, const char *more, const json_t *body,
                   void (*cb)(void *, const struct http_reply *));
void container_create(struct container *container); /* what it may need is there */

/* --- network.c --- */

/* Makes what shares the network that the container is to be in, then container_create. */
void network_share(struct container *container);

/* --- record.c --- */

/* Into the task's file: its record as it is now. */
void container_put(struct container *container);

/* --- state.c --- */

/* It is one of those of LIST, which wait for OF, until that is over, or it waits no more: LEFT
 * (NULL: nobody cares) is told then. */
void container_wait(struct container *container, struct container **list, void (*left)(void *of),
                    void *of);
void container_wait_no_more(struct container *container);

/* What it waits for is over: its wait_over is told, with the ERR that came of it, or none.  May
 * free the run. */
void container_wait_ends(struct container *container, const struct err *err);

/* What the step waits for comes no more. */
void container_forget_request(struct container *container);

/* Where the kernel says that PID is, of the hierarchy by which memory is counted; "": nowhere. */
void container_cgroup_of(const struct drivers *drivers, pid_t pid, char to[CGROUP_NAME_SIZE]);

/* --- frames.c --- */

enum { FRAME_HEAD = 8, FRAME_MAX = 1 << 20 }; /* the Engine cuts what it is given at 16 KiB */

/* Zeroed at the beginning. */
struct frames {
    unsigned char head[FRAME_HEAD]; /* stream, 3 zeros, length in 4 bytes, the highest first */
    size_t head_used, left;         /* of the frame that comes */
    size_t stream;
};

struct frame_part {
    size_t stream; /* 0: standard output, 1: error */
    const char *bytes;
    size_t length;
    bool is_last; /* of its frame */
};

enum frames_found { FRAMES_PART, FRAMES_WAIT, FRAMES_STRANGE };

/* The next part of a frame that BYTES of LENGTH, which move on, begin with; WAIT: they are used up;
 * STRANGE: these are no frames. */
enum frames_found frames_next(struct frames *frames, const char **bytes, size_t *length,
                              struct frame_part *ret_part);

/* --- session.c --- */

/* A command in the container of RUN, which runs; it is run as the container is: root, namespaces,
 * user, rights, environment.  CALLS come from the loop, on_end as the last.  NULL and a reason. */
struct container_session *container_session_new(struct run *run, const struct texts *command,
                                                bool terminal,
                                                const struct driver_session_calls *calls,
                                                struct err *err);
extern const struct session_way container_session_way;

/* Ends what commands of an earlier life of the daemon left in the container of RUN, as REPLY, in
 * which the Engine says how that is, names them. */
void container_sessions_sweep(struct run *run, const struct http_reply *reply);

/* --- logs.c --- */

/* Where the output of a container that has had none begins. */
void logs_find_first(struct container *container);

/* Follows it from the position on; ON_DRAINED says that all has come, of one that has ended. */
void logs_follow(struct container *container, void (*on_drained)(struct container *container));
void logs_close(struct container *container);
bool logs_are_open(const struct container *container);

#endif
