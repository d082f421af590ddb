/*
 * Constraints: each operator, what it wants of versions and regular expressions, and which are
 * refused.  The rows are of nomad v1.1.2 scheduler/feasible_test.go, hashicorp/go-version v1.9.0
 * and what Go's regexp says.
 */
#include "spec/constraint.h"
#include "spec/regex.h"
#include "spec/version.h"

#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct spec_pair attribute_items[] = {
    {"kernel.name", "linux"}, {"kernel.version", "4.9.0-rc2"}, {"cores", "16"}, {"empty", ""}};
static struct spec_pair meta_items[] = {{"rack", "r1"}, {"tags", "ssd, gpu,10g"}};
static const struct spec_pairs attributes = {attribute_items, COUNT_OF(attribute_items)};
static const struct spec_pairs meta = {meta_items, COUNT_OF(meta_items)};
static const struct constraint_node node = {.id = "0b1c",
                                            .name = "node-1",
                                            .datacenter = "dc1",
                                            .class = "large",
                                            .pool = "stones",
                                            .attributes = &attributes,
                                            .meta = &meta};

static json_t *constraint(const char *target, const char *operand, const char *value)
{
    json_t *made =
        json_pack("{s:s, s:s, s:s}", "LTarget", target, "Operand", operand, "RTarget", value);

    assert_non_null(made);
    return made;
}

struct row {
    const char *target, *operand, *value;
    bool holds;
};

static void check_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        json_t *made = constraint(rows[i].target, rows[i].operand, rows[i].value);

        if (constraint_holds(&node, made) != rows[i].holds)
            fail_msg("%s %s %s", rows[i].target, rows[i].operand, rows[i].value);
        json_decref(made);
    }
}

static void test_targets_are_what_the_node_is(void **state)
{
    static const struct row rows[] = {
        {"${node.unique.id}", "=", "0b1c", true},
        {"${node.unique.name}", "is", "node-1", true},
        {"${node.datacenter}", "==", "dc1", true},
        {"${node.class}", "=", "large", true},
        {"${node.pool}", "=", "stones", true},
        {"${node.pool}", "=", "default", false},
        {"${attr.kernel.name}", "=", "linux", true},
        {"${attr.kernel.name}", "=", "windows", false},
        {"${attr.kernel.nam}", "=", "linux", false},
        {"${meta.rack}", "=", "r1", true},
        {"r1", "=", "${meta.rack}", true},
        {"${meta.rack}", "!=", "r2", true},
        {"${meta.rack}", "not", "r1", false},
        {"${meta.none}", "!=", "r1", true},
        {"${meta.none}", "!=", "${attr.none}", false},
        {"${meta.none}", "=", "${attr.none}", false},
        {"${meta.none}", "is_set", "", false},
        {"${meta.rack}", "is_set", "", true},
        {"${attr.empty}", "is_set", "", true},
        {"${meta.none}", "is_not_set", "", true},
        {"${meta.rack}", "is_not_set", "", false},
        {"${meta.rack}", "of another version", "r1", false},
    };
    (void)state;

    check_rows(rows, COUNT_OF(rows));
}

static void test_numbers_are_in_the_order_of_numbers_and_others_in_that_of_text(void **state)
{
    static const struct row rows[] = {
        {"${attr.cores}", ">", "8", true},
        {"${attr.cores}", "<", "8", false},
        {"${attr.cores}", ">=", "16", true},
        {"${attr.cores}", "<=", "16.0", true},
        {"${attr.cores}", "<", "1e2", true},
        {"${attr.cores}", ">", "a", false},
        {"9223372036854775806", "<", "9223372036854775807", true},
        {"abc", "<", "abd", true},
        {"abc", ">=", "abc", true},
        {"10", "<", " 9", false},
        {"nan", "<", "1", false},
        {"nan", ">=", "1", false},
        {"0x10", ">", "2", false},
        {"${meta.none}", "<", "z", false},
    };
    (void)state;

    check_rows(rows, COUNT_OF(rows));
}

static void test_sets_contain_members_without_their_blanks(void **state)
{
    static const struct row rows[] = {
        {"${meta.tags}", "set_contains", "gpu,ssd", true},
        {"${meta.tags}", "set_contains", " 10g ", true},
        {"${meta.tags}", "set_contains_all", "gpu,hdd", false},
        {"${meta.tags}", "set_contains_any", "gpu,hdd", true},
        {"${meta.tags}", "set_contains_any", "hdd,gp", false},
        {"${meta.none}", "set_contains_any", "gpu", false},
    };
    (void)state;

    check_rows(rows, COUNT_OF(rows));
}

static void test_versions_are_compared_as_go_version_compares_them(void **state)
{
    static const struct row rows[] = {
        {"1.2.3", "version", "~> 1.0", true},
        {"1.2.3", "version", ">= 1.0, < 1.4", true},
        {"2.0.1", "version", "~> 1.0", false},
        {"1.4", "version", ">= 1.0, < 1.4", false},
        {"1.0.7", "version", "~> 1.0.3", true},
        {"1.1.0", "version", "~> 1.0.3", false},
        {"v1.2", "version", "= 1.2.0", true},
        {"1.2.0.0", "version", "1.2", true},
        {"1.7.0-beta", "version", ">= 1.6", false},
        {"1.7.0-beta", "semver", ">= 1.6", true},
        {"1.7.0-beta", "semver", ">= 1.7", false},
        {"1.7.0-beta.2", "version", ">= 1.7.0-beta.1", true},
        {"1.7.0-beta.10", "version", "> 1.7.0-beta.9", true},
        {"1.7.0-beta.x", "version", "> 1.7.0-beta.9", true},
        {"1.7.0", "version", "> 1.7.0-rc1", true},
        {"1.7.0-rc1", "version", "~> 1.7.0-beta", true},
        {"1.7.0", "version", "~> 1.7.0-beta", false},
        {"1.7.0+a", "version", "1.7.0+b", true},
        {"${attr.kernel.version}", "version", "> 3.19", false},
        {"${attr.kernel.version}", "semver", "> 3.19", true},
        {"12.", "version", "> 1", false},
        {"twelve", "version", "> 1", false},
        {"12", "version", "> 1,", false},
        {"12 ", "semver", "> 1", false},
        {"99999999999999999999", "version", "> 1", false},
    };
    (void)state;

    check_rows(rows, COUNT_OF(rows));
}

static void test_regular_expressions_are_those_of_go(void **state)
{
    static const struct row rows[] = {
        {"${attr.kernel.name}", "regexp", "^l.*x$", true},
        {"${attr.kernel.name}", "regexp", "(?i)LINUX", true},
        {"${attr.kernel.name}", "regexp", "^inux", false},
        {"linux\n", "regexp", "x$", false},
        {"${meta.none}", "regexp", ".*", false},
        {"éa", "regexp", "^.\\pL$", true},
        {"a.b", "regexp", "^\\Qa.b\\E$", true},
    };
    static const char *const foreign[] = {
        "(a)\\1", "(?=a)",   "(?!a)",   "(?<=a)", "(?<!a)", "(?>a)", "(?|a)",    "(?#a)",   "(?1)",
        "a++",    "a**",     "a{2}{3}", "\\K",    "\\R",    "\\h",   "(*UTF8)a", "a{1001}", "\\",
        "\\C",    "[[.a.]]", "(",       "a)",     "[z-a]",  "(?x)a", "[\\b]",    "*a"};
    (void)state;

    check_rows(rows, COUNT_OF(rows));
    for (size_t i = 0; i < COUNT_OF(foreign); i++) {
        struct err err = {0};
        struct regex *regex = regex_new(foreign[i], strlen(foreign[i]), &err);

        if (regex != NULL || err.code != ERR_INVALID || err.text[0] == '\0')
            fail_msg("%s is taken", foreign[i]);
    }
}

static void test_matches_are_bounded(void **state)
{
    static const char pattern[] = "^(a|aa)*[bc]$";
    struct regex_span spans[REGEX_GROUPS_MAX + 1];
    struct regex *regex = regex_new(pattern, strlen(pattern), NULL);
    char text[1000];
    (void)state;

    assert_non_null(regex);
    memset(text, 'a', sizeof(text));
    assert_int_equal(regex_find(regex, text, sizeof(text), 0, spans, NULL), ERR_LIMIT);
    assert_true(regex_steps(regex) >= REGEX_STEPS_MAX / 2);
    text[3] = 'b';
    assert_int_equal(regex_find(regex, text, 4, 0, spans, NULL), 1);
    assert_int_equal(spans[0].end, 4);
    assert_int_equal(regex_find(regex, "\xff", 1, 0, spans, NULL), ERR_INVALID);
    regex_free(regex);
}

static void test_what_makes_no_sense_is_refused(void **state)
{
    static const struct {
        const char *target, *operand, *value;
        bool in_task;
        const char *fault; /* NULL: it is fine */
    } rows[] = {
        {"${attr.a}", "=", "x", true, NULL},
        {"literal", "=", "x", false, NULL},
        {"", "distinct_hosts", "", false, NULL},
        {"${meta.rack}", "distinct_property", "", false, NULL},
        {"${meta.rack}", "distinct_property", "3", false, NULL},
        {"${meta.rack}", "is_set", "", false, NULL},
        {"", "=", "x", false, "needs an attribute"},
        {"${attr.a}", "=", "", false, "= needs a value"},
        {"${attr.a}", "set_contains", "", false, "set_contains needs a value"},
        {"$attr.a", "=", "x", false, "is written ${...}"},
        {"${attr.a", "=", "x", false, "is written ${...}"},
        {"${node.region}", "=", "x", false, "cannot name \"${node.region}\""},
        {"${attr.a}", "~", "x", false, "there is no operator \"~\""},
        {"${attr.a}", "regexp", "(", false, "no regular expression"},
        {"${attr.a}", "version", ">= x", false, "malformed constraint"},
        {"${attr.a}", "semver", "~> 1.0", false, "malformed constraint"},
        {"${attr.a}", "version", "", false, "malformed constraint"},
        {"${meta.rack}", "distinct_property", "0", false, "1 or more"},
        {"${meta.rack}", "distinct_property", "x", false, "1 or more"},
        {"${meta.rack}", "is_not_set", "x", false, "takes no value"},
        {"", "distinct_hosts", "", true, "belongs to a job or a group"},
        {"${meta.rack}", "distinct_property", "", true, "belongs to a job or a group"},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        json_t *made = constraint(rows[i].target, rows[i].operand, rows[i].value);
        struct err err = {0};
        int code = constraint_check(made, rows[i].in_task, &err);

        if (rows[i].fault == NULL ? code != 0 : strstr(err.text, rows[i].fault) == NULL)
            fail_msg("%s %s %s: %d %s", rows[i].target, rows[i].operand, rows[i].value, code,
                     err.text);
        json_decref(made);
    }
}

static void test_the_first_that_is_not_fulfilled_is_named(void **state)
{
    json_t *task = json_pack("{s:[o]}", "Constraints", constraint("${meta.rack}", "=", "r3"));
    json_t *group = json_pack("{s:[o], s:[o]}", "Constraints",
                              constraint("${meta.rack}", "is_set", ""), "Tasks", task);
    json_t *job = json_pack("{s:[o]}", "Constraints", constraint("${meta.none}", "is_set", ""));
    json_t *unmet = constraint_unmet(&node, job, group);
    (void)state;

    assert_string_equal(json_string_value(unmet), "${meta.none} is_set ");
    json_decref(unmet);
    check(json_array_clear(json_object_get(job, "Constraints")) == 0);
    unmet = constraint_unmet(&node, job, group);
    assert_string_equal(json_string_value(unmet), "${meta.rack} = r3");
    json_decref(unmet);
    check(json_array_clear(json_object_get(task, "Constraints")) == 0);
    assert_null(constraint_unmet(&node, job, group));
    json_decref(job);
    json_decref(group);
}

static void test_a_bridge_needs_its_plugins(void **state)
{
    struct spec_pair items[] = {{"plugins.cni.version.bridge", "v1.1.1"},
                                {"plugins.cni.version.firewall", "1.0.0"},
                                {"plugins.cni.version.host-local", "0.4.0"},
                                {"plugins.cni.version.loopback", "v1.3.0-rc1"},
                                {"plugins.cni.version.portmap", "0.3.1"}};
    struct spec_pairs versions = {items, COUNT_OF(items)};
    struct constraint_node here = node;
    json_t *job = json_object(), *group = json_pack("{s:[{s:s}]}", "Networks", "Mode", "bridge");
    json_t *unmet = constraint_unmet(&node, job, group);

    (void)state;
    here.attributes = &versions;
    assert_string_equal(json_string_value(unmet),
                        "${attr.plugins.cni.version.bridge} semver >= 0.4.0");
    json_decref(unmet);
    unmet = constraint_unmet(&here, job, group);
    assert_string_equal(json_string_value(unmet),
                        "${attr.plugins.cni.version.portmap} semver >= 0.4.0");
    json_decref(unmet);
    items[4].value = "v1.1.1";
    assert_null(constraint_unmet(&here, job, group));
    json_decref(group);
    group = json_pack("{s:[{s:s}]}", "Networks", "Mode", "none");
    assert_null(constraint_unmet(&node, job, group));
    json_decref(group);
    json_decref(job);
    assert_true(constraint_is_version("v1.1.1"));
    assert_true(constraint_is_version("1.0.0-rc1"));
    assert_false(constraint_is_version("unknown"));
    assert_false(constraint_is_version("0.4.0,"));
}

static void check_crowded(const char *target, const char *operand, const char *value, size_t count,
                          const char *why)
{
    json_t *list = json_pack("[o]", constraint(target, operand, value));
    json_t *crowded = constraint_crowded(&node, list, count);

    assert_int_equal(count >= constraint_room(&node, list), why != NULL);
    if (!text_equal(why == NULL ? "" : why, crowded == NULL ? "" : json_string_value(crowded)))
        fail_msg("%s %s %zu: %s", operand, value, count, json_string_value(crowded));
    json_decref(crowded);
    json_decref(list);
}

static void test_distinct_ones_count_the_others(void **state)
{
    (void)state;
    check_crowded("", "distinct_hosts", "", 0, NULL);
    check_crowded("", "distinct_hosts", "", 1, "distinct_hosts");
    check_crowded("", "distinct_hosts", "false", 1, NULL);
    check_crowded("${meta.rack}", "distinct_property", "", 0, NULL);
    check_crowded("${meta.rack}", "distinct_property", "", 1,
                  "distinct_property: ${meta.rack}=r1 used by 1 allocs");
    check_crowded("${meta.rack}", "distinct_property", "3", 2, NULL);
    check_crowded("${meta.rack}", "distinct_property", "3", 3,
                  "distinct_property: ${meta.rack}=r1 used by 3 allocs");
    check_crowded("${meta.none}", "distinct_property", "", 0, "missing property \"${meta.none}\"");
    check_crowded("${meta.rack}", "=", "r1", 9, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_targets_are_what_the_node_is),
        cmocka_unit_test(test_numbers_are_in_the_order_of_numbers_and_others_in_that_of_text),
        cmocka_unit_test(test_sets_contain_members_without_their_blanks),
        cmocka_unit_test(test_versions_are_compared_as_go_version_compares_them),
        cmocka_unit_test(test_regular_expressions_are_those_of_go),
        cmocka_unit_test(test_matches_are_bounded),
        cmocka_unit_test(test_what_makes_no_sense_is_refused),
        cmocka_unit_test(test_the_first_that_is_not_fulfilled_is_named),
        cmocka_unit_test(test_a_bridge_needs_its_plugins),
        cmocka_unit_test(test_distinct_ones_count_the_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
