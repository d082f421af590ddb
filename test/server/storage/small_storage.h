/* A storage plugin "hp" in a small life, volumes of it, and jobs that have them. */
#ifndef CAIRN_TEST_SERVER_STORAGE_SMALL_STORAGE_H
#define CAIRN_TEST_SERVER_STORAGE_SMALL_STORAGE_H

#include "test/server/small_life.h"

/* --- plugins and volumes --- */

static const char plugin_id[] = "00000000-0000-4000-8000-00000000beef/plugin";

/* An instance of plugin "hp" comes; a node plugin unless TYPE says otherwise. */
static inline void start_plugin(struct small_life *small, enum plugin_type type)
{
    struct plugin_define define = {.type = (uint8_t)type, .plugin = "hp"};
    struct machine_id id = machine_id_make(MACHINE_PLUGIN, plugin_id);

    (void)text_copy(small->identity.node, sizeof(small->identity.node), "n1");
    (void)text_copy(small->identity.version, sizeof(small->identity.version), "1.2");
    core_tell(life_core(small->life), &id, PE_DEFINE, &define);
    small_settle(small);
}

static inline void end_plugin(struct small_life *small)
{
    struct machine_id id = machine_id_make(MACHINE_PLUGIN, plugin_id);

    core_tell(life_core(small->life), &id, PE_REMOVE, NULL);
    small_settle(small);
}

struct heard {
    int count, code;
    char text[ERR_TEXT_SIZE];
};

static inline void hear(void *ctx, int code, const struct err *err, const json_t *answer)
{
    struct heard *heard = ctx;

    (void)answer;
    heard->count++;
    heard->code = code;
    if (err != NULL)
        (void)text_copy(heard->text, sizeof(heard->text), err->text);
}

static inline json_t *volume_json(const char *id, const char *access)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:[{s:s, s:s}], s:{s:s}, s:{s:s, s:[s]}}", "ID", id,
                     "Name", id, "ExternalID", "ext-1", "PluginID", "hp", "RequestedCapabilities",
                     "AccessMode", access, "AttachmentMode", "file-system", "Secrets", "key",
                     "hunter2", "MountOptions", "FSType", "ext4", "MountFlags", "password=sesame");
}

static inline struct heard register_volume(struct small_life *small, const char *id,
                                           const char *access)
{
    struct heard heard = {0};
    json_t *json = volume_json(id, access);

    storage_register_volume(alone_storage(small->alone), "default", json, hear, &heard);
    json_decref(json);
    small_settle(small);
    assert_int_equal(heard.count, 1);
    return heard;
}

static inline struct heard deregister(struct small_life *small, const char *id, bool force)
{
    struct heard heard = {0};

    storage_deregister_volume(alone_storage(small->alone), "default", id, force, hear, &heard);
    small_settle(small);
    assert_int_equal(heard.count, 1);
    return heard;
}

/* --- jobs --- */

/* A service of COUNT allocs that have SOURCE. */
static inline struct alone_evaluation run(struct small_life *small, const char *name, int count,
                                          const char *source, const char *access, bool read_only,
                                          bool per_alloc)
{
    struct alone_evaluation evaluation;
    struct err err = {0};
    json_t *job =
        json_pack("{s:s, s:s, s:[s], s:[{s:s, s:i, s:{s:{s:s, s:s, s:b, s:b, s:s, s:s}},"
                  " s:[{s:s, s:s, s:{s:s}, s:[{s:s, s:s}]}]}]}",
                  "ID", name, "Type", "service", "Datacenters", "dc1", "TaskGroups", "Name", "g",
                  "Count", count, "Volumes", "v", "Type", "csi", "Source", source, "ReadOnly",
                  read_only, "PerAlloc", per_alloc, "AccessMode", access, "AttachmentMode",
                  "file-system", "Tasks", "Name", "t", "Driver", "raw_exec", "Config", "command",
                  "/bin/a", "VolumeMounts", "Volume", "v", "Destination", "/srv");

    assert_non_null(job);
    if (alone_register(small->alone, job, &evaluation, NULL, &err) < 0)
        fail_msg("%s", err.text);
    json_decref(job);
    small_settle(small);
    return evaluation;
}

static inline void stop(struct small_life *small, const char *name)
{
    struct alone_evaluation evaluation;
    struct err err = {0};

    assert_int_equal(alone_deregister(small->alone, "default", name, 0, &evaluation, &err), 0);
    small_settle(small);
}

static inline void assert_waits(struct small_life *small, const char *job,
                                const struct alone_evaluation *evaluation, const char *what)
{
    const struct alone_evaluation *blocked = alone_evaluation(small->alone, evaluation->blocked_id);

    assert_true(alone_queued(small_find(small, job), 0) > 0);
    assert_non_null(blocked);
    const json_t *failed = json_array_get(blocked->failed, 0);
    assert_string_equal(json_string_value(json_object_get(failed, "Why")), "constraint");
    assert_string_equal(json_string_value(json_object_get(failed, "What")), what);
}

static inline struct storage_claims claims_of(struct small_life *small, const char *id)
{
    const struct storage_volume *volume =
        storage_find_volume(alone_storage(small->alone), "default", id);

    assert_non_null(volume);
    return storage_claims_of(alone_storage(small->alone), volume);
}

#endif
