/*
 * Records and events back from JSON (json.c).
 *
 * Strict: a member that no list knows, a number out of its range, a name of no table is an error
 * that says which.  What comes out has still to pass fsm_senseless, as anything from outside.
 */
#include "inspect/fields.h"

#include <string.h>

static int bad(struct err *err, const char *where, const char *what)
{
    return err_set(err, ERR_INVALID, "%s: %s", where, what);
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

int inspect_read_hex(const char *text, void *to, size_t size, size_t *ret_length)
{
    size_t length = strlen(text);
    uint8_t *at = to;

    if (length % 2 != 0 || length / 2 > size)
        return ERR_INVALID;
    for (size_t i = 0; i < length; i += 2) {
        int high = digit(text[i]), low = digit(text[i + 1]);
        if (high < 0 || low < 0)
            return ERR_INVALID;
        at[i / 2] = (uint8_t)(high << 4 | low);
    }
    *ret_length = length / 2;
    return 0;
}

/* A text or {"hex": ...}, without NUL behind it. */
static int take_bytes(const json_t *value, void *to, size_t size, size_t *ret_length)
{
    const char *hex = json_string_value(json_object_get(value, "hex"));

    if (hex != NULL)
        return inspect_read_hex(hex, to, size, ret_length);
    if (!json_is_string(value) || json_string_length(value) > size)
        return ERR_INVALID;
    memcpy(to, json_string_value(value), json_string_length(value));
    *ret_length = json_string_length(value);
    return 0;
}

static bool take_u64(const json_t *value, uint64_t max, uint64_t *ret_number)
{
    uint64_t number;

    if (json_is_string(value)) {
        if (!text_to_u64(json_string_value(value), &number))
            return false;
    } else {
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return false;
        number = (uint64_t)json_integer_value(value);
    }
    if (number > max)
        return false;
    *ret_number = number;
    return true;
}

static bool take_i64(const json_t *value, int64_t min, int64_t max, int64_t *ret_number)
{
    if (!json_is_integer(value) || json_integer_value(value) < min ||
        json_integer_value(value) > max)
        return false;
    *ret_number = json_integer_value(value);
    return true;
}

static int take_field(const struct field *field, const json_t *value, void *base, struct err *err)
{
    uint8_t *at = (uint8_t *)base + field->offset;
    uint64_t number = 0;
    int64_t signed_number = 0;
    size_t length = 0;
    bool good = false;

    switch ((enum value_kind)field->kind) {
    case VALUE_U64:
        good = take_u64(value, UINT64_MAX, &number);
        memcpy(at, &number, sizeof(number));
        break;
    case VALUE_I64:
        good = take_i64(value, INT64_MIN, INT64_MAX, &signed_number);
        memcpy(at, &signed_number, sizeof(signed_number));
        break;
    case VALUE_U32: {
        good = take_u64(value, UINT32_MAX, &number);
        uint32_t narrow = (uint32_t)number;
        memcpy(at, &narrow, sizeof(narrow));
        break;
    }
    case VALUE_I32: {
        good = take_i64(value, INT32_MIN, INT32_MAX, &signed_number);
        int32_t narrow = (int32_t)signed_number;
        memcpy(at, &narrow, sizeof(narrow));
        break;
    }
    case VALUE_U8:
        good = take_u64(value, UINT8_MAX, &number);
        *at = (uint8_t)number;
        break;
    case VALUE_TEXT:
        good =
            take_bytes(value, at, field->size - 1u, &length) == 0 && memchr(at, 0, length) == NULL;
        break;
    case VALUE_PAD:
        break;
    }
    return good ? 0 : bad(err, field->name, "not a value of this field");
}

static int take_results(const json_t *list, uint8_t *bytes, uint32_t *ret_used, struct err *err)
{
    struct results results = {.bytes = bytes, .size = RESULTS_BYTES_MAX};
    char key[RESULT_KEY_MAX + 1], value[RESULT_VALUE_MAX];
    const json_t *entry;
    size_t i;

    json_array_foreach(list, i, entry)
    {
        uint64_t hook, kind;
        size_t key_length, length;
        if (!take_u64(json_object_get(entry, "hook"), UINT8_MAX, &hook) ||
            !take_u64(json_object_get(entry, "kind"), RESULT_KIND_COUNT - 1, &kind) ||
            take_bytes(json_object_get(entry, "key"), key, RESULT_KEY_MAX, &key_length) < 0 ||
            memchr(key, 0, key_length) != NULL ||
            take_bytes(json_object_get(entry, "value"), value, sizeof(value), &length) < 0)
            return bad(err, "results", "not an entry");
        key[key_length] = '\0';
        if (results_set(&results, (uint8_t)hook, (enum result_kind)kind, key, value,
                        (uint32_t)length) < 0)
            return bad(err, "results", "too many or too long");
    }
    *ret_used = results.used;
    return 0;
}

/* The number of a part's elements goes where the struct keeps it. */
static void store_length(const struct part *part, void *base, uint32_t length)
{
    uint8_t *at = (uint8_t *)base + part->count_at;

    if (part->count == PART_U8)
        *at = (uint8_t)length;
    else if (part->count != PART_ONE)
        memcpy(at, &length, sizeof(length));
}

static int take_shape(const struct shape *shape, const json_t *object, void *base, struct err *err);

static int take_part(const struct part *part, const json_t *value, void *base, struct err *err)
{
    uint8_t *at = (uint8_t *)base + part->offset;
    uint32_t length = 0;
    int code = 0;

    if (part->count == PART_ONE)
        return take_shape(part->shape, value, at, err);
    if (!json_is_array(value) || json_array_size(value) > part->max)
        return bad(err, part->name, "not a list, or too long");
    if (part->count == PART_RESULTS) {
        code = take_results(value, at, &length, err);
    } else {
        length = (uint32_t)json_array_size(value);
        for (uint32_t i = 0; i < length && code == 0; i++)
            code =
                take_shape(part->shape, json_array_get(value, i), at + i * part->shape->size, err);
    }
    store_length(part, base, length);
    return code;
}

static const struct field *find_field(const struct shape *shape, const char *name)
{
    for (uint16_t i = 0; i < shape->fields_count; i++) {
        if (shape->fields[i].kind != VALUE_PAD && text_equal(shape->fields[i].name, name))
            return &shape->fields[i];
    }
    return NULL;
}

static const struct part *find_part(const struct shape *shape, const char *name)
{
    for (uint16_t i = 0; i < shape->parts_count; i++) {
        if (text_equal(shape->parts[i].name, name))
            return &shape->parts[i];
    }
    return NULL;
}

/* What is not given stays 0 or empty, as in records of an older schema. */
static int take_shape(const struct shape *shape, const json_t *object, void *base, struct err *err)
{
    const char *name;
    json_t *value;

    if (!json_is_object(object))
        return bad(err, shape->name, "not an object");
    json_object_foreach((json_t *)(uintptr_t)object, name, value) /* read only */
    {
        const struct field *field = find_field(shape, name);
        int code = field != NULL ? take_field(field, value, base, err) : 0;
        if (code < 0)
            return err_wrap(err, "%s", shape->name);
        if (field == NULL && find_part(shape, name) == NULL)
            return err_set(err, ERR_INVALID, "%s: unknown member \"%s\"", shape->name, name);
    }
    /* Parts last: they set the numbers of their elements. */
    for (uint16_t i = 0; i < shape->parts_count; i++) {
        const struct part *part = &shape->parts[i];
        value = json_object_get(object, part->name);
        if (value == NULL) {
            store_length(part, base, 0);
            continue;
        }
        int code = take_part(part, value, base, err);
        if (code < 0)
            return err_wrap(err, "%s", shape->name);
    }
    return 0;
}

/* --- names of the tables --- */

typedef const char *name_of(const struct fsm_def *def, unsigned number);

static bool take_name(const struct fsm_def *def, name_of *name, unsigned count, const json_t *value,
                      uint8_t *ret_number)
{
    const char *text = json_string_value(value);

    for (unsigned i = 0; text != NULL && i < count; i++) {
        if (text_equal(name(def, i), text)) {
            *ret_number = (uint8_t)i;
            return true;
        }
    }
    return false;
}

static bool take_lane(const json_t *value, uint8_t *ret_lane)
{
    const char *text = json_string_value(value);

    for (unsigned lane = 0; text != NULL && lane <= LANE_SEND; lane++) {
        if (lane != LANE_COUNT && text_equal(fsm_lane_name((enum fsm_lane)lane), text)) {
            *ret_lane = (uint8_t)lane;
            return true;
        }
    }
    return false;
}

static int take_id(const json_t *json, struct machine_id *id, struct err *err)
{
    const char *kind = json_string_value(json_object_get(json, "kind"));
    const char *text = json_string_value(json_object_get(json, "id"));

    *id = (struct machine_id){.kind = MACHINE_KIND_COUNT};
    for (uint8_t i = 0; kind != NULL && i < MACHINE_KIND_COUNT; i++) {
        if (text_equal(machine_kind_name((enum machine_kind)i), kind))
            id->kind = i;
    }
    if (id->kind == MACHINE_KIND_COUNT)
        return bad(err, "kind", "not a kind of machine");
    if (text == NULL || text[0] == '\0' || !text_copy(id->text, sizeof(id->text), text))
        return bad(err, "id", "missing or too long");
    return 0;
}

static int take_lanes(const json_t *list, struct machine *record, struct err *err)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)record->kind);
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        const json_t *awaits = json_object_get(item, "awaits");
        uint64_t ticket;
        uint8_t lane;
        if (!take_lane(json_object_get(item, "lane"), &lane) || lane >= LANE_COUNT ||
            !take_u64(json_object_get(item, "ticket"), UINT32_MAX, &ticket))
            return bad(err, "lanes", "not a lane");
        record->lane_ticket[lane] = (uint32_t)ticket;
        if (awaits != NULL && !take_name(def, fsm_effect_name, def->effects_count, awaits,
                                         &record->lane_effect[lane]))
            return bad(err, "lanes", "not an effect of this machine");
    }
    return 0;
}

int inspect_read_record(const json_t *json, struct machine_id *ret_id, struct machine *record,
                        struct err *err)
{
    struct machine_id id;
    int code = take_id(json, &id, err);

    if (code < 0)
        return code;
    const struct fsm_def *def = fsm_definition((enum machine_kind)id.kind);
    record->kind = id.kind;
    code = take_shape(shape_of_head(), json_object_get(json, "head"), record, err);
    if (code == 0 && !take_name(def, fsm_state_name, def->states_count,
                                json_object_get(json, "state"), &record->state))
        code = bad(err, "state", "not a state of this machine");
    if (code == 0)
        code = take_lanes(json_object_get(json, "lanes"), record, err);
    if (code == 0)
        code = take_shape(shape_of_record((enum machine_kind)id.kind),
                          json_object_get(json, "record"), record, err);
    if (code < 0)
        return code;
    const char *why = fsm_senseless(&id, record);
    if (why != NULL)
        return bad(err, id.text, why);
    *ret_id = id;
    return 0;
}

static bool take_hex64(const json_t *value, uint64_t *ret_number)
{
    const char *text = json_string_value(value);
    uint8_t bytes[8];
    uint64_t number = 0;
    size_t length;

    if (text == NULL || inspect_read_hex(text, bytes, sizeof(bytes), &length) < 0 || length != 8)
        return false;
    for (size_t i = 0; i < 8; i++)
        number = number << 8 | bytes[i];
    *ret_number = number;
    return true;
}

static int take_issues(const struct fsm_def *def, const json_t *list, struct journal_event *event,
                       struct err *err)
{
    const json_t *item;
    size_t i;

    if (!json_is_array(list) || json_array_size(list) > FSM_EFFECTS_MAX)
        return bad(err, "issues", "not a list, or too long");
    event->issues_count = (uint8_t)json_array_size(list);
    json_array_foreach(list, i, item)
    {
        struct fsm_issue *issue = &event->issues[i];
        uint64_t ticket;
        if (!take_name(def, fsm_effect_name, def->effects_count, json_object_get(item, "effect"),
                       &issue->effect) ||
            !take_lane(json_object_get(item, "lane"), &issue->lane) ||
            def->effects[issue->effect].lane != issue->lane ||
            !take_u64(json_object_get(item, "ticket"), UINT32_MAX, &ticket))
            return bad(err, "issues", "not an effect of this machine");
        issue->ticket = (uint32_t)ticket;
    }
    return 0;
}

static bool take_numbers(const json_t *json, struct journal_event *event)
{
    uint64_t lane, ticket, generation, peers;

    if (!take_u64(json_object_get(json, "sequence"), UINT64_MAX, &event->sequence) ||
        !take_u64(json_object_get(json, "turn"), UINT64_MAX, &event->turn) ||
        !take_u64(json_object_get(json, "now_ms"), UINT64_MAX, &event->now_ms) ||
        !take_i64(json_object_get(json, "unix_ns"), INT64_MIN, INT64_MAX, &event->unix_ns) ||
        !take_hex64(json_object_get(json, "seed"), &event->seed) ||
        !take_hex64(json_object_get(json, "digest"), &event->digest) ||
        !take_u64(json_object_get(json, "peers"), UINT32_MAX, &peers) ||
        !take_u64(json_object_get(json, "lane"), LANE_COUNT - 1, &lane) ||
        !take_u64(json_object_get(json, "ticket"), UINT32_MAX, &ticket) ||
        !take_u64(json_object_get(json, "generation"), UINT32_MAX, &generation))
        return false;
    event->peers = (uint32_t)peers;
    event->event.lane = (uint8_t)lane;
    event->event.ticket = (uint32_t)ticket;
    event->event.generation = (uint32_t)generation;
    return true;
}

/* The row of EVENT, by its guard: a name, or the mark of one that only another version has. */
static bool take_row(const struct fsm_def *def, const json_t *guard, struct journal_event *event)
{
    uint8_t number;
    uint64_t mark;

    if (take_name(def, fsm_guard_name, def->guards_count, guard, &number))
        mark = fsm_guard_mark(def, number);
    else if (!take_u64(guard, UINT32_MAX, &mark))
        return false;
    event->guard = (uint32_t)mark;
    event->row = fsm_row_marked(def, event->before, event->event.kind, event->guard);
    return true;
}

int inspect_read_event(const json_t *json, struct journal_event *ret_event, void *payload,
                       struct err *err)
{
    struct journal_event event = {0};
    int code = take_id(json, &event.id, err);

    if (code < 0)
        return code;
    const struct fsm_def *def = fsm_definition((enum machine_kind)event.id.kind);
    if (!take_numbers(json, &event))
        return bad(err, "event", "a number is missing or out of range");
    if (!take_name(def, fsm_event_name, def->events_count, json_object_get(json, "event"),
                   &event.event.kind))
        return bad(err, "event", "not an event of this machine");
    if (!take_name(def, fsm_state_name, def->states_count, json_object_get(json, "before"),
                   &event.before) ||
        !take_name(def, fsm_state_name, def->states_count, json_object_get(json, "after"),
                   &event.after))
        return bad(err, "before, after", "not a state of this machine");
    if (!take_row(def, json_object_get(json, "guard"), &event))
        return bad(err, "guard", "not a guard of this machine");
    code = take_issues(def, json_object_get(json, "issues"), &event, err);
    const struct shape *shape =
        shape_of_payload((enum fsm_payload)def->events[event.event.kind].payload);
    if (code == 0 && shape != NULL) {
        event.event.payload = payload;
        code = take_shape(shape, json_object_get(json, "payload"), payload, err);
    }
    if (code == 0)
        *ret_event = event;
    return code;
}
