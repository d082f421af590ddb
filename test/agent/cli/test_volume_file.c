/* Files of volumes: what Nomad takes is read, and what means nothing is refused by its name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/cli/volume/volume.h"

#include <string.h>

static json_t *read_file(const char *text)
{
    static char error[HCL_ERROR_SIZE];
    json_t *volume;
    bool is_host;

    if (volume_read("v.hcl", text, strlen(text), &volume, &is_host, error) != 0)
        fail_msg("%s", error);
    return volume;
}

static void assert_reads(const char *text, const char *expected)
{
    json_t *volume = read_file(text), *wanted = json_loads(expected, 0, NULL);

    assert_non_null(wanted);
    if (!json_equal(volume, wanted)) {
        char *found = json_dumps(volume, JSON_SORT_KEYS);
        fail_msg("%s", found);
    }
    json_decref(volume);
    json_decref(wanted);
}

static void test_a_file_is_read_as_nomad_reads_it(void **state)
{
    (void)state;
    assert_reads("id = \"a\"\nname = \"b\"\ntype = \"csi\"\nplugin_id = \"p\"\n"
                 "external_id = \"x\"\nnamespace = \"n\"\ncapacity_min = \"10GiB\"\n"
                 "capacity_max = \"20G\"\nsnapshot_id = \"s\"\n"
                 "capability {\n  access_mode = \"single-node-writer\"\n"
                 "  attachment_mode = \"file-system\"\n}\n"
                 "capability {\n  access_mode = \"multi-node-reader-only\"\n"
                 "  attachment_mode = \"block-device\"\n}\n"
                 "mount_options {\n  fs_type = \"ext4\"\n  mount_flags = [\"ro\", \"noatime\"]\n}\n"
                 "topology_request {\n  preferred {\n    topology { segments { rack = \"R1\" } }\n"
                 "  }\n  required {\n    topology { segments { rack = \"R1\" } }\n"
                 "    topology { segments { rack = \"R2\", zone = \"us-east-1a\" } }\n  }\n}\n"
                 "secrets {\n  key = \"xyzzy\"\n}\nparameters {\n  iops = 100\n}\n"
                 "context = {\n  pool = \"fast\"\n}\n",
                 "{\"ID\": \"a\", \"Name\": \"b\", \"PluginID\": \"p\", \"ExternalID\": \"x\","
                 " \"Namespace\": \"n\", \"RequestedCapacityMin\": 10737418240,"
                 " \"RequestedCapacityMax\": 20000000000, \"SnapshotID\": \"s\","
                 " \"RequestedCapabilities\": [{\"AccessMode\": \"single-node-writer\","
                 " \"AttachmentMode\": \"file-system\"}, {\"AccessMode\":"
                 " \"multi-node-reader-only\", \"AttachmentMode\": \"block-device\"}],"
                 " \"MountOptions\": {\"FSType\": \"ext4\", \"MountFlags\": [\"ro\", \"noatime\"]},"
                 " \"RequestedTopologies\": {\"Preferred\": [{\"Segments\": {\"rack\": \"R1\"}}],"
                 " \"Required\": [{\"Segments\": {\"rack\": \"R1\"}}, {\"Segments\": {\"rack\":"
                 " \"R2\", \"zone\": \"us-east-1a\"}}]}, \"Secrets\": {\"key\": \"xyzzy\"},"
                 " \"Parameters\": {\"iops\": \"100\"}, \"Context\": {\"pool\": \"fast\"}}");
}

static void test_json_is_the_same_in_other_words(void **state)
{
    (void)state;
    assert_reads("{\"id\": \"a\", \"type\": \"csi\", \"capacity_min\": 4096,"
                 " \"capability\": {\"access_mode\": \"m\"}, \"secrets\": {\"k\": \"v\"}}",
                 "{\"ID\": \"a\", \"RequestedCapacityMin\": 4096, \"RequestedCapabilities\":"
                 " [{\"AccessMode\": \"m\"}], \"Secrets\": {\"k\": \"v\"}}");
}

static void test_examples_are_read(void **state)
{
    (void)state;
    json_decref(read_file(volume_example_hcl));
    json_decref(read_file(volume_example_json));
    json_decref(read_file(volume_example_host_hcl));
}

static void test_what_means_nothing_is_refused_by_its_name(void **state)
{
    static const struct {
        const char *text, *told;
    } wrong[] = {
        {"id = \"a\"", "type is missing"},
        {"type = \"nfs\"", "must be \"csi\" or \"host\""},
        {"type = \"host\"\nsecrets {\n  k = \"v\"\n}", "secrets"},
        {"type = \"csi\"\npluginid = \"p\"", "did you mean plugin_id?"},
        {"type = \"csi\"\naccess_mode = \"x\"", "is said in a capability block"},
        {"type = \"csi\"\ncapacity_min = \"much\"", "capacity_min must be a number of bytes"},
        {"type = \"csi\"\ncapability {\n  mode = \"x\"\n}", "mode is no argument of capability"},
        {"type = \"csi\"\nmount_options {\n  type = \"x\"\n}", "no argument of mount_options"},
        {"type = \"csi\"\nsecrets = \"x\"", "secrets must be a block of texts"},
        {"type = \"csi\"\ntopology_request {\n  required {\n    zone = \"a\"\n  }\n}",
         "required must hold topology blocks alone"},
        {"type = \"csi\"\nid = ", "v.hcl:2:"},
        {"{\"type\": ", "v.hcl:1:"},
    };
    static char error[HCL_ERROR_SIZE];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        json_t *volume = NULL;
        bool is_host;

        if (volume_read("v.hcl", wrong[i].text, strlen(wrong[i].text), &volume, &is_host, error) ==
                0 ||
            strstr(error, wrong[i].told) == NULL)
            fail_msg("%zu: %s", i, error);
    }
}

static void test_sizes(void **state)
{
    static const struct {
        const char *text;
        int64_t bytes; /* -1: none */
    } sizes[] = {
        {"0", 0},
        {"4096", 4096},
        {"1K", 1000},
        {"1kb", 1000},
        {"1 KiB", 1024},
        {"1.5GiB", 1610612736},
        {"2tb", 2000000000000},
        {"", -1},
        {"-1", -1},
        {"1XB", -1},
        {"GiB", -1},
        {"99999999TB", -1},
        {"1e", -1},
        {"nan", -1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        int64_t bytes = -1;

        bool read = volume_bytes(sizes[i].text, &bytes);
        if (read != (sizes[i].bytes >= 0) || bytes != sizes[i].bytes)
            fail_msg("%s: %lld", sizes[i].text, (long long)bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_file_is_read_as_nomad_reads_it),
        cmocka_unit_test(test_json_is_the_same_in_other_words),
        cmocka_unit_test(test_examples_are_read),
        cmocka_unit_test(test_what_means_nothing_is_refused_by_its_name),
        cmocka_unit_test(test_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
