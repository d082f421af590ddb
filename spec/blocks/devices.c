/*
 * Devices that tasks ask for (resources { device "nvidia/gpu" { ... } }), and what they were given,
 * as Nomad has it in the resources of an alloc.
 */
#include "spec/blocks/blocks.h"

#include "spec/devices.h"
#include "spec/json.h"

#include <stdlib.h>
#include <string.h>

void jobspec_check_devices(struct jobspec_work *work, const json_t *resources)
{
    const json_t *list = json_object_get(resources, "Devices"), *device;
    struct err err;
    size_t i;

    json_array_foreach(list, i, device)
    {
        if (device_check(device, &err) != 0)
            jobspec_complain(work, device, "Name", NULL, "%s", err.text);
    }
}

void jobspec_add_devices(json_t *alloc, const json_t *devices)
{
    const char *name;
    json_t *given;

    json_object_foreach((json_t *)(uintptr_t)devices, name, given)
    {
        json_t *all = jobspec_member(alloc, "AllocatedResources", json_object);
        json_t *task = jobspec_member(jobspec_member(all, "Tasks", json_object), name, json_object);

        check(json_object_set(task, "Devices", given) == 0);
    }
}

void jobspec_add_given_devices(json_t *alloc, const json_t *given)
{
    json_t *devices = json_object(), *task;
    const char *name;

    json_object_foreach(json_object_get(given, "Tasks"), name, task)
    {
        json_t *list = json_object_get(task, "Devices");

        if (json_array_size(list) > 0)
            check(json_object_set(devices, name, list) == 0);
    }
    jobspec_add_devices(alloc, devices);
    json_decref(devices);
}

/* A name, or an id, of what was given: what becomes part of a line. */
static bool is_word(const json_t *text)
{
    const char *at = json_string_value(text);

    if (at == NULL || *at == '\0' || json_string_length(text) > DEVICE_WORD_MAX)
        return false;
    for (; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return false;
    }
    return true;
}

static bool is_given(const json_t *given)
{
    const json_t *ids = json_object_get(given, "DeviceIDs"), *id;
    size_t i;

    json_array_foreach(ids, i, id)
    {
        if (!is_word(id))
            return false;
    }
    return is_word(json_object_get(given, "Vendor")) && is_word(json_object_get(given, "Type")) &&
           is_word(json_object_get(given, "Name")) && json_array_size(ids) > 0 &&
           json_array_size(ids) <= NODE_DEVICES_MAX;
}

char *jobspec_devices_text(const json_t *list)
{
    json_t *all = json_array(), *given;
    char *text;
    size_t i;

    json_array_foreach(list, i, given)
    {
        if (!is_given(given)) {
            json_decref(all);
            return NULL;
        }
        check(json_array_append_new(all, json_pack("{s:O, s:O, s:O, s:O}", "Vendor",
                                                   json_object_get(given, "Vendor"), "Type",
                                                   json_object_get(given, "Type"), "Name",
                                                   json_object_get(given, "Name"), "DeviceIDs",
                                                   json_object_get(given, "DeviceIDs"))) == 0);
    }
    text = json_array_size(all) == 0 ? strdup("") : json_dumps(all, JSON_COMPACT);
    check(text != NULL);
    json_decref(all);
    return text;
}
