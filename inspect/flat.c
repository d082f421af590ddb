/*
 * Records and payloads as people read them: one line for each value, and what differs between two.
 *
 * Enums get their names, wall-clock times their dates; nothing that a terminal could take for a
 * command gets through.
 */
#include "fsm/csi.h"
#include "inspect/fields.h"

#include <stdlib.h>
#include <string.h>

/* --- names of enums --- */

static const char *run_state_name(unsigned value)
{
    static const char *const names[] = {"pending", "running", "dead"};

    return value < COUNT_OF(names) ? names[value] : "?";
}

static const char *lifecycle_name(unsigned value)
{
    static const char *const names[] = {"main", "prestart", "poststart", "poststop"};

    return value < COUNT_OF(names) ? names[value] : "?";
}

static const char *member_kind_name(unsigned value)
{
    return value == MEMBER_TASK ? "task" : value == MEMBER_VOLUME ? "volume" : "?";
}

static const char *order_name(unsigned value)
{
    static const char *const names[] = {"none", "start", "kill"};

    return value < COUNT_OF(names) ? names[value] : "?";
}

static const char *plugin_type_name(unsigned value)
{
    static const char *const names[] = {"driver", "device", "csi node", "csi controller"};

    return value < COUNT_OF(names) ? names[value] : "?";
}

static const char *verdict_name(unsigned value)
{
    static const char *const names[] = {"undecided", "restart now", "restart later", "ends"};

    return value < COUNT_OF(names) ? names[value] : "?";
}

static const char *csi_verdict_name(unsigned value)
{
    static const char *const names[CSI_VERDICT_COUNT] = {
        [CSI_DONE] = "none",
        [CSI_REPEAT] = "repeat",
        [CSI_DOUBT] = "doubt",
        [CSI_STAGE_FIRST] = "stage first",
        [CSI_UNDO_FIRST] = "undo first",
        [CSI_REFUSED] = "refused",
        [CSI_LIES] = "lies",
    };

    return value < COUNT_OF(names) ? names[value] : "?";
}

static const char *resume_name(unsigned value)
{
    static const char *const names[] = {"nothing", "prekill", "delaying", "stopping"};

    return value < COUNT_OF(names) ? names[value] : "?";
}

static const char *status_name(unsigned value)
{
    return client_status_name((enum client_status)value);
}

static const char *failure_code_name(unsigned value)
{
    return value == 0 ? "none" : err_text((int)value);
}

const char *shape_value_name(const struct shape *shape, const struct field *field, unsigned value)
{
    static const struct {
        const char *shape, *field;
        const char *(*name)(unsigned value);
    } names[] = {
        {"task", "phase", hook_phase_name},
        {"task", "hook", task_hook_name},
        {"task", "run_state", run_state_name},
        {"task", "verdict", verdict_name},
        {"task", "resume", resume_name},
        {"task_define", "lifecycle", lifecycle_name},
        {"task_event", "type", task_event_type_name},
        {"task_changed", "run_state", run_state_name},
        {"alloc", "phase", hook_phase_name},
        {"alloc", "hook", alloc_hook_name},
        {"alloc", "client_status", status_name},
        {"alloc", "kill_event", task_event_type_name},
        {"alloc_member", "kind", member_kind_name},
        {"alloc_member", "lifecycle", lifecycle_name},
        {"alloc_member", "run_state", run_state_name},
        {"alloc_member", "told", order_name},
        {"kill_order", "event", task_event_type_name},
        {"plugin_define", "type", plugin_type_name},
        {"failure", "code", failure_code_name},
        {"failure", "verdict", csi_verdict_name},
        {"volume", "verdict", csi_verdict_name},
        {"hook_outcome", "code", failure_code_name},
    };

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (text_equal(names[i].shape, shape->name) && text_equal(names[i].field, field->name))
            return names[i].name(value);
    }
    return NULL;
}

/* --- walking --- */

enum { PATH_TEXT_SIZE = 512, VALUE_TEXT_SIZE = 1024 };

struct flat {
    flat_cb *cb;
    void *ctx;
    bool redact;
    char path[PATH_TEXT_SIZE];
};

static void tell(struct flat *flat, const char *name, const char *text, const char *doc, bool zero)
{
    size_t length = strlen(flat->path);

    (void)text_append(flat->path, sizeof(flat->path), name); /* cut: long keys of results */
    flat->cb(flat->ctx, flat->path, text, doc, zero);
    memset(flat->path + length, 0, sizeof(flat->path) - length);
}

static void tell_number(struct flat *flat, const struct shape *shape, const struct field *field,
                        const void *base)
{
    char text[VALUE_TEXT_SIZE], when[TIME_TEXT_SIZE];
    bool is_signed;
    uint64_t value = shape_number(field, base, &is_signed);
    const char *name = shape_value_name(shape, field, (unsigned)value);

    (void)text_format(text, sizeof(text), is_signed ? "%lld" : "%llu", (long long)value);
    if (name != NULL) {
        (void)text_append(text, sizeof(text), " ");
        (void)text_append(text, sizeof(text), name);
    } else if (text_ends_with(field->name, "unix_ns") && value != 0) {
        inspect_print_time((int64_t)value, when);
        (void)text_append(text, sizeof(text), " ");
        (void)text_append(text, sizeof(text), when);
    }
    tell(flat, field->name, text, field->doc, value == 0);
}

static void tell_field(struct flat *flat, const struct shape *shape, const struct field *field,
                       const void *base)
{
    const char *at = (const char *)base + field->offset;
    char text[VALUE_TEXT_SIZE];

    if (field->kind == VALUE_PAD)
        return;
    if (field->kind != VALUE_TEXT) {
        tell_number(flat, shape, field, base);
        return;
    }
    (void)text_format(text, sizeof(text), "\"%s\"", at); /* fits: they are short */
    text_clean(text);
    tell(flat, field->name, text, field->doc, *at == '\0');
}

static const char *result_kind_name(uint8_t kind)
{
    static const char *const names[RESULT_KIND_COUNT] = {"env", "mount", "device", "data"};

    return kind < RESULT_KIND_COUNT ? names[kind] : "?";
}

static void tell_results(struct flat *flat, const uint8_t *bytes, uint32_t used)
{
    char name[RESULT_KEY_MAX + 64], text[VALUE_TEXT_SIZE];
    struct result result;

    for (uint32_t at = 0; results_next(bytes, used, &at, &result);) {
        (void)text_format(name, sizeof(name), "results.%u.%s.%s", (unsigned)result.hook,
                          result_kind_name(result.kind), result.key); /* fits */
        text_clean(name);
        (void)text_format(text, sizeof(text), "\"%.*s\"", (int)result.value_length,
                          flat->redact ? "***" : result.value); /* a long value is cut */
        if (flat->redact)
            (void)text_copy(text, sizeof(text), "***"); /* fits */
        text_clean(text);
        tell(flat, name, text, "", false);
    }
}

static void walk(struct flat *flat, const struct shape *shape, const void *base)
{
    for (uint16_t i = 0; i < shape->fields_count; i++)
        tell_field(flat, shape, &shape->fields[i], base);
    for (uint16_t i = 0; i < shape->parts_count; i++) {
        const struct part *part = &shape->parts[i];
        const uint8_t *at = (const uint8_t *)base + part->offset;
        uint32_t length = shape_part_length(part, base);
        size_t before = strlen(flat->path);
        char name[64];

        if (part->count == PART_RESULTS) {
            tell_results(flat, at, length);
            continue;
        }
        for (uint32_t k = 0; k < length; k++, at += part->shape->size) {
            if (part->count == PART_ONE)
                (void)text_format(name, sizeof(name), "%s.", part->name); /* fits */
            else
                (void)text_format(name, sizeof(name), "%s[%u].", part->name, k); /* fits */
            (void)text_append(flat->path, sizeof(flat->path), name);             /* fits */
            walk(flat, part->shape, at);
            memset(flat->path + before, 0, sizeof(flat->path) - before);
        }
    }
}

static void walk_lanes(struct flat *flat, const struct machine *record)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)record->kind);
    char name[64], text[96];

    for (int lane = 0; lane < LANE_COUNT; lane++) {
        if (record->lane_ticket[lane] == 0 && record->lane_effect[lane] == 0)
            continue;
        (void)text_format(name, sizeof(name), "lane.%s", fsm_lane_name((enum fsm_lane)lane));
        if (record->lane_effect[lane] != 0)
            (void)text_format(text, sizeof(text), "awaits %s ticket %u",
                              fsm_effect_name(def, record->lane_effect[lane]),
                              record->lane_ticket[lane]);
        else
            (void)text_format(text, sizeof(text), "last ticket %u", record->lane_ticket[lane]);
        tell(flat, name, text, "", record->lane_effect[lane] == 0);
    }
}

void inspect_walk(const struct machine *record, bool redact, flat_cb *cb, void *ctx)
{
    struct flat flat = {.cb = cb, .ctx = ctx, .redact = redact};
    const struct fsm_def *def = fsm_definition((enum machine_kind)record->kind);

    tell(&flat, "state", fsm_state_name(def, record->state), "", false);
    walk(&flat, shape_of_head(), record);
    walk_lanes(&flat, record);
    walk(&flat, shape_of_record((enum machine_kind)record->kind), record);
}

/* --- comparing --- */

struct flat_value {
    char *path, *text;
    bool zero;
};

struct flat_list {
    struct flat_value *items;
    size_t count, size;
};

static void collect(void *ctx, const char *path, const char *text, const char *doc, bool zero)
{
    struct flat_list *list = ctx;

    (void)doc; /* the path says which field it is */
    struct flat_value *value = list_more(list);

    *value = (struct flat_value){strdup(path), strdup(text), zero};
    check(value->path != NULL);
    check(value->text != NULL);
}

static void flat_free(struct flat_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].path);
        free(list->items[i].text);
    }
    free(list->items);
}

/* The place of PATH in LIST at or behind FROM, its length if there is none. */
static size_t find_path(const struct flat_list *list, size_t from, const char *path)
{
    for (size_t i = from; i < list->count; i++) {
        if (text_equal(list->items[i].path, path))
            return i;
    }
    return list->count;
}

struct comparing {
    difference_cb *cb;
    void *ctx;
    bool redact;
};

static void differ(const struct comparing *comparing, const struct flat_value *before,
                   const struct flat_value *after)
{
    const char *path = before != NULL ? before->path : after->path;
    const char *was = before == NULL || before->zero ? NULL : before->text;
    const char *is = after == NULL || after->zero ? NULL : after->text;

    if (before != NULL && after != NULL) {
        was = before->text;
        is = after->text;
    }
    if (comparing->redact && text_starts_with(path, "results.")) {
        was = was == NULL ? NULL : "***";
        is = is == NULL ? NULL : was == NULL ? "***" : "*** (another)";
    }
    if (was != NULL || is != NULL)
        comparing->cb(comparing->ctx, path, was, is);
}

void inspect_compare(const struct machine *before, const struct machine *after, bool redact,
                     difference_cb *cb, void *ctx)
{
    struct comparing comparing = {cb, ctx, redact};
    struct flat_list a = {0}, b = {0};
    size_t at = 0;

    if (before != NULL)
        inspect_walk(before, false, collect, &a);
    if (after != NULL)
        inspect_walk(after, false, collect, &b);
    /* Both walks go in the same order; what only one of them has lies between what both have. */
    for (size_t i = 0; i < a.count; i++) {
        size_t same = find_path(&b, at, a.items[i].path);
        if (same == b.count) {
            differ(&comparing, &a.items[i], NULL);
            continue;
        }
        for (; at < same; at++)
            differ(&comparing, NULL, &b.items[at]);
        if (!text_equal(a.items[i].text, b.items[same].text))
            differ(&comparing, &a.items[i], &b.items[same]);
        at = same + 1;
    }
    for (; at < b.count; at++)
        differ(&comparing, NULL, &b.items[at]);
    flat_free(&a);
    flat_free(&b);
}
