/*
 * Allocs over HTTP: lists, one, what can be asked of one.
 *
 * Machines are read as they were last committed.  What changes one is a request event; its answer
 * leaves after the commit.  Follows nomad v1.1.2 command/agent/alloc_endpoint.go.
 */
#include "agent/api/format/format.h"
#include "agent/api/part.h"

#include "base/list.h"
#include "server/alone/alone.h"
#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

/* --- what is known of one --- */

/* The job as it was when ALLOC was placed, or NULL if it has changed since or is gone. */
static const struct alone_job *job_of(struct api *api, const struct alloc *alloc)
{
    const struct alone_job *job =
        alone_find(api->parts->alone, alloc->assign.namespace, alloc->assign.job_id);

    return job != NULL && job->version == alloc->assign.job_version ? job : NULL;
}

/* The commit that STUB's evaluation went with is better known than what was written before it. */
static void look_up(struct api *api, struct alloc_stub *stub)
{
    uint64_t index = alone_placed_at(api->parts->alone, stub->eval_id);

    if (index != 0 && stub->modify_index != 0)
        stub->modify_index = index;
    else if (index != 0)
        stub->create_index = index;
    stub->looked_up = true;
}

/* The index of the commit that placed the alloc, as far as it is still known. */
static uint64_t create_index_of(struct api *api, struct alloc_stub *stub, const struct alloc *alloc)
{
    if (stub != NULL && !stub->looked_up)
        look_up(api, stub);
    if (stub != NULL && stub->create_index != 0)
        return stub->create_index;
    const struct alone_job *job = job_of(api, alloc);
    return job != NULL ? job->job_modify_index : 1;
}

static const char *type_of(const struct alloc *alloc, const struct alloc_stub *stub)
{
    if (stub != NULL)
        return stub->job_type;
    return alloc->assign.batch ? "batch" : "service";
}

static void find_tasks(struct core *core, const char *id, const struct alloc *alloc,
                       const struct task *tasks[ALLOC_MEMBERS_MAX])
{
    check(alloc->assign.members_count <= ALLOC_MEMBERS_MAX);
    for (size_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        tasks[i] = member->kind == MEMBER_TASK ? core_task(core, id, member->name) : NULL;
    }
}

/* --- one alloc as JSON --- */

enum { WAITS_SIZE = 384 };

/* Says that ALLOC, which is in A_WAITING, waits for others to end. */
static void find_others(const struct parts *parts, const char *id, const struct alloc *alloc,
                        char to[WAITS_SIZE])
{
    const char *other =
        alloc->assign.previous[0] != '\0' ? alloc->assign.previous : alloc->assign.disk_from;

    if (!nomad_awaits(parts->nomad, id, to, WAITS_SIZE))
        (void)text_format(to, WAITS_SIZE, "Waiting for alloc %.8s to end", other); /* fits */
}

/* Says for what ALLOC waits, another alloc or one of its volumes, and why; "": for nothing. */
static void find_waits(const struct parts *parts, const char *id, const struct alloc *alloc,
                       char to[WAITS_SIZE])
{
    const struct core *core = parts->core;
    char why[2 * DESCRIPTION_SIZE];

    to[0] = '\0';
    if (alloc->machine.state == A_WAITING)
        find_others(parts, id, alloc, to);
    for (size_t i = 0; alloc->machine.state == A_MOUNTING && i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        const struct volume *volume =
            member->kind == MEMBER_VOLUME ? core_volume(core, id, member->name) : NULL;

        if (volume == NULL || !policy_claim_waits(volume, why, sizeof(why)))
            continue;
        (void)text_format(to, WAITS_SIZE, "Waiting for volume \"%s\": %s", member->name,
                          why); /* fits */
        return;
    }
}

void api_put_alloc(struct writer *to, struct api *api, const char *id, const struct alloc *alloc,
                   unsigned parts)
{
    const struct node *node = &api->parts->node;
    const struct task *tasks[ALLOC_MEMBERS_MAX];
    struct alloc_stub *stub = specs_stub(api->parts->specs, id);
    const struct alloc_next *next = specs_next(api->parts->specs, api->parts->core, id);
    struct alone_evaluation follow_up;
    bool followed = alone_follow_up(api->parts->alone, id, &follow_up);
    const struct alone_job *now =
        alone_find(api->parts->alone, alloc->assign.namespace, alloc->assign.job_id);
    uint64_t create_index = create_index_of(api, stub, alloc); /* first: it looks up both */
    struct api_alloc_view view = {
        .id = id,
        .alloc = alloc,
        .tasks = tasks,
        .job_type = type_of(alloc, stub),
        .eval_id = stub != NULL ? stub->eval_id : "",
        .previous_id = stub != NULL ? stub->previous_id : "",
        .next_id = next != NULL ? next->id : "",
        .follow_up_id = followed       ? follow_up.id
                        : next != NULL ? next->follow_up_id
                                       : "",
        .canary = now != NULL && alone_is_canary(now, alloc->assign.group, id),
        .node_id = node->identity.id,
        .node_name = node->known.name,
        .datacenter = api->parts->config->datacenter,
        .pool = node->known.pool,
        .create_index = create_index,
        .update_index = stub != NULL ? stub->modify_index : 0,
        .task_states = (parts & API_ALLOC_TASK_STATES) != 0,
        .resources = (parts & API_ALLOC_RESOURCES) != 0,
    };
    struct alloc_spec *read = NULL;
    char waits[WAITS_SIZE];

    find_waits(api->parts, id, alloc, waits);
    view.waits = waits;
    if ((parts & (API_ALLOC_FULL | API_ALLOC_TASK_STATES)) != 0)
        find_tasks(api->parts->core, id, alloc, tasks);
    /* If it is lost the alloc is shown by what the record says.  One is asked for again and again,
     * a list of many would keep them all. */
    if ((parts & API_ALLOC_FULL) != 0)
        view.spec = specs_find(api->parts->specs, id, NULL);
    else if (((parts & API_ALLOC_RESOURCES) != 0 || (stub != NULL && stub->rescheduled)) &&
             specs_read(api->parts->specs, id, &read, NULL) == 0)
        view.spec = read;
    if ((parts & API_ALLOC_FULL) != 0) {
        const struct alone_job *job = job_of(api, alloc);
        struct api_job_view shown;
        if (job != NULL) {
            shown = (struct api_job_view){.job = job,
                                          .status = alone_job_status(api->parts->alone, job)};
            view.job = &shown;
        }
        api_format_alloc(to, &view);
    } else {
        api_format_alloc_stub(to, &view);
    }
    alloc_spec_free(read);
}

json_t *api_describe_alloc(struct api *api, const char *id)
{
    const struct alloc *alloc = core_alloc(api->parts->core, id);
    const struct task *tasks[ALLOC_MEMBERS_MAX];
    struct writer to = {.wired = true};
    char waits[WAITS_SIZE];
    struct api_alloc_view view = {.id = id, .alloc = alloc, .tasks = tasks, .waits = waits};

    if (alloc == NULL)
        return NULL;
    find_waits(api->parts, id, alloc, waits);
    find_tasks(api->parts->core, id, alloc, tasks);
    api_format_alloc_status(&to, &view);
    json_t *json = json_loadb(to.bytes, to.used, 0, NULL);
    check(json != NULL); /* we have just written it */
    free(to.bytes);
    return json;
}

/* --- lists --- */

struct selected {
    int64_t create_unix_ns;
    const char *id;            /* these two belong to the core: nothing turns while a list */
    const struct alloc *alloc; /* is written */
};

struct selected_list {
    const struct api_request *request;
    const struct api_selection *selection;
    struct selected *items;
    size_t count, size;
};

/* Newest first; those of one moment by id.  Not as the machines lie in memory: that order is
 * another one after a restart. */
static int by_age(const void *a, const void *b)
{
    const struct selected *left = a, *right = b;

    if (left->create_unix_ns != right->create_unix_ns)
        return left->create_unix_ns > right->create_unix_ns ? -1 : 1;
    return strcmp(left->id, right->id);
}

static bool select_alloc(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct selected_list *list = ctx;
    const struct api_selection *selection = list->selection;
    const struct alloc *alloc = alloc_of(record);

    if ((text_equal(selection->namespace, "*") ||
         text_equal(selection->namespace, alloc->assign.namespace)) &&
        (selection->job == NULL || text_equal(selection->job, alloc->assign.job_id)) &&
        api_may(list->request, alloc->assign.namespace, ACL_BIT(ACL_READ_JOB)) &&
        (selection->keep == NULL || selection->keep(selection->ctx, id->text, alloc)))
        *list_more(list) = (struct selected){alloc->assign.create_unix_ns, id->text, alloc};
    return true;
}

void api_reply_allocs(struct api_request *request, const struct api_selection *selection)
{
    struct core *core = request->api->parts->core;
    struct selected_list list = {.request = request, .selection = selection};
    struct writer to = api_writer(request);

    if (selection->job != NULL && !text_equal(selection->namespace, "*"))
        core_each_of_job(core, selection->namespace, selection->job, select_alloc, &list);
    else
        core_each(core, MACHINE_ALLOC, select_alloc, &list);
    if (list.count > 0)
        qsort(list.items, list.count, sizeof(*list.items), by_age);
    put_array(&to, NULL);
    for (size_t i = 0; i < list.count; i++)
        api_put_alloc(&to, request->api, list.items[i].id, list.items[i].alloc, selection->parts);
    put_end(&to);
    api_reply_written(request, &to);
    free(list.items);
}

static bool keep_prefix(void *ctx, const char *id, const struct alloc *alloc)
{
    const struct api_request *request = ctx;
    (void)alloc;

    return text_starts_with(id, request->prefix);
}

void api_allocs_list(struct api_request *request)
{
    struct api_selection selection = {
        .namespace = request->namespace, .keep = keep_prefix, .ctx = request};
    bool resources = false, task_states = true;

    if (!api_query_bool(request, "resources", &resources) ||
        !api_query_bool(request, "task_states", &task_states))
        return;
    selection.parts =
        (resources ? API_ALLOC_RESOURCES : 0) | (task_states ? API_ALLOC_TASK_STATES : 0);
    api_reply_allocs(request, &selection);
}

/* --- one --- */

const struct alloc *api_alloc_of(struct api_request *request, const char *id,
                                 struct machine_id *ret_id)
{
    const struct alloc *alloc =
        uuid_is_valid(id) ? core_alloc(request->api->parts->core, id) : NULL;

    if (alloc == NULL) {
        api_refuse(request, 404, "Unknown allocation \"%.40s\"", id);
        return NULL;
    }
    *ret_id = machine_id_make(MACHINE_ALLOC, id);
    return alloc;
}

void api_alloc_get(struct api_request *request)
{
    if (api_reply_kept(request))
        return;
    const struct alloc *alloc = uuid_is_valid(request->argument)
                                    ? core_alloc(request->api->parts->core, request->argument)
                                    : NULL;

    if (alloc == NULL) {
        api_refuse(request, 404, "alloc not found");
        return;
    }
    struct writer to = api_writer(request);
    api_put_alloc(&to, request->api, request->argument, alloc, API_ALLOC_FULL);
    api_reply_and_keep(request, &to);
}

static json_t *make_stopped(struct api *api, void *ctx)
{
    const struct alone_evaluation *evaluation = ctx;

    return json_pack("{s:s, s:I}", "EvalID", evaluation->id, "Index", (json_int_t)api_index(api));
}

void api_alloc_stop(struct api_request *request)
{
    struct alone_evaluation *evaluation;
    struct machine_id id;
    struct err err;
    bool at_once = false;

    if (!api_query_bool(request, "no_shutdown_delay", &at_once) ||
        api_alloc_of(request, request->argument, &id) == NULL)
        return;
    evaluation = calloc(1, sizeof(*evaluation));
    check(evaluation != NULL);
    if (alone_stop_alloc(request->api->parts->alone, id.text, at_once ? ALONE_AT_ONCE : 0,
                         evaluation, &err) != 0) {
        free(evaluation);
        api_refuse_err(request, &err);
        return;
    }
    life_after_commit(request->api->parts->life, api_deferred_answer,
                      api_defer(request, make_stopped, evaluation));
}

/* The task NAME of the alloc ID, or false after refusing the request. */
static bool task_of_alloc(struct api_request *request, const struct machine_id *id,
                          const char *name, struct machine_id *ret_task)
{
    if (strlen(name) >= SPEC_NAME_SIZE ||
        core_task(request->api->parts->core, id->text, name) == NULL) {
        api_refuse(request, 404, "Could not find task runner for task: %.100s", name);
        return false;
    }
    *ret_task = machine_id_join(MACHINE_TASK, id->text, name);
    return true;
}

/* Restarts what BODY asks for: one task, those that run, or all of the alloc's.  The texts are
 * Nomad's (v2.0.5 client/client.go). */
static void restart(struct api_request *request, const struct machine_id *id, const json_t *body)
{
    const char *name = json_string_value(json_object_get(body, "TaskName"));
    bool one = name != NULL && name[0] != '\0';
    bool all = json_is_true(json_object_get(body, "AllTasks"));
    struct life *life = request->api->parts->life;
    struct request why = {0};
    struct machine_id task;

    if (!api_field_is(body, "TaskName", JSON_STRING) ||
        !api_field_is(body, "AllTasks", JSON_TRUE)) {
        api_refuse(request, 400, "TaskName must be a text, and AllTasks true or false");
    } else if (one && all) {
        api_refuse(request, 400, "task name cannot be set when restarting all tasks");
    } else if (all) {
        life_ask(life, id, AE_REPLAY, NULL, api_deferred_answer,
                 api_defer(request, api_make_index, NULL));
    } else if (!one) {
        (void)text_copy(why.text, sizeof(why.text),
                        "User requested running tasks to restart"); /* fits */
        life_ask(life, id, AE_RESTART, &why, api_deferred_answer,
                 api_defer(request, api_make_index, NULL));
    } else if (task_of_alloc(request, id, name, &task)) {
        (void)text_copy(why.text, sizeof(why.text), "User requested task to restart"); /* fits */
        life_ask(life, &task, TE_RESTART, &why, api_deferred_answer,
                 api_defer(request, api_make_index, NULL));
    }
}

void api_alloc_restart(struct api_request *request)
{
    struct machine_id id;
    json_t *body;

    if (api_alloc_of(request, request->argument, &id) == NULL ||
        (body = api_body(request, true)) == NULL)
        return;
    restart(request, &id, body);
    json_decref(body);
}

/* Signals every task of ALLOC that runs; the answer waits for all of them. */
static void signal_all(struct api_request *request, const struct machine_id *id,
                       const struct alloc *alloc, const struct request *why)
{
    struct machine_id tasks[SPEC_TASKS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];

        if (member->kind == MEMBER_TASK && member->run_state == TASK_RUN_RUNNING &&
            count < COUNT_OF(tasks))
            tasks[count++] = machine_id_join(MACHINE_TASK, id->text, member->name);
    }
    if (count == 0) {
        api_refuse(request, 409, "Task not running");
        return;
    }
    struct api_deferred *deferred = api_defer(request, api_make_index, NULL);
    deferred->waiting = count;
    for (size_t i = 0; i < count; i++)
        life_ask(request->api->parts->life, &tasks[i], TE_SIGNAL, why, api_deferred_answer,
                 deferred);
}

void api_alloc_signal(struct api_request *request)
{
    struct machine_id id, task;
    const struct alloc *alloc = api_alloc_of(request, request->argument, &id);
    struct request why = {0};
    json_t *body;

    if (alloc == NULL || (body = api_body(request, false)) == NULL)
        return;
    const char *name = json_string_value(json_object_get(body, "Task"));
    const char *signal = json_string_value(json_object_get(body, "Signal"));
    if (!api_field_is(body, "Task", JSON_STRING))
        api_refuse(request, 400, "Task must be a text");
    else if (signal == NULL || proc_signal_number(signal) == 0 ||
             !text_copy(why.signal, sizeof(why.signal), signal))
        api_refuse(request, 400, "invalid signal \"%.40s\"", signal == NULL ? "" : signal);
    else if (name == NULL || name[0] == '\0')
        signal_all(request, &id, alloc, &why);
    else if (task_of_alloc(request, &id, name, &task))
        life_ask(request->api->parts->life, &task, TE_SIGNAL, &why, api_deferred_answer,
                 api_defer(request, api_make_index, NULL));
    json_decref(body);
}

/* --- garbage --- */

void api_alloc_gc(struct api_request *request)
{
    struct machine_id id;
    const struct alloc *alloc = api_alloc_of(request, request->argument, &id);

    if (alloc == NULL)
        return;
    if (alloc->machine.state < A_TERMINAL)
        api_refuse(request, 409, "The alloc has not ended: stop it first");
    else if (alone_disk_is_awaited(request->api->parts->alone, id.text))
        api_refuse(request, 409, "Another alloc is about to take over its ephemeral disk");
    else
        life_ask(request->api->parts->life, &id, AE_DESTROY, NULL, api_deferred_answer,
                 api_defer(request, NULL, NULL));
}

static void collect(struct api_request *request)
{
    alone_collect(request->api->parts->alone);
    life_after_commit(request->api->parts->life, api_deferred_answer,
                      api_defer(request, NULL, NULL));
}

void api_client_gc(struct api_request *request)
{
    if (api_is_of_this_agent(request))
        collect(request);
}

void api_system_gc(struct api_request *request)
{
    collect(request);
}

/* --- usage --- */

/* What the tasks of an alloc use, read by a thread of the pool. */
struct usage_look {
    struct api_aside aside;
    size_t count;
    struct driver_look looks[ALLOC_MEMBERS_MAX];
};

static void run_usage(struct api_aside *aside)
{
    struct usage_look *usage = (struct usage_look *)aside;

    for (size_t i = 0; i < usage->count; i++)
        driver_look_read(&usage->looks[i]);
}

static void free_usage(struct api_aside *aside)
{
    free(aside); /* the first member of what was allocated */
}

static void answer_usage(struct api_request *request, struct api_aside *aside)
{
    const struct usage_look *usage = (const struct usage_look *)aside;
    uint32_t mhz = request->api->parts->node.facts.cpu_mhz;
    struct api_usage sum = {0};
    json_t *tasks = json_object();

    for (size_t i = 0; i < usage->count; i++) {
        struct driver_stats stats;

        /* One that has ended meanwhile uses nothing. */
        if (driver_look_end(request->api->parts->drivers, &usage->looks[i], &stats, NULL) != 0)
            continue;
        struct api_usage part = {
            .stats = stats.usage,
            .cpu_percent = stats.cpu_percent,
            .unix_ns = stats.timestamp_unix_ns,
        };
        api_usage_add(&sum, &part);
        check(json_object_set_new(tasks, usage->looks[i].key.task,
                                  json_pack("{s:o, s:I, s:n}", "ResourceUsage",
                                            api_format_usage(&part, mhz), "Timestamp",
                                            (json_int_t)part.unix_ns, "Pids")) == 0);
    }
    if (sum.unix_ns == 0)
        sum.unix_ns = loop_now_unix_ns();
    api_reply(request, json_pack("{s:o, s:o, s:I}", "ResourceUsage", api_format_usage(&sum, mhz),
                                 "Tasks", tasks, "Timestamp", (json_int_t)sum.unix_ns));
}

/* Adds TASK, if it runs. */
static void look_at_task(struct api *api, struct usage_look *usage, const char *alloc,
                         const char *name, const struct task *task)
{
    struct driver_key key = {.generation = task->machine.generation};

    (void)text_copy(key.alloc, sizeof(key.alloc), alloc);                 /* these fit: they */
    (void)text_copy(key.task, sizeof(key.task), name);                    /* come from fields */
    (void)text_copy(key.driver, sizeof(key.driver), task->define.driver); /* of these sizes */
    if (task->run_state == TASK_RUN_RUNNING &&
        driver_look_begin(api->parts->drivers, &key, &usage->looks[usage->count], NULL) == 0)
        usage->count++;
}

void api_alloc_stats(struct api_request *request)
{
    const char *only = http_query(request->exchange, "task");
    struct machine_id id;
    const struct alloc *alloc = api_alloc_of(request, request->argument, &id);

    if (alloc == NULL)
        return;
    struct usage_look *usage = calloc(1, sizeof(*usage));
    check(usage != NULL);
    usage->aside = (struct api_aside){.run = run_usage, .answer = answer_usage, .free = free_usage};
    for (size_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        const struct task *task = core_task(request->api->parts->core, id.text, member->name);

        if (member->kind == MEMBER_TASK && task != NULL &&
            (only == NULL || only[0] == '\0' || text_equal(only, member->name)))
            look_at_task(request->api, usage, id.text, member->name, task);
    }
    api_aside_start(request, &usage->aside);
}
