/*
 * Job files from text to alloc specs.
 *
 * The files in test/spec/jobs are the cases: each bad_* file has beside it, in .error, all that a
 * user is told; the others must be read, and what becomes of their fields is asserted here.
 * CAIRN_UPDATE_GOLDEN=1 writes the .error files anew, to be reviewed as a diff.
 */
#include "spec/job.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define JOBS "test/spec/jobs/"
#define ALLOC_ID "0f3a3e5c-5f31-4a52-9f0e-0123456789ab"
#define EVAL_ID "1f3a3e5c-5f31-4a52-9f0e-0123456789ab"

static struct jobspec_problems problems;

static char *read_file(const char *path)
{
    FILE *stream = fopen(path, "re");
    size_t size = 1 << 20;
    char *text = calloc(1, size);

    assert_non_null(text);
    if (stream == NULL) {
        free(text);
        return NULL;
    }
    size_t length = fread(text, 1, size - 1, stream);
    assert_true(length < size - 1);
    assert_int_equal(fclose(stream), 0);
    return text;
}

static int parse(const char *name, const char *text, json_t **ret_job)
{
    struct jobspec_source source = {.name = name, .text = text, .length = strlen(text)};

    return jobspec_parse(&source, ret_job, &problems);
}

/* The job in TEXT, which must be a good one. */
static json_t *must_parse(const char *name, const char *text)
{
    json_t *job = NULL;
    char message[4096];

    if (parse(name, text, &job) != 0) {
        jobspec_problems_text(&problems, message, sizeof(message));
        fail_msg("%s", message);
    }
    return job;
}

static json_t *must_read(const char *file)
{
    char path[256];

    (void)snprintf(path, sizeof(path), JOBS "%s", file);
    char *text = read_file(path);
    assert_non_null(text);
    json_t *job = must_parse(file, text);
    free(text);
    return job;
}

/* All problems of TEXT, which must have some; owned by the caller. */
static char *must_fail(const char *name, const char *text)
{
    enum { SIZE = JOBSPEC_PROBLEMS_MAX * HCL_ERROR_SIZE + 100 };
    json_t *job = NULL;
    char *message = malloc(SIZE);

    assert_non_null(message);
    assert_int_equal(parse(name, text, &job), ERR_INVALID);
    assert_null(job);
    assert_true(problems.count > 0);
    jobspec_problems_text(&problems, message, SIZE);
    return message;
}

/* Part PATH ("TaskGroups.0.Tasks.1.Driver") of VALUE. */
static const json_t *at(const json_t *value, const char *path)
{
    char part[64];

    while (*path != '\0' && value != NULL) {
        size_t length = strcspn(path, ".");

        assert_true(length < sizeof(part));
        memcpy(part, path, length);
        part[length] = '\0';
        value = json_is_array(value) ? json_array_get(value, (size_t)strtoul(part, NULL, 10))
                                     : json_object_get(value, part);
        path += length + (path[length] == '.');
    }
    return value;
}

static void assert_json(const json_t *value, const char *path, const char *expected)
{
    const json_t *part = at(value, path);
    char *text = part == NULL ? strdup("(missing)")
                              : json_dumps(part, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);

    if (strcmp(text, expected) != 0)
        fail_msg("%s is %s, not %s", path, text, expected);
    free(text);
}

/* --- what is wrong --- */

static void check_golden(const char *file)
{
    char path[300], golden[300];

    (void)snprintf(path, sizeof(path), JOBS "%s", file);
    (void)snprintf(golden, sizeof(golden), JOBS "%.*s.error", (int)strcspn(file, "."), file);
    char *text = read_file(path), *expected = read_file(golden);
    assert_non_null(text);
    char *message = must_fail(file, text);
    if (getenv("CAIRN_UPDATE_GOLDEN") != NULL) {
        FILE *stream = fopen(golden, "we");

        assert_non_null(stream);
        assert_true(fprintf(stream, "%s\n", message) > 0);
        assert_int_equal(fclose(stream), 0);
    } else {
        assert_non_null(expected);
        size_t length = strlen(message);
        if (strncmp(message, expected, length) != 0 || strcmp(expected + length, "\n") != 0)
            fail_msg("%s says\n%s\n--- expected\n%s", file, message, expected);
    }
    free(message);
    free(expected);
    free(text);
}

static void test_each_bad_file_gives_its_golden_problems(void **state)
{
    DIR *directory = opendir(JOBS);
    struct dirent *entry;
    int files = 0;

    (void)state;
    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        if (!text_starts_with(entry->d_name, "bad_") || text_ends_with(entry->d_name, ".error"))
            continue;
        check_golden(entry->d_name);
        files++;
    }
    assert_int_equal(closedir(directory), 0);
    assert_true(files >= 14);
}

static void test_problems_beyond_the_bound_are_counted(void **state)
{
    char *text = read_file(JOBS "bad_many.hcl"), *message;

    (void)state;
    assert_non_null(text);
    message = must_fail("bad_many.hcl", text);
    assert_int_equal(problems.count, JOBSPEC_PROBLEMS_MAX);
    assert_int_equal(problems.dropped, 3); /* two more arguments, and no groups */
    assert_true(text_ends_with(message, "\nand 3 more"));
    free(message);
    free(text);
}

static void test_each_problem_begins_with_one_line_that_names_its_place(void **state)
{
    char *text = read_file(JOBS "bad_rules.hcl"), *message;

    (void)state;
    assert_non_null(text);
    message = must_fail("bad_rules.hcl", text);
    for (size_t i = 0; i < problems.count; i++) {
        unsigned line = 0, column = 0;

        assert_int_equal(sscanf(problems.items[i], "bad_rules.hcl:%u:%u: ", &line, &column), 2);
        assert_int_equal(line, problems.places[i].line);
        assert_int_equal(column, problems.places[i].column);
        assert_true(line > 0 && column > 0);
        assert_true(i == 0 || line >= problems.places[i - 1].line); /* in the file's order */
    }
    free(message);
    free(text);
}

static void test_met_bound_is_told_once(void **state)
{
    char *message = must_fail(
        "t.hcl",
        "job \"a\" {\n group \"g\" {\n  count = length([for a in range(1000) : [for b in "
        "range(1000) : [for c in range(1000) : c]]])\n task \"t\" { driver = \"x\" }\n}\n}");

    (void)state;
    assert_int_equal(problems.count, 1);
    assert_non_null(strstr(message, "too much work or memory"));
    free(message);
}

static void test_json_that_is_too_deep_or_no_object_is_refused(void **state)
{
    char deep[2200] = "{\"Job\": {\"ID\": \"a\", \"TaskGroups\": ", *message;

    (void)state;
    size_t length = strlen(deep);
    memset(deep + length, '[', 1000);
    memset(deep + length + 1000, ']', 1000);
    memcpy(deep + length + 2000, "}}", 3);
    message = must_fail("t.json", deep);
    assert_string_equal(message, "t.json: the JSON is nested more than 64 levels deep");
    free(message);
    message = must_fail("t.json", "{\"Job\": {\"ID\": \"a\", \"web\": {\"group\": 1}}}");
    assert_non_null(strstr(message, "unknown field \"web\""));
    free(message);
    message = must_fail("t.json", " {\"Job\": {\"web\": {\"group\": {\"g\": {}}}}}");
    assert_string_equal(
        message, "t.json: this is a job in the JSON form of HCL, which is not read here\n"
                 "        hint: write it in HCL itself, or as `nomad job run -output` prints "
                 "it");
    free(message);
    message = must_fail("t.json", "[]");
    free(message);
    message = must_fail("t.json", "{\"Job\": 5}");
    free(message);
    message = must_fail("empty.hcl", "");
    assert_non_null(strstr(message, "there is no job in this file"));
    free(message);
}

/* --- what becomes of a good file --- */

static void test_job_with_an_id_of_its_own_has_its_label_for_a_name(void **state)
{
    static const char rest[] =
        " group \"g\" {\n  task \"t\" {\n   driver = \"raw_exec\"\n  }\n }\n}\n";
    static const struct {
        const char *says, *name;
    } cases[] = {{"id = \"other\"", "\"label\""},
                 {"id = \"other\"\n name = \"third\"", "\"third\""}};
    char text[256];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_true(
            text_format(text, sizeof(text), "job \"label\" {\n %s\n%s", cases[i].says, rest));
        json_t *job = must_parse("t.hcl", text);
        assert_json(job, "ID", "\"other\"");
        assert_json(job, "Name", cases[i].name);
        json_decref(job);
    }
}

static void test_defaults_are_nomads_for_a_service(void **state)
{
    json_t *job = must_parse("t.hcl", "job \"a\" {\n group \"g\" {\n  task \"t\" {\n"
                                      "   driver = \"raw_exec\"\n  }\n }\n}\n");

    (void)state;
    assert_json(job, "ID", "\"a\"");
    assert_json(job, "Name", "\"a\"");
    assert_json(job, "Type", "\"service\"");
    assert_json(job, "Namespace", "\"default\"");
    assert_json(job, "Region", "\"global\"");
    assert_json(job, "Priority", "50");
    assert_json(job, "Datacenters", "[\"*\"]");
    assert_json(job, "Meta", "(missing)");
    assert_json(job, "TaskGroups.0.Count", "1");
    assert_json(job, "TaskGroups.0.EphemeralDisk",
                "{\"Migrate\":false,\"SizeMB\":300,\"Sticky\":false}");
    assert_json(
        job, "TaskGroups.0.RestartPolicy",
        "{\"Attempts\":2,\"Delay\":15000000000,\"Interval\":1800000000000,\"Mode\":\"fail\"}");
    assert_json(
        job, "TaskGroups.0.Tasks.0.RestartPolicy",
        "{\"Attempts\":2,\"Delay\":15000000000,\"Interval\":1800000000000,\"Mode\":\"fail\"}");
    assert_json(job, "TaskGroups.0.Tasks.0.KillTimeout", "5000000000");
    assert_json(job, "TaskGroups.0.Tasks.0.LogConfig",
                "{\"Disabled\":false,\"MaxFileSizeMB\":10,\"MaxFiles\":10}");
    assert_json(job, "TaskGroups.0.Tasks.0.Resources",
                "{\"CPU\":100,\"Cores\":0,\"MemoryMB\":300,\"MemoryMaxMB\":0}");
    assert_json(job, "TaskGroups.0.ReschedulePolicy.Unlimited", "true");
    assert_json(job, "TaskGroups.0.Update.MaxParallel", "1");
    assert_json(job, "TaskGroups.0.Migrate.HealthCheck", "\"checks\"");
    json_decref(job);
}

static void test_defaults_are_nomads_for_a_batch_job_with_a_lone_task(void **state)
{
    json_t *job = must_read("batch.hcl");

    (void)state;
    assert_json(job, "Type", "\"batch\"");
    assert_json(job, "Datacenters", "[\"dc1\",\"dc2\"]");
    assert_json(job, "TaskGroups.0.Name", "\"once\"");
    assert_json(job, "TaskGroups.0.Tasks.0.Name", "\"once\"");
    assert_json(
        job, "TaskGroups.0.RestartPolicy",
        "{\"Attempts\":3,\"Delay\":15000000000,\"Interval\":86400000000000,\"Mode\":\"fail\"}");
    assert_json(job, "TaskGroups.0.ReschedulePolicy.Attempts", "1");
    assert_json(job, "TaskGroups.0.Update", "(missing)");
    assert_json(job, "TaskGroups.0.Migrate", "(missing)");
    json_decref(job);
}

/* The job a with one group and one task, of TYPE, and BLOCK in the group; NULL if it is refused. */
static json_t *typed(const char *type, const char *block)
{
    char text[512];
    json_t *job = NULL;

    (void)snprintf(text, sizeof(text),
                   "job \"a\" {\n type = \"%s\"\n group \"g\" {\n %s\n task \"t\" {\n"
                   " driver = \"raw_exec\"\n }\n }\n}\n",
                   type, block);
    struct jobspec_source source = {.name = "typed.hcl", .text = text, .length = strlen(text)};
    (void)jobspec_parse(&source, &job, &problems);
    return job;
}

static void test_defaults_of_system_jobs_are_services_without_rescheduling(void **state)
{
    json_t *job = typed("system", "");

    (void)state;
    assert_non_null(job);
    assert_json(job, "TaskGroups.0.Count", "1");
    assert_json(job, "TaskGroups.0.RestartPolicy.Attempts", "2");
    assert_json(job, "TaskGroups.0.Update.MaxParallel", "1");
    assert_json(job, "TaskGroups.0.ReschedulePolicy", "(missing)");
    assert_json(job, "TaskGroups.0.Migrate", "(missing)");
    json_decref(job);
    job = typed("sysbatch", "count = 2\n max_run_duration = \"90s\"");
    assert_non_null(job);
    assert_json(job, "TaskGroups.0.MaxRunDuration", "90000000000");
    assert_json(job, "TaskGroups.0.RestartPolicy.Attempts", "3");
    assert_json(job, "TaskGroups.0.Update", "(missing)");
    assert_json(job, "TaskGroups.0.ReschedulePolicy", "(missing)");
    json_decref(job);
}

static void test_job_of_a_type_has_the_blocks_of_that_type(void **state)
{
    static const struct {
        const char *type, *block, *says;
    } refused[] = {
        {"system", "count = 2", "one alloc of each group"},
        {"system", "reschedule {}", "has no reschedule block"},
        {"system", "affinity {\n attribute = \"a\"\n value = \"b\"\n}", "has no affinity block"},
        {"system", "spread {\n attribute = \"a\"\n}", "has no spread block"},
        {"system", "migrate {}", "has no migrate block"},
        {"sysbatch", "reschedule {}", "has no reschedule block"},
        {"sysbatch", "update {}", "has no update block"},
        {"sysbatch", "migrate {}", "has no migrate block"},
        {"batch", "update {}", "has no update block"},
        {"service", "max_run_duration = \"5m\"", "has no max_run_duration"},
        {"system", "max_run_duration = \"5m\"", "has no max_run_duration"},
        {"batch", "max_run_duration = \"0s\"", "must be longer than nothing"},
        {"cron", "", "the type of a job is"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        assert_null(typed(refused[i].type, refused[i].block));
        assert_non_null(strstr(problems.items[0], refused[i].says));
    }
    json_t *job = typed("system", "update {\n max_parallel = 3\n}\n count = 0");
    assert_non_null(job);
    json_decref(job);
}

/* As in Nomad, which asks it of groups only. */
static void test_attempts_of_a_task_need_not_fit(void **state)
{
    static const char task[] = "task \"u\" {\n driver = \"raw_exec\"\n restart {\n"
                               " attempts = 10\n delay = \"10s\"\n interval = \"30s\"\n"
                               " mode = \"delay\"\n }\n }\n";
    json_t *job = typed("service", task);

    (void)state;
    assert_non_null(job);
    assert_json(job, "TaskGroups.0.Tasks.0.RestartPolicy.Attempts", "10");
    json_decref(job);
    assert_null(
        typed("service", "restart {\n attempts = 10\n delay = \"10s\"\n interval = \"30s\"\n}"));
    assert_non_null(strstr(problems.items[0], "do not fit"));
}

/* As Go prints blocks that a system job does not have. */
static void test_zero_blocks_of_a_system_job_are_none(void **state)
{
    json_t *request = json_pack(
        "{s:s, s:s, s:{s:i, s:b, s:s}, s:[{s:s, s:{s:i}, s:[{s:s, s:s}]}]}", "ID", "a", "Type",
        "system", "Reschedule", "Attempts", 0, "Unlimited", 0, "DelayFunction", "", "TaskGroups",
        "Name", "g", "ReschedulePolicy", "Attempts", 0, "Tasks", "Name", "t", "Driver", "raw_exec");
    json_t *job = NULL;

    (void)state;
    assert_int_equal(jobspec_from_json("job", request, &job, &problems), 0);
    assert_json(job, "TaskGroups.0.ReschedulePolicy", "(missing)");
    json_decref(job);
    json_decref(request);
}

static void test_full_file_keeps_every_field(void **state)
{
    json_t *job = must_read("full.hcl");

    (void)state;
    assert_json(job, "Name", "\"full-name\"");
    assert_json(job, "Meta", "{\"level\":\"job\",\"owner\":\"OPS\"}");
    assert_json(job, "Constraints",
                "[{\"LTarget\":\"${attr.kernel.name}\",\"Operand\":\"=\",\"RTarget\":\"linux\"}]");
    assert_json(job, "Affinities",
                "[{\"LTarget\":\"${meta.rack}\",\"Operand\":\"regexp\","
                "\"RTarget\":\"r[12]\",\"Weight\":30}]");
    assert_json(job, "Spreads",
                "[{\"Attribute\":\"${node.datacenter}\",\"SpreadTarget\":"
                "[{\"Percent\":100,\"Value\":\"dc1\"}],\"Weight\":50}]");
    assert_json(job, "UI.Links.0.Label", "\"docs\"");
    assert_json(job, "TaskGroups.0.Count", "2");
    assert_json(job, "TaskGroups.0.ShutdownDelay", "1500000000");
    assert_json(job, "TaskGroups.0.Meta", "{\"level\":\"group\",\"with.dot\":\"yes\"}");
    assert_json(job, "TaskGroups.0.Update.Canary", "1");
    assert_json(job, "TaskGroups.0.Update.MaxParallel", "2");
    assert_json(job, "TaskGroups.0.Update.Stagger", "60000000000");
    assert_json(job, "TaskGroups.0.ReschedulePolicy.Attempts", "2");
    assert_json(job, "TaskGroups.0.Migrate.MaxParallel", "3");
    assert_json(job, "TaskGroups.0.Disconnect.LostAfter", "3600000000000");
    assert_json(job, "TaskGroups.0.RestartPolicy.Attempts", "1");
    assert_json(
        job, "TaskGroups.0.Tasks.0.RestartPolicy",
        "{\"Attempts\":1,\"Delay\":15000000000,\"Interval\":600000000000,\"Mode\":\"delay\"}");
    assert_json(job, "TaskGroups.0.Tasks.0.Config",
                "{\"args\":[\"${NOMAD_META_level}\",\"${env[\\\"HOME\\\"]}\",10,true],"
                "\"command\":\"/bin/sleep\",\"nested\":[{\"x\":1},{\"x\":2}],"
                "\"object\":[{\"k\":\"v\"}]}");
    assert_json(job, "TaskGroups.0.Tasks.0.Env",
                "{\"DEPTH\":\"3\",\"PORT\":\"80\",\"STAGE\":\"test\"}");
    assert_json(job, "TaskGroups.0.Tasks.0.KillSignal", "\"SIGINT\"");
    assert_json(job, "TaskGroups.0.Tasks.1.Name", "\"sleeper-a\"");
    assert_json(job, "TaskGroups.0.Tasks.2.Config.args", "[20]");
    assert_json(job, "TaskGroups.0.Tasks.2.Lifecycle", "{\"Hook\":\"prestart\",\"Sidecar\":true}");
    assert_json(job, "TaskGroups.0.Tasks.2.Resources.CPU", "0");
    json_decref(job);
}

static void test_demo_file_keeps_shell_text_and_run_time_names(void **state)
{
    json_t *job = must_read("demo.hcl");

    (void)state;
    assert_json(job, "TaskGroups.0.Tasks.0.Config.args.1",
                "\"while sleep 1; do echo \\\"tick $SECONDS in ${NOMAD_TASK_DIR}\\\"; done\"");
    assert_json(job, "TaskGroups.1.Tasks.0.Config.args.1",
                "\"for i in 1 2 3; do\\n  echo \\\"step $i of alloc ${NOMAD_ALLOC_INDEX:-0}\\\"\\n"
                "  sleep 1\\ndone\\nexit 7\\n\"");
    json_decref(job);
}

static void test_json_of_nomad_is_read_with_and_without_its_wrapper(void **state)
{
    json_t *wrapped = must_read("nomad_output.json"), *bare = NULL, *request;
    char *text = read_file(JOBS "nomad_output.json");

    (void)state;
    assert_json(wrapped, "ID", "\"from-nomad\"");
    assert_json(wrapped, "Priority", "60");
    assert_json(wrapped, "Version", "(missing)"); /* the server's own */
    assert_json(wrapped, "Namespace", "\"default\"");
    assert_json(wrapped, "TaskGroups.0.Count", "3");
    assert_json(wrapped, "TaskGroups.0.Tasks.0.KillTimeout", "3000000000");
    assert_json(wrapped, "TaskGroups.0.Tasks.0.Lifecycle", "(missing)");
    assert_json(wrapped, "TaskGroups.0.Update", "(missing)");
    char *marked;
    assert_true(asprintf(&marked, "\xef\xbb\xbf%s", text) > 0);
    bare = must_parse("marked.json", marked);
    assert_true(json_equal(wrapped, bare));
    json_decref(bare);
    free(marked);
    request = json_loads(text, 0, NULL);
    assert_non_null(request);
    assert_int_equal(
        jobspec_from_json("request", json_object_get(request, "Job"), &bare, &problems), 0);
    assert_true(json_equal(wrapped, bare));
    json_decref(request);
    json_decref(bare);
    json_decref(wrapped);
    free(text);
}

/* What we print we read again, to the same job: GET and PUT of the HTTP API round-trip. */
static void test_job_read_again_as_json_is_the_same(void **state)
{
    static const char *const files[] = {"full.hcl",    "demo.hcl",    "batch.hcl",
                                        "network.hcl", "volumes.hcl", "nomad_output.json"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        json_t *job = must_read(files[i]), *again = NULL;

        assert_int_equal(jobspec_from_json("again", job, &again, &problems), 0);
        assert_true(json_equal(job, again));
        json_decref(again);
        json_decref(job);
    }
}

static void test_variables_from_outside_reach_the_job(void **state)
{
    const struct hcl_input inputs[] = {{.name = "replicas", .value = "7"}};
    char *text = read_file(JOBS "full.hcl");
    struct jobspec_source source = {.name = "full.hcl",
                                    .text = text,
                                    .length = strlen(text),
                                    .inputs = inputs,
                                    .inputs_count = COUNT_OF(inputs)};
    json_t *job = NULL;

    (void)state;
    assert_int_equal(jobspec_parse(&source, &job, &problems), 0);
    assert_json(job, "TaskGroups.0.Count", "7");
    json_decref(job);
    free(text);
}

/* --- allocs --- */

/* One for each task of GROUP that asks for cores, as those of the files do. */
static struct spec_cores cores_of(const json_t *job, const char *group)
{
    static struct spec_core items[SPEC_TASKS_MAX];
    struct spec_cores cores = {.items = items};
    const json_t *task;
    size_t i;

    json_array_foreach(json_object_get(jobspec_group(job, group), "Tasks"), i, task)
    {
        if (json_integer_value(json_object_get(json_object_get(task, "Resources"), "Cores")) == 1)
            items[cores.count++] = (struct spec_core){
                json_string_value(json_object_get(task, "Name")), (uint16_t)(i + 3)};
    }
    return cores;
}

static char *alloc_text(const json_t *job, const char *group, size_t *ret_length)
{
    struct jobspec_placement placement = {.group = group,
                                          .index = 1,
                                          .alloc_id = ALLOC_ID,
                                          .eval_id = EVAL_ID,
                                          .datacenter = "dc1",
                                          .create_time_unix_ns = 1700000000123456789,
                                          .cores = cores_of(job, group)};
    struct err err;
    char *text = NULL;

    assert_int_equal(jobspec_alloc_json(job, &placement, &text, ret_length, &err), 0);
    assert_int_equal(strlen(text), *ret_length);
    return text;
}

static const char *pair(const struct spec_pairs *pairs, const char *key)
{
    for (size_t i = 0; i < pairs->count; i++) {
        if (strcmp(pairs->items[i].key, key) == 0)
            return pairs->items[i].value;
    }
    return NULL;
}

static void test_alloc_of_a_job_decodes_to_what_was_asked_for(void **state)
{
    json_t *job = must_read("full.hcl");
    struct alloc_spec *spec = NULL;
    struct err err;
    size_t length;

    (void)state;
    assert_int_equal(json_object_set_new(job, "Version", json_integer(4)), 0);
    char *text = alloc_text(job, "g", &length);
    json_decref(job);
    assert_int_equal(jobspec_decode_alloc(text, length, &spec, &err), 0);
    free(text);
    assert_string_equal(spec->id, ALLOC_ID);
    assert_string_equal(spec->eval_id, EVAL_ID);
    assert_string_equal(spec->name, "full.g[1]");
    assert_string_equal(spec->namespace, "apps");
    assert_string_equal(spec->job_id, "full");
    assert_string_equal(spec->job_name, "full-name");
    assert_string_equal(spec->job_parent_id, "");
    assert_string_equal(spec->job_type, "service");
    assert_int_equal(spec->job_version, 4);
    assert_string_equal(spec->region, "eu");
    assert_string_equal(spec->datacenter, "dc1");
    assert_string_equal(spec->group, "g");
    assert_int_equal(spec->index, 1);
    assert_int_equal(spec->group_shutdown_delay_ms, 1500);
    assert_int_equal(spec->ephemeral_disk_mb, 500);
    assert_true(spec->create_time_unix_ns == 1700000000123456789);
    assert_int_equal(spec->tasks_count, 3);

    const struct task_spec *task = &spec->tasks[0];
    assert_string_equal(task->name, "main");
    assert_string_equal(task->driver, "raw_exec");
    assert_string_equal(task->user, "nobody");
    assert_non_null(strstr(task->config_json, "\"args\":[\"${NOMAD_META_level}\""));
    assert_int_equal(task->env.count, 3);
    assert_string_equal(task->env.items[0].key, "DEPTH"); /* sorted */
    assert_string_equal(pair(&task->env, "PORT"), "80");
    assert_string_equal(pair(&task->meta, "level"), "task");
    assert_string_equal(pair(&task->meta, "with.dot"), "yes");
    assert_string_equal(pair(&task->meta, "owner"), "OPS");
    assert_int_equal(task->restart.attempts, 1);
    assert_int_equal(task->restart.interval_ms, 600000);
    assert_int_equal(task->restart.delay_ms, 15000);
    assert_true(task->restart.mode_delay);
    assert_int_equal(task->resources.cpu_mhz, 200);
    assert_int_equal(task->resources.memory_mb, 64);
    assert_int_equal(task->resources.memory_max_mb, 128);
    assert_int_equal(task->logs.max_files, 2);
    assert_int_equal(task->logs.max_file_size_mb, 5);
    assert_false(task->logs.disabled);
    assert_string_equal(task->kill_signal, "SIGINT");
    assert_int_equal(task->kill_timeout_ms, 22000);
    assert_int_equal(task->shutdown_delay_ms, 1); /* 100 us, not lost */
    assert_int_equal(task->lifecycle, LIFECYCLE_MAIN);
    assert_true(task->leader);

    task = &spec->tasks[2];
    assert_string_equal(pair(&task->meta, "level"), "group");
    assert_int_equal(task->lifecycle, LIFECYCLE_PRESTART);
    assert_true(task->sidecar);
    assert_true(task->logs.disabled);
    assert_int_equal(task->resources.cores, 1);
    assert_in_range(task->resources.core_ids[0], 3, 3 + SPEC_TASKS_MAX);
    assert_int_equal(task->env.count, 0);
    alloc_spec_free(spec);
    alloc_spec_free(NULL);
}

static void test_memory_may_have_no_limit(void **state)
{
    json_t *job = must_parse("t.hcl", "job \"a\" {\n group \"g\" {\n  task \"t\" {\n"
                                      "   driver = \"exec\"\n   config {\n command = \"true\"\n }\n"
                                      "   resources {\n memory_max = -1\n }\n }\n }\n}\n");
    struct alloc_spec *spec = NULL;
    struct err err;
    size_t length;

    (void)state;
    char *text = alloc_text(job, "g", &length);
    assert_int_equal(jobspec_decode_alloc(text, length, &spec, &err), 0);
    assert_int_equal(spec->tasks[0].resources.memory_max_mb, SPEC_MEMORY_UNLIMITED);
    alloc_spec_free(spec);
    free(text);
    json_decref(job);
}

static void test_alloc_text_holds_nothing_that_only_places_allocs(void **state)
{
    static const char *const absent[] = {"Count",      "Priority", "Update",
                                         "Affinities", "Spreads",  "Datacenters"};
    json_t *job = must_read("full.hcl");
    size_t length;
    char *text = alloc_text(job, "g", &length);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(absent); i++) {
        char quoted[40];

        (void)snprintf(quoted, sizeof(quoted), "\"%s\":", absent[i]);
        assert_null(strstr(text, quoted));
    }
    free(text);
    json_decref(job);
}

static void test_alloc_of_a_missing_group_is_an_error(void **state)
{
    json_t *job = must_read("batch.hcl");
    struct jobspec_placement placement = {
        .group = "none", .alloc_id = ALLOC_ID, .eval_id = "", .datacenter = "dc1"};
    struct err err;
    char *text = NULL;
    size_t length;

    (void)state;
    assert_int_equal(jobspec_alloc_json(job, &placement, &text, &length, &err), ERR_GONE);
    assert_null(text);
    json_decref(job);
}

/* --- both at once --- */

static void assert_pairs_equal(const struct spec_pairs *a, const struct spec_pairs *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_string_equal(a->items[i].key, b->items[i].key);
        assert_string_equal(a->items[i].value, b->items[i].value);
    }
}

static void assert_tasks_equal(const struct task_spec *a, const struct task_spec *b)
{
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->driver, b->driver);
    assert_string_equal(a->user, b->user);
    assert_string_equal(a->config_json, b->config_json);
    assert_pairs_equal(&a->env, &b->env);
    assert_pairs_equal(&a->meta, &b->meta);
    assert_int_equal(a->restart.attempts, b->restart.attempts);
    assert_int_equal(a->restart.interval_ms, b->restart.interval_ms);
    assert_int_equal(a->restart.delay_ms, b->restart.delay_ms);
    assert_int_equal(a->restart.mode_delay, b->restart.mode_delay);
    assert_int_equal(a->resources.cpu_mhz, b->resources.cpu_mhz);
    assert_int_equal(a->resources.memory_mb, b->resources.memory_mb);
    assert_int_equal(a->resources.memory_max_mb, b->resources.memory_max_mb);
    assert_int_equal(a->resources.cores, b->resources.cores);
    for (uint32_t i = 0; i < a->resources.cores; i++)
        assert_int_equal(a->resources.core_ids[i], b->resources.core_ids[i]);
    assert_int_equal(a->logs.max_files, b->logs.max_files);
    assert_int_equal(a->logs.max_file_size_mb, b->logs.max_file_size_mb);
    assert_int_equal(a->logs.disabled, b->logs.disabled);
    assert_string_equal(a->kill_signal, b->kill_signal);
    assert_int_equal(a->kill_timeout_ms, b->kill_timeout_ms);
    assert_int_equal(a->shutdown_delay_ms, b->shutdown_delay_ms);
    assert_int_equal(a->lifecycle, b->lifecycle);
    assert_int_equal(a->sidecar, b->sidecar);
    assert_int_equal(a->leader, b->leader);
}

static void assert_specs_equal(const struct alloc_spec *a, const struct alloc_spec *b)
{
    assert_string_equal(a->id, b->id);
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->eval_id, b->eval_id);
    assert_string_equal(a->namespace, b->namespace);
    assert_string_equal(a->job_id, b->job_id);
    assert_string_equal(a->job_name, b->job_name);
    assert_string_equal(a->job_parent_id, b->job_parent_id);
    assert_string_equal(a->job_type, b->job_type);
    assert_int_equal(a->job_version, b->job_version);
    assert_string_equal(a->region, b->region);
    assert_string_equal(a->datacenter, b->datacenter);
    assert_string_equal(a->group, b->group);
    assert_int_equal(a->index, b->index);
    assert_int_equal(a->group_shutdown_delay_ms, b->group_shutdown_delay_ms);
    assert_int_equal(a->ephemeral_disk_mb, b->ephemeral_disk_mb);
    assert_int_equal(a->create_time_unix_ns, b->create_time_unix_ns);
    assert_int_equal(a->tasks_count, b->tasks_count);
    for (size_t i = 0; i < a->tasks_count; i++)
        assert_tasks_equal(&a->tasks[i], &b->tasks[i]);
}

/* What is kept and what is run by now are the same, or a restart would change a task. */
static void test_made_alloc_is_what_its_text_decodes_to(void **state)
{
    static const struct {
        const char *file, *group;
    } groups[] = {{"full.hcl", "g"}, {"batch.hcl", "once"}, {"demo.hcl", "web"}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(groups); i++) {
        json_t *job = must_read(groups[i].file);
        struct jobspec_placement placement = {.group = groups[i].group,
                                              .index = 1,
                                              .alloc_id = ALLOC_ID,
                                              .eval_id = EVAL_ID,
                                              .datacenter = "dc1",
                                              .create_time_unix_ns = 1700000000123456789,
                                              .cores = cores_of(job, groups[i].group)};
        struct alloc_spec *made = NULL, *decoded = NULL;
        struct err err;
        char *text = NULL;
        size_t length, plain_length;

        assert_int_equal(jobspec_make_alloc(job, &placement, &text, &length, &made, &err), 0);
        char *plain = alloc_text(job, groups[i].group, &plain_length);
        json_decref(job);
        assert_string_equal(text, plain);
        assert_int_equal(length, plain_length);
        assert_int_equal(jobspec_decode_alloc(text, length, &decoded, &err), 0);
        assert_specs_equal(made, decoded);
        alloc_spec_free(made);
        job = must_read(groups[i].file);
        placement.cores = cores_of(job, groups[i].group);
        length = 0;
        assert_int_equal(jobspec_make_alloc(job, &placement, NULL, &length, &made, &err), 0);
        json_decref(job);
        assert_int_equal(length, plain_length);
        assert_specs_equal(made, decoded);
        alloc_spec_free(made);
        alloc_spec_free(decoded);
        free(plain);
        free(text);
    }
}

static void test_alloc_that_cannot_run_is_not_made(void **state)
{
    json_t *job = must_read("batch.hcl"), *task;
    struct jobspec_placement placement = {
        .group = "none", .alloc_id = ALLOC_ID, .eval_id = "", .datacenter = "dc1"};
    struct alloc_spec *spec = NULL;
    struct err err;
    char *text = NULL;
    size_t length;

    (void)state;
    assert_int_equal(jobspec_make_alloc(job, &placement, &text, &length, &spec, &err), ERR_GONE);
    placement.group = "once";
    task = json_array_get(
        json_object_get(json_array_get(json_object_get(job, "TaskGroups"), 0), "Tasks"), 0);
    assert_int_equal(json_object_set_new(task, "Name", json_string("..")), 0);
    assert_int_equal(jobspec_make_alloc(job, &placement, &text, &length, &spec, &err), ERR_CORRUPT);
    assert_null(text);
    assert_null(spec);
    json_decref(job);
}

/* Every byte in turn, cut off there and changed there: an error or a whole spec, never a crash. */
static void test_damaged_alloc_text_is_an_error_and_never_a_crash(void **state)
{
    json_t *job = must_read("batch.hcl");
    struct alloc_spec *spec;
    struct err err;
    size_t length, refused = 0;
    char *text = alloc_text(job, "once", &length);

    (void)state;
    json_decref(job);
    for (size_t i = 0; i < length; i++) {
        assert_int_equal(jobspec_decode_alloc(text, i, &spec, &err), ERR_CORRUPT);
        assert_true(err.text[0] != '\0');
        for (const char *with = "0\"}x\x01"; *with != '\0'; with++) {
            char was = text[i];

            text[i] = *with;
            if (jobspec_decode_alloc(text, length, &spec, &err) == 0)
                alloc_spec_free(spec);
            else
                refused++;
            text[i] = was;
        }
    }
    assert_true(refused > length);
    free(text);
}

static void test_alloc_text_with_dangerous_names_is_refused(void **state)
{
    static const struct {
        const char *from, *to;
    } changes[] = {
        {"\"Name\":\"once\",\"Resources\"", "\"Name\":\"../x\",\"Resources\""},
        {"\"Name\":\"once\",\"Resources\"", "\"Name\":\"alloc\",\"Resources\""},
        {"\"Name\":\"once\",\"Resources\"", "\"Name\":\"\",\"Resources\""},
        {"\"Schema\":1", "\"Schema\":2"},
        {"\"CPU\":100", "\"CPU\":4294967296"},
        {"\"CPU\":100", "\"CPU\":-1"},
        {"\"CPU\":100", "\"CPU\":1.5"},
        {"\"MaxFiles\":10", "\"MaxFiles\":0"},
        {"\"Driver\":\"raw_exec\"", "\"Driver\":\"\""},
        {"\"Mode\":\"fail\"", "\"Mode\":\"none\""},
        {"\"Leader\":false", "\"Leader\":0"},
        {"\"Type\":\"batch\"", "\"Type\":\"core\""},
        {ALLOC_ID, "no-uuid"},
    };
    json_t *job = must_read("batch.hcl");
    size_t length;
    char *text = alloc_text(job, "once", &length);

    (void)state;
    json_decref(job);
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        char changed[4096], *found = strstr(text, changes[i].from);
        struct alloc_spec *spec;
        struct err err;

        assert_non_null(found);
        int size = snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(found - text), text,
                            changes[i].to, found + strlen(changes[i].from));
        assert_true(size > 0 && (size_t)size < sizeof(changed));
        if (jobspec_decode_alloc(changed, (size_t)size, &spec, &err) != ERR_CORRUPT)
            fail_msg("%s was accepted", changes[i].to);
    }
    free(text);
}

/* --- ports --- */

/* What was given for the ports of network.hcl, in the order in which they are asked for. */
static struct spec_port given_ports[] = {
    {.label = "http", .task = "", .host_ip = "10.0.0.1", .value = 8080, .is_static = true},
    {.label = "ssh", .task = "t", .host_ip = "10.0.0.1", .value = 22, .is_static = true},
    {.label = "admin", .task = "", .host_ip = "fd00::1", .value = 20001, .to = 9000},
    {.label = "old", .task = "t", .host_ip = "10.0.0.1", .value = 20002},
};

static char *alloc_with_ports(size_t *ret_length, struct alloc_spec **ret_spec)
{
    json_t *job = must_read("network.hcl");
    struct jobspec_placement placement = {.group = "g",
                                          .alloc_id = ALLOC_ID,
                                          .eval_id = EVAL_ID,
                                          .datacenter = "dc1",
                                          .ports = {given_ports, COUNT_OF(given_ports)}};
    struct err err;
    char *text;

    if (jobspec_make_alloc(job, &placement, &text, ret_length, ret_spec, &err) != 0)
        fail_msg("%s", err.text);
    json_decref(job);
    return text;
}

static void test_network_of_a_file_is_nomads(void **state)
{
    json_t *job = must_read("network.hcl");
    struct spec_port ports[SPEC_PORTS_MAX];
    size_t count;

    (void)state;
    assert_json(job, "TaskGroups.0.Networks.0.ReservedPorts",
                "[{\"HostNetwork\":\"default\",\"Label\":\"http\",\"To\":0,\"Value\":8080}]");
    assert_json(job, "TaskGroups.0.Networks.0.DynamicPorts",
                "[{\"HostNetwork\":\"private\",\"Label\":\"admin\",\"To\":9000,\"Value\":0}]");
    assert_json(job, "TaskGroups.0.Tasks.0.Resources.Networks.0.Mode", "\"\"");
    assert_true(jobspec_ports(jobspec_group(job, "g"), ports, &count));
    assert_int_equal(count, COUNT_OF(given_ports));
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(ports[i].label, given_ports[i].label);
        assert_string_equal(ports[i].task, given_ports[i].task);
        assert_int_equal(ports[i].value, given_ports[i].is_static ? given_ports[i].value : 0);
    }
    json_decref(job);
}

static void test_alloc_has_the_ports_that_it_was_given(void **state)
{
    struct alloc_spec *made = NULL, *decoded = NULL;
    struct err err;
    size_t length;
    char *text = alloc_with_ports(&length, &made);

    (void)state;
    assert_int_equal(jobspec_decode_alloc(text, length, &decoded, &err), 0);
    assert_string_equal(decoded->network_mode, "host");
    assert_true(decoded->has_network);
    for (size_t i = 0; i < COUNT_OF(given_ports); i++) {
        const struct spec_port *both[] = {&made->ports.items[i], &decoded->ports.items[i]};
        for (size_t b = 0; b < COUNT_OF(both); b++) {
            assert_string_equal(both[b]->label, given_ports[i].label);
            assert_string_equal(both[b]->task, given_ports[i].task);
            assert_string_equal(both[b]->host_ip, given_ports[i].host_ip);
            assert_int_equal(both[b]->value, given_ports[i].value);
            assert_int_equal(both[b]->to, given_ports[i].to);
            assert_int_equal(both[b]->is_static, given_ports[i].is_static);
        }
    }
    assert_int_equal(decoded->ports.count, COUNT_OF(given_ports));
    alloc_spec_free(made);
    alloc_spec_free(decoded);
    free(text);
}

static void test_alloc_whose_ports_are_damaged_is_refused(void **state)
{
    static const struct {
        const char *from, *to;
    } changes[] = {
        {"\"AllocatedResources\"", "\"AllocatedSources\""},
        {"\"HostIP\":\"10.0.0.1\"", "\"HostIP\":\"10.0.0.256\""},
        {"\"HostIP\":\"10.0.0.1\"", "\"HostIP\":7"},
        {"\"IP\":\"10.0.0.1\"", "\"IQ\":\"10.0.0.1\""},
        {"\"Value\":20001", "\"Value\":0"},
        {"\"Value\":20001", "\"Value\":65536"},
        {"\"Value\":20001", "\"Value\":\"20001\""},
        {"\"Value\":20002", "\"Value\":22"},      /* that of another of its ports */
        {"\"Value\":8080}]", "\"Value\":8081}]"}, /* asked for is what it was not given */
        {"\"Label\":\"old\",\"To\":0,\"Value\":20002",
         "\"Label\":\"odd\",\"To\":0,\"Value\":20002"},
        {"\"Label\":\"admin\",\"To\":9000,\"Value\":0",
         "\"Label\":\"a b\",\"To\":9000,\"Value\":0"},
        {"\"Networks\":[{\"DynamicPorts\":[{\"HostNetwork\":\"private\"",
         "\"Networks\":[[],{\"DynamicPorts\":[{\"HostNetwork\":\"private\""},
        {"\"HostNetwork\":\"private\"", "\"HostNetwork\":7"},
    };
    struct alloc_spec *spec;
    struct err err;
    size_t length;
    char *text = alloc_with_ports(&length, &spec);

    (void)state;
    alloc_spec_free(spec);
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        char changed[4096], *found = strstr(text, changes[i].from);
        if (found == NULL)
            fail_msg("no %s in %s", changes[i].from, text);
        int size = snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(found - text), text,
                            changes[i].to, found + strlen(changes[i].from));
        assert_in_range(size, 1, sizeof(changed) - 1);
        if (jobspec_decode_alloc(changed, (size_t)size, &spec, &err) != ERR_CORRUPT)
            fail_msg("%s was accepted", changes[i].to);
    }
    free(text);
}

static void test_number_of_ports_has_a_bound(void **state)
{
    for (int more = 0; more < 2; more++) {
        json_t *ports = json_array(), *job = NULL, *raw;
        for (int i = 0; i < SPEC_PORTS_MAX - 1 + more; i++)
            assert_int_equal(
                json_array_append_new(ports, json_pack("{s:o}", "Label", json_sprintf("p%d", i))),
                0);
        raw = json_pack("{s:s, s:[{s:s, s:[{s:o}], s:[{s:s, s:s, s:{s:[{s:[{s:s}]}]}}]}]}", "ID",
                        "j", "TaskGroups", "Name", "g", "Networks", "DynamicPorts", ports, "Tasks",
                        "Name", "t", "Driver", "raw_exec", "Resources", "Networks", "DynamicPorts",
                        "Label", "own");
        assert_non_null(raw);
        int code = jobspec_from_json("job", raw, &job, &problems);
        assert_int_equal(code, more == 0 ? 0 : ERR_INVALID);
        if (more == 1)
            assert_non_null(strstr(problems.items[0], "129 ports"));
        json_decref(raw);
        json_decref(job);
    }
    (void)state;
}

static void test_host_network_is_warned_of_what_it_does_not_do(void **state)
{
    json_t *job = must_read("network.hcl");
    char *warnings = jobspec_warnings(job);

    (void)state;
    assert_non_null(strstr(warnings, "hostname is kept and not acted on: the name is that of"));
    assert_non_null(strstr(warnings, "mbits is kept and not acted on"));
    free(warnings);
    json_decref(job);
}

/* --- comparison --- */

/* A job with the parts that may differ put in. */
static json_t *variant(const char *job_part, const char *group_part, const char *task_part)
{
    char text[2048];

    (void)snprintf(text, sizeof(text),
                   "job \"a\" {\n%s\n group \"g\" {\n%s\n  task \"t\" {\n   driver = \"raw_exec\"\n"
                   "%s\n  }\n  task \"u\" {\n   driver = \"raw_exec\"\n  }\n }\n}\n",
                   job_part, group_part, task_part);
    return must_parse("t.hcl", text);
}

static void check_variant(const char *job_part, const char *group_part, const char *task_part,
                          bool equal)
{
    json_t *plain = variant("", "", ""), *other = variant(job_part, group_part, task_part);

    assert_int_equal(json_object_set_new(other, "Version", json_integer(9)), 0);
    if (jobspec_group_equal(plain, other, "g") != equal)
        fail_msg("%s %s %s should %sreplace allocs", job_part, group_part, task_part,
                 equal ? "not " : "");
    json_decref(plain);
    json_decref(other);
}

static void test_changes_that_only_place_allocs_leave_groups_equal(void **state)
{
    (void)state;
    check_variant("", "", "", true);
    check_variant("priority = 80", "", "", true);
    check_variant("datacenters = [\"dc9\"]", "", "", true);
    check_variant("", "count = 5", "", true);
    check_variant("", "update {\n canary = 1\n }", "", true);
    check_variant("", "affinity {\n attribute = \"a\"\n value = \"b\"\n }", "", true);
    check_variant("", "restart {\n attempts = 2\n }", "", true); /* the default, spelled out */
    check_variant("", "", "kill_timeout = \"5s\"", true);
    check_variant("", "meta {}", "env {}", true);
    check_variant("", "task \"x\" { driver = \"raw_exec\" }", "", false);
}

static void test_changes_that_allocs_run_by_make_groups_differ(void **state)
{
    (void)state;
    check_variant("meta {\n a = 1\n }", "", "", false);
    check_variant("name = \"b\"", "", "", false);
    check_variant("type = \"batch\"", "", "", false);
    check_variant("", "meta {\n a = 1\n }", "", false);
    check_variant("", "restart {\n attempts = 1\n }", "", false);
    check_variant("", "shutdown_delay = \"1s\"", "", false);
    check_variant("", "ephemeral_disk {\n size = 400\n }", "", false);
    check_variant("", "network {\n port \"a\" {}\n }", "", false);
    check_variant("", "", "resources {\n network {\n port \"a\" {}\n }\n }", false);
    check_variant("", "", "user = \"x\"", false);
    check_variant("", "", "env {\n A = 1\n }", false);
    check_variant("", "", "config {\n command = \"x\"\n }", false);
    check_variant("", "", "resources {\n memory = 20\n }", false);
    check_variant("", "", "kill_timeout = \"6s\"", false);
    check_variant("", "", "leader = true", false);
    check_variant("", "", "logs {\n max_files = 3\n }", false);
}

/* Nomad v2.0.5 scheduler/util.go networkUpdated. */
static void test_changed_ports_replace_allocs(void **state)
{
    static const char *const ports[] = {
        "port \"a\" {}",
        "port \"b\" {}",
        "port \"a\" {\n static = 80\n }",
        "port \"a\" {\n static = 81\n }",
        "port \"a\" {\n to = 80\n }",
        "port \"a\" {\n host_network = \"x\"\n }",
        "mode = \"host\"\n port \"a\" {}",
        "port \"a\" {}\n port \"b\" {}",
    };
    char text[2][200];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(ports); i++) {
        for (size_t j = 0; j < COUNT_OF(ports); j++) {
            (void)snprintf(text[0], sizeof(text[0]), "network {\n %s\n }", ports[i]);
            (void)snprintf(text[1], sizeof(text[1]), "network {\n %s\n }", ports[j]);
            json_t *one = variant("", text[0], ""), *other = variant("", text[1], "");
            assert_int_equal(jobspec_group_equal(one, other, "g"), i == j);
            json_decref(one);
            json_decref(other);
        }
    }
    check_variant("", "network {\n mode = \"none\"\n hostname = \"x\"\n }\n", "",
                  false); /* there is a network */
}

static void test_order_of_tasks_and_missing_groups_in_comparison(void **state)
{
    json_t *one =
        must_parse("t.hcl", "job \"a\" {\n group \"g\" {\n task \"x\" { driver = \"d\" }\n"
                            " task \"y\" { driver = \"e\" }\n }\n}\n");
    json_t *two =
        must_parse("t.hcl", "job \"a\" {\n group \"g\" {\n task \"y\" { driver = \"e\" }\n"
                            " task \"x\" { driver = \"d\" }\n }\n}\n");

    (void)state;
    assert_true(jobspec_group_equal(one, two, "g"));
    assert_false(jobspec_group_equal(one, two, "h"));
    json_decref(one);
    json_decref(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_bad_file_gives_its_golden_problems),
        cmocka_unit_test(test_problems_beyond_the_bound_are_counted),
        cmocka_unit_test(test_each_problem_begins_with_one_line_that_names_its_place),
        cmocka_unit_test(test_met_bound_is_told_once),
        cmocka_unit_test(test_json_that_is_too_deep_or_no_object_is_refused),
        cmocka_unit_test(test_damaged_alloc_text_is_an_error_and_never_a_crash),
        cmocka_unit_test(test_alloc_text_with_dangerous_names_is_refused),
        cmocka_unit_test(test_alloc_of_a_missing_group_is_an_error),
        cmocka_unit_test(test_made_alloc_is_what_its_text_decodes_to),
        cmocka_unit_test(test_alloc_that_cannot_run_is_not_made),
        cmocka_unit_test(test_job_with_an_id_of_its_own_has_its_label_for_a_name),
        cmocka_unit_test(test_defaults_are_nomads_for_a_service),
        cmocka_unit_test(test_defaults_are_nomads_for_a_batch_job_with_a_lone_task),
        cmocka_unit_test(test_defaults_of_system_jobs_are_services_without_rescheduling),
        cmocka_unit_test(test_job_of_a_type_has_the_blocks_of_that_type),
        cmocka_unit_test(test_attempts_of_a_task_need_not_fit),
        cmocka_unit_test(test_zero_blocks_of_a_system_job_are_none),
        cmocka_unit_test(test_full_file_keeps_every_field),
        cmocka_unit_test(test_demo_file_keeps_shell_text_and_run_time_names),
        cmocka_unit_test(test_json_of_nomad_is_read_with_and_without_its_wrapper),
        cmocka_unit_test(test_job_read_again_as_json_is_the_same),
        cmocka_unit_test(test_variables_from_outside_reach_the_job),
        cmocka_unit_test(test_alloc_of_a_job_decodes_to_what_was_asked_for),
        cmocka_unit_test(test_memory_may_have_no_limit),
        cmocka_unit_test(test_alloc_text_holds_nothing_that_only_places_allocs),
        cmocka_unit_test(test_network_of_a_file_is_nomads),
        cmocka_unit_test(test_alloc_has_the_ports_that_it_was_given),
        cmocka_unit_test(test_alloc_whose_ports_are_damaged_is_refused),
        cmocka_unit_test(test_number_of_ports_has_a_bound),
        cmocka_unit_test(test_host_network_is_warned_of_what_it_does_not_do),
        cmocka_unit_test(test_changed_ports_replace_allocs),
        cmocka_unit_test(test_changes_that_only_place_allocs_leave_groups_equal),
        cmocka_unit_test(test_changes_that_allocs_run_by_make_groups_differ),
        cmocka_unit_test(test_order_of_tasks_and_missing_groups_in_comparison),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
