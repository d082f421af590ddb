/*
 * One step after the other: what is made ready, what is asked of the plugin, what is looked at.
 *
 *     directories (pool) -> call -> the mount table (pool), again and again for a moment -> done
 *
 * Invariant: a step is in the list of its volumes until its callback, and is on the pool, in a call
 * or behind a timer, one at a time.  What is on the pool when the volumes are freed finishes, and
 * nobody hears of it.
 */
#include "csi/volumes/part.h"

#include "io/scope.h"

#include <stdlib.h>
#include <string.h>

/* For so long a plugin may say OK before it is done: then it has lied. */
static const uint16_t pauses_ms[] = {10, 20, 50, 100, 200, 400, 800, 1600};

struct csi_volumes {
    struct loop *loop;
    bool (*find)(void *ctx, const char *plugin, struct csi_node *ret_node);
    void *ctx;
    struct csi_knowledge *knowledge;
    struct running *steps;
    char *marks;
    char root[];
};

struct running {
    struct csi_volumes *volumes; /* NULL: they were freed */
    struct running *next, **link;
    enum csi_step_kind kind;
    bool fresh, block;
    bool nobodys; /* what it unmounts: those who want to mount there wait for its end */
    bool waits;   /* it is one of those */
    struct volume_define define;
    char alloc[UUID_TEXT_SIZE], name[SPEC_NAME_SIZE], external[CSI_ID_MAX + 1];
    char root[PATH_SIZE]; /* of the plugin, on the host */
    char mark[PATH_SIZE]; /* the file */
    struct volume_paths paths;
    struct csi_mark before; /* what was mounted before the plugin was asked to publish, */
    bool was_mounted;       /* if there was something */
    struct io_work work;
    bool on_pool;
    struct io_timer timer;
    struct csi_operation *operation;
    unsigned looks; /* at the mount table, since the plugin has answered */
    bool settled;   /* it is as it was asked for */
    bool refused;   /* the plugin has said no, or nobody was asked */
    char remark[ERR_TEXT_SIZE];
    struct csi_step_result result;
    csi_step_done *done;
    void *ctx;
};

/* --- birth and end --- */

struct csi_volumes *csi_volumes_new(const struct csi_volumes_config *config)
{
    size_t length = strlen(config->root);
    struct csi_volumes *volumes = calloc(1, sizeof(*volumes) + length + 1);

    check(volumes != NULL);
    volumes->loop = config->loop;
    volumes->find = config->find;
    volumes->ctx = config->ctx;
    volumes->knowledge = csi_knowledge_new();
    memcpy(volumes->root, config->root, length + 1);
    volumes->marks = strdup(config->marks);
    check(volumes->marks != NULL);
    return volumes;
}

static void unlink_step(struct running *step)
{
    *step->link = step->next;
    if (step->next != NULL)
        step->next->link = step->link;
}

void csi_volumes_free(struct csi_volumes *volumes)
{
    if (volumes == NULL)
        return;
    while (volumes->steps != NULL) {
        struct running *step = volumes->steps;

        unlink_step(step);
        step->volumes = NULL;
        io_timer_stop(&step->timer);
        if (step->operation != NULL)
            csi_cancel(step->operation); /* which frees the step */
        else if (!step->on_pool)
            free(step);
    }
    csi_knowledge_free(volumes->knowledge);
    free(volumes->marks);
    free(volumes);
}

void csi_volumes_know(struct csi_volumes *volumes, const struct csi_claim *claim,
                      const struct csi_terms *terms)
{
    csi_knowledge_set(volumes->knowledge, claim->alloc, claim->name, terms);
}

void csi_volumes_forget(struct csi_volumes *volumes, const struct csi_claim *claim)
{
    csi_knowledge_drop(volumes->knowledge, claim->alloc, claim->name);
}

bool csi_volumes_knows(const struct csi_volumes *volumes, const struct csi_claim *claim)
{
    return csi_knowledge_find(volumes->knowledge, claim->alloc, claim->name) != NULL;
}

void csi_volumes_hide(const struct csi_volumes *volumes, const char *alloc, const char *name,
                      struct csi_request *request)
{
    const struct csi_known *known = csi_knowledge_find(volumes->knowledge, alloc, name);

    if (known != NULL)
        request->hidden = (struct csi_hidden){known->secrets, (const char *const *)known->flags,
                                              known->flags_count};
}

static void begin_waiting(const struct running *ended);

static void finish(struct running *step)
{
    struct csi_step_result *result = &step->result;

    unlink_step(step);
    if (step->nobodys)
        begin_waiting(step);
    result->code = step->settled ? 0 : result->error.code;
    result->remark = step->settled && step->remark[0] != '\0' ? step->remark : NULL;
    check(step->settled || result->code < 0);
    step->done(step->ctx, result);
    free(step);
}

static bool unmounts(const struct running *step)
{
    return step->kind == CSI_STEP_UNMOUNT || step->kind == CSI_STEP_UNMOUNT_STAGING;
}

static bool undoes(const struct running *step)
{
    return step->kind == CSI_STEP_UNPUBLISH || step->kind == CSI_STEP_UNSTAGE || unmounts(step);
}

static bool is_staging(const struct running *step)
{
    return step->kind == CSI_STEP_STAGE || step->kind == CSI_STEP_UNSTAGE ||
           step->kind == CSI_STEP_UNMOUNT_STAGING;
}

/* Where that is which is made or undone. */
static const char *place_of(const struct running *step)
{
    return is_staging(step) ? step->paths.staging : step->paths.target;
}

/* --- on the pool --- */

static void submit(struct running *step, void (*run)(struct io_work *work),
                   void (*done)(struct io_work *work))
{
    step->on_pool = true;
    io_work_submit(step->volumes->loop, &step->work, run, done, step);
}

/* False: the volumes are gone, and so is the step. */
static bool is_back(struct running *step)
{
    step->on_pool = false;
    if (step->volumes != NULL)
        return true;
    free(step);
    return false;
}

static void prepare(struct io_work *work)
{
    struct running *step = work->ctx;
    struct err *err = &step->result.error;
    scoped_fd int root = csi_root_open(step->root, err);

    if (root < 0)
        return;
    if (csi_directory_make(
            root, step->kind == CSI_STEP_STAGE ? step->paths.staging : step->paths.above, err) != 0)
        return;
    if (step->kind != CSI_STEP_PUBLISH ||
        csi_target_prepare(root, step->paths.target, step->block, step->fresh, err) != 0)
        return; /* the error says it */
    step->was_mounted = csi_is_mounted(root, step->paths.target, step->block, NULL) == 1 &&
                        csi_mark_look(root, step->paths.target, &step->before);
}

/* Nothing is mounted there any more: what else is there goes. */
static void clear_place(struct running *step, int root)
{
    struct err err = {0};

    if (csi_leftover_remove(root, place_of(step), step->block && !is_staging(step), &err) != 0)
        (void)text_copy(step->remark, sizeof(step->remark), err.text); /* same size */
    else if (!is_staging(step))
        csi_directories_remove(root, step->paths.above, 2); /* <volume>, <alloc> */
    if (!is_staging(step))
        csi_mark_remove(step->mark);
}

/* Without the plugin.  A mount that is busy is not taken away from whoever uses it. */
static void unmount(struct running *step, int root)
{
    struct err *err = &step->result.error;

    if (mount_remove(root, place_of(step), err) != 0) {
        err->recoverable = true;
        return;
    }
    (void)text_format(step->remark, sizeof(step->remark), "%s was unmounted without its plugin",
                      place_of(step)); /* cut is enough */
    *err = (struct err){0};
    step->settled = true;
}

static void look_after_undoing(struct running *step, int root)
{
    struct err err = {0};
    /* A device in the place of a directory is no mount, and goes with what is left. */
    int mounted = csi_is_mounted(root, place_of(step), false, &err);

    if (mounted < 0)
        step->result.error = err;
    else if (mounted == 1 && unmounts(step))
        unmount(step, root);
    else if (mounted == 0) /* of a place that is there the plugin may know more than we see */
        step->settled = !step->refused || csi_is_missing(root, place_of(step));
    if (step->settled)
        clear_place(step, root);
}

/* What is mounted is what was when the plugin had published it. */
static void look_which(struct running *step, int root)
{
    struct csi_mark known, now;
    bool is_known = csi_mark_read(step->mark, &known);

    step->result.is_mounted =
        !is_known || !csi_mark_look(root, step->paths.target, &now) || csi_mark_is(&known, &now);
    if (!step->result.is_mounted)
        (void)text_format(step->remark, sizeof(step->remark),
                          "what is mounted on %s is not the volume",
                          step->paths.target); /* cut is enough */
}

/* What is mounted is the volume, unless it was there before and is known not to be: a plugin that
 * finds its target mounted has nothing to do. */
static void keep_which(struct running *step, int root)
{
    struct err *err = &step->result.error;
    struct csi_mark known, now;

    if (!csi_mark_look(root, step->paths.target, &now))
        return;
    if (step->was_mounted && csi_mark_is(&step->before, &now) &&
        csi_mark_read(step->mark, &known) && !csi_mark_is(&known, &now)) {
        step->settled = false;
        (void)err_set(err, ERR_EXISTS,
                      "plugin %s takes for it what somebody else has mounted: unmount %s",
                      step->define.plugin, step->paths.target); /* filled is enough */
        err->recoverable = true;
    } else if (csi_mark_write(step->mark, &now, err) != 0) {
        (void)text_copy(step->remark, sizeof(step->remark), err->text); /* same size */
        *err = (struct err){0};
    }
}

static void look(struct io_work *work)
{
    struct running *step = work->ctx;
    struct err err = {0};
    scoped_fd int root = csi_root_open(step->root, &err);

    if (root < 0) {
        bool nothing = root == ERR_GONE && (undoes(step) || step->kind == CSI_STEP_LOOK);
        step->settled = nothing; /* no directory, no mount */
        if (!nothing)
            step->result.error = err;
        return;
    }
    if (undoes(step)) {
        look_after_undoing(step, root);
        return;
    }
    int mounted = csi_is_mounted(root, step->paths.target, step->block, &err);
    step->settled = mounted == 1 || (mounted == 0 && step->kind == CSI_STEP_LOOK);
    if (mounted < 0)
        step->result.error = err;
    else if (mounted == 1 && step->kind == CSI_STEP_LOOK)
        look_which(step, root);
    else if (mounted == 1)
        keep_which(step, root);
}

/* --- looking --- */

static void look_again(struct io_timer *timer);

/* It said OK, and went on saying it. */
static void tell_lie(struct running *step)
{
    struct csi_step_result *result = &step->result;

    result->outcome = (struct csi_outcome){.verdict = CSI_LIES};
    (void)err_set(&result->error, ERR_REFUSED,
                  "plugin %s says that it is %s, which is not so (see its logs): %s is %smounted",
                  step->define.plugin,
                  step->kind == CSI_STEP_PUBLISH     ? "published"
                  : step->kind == CSI_STEP_UNPUBLISH ? "unpublished"
                                                     : "unstaged",
                  place_of(step), undoes(step) ? "" : "not "); /* filled is enough */
    result->error.recoverable = true;
}

static void looked(struct io_work *work)
{
    struct running *step = work->ctx;

    if (!is_back(step))
        return;
    bool failed = step->result.error.code != 0; /* of the call, or of looking */
    if (!step->settled && !failed && step->looks < COUNT_OF(pauses_ms)) {
        io_timer_start(step->volumes->loop, &step->timer, loop_now_ms() + pauses_ms[step->looks++],
                       look_again, step);
        return;
    }
    if (!step->settled && !failed)
        tell_lie(step);
    finish(step);
}

static void look_again(struct io_timer *timer)
{
    submit(timer->ctx, look, looked);
}

/* --- the call --- */

static void called(void *ctx, const struct csi_result *result)
{
    struct running *step = ctx;

    step->operation = NULL;
    if (step->volumes == NULL) {
        free(step);
        return;
    }
    step->result.outcome = result->outcome;
    if (result->outcome.verdict != CSI_DONE) {
        step->result.error = result->error;
        step->result.error.recoverable = result->outcome.verdict != CSI_REFUSED;
        step->refused = true;
    }
    /* A plugin that will not undo what is not there has undone it, if it is not at work on it. */
    bool look_at_it = result->outcome.verdict == CSI_DONE
                          ? step->kind != CSI_STEP_STAGE /* it may leave that unmounted */
                          : undoes(step) && !result->outcome.may_run;
    if (look_at_it) {
        submit(step, look, looked);
        return;
    }
    step->settled = result->outcome.verdict == CSI_DONE;
    finish(step);
}

static void make_call(struct running *step)
{
    static const enum csi_call calls[] = {
        [CSI_STEP_STAGE] = CSI_NODE_STAGE,
        [CSI_STEP_PUBLISH] = CSI_NODE_PUBLISH,
        [CSI_STEP_UNPUBLISH] = CSI_NODE_UNPUBLISH,
        [CSI_STEP_UNSTAGE] = CSI_NODE_UNSTAGE,
    };
    struct csi_volumes *volumes = step->volumes;
    const struct csi_known *known = csi_knowledge_find(volumes->knowledge, step->alloc, step->name);
    struct err *err = &step->result.error;
    struct csi_node node;
    char staging[PATH_SIZE], target[PATH_SIZE];

    if (!volumes->find(volumes->ctx, step->define.plugin, &node)) {
        (void)err_set(err, ERR_GONE, "plugin \"%s\" does not answer", step->define.plugin);
        err->recoverable = true;
        finish(step);
        return;
    }
    csi_path_in(node.root, step->paths.staging, staging);
    csi_path_in(node.root, step->paths.target, target);
    struct csi_request request = {.call = calls[step->kind], .volume_id = step->external};
    struct csi_capability capability = {.access = (enum csi_access)step->define.access_mode,
                                        .block = step->block};
    if (step->kind != CSI_STEP_PUBLISH || node.stages)
        request.staging_path = step->kind == CSI_STEP_UNPUBLISH ? NULL : staging;
    if (step->kind == CSI_STEP_PUBLISH || step->kind == CSI_STEP_UNPUBLISH)
        request.target_path = target;
    if (undoes(step)) {
        csi_volumes_hide(volumes, step->alloc, step->name, &request);
    } else {
        check(known != NULL); /* by csi_volume_step */
        capability.fs_type = !step->block && known->fs_type[0] != '\0' ? known->fs_type : NULL;
        capability.flags = (const char *const *)known->flags;
        capability.flags_count = step->block ? 0 : known->flags_count;
        request.capabilities = &capability;
        request.capabilities_count = 1;
        request.publish_context = known->publish_context;
        request.volume_context = known->volume_context;
        request.secrets = known->secrets;
        request.readonly = step->kind == CSI_STEP_PUBLISH && step->define.read_only != 0;
    }
    step->operation = csi_start(node.client, &request, called, step, err);
    if (step->operation == NULL)
        finish(step);
}

static void prepared(struct io_work *work)
{
    struct running *step = work->ctx;

    if (!is_back(step))
        return;
    if (step->result.error.code != 0)
        finish(step);
    else
        make_call(step);
}

/* --- what is asked --- */

static void give_up(struct io_timer *timer)
{
    finish(timer->ctx);
}

/* Later, as all answers. */
static void fail(struct running *step)
{
    io_timer_start(step->volumes->loop, &step->timer, loop_now_ms(), give_up, step);
}

static struct running *step_new(struct csi_volumes *volumes, const struct csi_step *from,
                                csi_step_done *done, void *ctx)
{
    const struct csi_claim *claim = &from->claim;
    struct running *step = calloc(1, sizeof(*step));

    check(step != NULL);
    step->volumes = volumes;
    step->kind = from->kind;
    step->fresh = from->fresh;
    step->done = done;
    step->ctx = ctx;
    step->define = *claim->define;
    step->block = claim->define->attachment_mode == CSI_BLOCK_DEVICE;
    check(text_copy(step->alloc, sizeof(step->alloc), claim->alloc)); /* of a machine */
    check(text_copy(step->name, sizeof(step->name), claim->name));
    step->next = volumes->steps;
    step->link = &volumes->steps;
    if (step->next != NULL)
        step->next->link = &step->next;
    volumes->steps = step;
    return step;
}

static void call_now(struct io_timer *timer)
{
    make_call(timer->ctx);
}

/* True if OTHER takes away what STEP wants to make. */
static bool is_in_the_way(const struct running *other, const struct running *step)
{
    return other->nobodys && other != step && text_equal(other->root, step->root) &&
           text_equal(other->paths.staging, step->paths.staging);
}

static void begin_making(struct running *step)
{
    step->waits = false;
    for (const struct running *other = step->volumes->steps; other != NULL; other = other->next)
        step->waits |= is_in_the_way(other, step);
    if (!step->waits)
        submit(step, prepare, prepared);
}

static void begin_waiting(const struct running *ended)
{
    for (struct running *step = ended->volumes->steps; step != NULL; step = step->next) {
        if (step->waits && is_in_the_way(ended, step))
            begin_making(step);
    }
}

static void begin(struct running *step, const struct csi_step *from)
{
    struct csi_volumes *volumes = step->volumes;
    struct err *err = &step->result.error;

    if (volume_paths_of(&from->claim, &step->paths, err) != 0) {
        fail(step);
        return;
    }
    if (!text_copy(step->external, sizeof(step->external), from->claim.external) ||
        path_join(step->root, volumes->root, step->define.plugin) != 0 ||
        csi_mark_path(volumes->marks, &from->claim, step->mark) != 0) {
        (void)err_set(err, ERR_LIMIT, "the id or the path of volume \"%s\" is too long",
                      step->define.volume); /* fail tells it */
        fail(step);
        return;
    }
    bool makes = step->kind == CSI_STEP_STAGE || step->kind == CSI_STEP_PUBLISH;
    const struct csi_known *known = csi_knowledge_find(volumes->knowledge, step->alloc, step->name);
    if (makes && (known == NULL || known->recalled)) {
        (void)err_set(err, ERR_GONE, "nothing is known any more of how volume \"%s\" is mounted",
                      step->define.volume); /* fail tells it */
        fail(step);
        return;
    }
    if (makes)
        begin_making(step);
    else if (step->kind == CSI_STEP_LOOK || unmounts(step))
        submit(step, look, looked);
    else
        io_timer_start(volumes->loop, &step->timer, loop_now_ms(), call_now, step);
}

void csi_volume_step(struct csi_volumes *volumes, const struct csi_step *from, csi_step_done *done,
                     void *ctx)
{
    struct running *step = step_new(volumes, from, done, ctx);

    begin(step, from);
}

void csi_volumes_unmount(struct csi_volumes *volumes, const struct csi_found *found,
                         csi_step_done *done, void *ctx)
{
    bool staged = found->alloc == NULL;
    struct volume_define define = found->define;
    const struct csi_step from = {.kind = staged ? CSI_STEP_UNMOUNT_STAGING : CSI_STEP_UNMOUNT,
                                  .claim = {.alloc = staged ? "none" : found->alloc,
                                            .name = "",
                                            .define = &define,
                                            .external = ""}};

    if (!staged) /* which its place does not depend on */
        (void)text_copy(define.namespace, sizeof(define.namespace), "none");
    struct running *step = step_new(volumes, &from, done, ctx);
    step->nobodys = staged;
    begin(step, &from);
}

int csi_volume_target(const struct csi_volumes *volumes, const struct csi_claim *claim,
                      char to[PATH_SIZE], struct err *err)
{
    struct volume_paths paths;
    char root[PATH_SIZE];
    int code = volume_paths_of(claim, &paths, err);

    if (code != 0)
        return code;
    if (path_join(root, volumes->root, claim->define->plugin) != 0 ||
        path_join(to, root, paths.target) != 0)
        return err_set(err, ERR_LIMIT, "the path of volume \"%s\" is too long",
                       claim->define->volume);
    return 0;
}
