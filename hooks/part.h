/*
 * What the files of this room share: the hooks themselves, a run of one, and the table's rows.
 *
 * A row's step says where it runs.  HOOK_ON_POOL is for everything that touches the file system: it
 * sees its request only, which therefore carries copies.  HOOK_IN_LINE is the same for what two
 * must not do at once; one that takes long keeps only those waiting.  HOOK_BY_PROCESS is for what
 * may take very long: a step on the pool prepares it and cairn-fetch does it, which can be ended;
 * before that somebody may have to be asked, and another step on the pool may finish it.
 * HOOK_ON_LOOP is for decisions: it may look at the hooks and at the run that was asked for, and
 * must not block.
 */
#ifndef CAIRN_HOOKS_PART_H
#define CAIRN_HOOKS_PART_H

#include "fsm/results.h"
#include "hooks/hooks.h"
#include "io/proc.h"
#include "io/scope.h"
#include "spec/arena.h"

#include <jansson.h>
#include <sys/types.h>

struct hook_request;
struct hooks_run;

enum { HOOKS_USER_SIZE = 256 }; /* a user's name, with its NUL */

struct hooks {
    struct loop *loop;
    const struct hooks_node *node;
    const char *const *environment; /* NULL: none */
    const char *user_denylist;      /* never NULL */
    const struct spec_driver *(*driver)(void *ctx, const char *name);
    void *driver_ctx;
    struct spec_node_volumes volumes;    /* borrowed */
    const struct hooks_network *network; /* NULL: there is none but the host's */
    const struct hooks_plugins *plugins; /* NULL: no task can be one */
    const struct hooks_devices *devices; /* NULL: no task has any */
    const struct hooks_connect *connect; /* NULL: there is no Consul */
    bool asked_kernel, knows_bridges;    /* once it was asked: the kernel does */
    const struct hooks_signer *signer;   /* NULL: nobody signs identities */
    const struct hooks_fetch *fetch;     /* NULL: nothing is */
    const struct hooks_disks *disks;     /* NULL: none is elsewhere */
    bool asks_plugins;                   /* whether networks are as they were made */
    bool privileged;                     /* may mount and give away */
    struct hooks_run *runs;              /* under way */
    struct plugins_look *look;           /* the same; NULL: none */
    struct hooks_run *checks;            /* of networks, for when it is done: */
    void (*begin_checks)(struct hooks *hooks);
    struct hooks_fetches {
        struct hooks_run *waiting; /* for a process, in order */
        unsigned count;            /* of these that there are */
    } fetches, disk_fetches;       /* artifacts do not wait for disks, which may take hours */
    const struct hooks_templates *templates; /* NULL: nobody is told of what changes */
    const char *parser;                      /* what renders them */
    const struct hooks_facts *facts;         /* NULL: templates can ask for nothing but files */
    struct asks *asks;                       /* what they have asked for */
    struct watches *watches;                 /* of templates */
    struct renewals *renewals;               /* of identities */
    struct signing *signings;                /* that are asked for */
    struct hooks_checks *begun_checks;       /* of services */
    struct checker *checker;                 /* runs them; NULL: there are none */
    struct hooks_run *to_begin, **begin_end; /* of allocs, those that wait for room on the pool */
    unsigned begun;                          /* that are there */
    struct disk_asking *disk_askings;        /* where disks are */
    struct hooks_run *line; /* of those the ones that go one by one, in order; the first runs */
    char alloc_dir[];
};

/* One run.  What is behind `alloc_dir` is in the same block of memory. */
struct hook_request {
    const char *alloc_dir, *alloc, *task; /* copies; task is "" for a hook of an alloc */
    const char *user;                     /* a copy, interpolated; "": the daemon's own */
    struct proc_identity payload;         /* of the task, while it may run; else pid 0 */
    bool has_own_root;                    /* the payload: it sees its directories below "/" */
    bool is_image; /* its users are those of its image: none of the host's is its owner */
    /* Of a hook of an alloc: its tasks, and the allocs whose disk it takes over.  Copies, one
     * behind the other, each with its NUL, and an empty one behind them. */
    const char *tasks, *disk_from;
    const char *order;                   /* a copy: what the step was asked for; "": nothing */
    const struct hooks_network *network; /* of the hooks; outlives them */
    const struct hooks_disks *disks;     /* likewise, and the next */
    const char *parser;
    bool privileged, asks_plugins;
    struct results *results;         /* what the step leaves for later starts */
    struct hooks_fetching *fetching; /* what the step prepares for a process */
    struct asks *asks;               /* of templates: what they ask of others */
    struct hooks_rerender *again;    /* of templates while the task runs, NULL: before it does */

    const struct hooks *hooks;    /* on the loop only */
    const struct hook_run *asked; /* on the loop only, while hook_run runs */
};

enum hook_where {
    HOOK_ABSENT,
    HOOK_ON_LOOP,
    HOOK_ON_POOL,
    HOOK_IN_LINE,    /* on the pool, and never two of them at once */
    HOOK_BY_PROCESS, /* on the pool, and then by a process of its own */
    HOOK_BY_ASKING,  /* on the loop, by others, who answer later; and on the pool with the answer */
};

/* Done, and ERR's text is what somebody should know of it all the same. */
enum { HOOK_REMARK = 1 };

/* 0, HOOK_REMARK, or ERR_* with ERR filled, which also says whether trying again may help. */
typedef int hook_function(const struct hook_request *request, struct err *err);

/* On the loop, before a step on the pool: makes the order that it is to be given (owned by the
 * caller, NULL: none), and may tell others what is about to be. */
typedef int hook_begin(const struct hooks *hooks, const struct hook_run *asked, char **ret_order,
                       struct err *err);

/* Of HOOK_BY_ASKING: what was asked for. */
struct hooks_asking {
    /* Nobody is told any more, and nobody answers. */
    void (*forget)(struct hooks_asking *asking);
    /* Nobody is told any more: it is gone when whoever was asked has answered. */
    void (*abandon)(struct hooks_asking *asking);
    /* Instead, where something is done that has to be over by the answer: DONE comes soon. */
    void (*stop)(struct hooks_asking *asking);
};

/* Asks for what REQUEST orders, which is borrowed until DONE, or until it is forgotten or
 * abandoned. DONE comes once, with what the hook leaves, borrowed for the call, or with ERR, which
 * is NULL then; not before this returns. */
typedef void hooks_asked(void *ctx, const struct results *results, const struct err *err);
typedef struct hooks_asking *hook_ask(struct hooks *hooks, const struct hook_request *request,
                                      hooks_asked *done, void *ctx);

struct hook_step {
    enum hook_where where;
    hook_function *run; /* of HOOK_BY_ASKING: with the answer as its results; may be NULL */
    hook_begin *begin;  /* may be NULL */
    hook_ask *ask;      /* of HOOK_BY_ASKING; of HOOK_BY_PROCESS, if it has an order: may be NULL */
    /* Of HOOK_BY_PROCESS, on the pool when that has ended, with ERR as it has left it; or NULL. */
    hook_function *finish;
};

/* What may need a hook; task and driver are NULL for hooks of an alloc. */
struct hook_subject {
    const struct alloc_spec *alloc;
    const struct task_spec *task;
    const struct spec_driver *driver;
    bool takes_disk; /* another alloc's */
};

struct hook_row {
    bool (*needs)(const struct hook_subject *subject);
    struct hook_step steps[PHASE_COUNT];
};

/* The row of a hook; TASK says which of the two tables. */
const struct hook_row *hooks_row(bool task, unsigned hook);

hook_function hooks_alloc_dir_build, hooks_alloc_dir_destroy;
hook_begin hooks_disk_begin;
hook_ask hooks_disk_ask;
void hooks_disk_forget(struct hooks *hooks); /* who has asked where they are is told no more */
hook_function hooks_disk_prepare, hooks_disk_finish;
hook_function hooks_task_dir_build, hooks_task_dir_mend, hooks_task_dir_strip;
hook_function hooks_logs_prepare;
hook_function hooks_validate;
hook_function hooks_volumes;
void hooks_services_detach(struct hooks *hooks); /* whose checks were begun and not ended */
hook_function hooks_services_validate; /* of an alloc, on the loop: they can be made whole */
hook_function hooks_csi_plugin_prepare, hooks_csi_plugin_started, hooks_csi_plugin_ended;
hook_function hooks_csi_plugin_remove;
hook_begin hooks_login_begin, hooks_consul_token_begin, hooks_si_token_begin;
hook_ask hooks_login_ask, hooks_logout_ask, hooks_si_token_ask, hooks_bootstrap_ask;
hook_begin hooks_bootstrap_begin, hooks_native_begin;
hook_function hooks_consul_token_write, hooks_envoy_version, hooks_native;

/* The token of Consul that TASK got by its identity; false: there is none. */
bool hooks_task_token(const struct hooks *hooks, const char *alloc, const char *task,
                      char ret_token[CONNECT_TOKEN_SIZE]);

/* The token by which TASK is its service to Consul, from its secrets; false: there is none. */
bool hooks_read_token(const struct hooks *hooks, const char *alloc, const char *task,
                      char ret_token[CONNECT_TOKEN_SIZE]);

hook_begin hooks_csi_plugin_begin, hooks_csi_plugin_removed;
hook_begin hooks_devices_begin, hooks_identities_begin;
hook_ask hooks_devices_ask, hooks_identities_ask;
hook_function hooks_identities_write, hooks_renew;

/* The mounts that RESULTS, which are valid, ask a driver for, from whichever hook they are.
 * ERR_CORRUPT for damaged ones. */
int hooks_mounts(struct arena *arena, const uint8_t *results, uint32_t bytes,
                 struct spec_mounts *ret_mounts, struct err *err);

hook_function hooks_network_make, hooks_network_join, hooks_network_remove, hooks_network_check;

/* RET_ALLOC is ALLOC with what it says of its network interpolated, in ARENA.  ERR_INVALID: its
 * hostname cannot be one. */
int hooks_network_expand(const struct hooks *hooks, const struct alloc_spec *alloc,
                         struct arena *arena, struct alloc_spec *ret_alloc, struct err *err);

/* True while it is not known what plugins say; it is being found out from then on. */
bool hooks_await_plugins(struct hooks *hooks);

/* Nobody is told any more. */
void hooks_forget_plugins(struct hooks *hooks);

hook_begin hooks_task_dir_begin, hooks_artifacts_begin, hooks_render_begin;
hook_function hooks_artifacts_prepare, hooks_render, hooks_watch, hooks_watch_end;
hook_ask hooks_render_ask;

/* Where the task NAME knows its own directory and the one that its alloc shares to be; "": TASK is
 * its root, in which the other is mounted. */
struct hooks_view {
    const char *name, *task, *shared;
};

/* A path from one of the two on, without ".." in it. */
struct hooks_place {
    const char *path;
    bool shared;
};

/* Where PATH is, as a task knows it, kept in ARENA.  False: in neither. */
bool hooks_place(const struct hooks_view *view, const char *path, struct arena *arena,
                 struct hooks_place *ret_place);

/* What an alloc asks of the network hook. */
hook_begin hooks_network_begin;

/* --- for all --- */

/* Never NULL: a driver that is not known is one without isolation. */
const struct spec_driver *hooks_driver(const struct hooks *hooks, const char *name);

/* The user a task runs as, interpolated. */
int hooks_user(const struct hooks *hooks, const struct hook_run *asked,
               char ret_user[HOOKS_USER_SIZE], struct err *err);

#endif
