/* Volumes of job files: what is kept of them, what one alloc is to have, what is no place. */
#include "spec/job.h"
#include "spec/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ALLOC_ID "0f3a3e5c-5f31-4a52-9f0e-0123456789ab"

static struct jobspec_problems problems;

static json_t *parse(const char *text)
{
    struct jobspec_source source = {.name = "v.hcl", .text = text, .length = strlen(text)};
    json_t *job = NULL;

    if (jobspec_parse(&source, &job, &problems) != 0)
        fail_msg("%s", problems.items[0]);
    return job;
}

static json_t *read_file(const char *path)
{
    char text[4096];
    FILE *stream = fopen(path, "re");

    assert_non_null(stream);
    text[fread(text, 1, sizeof(text) - 1, stream)] = '\0';
    assert_int_equal(fclose(stream), 0);
    return parse(text);
}

static json_t *read_job(void)
{
    return read_file("test/spec/jobs/volumes.hcl");
}

static char *alloc_text(uint32_t index, size_t *ret_length, struct alloc_spec **ret_spec)
{
    json_t *job = read_job();
    struct jobspec_placement placement = {
        .group = "g", .index = index, .alloc_id = ALLOC_ID, .eval_id = "", .datacenter = "dc1"};
    struct err err;
    char *text;

    if (jobspec_make_alloc(job, &placement, &text, ret_length, ret_spec, &err) != 0)
        fail_msg("%s", err.text);
    json_decref(job);
    return text;
}

static void check_json(const json_t *value, const char *wanted)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS);

    assert_non_null(text);
    assert_string_equal(text, wanted);
    free(text);
}

static void test_volumes_of_a_file_are_nomads(void **state)
{
    json_t *job = read_job();
    const json_t *group = jobspec_group(job, "g");
    const json_t *task = json_array_get(json_object_get(group, "Tasks"), 0);
    char *warnings = jobspec_warnings(job);

    (void)state;
    check_json(json_object_get(json_object_get(group, "Volumes"), "data"),
               "{\"AccessMode\":\"\",\"AttachmentMode\":\"\",\"Name\":\"data\",\"PerAlloc\":true,"
               "\"ReadOnly\":false,\"Source\":\"database\",\"Type\":\"host\"}");
    check_json(json_array_get(json_object_get(task, "VolumeMounts"), 0),
               "{\"Destination\":\"/var/lib/data\",\"PropagationMode\":\"private\","
               "\"ReadOnly\":false,\"SELinuxLabel\":\"\",\"Volume\":\"data\"}");
    assert_non_null(strstr(warnings, "selinux_label is kept"));
    assert_null(strstr(warnings, "access_mode")); /* a volume that a plugin makes has such */
    assert_null(strstr(warnings, "sticky"));
    free(warnings);
    json_t *data = json_object_get(json_object_get(group, "Volumes"), "data");
    assert_int_equal(json_object_set_new(data, "Type", json_string("csi")), 0);
    assert_int_equal(json_object_set_new(data, "Sticky", json_true()), 0);
    warnings = jobspec_warnings(job);
    assert_non_null(strstr(warnings,
                           "volume \"data\": sticky is kept and not acted on: a volume of "
                           "a storage plugin is found by its id"));
    free(warnings);
    json_decref(job);
}

static void test_alloc_has_the_volumes_of_its_index(void **state)
{
    struct alloc_spec *made = NULL, *decoded = NULL;
    struct err err;
    size_t length;
    char *text = alloc_text(1, &length, &made);

    (void)state;
    assert_int_equal(jobspec_decode_alloc(text, length, &decoded, &err), 0);
    for (int i = 0; i < 2; i++) {
        const struct alloc_spec *spec = i == 0 ? made : decoded;
        const struct task_spec *task = &spec->tasks[0];

        assert_int_equal(spec->volumes_count, 2);
        for (size_t v = 0; v < 2; v++) {
            bool is_data = text_equal(spec->volumes[v].name, "data");

            assert_string_equal(spec->volumes[v].source, is_data ? "database[1]" : "certificates");
            assert_int_equal(spec->volumes[v].read_only, !is_data);
        }
        assert_int_equal(task->volume_mounts_count, 2);
        assert_string_equal(task->volume_mounts[0].volume, "data");
        assert_string_equal(task->volume_mounts[0].destination, "/var/lib/data");
        assert_false(task->volume_mounts[0].read_only);
        assert_int_equal(task->volume_mounts[0].propagation, PROPAGATION_PRIVATE);
        assert_string_equal(task->volume_mounts[1].destination, "${NOMAD_TASK_DIR}/certs");
        assert_true(task->volume_mounts[1].read_only);
        assert_int_equal(task->volume_mounts[1].propagation, PROPAGATION_HOST_TO_TASK);
    }
    alloc_spec_free(made);
    alloc_spec_free(decoded);
    free(text);
}

static void test_alloc_whose_volumes_are_damaged_is_refused(void **state)
{
    static const struct {
        const char *from, *to;
    } changes[] = {
        {"\"Source\":\"database\"", "\"Source\":\"\""},
        {"\"Source\":\"database\"", "\"Source\":\"../etc\""},
        {"\"Source\":\"database\"", "\"Source\":7"},
        {"\"Type\":\"host\"", "\"Type\":\"csi\""},
        {"\"Volumes\":{", "\"Volumes\":[],\"Other\":{"},
        {"\"Destination\":\"/var/lib/data\"", "\"Destination\":7"},
        {"\"Volume\":\"data\"", "\"Volume\":\"\""},
        {"\"PropagationMode\":\"private\"", "\"PropagationMode\":\"public\""},
        {"\"VolumeMounts\":[", "\"VolumeMounts\":{},\"Other\":["},
    };
    struct alloc_spec *spec;
    struct err err;
    size_t length;
    char *text = alloc_text(0, &length, &spec);

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

static void test_places_in_a_root_are_plain_and_none_that_a_task_is_promised(void **state)
{
    static const struct {
        const char *text, *place; /* NULL: it is none */
    } rows[] = {
        {"/srv", "/srv"},
        {"srv/data", "/srv/data"}, /* a root is where a relative path begins, as for runc */
        {"//srv/./data//", "/srv/data"},
        {"/local/data", "/local/data"},
        {"/alloc/data/x", "/alloc/data/x"},
        {"/dev/shm", "/dev/shm"},
        {"/process", "/process"},
        {"/tmp", "/tmp"},
        {"/a..b/...", "/a..b/..."},
        {"", NULL},
        {"/", NULL},
        {"./", NULL},
        {"/alloc", NULL},
        {"alloc/", NULL},
        {"/alloc/logs", NULL},
        {"/local", NULL},
        {"/secrets/", NULL},
        {"/dev", NULL},
        {"/proc", NULL},
        {"/proc/self/x", NULL},
        {"/sys/fs", NULL},
        {"/srv/..", NULL},
        {"..", NULL},
        {"/srv/../../etc", NULL},
    };
    char place[SPEC_PLACE_SIZE], longest[SPEC_PLACE_SIZE + 1] = "/";

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *fault = spec_place(rows[i].text, place);

        if ((fault == NULL) != (rows[i].place != NULL))
            fail_msg("%s: %s", rows[i].text, fault == NULL ? place : fault);
        if (fault == NULL)
            assert_string_equal(place, rows[i].place);
    }
    memset(longest + 1, 'a', SPEC_PLACE_SIZE - 2);
    assert_null(spec_place(longest, place));
    assert_string_equal(place, longest);
    longest[SPEC_PLACE_SIZE - 1] = 'a';
    assert_non_null(spec_place(longest, place));
}

/* The first Object of DIFF's one group, or of that group's one task. */
static const json_t *object_of(const json_t *diff, bool of_task)
{
    const json_t *group = json_array_get(json_object_get(diff, "TaskGroups"), 0);
    const json_t *task = json_array_get(json_object_get(group, "Tasks"), 0);

    return json_array_get(json_object_get(of_task ? task : group, "Objects"), 0);
}

static void check_diff(const json_t *object, const char *type, const char *name)
{
    assert_string_equal(json_string_value(json_object_get(object, "Type")), type);
    assert_string_equal(json_string_value(json_object_get(object, "Name")), name);
}

static void test_changed_volumes_replace_allocs_and_are_told(void **state)
{
    json_t *before = read_job(), *after = read_job();
    json_t *group = (json_t *)(uintptr_t)jobspec_group(after, "g");
    json_t *volume = json_object_get(json_object_get(group, "Volumes"), "data");
    json_t *mounts =
        json_object_get(json_array_get(json_object_get(group, "Tasks"), 0), "VolumeMounts");

    (void)state;
    assert_true(jobspec_group_equal(before, after, "g"));
    json_t *was = jobspec_essence(before, "g");
    assert_int_equal(json_object_del(volume, "AccessMode"), 0); /* as an older version stored it */
    json_t *is = jobspec_essence(after, "g");
    assert_true(json_equal(was, is));
    json_decref(was);
    json_decref(is);
    assert_int_equal(json_object_set_new(volume, "AccessMode", json_string("")), 0);
    assert_int_equal(json_object_set_new(volume, "Source", json_string("other")), 0);
    assert_false(jobspec_group_equal(before, after, "g"));
    json_t *diff = jobspec_diff(before, after);
    check_diff(object_of(diff, false), "Edited", "Volume");
    assert_null(object_of(diff, true));
    json_decref(diff);

    assert_int_equal(json_object_set_new(volume, "Source", json_string("database")), 0);
    assert_int_equal(json_array_remove(mounts, 1), 0);
    assert_false(jobspec_group_equal(before, after, "g"));
    diff = jobspec_diff(before, after);
    assert_null(object_of(diff, false));
    check_diff(object_of(diff, true), "Deleted", "VolumeMount");
    json_decref(diff);
    json_decref(before);
    json_decref(after);
}

/* An alloc of claims.hcl, whose volumes are of these plugins; returns the code. */
static int claim(const char *data, const char *disk, struct alloc_spec **ret_spec, struct err *err)
{
    json_t *job = read_file("test/spec/jobs/claims.hcl");
    struct spec_pair plugins[] = {{"data", data}, {"disk", disk}};
    struct jobspec_placement placement = {.group = "g",
                                          .index = 1,
                                          .alloc_id = ALLOC_ID,
                                          .eval_id = "",
                                          .datacenter = "dc1",
                                          .plugins = {plugins, disk == NULL ? 1 : 2}};
    char *warnings = jobspec_warnings(job), *text;
    size_t length;

    assert_string_equal(warnings, ""); /* all of it is acted on */
    free(warnings);
    int code = jobspec_make_alloc(job, &placement, &text, &length, ret_spec, err);
    if (code == 0)
        free(text);
    json_decref(job);
    return code;
}

static void test_alloc_has_the_volumes_of_plugins(void **state)
{
    struct alloc_spec *spec;
    struct err err;

    (void)state;
    assert_int_equal(claim("ebs", "nfs", &spec, &err), 0);
    assert_int_equal(spec->volumes_count, 2);
    const struct spec_volume *data = &spec->volumes[0], *disk = &spec->volumes[1];
    if (!text_equal(data->name, "data")) {
        data = disk;
        disk = &spec->volumes[0];
    }
    assert_int_equal(data->type, VOLUME_CSI);
    assert_string_equal(data->source, "database[1]");
    assert_string_equal(data->plugin, "ebs");
    assert_int_equal(data->access, CSI_SINGLE_NODE_WRITER);
    assert_int_equal(data->attachment, CSI_FILE_SYSTEM);
    assert_string_equal(data->fs_type, "ext4");
    assert_true(data->has_mount_flags);
    assert_int_equal(data->mount_flags.count, 2);
    assert_string_equal(data->mount_flags.items[1], "discard");
    assert_false(data->read_only);
    assert_string_equal(disk->source, "disk");
    assert_string_equal(disk->plugin, "nfs");
    assert_int_equal(disk->access, CSI_MULTI_NODE_READER);
    assert_int_equal(disk->attachment, CSI_BLOCK_DEVICE);
    assert_string_equal(disk->fs_type, "");
    assert_false(disk->has_mount_flags);
    assert_true(disk->read_only);
    alloc_spec_free(spec);
}

static void test_claim_without_a_plugin_is_damaged(void **state)
{
    static const char *const plugins[] = {NULL, "", "a/b"};
    struct alloc_spec *spec;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(plugins); i++) {
        struct err err = {0};

        assert_int_equal(claim("ebs", plugins[i], &spec, &err), ERR_CORRUPT);
        assert_non_null(strstr(err.text, "VolumePlugins"));
    }
}

static void test_numbers_of_volumes_and_mounts_have_bounds(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        json_t *volumes = json_object(), *mounts = json_array(), *job = NULL;

        for (int i = 0; i < SPEC_VOLUMES_MAX + more; i++) {
            char name[16];

            (void)snprintf(name, sizeof(name), "v%d", i);
            json_object_set_new(volumes, name,
                                json_pack("{s:s, s:s}", "Type", "host", "Source", "s"));
        }
        for (int i = 0; i < SPEC_MOUNTS_MAX + more; i++)
            json_array_append_new(mounts, json_pack("{s:s, s:o}", "Volume", "v1", "Destination",
                                                    json_sprintf("/srv/%d", i)));
        json_t *raw = json_pack("{s:s, s:[{s:s, s:o, s:[{s:s, s:s, s:o}]}]}", "ID", "j",
                                "TaskGroups", "Name", "g", "Volumes", volumes, "Tasks", "Name", "t",
                                "Driver", "exec", "VolumeMounts", mounts);
        assert_non_null(raw);
        int code = jobspec_from_json("job", raw, &job, &problems);
        assert_int_equal(code, more == 0 ? 0 : ERR_INVALID);
        if (more == 1) {
            assert_int_equal(problems.count, 2);
            assert_non_null(strstr(problems.items[0], "33 volumes, there may be 32"));
            assert_non_null(strstr(problems.items[1], "65 volume_mounts, there may be 64"));
        }
        json_decref(raw);
        json_decref(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_volumes_of_a_file_are_nomads),
        cmocka_unit_test(test_alloc_has_the_volumes_of_its_index),
        cmocka_unit_test(test_alloc_whose_volumes_are_damaged_is_refused),
        cmocka_unit_test(test_places_in_a_root_are_plain_and_none_that_a_task_is_promised),
        cmocka_unit_test(test_changed_volumes_replace_allocs_and_are_told),
        cmocka_unit_test(test_alloc_has_the_volumes_of_plugins),
        cmocka_unit_test(test_claim_without_a_plugin_is_damaged),
        cmocka_unit_test(test_numbers_of_volumes_and_mounts_have_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
