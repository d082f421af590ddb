/* What is read from the text of a policy, and what that allows. */
#include "server/acl/acl.h"

#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct acl_rights *read_policy(const char *text)
{
    struct acl_rights *rights = NULL;
    struct err err = {0};

    if (acl_read_policy(text, strlen(text), &rights, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return rights;
}

/* All of PARTS, a policy each, are refused with what stands behind it. */
static void test_nonsense_is_refused_by_name(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "at least one rule"},
        {"{}", "at least one rule"},
        {"{", "line 1"},
        {"namespace \"a\" {", "line 1"},
        {"namespace \"a\" {}", "namespace 'a' grants nothing"},
        {"namespace \"a\" { policy = \"list\" }", "there is no policy 'list'"},
        {"namespace \"a\" { policy = 5 }", "there is no policy '(no text)'"},
        {"namespace \"a_b\" { policy = \"read\" }", "namespace 'a_b': no such name can be"},
        {"namespace \"a\" { capabilities = [\"submit-jobs\"] }", "no capability 'submit-jobs'"},
        {"namespace \"a\" { capabilities = \"submit-job\" }", "must be a list"},
        {"namespace \"a\" { polcy = \"read\" }", "namespace 'a' has no key 'polcy'"},
        {"namespace = \"a\"", "namespace must be a block"},
        {"namespace \"a\" { variables { pth \"x\" {} } }", "variables has path blocks"},
        {"namespace \"a\" { variables { path \"x\" { capabilities = [\"fly\"] } } }", "'fly'"},
        {"host_volume \"a\" { policy = \"scale\" }", "there is no policy 'scale'"},
        {"agent { policy = \"list\" }", "there is no policy 'list'"},
        {"agent { capabilities = [] }", "agent has no key 'capabilities'"},
        {"agents { policy = \"read\" }", "a policy has no 'agents'"},
        {"node \"x\" { policy = \"read\" }", "node has no key 'x'"},
        {"agent { policy = file(\"/etc/passwd\") }", "line 1: nothing is computed here"},
        {"agent { policy = join(\"\", [for x in range(1024) : x]) }", "nothing is computed here"},
        {"agent { policy = true ? \"read\" : \"write\" }", "nothing is computed here"},
        {"agent { policy = \"${read}\" }", "nothing is computed here"},
        {"locals { a = range(1024) }\nagent { policy = \"read\" }", "nothing is computed here"},
        {"variable \"a\" { default = 1 }\nagent { policy = \"read\" }", "has no 'variable'"},
        {"dynamic \"agent\" {\n for_each = [1]\n content { policy = \"read\" }\n}",
         "a policy has no 'dynamic'"},
        {"{\"agent\": {\"policy\": \"read\"}, \"agent\": {\"policy\": \"write\"}}", "line 1"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct acl_rights *rights;
        struct err err = {0};

        assert_int_equal(acl_read_policy(cases[i].text, strlen(cases[i].text), &rights, &err),
                         ERR_INVALID);
        if (strstr(err.text, cases[i].why) == NULL)
            fail_msg("%s: \"%s\", and not %s", cases[i].text, err.text, cases[i].why);
    }
}

static void test_a_policy_has_a_bound(void **state)
{
    char *text = malloc(ACL_RULES_BYTES_MAX + 2);
    struct acl_rights *rights;
    struct err err = {0};
    size_t at = 0;

    (void)state;
    assert_non_null(text);
    memset(text, ' ', ACL_RULES_BYTES_MAX + 1);
    assert_int_equal(acl_read_policy(text, ACL_RULES_BYTES_MAX + 1, &rights, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "at most 65536 bytes"));
    for (int i = 0; i <= ACL_RULES_MAX; i++) {
        static const char rule[] = "namespace \"n\" { policy = \"read\" }\n";

        memcpy(text + at, rule, sizeof(rule) - 1);
        at += sizeof(rule) - 1;
    }
    assert_int_equal(acl_read_policy(text, at, &rights, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "at most 256 rules"));
    free(text);
}

static void test_reading_is_not_writing(void **state)
{
    struct acl_rights *rights = read_policy("namespace \"default\" { policy = \"read\" }\n"
                                            "node { policy = \"read\" }");

    (void)state;
    assert_true(acl_allows(rights, "default", ACL_BIT(ACL_READ_JOB)));
    assert_false(acl_allows(rights, "default", ACL_BIT(ACL_SUBMIT_JOB)));
    assert_false(acl_allows(rights, "default", ACL_BIT(ACL_READ_LOGS)));
    assert_false(acl_allows(rights, "other", ACL_BIT(ACL_READ_JOB)));
    assert_true(acl_allows(rights, "*", ACL_BIT(ACL_READ_JOB)));
    assert_false(acl_allows(rights, "*", ACL_BIT(ACL_SUBMIT_JOB)));
    assert_true(acl_allows_area(rights, ACL_NODE, ACL_READ));
    assert_false(acl_allows_area(rights, ACL_NODE, ACL_WRITE));
    assert_false(acl_allows_area(rights, ACL_AGENT, ACL_READ));
    assert_false(acl_manages(rights));
    assert_true(acl_sees_namespace(rights, "default"));
    assert_false(acl_sees_namespace(rights, "other"));
    acl_rights_free(rights);
}

static void test_writing_is_no_shell_on_the_host(void **state)
{
    struct acl_rights *rights = read_policy("namespace \"default\" { policy = \"write\" }");

    (void)state;
    assert_true(acl_allows(rights, "default", ACL_BIT(ACL_ALLOC_EXEC)));
    assert_false(acl_allows(rights, "default", ACL_BIT(ACL_ALLOC_NODE_EXEC)));
    acl_rights_free(rights);
}

static void test_a_denial_is_stronger_than_any_grant(void **state)
{
    struct acl_rights *rights =
        read_policy("namespace \"a\" { policy = \"write\" }\n"
                    "namespace \"a\" { capabilities = [\"deny\"] }\n"
                    "namespace \"a\" { policy = \"write\" }\n"
                    "host_volume \"v\" { capabilities = [\"mount-readwrite\", \"deny\"] }\n"
                    "plugin { policy = \"deny\" }\nplugin { policy = \"write\" }");

    (void)state;
    assert_false(acl_sees_namespace(rights, "a"));
    assert_false(acl_allows_volume(rights, "v", ACL_BIT(ACL_MOUNT_READWRITE)));
    assert_false(acl_allows_area(rights, ACL_PLUGIN, ACL_LIST));
    acl_rights_free(rights);
}

/* The rule that names it, then the one whose * stands for the least. */
static void test_the_closest_name_counts(void **state)
{
    struct acl_rights *rights = read_policy("namespace \"*\" { policy = \"read\" }\n"
                                            "namespace \"prod-*\" { policy = \"deny\" }\n"
                                            "namespace \"prod-web-*\" { policy = \"write\" }\n"
                                            "namespace \"prod-web-1\" { policy = \"scale\" }");

    (void)state;
    assert_true(acl_allows(rights, "dev", ACL_BIT(ACL_READ_JOB)));
    assert_false(acl_sees_namespace(rights, "prod-db"));
    assert_true(acl_allows(rights, "prod-web-2", ACL_BIT(ACL_SUBMIT_JOB)));
    assert_true(acl_allows(rights, "prod-web-1", ACL_BIT(ACL_SCALE_JOB)));
    assert_false(acl_allows(rights, "prod-web-1", ACL_BIT(ACL_SUBMIT_JOB)));
    acl_rights_free(rights);
}

static void test_json_says_the_same(void **state)
{
    struct acl_rights *rights = read_policy(
        " {\"namespace\": {\"default\": {\"capabilities\": [\"read-logs\"]}},"
        " \"host_volume\": [{\"v\": {\"policy\": \"read\"}}], \"operator\": {\"policy\": \"write\","
        " \"capabilities\": [\"snapshot-save\"]}}");

    (void)state;
    assert_true(acl_allows(rights, "default", ACL_BIT(ACL_READ_LOGS)));
    assert_false(acl_allows(rights, "default", ACL_BIT(ACL_READ_FS)));
    assert_true(acl_allows_volume(rights, "v", ACL_BIT(ACL_MOUNT_READONLY)));
    assert_false(acl_allows_volume(rights, "v", ACL_BIT(ACL_MOUNT_READWRITE)));
    assert_true(acl_allows_area(rights, ACL_OPERATOR, ACL_WRITE));
    acl_rights_free(rights);
}

static void test_what_is_not_here_grants_nothing(void **state)
{
    struct acl_rights *rights = read_policy(
        "namespace \"default\" { variables { path \"a/*\" { capabilities = [\"write\"] } } }\n"
        "node_pool \"gpu_1\" { policy = \"write\" }\nsentinel { policy = \"write\" }");

    (void)state;
    assert_false(acl_sees_namespace(rights, "default"));
    assert_false(acl_allows_area(rights, ACL_OPERATOR, ACL_READ));
    acl_rights_free(rights);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nonsense_is_refused_by_name),
        cmocka_unit_test(test_a_policy_has_a_bound),
        cmocka_unit_test(test_reading_is_not_writing),
        cmocka_unit_test(test_writing_is_no_shell_on_the_host),
        cmocka_unit_test(test_a_denial_is_stronger_than_any_grant),
        cmocka_unit_test(test_the_closest_name_counts),
        cmocka_unit_test(test_json_says_the_same),
        cmocka_unit_test(test_what_is_not_here_grants_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
