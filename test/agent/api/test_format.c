/* Nomad's JSON from records: names, times, emptiness, and nothing null that its tools follow. */
#include "agent/api/format/format.h"
#include "agent/api/part.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

/* The value at a path like "Job.TaskGroups.0.Name", or NULL. */
static const json_t *look_up(const json_t *json, const char *path)
{
    char part[64];

    while (json != NULL && path[0] != '\0') {
        size_t length = strcspn(path, ".");
        uint64_t number;

        assert_true(length < sizeof(part));
        memcpy(part, path, length);
        part[length] = '\0';
        path += length + (path[length] == '.' ? 1 : 0);
        if (json_is_array(json) && text_to_u64(part, &number))
            json = json_array_get(json, (size_t)number);
        else
            json = json_object_get(json, part);
    }
    return json;
}

static void assert_text(const json_t *json, const char *path, const char *expected)
{
    const json_t *value = look_up(json, path);

    if (!json_is_string(value))
        fail_msg("%s is no string", path);
    assert_string_equal(json_string_value(value), expected);
}

static void assert_number(const json_t *json, const char *path, int64_t expected)
{
    const json_t *value = look_up(json, path);

    if (!json_is_integer(value))
        fail_msg("%s is no whole number", path);
    assert_int_equal(json_integer_value(value), expected);
}

static void assert_null_at(const json_t *json, const char *path)
{
    if (!json_is_null(look_up(json, path)))
        fail_msg("%s is not null", path);
}

/* --- values --- */

static void test_time_zero_is_go_zero_time(void **state)
{
    char text[API_TIME_SIZE];
    (void)state;

    api_time(text, 0);
    assert_string_equal(text, "0001-01-01T00:00:00Z");
    api_time(text, 1600000000ll * 1000000000);
    assert_string_equal(text, "2020-09-13T12:26:40Z");
    api_time(text, 1600000000ll * 1000000000 + 120000000);
    assert_string_equal(text, "2020-09-13T12:26:40.12Z");
    api_time(text, 1600000000ll * 1000000000 + 1);
    assert_string_equal(text, "2020-09-13T12:26:40.000000001Z");
}

/* Each day that there is a time of, at its begin and at its end. */
static void test_days_are_those_of_the_calendar(void **state)
{
    enum { DAY_S = 86400 };
    (void)state;

    for (int64_t day = 1; day < INT64_MAX / 1000000000 / DAY_S; day++) {
        for (int64_t second = 0; second <= DAY_S - 1; second += DAY_S - 1) {
            time_t seconds = (time_t)(day * DAY_S + second);
            char text[API_TIME_SIZE], expected[API_TIME_SIZE];
            struct tm parts;

            assert_non_null(gmtime_r(&seconds, &parts));
            assert_true(strftime(expected, sizeof(expected), "%Y-%m-%dT%H:%M:%SZ", &parts) > 0);
            api_time(text, (int64_t)seconds * 1000000000);
            assert_string_equal(text, expected);
        }
    }
}

static void test_text_that_is_no_utf8_is_still_a_string(void **state)
{
    (void)state;
    json_t *text = api_text("exit \xff\xfe");

    assert_string_equal(json_string_value(text), "exit ??");
    json_decref(text);
    text = api_text(NULL);
    assert_string_equal(json_string_value(text), "");
    json_decref(text);
}

static void test_mode_is_written_as_go_does(void **state)
{
    static const struct {
        uint32_t mode;
        const char *text;
    } cases[] = {
        {S_IFREG | 0644, "-rw-r--r--"},   {S_IFDIR | 0755, "drwxr-xr-x"},
        {S_IFDIR | 01777, "dtrwxrwxrwx"}, {S_IFLNK | 0777, "Lrwxrwxrwx"},
        {S_IFREG | 04755, "urwxr-xr-x"},  {S_IFREG | 02711, "grwx--x--x"},
        {S_IFIFO | 0600, "prw-------"},   {S_IFSOCK | 0700, "Srwx------"},
        {S_IFCHR | 0666, "Dcrw-rw-rw-"},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[API_MODE_SIZE];

        api_mode(text, cases[i].mode);
        assert_string_equal(text, cases[i].text);
    }
}

static void test_frame_leaves_out_what_is_empty(void **state)
{
    static const struct {
        struct api_frame frame;
        const char *text;
    } cases[] = {
        {{0}, "{}"},
        {{.data = "a", .length = 1}, "{\"Data\":\"YQ==\"}"},
        {{.data = "ab", .length = 2}, "{\"Data\":\"YWI=\"}"},
        {{.data = "abc", .length = 3}, "{\"Data\":\"YWJj\"}"},
        {{.data = "\xff\xfe\xfd\0", .length = 4}, "{\"Data\":\"//79AA==\"}"},
        {{.offset = 7, .file = "alloc/logs/f", .event = "file truncated"},
         "{\"Offset\":7,\"File\":\"alloc/logs/f\",\"FileEvent\":\"file truncated\"}"},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        json_t *json = api_format_frame(&cases[i].frame);
        char *text = json_dumps(json, JSON_COMPACT);

        assert_string_equal(text, cases[i].text);
        free(text);
        json_decref(json);
    }
}

/* --- task events --- */

/* What was written, read again. */
static json_t *read_back(struct writer *written)
{
    json_t *json = json_loadb(written->bytes, written->used, JSON_REJECT_DUPLICATES, NULL);

    assert_non_null(json);
    assert_int_equal(written->depth, 0);
    free(written->bytes);
    return json;
}

static json_t *format_event(struct task_event event, const char *text)
{
    struct writer to = {0};

    assert_true(text_copy(event.text, sizeof(event.text), text));
    api_format_event(&to, &event);
    return read_back(&to);
}

static void test_event_terminated_keeps_old_fields_and_details(void **state)
{
    (void)state;
    json_t *event = format_event((struct task_event){.type = TASK_EVENT_TERMINATED,
                                                     .time_unix_ns = 5,
                                                     .number = 137,
                                                     .signal = 9,
                                                     .oom_killed = 1},
                                 "killed");

    assert_text(event, "Type", "Terminated");
    assert_number(event, "Time", 5);
    assert_number(event, "ExitCode", 137);
    assert_number(event, "Signal", 9);
    assert_text(event, "Message", "killed");
    assert_text(event, "Details.exit_code", "137");
    assert_text(event, "Details.signal", "9");
    assert_text(event, "Details.oom_killed", "true");
    assert_text(event, "Details.exit_message", "killed");
    assert_text(event, "DriverError", ""); /* absent ones are there, empty */
    assert_number(event, "KillTimeout", 0);
    json_decref(event);
}

static void test_event_texts_go_to_the_field_of_their_type(void **state)
{
    static const struct {
        enum task_event_type type;
        const char *field, *detail;
    } cases[] = {
        {TASK_EVENT_DRIVER_FAILURE, "DriverError", "driver_error"},
        {TASK_EVENT_NOT_RESTARTING, "RestartReason", "restart_reason"},
        {TASK_EVENT_SETUP_FAILURE, "SetupError", "setup_error"},
        {TASK_EVENT_FAILED_VALIDATION, "ValidationError", "validation_error"},
        {TASK_EVENT_SIBLING_FAILED, "FailedSibling", "failed_sibling"},
        {TASK_EVENT_KILLED, "KillError", "kill_error"},
        {TASK_EVENT_TASK_SETUP, "Message", "message"},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        json_t *event =
            format_event((struct task_event){.type = (uint8_t)cases[i].type}, "the text");

        assert_text(event, cases[i].field, "the text");
        assert_text(look_up(event, "Details"), cases[i].detail, "the text");
        assert_int_equal(json_object_size(look_up(event, "Details")), 1);
        json_decref(event);
    }
}

static void test_event_figures_are_nanoseconds(void **state)
{
    (void)state;
    json_t *event = format_event(
        (struct task_event){.type = TASK_EVENT_RESTARTING, .number = 2300269983, .fails = 0},
        "Restart within policy");
    assert_text(event, "DisplayMessage", "Task restarting in 2.300269983s");
    assert_number(event, "StartDelay", 2300269983);
    assert_text(event, "Details.start_delay", "2300269983");
    assert_text(event, "Details.restart_reason", "Restart within policy");
    json_decref(event);

    event = format_event((struct task_event){.type = TASK_EVENT_KILLING, .number = 5000000000}, "");
    assert_number(event, "KillTimeout", 5000000000);
    assert_text(event, "Details.kill_timeout", "5s");
    assert_text(event, "DisplayMessage", "Sent interrupt. Waiting 5s before force killing");
    json_decref(event);

    event = format_event((struct task_event){.type = TASK_EVENT_NOT_RESTARTING, .fails = 1}, "why");
    assert_true(json_is_true(look_up(event, "FailsTask")));
    assert_text(event, "Details.fails_task", "true");
    json_decref(event);
}

/* Each type as users see it: nomad v2.0.5 nomad/structs, PopulateEventDisplayMessage and what sets
 * Details.  Where each is emitted and tried is mapped in test/README.md. */
static const struct {
    struct task_event event;
    const char *type, *message, *details;
} shown[] = {
    {{.type = TASK_EVENT_RECEIVED}, "Received", "Task received by client", "{}"},
    {{.type = TASK_EVENT_TASK_SETUP, .text = "Building Task Directory"},
     "Task Setup",
     "Building Task Directory",
     "{\"message\":\"Building Task Directory\"}"},
    {{.type = TASK_EVENT_SETUP_FAILURE, .fails = 1},
     "Setup Failure",
     "Task setup failed",
     "{\"fails_task\":\"true\"}"},
    {{.type = TASK_EVENT_FAILED_VALIDATION},
     "Failed Validation",
     "Validation of task failed",
     "{}"},
    {{.type = TASK_EVENT_DRIVER_FAILURE, .text = "no such file"},
     "Driver Failure",
     "no such file",
     "{\"driver_error\":\"no such file\"}"},
    {{.type = TASK_EVENT_STARTED}, "Started", "Task started by client", "{}"},
    {{.type = TASK_EVENT_TERMINATED, .number = 130, .signal = 2, .text = "why"},
     "Terminated",
     "Exit Code: 130, Signal: 2, Exit Message: \"why\"",
     "{\"exit_code\":\"130\",\"signal\":\"2\",\"oom_killed\":\"false\",\"exit_message\":\"why\"}"},
    {{.type = TASK_EVENT_RESTARTING},
     "Restarting",
     "Task restarting in 0s",
     "{\"restart_reason\":\"\",\"start_delay\":\"0\"}"},
    {{.type = TASK_EVENT_NOT_RESTARTING, .fails = 1},
     "Not Restarting",
     "Task exceeded restart policy",
     "{\"fails_task\":\"true\"}"},
    {{.type = TASK_EVENT_KILLING, .number = 90000000000},
     "Killing",
     "Sent interrupt. Waiting 1m30s before force killing",
     "{\"kill_timeout\":\"1m30s\"}"},
    {{.type = TASK_EVENT_KILLED}, "Killed", "Task successfully killed", "{}"},
    {{.type = TASK_EVENT_SIGNALING, .text = "SIGHUP"},
     "Signaling",
     "Task being sent a signal",
     "{\"signal\":\"SIGHUP\"}"},
    {{.type = TASK_EVENT_RESTART_SIGNALED}, "Restart Signaled", "Task signaled to restart", "{}"},
    {{.type = TASK_EVENT_SIBLING_FAILED, .text = "web"},
     "Sibling Task Failed",
     "Task's sibling \"web\" failed",
     "{\"failed_sibling\":\"web\"}"},
    {{.type = TASK_EVENT_LEADER_DEAD}, "Leader Task Dead", "Leader Task in Group dead", "{}"},
    {{.type = TASK_EVENT_MAIN_DEAD}, "Main Tasks Dead", "Main tasks in the group died", "{}"},
    {{.type = TASK_EVENT_RESTORE_FAILED},
     "Failed Restoring Task",
     "failed to restore task; will not run until server is contacted",
     "{}"},
    {{.type = TASK_EVENT_HOOK_FAILED, .text = "task_dir: full"},
     "Task hook failed",
     "task_dir: full",
     "{\"message\":\"task_dir: full\"}"},
    {{.type = TASK_EVENT_HOOK_MESSAGE, .text = "Template successfully ran script"},
     "Task hook message",
     "Template successfully ran script",
     "{\"message\":\"Template successfully ran script\"}"},
    {{.type = TASK_EVENT_TEMPLATE, .text = "Missing: nomad.var.block(a@default.global)"},
     "Template",
     "Missing: nomad.var.block(a@default.global)",
     "{\"message\":\"Missing: nomad.var.block(a@default.global)\"}"},
    {{.type = TASK_EVENT_DRIVER, .text = "Downloading image"},
     "Driver",
     "Downloading image",
     "{\"driver_message\":\"Downloading image\"}"},
    {{.type = TASK_EVENT_RECONNECTED}, "Reconnected", "Client reconnected", "{}"},
    {{.type = TASK_EVENT_DOWNLOADING},
     "Downloading Artifacts",
     "Client is downloading artifacts",
     "{}"},
    {{.type = TASK_EVENT_DOWNLOAD_FAILED, .text = "failed to download artifact \"x\": late"},
     "Failed Artifact Download",
     "failed to download artifact \"x\": late",
     "{\"download_error\":\"failed to download artifact \\\"x\\\": late\"}"},
    {{.type = TASK_EVENT_SHUTDOWN_DELAY, .number = 5000000000},
     "Waiting for shutdown delay",
     "Waiting for shutdown_delay of 5s before killing the task.",
     "{}"},
    {{.type = TASK_EVENT_SKIPPING_DELAY, .number = 5000000000},
     "Skipping shutdown delay",
     "Skipping shutdown_delay of 5s before killing the task.",
     "{}"},
    {{.type = TASK_EVENT_ALLOC_UNHEALTHY, .text = "Unhealthy because of failed task"},
     "Alloc Unhealthy",
     "Unhealthy because of failed task",
     "{\"message\":\"Unhealthy because of failed task\"}"},
    {{.type = TASK_EVENT_PLUGIN_HEALTHY, .text = "plugin: hp"},
     "Plugin became healthy",
     "plugin: hp",
     "{\"message\":\"plugin: hp\"}"},
    {{.type = TASK_EVENT_PLUGIN_UNHEALTHY, .text = "Error: no answer"},
     "Plugin became unhealthy",
     "Error: no answer",
     "{\"message\":\"Error: no answer\"}"},
};

static void test_event_of_each_type_says_what_nomad_says(void **state)
{
    bool tried[TASK_EVENT_TYPE_COUNT] = {[TASK_EVENT_NONE] = true};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(shown); i++) {
        json_t *event = format_event(shown[i].event, shown[i].event.text);
        json_t *details = json_loads(shown[i].details, 0, NULL);

        assert_non_null(details);
        assert_text(event, "Type", shown[i].type);
        assert_text(event, "DisplayMessage", shown[i].message);
        assert_true(json_equal(look_up(event, "Details"), details));
        assert_true(json_is_boolean(look_up(event, "FailsTask")));
        json_decref(details);
        json_decref(event);
        tried[shown[i].event.type] = true;
    }
    for (size_t type = 0; type < COUNT_OF(tried); type++)
        assert_true(tried[type]);
}

/* As Go quotes it: a message of several lines is one. */
static void test_exit_message_is_quoted(void **state)
{
    json_t *event = format_event((struct task_event){.type = TASK_EVENT_TERMINATED, .number = 1},
                                 "a \"b\" \\\n\tc\x01 \303\274");

    (void)state;
    assert_text(event, "DisplayMessage",
                "Exit Code: 1, Exit Message: \"a \\\"b\\\" \\\\\\n\\tc\\x01 \303\274\"");
    json_decref(event);
}

/* --- allocs --- */

struct sample {
    struct alloc *alloc;
    struct task *task;
    const struct task *tasks[2];
    struct task_spec task_specs[2];
    struct alloc_spec spec;
    struct api_alloc_view view;
};

/* web.g[3]: task "main" has a record, that of "lost" could not be read. */
static int make_sample(void **state)
{
    struct sample *sample = calloc(1, sizeof(*sample));
    struct alloc *alloc = calloc(1, sizeof(*alloc) + 2 * sizeof(struct alloc_member));
    struct task *task = calloc(1, sizeof(*task));

    assert_non_null(sample);
    assert_non_null(alloc);
    assert_non_null(task);
    alloc->client_status = CLIENT_RUNNING;
    alloc->status_revision = 4;
    alloc->modify_unix_ns = 2000;
    alloc->assign.create_unix_ns = 1000;
    alloc->assign.index = 3;
    alloc->assign.job_version = 7;
    alloc->assign.members_count = 2;
    assert_true(text_copy(alloc->assign.job_id, SPEC_NAME_SIZE, "web"));
    assert_true(text_copy(alloc->assign.group, SPEC_NAME_SIZE, "g"));
    assert_true(text_copy(alloc->assign.namespace, SPEC_NAMESPACE_SIZE, "default"));
    alloc->assign.members[0].run_state = TASK_RUN_RUNNING;
    alloc->assign.members[1].run_state = TASK_RUN_DEAD;
    alloc->assign.members[1].failed = 1;
    assert_true(text_copy(alloc->assign.members[0].name, SPEC_NAME_SIZE, "main"));
    assert_true(text_copy(alloc->assign.members[1].name, SPEC_NAME_SIZE, "lost"));
    task->run_state = TASK_RUN_RUNNING;
    task->started_unix_ns = 1600000000ll * 1000000000;
    task->restarts = 2;
    task->events_count = 1;
    task->events[0].type = TASK_EVENT_RECEIVED;
    sample->alloc = alloc;
    sample->task = task;
    sample->tasks[0] = task;
    sample->task_specs[0] =
        (struct task_spec){.name = "main",
                           .driver = "raw_exec",
                           .config_json = "{\"command\":\"x\"}",
                           .resources = {.cpu_mhz = 100, .memory_mb = 64, .memory_max_mb = 80}};
    sample->task_specs[1] = (struct task_spec){.name = "lost",
                                               .driver = "raw_exec",
                                               .config_json = "broken",
                                               .lifecycle = LIFECYCLE_PRESTART,
                                               .sidecar = true,
                                               .resources = {.cpu_mhz = 50, .memory_mb = 16}};
    sample->spec = (struct alloc_spec){.eval_id = "e",
                                       .job_id = "web",
                                       .job_name = "web",
                                       .job_parent_id = "",
                                       .namespace = "default",
                                       .region = "global",
                                       .datacenter = "dc1",
                                       .job_type = "service",
                                       .job_version = 7,
                                       .group = "g",
                                       .ephemeral_disk_mb = 300,
                                       .tasks = sample->task_specs,
                                       .tasks_count = 2};
    sample->view = (struct api_alloc_view){.id = "a",
                                           .alloc = alloc,
                                           .tasks = sample->tasks,
                                           .spec = &sample->spec,
                                           .job_type = "service",
                                           .eval_id = "e",
                                           .node_id = "n",
                                           .node_name = "node",
                                           .datacenter = "dc1",
                                           .pool = "default",
                                           .waits = "",
                                           .create_index = 11,
                                           .task_states = true};
    *state = sample;
    return 0;
}

static int free_sample(void **state)
{
    struct sample *sample = *state;

    free(sample->alloc);
    free(sample->task);
    free(sample);
    return 0;
}

static json_t *format_stub(const struct sample *sample)
{
    struct writer to = {0};

    api_format_alloc_stub(&to, &sample->view);
    return read_back(&to);
}

static json_t *format_alloc(const struct sample *sample)
{
    struct writer to = {0};

    api_format_alloc(&to, &sample->view);
    return read_back(&to);
}

static void test_alloc_stub_says_what_the_record_says(void **state)
{
    struct sample *sample = *state;
    json_t *stub = format_stub(sample);

    assert_text(stub, "Name", "web.g[3]");
    assert_text(stub, "EvalID", "e");
    assert_text(stub, "DesiredStatus", "run");
    assert_text(stub, "ClientStatus", "running");
    assert_number(stub, "JobVersion", 7);
    assert_number(stub, "CreateIndex", 11);
    assert_number(stub, "ModifyIndex", 15);
    assert_number(stub, "CreateTime", 1000);
    assert_number(stub, "ModifyTime", 2000);
    assert_text(stub, "TaskStates.main.State", "running");
    assert_text(stub, "TaskStates.main.StartedAt", "2020-09-13T12:26:40Z");
    assert_text(stub, "TaskStates.main.FinishedAt", "0001-01-01T00:00:00Z");
    assert_number(stub, "TaskStates.main.Restarts", 2);
    assert_text(stub, "TaskStates.main.Events.0.DisplayMessage", "Task received by client");
    assert_null(look_up(stub, "AllocatedResources")); /* only when asked for */
    assert_null(look_up(stub, "Job"));
    json_decref(stub);
}

static void test_no_task_ends_before_it_begins(void **state)
{
    struct sample *sample = *state;

    sample->task->finished_unix_ns = sample->task->started_unix_ns - 90000;
    json_t *stub = format_stub(sample);
    assert_text(stub, "TaskStates.main.StartedAt", "2020-09-13T12:26:40Z");
    assert_text(stub, "TaskStates.main.FinishedAt", "2020-09-13T12:26:40Z");
    json_decref(stub);
}

static void test_alloc_task_without_record_is_shown_by_what_the_alloc_knows(void **state)
{
    struct sample *sample = *state;
    json_t *stub = format_stub(sample);

    assert_text(stub, "TaskStates.lost.State", "dead");
    assert_true(json_is_true(look_up(stub, "TaskStates.lost.Failed")));
    assert_int_equal(json_array_size(look_up(stub, "TaskStates.lost.Events")), 0);
    json_decref(stub);
}

static void test_alloc_stub_leaves_out_what_was_not_asked_for(void **state)
{
    struct sample *sample = *state;

    sample->view.task_states = false;
    sample->view.resources = true;
    sample->alloc->stop_wanted = 1;
    json_t *stub = format_stub(sample);
    assert_null_at(stub, "TaskStates");
    assert_text(stub, "DesiredStatus", "stop");
    assert_number(stub, "AllocatedResources.Tasks.main.Memory.MemoryMB", 64);
    assert_number(stub, "AllocatedResources.Tasks.main.Memory.MemoryMaxMB", 80);
    assert_number(stub, "AllocatedResources.Shared.DiskMB", 300);
    json_decref(stub);
}

static void test_alloc_of_an_older_version_brings_its_own_job(void **state)
{
    struct sample *sample = *state;
    json_t *alloc = format_alloc(sample);

    assert_text(alloc, "Job.ID", "web");
    assert_number(alloc, "Job.Version", 7);
    assert_text(alloc, "Job.TaskGroups.0.Tasks.0.Config.command", "x");
    assert_null_at(alloc, "Job.TaskGroups.0.Tasks.1.Config"); /* not readable */
    assert_text(alloc, "Job.TaskGroups.0.Tasks.1.Lifecycle.Hook", "prestart");
    assert_number(alloc, "Resources.CPU", 150);
    assert_number(alloc, "SharedResources.DiskMB", 300);
    assert_number(alloc, "SharedResources.CPU", 0);
    assert_number(alloc, "Metrics.NodesAvailable.dc1", 1);
    assert_text(alloc, "NetworkStatus.Address", "");
    assert_number(alloc, "Resources.MemoryMB", 80);
    assert_number(alloc, "Resources.DiskMB", 300);
    assert_number(alloc, "TaskResources.lost.MemoryMB", 16);
    assert_number(alloc, "Metrics.NodesEvaluated", 1);
    json_decref(alloc);
}

static void test_alloc_whose_spec_is_lost_is_still_an_alloc(void **state)
{
    struct sample *sample = *state;

    sample->view.spec = NULL;
    sample->view.eval_id = "";
    json_t *alloc = format_alloc(sample);
    assert_text(alloc, "EvalID", "");
    assert_text(alloc, "Job.Type", "service");
    assert_text(alloc, "Job.TaskGroups.0.Tasks.1.Name", "lost");
    assert_text(alloc, "TaskStates.main.State", "running");
    json_decref(alloc);
}

/* --- jobs --- */

static void test_job_shows_what_a_server_adds_and_keeps_its_own(void **state)
{
    json_t *own = json_pack("{s:s, s:i, s:n, s:[{s:s}]}", "ID", "web", "Priority", 70, "Region",
                            "TaskGroups", "Name", "g");
    struct alone_job job = {.namespace = "default",
                            .id = "web",
                            .job = own,
                            .version = 3,
                            .create_index = 1,
                            .modify_index = 9,
                            .job_modify_index = 8,
                            .submit_unix_ns = 77,
                            .stop = true};
    struct api_job_counts counts[1] = {{.group = "g", .running = 2, .failed = 1}};
    (void)state;

    struct api_job_view view = {.job = &job, .status = "dead"};
    json_t *to = api_format_job(&view);
    assert_number(to, "Priority", 70);
    assert_text(to, "Region", "global"); /* null is not an answer its tools can take */
    assert_text(to, "Name", "web");
    assert_text(to, "Status", "dead");
    assert_true(json_is_true(look_up(to, "Stop")));
    assert_number(to, "Version", 3);
    assert_number(to, "SubmitTime", 77);
    assert_number(to, "JobModifyIndex", 8);
    json_decref(to);
    assert_null(json_object_get(own, "Status")); /* the job itself is not touched */

    struct writer stub = {0};
    api_format_job_stub(&stub, &job, "dead", counts, COUNT_OF(counts),
                        (struct api_job_children){.running = 2, .dead = 1}, false);
    to = read_back(&stub);
    assert_text(to, "JobSummary.Namespace", "default");
    assert_number(to, "JobSummary.Summary.g.Running", 2);
    assert_number(to, "JobSummary.Summary.g.Failed", 1);
    assert_number(to, "JobSummary.Summary.g.Lost", 0);
    assert_int_equal(json_array_size(look_up(to, "Datacenters")), 0);
    assert_true(json_is_array(look_up(to, "Datacenters")));
    json_decref(to);
    json_decref(own);
}

/* --- the node --- */

static void test_node_has_no_null_that_tools_follow(void **state)
{
    struct spec_pair attributes[] = {{"nomad.version", "1.1.2"}, {"kernel", "linux"}};
    struct node node = {.identity = {.id = "n", .secret = "c0ffee00-0000-0000-0000-000000000000"},
                        .whole = {.cpu_mhz = 8000, .memory_mb = 8192},
                        .known = {.id = "n",
                                  .name = "node",
                                  .datacenter = "dc1",
                                  .region = "global",
                                  .class = "",
                                  .pool = "default",
                                  .attributes = {attributes, COUNT_OF(attributes)}}};
    struct driver_info drivers[] = {
        {.name = "raw_exec", .detected = true, .healthy = true, .description = "Healthy"}};
    struct config config = {.min_dynamic_port = 20000, .max_dynamic_port = 32000};
    struct api_node_view view = {.node = &node,
                                 .config = &config,
                                 .http_address = "127.0.0.1:4646",
                                 .description = "",
                                 .drivers = drivers,
                                 .drivers_count = 1,
                                 .index = 1};
    (void)state;

    json_t *to = api_format_node(&view);
    assert_number(to, "Resources.CPU", 8000);
    assert_number(to, "Resources.MemoryMB", 8192);
    assert_number(to, "Reserved.CPU", 0);
    assert_number(to, "Reserved.MemoryMB", 0);
    assert_number(to, "Reserved.DiskMB", 0);
    assert_number(to, "NodeResources.Cpu.CpuShares", 8000);
    assert_text(look_up(to, "Attributes"), "kernel", "linux");
    json_decref(to);

    to = api_format_node_stub(&view, 0);
    assert_text(to, "Version", "1.1.2");
    assert_true(json_is_true(look_up(to, "Drivers.raw_exec.Healthy")));
    assert_null(look_up(to, "NodeResources"));
    json_decref(to);
}

/* Servers up to 1.1 place no task with "mbits" on a node that has none. */
static void test_node_says_how_fast_its_network_is(void **state)
{
    struct node node = {.addresses_count = 1,
                        .addresses = {{.network = "default", .ip = "10.0.0.5"}},
                        .interfaces = {"eth0"},
                        .mbits = {2500}};
    struct config config = {.min_dynamic_port = 20000};
    struct api_node_view view = {
        .node = &node, .config = &config, .http_address = "x", .description = ""};
    (void)state;

    json_t *to = api_format_node(&view);
    const json_t *resources = look_up(to, "NodeResources");
    assert_number(json_array_get(json_object_get(resources, "Networks"), 0), "MBits", 2500);
    assert_number(json_array_get(json_object_get(resources, "NodeNetworks"), 0), "Speed", 2500);
    json_decref(to);
}

static void test_node_secret_is_nowhere_in_it(void **state)
{
    struct node node = {.identity = {.id = "n", .secret = "c0ffee00-0000-0000-0000-000000000000"}};
    struct config config = {.min_dynamic_port = 20000};
    struct api_node_view view = {
        .node = &node, .config = &config, .http_address = "x", .description = ""};
    (void)state;

    json_t *to = api_format_node(&view);
    char *text = json_dumps(to, 0);
    assert_null(strstr(text, "c0ffee00"));
    free(text);
    json_decref(to);
}

static void test_usage_of_tasks_is_summed(void **state)
{
    struct api_usage sum = {0};
    struct api_usage one = {
        .stats = {.memory_rss_bytes = 100, .cpu_user_us = 30, .cpu_system_us = 10},
        .cpu_percent = 40,
        .unix_ns = 5};
    struct api_usage two = {.stats = {.memory_rss_bytes = 50}, .cpu_percent = 60, .unix_ns = 4};
    (void)state;

    api_usage_add(&sum, &one);
    api_usage_add(&sum, &two);
    assert_int_equal(sum.unix_ns, 5); /* the newest */
    json_t *to = api_format_usage(&sum, 2000);
    assert_number(to, "MemoryStats.RSS", 150);
    assert_true(json_real_value(look_up(to, "CpuStats.Percent")) == 100.0);
    assert_true(json_real_value(look_up(to, "CpuStats.TotalTicks")) == 2000.0);
    assert_true(json_real_value(look_up(to, "CpuStats.UserMode")) == 75.0);
    json_decref(to);
}

int main(void)
{
#define SAMPLE(name) cmocka_unit_test_setup_teardown(name, make_sample, free_sample)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_zero_is_go_zero_time),
        cmocka_unit_test(test_days_are_those_of_the_calendar),
        cmocka_unit_test(test_text_that_is_no_utf8_is_still_a_string),
        cmocka_unit_test(test_mode_is_written_as_go_does),
        cmocka_unit_test(test_frame_leaves_out_what_is_empty),
        cmocka_unit_test(test_event_terminated_keeps_old_fields_and_details),
        cmocka_unit_test(test_event_texts_go_to_the_field_of_their_type),
        cmocka_unit_test(test_event_figures_are_nanoseconds),
        cmocka_unit_test(test_event_of_each_type_says_what_nomad_says),
        cmocka_unit_test(test_exit_message_is_quoted),
        SAMPLE(test_alloc_stub_says_what_the_record_says),
        SAMPLE(test_no_task_ends_before_it_begins),
        SAMPLE(test_alloc_task_without_record_is_shown_by_what_the_alloc_knows),
        SAMPLE(test_alloc_stub_leaves_out_what_was_not_asked_for),
        SAMPLE(test_alloc_of_an_older_version_brings_its_own_job),
        SAMPLE(test_alloc_whose_spec_is_lost_is_still_an_alloc),
        cmocka_unit_test(test_job_shows_what_a_server_adds_and_keeps_its_own),
        cmocka_unit_test(test_node_has_no_null_that_tools_follow),
        cmocka_unit_test(test_node_says_how_fast_its_network_is),
        cmocka_unit_test(test_node_secret_is_nowhere_in_it),
        cmocka_unit_test(test_usage_of_tasks_is_summed),
    };

    return cmocka_run_group_tests_name("api_format", tests, NULL, NULL);
}
