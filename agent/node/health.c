#include "agent/node/health.h"

#include "agent/node/entry.h"

enum { EVENTS_MAX = 10 }; /* as many as Nomad keeps of a node */
static const int64_t WORDS_EVERY_NS = INT64_C(60000000000);

static const char key[] = "drivers";

static json_t *empty(void)
{
    json_t *json = json_pack("{s:{}, s:[]}", "drivers", "events");

    check(json != NULL);
    return json;
}

/* A driver, or a volume. */
static bool is_about(const json_t *event)
{
    return json_is_string(json_object_get(event, "driver")) ||
           (json_is_string(json_object_get(event, "volume")) &&
            json_is_string(json_object_get(event, "error")));
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
            !json_is_string(json_object_get(event, "message")) || !is_about(event))
            return false;
    }
    const json_t *heard = json_object_get(json, "heard");

    return json_is_object(json_object_get(json, "drivers")) && json_is_array(events) &&
           (heard == NULL || json_is_integer(heard));
}

int health_read(struct health *health, const struct store *store, const struct say *log,
                int64_t now_unix_ns, struct err *err)
{
    *health = (struct health){0};
    int code = entry_read(store, log, key, is_whole, now_unix_ns, &health->json, err);
    if (health->json == NULL)
        health->json = empty();
    return code;
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

static void add_event(struct health *health, json_t *event)
{
    json_t *events = json_object_get(health->json, "events");

    check(json_array_append_new(events, event) == 0);
    while (json_array_size(events) > EVENTS_MAX)
        check(json_array_remove(events, 0) == 0);
    health->untold = true;
    if (health->changed != NULL)
        health->changed(health->ctx);
}

/* What is seen for the first time is no change. */
static void add_change(struct health *health, const struct driver_info *driver, int64_t now_unix_ns)
{
    if (record_of(health, driver->name) != NULL)
        add_event(health, json_pack("{s:I, s:s, s:s}", "time", (json_int_t)now_unix_ns, "driver",
                                    driver->name, "message", driver->description));
}

static bool is_equal(const json_t *event, const char *name, const char *text)
{
    const char *own = json_string_value(json_object_get(event, name));

    return own != NULL && text_equal(own, text);
}

/* What is tried again and again is one event. */
static void drop_same(json_t *events, const char *volume, const char *message, const char *error)
{
    for (size_t i = json_array_size(events); i > 0; i--) {
        const json_t *event = json_array_get(events, i - 1);

        if (is_equal(event, "volume", volume) && is_equal(event, "message", message) &&
            is_equal(event, "error", error))
            check(json_array_remove(events, i - 1) == 0);
    }
}

void health_note_volume(struct health *health, const char *volume, const char *message,
                        const char *error, int64_t now_unix_ns)
{
    json_t *event = json_pack("{s:I, s:s, s:s, s:s}", "time", (json_int_t)now_unix_ns, "volume",
                              volume, "message", message, "error", error);

    if (event == NULL) /* a name that is no text, of a record that was damaged */
        return;
    drop_same(json_object_get(health->json, "events"), volume, message, error);
    add_event(health, event);
}

/* The last of those that say MESSAGE of VOLUME; NULL: there is none, or it is long ago. */
static const json_t *last_of(const struct health *health, const char *volume, const char *message)
{
    const json_t *events = json_object_get(health->json, "events");

    for (size_t i = json_array_size(events); i > 0; i--) {
        const json_t *event = json_array_get(events, i - 1);

        if (is_equal(event, "volume", volume) && is_equal(event, "message", message))
            return event;
    }
    return NULL;
}

/* Time that goes backwards makes everything old. */
static bool is_old(const json_t *event, int64_t now_unix_ns)
{
    int64_t since_ns = now_unix_ns - json_integer_value(json_object_get(event, "time"));

    return since_ns < 0 || since_ns >= WORDS_EVERY_NS;
}

void health_note_condition(struct health *health, const char *volume, bool abnormal,
                           const char *text, int64_t now_unix_ns)
{
    static const char message[] = "Volume condition";
    const char *error = !abnormal ? "" : text[0] != '\0' ? text : "abnormal";
    const json_t *last = last_of(health, volume, message);

    if (last == NULL && !abnormal)
        return;
    if (last != NULL && is_equal(last, "error", "") == !abnormal &&
        (is_equal(last, "error", error) || !is_old(last, now_unix_ns)))
        return;
    health_note_volume(health, volume, message, error, now_unix_ns);
}

void health_tell(struct health *health, struct core *core)
{
    if (!health->untold)
        return;
    entry_write(core, key, health->json);
    health->untold = false;
}

json_t *health_unheard(const struct health *health, int64_t *ret_until_unix_ns)
{
    json_int_t heard = json_integer_value(json_object_get(health->json, "heard"));
    json_t *unheard = json_array(), *event;
    size_t i;

    check(unheard != NULL);
    *ret_until_unix_ns = heard;
    json_array_foreach(json_object_get(health->json, "events"), i, event)
    {
        json_int_t time = json_integer_value(json_object_get(event, "time"));

        if (time <= heard)
            continue;
        check(json_array_append(unheard, event) == 0);
        *ret_until_unix_ns = time > *ret_until_unix_ns ? time : *ret_until_unix_ns;
    }
    if (json_array_size(unheard) > 0)
        return unheard;
    json_decref(unheard);
    return NULL;
}

void health_heard(struct health *health, struct core *core, int64_t until_unix_ns)
{
    check(json_object_set_new(health->json, "heard", json_integer(until_unix_ns)) == 0);
    health->untold = true;
    health_tell(health, core);
}

void health_note(struct health *health, struct core *core, const struct driver_info *drivers,
                 size_t count, int64_t now_unix_ns)
{
    json_t *records = json_object_get(health->json, "drivers");

    for (size_t i = 0; i < count; i++) {
        if (!drivers[i].asked || is_as(record_of(health, drivers[i].name), &drivers[i]))
            continue;
        add_change(health, &drivers[i], now_unix_ns);
        check(json_object_set_new(records, drivers[i].name,
                                  json_pack("{s:b, s:b, s:s, s:I}", "detected", drivers[i].detected,
                                            "healthy", drivers[i].healthy, "description",
                                            drivers[i].description, "since",
                                            (json_int_t)drivers[i].since_unix_ns)) == 0);
        health->untold = true;
    }
    health_tell(health, core);
}

int64_t health_since(const struct health *health, const struct driver_info *driver)
{
    const json_t *record = record_of(health, driver->name);

    return is_as(record, driver) ? json_integer_value(json_object_get(record, "since"))
                                 : driver->since_unix_ns;
}
