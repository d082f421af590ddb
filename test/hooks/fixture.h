/* A loop, hooks on a directory of their own, and one alloc with one task to run them for. */
#ifndef CAIRN_TEST_HOOKS_FIXTURE_H
#define CAIRN_TEST_HOOKS_FIXTURE_H

#include "hooks/hooks.h"
#include "test/io/beside.h"
#include "test/io/scratch.h"

#include <pwd.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#define ALLOC_ID "5b4c3f8e-9a1d-4d5e-8f00-0123456789ab"

struct fixture {
    struct scratch scratch;
    struct loop *loop;
    struct hooks *hooks;
    struct hooks_node node;
    struct task_spec task;
    struct alloc_spec alloc;
    const char *environment[8];
    const struct hooks_fetch *fetch;         /* NULL: nothing is */
    const struct hooks_disks *disks;         /* NULL: none is elsewhere */
    const struct hooks_connect *connect;     /* NULL: there is no Consul */
    const struct hooks_templates *templates; /* NULL: nobody is told of them */
    const struct hooks_signer *signer;       /* NULL: nobody signs identities */
    char parser[PATH_SIZE];                  /* what renders them */
    const struct hooks_facts *facts;         /* NULL: there are only files */
    struct hooks_network network;            /* handed over if it says where it is kept */
    char alloc_dir[512], root[512];          /* root: of the alloc */

    /* The last outcome. */
    bool asked, answered;
    unsigned answers;
    char text[DESCRIPTION_SIZE];
    struct hook_outcome outcome; /* last: it ends with what it may carry */
};

/* One driver of each kind, and one that is checked without isolation. */
static inline const struct spec_driver *fixture_driver(void *ctx, const char *name)
{
    static const struct spec_driver drivers[] = {
        {.name = "raw_exec", .isolation = ISOLATION_NONE, .user = "", .enters_network = true},
        {.name = "exec",
         .isolation = ISOLATION_CHROOT,
         .checks_user = true,
         .user = "nobody",
         .mounts = true,
         .enters_network = true},
        {.name = "docker",
         .isolation = ISOLATION_IMAGE,
         .user = "",
         .mounts = true,
         .enters_network = true},
        {.name = "checked",
         .isolation = ISOLATION_NONE,
         .checks_user = true,
         .user = "",
         .enters_network = true},
    };
    (void)ctx;

    for (size_t i = 0; i < COUNT_OF(drivers); i++) {
        if (text_equal(drivers[i].name, name))
            return &drivers[i];
    }
    return NULL;
}

static inline void start_hooks(struct fixture *fixture, const char *denylist)
{
    const struct hooks_config config = {
        .loop = fixture->loop,
        .alloc_dir = fixture->alloc_dir,
        .node = &fixture->node,
        .environment = fixture->environment,
        .user_denylist = denylist,
        .driver = fixture_driver,
        .fetch = fixture->fetch,
        .disks = fixture->disks,
        .connect = fixture->connect,
        .templates = fixture->templates,
        .signer = fixture->signer,
        .parser = fixture->parser,
        .facts = fixture->facts,
        .network = fixture->network.state_dir != NULL ? &fixture->network : NULL,
    };

    hooks_free(fixture->hooks);
    fixture->hooks = hooks_new(&config, &fixture->scratch.err);
    assert_non_null(fixture->hooks);
}

static inline int fixture_make(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    void *scratch;

    assert_non_null(fixture);
    assert_int_equal(scratch_make(&scratch), 0);
    fixture->scratch = *(struct scratch *)scratch;
    free(scratch);
    fixture->loop = loop_new();
    assert_int_equal(path_join(fixture->scratch.text, fixture->scratch.path, "allocs"), 0);
    assert_true(text_copy(fixture->alloc_dir, sizeof(fixture->alloc_dir), fixture->scratch.text));
    assert_true(
        text_format(fixture->root, sizeof(fixture->root), "%s/%s", fixture->alloc_dir, ALLOC_ID));
    fixture->node = (struct hooks_node){
        .id = "4bc6d0f0-1111-2222-3333-444455556666",
        .name = "stone",
        .datacenter = "dc1",
        .region = "global",
        .class = "edge",
        .pool = "default",
    };
    fixture->task = (struct task_spec){
        .name = "web",
        .driver = "raw_exec",
        .user = "",
        .config_json = "{}",
        .kill_signal = "",
        .payload_file = "",
        .identity = {.token = "", .file = ""},
    };
    fixture->alloc = (struct alloc_spec){
        .id = ALLOC_ID,
        .name = "shop.front[0]",
        .eval_id = "",
        .namespace = "default",
        .job_id = "shop",
        .job_name = "shop",
        .job_parent_id = "",
        .job_type = "service",
        .payload = "",
        .region = "global",
        .datacenter = "dc1",
        .group = "front",
        .network_mode = "",
        .hostname = "",
        .tasks = &fixture->task,
        .tasks_count = 1,
    };
    beside_program(fixture->parser, "cairn-parse");
    start_hooks(fixture, NULL);
    *state = fixture;
    return 0;
}

static inline bool unmount_left(void *ctx, const char *point)
{
    *(int *)ctx += 1;
    print_message("still mounted: %s\n", point);
    return umount2(point, MNT_DETACH) == 0;
}

/* Fails when a test leaves a mount behind; the files are this fixture's to delete. */
static inline int fixture_remove(void **state)
{
    struct fixture *fixture = *state;
    int mounts = 0;

    hooks_free(fixture->hooks);
    loop_free(fixture->loop);
    assert_int_equal(mount_each_below(AT_FDCWD, fixture->scratch.path, unmount_left, &mounts,
                                      &fixture->scratch.err),
                     0);
    int code = tree_remove(AT_FDCWD, fixture->scratch.path, &fixture->scratch.err);
    free(fixture);
    return code != 0 || mounts != 0;
}

static inline void on_outcome(void *ctx, const struct hook_outcome *outcome)
{
    struct fixture *fixture = ctx;

    assert_false(fixture->asked); /* never from inside the call */
    fixture->answered = true;
    fixture->answers++;
    fixture->outcome = *outcome;
    (void)text_copy(fixture->text, sizeof(fixture->text), outcome->text); /* same size */
    loop_stop(fixture->loop);
}

static inline void ask(struct fixture *fixture, enum hook_phase phase, unsigned hook,
                       const struct task_spec *task)
{
    const struct hook_run run = {
        .phase = phase,
        .hook = (uint8_t)hook,
        .alloc = &fixture->alloc,
        .task = task,
    };

    fixture->answered = false;
    fixture->asked = true;
    hook_run(fixture->hooks, &run, on_outcome, fixture);
    fixture->asked = false;
    assert_false(fixture->answered);
}

/* Runs one hook to its end; its code. */
static inline int run_hook(struct fixture *fixture, enum hook_phase phase, unsigned hook,
                           const struct task_spec *task)
{
    ask(fixture, phase, hook, task);
    loop_run(fixture->loop);
    assert_true(fixture->answered);
    assert_int_equal(fixture->outcome.hook, hook);
    assert_int_equal(fixture->outcome.results_bytes, 0);
    return fixture->outcome.code;
}

static inline int build_alloc(struct fixture *fixture)
{
    return run_hook(fixture, PHASE_PRERUN, ALLOC_HOOK_ALLOC_DIR, NULL);
}

static inline int destroy_alloc(struct fixture *fixture)
{
    return run_hook(fixture, PHASE_DESTROY, ALLOC_HOOK_ALLOC_DIR, NULL);
}

static inline int build_task(struct fixture *fixture)
{
    return run_hook(fixture, PHASE_PRESTART, TASK_HOOK_TASK_DIR, &fixture->task);
}

static inline int strip_task(struct fixture *fixture)
{
    return run_hook(fixture, PHASE_STOP, TASK_HOOK_TASK_DIR, &fixture->task);
}

static inline int prepare_logs(struct fixture *fixture)
{
    return run_hook(fixture, PHASE_PRESTART, TASK_HOOK_LOGS, &fixture->task);
}

/* A path below the alloc's root, until the next call. */
static inline const char *in_alloc(struct fixture *fixture, const char *name)
{
    assert_int_equal(path_join(fixture->scratch.text, fixture->root, name), 0);
    return fixture->scratch.text;
}

static inline void assert_directory(const char *path, mode_t mode, const char *owner)
{
    struct stat status;

    assert_return_code(lstat(path, &status), 0);
    assert_true(S_ISDIR(status.st_mode));
    assert_int_equal(status.st_mode & 07777u, mode);
    if (geteuid() == 0) {
        const struct passwd *entry = getpwnam(owner);
        assert_non_null(entry);
        assert_int_equal(status.st_uid, entry->pw_uid);
        assert_int_equal(status.st_gid, entry->pw_gid);
    }
}

static inline void assert_outcome(const struct fixture *fixture, int code, bool recoverable,
                                  const char *part)
{
    if (strstr(fixture->text, part) == NULL)
        print_error("\"%s\" is not in \"%s\"\n", part, fixture->text);
    assert_non_null(strstr(fixture->text, part));
    assert_int_equal(fixture->outcome.code, code);
    assert_int_equal(fixture->outcome.recoverable, recoverable);
}

static inline void need_root(void)
{
    if (geteuid() != 0) {
        print_message("skipped: mounting needs root\n");
        skip();
    }
}

#endif
