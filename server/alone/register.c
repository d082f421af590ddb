/*
 * What callers ask of the stand-alone control plane: to register a job, to stop one, to stop an
 * alloc.
 *
 * Each is one proposal: all of it goes with the next commit, or none of it (I-14).
 */
#include "server/alone/part.h"

#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

/* What stamping, placing and queueing add to what callers send, and deployments to that. */
enum { STAMPS_BYTES_MAX = 512 << 10 };

/* --- registering --- */

static void add_problem(json_t *problems, const char *text)
{
    if (problems != NULL)
        (void)json_array_append_new(problems, json_string(text));
}

/* One that the journal cannot take is refused here: there it would fail the commit, and with it all
 * that others want. */
static int check_size(size_t bytes, struct err *err)
{
    size_t bytes_max = JOURNAL_VALUE_BYTES_MAX - STAMPS_BYTES_MAX;

    if (bytes <= bytes_max)
        return 0;
    return err_set(err, ERR_LIMIT, "the job is too large: %zu bytes, of at most %zu", bytes,
                   bytes_max);
}

/* What one value of the journal has for others beside a job of BYTES. */
static size_t room_beside(size_t bytes)
{
    size_t bytes_max = JOURNAL_VALUE_BYTES_MAX - STAMPS_BYTES_MAX;

    return bytes < bytes_max ? bytes_max - bytes : 0;
}

static bool is_asked_for(const struct spec_ports *ports, size_t value)
{
    for (size_t i = 0; i < ports->count; i++) {
        if (ports->items[i].is_static && ports->items[i].value == value)
            return true;
    }
    return false;
}

/* PORTS, for which no node was asked yet, as if each was on an address of its own.  Those of a task
 * are on one, as are static ports of one number that are on networks of their own: what is given
 * out has a number that no other has, as long as any. */
static void pretend_ports(struct spec_ports *ports, char ips[SPEC_PORTS_MAX][ADDRESS_SIZE])
{
    uint16_t next = UINT16_MAX;

    for (size_t i = 0; i < ports->count; i++) {
        (void)text_format(ips[i], ADDRESS_SIZE, "127.0.1.%zu", i); /* fits */
        ports->items[i].host_ip = ips[i];
        if (ports->items[i].is_static)
            continue;
        while (is_asked_for(ports, next))
            next--;
        ports->items[i].value = next--;
    }
}

/* As many as GROUP asks for, whichever: how many there are is asked later. */
static struct spec_cores pretend_cores(const json_t *group, struct spec_core items[NODE_CORES_MAX])
{
    struct spec_cores cores = {.items = items};
    const json_t *task;
    size_t t;

    json_array_foreach(json_object_get(group, "Tasks"), t, task)
    {
        uint64_t left = job_number(json_object_get(task, "Resources"), "Cores");

        for (; left > 0 && cores.count < NODE_CORES_MAX; left--, cores.count++)
            items[cores.count] =
                (struct spec_core){.task = json_string_value(json_object_get(task, "Name")),
                                   .id = (uint16_t)cores.count};
    }
    return cores;
}

/* A plugin for each volume of the group that is of one. */
static struct spec_pairs pretend_plugins(const struct spec_volume *volumes, size_t count,
                                         struct spec_pair items[SPEC_VOLUMES_MAX])
{
    struct spec_pairs plugins = {.items = items};

    for (size_t i = 0; i < count; i++) {
        if (volumes[i].type == VOLUME_CSI)
            items[plugins.count++] = (struct spec_pair){volumes[i].name, "plugin"};
    }
    return plugins;
}

/* The specification that an alloc of GROUP would get. */
static int try_group(const json_t *job, const json_t *group, struct alloc_spec **ret_spec,
                     struct err *err)
{
    struct jobspec_placement placement = {
        .group = json_string_value(json_object_get(group, "Name")),
        .alloc_id = "00000000-0000-4000-8000-000000000000",
        .eval_id = "",
        .datacenter = "dc1",
    };
    struct spec_port ports[SPEC_PORTS_MAX];
    char ips[SPEC_PORTS_MAX][ADDRESS_SIZE];
    struct spec_core cores[NODE_CORES_MAX];
    struct spec_volume volumes[SPEC_VOLUMES_MAX];
    char sources[SPEC_VOLUMES_MAX][SPEC_SOURCE_SIZE];
    struct spec_pair plugins[SPEC_VOLUMES_MAX];
    size_t length, volumes_count;

    placement.ports.items = ports;
    (void)jobspec_ports(group, ports, &placement.ports.count); /* it was checked */
    pretend_ports(&placement.ports, ips);
    placement.cores = pretend_cores(group, cores);
    json_t *devices = grants_pretend(group);
    placement.devices = devices;
    (void)jobspec_volumes(group, 0, volumes, sources, &volumes_count); /* it was checked */
    placement.plugins = pretend_plugins(volumes, volumes_count, plugins);

    int code = jobspec_make_alloc(job, &placement, NULL, &length, ret_spec, err);
    json_decref(devices);
    if (code < 0)
        return code;
    code = check_size(length, err);
    if (code < 0)
        alloc_spec_free(*ret_spec);
    return code;
}

/* Asks each task's driver about its config block. */
static int check_groups(const struct assign_plans *plans, const json_t *job, json_t *problems,
                        struct err *err)
{
    const json_t *group;
    size_t g, bad = 0;
    char line[ERR_TEXT_SIZE + 2 * SPEC_NAME_SIZE + 64];

    json_array_foreach(json_object_get(job, "TaskGroups"), g, group)
    {
        struct alloc_spec *spec;
        int code = try_group(job, group, &spec, err);
        if (code < 0)
            return code;
        for (size_t t = 0; t < spec->tasks_count; t++) {
            struct err wrong = {0};
            if (plans->validate(plans->ctx, spec, &spec->tasks[t], &wrong) == 0)
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

/* The index that JOB changes by now.  None is given to it twice, also if it changes twice before
 * there is a commit: who asked for a change of what it was is told that it has changed. */
static uint64_t next_index(const struct alone *alone, const struct job *job)
{
    uint64_t next = life_next_index(alone->config.life);

    return job->public.job_modify_index < next ? next : job->public.job_modify_index + 1;
}

static void stamp(struct alone *alone, const struct job *job, json_t *json, bool changed)
{
    uint64_t index = next_index(alone, job);
    bool is_new = job->json == NULL;
    uint64_t version = is_new ? 0 : job->public.version + (changed ? 1 : 0);

    (void)json_object_set_new(json, "Version", json_integer((json_int_t)version));
    (void)json_object_set_new(
        json, "CreateIndex", json_integer((json_int_t)(is_new ? index : job->public.create_index)));
    (void)json_object_set_new(json, "ModifyIndex", json_integer((json_int_t)index));
    (void)json_object_set_new(json, "JobModifyIndex", json_integer((json_int_t)index));
    (void)json_object_set_new(json, "SubmitTime", json_integer(life_unix_ns(alone->config.life)));
    (void)json_object_set_new(json, "Stop",
                              json_boolean(json_is_true(json_object_get(json, "Stop"))));
}

/* What was kept with the version before stays with the job; its deployment is over if this is
 * another one: as OUTCOME says, NULL: because of it. */
static void carry_kept(const struct alone *alone, const struct job *job, json_t *json, bool changed,
                       const struct outcome *outcome)
{
    static const struct outcome newer = {"cancelled", "Cancelled due to newer version of job"};
    static const char *const carried[] = {"cairnDeployment", "cairnDeployments", "cairnVersions",
                                          "Stable", "VersionTag"};

    for (size_t i = 0; i < COUNT_OF(carried); i++) {
        json_t *kept = json_object_get(job->json, carried[i]);
        if (kept != NULL)
            check(json_object_set(json, carried[i], kept) == 0);
        else
            (void)json_object_del(json, carried[i]); /* of the job, or the version, it is made of */
    }
    if (!changed || job->json == NULL)
        return;
    outcome = outcome == NULL ? &newer : outcome;
    json_t *deployment = rollout_ended(alone, job, outcome->status, outcome->description);
    if (deployment != NULL)
        check(json_object_set_new(json, "cairnDeployment", deployment) == 0);
    (void)json_object_del(json, "cairnVersions"); /* mostly missing */
    size_t room = room_beside(json_dumpb(json, NULL, 0, JSON_COMPACT));
    check(json_object_set_new(json, "cairnVersions", versions_before_next(job->json, room)) == 0);
    (void)json_object_del(json, "Stable"); /* of the one before */
    (void)json_object_del(json, "VersionTag");
}

bool job_is_same(const json_t *a, const json_t *b)
{
    static const char *const stamped[] = {"Version",         "CreateIndex",      "ModifyIndex",
                                          "JobModifyIndex",  "SubmitTime",       "Stop",
                                          "Status",          "Stable",           "cairnQueued",
                                          "cairnDeployment", "cairnDeployments", "cairnVersions",
                                          "cairnScaling",    "cairnLaunched",    "cairnSource",
                                          "VersionTag"};
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

static bool note_namespace(void *ctx, const struct alone_job *job)
{
    const char **namespace = ctx;

    if (text_equal(job->namespace, *namespace))
        *namespace = NULL;
    return *namespace != NULL;
}

/* What the job names is there: there is one region, one pool of nodes, and one namespace, besides
 * those that jobs of older versions brought along. */
int alone_check_names(struct alone *alone, const json_t *job, struct err *err)
{
    const char *namespace = json_string_value(json_object_get(job, "Namespace")), *missing;
    const char *region = json_string_value(json_object_get(job, "Region"));
    const char *pool = json_string_value(json_object_get(job, "NodePool"));
    int code = 0;

    missing = text_equal(namespace, "default") ? NULL : namespace;
    if (missing != NULL)
        alone_each(alone, note_namespace, &missing);
    if (missing != NULL)
        code = err_set(err, ERR_INVALID, "nonexistent namespace \"%s\"", missing);
    else if (!text_equal(region, alone->config.node.region))
        code = err_set(err, ERR_INVALID, "No path to region: this is \"%s\", not \"%s\"",
                       alone->config.node.region, region);
    else if (pool != NULL && pool[0] != '\0' && !text_equal(pool, "default") &&
             !text_equal(pool, "all"))
        code = err_set(err, ERR_INVALID, "nonexistent node pool \"%.60s\"", pool);
    return code;
}

const struct assign_plans *alone_plans(const struct alone *alone)
{
    return &alone->config.plans;
}

void alone_wanted_free(struct alone_wanted *wanted)
{
    json_decref(wanted->job);
    json_decref(wanted->source);
    *wanted = (struct alone_wanted){0};
}

int alone_read_job(const struct assign_plans *plans, const json_t *request,
                   struct alone_wanted *ret_wanted, json_t *problems, struct err *err)
{
    struct alone_wanted wanted = {0};
    int code = parse(request, &wanted.job, problems, err);

    if (code < 0)
        return code;
    wanted.bytes = json_dumpb(wanted.job, NULL, 0, JSON_COMPACT);
    code = check_size(wanted.bytes, err);
    if (code == 0)
        code = check_groups(plans, wanted.job, problems, err);
    if (code < 0)
        alone_wanted_free(&wanted);
    else
        *ret_wanted = wanted;
    return code;
}

/* What was placed of a job would be left over by one of which other jobs are made, and by one that
 * has an end, or none.  Of one that was purged all of it is going. */
static int check_transition(const struct job *job, const json_t *json, struct err *err)
{
    static const struct {
        const char *name;
        bool (*is)(const json_t *job);
    } kinds[] = {{"parameterized", jobspec_is_parameterized}, {"periodic", jobspec_is_periodic}};

    if (job == NULL || job_is_purged(job) ||
        json_array_size(json_object_get(job->json, "TaskGroups")) == 0)
        return 0;
    const char *type = json_string_value(json_object_get(json, "Type"));
    const char *type_was = json_string_value(json_object_get(job->json, "Type"));
    if (type != NULL && type_was != NULL && !text_equal(type, type_was))
        return err_set(err, ERR_INVALID, "cannot update job from type \"%s\" to \"%s\"", type_was,
                       type);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        bool is = kinds[i].is(json), was = kinds[i].is(job->json);
        if (is != was)
            return err_set(err, ERR_INVALID, "cannot update %s%s job to being %s%s",
                           was ? "" : "non-", kinds[i].name, is ? "" : "non-", kinds[i].name);
    }
    return 0;
}

/* JSON (moved), of which RET_JOB is a new version, or the first. */
static int accept(struct alone *alone, json_t *json, struct job **ret_job, struct err *err)
{
    const char *namespace = json_string_value(json_object_get(json, "Namespace"));
    const char *id = json_string_value(json_object_get(json, "ID"));
    struct job *job = job_find(alone, namespace, id);
    size_t bytes = json_dumpb(json, NULL, 0, JSON_COMPACT);
    int code = alone_check_names(alone, json, err);

    if (code == 0)
        code = check_transition(job, json, err);
    if (code == 0 && job != NULL)
        code = versions_check(job->json, room_beside(bytes), err);
    if (code == 0)
        code = periodic_check(alone, json, err);
    if (code == 0)
        code = life_check_turn(alone->config.life, 0, err);
    if (code == 0)
        code = alone_check_job(alone, job, bytes, err);
    if (code < 0)
        json_decref(json);
    else
        *ret_job = job == NULL ? job_add(alone, namespace, id) : job;
    return code;
}

int register_json(struct alone *alone, json_t *json, const json_t *source,
                  const struct outcome *outcome, const char *why,
                  struct alone_evaluation *ret_evaluation, struct err *err)
{
    struct job *job;
    int code = accept(alone, json, &job, err);

    if (code < 0)
        return code;
    bool changed = job->json == NULL || !job_is_same(job->json, json);
    bool stopped = json_is_true(json_object_get(json, "Stop"));
    bool makes_jobs = jobspec_makes_jobs(json), runs = !stopped && !makes_jobs;
    bool anew = changed || stopped != job->public.stop;
    if (anew) {
        stamp(alone, job, json, changed);
        scaling_carry(alone, job->json, json);
        periodic_stamp(alone, json);
        carry_kept(alone, job, json, changed, outcome);
        source_stamp(job, json, changed, source);
    } else { /* nothing is written, but allocs that it misses are placed */
        json_decref(json);
        json = job->json;
    }
    struct gathering gathering = {.alone = alone,
                                  .job = job,
                                  .wanted = json,
                                  .changed = changed,
                                  .begins = runs && (changed || job->public.stop)};
    gathering_fill(&gathering); /* also of one that is new: what was known of it may be lost */
    struct change change = change_begin(alone, job);
    if (anew) {
        change_job(alone, &change, json);
        source_keep(alone, job, change.before, source);
    }
    *ret_evaluation = evaluation_begin(alone, job, why);
    if (runs)
        code = alone_reconcile(alone, &change, &gathering, ret_evaluation, err);
    code = change_end(alone, &change, code);
    gathering_free(&gathering);
    if (code < 0)
        return code;
    if (makes_jobs)
        ret_evaluation->id[0] = '\0'; /* there is nothing to decide */
    else
        evaluation_keep(alone, ret_evaluation);
    say(&alone->config.say, SAY_INFO, "server",
        "job registered job=%s version=%llu placed=%u stopped=%u updated=%u", text_value(job->id),
        (unsigned long long)job->public.version, ret_evaluation->placed, ret_evaluation->stopped,
        ret_evaluation->updated);
    return 0;
}

int alone_register_read(struct alone *alone, struct alone_wanted *wanted,
                        struct alone_evaluation *ret_evaluation, struct err *err)
{
    json_t *json = wanted->job;

    source_fit(alone, wanted);
    wanted->job = NULL;
    return register_json(alone, json, wanted->source, NULL, "job-register", ret_evaluation, err);
}

int alone_register(struct alone *alone, const json_t *request,
                   struct alone_evaluation *ret_evaluation, json_t *problems, struct err *err)
{
    struct alone_wanted wanted = {0};
    int code = alone_read_job(&alone->config.plans, request, &wanted, problems, err);

    if (code == 0)
        code = alone_register_read(alone, &wanted, ret_evaluation, err);
    alone_wanted_free(&wanted);
    return code;
}

/* --- registering an older version again --- */

int version_again(struct alone *alone, const struct alone_job *job, const json_t *version,
                  const struct outcome *outcome, const char *why,
                  struct alone_evaluation *ret_evaluation, struct err *err)
{
    json_t *json = json_deep_copy(version); /* what is registered is stamped and changed */
    json_t *source = source_read(alone, job, job_number(version, "Version"));

    check(json != NULL);
    version_strip(json);
    (void)json_object_del(json, "Stop");
    int code = register_json(alone, json, source, outcome, why, ret_evaluation, err);
    json_decref(source);
    return code;
}

int alone_revert(struct alone *alone, const struct alone_job *job, uint64_t version,
                 struct alone_evaluation *ret_evaluation, struct err *err)
{
    const json_t *json = versions_find(job, version);

    if (version == job->version)
        return err_set(err, ERR_INVALID, "can't revert to current version");
    if (json == NULL)
        return err_set(err, ERR_GONE, "job \"%s\" in namespace \"%s\" at version %llu not found",
                       job->id, job->namespace, (unsigned long long)version);
    return version_again(alone, job, json, NULL, "job-register", ret_evaluation, err);
}

/* --- stopping --- */

/* It was told to end before, and is now to skip what it waits for. */
static bool is_hurried(const struct alone *alone, const char *alloc, unsigned how)
{
    const struct alloc *record = core_alloc(life_core(alone->config.life), alloc);

    return (how & ALONE_AT_ONCE) != 0 && record != NULL && record->ended_unix_ns == 0 &&
           !record->at_once;
}

int alone_deregister(struct alone *alone, const char *namespace, const char *job_id, unsigned how,
                     struct alone_evaluation *ret_evaluation, struct err *err)
{
    struct job *job = job_find(alone, namespace, job_id);
    bool purge = (how & ALONE_PURGE) != 0;

    if (job == NULL)
        return err_set(err, ERR_GONE, "job \"%s\" not found", job_id);

    struct gathering gathering = {.alone = alone, .job = job};
    gathering_fill(&gathering);
    int code = life_check_turn(alone->config.life, gathering.count * (purge ? 2 : 1), err);
    if (code < 0) {
        gathering_free(&gathering);
        return code;
    }
    struct change change = change_begin(alone, job);
    *ret_evaluation = evaluation_begin(alone, job, "job-deregister");
    for (size_t i = 0; i < gathering.count; i++) {
        bool counts = gathering.allocs[i].live || purge;
        if (counts || is_hurried(alone, gathering.ids[i].text, how))
            alone_order_stop(alone, job, &gathering.ids[i], "alloc not needed due to job update",
                             how);
        ret_evaluation->stopped += counts;
    }
    gathering_free(&gathering);
    json_t *json = json_copy(job->json);
    (void)json_object_set_new(json, "Stop", json_true());
    (void)json_object_del(json, "cairnQueued"); /* missing is fine */
    json_t *deployment = rollout_ended(alone, job, "cancelled", "Cancelled because job is stopped");
    if (deployment != NULL)
        check(json_object_set_new(json, "cairnDeployment", deployment) == 0);
    uint64_t index = next_index(alone, job);
    (void)json_object_set_new(json, "ModifyIndex", json_integer((json_int_t)index));
    (void)json_object_set_new(json, "JobModifyIndex", json_integer((json_int_t)index));
    if (purge)
        (void)json_object_set_new(json, "cairnPurge", json_true());
    change_job(alone, &change, json);
    (void)change_end(alone, &change, 0);
    evaluation_keep(alone, ret_evaluation);
    say(&alone->config.say, SAY_INFO, "server", "job stopped job=%s allocs=%u purge=%s",
        text_value(job_id), ret_evaluation->stopped, purge ? "yes" : "no");
    return 0;
}

int alone_stop_alloc(struct alone *alone, const char *alloc, unsigned how,
                     struct alone_evaluation *ret_evaluation, struct err *err)
{
    const struct alloc *record = core_alloc(life_core(alone->config.life), alloc);

    if (record == NULL)
        return err_set(err, ERR_GONE, "alloc not found");
    struct job *job = job_find(alone, record->assign.namespace, record->assign.job_id);
    if (job == NULL)
        return err_set(err, ERR_GONE,
                       "the alloc's job \"%s\" is not known any more: stop it by "
                       "removing the alloc",
                       record->assign.job_id);
    int code = life_check_turn(alone->config.life, 1, err);
    if (code < 0)
        return code;

    struct machine_id id = machine_id_make(MACHINE_ALLOC, alloc);
    struct gathering gathering = {
        .alone = alone, .job = job, .wanted = job->json, .evaluates = EVALUATE_AS_IT_IS};
    struct change change = change_begin(alone, job);
    *ret_evaluation = evaluation_begin(alone, job, "alloc-stop");
    alone_order_stop(alone, job, &id, "alloc was stopped by a user", how & ALONE_AT_ONCE);
    ret_evaluation->stopped++;
    gathering_fill(&gathering); /* without it */
    if (!job->public.stop)
        code = alone_reconcile(alone, &change, &gathering, ret_evaluation, err);
    code = change_end(alone, &change, code);
    gathering_free(&gathering);
    if (code == 0)
        evaluation_keep(alone, ret_evaluation);
    return code;
}
