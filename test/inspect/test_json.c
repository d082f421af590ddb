/* Every field of every list comes back from JSON as it was, and is seen by the comparison: over
 * records and events made from seeds (test/journal/make.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "inspect/fields.h"
#include "test/journal/make.h"

enum { RECORDS_A_KIND = 60, EVENTS_A_KIND = 12 };

static void *room(size_t size)
{
    void *bytes = calloc(1, size);

    assert_non_null(bytes);
    return bytes;
}

static json_t *load(const char *text)
{
    json_error_t where;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &where);

    if (json == NULL)
        fail_msg("%s at column %d of %s", where.text, where.column, text);
    return json;
}

static void expect_record(const struct machine_id *id, const struct machine *record)
{
    struct machine *again = room(FSM_RECORD_BYTES_MAX);
    struct machine_id found;
    struct err err = {0};
    char *text;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    assert_non_null(to);
    inspect_json_record(to, id, record, false);
    assert_int_equal(fclose(to), 0);
    json_t *json = load(text);
    if (inspect_read_record(json, &found, again, &err) < 0)
        fail_msg("%s: %s", err.text, text);
    assert_true(machine_id_equal(&found, id));
    assert_memory_equal(again, record, FSM_RECORD_BYTES_MAX);
    json_decref(json);
    free(text);
    free(again);
}

static void test_record_comes_back_from_json_as_it_was(void **state)
{
    struct rng rng = rng_init(1);
    struct machine *record = room(FSM_RECORD_BYTES_MAX);

    (void)state;
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
        struct machine_id id = machine_id_make(
            (enum machine_kind)kind, kind == MACHINE_ALLOC ? "some" : "some/\"thing\" <else>");
        for (int i = 0; i < RECORDS_A_KIND; i++) {
            make_record(&rng, (enum machine_kind)kind, record);
            expect_record(&id, record);
        }
    }
    free(record);
}

static void expect_event(const struct journal_event *event, const void *payload)
{
    void *again = room(FSM_PAYLOAD_BYTES_MAX);
    struct journal_event found;
    struct err err = {0};
    char *text;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    assert_non_null(to);
    inspect_json_event(to, event, false);
    assert_int_equal(fclose(to), 0);
    json_t *json = load(text);
    if (inspect_read_event(json, &found, again, &err) < 0)
        fail_msg("%s: %s", err.text, text);
    assert_memory_equal(again, payload, FSM_PAYLOAD_BYTES_MAX);
    assert_int_equal(found.event.payload != NULL, event->event.payload != NULL);
    found.event.payload = event->event.payload;
    assert_memory_equal(&found, event, sizeof(found));
    json_decref(json);
    free(text);
    free(again);
}

static void test_event_of_every_kind_comes_back_from_json_as_it_was(void **state)
{
    struct rng rng = rng_init(2);
    void *payload = room(FSM_PAYLOAD_BYTES_MAX);
    struct journal_event event;

    (void)state;
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
        const struct fsm_def *def = fsm_definition((enum machine_kind)kind);
        for (uint8_t number = 0; number < def->events_count; number++) {
            for (int i = 0; i < EVENTS_A_KIND; i++) {
                make_event(&rng, rng_next(&rng), (enum machine_kind)kind, number, payload, &event);
                expect_event(&event, payload);
            }
        }
    }
    free(payload);
}

/* --- comparing --- */

static void count(void *ctx, const char *path, const char *before, const char *after)
{
    size_t *differences = ctx;

    assert_non_null(path);
    assert_true(before != NULL || after != NULL);
    (*differences)++;
}

static void test_equal_records_have_no_differences(void **state)
{
    struct rng rng = rng_init(3);
    struct machine *record = room(FSM_RECORD_BYTES_MAX);
    size_t differences = 0;

    (void)state;
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
        make_record(&rng, (enum machine_kind)kind, record);
        inspect_compare(record, record, false, count, &differences);
    }
    assert_int_equal(differences, 0);
    free(record);
}

/* Each field on its own: changed, it is the one difference. */
static void expect_difference(struct machine *record, const struct shape *shape)
{
    struct machine *changed = room(FSM_RECORD_BYTES_MAX);

    for (uint16_t i = 0; i < shape->fields_count; i++) {
        const struct field *field = &shape->fields[i];
        size_t differences = 0;
        if (field->kind == VALUE_PAD || text_equal(field->name, "events_count"))
            continue;
        memcpy(changed, record, FSM_RECORD_BYTES_MAX);
        uint8_t *at = (uint8_t *)changed + field->offset;
        *at = field->kind == VALUE_TEXT && *at == 'a' ? 'b'
              : field->kind == VALUE_TEXT             ? 'a'
                                                      : (uint8_t)(*at ^ 1u);
        inspect_compare(record, changed, false, count, &differences);
        if (differences != 1)
            fail_msg("%s.%s: %zu differences", shape->name, field->name, differences);
    }
    free(changed);
}

static void test_each_changed_field_is_one_difference(void **state)
{
    struct rng rng = rng_init(4);
    struct machine *record = room(FSM_RECORD_BYTES_MAX);

    (void)state;
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
        make_record(&rng, (enum machine_kind)kind, record);
        expect_difference(record, shape_of_record((enum machine_kind)kind));
        expect_difference(record, shape_of_head());
    }
    free(record);
}

/* --- what JSON must not say --- */

static void test_json_of_no_event_is_refused(void **state)
{
    static const char *const texts[] = {
        "{}",
        "{\"kind\":\"task\"}",
        "{\"kind\":\"task\",\"id\":\"\"}",
        "{\"kind\":\"task\",\"id\":\"a/b\",\"sequence\":\"many\"}",
        "{\"kind\":\"task\",\"id\":\"a/b\",\"sequence\":-1}",
        "[1,2]",
    };
    void *payload = room(FSM_PAYLOAD_BYTES_MAX);
    struct journal_event event;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct err err = {0};
        json_t *json = load(texts[i]);
        assert_int_equal(inspect_read_event(json, &event, payload, &err), ERR_INVALID);
        assert_true(err.text[0] != '\0');
        json_decref(json);
    }
    free(payload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_record_comes_back_from_json_as_it_was),
        cmocka_unit_test(test_event_of_every_kind_comes_back_from_json_as_it_was),
        cmocka_unit_test(test_equal_records_have_no_differences),
        cmocka_unit_test(test_each_changed_field_is_one_difference),
        cmocka_unit_test(test_json_of_no_event_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
