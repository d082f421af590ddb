/*
 * The stand-alone control plane.
 *
 * A registration writes the job, the specs of its new allocs, and the ASSIGN and DEFINE events of
 * their machines in one commit: there is no moment at which a job is accepted and its allocs are
 * not (I-14, I-15).  What is placed and stopped is fsm/policy_reconcile.c's answer.
 */
#include "agent/standalone.h"

#include "agent/perform.h"
#include "fsm/policy.h"
#include "io/log.h"
#include "server/jobspec.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <uthash.h>

enum { EVALUATIONS_MAX = 256 };

struct job {
    char key[JOURNAL_KEY_SIZE]; /* "job/<namespace>/<id>" */
    struct standalone_job public;
    char namespace[SPEC_NAMESPACE_SIZE], id[SPEC_NAME_SIZE];
    json_t *json;
    bool unsaved;   /* registered by the turn under way */
    json_t *before; /* what to go back to if its commit fails, NULL: nothing */
    struct standalone_job public_before;
    UT_hash_handle hh;
};

struct standalone {
    struct daemon *daemon;
    struct job *jobs;
    struct standalone_evaluation *evaluations; /* ring */
    uint64_t evaluations_count;
    bool tidy_wanted;
    bool forget_stopped; /* system gc was asked for, and some job still has allocs */
};

struct standalone *standalone_new(struct daemon *daemon)
{
    struct standalone *standalone = calloc(1, sizeof(*standalone));

    check(standalone != NULL);
    standalone->daemon = daemon;
    standalone->evaluations = calloc(EVALUATIONS_MAX, sizeof(*standalone->evaluations));
    check(standalone->evaluations != NULL);
    return standalone;
}

static void job_free(struct standalone *standalone, struct job *job)
{
    HASH_DEL(standalone->jobs, job);
    json_decref(job->json);
    json_decref(job->before);
    free(job);
}

void standalone_free(struct standalone *standalone)
{
    struct job *job, *next;

    if (standalone == NULL)
        return;
    HASH_ITER(hh, standalone->jobs, job, next)
    job_free(standalone, job);
    free(standalone->evaluations);
    free(standalone);
}

/* --- jobs as they are stored --- */

static struct job *find_job(const struct standalone *standalone, const char *namespace,
                            const char *id)
{
    char key[JOURNAL_KEY_SIZE];
    struct job *job;

    if (!text_format(key, sizeof(key), "job/%s/%s", namespace, id))
        return NULL;
    HASH_FIND_STR(standalone->jobs, key, job);
    return job;
}

static struct job *add_job(struct standalone *standalone, const char *namespace, const char *id)
{
    struct job *job = calloc(1, sizeof(*job));

    check(job != NULL);
    (void)text_format(job->key, sizeof(job->key), "job/%s/%s", namespace, id); /* bounded names */
    (void)text_copy(job->namespace, sizeof(job->namespace), namespace);
    (void)text_copy(job->id, sizeof(job->id), id);
    job->public.namespace = job->namespace;
    job->public.id = job->id;
    HASH_ADD_STR(standalone->jobs, key, job);
    return job;
}

static uint64_t number(const json_t *object, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(object, name));
}

static void set_json(struct job *job, json_t *json)
{
    json_decref(job->json);
    job->json = json;
    job->public.job = json;
    job->public.version = number(json, "Version");
    job->public.create_index = number(json, "CreateIndex");
    job->public.modify_index = number(json, "ModifyIndex");
    job->public.job_modify_index = number(json, "JobModifyIndex");
    job->public.submit_unix_ns = (int64_t)number(json, "SubmitTime");
    job->public.stop = json_is_true(json_object_get(json, "Stop"));
}

static void save(struct standalone *standalone, const struct job *job)
{
    char *text = json_dumps(job->json, JSON_COMPACT | JSON_SORT_KEYS);

    check(text != NULL);
    agent_spec(daemon_core(standalone->daemon), job->key, text, strlen(text));
    free(text);
}

static bool load_job(void *ctx, const char *key, const void *bytes, size_t length)
{
    struct standalone *standalone = ctx;
    json_t *json = json_loadb(bytes, length, 0, NULL);
    const char *namespace = json_string_value(json_object_get(json, "Namespace"));
    const char *id = json_string_value(json_object_get(json, "ID"));

    if (namespace == NULL || id == NULL || strlen(id) >= SPEC_NAME_SIZE ||
        strlen(namespace) >= SPEC_NAMESPACE_SIZE) {
        log_error("agent", "a stored job cannot be read; its allocs go on key=%s", log_value(key));
        json_decref(json);
        return true;
    }
    set_json(add_job(standalone, namespace, id), json);
    return true;
}

int standalone_load(struct standalone *standalone, struct err *err)
{
    return journal_each_spec(daemon_journal(standalone->daemon), "job/", load_job, standalone, err);
}

/* --- evaluations --- */

static void new_id(char to[UUID_TEXT_SIZE])
{
    uint64_t numbers[2];

    ssize_t got = getrandom(numbers, sizeof(numbers), 0);
    check(got == (ssize_t)sizeof(numbers)); /* never short for so few bytes */
    uuid_format(to, numbers[0], numbers[1]);
}

static struct standalone_evaluation begin_evaluation(const struct job *job, const char *why)
{
    struct standalone_evaluation evaluation = {.create_unix_ns = loop_now_unix_ns()};
    const char *type = json_string_value(json_object_get(job->json, "Type"));

    new_id(evaluation.id);
    (void)text_copy(evaluation.job_id, sizeof(evaluation.job_id), job->id);
    (void)text_copy(evaluation.namespace, sizeof(evaluation.namespace), job->namespace);
    (void)text_copy(evaluation.type, sizeof(evaluation.type), type);
    (void)text_copy(evaluation.triggered_by, sizeof(evaluation.triggered_by), why);
    return evaluation;
}

static void keep_evaluation(struct standalone *standalone, struct standalone_evaluation *evaluation)
{
    evaluation->index = agent_figures(daemon_core(standalone->daemon)).sequence + 1;
    standalone->evaluations[standalone->evaluations_count++ % EVALUATIONS_MAX] = *evaluation;
}

const struct standalone_evaluation *standalone_evaluation(const struct standalone *standalone,
                                                          const char *id_prefix)
{
    for (uint64_t i = 0; i < EVALUATIONS_MAX && i < standalone->evaluations_count; i++) {
        uint64_t at = (standalone->evaluations_count - 1 - i) % EVALUATIONS_MAX;
        if (text_starts_with(standalone->evaluations[at].id, id_prefix))
            return &standalone->evaluations[at];
    }
    return NULL;
}

void standalone_each_evaluation(const struct standalone *standalone, standalone_evaluation_cb *cb,
                                void *ctx)
{
    for (uint64_t i = 0; i < EVALUATIONS_MAX && i < standalone->evaluations_count; i++) {
        uint64_t at = (standalone->evaluations_count - 1 - i) % EVALUATIONS_MAX;
        if (!cb(ctx, &standalone->evaluations[at]))
            return;
    }
}

/* --- placing --- */

static void define_task(struct standalone *standalone, const struct alloc_spec *spec,
                        const struct task_spec *task)
{
    bool batch = text_equal(spec->job_type, "batch") || text_equal(spec->job_type, "sysbatch");
    uint64_t kill_max_ms = daemon_config(standalone->daemon)->max_kill_timeout_ms;
    struct task_define define = {
        .restart_interval_ms = task->restart.interval_ms,
        .restart_delay_ms = task->restart.delay_ms,
        .restart_attempts = task->restart.attempts,
        .restart_mode_delay = task->restart.mode_delay,
        .kill_timeout_ms =
            task->kill_timeout_ms < kill_max_ms ? task->kill_timeout_ms : kill_max_ms,
        .shutdown_delay_ms = task->shutdown_delay_ms,
        .lifecycle = (uint8_t)task->lifecycle,
        .sidecar = task->sidecar,
        .leader = task->leader,
        .may_start = 1,
        .restart_on_success = policy_restarts_on_success(batch, task->lifecycle, task->sidecar),
    };
    struct machine_id id = machine_id_join(MACHINE_TASK, spec->id, task->name);

    (void)text_copy(define.driver, sizeof(define.driver), task->driver);
    (void)text_copy(define.kill_signal, sizeof(define.kill_signal), task->kill_signal);
    hooks_plan_task(spec, task, &define);
    agent_tell(daemon_core(standalone->daemon), &id, TE_DEFINE, &define);
}

static void assign_alloc(struct standalone *standalone, const struct alloc_spec *spec)
{
    struct alloc_assign *assign =
        calloc(1, sizeof(*assign) + spec->tasks_count * sizeof(assign->members[0]));
    struct machine_id id = machine_id_make(MACHINE_ALLOC, spec->id);

    check(assign != NULL);
    assign->create_unix_ns = spec->create_time_unix_ns;
    assign->job_version = spec->job_version;
    assign->shutdown_delay_ms = spec->group_shutdown_delay_ms;
    assign->index = spec->index;
    assign->may_start = 1;
    assign->batch = text_equal(spec->job_type, "batch");
    (void)text_copy(assign->namespace, sizeof(assign->namespace), spec->namespace);
    (void)text_copy(assign->job_id, sizeof(assign->job_id), spec->job_id);
    (void)text_copy(assign->group, sizeof(assign->group), spec->group);
    for (size_t i = 0; i < spec->tasks_count; i++) {
        struct alloc_member *member = &assign->members[assign->members_count++];
        member->kind = MEMBER_TASK;
        member->lifecycle = (uint8_t)spec->tasks[i].lifecycle;
        member->sidecar = spec->tasks[i].sidecar;
        member->leader = spec->tasks[i].leader;
        (void)text_copy(member->name, sizeof(member->name), spec->tasks[i].name);
    }
    hooks_plan_alloc(spec, assign);
    agent_tell(daemon_core(standalone->daemon), &id, AE_ASSIGN, assign);
    free(assign);
    for (size_t i = 0; i < spec->tasks_count; i++)
        define_task(standalone, spec, &spec->tasks[i]);
}

static int place(struct standalone *standalone, const struct job *job, const char *group,
                 uint32_t index, const char *eval_id, struct err *err)
{
    char alloc_id[UUID_TEXT_SIZE], key[JOURNAL_KEY_SIZE], *text;
    struct jobspec_placement placement = {
        .group = group,
        .index = index,
        .alloc_id = alloc_id,
        .eval_id = eval_id,
        .datacenter = daemon_config(standalone->daemon)->datacenter,
        .create_time_unix_ns = loop_now_unix_ns(),
    };
    struct alloc_spec *spec;
    size_t length;

    new_id(alloc_id);
    int code = jobspec_alloc_json(job->json, &placement, &text, &length, err);
    if (code < 0)
        return code;
    code = jobspec_decode_alloc(text, length, &spec, err);
    if (code == 0) {
        (void)text_format(key, sizeof(key), "alloc/%s", alloc_id); /* fits */
        agent_spec(daemon_core(standalone->daemon), key, text, length);
        assign_alloc(standalone, spec);
        alloc_spec_free(spec);
    }
    free(text);
    return code;
}

/* --- reconciling --- */

struct gathering {
    struct standalone *standalone;
    const struct job *job;
    const json_t *wanted; /* NULL: nothing */
    struct reconcile_alloc *allocs;
    struct machine_id *ids;
    size_t count;
};

static bool is_current(const struct gathering *gathering, const struct alloc *alloc)
{
    const struct standalone_job *before = &gathering->job->public;

    if (gathering->wanted == NULL)
        return false;
    /* An alloc of an older version was kept because it was as good as the version after it. */
    return jobspec_group_equal(before->job, gathering->wanted, alloc->assign.group);
}

static bool gather(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct gathering *gathering = ctx;
    const struct alloc *alloc = alloc_of(record);

    if (!text_equal(alloc->assign.job_id, gathering->job->id) ||
        !text_equal(alloc->assign.namespace, gathering->job->namespace))
        return true;
    size_t room = gathering->count + 1;
    gathering->allocs = realloc(gathering->allocs, room * sizeof(*gathering->allocs));
    gathering->ids = realloc(gathering->ids, room * sizeof(*gathering->ids));
    check(gathering->allocs != NULL);
    check(gathering->ids != NULL);
    gathering->ids[gathering->count] = *id;
    gathering->allocs[gathering->count++] = (struct reconcile_alloc){
        .group = alloc->assign.group,
        .index = alloc->assign.index,
        .live = alloc->ended_unix_ns == 0 && !alloc->stop_wanted,
        .succeeded = alloc->client_status == CLIENT_COMPLETE && !alloc->stop_wanted,
        .current = is_current(gathering, alloc),
    };
    return true;
}

static void stop_alloc(struct standalone *standalone, const struct machine_id *id, const char *why,
                       bool destroy)
{
    struct request request = {.signal = ""};

    (void)text_copy(request.text, sizeof(request.text), why); /* fits */
    agent_tell(daemon_core(standalone->daemon), id, AE_STOP, &request);
    if (destroy)
        agent_tell(daemon_core(standalone->daemon), id, AE_DESTROY, NULL);
}

static int place_missing(struct standalone *standalone, const struct job *job,
                         const struct reconcile_group *groups, size_t count,
                         struct standalone_evaluation *evaluation, struct err *err)
{
    for (size_t g = 0; g < count; g++) {
        for (uint32_t i = 0; i < groups[g].count; i++) {
            if (!groups[g].place[i])
                continue;
            int code = place(standalone, job, groups[g].name, i, evaluation->id, err);
            if (code < 0)
                return code;
            evaluation->placed++;
        }
    }
    return 0;
}

/* Brings the allocs of JOB to what its json wants; GATHERING holds them as they are. */
static int reconcile(struct standalone *standalone, const struct job *job,
                     struct gathering *gathering, struct standalone_evaluation *evaluation,
                     struct err *err)
{
    const json_t *list = json_object_get(job->json, "TaskGroups");
    size_t count = json_array_size(list);
    struct reconcile_group *groups = calloc(count + 1, sizeof(*groups));
    bool batch = text_equal(json_string_value(json_object_get(job->json, "Type")), "batch");

    check(groups != NULL);
    for (size_t g = 0; g < count; g++) {
        const json_t *group = json_array_get(list, g);
        groups[g].name = json_string_value(json_object_get(group, "Name"));
        groups[g].count = (uint32_t)number(group, "Count");
        groups[g].place = calloc(groups[g].count + 1, sizeof(*groups[g].place));
        check(groups[g].place != NULL);
    }
    policy_reconcile(batch, gathering->allocs, gathering->count, groups, count);
    for (size_t a = 0; a < gathering->count; a++) {
        if (!gathering->allocs[a].stop)
            continue;
        stop_alloc(standalone, &gathering->ids[a], "alloc is being updated due to job update",
                   false);
        evaluation->stopped++;
    }
    int code = place_missing(standalone, job, groups, count, evaluation, err);
    for (size_t g = 0; g < count; g++)
        free(groups[g].place);
    free(groups);
    return code;
}

/* --- commits --- */

static void forget_undo(struct job *job)
{
    json_decref(job->before);
    job->before = NULL;
    job->unsaved = false;
}

static void saved(void *ctx, int code, const struct err *err)
{
    struct standalone *standalone = ctx;
    struct job *job, *next;

    (void)err; /* the caller of the registration gets it too */
    HASH_ITER(hh, standalone->jobs, job, next)
    {
        if (!job->unsaved)
            continue;
        if (code == 0) {
            forget_undo(job);
        } else if (job->before == NULL) {
            job_free(standalone, job);
        } else {
            set_json(job, json_incref(job->before));
            forget_undo(job);
        }
    }
    standalone_alloc_ended(standalone);
}

static void begin_change(struct standalone *standalone, struct job *job, json_t *json)
{
    if (!job->unsaved) {
        job->before = job->json == NULL ? NULL : json_incref(job->json);
        job->unsaved = true;
    }
    set_json(job, json);
    save(standalone, job);
    daemon_after_commit(standalone->daemon, saved, standalone);
    daemon_changed(standalone->daemon);
}

/* --- registering --- */

static void add_problem(json_t *problems, const char *text)
{
    if (problems != NULL)
        (void)json_array_append_new(problems, json_string(text));
}

/* Asks each task's driver about its config block. */
static int check_drivers(struct standalone *standalone, const json_t *job, json_t *problems,
                         struct err *err)
{
    const json_t *group;
    size_t g, bad = 0;
    char line[ERR_TEXT_SIZE + 2 * SPEC_NAME_SIZE + 64];

    (void)standalone;
    json_array_foreach(json_object_get(job, "TaskGroups"), g, group)
    {
        struct jobspec_placement placement = {
            .group = json_string_value(json_object_get(group, "Name")),
            .alloc_id = "00000000-0000-4000-8000-000000000000",
            .eval_id = "",
            .datacenter = "dc1",
        };
        struct alloc_spec *spec;
        char *text;
        size_t length;
        if (json_integer_value(json_object_get(group, "Count")) == 0)
            continue;
        int code = jobspec_alloc_json(job, &placement, &text, &length, err);
        if (code == 0) {
            code = jobspec_decode_alloc(text, length, &spec, err);
            free(text);
        }
        if (code < 0)
            return code;
        for (size_t t = 0; t < spec->tasks_count; t++) {
            struct err wrong = {0};
            if (driver_validate(&spec->tasks[t], &wrong) == 0)
                continue;
            (void)text_format(line, sizeof(line), "group \"%s\", task \"%s\": %s", spec->group,
                              spec->tasks[t].name, wrong.text);
            add_problem(problems, line);
            if (bad++ == 0)
                (void)err_set(err, ERR_INVALID, "%s", line);
        }
        alloc_spec_free(spec);
    }
    return bad == 0 ? 0 : ERR_INVALID;
}

static void stamp(struct standalone *standalone, const struct job *job, json_t *json, bool changed)
{
    uint64_t index = agent_figures(daemon_core(standalone->daemon)).sequence + 1;
    bool is_new = job->json == NULL;
    uint64_t version = is_new ? 0 : job->public.version + (changed ? 1 : 0);

    (void)json_object_set_new(json, "Version", json_integer((json_int_t)version));
    (void)json_object_set_new(
        json, "CreateIndex", json_integer((json_int_t)(is_new ? index : job->public.create_index)));
    (void)json_object_set_new(json, "ModifyIndex", json_integer((json_int_t)index));
    (void)json_object_set_new(
        json, "JobModifyIndex",
        json_integer((json_int_t)(is_new || changed ? index : job->public.job_modify_index)));
    (void)json_object_set_new(json, "SubmitTime", json_integer(loop_now_unix_ns()));
    (void)json_object_set_new(json, "Stop", json_false());
}

/* True if the two say the same, apart from the fields that registering stamps. */
static bool is_same_job(const json_t *a, const json_t *b)
{
    static const char *const stamped[] = {
        "Version", "CreateIndex", "ModifyIndex", "JobModifyIndex", "SubmitTime", "Stop", "Status"};
    json_t *left = json_copy((json_t *)(uintptr_t)a), *right = json_copy((json_t *)(uintptr_t)b);

    for (size_t i = 0; i < COUNT_OF(stamped); i++) {
        (void)json_object_del(left, stamped[i]); /* absent is fine */
        (void)json_object_del(right, stamped[i]);
    }
    bool same = json_equal(left, right) != 0;
    json_decref(left);
    json_decref(right);
    return same;
}

static int parse(const json_t *request, json_t **ret_job, json_t *problems, struct err *err)
{
    struct jobspec_problems *found = calloc(1, sizeof(*found));

    check(found != NULL);
    int code = jobspec_from_json("job", request, ret_job, found);
    for (size_t i = 0; i < found->count; i++)
        add_problem(problems, found->items[i]);
    if (code < 0)
        (void)err_set(err, code, "%s", found->items[0]);
    free(found);
    return code;
}

int standalone_register(struct standalone *standalone, const json_t *request,
                        struct standalone_evaluation *ret_evaluation, json_t *problems,
                        struct err *err)
{
    json_t *json;
    int code = parse(request, &json, problems, err);

    if (code == 0 && daemon_degraded(standalone->daemon) != NULL) {
        json_decref(json);
        return err_set(err, ERR_AGAIN, "the journal cannot be written: %s",
                       daemon_degraded(standalone->daemon));
    }
    if (code == 0) {
        code = check_drivers(standalone, json, problems, err);
        if (code < 0)
            json_decref(json);
    }
    if (code < 0)
        return code;

    const char *namespace = json_string_value(json_object_get(json, "Namespace"));
    const char *id = json_string_value(json_object_get(json, "ID"));
    struct job *job = find_job(standalone, namespace, id);
    if (job == NULL)
        job = add_job(standalone, namespace, id);
    bool changed = job->json == NULL || !is_same_job(job->json, json);
    stamp(standalone, job, json, changed);
    struct gathering gathering = {standalone, job, json, NULL, NULL, 0};
    if (job->json != NULL)
        agent_each(daemon_core(standalone->daemon), MACHINE_ALLOC, gather, &gathering);
    agent_propose(daemon_core(standalone->daemon), true);
    begin_change(standalone, job, json);
    *ret_evaluation = begin_evaluation(job, "job-register");
    code = reconcile(standalone, job, &gathering, ret_evaluation, err);
    agent_propose(daemon_core(standalone->daemon), false);
    free(gathering.allocs);
    free(gathering.ids);
    if (code < 0)
        return code;
    keep_evaluation(standalone, ret_evaluation);
    log_info("agent", "job registered job=%s version=%llu placed=%u stopped=%u", log_value(id),
             (unsigned long long)job->public.version, ret_evaluation->placed,
             ret_evaluation->stopped);
    return 0;
}

int standalone_deregister(struct standalone *standalone, const char *namespace, const char *job_id,
                          bool purge, struct standalone_evaluation *ret_evaluation, struct err *err)
{
    struct job *job = find_job(standalone, namespace, job_id);

    if (job == NULL)
        return err_set(err, ERR_GONE, "job \"%s\" not found", job_id);
    if (daemon_degraded(standalone->daemon) != NULL)
        return err_set(err, ERR_AGAIN, "the journal cannot be written: %s",
                       daemon_degraded(standalone->daemon));

    struct gathering gathering = {standalone, job, NULL, NULL, NULL, 0};
    agent_each(daemon_core(standalone->daemon), MACHINE_ALLOC, gather, &gathering);
    *ret_evaluation = begin_evaluation(job, "job-deregister");
    agent_propose(daemon_core(standalone->daemon), true);
    for (size_t i = 0; i < gathering.count; i++) {
        if (!gathering.allocs[i].live && !purge)
            continue;
        stop_alloc(standalone, &gathering.ids[i], "alloc not needed due to job update", purge);
        ret_evaluation->stopped++;
    }
    free(gathering.allocs);
    free(gathering.ids);
    json_t *json = json_copy(job->json);
    (void)json_object_set_new(json, "Stop", json_true());
    (void)json_object_set_new(
        json, "ModifyIndex",
        json_integer((json_int_t)(agent_figures(daemon_core(standalone->daemon)).sequence + 1)));
    if (purge)
        (void)json_object_set_new(json, "cairnPurge", json_true());
    begin_change(standalone, job, json);
    agent_propose(daemon_core(standalone->daemon), false);
    keep_evaluation(standalone, ret_evaluation);
    log_info("agent", "job stopped job=%s allocs=%u purge=%s", log_value(job_id),
             ret_evaluation->stopped, purge ? "yes" : "no");
    return 0;
}

int standalone_stop_alloc(struct standalone *standalone, const char *alloc,
                          struct standalone_evaluation *ret_evaluation, struct err *err)
{
    const struct alloc *record = agent_alloc(daemon_core(standalone->daemon), alloc);

    if (record == NULL)
        return err_set(err, ERR_GONE, "alloc not found");
    struct job *job = find_job(standalone, record->assign.namespace, record->assign.job_id);
    if (job == NULL)
        return err_set(err, ERR_GONE,
                       "the alloc's job \"%s\" is not known any more: stop it by "
                       "removing the alloc",
                       record->assign.job_id);
    if (daemon_degraded(standalone->daemon) != NULL)
        return err_set(err, ERR_AGAIN, "the journal cannot be written: %s",
                       daemon_degraded(standalone->daemon));

    struct gathering gathering = {standalone, job, job->json, NULL, NULL, 0};
    int code = 0;
    agent_each(daemon_core(standalone->daemon), MACHINE_ALLOC, gather, &gathering);
    *ret_evaluation = begin_evaluation(job, "alloc-stop");
    agent_propose(daemon_core(standalone->daemon), true);
    for (size_t i = 0; i < gathering.count; i++) {
        if (!text_equal(gathering.ids[i].text, alloc))
            continue;
        stop_alloc(standalone, &gathering.ids[i], "alloc was stopped by a user", false);
        gathering.allocs[i].live = gathering.allocs[i].succeeded = false;
        ret_evaluation->stopped++;
    }
    if (!job->public.stop)
        code = reconcile(standalone, job, &gathering, ret_evaluation, err);
    agent_propose(daemon_core(standalone->daemon), false);
    free(gathering.allocs);
    free(gathering.ids);
    if (code == 0)
        keep_evaluation(standalone, ret_evaluation);
    return code;
}

/* --- collecting --- */

struct ended {
    struct machine_id id;
    int64_t ended_unix_ns;
};

struct ended_list {
    struct ended *items;
    size_t count;
};

static bool note_ended(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct ended_list *list = ctx;

    if (record->state != A_TERMINAL)
        return true;
    list->items = realloc(list->items, (list->count + 1) * sizeof(*list->items));
    check(list->items != NULL);
    list->items[list->count++] = (struct ended){*id, alloc_of(record)->ended_unix_ns};
    return true;
}

static int by_age(const void *a, const void *b)
{
    int64_t left = ((const struct ended *)a)->ended_unix_ns;
    int64_t right = ((const struct ended *)b)->ended_unix_ns;

    return left < right ? -1 : left > right;
}

static bool count_alloc(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct gathering *gathering = ctx;
    const struct alloc *alloc = alloc_of(record);

    (void)id;
    if (text_equal(alloc->assign.job_id, gathering->job->id) &&
        text_equal(alloc->assign.namespace, gathering->job->namespace))
        gathering->count++;
    return true;
}

/* Forgets jobs without allocs that were purged, or are stopped if ALL_STOPPED.  True if that was
 * wanted and a stopped job still has allocs. */
static bool forget_jobs(struct standalone *standalone, bool all_stopped)
{
    struct job *job, *next;
    bool more = false;

    HASH_ITER(hh, standalone->jobs, job, next)
    {
        bool purged = json_is_true(json_object_get(job->json, "cairnPurge"));
        struct gathering gathering = {.standalone = standalone, .job = job};
        if (job->unsaved || !(purged || (all_stopped && job->public.stop)))
            continue;
        agent_each(daemon_core(standalone->daemon), MACHINE_ALLOC, count_alloc, &gathering);
        if (gathering.count > 0) {
            more = all_stopped;
            continue;
        }
        agent_spec(daemon_core(standalone->daemon), job->key, NULL, 0);
        job_free(standalone, job);
        daemon_changed(standalone->daemon);
    }
    return more;
}

static void collect(struct standalone *standalone, size_t kept)
{
    struct ended_list list = {0};

    agent_each(daemon_core(standalone->daemon), MACHINE_ALLOC, note_ended, &list);
    size_t excess = policy_collect(list.count, kept);
    if (excess > 0)
        qsort(list.items, list.count, sizeof(*list.items), by_age);
    for (size_t i = 0; i < excess; i++)
        agent_tell(daemon_core(standalone->daemon), &list.items[i].id, AE_DESTROY, NULL);
    free(list.items);
}

void standalone_collect(struct standalone *standalone)
{
    collect(standalone, 0);
    standalone->forget_stopped = forget_jobs(standalone, true);
}

void standalone_alloc_ended(struct standalone *standalone)
{
    standalone->tidy_wanted = true; /* once for all that end in one turn */
}

void standalone_tidy(struct standalone *standalone)
{
    if (!standalone->tidy_wanted)
        return;
    standalone->tidy_wanted = false;
    collect(standalone, daemon_config(standalone->daemon)->gc_max_allocs);
    standalone->forget_stopped = forget_jobs(standalone, standalone->forget_stopped);
}

/* --- looking --- */

const struct standalone_job *standalone_find(const struct standalone *standalone,
                                             const char *namespace, const char *job_id)
{
    const struct job *job = find_job(standalone, namespace, job_id);

    return job == NULL ? NULL : &job->public;
}

void standalone_each(const struct standalone *standalone, standalone_each_cb *cb, void *ctx)
{
    const struct job *next;

    for (const struct job *job = standalone->jobs; job != NULL; job = next) {
        next = job->hh.next;
        if (!cb(ctx, &job->public))
            return;
    }
}

struct counting {
    const struct standalone_job *job;
    size_t live, pending;
};

static bool count_live(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct counting *counting = ctx;
    const struct alloc *alloc = alloc_of(record);

    (void)id;
    if (!text_equal(alloc->assign.job_id, counting->job->id) ||
        !text_equal(alloc->assign.namespace, counting->job->namespace))
        return true;
    bool live = alloc->client_status == CLIENT_PENDING || alloc->client_status == CLIENT_RUNNING;
    counting->live += live;
    counting->pending += alloc->client_status == CLIENT_PENDING;
    return true;
}

const char *standalone_job_status(const struct standalone *standalone,
                                  const struct standalone_job *job)
{
    struct counting counting = {.job = job};

    agent_each(daemon_core(standalone->daemon), MACHINE_ALLOC, count_live, &counting);
    return job_status_name(policy_job_status(job->stop, counting.live, counting.pending));
}
