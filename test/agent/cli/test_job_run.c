/* cairn job run: what an agent is sent of a file, and of the values that were given for it. */
#include "test/agent/cli/answering.h"

#include <unistd.h>

#define FILE_TEXT                                                                                  \
    "variable \"n\" {}\nvariable \"s\" {}\njob \"j\" {\n  group \"g\" {\n    count = var.n\n"      \
    "    task \"t\" {\n      driver = \"raw_exec\"\n      env { S = var.s }\n    }\n  }\n}\n"

struct place {
    struct typed *typed;
    char directory[64], job[80], values[80];
};

static void write_file(char path[80], const char *directory, const char *name, const char *text)
{
    (void)snprintf(path, 80, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int place_make(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    void *typed;

    assert_non_null(place);
    assert_int_equal(typed_make(&typed), 0);
    place->typed = typed;
    (void)text_copy(place->directory, sizeof(place->directory), "/tmp/cairn-run-XXXXXX");
    assert_non_null(mkdtemp(place->directory));
    write_file(place->job, place->directory, "j.nomad", FILE_TEXT);
    write_file(place->values, place->directory, "values", "s = \"of a file\"\n");
    *state = place;
    return 0;
}

static int place_remove(void **state)
{
    struct place *place = *state;
    void *typed = place->typed;

    (void)unlink(place->job);
    (void)unlink(place->values);
    (void)rmdir(place->directory);
    (void)unsetenv("NOMAD_VAR_other");
    free(place);
    return typed_remove(&typed);
}

/* Runs `job run FLAGS FILE`; the body that the agent was sent, a new reference. */
static json_t *run(struct place *place, const char *flags)
{
    struct answering answering;
    char line[512];

    answering_start(
        &answering,
        (struct answer[]){{.path = "/v1/jobs", .body = "{\"EvalID\":\"e\"}"}, {.path = NULL}});
    (void)snprintf(line, sizeof(line), "job run %s %s", flags, place->job);
    type(place->typed, &cli_job_run, line);
    char *asked = answering_stop(&answering);
    assert_string_equal(place->typed->complain, "");
    assert_int_equal(place->typed->status, CLI_OK);
    char *body = strchr(asked, '{');
    assert_non_null(body);
    json_t *json = json_loads(body, JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(json);
    free(asked);
    return json;
}

static const char *text_of(const json_t *source, const char *name)
{
    return json_string_value(json_object_get(source, name));
}

static void test_file_and_values_go_with_the_job(void **state)
{
    struct place *place = *state;
    char flags[256];

    assert_int_equal(setenv("NOMAD_VAR_other", "of the environment", 1), 0);
    (void)snprintf(flags, sizeof(flags), "-detach -var n=2 -var-file %s", place->values);
    json_t *body = run(place, flags);
    const json_t *source = json_object_get(body, "Submission");
    const json_t *given = json_object_get(source, "VariableFlags");
    assert_string_equal(text_of(source, "Source"), FILE_TEXT);
    assert_string_equal(text_of(source, "Format"), "hcl2");
    assert_string_equal(text_of(source, "Variables"), "s = \"of a file\"\n\n");
    assert_string_equal(text_of(given, "n"), "2");
    assert_string_equal(text_of(given, "other"), "of the environment");
    assert_int_equal(json_object_size(given), 2);
    json_decref(body);
}

static void test_what_is_json_is_said_to_be(void **state)
{
    struct place *place = *state;
    static const char text[] =
        " {\"Job\": {\"ID\": \"j\", \"TaskGroups\": [{\"Name\": \"g\", \"Tasks\": "
        "[{\"Name\": \"t\", \"Driver\": \"raw_exec\"}]}]}}";

    write_file(place->job, place->directory, "j.nomad", text);
    json_t *body = run(place, "-detach");
    const json_t *source = json_object_get(body, "Submission");
    assert_string_equal(text_of(source, "Source"), text);
    assert_string_equal(text_of(source, "Format"), "json");
    assert_string_equal(text_of(source, "Variables"), "");
    json_decref(body);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_file_and_values_go_with_the_job),
        TEST(test_what_is_json_is_said_to_be),
    };

    return cmocka_run_group_tests_name("cli_job_run", tests, NULL, NULL);
}
