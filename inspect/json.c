/*
 * Records and events as JSON, one object each (fields.h).
 *
 * Fields stand under the names of their lists, states, events and effects under the names of the
 * tables.  Numbers beyond the signed 64 bits of JSON readers are strings; texts that are no UTF-8
 * are {"hex": "..."}: whatever is written here can be read back without loss (parse.c).
 */
#include "inspect/fields.h"

#include <inttypes.h>
#include <string.h>

/* --- values --- */

/* Bytes of the UTF-8 character at AT, 1 for a byte that is none (RET_VALID false). */
static size_t character(const char *at, size_t left, bool *ret_valid)
{
    size_t length = 1;
    unsigned char first = (unsigned char)*at;

    if (first >= 0xF0u)
        length = 4;
    else if (first >= 0xE0u)
        length = 3;
    else if (first >= 0xC0u)
        length = 2;
    *ret_valid = length <= left && text_is_utf8(at, length);
    return *ret_valid ? length : 1;
}

void inspect_json_text(FILE *to, const char *text, size_t length)
{
    bool valid;

    (void)fputc('"', to); /* errors of the stream are looked at once, at the end */
    for (size_t i = 0; i < length;) {
        unsigned char c = (unsigned char)text[i];
        size_t bytes = character(text + i, length - i, &valid);
        if (c == '"' || c == '\\')
            (void)fprintf(to, "\\%c", c);
        else if (c < 0x20u || c == 0x7Fu || c == '<' || c == '>' || c == '&')
            (void)fprintf(to, "\\u%04x", c);
        else if (!valid)
            (void)fputc('?', to);
        else
            (void)fwrite(text + i, 1, bytes, to);
        i += bytes;
    }
    (void)fputc('"', to);
}

void inspect_json_string(FILE *to, const char *text)
{
    inspect_json_text(to, text, strlen(text));
}

void inspect_json_hex(FILE *to, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;

    (void)fputc('"', to);
    for (size_t i = 0; i < length; i++)
        (void)fprintf(to, "%02x", at[i]);
    (void)fputc('"', to);
}

static void put_u64(FILE *to, uint64_t value)
{
    (void)fprintf(to, value > INT64_MAX ? "\"%" PRIu64 "\"" : "%" PRIu64, value);
}

/* A text, or {"hex": ...} for what JSON has no text for. */
static void put_bytes(FILE *to, const char *bytes, size_t length)
{
    if (text_is_utf8(bytes, length)) {
        inspect_json_text(to, bytes, length);
        return;
    }
    (void)fputs("{\"hex\":", to);
    inspect_json_hex(to, bytes, length);
    (void)fputc('}', to);
}

static void put_value(FILE *to, const struct field *field, const void *base)
{
    const char *at = (const char *)base + field->offset;
    bool is_signed;

    if (field->kind == VALUE_TEXT) {
        put_bytes(to, at, strnlen(at, field->size));
        return;
    }
    uint64_t value = shape_number(field, base, &is_signed);
    if (is_signed)
        (void)fprintf(to, "%" PRId64, (int64_t)value);
    else
        put_u64(to, value);
}

/* --- structs --- */

static void put_results(FILE *to, const uint8_t *bytes, uint32_t used, bool redact)
{
    struct result result;
    bool first = true;

    (void)fputc('[', to);
    for (uint32_t at = 0; results_next(bytes, used, &at, &result);) {
        (void)fprintf(to, "%s{\"hook\":%u,\"kind\":%u,\"key\":", first ? "" : ",", result.hook,
                      result.kind);
        first = false;
        put_bytes(to, result.key, strlen(result.key));
        (void)fputs(",\"value\":", to);
        if (redact)
            (void)fputs("\"***\"", to);
        else
            put_bytes(to, result.value, result.value_length);
        (void)fputc('}', to);
    }
    (void)fputc(']', to);
}

static void put_shape(FILE *to, const struct shape *shape, const void *base, bool redact)
{
    const char *comma = "";

    (void)fputc('{', to);
    for (uint16_t i = 0; i < shape->fields_count; i++) {
        const struct field *field = &shape->fields[i];
        if (field->kind == VALUE_PAD)
            continue;
        (void)fprintf(to, "%s\"%s\":", comma, field->name);
        put_value(to, field, base);
        comma = ",";
    }
    for (uint16_t i = 0; i < shape->parts_count; i++) {
        const struct part *part = &shape->parts[i];
        const uint8_t *at = (const uint8_t *)base + part->offset;
        uint32_t length = shape_part_length(part, base);

        (void)fprintf(to, "%s\"%s\":", comma, part->name);
        comma = ",";
        if (part->count == PART_RESULTS) {
            put_results(to, at, length, redact);
        } else if (part->count == PART_ONE) {
            put_shape(to, part->shape, at, redact);
        } else {
            (void)fputc('[', to);
            for (uint32_t k = 0; k < length; k++, at += part->shape->size) {
                if (k > 0)
                    (void)fputc(',', to);
                put_shape(to, part->shape, at, redact);
            }
            (void)fputc(']', to);
        }
    }
    (void)fputc('}', to);
}

static void put_lanes(FILE *to, const struct machine *record)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)record->kind);
    const char *comma = "";

    (void)fputc('[', to);
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        if (record->lane_ticket[lane] == 0 && record->lane_effect[lane] == 0)
            continue;
        (void)fprintf(to, "%s{\"lane\":\"%s\",\"ticket\":%u", comma,
                      fsm_lane_name((enum fsm_lane)lane), record->lane_ticket[lane]);
        if (record->lane_effect[lane] != 0)
            (void)fprintf(to, ",\"awaits\":\"%s\"",
                          fsm_effect_name(def, record->lane_effect[lane]));
        (void)fputc('}', to);
        comma = ",";
    }
    (void)fputc(']', to);
}

void inspect_json_record(FILE *to, const struct machine_id *id, const struct machine *record,
                         bool redact)
{
    enum machine_kind kind = (enum machine_kind)record->kind;

    (void)fprintf(to, "{\"kind\":\"%s\",\"id\":", machine_kind_name(kind));
    inspect_json_string(to, id->text);
    (void)fprintf(
        to, ",\"state\":\"%s\",\"head\":", fsm_state_name(fsm_definition(kind), record->state));
    put_shape(to, shape_of_head(), record, redact);
    (void)fputs(",\"lanes\":", to);
    put_lanes(to, record);
    (void)fputs(",\"record\":", to);
    put_shape(to, shape_of_record(kind), record, redact);
    (void)fputc('}', to);
}

void inspect_json_event(FILE *to, const struct journal_event *event, bool redact)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)event->id.kind);
    uint8_t guard = def->rows[event->row].guard;
    const struct shape *payload =
        shape_of_payload((enum fsm_payload)def->events[event->event.kind].payload);
    char when[TIME_TEXT_SIZE];

    inspect_print_time(event->unix_ns, when);
    (void)fputs("{\"sequence\":", to);
    put_u64(to, event->sequence);
    (void)fputs(",\"turn\":", to);
    put_u64(to, event->turn);
    (void)fprintf(to, ",\"time\":\"%s\",\"unix_ns\":%" PRId64 ",\"now_ms\":", when, event->unix_ns);
    put_u64(to, event->now_ms);
    (void)fprintf(to,
                  ",\"seed\":\"%016" PRIx64 "\",\"peers\":%u,\"kind\":\"%s\",\"id\":", event->seed,
                  event->peers, def->name);
    inspect_json_string(to, event->id.text);
    (void)fprintf(to, ",\"event\":\"%s\"", fsm_event_name(def, event->event.kind));
    (void)fprintf(to, ",\"lane\":%u,\"ticket\":%u,\"generation\":%u", event->event.lane,
                  event->event.ticket, event->event.generation);
    if (fsm_guard_mark(def, guard) == event->guard)
        (void)fprintf(to, ",\"guard\":\"%s\"", fsm_guard_name(def, guard));
    else
        (void)fprintf(to, ",\"guard\":%u", event->guard); /* of another version */
    (void)fprintf(to, ",\"before\":\"%s\",\"after\":\"%s\",\"issues\":[",
                  fsm_state_name(def, event->before), fsm_state_name(def, event->after));
    for (uint8_t i = 0; i < event->issues_count; i++)
        (void)fprintf(to, "%s{\"effect\":\"%s\",\"lane\":\"%s\",\"ticket\":%u}", i > 0 ? "," : "",
                      fsm_effect_name(def, event->issues[i].effect),
                      fsm_lane_name((enum fsm_lane)event->issues[i].lane), event->issues[i].ticket);
    (void)fprintf(to, "],\"digest\":\"%016" PRIx64 "\"", event->digest);
    if (payload != NULL && event->event.payload != NULL) {
        (void)fputs(",\"payload\":", to);
        put_shape(to, payload, event->event.payload, redact);
    }
    (void)fputc('}', to);
}
