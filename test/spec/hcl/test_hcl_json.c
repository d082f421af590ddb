/*
 * HCL in JSON: what is read of it is the job that the same text in native syntax is, and a mistake
 * is told with its place.
 */
#include "spec/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct jobspec_problems problems;

static int parse(const char *text, json_t **ret_job)
{
    const struct hcl_input inputs[] = {
        {.name = "n", .value = "3", .optional = true},
        {.name = "names", .value = "[\"a\", \"b\"]", .optional = true},
    };
    struct jobspec_source source = {
        .name = "t", .text = text, .length = strlen(text), .inputs = inputs, .inputs_count = 2};

    return jobspec_parse(&source, ret_job, &problems);
}

static json_t *must_parse(const char *text)
{
    json_t *job = NULL;
    char message[4096];

    if (parse(text, &job) != 0) {
        jobspec_problems_text(&problems, message, sizeof(message));
        fail_msg("%s\n%s", text, message);
    }
    return job;
}

/* TEXT is refused, and of what is told one begins with WANTED. */
static void must_fail(const char *text, const char *wanted)
{
    json_t *job = NULL;

    if (parse(text, &job) == 0)
        fail_msg("this was read: %s", text);
    for (size_t i = 0; i < problems.count; i++) {
        if (strncmp(problems.items[i], wanted, strlen(wanted)) == 0)
            return;
    }
    fail_msg("%s\ntold:   %s\nwanted: %s", text, problems.items[0], wanted);
}

/* Both syntaxes of one job. */
static void assert_same(const char *native, const char *in_json)
{
    json_t *left = must_parse(native), *right = must_parse(in_json);

    if (!json_equal(left, right)) {
        char *one = json_dumps(left, JSON_INDENT(1)), *other = json_dumps(right, JSON_INDENT(1));

        fail_msg("%s\n%s\n%s", in_json, one, other);
    }
    json_decref(left);
    json_decref(right);
}

#define TASK_NATIVE "driver = \"raw_exec\"\nconfig {\ncommand = \"/bin/true\"\n}\n"
#define TASK_JSON "\"driver\": \"raw_exec\", \"config\": {\"command\": \"/bin/true\"}"

/* A job of one group and one task, with MORE in the task. */
#define NATIVE(more) "job \"j\" {\ngroup \"g\" {\ntask \"t\" {\n" TASK_NATIVE more "\n}\n}\n}\n"
#define IN_JSON(more)                                                                              \
    "{\"job\": {\"j\": {\"group\": {\"g\": {\"task\": {\"t\": {" TASK_JSON more "}}}}}}}"

/* --- mistakes --- */

static void test_text_that_is_no_json_is_told_where(void **state)
{
    (void)state;
    must_fail("{\"job\": {\"j\": {}}", "t: line 1, column 17: this is not JSON");
    must_fail("{\"job\": {\"j\": {},}}", "t: line 1, column 18: this is not JSON");
    must_fail("{\"job\": {\"j\": {\"type\": \"a\nb\"}}}", "t: line 1, column");
    must_fail("{\"job\": {\"j\": {\"priority\": 01}}}", "t: line 1, column");
}

static void test_member_of_the_wrong_shape_is_told_where(void **state)
{
    (void)state;
    must_fail("{\"job\": {\"j\": {\"group\": 5}}}",
              "t:1:25: expected an object of blocks by their labels");
    must_fail("{\"job\": {\"j\": {\"group\": {\"g\": \"x\"}}}}",
              "t:1:31: expected an object, or an array of them, for this block");
    must_fail("{\"job\": {\"j\":\n  {\"group\": {\"g\": [\"x\"]}}}}",
              "t:2:20: expected an object of arguments and blocks");
    must_fail("{\"job\": [\"j\"]}", "t:1:10: expected an object of blocks by their labels");
    must_fail("{\"job\": [{\"j\": {\"group\": [{\"g\": [[]]}]}}]}", "t:1:");
    must_fail(IN_JSON(", \"resources\": true"), "t:1:");
    must_fail(IN_JSON(", \"resources\": \"null\""), "t:1:");
}

static void test_names_that_are_unknown_or_come_twice_are_told_where(void **state)
{
    (void)state;
    must_fail("{\"job\": {\"j\": {\"priorty\": 5, \"group\": {}}}}",
              "t:1:16: unknown argument \"priorty\" in the block \"job\"\n");
    must_fail("{\"job\": {\"j\": {\"priority\": 5,\n\"priority\": 6}}}",
              "t:2:1: the argument \"priority\" is given twice, first at line 1");
    must_fail(IN_JSON(", \"env\": {\"A\": 1, \"A\": 2}"),
              "t:1:121: the argument \"A\" is given twice");
    must_fail("{\"job\": {\"j\": {}, \"k\": {}}}", "t:1:19: a second job in one file");
    must_fail("{\"job\": {\"j\": {}}, \"jop\": {\"a\": 1}}",
              "t:1:20: unexpected argument \"jop\" outside the job");
}

static void test_mistake_within_text_is_told_at_it(void **state)
{
    (void)state;
    must_fail(IN_JSON(",\n\"user\": \"a${\""),
              "t:2:13: expected a value, found the end of the text");
    must_fail(IN_JSON(",\n\"user\": \"a${1 2}\""), "t:2:15: expected \"}\" to end the \"${\"");
    must_fail(IN_JSON(",\n\"user\": \"${var.none}\""), "t:2:");
    must_fail(IN_JSON(",\n\"user\": \"\\n\\n${var.none}\""), "t:2:");
    must_fail(IN_JSON(",\n\"user\": \"%{ if true }\""), "t:2:10: this %{ if } has no %{ endif }");
    /* The line is shown as it is in the file. */
    assert_non_null(strstr(problems.items[0], "\"user\": \"%{ if true }\"}}}"));
    must_fail("{\"variable\": {\"x\": {\"type\": \"list(\"}}, \"job\": {\"j\": {}}}", "t:1:");
    must_fail(
        "{\"variable\": {\"x\": {\"type\": \"string string\", \"default\": 1}}, \"job\": {\"j\": "
        "{}}}",
        "t:1:37: unexpected text behind an expression");
}

static void test_what_text_cannot_hold_is_refused(void **state)
{
    (void)state;
    must_fail(IN_JSON(", \"user\": \"\\u0000\""), "t: line 1, column");
    must_fail(IN_JSON(", \"user\": \"\\q\""), "t: line 1, column");
    must_fail(IN_JSON(", \"user\": \"\\u12\""), "t: line 1, column");
}

static void test_nesting_has_a_bound(void **state)
{
    static const char start[] = "{\"job\": {\"j\": {\"meta\": {\"a\": ";
    char *text = calloc(1, 4096);

    (void)state;
    memcpy(text, start, sizeof(start));
    memset(text + strlen(text), '[', 100);
    memset(text + strlen(text), ']', 100);
    memcpy(text + strlen(text), "}}}}", 5);
    must_fail(text, "t:1:");
    assert_non_null(strstr(problems.items[0], "nested more than 64 levels deep"));
    free(text);
}

static void test_job_of_the_api_is_none_of_these(void **state)
{
    json_t *job =
        must_parse("{\"job\": {\"ID\": \"j\", \"Type\": \"batch\", \"TaskGroups\": [{\"Name\": "
                   "\"g\", \"Tasks\": [{\"Name\": \"t\", \"Driver\": \"raw_exec\", "
                   "\"Config\": {\"command\": \"/bin/true\"}}]}]}}");

    (void)state;
    assert_string_equal(json_string_value(json_object_get(job, "ID")), "j");
    json_decref(job);
    /* There a member that comes twice is one too many. */
    must_fail("{\"Job\": {\"ID\": \"j\", \"ID\": \"k\"}}", "t: line 1, column");
}

/* --- what is read --- */

static void test_blocks_are_objects_or_arrays(void **state)
{
    (void)state;
    assert_same(NATIVE(""), IN_JSON(""));
    assert_same(NATIVE("resources {\ncpu = 20\n}\n"), IN_JSON(", \"resources\": {\"cpu\": 20}"));
    assert_same(NATIVE("resources {\ncpu = 20\n}\n"), IN_JSON(", \"resources\": [{\"cpu\": 20}]"));
    assert_same(NATIVE("resources {\ncpu = 20\nmemory = 30\n}\n"),
                IN_JSON(", \"resources\": [[{\"cpu\": 20}, {\"memory\": 30}]]"));
    assert_same(NATIVE(""), IN_JSON(", \"resources\": null, \"user\": null"));
    assert_same(NATIVE("artifact {\nsource = \"http://a/b\"\n}\nartifact {\nsource = "
                       "\"http://a/c\"\noptions {\na = \"b\"\n}\n}\n"),
                IN_JSON(", \"artifact\": [{\"source\": \"http://a/b\"}, {\"source\": "
                        "\"http://a/c\", \"options\": {\"a\": \"b\"}}]"));
}

#define GROUP_A "{\"task\": {\"t\": {" TASK_JSON "}}}"
#define GROUP_B "{\"count\": 2, \"task\": {\"t\": {" TASK_JSON "}}}"

static void test_labels_are_members(void **state)
{
    static const char native[] = "job \"j\" {\ngroup \"a\" {\ntask \"t\" {\n" TASK_NATIVE "}\n}\n"
                                 "group \"b\" {\ncount = 2\ntask \"t\" {\n" TASK_NATIVE "}\n}\n}\n";
    static const char *const forms[] = {
        "{\"job\": {\"j\": {\"group\": {\"a\": " GROUP_A ", \"b\": " GROUP_B "}}}}",
        "{\"job\": {\"j\": {\"group\": [{\"a\": " GROUP_A "}, {\"b\": " GROUP_B "}]}}}",
        "{\"job\": {\"j\": {\"group\": {\"a\": " GROUP_A "}, \"group\": {\"b\": " GROUP_B "}}}}",
        "{\"job\": [{\"j\": [{\"group\": {\"a\": [" GROUP_A "], \"b\": [" GROUP_B "]}}]}]}",
        "{\"//\": [1, \"${\"], \"job\": {\"j\": {\"//\": \"x\", \"group\": {\"a\": " GROUP_A
        ", \"b\": " GROUP_B "}}}}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(forms); i++)
        assert_same(native, forms[i]);
}

static void test_text_is_a_template(void **state)
{
    (void)state;
    assert_same(NATIVE("user = \"a${upper(\"b\")}c\"\n"),
                IN_JSON(", \"user\": \"a${upper(\\\"b\\\")}c\""));
    assert_same(NATIVE("resources {\ncpu = 10 + 5\n}\n"),
                IN_JSON(", \"resources\": {\"cpu\": \"${10 + 5}\"}"));
    assert_same(NATIVE("env = {\n(upper(\"a\")) = \"x\"\n\"B\" = \"$${c} %%{d}\"\n}\n"),
                IN_JSON(", \"env\": {\"${upper(\\\"a\\\")}\": \"x\", \"B\": \"$${c} %%{d}\"}"));
    /* Names of the run time are kept, wherever in the file and behind whatever escapes. */
    assert_same(NATIVE("env {\nA = \"\\n\\t\\\"${NOMAD_TASK_DIR}/${attr.kernel.name}\"\n}\n"),
                IN_JSON(", \"env\": {\"A\": \"\\n\\t\\\"${NOMAD_TASK_DIR}/${attr.kernel.name}\"}"));
    assert_same(NATIVE("env {\nA = \"\\u00e4\\U0001F600\\u20ac/\"\n}\n"),
                IN_JSON(", \"env\": {\"A\": \"\\u00e4\\ud83d\\ude00\\u20AC\\/\"}"));
}

static void test_half_of_a_character_is_the_one_for_a_broken_one(void **state)
{
    json_t *job = NULL;

    (void)state;
    /* Nothing that reads JSON here takes it, so that it comes no further. */
    assert_int_equal(parse(IN_JSON(", \"user\": \"\\ud83dx\""), &job), ERR_INVALID);
}

static void test_numbers_are_exact(void **state)
{
    (void)state;
    assert_same(NATIVE("env {\nA = 0.1\nB = -12\nC = 1.5e3\nD = true\n}\n"),
                IN_JSON(", \"env\": {\"A\": 0.1, \"B\": -12, \"C\": 1.5E+3, \"D\": true}"));
    assert_same(NATIVE("env {\nA = \"${0.1 + 0.2}\"\n}\n"),
                IN_JSON(", \"env\": {\"A\": \"${0.1 + 0.2}\"}"));
}

static void test_configuration_is_values_as_they_are(void **state)
{
    json_t *job =
        must_parse("{\"job\": {\"j\": {\"group\": {\"g\": {\"task\": {\"t\": {\"driver\": "
                   "\"docker\", \"config\": {\"image\": \"a\", \"labels\": {\"//\": \"b\"}, "
                   "\"//\": 1, \"dynamic\": \"x\", \"mounts\": [{\"type\": \"bind\"}]}}}}}}}}");
    const json_t *group = json_array_get(json_object_get(job, "TaskGroups"), 0);
    const json_t *task = json_array_get(json_object_get(group, "Tasks"), 0);
    json_t *wanted = json_loads("{\"image\": \"a\", \"labels\": {\"//\": \"b\"}, \"dynamic\": "
                                "\"x\", \"mounts\": [{\"type\": \"bind\"}]}",
                                0, NULL);

    (void)state;
    assert_true(json_equal(json_object_get(task, "Config"), wanted));
    json_decref(wanted);
    json_decref(job);
}

static void test_variables_have_types_and_their_defaults_are_no_templates(void **state)
{
    (void)state;
    assert_same("variable \"n\" {\ntype = number\n}\nvariable \"names\" {\ntype = "
                "list(string)\ndefault = []\nvalidation {\ncondition = length(var.names) == "
                "2\nerror_message = \"Two names.\"\n}\n}\nvariables {\nv = \"$${x}\"\n}\nlocals "
                "{\nm = \"${var.v}-${var.n}\"\n}\n" NATIVE("env {\nA = local.m\nB = "
                                                           "var.names[1]\n}\n"),
                "{\"variable\": {\"n\": {\"type\": \"number\"}, \"names\": {\"type\": "
                "\"list(string)\", \"default\": [], \"validation\": {\"condition\": "
                "\"${length(var.names) == 2}\", \"error_message\": \"Two names.\"}}}, "
                "\"variables\": {\"v\": \"${x}\"}, \"locals\": {\"m\": \"${var.v}-${var.n}\"}, "
                "\"job\": {\"j\": {\"group\": {\"g\": {\"task\": {\"t\": {" TASK_JSON
                ", \"env\": {\"A\": \"${local.m}\", \"B\": \"${var.names[1]}\"}}}}}}}}");
}

static void test_dynamic_blocks_are_expanded(void **state)
{
    (void)state;
    assert_same("variable \"names\" {\ntype = list(string)\n}\njob \"j\" {\ndynamic \"group\" "
                "{\nfor_each = var.names\niterator = it\nlabels = [it.value]\ncontent {\ncount = "
                "it.key + 1\ntask \"t\" {\n" TASK_NATIVE "}\n}\n}\n}\n",
                "{\"variable\": {\"names\": {\"type\": \"list(string)\"}}, \"job\": {\"j\": "
                "{\"dynamic\": {\"group\": {\"for_each\": \"${var.names}\", \"iterator\": \"it\", "
                "\"labels\": [\"${it.value}\"], \"content\": {\"count\": \"${it.key + 1}\", "
                "\"task\": {\"t\": {" TASK_JSON "}}}}}}}}");
    must_fail("{\"job\": {\"j\": {\"dynamic\": {\"grup\": {\"for_each\": [1], \"labels\": [\"a\"], "
              "\"content\": {\"count\": 1}}}}}}",
              "t:1:28: unknown block \"grup\"");
}

/* Beside full.hcl there is the same job in JSON. */
static void test_whole_file_is_the_same_job(void **state)
{
    static const char *const names[] = {"test/spec/jobs/full.hcl", "test/spec/jobs/full_hcl.json"};
    char *texts[2];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        FILE *stream = fopen(names[i], "re");

        texts[i] = calloc(1, 1 << 16);
        assert_non_null(stream);
        assert_in_range(fread(texts[i], 1, (1 << 16) - 1, stream), 1, (1 << 16) - 2);
        assert_int_equal(fclose(stream), 0);
    }
    assert_same(texts[0], texts[1]);
    free(texts[0]);
    free(texts[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_that_is_no_json_is_told_where),
        cmocka_unit_test(test_member_of_the_wrong_shape_is_told_where),
        cmocka_unit_test(test_names_that_are_unknown_or_come_twice_are_told_where),
        cmocka_unit_test(test_mistake_within_text_is_told_at_it),
        cmocka_unit_test(test_what_text_cannot_hold_is_refused),
        cmocka_unit_test(test_nesting_has_a_bound),
        cmocka_unit_test(test_job_of_the_api_is_none_of_these),
        cmocka_unit_test(test_blocks_are_objects_or_arrays),
        cmocka_unit_test(test_labels_are_members),
        cmocka_unit_test(test_text_is_a_template),
        cmocka_unit_test(test_half_of_a_character_is_the_one_for_a_broken_one),
        cmocka_unit_test(test_numbers_are_exact),
        cmocka_unit_test(test_configuration_is_values_as_they_are),
        cmocka_unit_test(test_variables_have_types_and_their_defaults_are_no_templates),
        cmocka_unit_test(test_dynamic_blocks_are_expanded),
        cmocka_unit_test(test_whole_file_is_the_same_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
