#include "agent/node/health.h"

#include <stdlib.h>
#include <string.h>

enum { EVENTS_MAX = 10 }; /* as many as Nomad keeps of a node */

static const char key[] = "drivers";

static json_t *empty(void)
{
    json_t *json = json_pack("{s:{}, s:[]}", "drivers", "events");

    check(json != NULL);
    return json;
}

static bool is_whole(const json_t *json)
{
    const json_t *events = json_object_get(json, "events"), *event, *driver;
    const char *name;
    size_t i;

    json_object_foreach((json_t *)(uintptr_t)json_object_get(json, "drivers"), name, driver)
    {
        if (!json_is_boolean(json_object_get(driver, "detected")) ||
            !json_is_boolean(json_object_get(driver, "healthy")) ||
            !json_is_string(json_object_get(driver, "description")) ||
            !json_is_integer(json_object_get(driver, "since")))
            return false;
    }
    json_array_foreach(events, i, event)
    {
        if (!json_is_integer(json_object_get(event, "time")) ||
            !json_is_string(json_object_get(event, "driver")) ||
            !json_is_string(json_object_get(event, "message")))
            return false;
    }
    return json_is_object(json_object_get(json, "drivers")) && json_is_array(events);
}

int health_read(struct health *health, const struct store *store, const struct say *log,
                int64_t now_unix_ns, struct err *err)
{
    char *text = NULL;
    size_t length = 0;
    int code = store->meta_read(store->ctx, key, &text, &length, err);

    health->json = code == 0 ? json_loadb(text, length, 0, NULL) : NULL;
    free(text);
    if (code == 0 && !is_whole(health->json))
        code = err_set(err, ERR_CORRUPT, "what was known of the drivers makes no sense");
    if (code == 0)
        return 0;
    json_decref(health->json);
    health->json = empty();
    if (code != ERR_CORRUPT)
        return code == ERR_GONE ? 0 : code;
    say(log, SAY_WARN, "journal", "put into quarantine, and begun anew error=%s",
        text_value(err->text));
    return store->quarantine == NULL
               ? 0
               : store->quarantine(store->ctx, "meta", key, err->text, now_unix_ns, err);
}

void health_free(struct health *health)
{
    json_decref(health->json);
    health->json = NULL;
}

static json_t *record_of(const struct health *health, const char *driver)
{
    return json_object_get(json_object_get(health->json, "drivers"), driver);
}

static bool is_as(const json_t *record, const struct driver_info *driver)
{
    const char *description = json_string_value(json_object_get(record, "description"));

    return description != NULL && text_equal(description, driver->description) &&
           json_is_true(json_object_get(record, "detected")) == driver->detected &&
           json_is_true(json_object_get(record, "healthy")) == driver->healthy;
}

/* What is seen for the first time is no change. */
static void add_event(struct health *health, const struct driver_info *driver, int64_t now_unix_ns)
{
    json_t *events = json_object_get(health->json, "events");

    if (record_of(health, driver->name) == NULL)
        return;
    check(json_array_append_new(events, json_pack("{s:I, s:s, s:s}", "time",
                                                  (json_int_t)now_unix_ns, "driver", driver->name,
                                                  "message", driver->description)) == 0);
    while (json_array_size(events) > EVENTS_MAX)
        check(json_array_remove(events, 0) == 0);
}

void health_note(struct health *health, struct core *core, const struct driver_info *drivers,
                 size_t count, int64_t now_unix_ns)
{
    json_t *records = json_object_get(health->json, "drivers");
    bool changed = false;

    for (size_t i = 0; i < count; i++) {
        if (!drivers[i].asked || is_as(record_of(health, drivers[i].name), &drivers[i]))
            continue;
        add_event(health, &drivers[i], now_unix_ns);
        check(json_object_set_new(records, drivers[i].name,
                                  json_pack("{s:b, s:b, s:s, s:I}", "detected", drivers[i].detected,
                                            "healthy", drivers[i].healthy, "description",
                                            drivers[i].description, "since",
                                            (json_int_t)drivers[i].since_unix_ns)) == 0);
        changed = true;
    }
    if (!changed)
        return;
    char *text = json_dumps(health->json, JSON_COMPACT | JSON_SORT_KEYS);
    check(text != NULL); /* messages are whole UTF-8 */
    core_meta(core, key, text, strlen(text));
    free(text);
}

int64_t health_since(const struct health *health, const struct driver_info *driver)
{
    const json_t *record = record_of(health, driver->name);

    return is_as(record, driver) ? json_integer_value(json_object_get(record, "since"))
                                 : driver->since_unix_ns;
}
