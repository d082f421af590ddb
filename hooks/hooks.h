/*
 * hooks: what surrounds a task.  Effects of the alloc and task machines on lane HOOK.
 *
 * Each hook is a row of a table {name, needs, run for each phase}; the rows are numbered as the
 * lists ALLOC_HOOKS and TASK_HOOKS, by which the machines count and say which is next.  Every run
 * is idempotent: performing it again finds what the first attempt left.  What a hook made and later
 * starts need goes into its outcome's results (fsm/results.h) and so into the journal; nothing a
 * hook knows lives only in memory.
 *
 * The environment and the interpolation of a task are here too (client-behaviour 5.1, 5.2).
 * Everything is called on the loop's thread.
 */
#ifndef CAIRN_HOOKS_HOOKS_H
#define CAIRN_HOOKS_HOOKS_H

#include "base/base.h"
#include "fsm/alloc.h"
#include "fsm/task.h"
#include "io/loop.h"
#include "io/proc.h"
#include "spec/question.h"
#include "spec/spec.h"

#include <jansson.h>

struct hooks;

/* What tasks may know of the node.  All borrowed for the life of the hooks. */
struct hooks_node {
    const char *id, *name, *datacenter, *region, *class, *pool;
    struct spec_pairs attributes; /* "kernel.name" -> "linux", without the "attr." */
    struct spec_pairs meta;
};

/* Networks of allocs that have one of their own.  All borrowed until the loop is freed, and not
 * changed.  Texts are never NULL. */
struct hooks_network {
    const char *state_dir; /* absolute: what has to be undone is written down in it */
    const char *run_dir;   /* absolute: namespaces are in it; a reboot has to empty it */
    const char *mark;      /* of the node, in the names of its namespaces */
    const char *cni_path, *cni_config_dir;
    const char *bridge_name, *bridge_subnet, *bridge_subnet_ipv6;
    bool bridge_hairpin;
    bool maps_host_ip; /* ports are mapped on their address, and not on all of the node */
};

/* Tasks that are storage plugins: who knows these is told, and says where they have directories. */
struct hooks_plugins {
    void *ctx;
    /* What its volumes are below, NULL: not asked, and where its socket is; of PATH_SIZE each. */
    int (*place)(void *ctx, const char *alloc, const struct spec_csi_plugin *plugin, char *ret_root,
                 char *ret_directory, struct err *err);
    void (*started)(void *ctx, const struct alloc_spec *alloc, const struct task_spec *task);
    void (*ended)(void *ctx, const char *alloc, const char *task); /* it may start again */
    void (*removed)(void *ctx, const char *alloc, const char *task);
};

/* ERR is NULL if there is a reservation, which is borrowed for the call. */
typedef void hooks_devices_reserved(void *ctx, const struct spec_reservation *reservation,
                                    const struct err *err);

/* Who knows what a task gets with its devices. */
struct hooks_devices {
    void *ctx;
    /* Asks for DEVICE: its Vendor, Type, Name and DeviceIDs, as they were given.  DONE comes
     * exactly once, maybe before the call returns, unless CTX is gone before. */
    void (*reserve)(void *ctx, const json_t *device, hooks_devices_reserved *done, void *done_ctx);
};

/* Who has identities signed. */
struct hooks_signer {
    void *ctx;
    /* Asks once for tokens of COUNT bearers, one at least, of ALLOC, whose create_index is INDEX.
     * CB comes exactly once, maybe before the call returns, unless CTX is gone before. */
    void (*sign)(void *ctx, const char *alloc, uint64_t index, const struct spec_bearer *bearers,
                 size_t count, spec_signed_cb *cb, void *cb_ctx);
};

enum { CONNECT_TOKEN_SIZE = 256 }; /* of Consul, with its NUL */

/* TOKEN is NULL with an ERR, or if there is none to be had; borrowed for the call. */
typedef void hooks_derived(void *ctx, const char *token, const struct err *err);

/* By what a token of Consul is had; borrowed for the call. */
struct hooks_login {
    const char *jwt;    /* the token of an identity: a secret */
    bool of_service;    /* else of a task: each has its own method at Consul */
    const char *bearer; /* its name */
};

/* What tasks in the mesh of Consul are told of its agent, and who knows more.  All borrowed for the
 * life of the hooks; texts are never NULL, "": not given. */
struct hooks_connect {
    void *ctx;
    const char *address; /* of HTTP, as Consul's own tools take it */
    const char *token;   /* the daemon's: a secret */
    bool ssl, verifies;
    const char *ca_file, *cert_file, *key_file, *grpc_ca_file;
    bool shares_files; /* tasks that do all themselves get these three */
    /* The version of Envoy that it prefers; NULL: nobody knows yet. */
    const char *(*envoy)(void *ctx);
    /* Asks for a token by which TASK of ALLOC is its service.  DONE comes exactly once, maybe
     * before the call returns, unless CTX is gone before. */
    void (*derive)(void *ctx, const char *alloc, const char *task, hooks_derived *done,
                   void *done_ctx);
    /* Asks Consul for a token by LOGIN, which is good for something when it comes; and to make one
     * good for nothing, which needs no TOKEN in the answer.  DONE as of derive. */
    void (*login)(void *ctx, const struct hooks_login *login, hooks_derived *done, void *done_ctx);
    void (*logout)(void *ctx, const char *token, hooks_derived *done, void *done_ctx);
};

/* Who knows where disks are that are taken over from other nodes, and what these are shown.  All
 * borrowed until the loop is freed, and not changed; files "": none. */
struct hooks_disks {
    void *ctx;
    /* Looks for that of PREVIOUS, which ALLOC takes over.  CB comes exactly once, maybe before the
     * call returns, unless CTX is gone before. */
    void (*find)(void *ctx, const char *alloc, const char *previous, spec_disk_cb *cb,
                 void *cb_ctx);
    const char *region;
    const char *ca_file, *cert_file, *key_file;
};

/* How artifacts are fetched.  All borrowed for the life of the hooks. */
struct hooks_fetch {
    const char *program;   /* absolute path of cairn-fetch */
    const char *variables; /* of the daemon's environment that it gets: names, commas between */
    uint64_t timeout_ms;   /* for one */
    uint64_t bytes_max;    /* of one */
    uint64_t unpacked_bytes_max, entries_max; /* of what one archive holds */
};

/* Who is told of templates of a task that runs, and of its new tokens.  Borrowed for the life of
 * the hooks. */
struct hooks_templates {
    void *ctx;
    /* They say something else than when the hook (template, identity) was last done or this was
     * last called, and are written: RENDERED has the results that take the place of those.  With a
     * code they could not be rendered, or signed, and all is as it was.  Borrowed for the call. */
    void (*changed)(void *ctx, const char *alloc, const char *task,
                    const struct hook_outcome *rendered);
    /* Before a start: what they wait for, in one sentence.  Borrowed for the call. */
    void (*waits)(void *ctx, const char *alloc, const char *task, const char *text);
};

/* Who knows what templates ask of others than files.  All of it is on the loop; borrowed for the
 * life of the hooks, whose end nobody is told of. */
struct hooks_facts {
    void *ctx;
    bool alone;                        /* the node has no servers */
    uint64_t settle_ms, settle_max_ms; /* what is news is left alone for so long, unless a template
                                          says for how long */
    /* Wants the answer to QUESTION, which is borrowed until it is forgotten; the token of who asks
     * may be another one by then.  NEWS is told when the answer may be another than before, or
     * none, never from inside. */
    void *(*want)(void *ctx, const struct spec_question *question, void (*news)(void *news_ctx),
                  void *news_ctx);
    /* What WISH came true with, as JSON (spec/question.h), borrowed until the loop goes on.  NULL:
     * nothing yet, or ERR says why there is nothing, and whether there may be something later. */
    const char *(*known)(void *ctx, const void *wish, struct err *err);
    void (*forget)(void *ctx, void *wish);
};

struct hooks_config {
    struct loop *loop;
    const char *alloc_dir; /* absolute; one directory for each alloc below it; copied */
    const struct hooks_node *node;
    const char *const *environment; /* the daemon's, NULL-terminated; NULL: tasks get none of it.
                                       Nomad's denylist is applied here */
    const char *user_denylist;      /* for drivers that isolate: names, commas between; NULL: none;
                                     * borrowed */
    const struct spec_driver *(*driver)(void *ctx, const char *name); /* NULL: there is no such */
    void *driver_ctx;
    struct spec_node_volumes volumes;        /* of the node; borrowed */
    const struct hooks_network *network;     /* NULL: no alloc has a network of its own */
    const struct hooks_plugins *plugins;     /* borrowed; NULL: no task can be one */
    const struct hooks_devices *devices;     /* borrowed; NULL: no task has any */
    const struct hooks_signer *signer;       /* borrowed; NULL: no task has named identities */
    const struct hooks_connect *connect;     /* borrowed; NULL: there is no Consul */
    const struct hooks_fetch *fetch;         /* NULL: no task has artifacts */
    const struct hooks_disks *disks;         /* NULL: no disk comes from another node */
    const struct hooks_templates *templates; /* NULL: templates are rendered before starts only */
    const char *parser; /* absolute path of cairn-parse, which renders them; borrowed until the loop
                           is freed; NULL: no task has any */
    const struct hooks_facts *facts; /* borrowed; NULL: templates can ask for files alone */
};

/* Makes alloc_dir (0711) if it is missing.  NULL and ERR filled when it cannot be made (ERR_*), is
 * not absolute (ERR_INVALID) or too long for the paths below (ERR_LIMIT). */
struct hooks *hooks_new(const struct hooks_config *config, struct err *err);

/* Runs under way are finished by the pool, but their DONE is not called any more. */
void hooks_free(struct hooks *hooks);

/* --- which hooks a spec needs: the masks of all phases are set, nothing else.  ASSIGN says already
 * whose disk the alloc takes over; DRIVER is the task's, NULL: there is no such --- */

void hooks_plan_alloc(const struct alloc_spec *alloc, struct alloc_assign *assign);
void hooks_plan_task(const struct alloc_spec *alloc, const struct task_spec *task,
                     const struct spec_driver *driver, struct task_define *define);

/* --- running one --- */

/* OUTCOME is borrowed for the call; its text is one sentence without a secret: why it failed, or,
 * with code 0, what went on without. */
typedef void hook_done(void *ctx, const struct hook_outcome *outcome);

/* Where a volume of the group is that is not of the node's configuration: mounted by a storage
 * plugin, or of the host. */
struct hook_claim {
    const char *volume; /* its name in the group */
    const char *path;   /* absolute; NULL: it is known, and not to be had */
};

struct hook_run {
    enum hook_phase phase;
    uint8_t hook;                   /* enum alloc_hook or task_hook; HOOK_NONE is always done */
    const struct alloc_spec *alloc; /* teardown needs no more of it than the id ... */
    const struct task_spec *task;   /* ... and of this than the name; NULL for hooks of an alloc */
    /* Allocs that have ended, NULL-terminated: whoever of them has the disk that this one takes
     * over, the last first; or NULL. */
    const char *const *disk_from;
    const char *disk_elsewhere;      /* the last of these, if it is none of this node's; or NULL */
    const struct hook_claim *claims; /* of the alloc, for hook volumes of a task */
    size_t claims_count;
    const uint8_t *results; /* what earlier runs of the task's hooks left */
    uint32_t results_bytes;
};

/* Returns at once; DONE follows on the loop, exactly once, never from inside the call.  RUN and all
 * it points to are borrowed for the call.  A failure says whether trying again may help: a full
 * disk and every teardown may, a lost alloc directory (ERR_GONE) never. */
void hook_run(struct hooks *hooks, const struct hook_run *run, hook_done *done, void *ctx);

/* Nobody waits any more for the hook of this task ("": of the alloc itself) that is under way: if
 * it is one that can be ended, it fails soon. */
void hooks_abort(struct hooks *hooks, const char *alloc_id, const char *task);

/* Calls CB for each alloc that has a network here, or what is left of one; some come more than
 * once. */
int hooks_each_network(const struct hooks *hooks, void (*cb)(void *ctx, const char *alloc_id),
                       void *ctx, struct err *err);

/* What the network of its alloc was when a task was started that has RESULTS, in the words of
 * Nomad's API (AllocNetworkStatus): a new reference, NULL: it is the host's. */
json_t *hooks_network_status(const uint8_t *results, uint32_t bytes);

/* Asks the CNI plugins that are here for their versions, which takes a while and the processors: in
 * AFTER_MS, and so much later as long as there is what goes BEFORE them (NULL: nothing), a limited
 * time; or when somebody waits for it.  FOUND is told once, on the loop, all that have one, by
 * their names; VERSIONS is borrowed for the call. */
typedef void hooks_plugins_found(void *ctx, const struct spec_pairs *versions);
typedef bool hooks_before_plugins(void *ctx);
void hooks_find_plugins(struct hooks *hooks, uint64_t after_ms, hooks_before_plugins *before,
                        hooks_plugins_found *found, void *ctx);

/* Looks at the network of an alloc, in which tasks may run that nobody will start, and mends it;
 * the outcome's text tells what was found.  ERR_GONE: it is lost, or cannot be mended, to all but
 * who starts again; any other failure: nobody knows.  DONE as hook_run's.  Plugins are asked, as in
 * Nomad, if the bridge among them is of a version that answers well; while that is being found out
 * it waits. */
void hooks_check_network(struct hooks *hooks, const char *alloc_id, hook_done *done, void *ctx);

/* True if groups with networks of MODE can run here: the kernel, the plugins and the files that it
 * takes are there.  Looks at files. */
bool hooks_has_network(struct hooks *hooks, const char *mode);

/* The modes of networks that somebody has to know of to want them, "bridge" and "cni/NAME", as of
 * now: a new reference.  Looks at files. */
json_t *hooks_network_modes(struct hooks *hooks);

/* True if something is mounted where the secrets of this task belong, as the kernel says at once,
 * or none ever are. */
bool hooks_has_secrets(const struct hooks *hooks, const char *alloc_id, const char *task);

/* Opens where they belong, which is its user's to change: no link is followed on the way. */
int hooks_open_secrets(const struct hooks *hooks, const char *alloc_id, const char *task,
                       int *ret_fd, struct err *err);

/* Looks, before a payload is looked for that ran when the daemon ended, whether the secrets of its
 * task are where they were, and mounts them again if they are not: those that the payload sees, or
 * new ones without anything in them.  The outcome's text tells what was found, if that was not as
 * it should be.  DONE as hook_run's. */
void hooks_mend_secrets(struct hooks *hooks, const struct alloc_spec *alloc,
                        const struct task_spec *task, const struct proc_identity *payload,
                        hook_done *done, void *ctx);

/* --- paths of an alloc, absolute, on the host --- */

struct hooks_paths {
    char root[512];    /* <alloc_dir>/<alloc> */
    char shared[512];  /* .../alloc */
    char logs[512];    /* .../alloc/logs */
    char task[512];    /* .../<task> */
    char local[512];   /* .../<task>/local */
    char secrets[512]; /* .../<task>/secrets */
};

/* TASK may be NULL: then the paths of a task are "".  ERR_INVALID for an id or a name that cannot
 * be a directory's (a task "alloc" included), ERR_LIMIT. */
int hooks_paths(const struct hooks *hooks, const char *alloc_id, const char *task,
                struct hooks_paths *ret_paths, struct err *err);

/* --- the disk of an alloc that has ended, for another node --- */

struct hooks_packing {
    pid_t pid;
    int pidfd; /* readable when it has ended */
    int bytes; /* a tar; nothing blocks, and its end is that of what has been packed */
};

/* Begins to pack it, with those of its tasks; it cannot outlive the daemon. */
int hooks_disk_pack(const struct hooks *hooks, const char *alloc_id, const char *const *tasks,
                    size_t tasks_count, struct hooks_packing *ret_packing, struct err *err);

/* Nobody wants it any more; its end is to be waited for. */
void hooks_packing_stop(const struct hooks_packing *packing);

/* False: it has not ended.  Else RET_CODE tells whether all that came is all: 0, ERR_GONE: there is
 * no such directory, nothing came; ERR_IO: it broke off.  It is over then. */
bool hooks_packing_end(struct hooks_packing *packing, bool waits, int *ret_code);

/* --- the mesh of Consul --- */

/* Sockets in alloc/tmp of an alloc with a network of its own, by which its tasks reach the agent of
 * Consul, for who relays them. */
#define HOOKS_GRPC_SOCKET "consul_grpc.sock"
#define HOOKS_HTTP_SOCKET "consul_http.sock"
bool hooks_wants_grpc(const struct alloc_spec *alloc);
bool hooks_wants_http(const struct alloc_spec *alloc);

/* The token of Consul by which SERVICE of an alloc is registered, a secret; false: it has none of
 * its own.  Reads a file. */
bool hooks_service_token(const struct hooks *hooks, const char *alloc_id,
                         const struct spec_service *service, char ret_token[CONNECT_TOKEN_SIZE]);

/* Opens the directory alloc/tmp, which is anybody's to change: no link is followed on the way. */
int hooks_open_shared_tmp(const struct hooks *hooks, const char *alloc_id, int *ret_fd,
                          struct err *err);

/* --- environment and interpolation --- */

/* A task as its driver gets it: environment complete, config and env interpolated.  Owned by the
 * caller with all it points to; borrows nothing. */
struct hooks_launch {
    struct spec_pairs env;     /* ordered by name, each once: the same input gives the same bytes */
    struct task_spec task;     /* the spec with config_json and user interpolated; its env is env */
    struct spec_mounts mounts; /* that hooks have asked for, parents first */
    const char *network;       /* path of the namespace that it runs in, "": the host's */
    const char *resolv;        /* path of the resolv.conf that it gets, "": the host's */
    const char *hosts;         /* the same of /etc/hosts */
    const char *hostname;      /* that it has in its network, "": the host's */
};

/* ERR_INVALID (never recoverable) when the config names an unknown variable or holds an expression
 * that is none; the text is one for Nomad's event Failed Validation and tells where.  ERR_LIMIT
 * when something becomes too long, ERR_CORRUPT for damaged RESULTS.  RET_LAUNCH is untouched then.
 * No text tells a value. */
int hooks_prepare(const struct hooks *hooks, const struct alloc_spec *alloc,
                  const struct task_spec *task, const uint8_t *results, uint32_t results_bytes,
                  struct hooks_launch **ret_launch, struct err *err);
void hooks_launch_free(struct hooks_launch *launch);

#endif
