/*
 * Devices: which alloc has which, and what the next ones are given.
 *
 * Other than room an alloc has its devices until it has ended, and not until it is told to: what
 * comes in its place waits.  That nobody gets one twice is asked of what is stored, when the first
 * job asks for devices, and of what was placed since.
 */
#include "server/alone/part.h"

#include "spec/job.h"

#include <string.h>

/* --- who has which --- */

static json_t *given_by(const struct alloc_spec *spec)
{
    json_t *all = json_array();

    for (size_t t = 0; t < spec->tasks_count; t++) {
        const char *text = spec->tasks[t].devices_json;
        json_t *given = text == NULL ? NULL : json_loads(text, 0, NULL);

        if (given != NULL)
            check(json_array_extend(all, given) == 0);
        json_decref(given);
    }
    return all;
}

void grants_keep(struct alone *alone, const struct alloc_spec *spec)
{
    json_t *given = given_by(spec);

    if (json_array_size(given) > 0)
        check(json_object_set(alone->granted, spec->id, given) == 0);
    json_decref(given);
}

void grants_release(struct alone *alone, const char *alloc)
{
    if (json_object_del(alone->granted, alloc) == 0)
        alone->room_freed = true; /* who has none is not there */
}

static bool recall_one(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct alone *alone = ctx;
    struct alloc_spec *spec;

    if (alloc_of(record)->ended_unix_ns != 0 || json_object_get(alone->granted, id->text) != NULL)
        return true;
    spec = alone_read_spec(alone, id->text);
    if (spec == NULL)
        return true; /* it ends, and failed: without it nothing of it runs on */
    grants_keep(alone, spec);
    alloc_spec_free(spec);
    return true;
}

json_t *grants_held(struct alone *alone)
{
    json_t *held = json_object(), *list, *given;
    const char *alloc;
    size_t i;

    if (!alone->grants_known)
        core_each(life_core(alone->config.life), MACHINE_ALLOC, recall_one, alone);
    alone->grants_known = true;
    json_object_foreach(alone->granted, alloc, list)
    {
        json_array_foreach(list, i, given) devices_hold(held, given, alloc);
    }
    return held;
}

/* --- what is given --- */

json_t *grants_pretend(const json_t *group)
{
    json_t *all = json_object();
    const json_t *task, *request;
    size_t t, r;

    json_array_foreach(json_object_get(group, "Tasks"), t, task)
    {
        json_t *list = json_array();

        json_array_foreach(json_object_get(json_object_get(task, "Resources"), "Devices"), r,
                           request)
            check(json_array_append_new(list,
                                        json_pack("{s:s, s:s, s:s, s:[s]}", "Vendor", "any", "Type",
                                                  "any", "Name", "any", "DeviceIDs", "any")) == 0);
        if (json_array_size(list) > 0)
            check(json_object_set(all, json_string_value(json_object_get(task, "Name")), list) ==
                  0);
        json_decref(list);
    }
    return all;
}

json_t *grants_pick(const struct alone *alone, const json_t *group, const char *alloc, json_t *held,
                    char ret_why[DEVICES_WHY_SIZE])
{
    json_t *devices =
        alone->config.devices == NULL ? json_array() : alone->config.devices(alone->config.ctx);
    json_t *all = json_object(), *own = json_deep_copy(held);
    const json_t *task, *request;
    bool found = true;
    size_t t, r;

    json_array_foreach(json_object_get(group, "Tasks"), t, task)
    {
        const json_t *asked = json_object_get(json_object_get(task, "Resources"), "Devices");
        json_t *list = json_array();

        json_array_foreach(asked, r, request)
        {
            json_t *given = found ? devices_pick(devices, request, own, ret_why) : NULL;

            found = given != NULL;
            if (!found)
                break;
            devices_hold(own, given, alloc);
            check(json_array_append_new(list, given) == 0);
        }
        if (json_array_size(list) > 0)
            check(json_object_set(all, json_string_value(json_object_get(task, "Name")), list) ==
                  0);
        json_decref(list);
    }
    if (found)
        check(json_object_update(held, own) == 0);
    json_decref(own);
    json_decref(devices);
    if (found)
        return all;
    json_decref(all);
    return NULL;
}

json_t *grants_lack(const struct alone *alone, const json_t *group, json_t *held,
                    const char **ret_why)
{
    json_t *nobody = json_object();
    char why[DEVICES_WHY_SIZE], text[DEVICES_WHY_SIZE + 16];
    json_t *picked = grants_pick(alone, group, "", held, why);
    bool lacks = picked == NULL;

    json_decref(picked);
    picked = lacks ? grants_pick(alone, group, "", nobody, text) : NULL;
    *ret_why =
        picked == NULL ? "constraint" : "exhausted"; /* others have them, or there are none */
    json_decref(picked);
    json_decref(nobody);
    if (!lacks)
        return NULL;
    (void)text_format(text, sizeof(text), "devices: %s", why); /* fits */
    return json_string(text_equal(*ret_why, "constraint") ? "missing devices" : text);
}
