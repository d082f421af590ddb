/* What was known of drivers, over restarts and when it is damaged. */
#include "agent/node/health.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct {
    char meta[8192]; /* "": there is none */
    unsigned put_aside;
    char said[256];
} shelf;

static int meta_read(void *ctx, const char *name, char **ret_bytes, size_t *ret_length,
                     struct err *err)
{
    (void)ctx;
    assert_string_equal(name, "drivers");
    if (shelf.meta[0] == '\0')
        return err_set(err, ERR_GONE, "there is none");
    *ret_bytes = strdup(shelf.meta);
    *ret_length = strlen(shelf.meta);
    return 0;
}

static int put_aside(void *ctx, const char *table, const char *name, const char *reason,
                     int64_t unix_ns, struct err *err)
{
    (void)ctx;
    (void)reason;
    (void)unix_ns;
    (void)err;
    assert_string_equal(table, "meta");
    assert_string_equal(name, "drivers");
    shelf.put_aside++;
    return 0;
}

static void line(void *ctx, enum say_level level, const char *room, const char *text)
{
    (void)ctx;
    (void)level;
    (void)room;
    (void)text_copy(shelf.said, sizeof(shelf.said), text); /* a cut one is enough */
}

static int commit(void *ctx, const struct journal_batch *batch, struct err *err)
{
    (void)ctx;
    (void)err;
    for (size_t i = 0; i < batch->metas_count; i++) {
        assert_string_equal(batch->metas[i].key, "drivers");
        assert_true(batch->metas[i].length < sizeof(shelf.meta));
        memcpy(shelf.meta, batch->metas[i].bytes, batch->metas[i].length);
        shelf.meta[batch->metas[i].length] = '\0';
    }
    return 0;
}

static void perform(void *ctx, const struct effect *effect)
{
    (void)ctx;
    (void)effect;
}

static struct health begin(void)
{
    const struct store store = {.meta_read = meta_read, .quarantine = put_aside};
    const struct say say = {line, NULL};
    struct health health;
    struct err err;

    assert_int_equal(health_read(&health, &store, &say, 1, &err), 0);
    return health;
}

/* One daemon sees DRIVER at NOW; what the node's events are then. */
static size_t see(const struct driver_info *driver, int64_t now, int64_t *ret_since)
{
    const struct world world = {.commit = commit, .perform = perform};
    struct core *core = core_new(&world);
    struct health health = begin();
    struct err err;

    core_restore(core, true, false);
    health_note(&health, core, driver, 1, now);
    assert_int_equal(core_turn(core, 1, now, 1, &err), 0);
    *ret_since = health_since(&health, driver);
    size_t events = json_array_size(json_object_get(health.json, "events"));
    health_free(&health);
    core_free(core);
    return events;
}

static int forget(void **state)
{
    (void)state;
    memset(&shelf, 0, sizeof(shelf));
    return 0;
}

static void test_what_makes_no_sense_is_put_aside_and_begun_anew(void **state)
{
    static const char *const damaged[] = {
        "{",
        "[]",
        "{}",
        "{\"drivers\":{},\"events\":{}}",
        "{\"drivers\":{\"exec\":{\"detected\":1}},\"events\":[]}",
        "{\"drivers\":{},\"events\":[{\"time\":\"x\"}]}",
        "{\"drivers\":{},\"events\":[],\"heard\":\"x\"}",
    };
    const struct driver_info exec = {
        .name = "exec", .asked = true, .detected = true, .since_unix_ns = 7};
    int64_t since;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(damaged); i++) {
        (void)text_copy(shelf.meta, sizeof(shelf.meta), damaged[i]); /* fits */
        assert_int_equal(see(&exec, 9, &since), 0);
        assert_int_equal(shelf.put_aside, i + 1);
        assert_non_null(strstr(shelf.said, "quarantine"));
        assert_int_equal(since, 7);
    }
}

static void test_the_first_look_is_no_event_and_the_next_daemon_knows_since_when(void **state)
{
    struct driver_info exec = {
        .name = "exec", .asked = true, .detected = true, .healthy = true, .description = "Healthy"};
    const struct driver_info asking = {.name = "exec", .description = "not known yet"};
    int64_t since;

    (void)state;
    exec.since_unix_ns = 100;
    assert_int_equal(see(&exec, 100, &since), 0);
    exec.since_unix_ns = 200; /* that daemon has looked for the first time */
    assert_int_equal(see(&exec, 200, &since), 0);
    assert_int_equal(since, 100);
    assert_int_equal(see(&asking, 250, &since), 0); /* is no answer */
    exec.healthy = false;
    (void)text_copy(exec.description, sizeof(exec.description), "gone"); /* fits */
    exec.since_unix_ns = 300;
    assert_int_equal(see(&exec, 300, &since), 1);
    assert_int_equal(since, 300);
}

static void test_the_last_ten_changes_are_kept(void **state)
{
    struct driver_info exec = {.name = "exec", .asked = true, .detected = true};
    int64_t since;
    size_t events = 0;

    (void)state;
    for (int i = 0; i < 15; i++) {
        exec.healthy = !exec.healthy;
        events = see(&exec, 100 + i, &since);
    }
    assert_int_equal(events, 10);
    assert_null(strstr(shelf.meta, "\"time\":104}"));
    assert_non_null(strstr(shelf.meta, "\"time\":105}"));
}

/* One daemon notes what became of a volume at NOW; the events then. */
static json_t *note(const char *volume, const char *message, const char *error, int64_t now)
{
    const struct world world = {.commit = commit, .perform = perform};
    struct core *core = core_new(&world);
    struct health health = begin();
    struct err err;

    core_restore(core, true, false);
    health_note_volume(&health, volume, message, error, now);
    health_tell(&health, core);
    assert_int_equal(core_turn(core, 1, now, 1, &err), 0);
    json_t *events = json_incref(json_object_get(health.json, "events"));
    health_free(&health);
    core_free(core);
    return events;
}

/* How many events servers have not heard of, as the next daemon knows it; HEARD: they hear of all.
 */
static size_t unheard(bool heard)
{
    const struct world world = {.commit = commit, .perform = perform};
    struct core *core = core_new(&world);
    struct health health = begin();
    int64_t until;
    struct err err;
    json_t *events = health_unheard(&health, &until);
    size_t count = json_array_size(events);

    json_decref(events);
    core_restore(core, true, false);
    if (heard)
        health_heard(&health, core, until);
    assert_int_equal(core_turn(core, 1, 1, 1, &err), 0);
    health_free(&health);
    core_free(core);
    return count;
}

static void test_what_servers_have_heard_of_outlives_the_daemon(void **state)
{
    (void)state;
    assert_int_equal(unheard(true), 0);
    json_decref(note("disk", "Mount volume", "", 5));
    json_decref(note("disk", "Unmount volume", "", 6));
    assert_int_equal(unheard(false), 2);
    assert_int_equal(unheard(true), 2);
    assert_int_equal(unheard(false), 0);
    json_decref(note("disk", "Mount volume", "it hangs", 7));
    assert_int_equal(unheard(false), 1);
}

static void test_what_becomes_of_volumes_is_kept_and_told_once(void **state)
{
    (void)state;
    json_decref(note("disk", "Mount volume", "", 1));
    json_decref(note("disk", "Unmount volume", "it hangs", 2));
    json_t *events = note("disk", "Unmount volume", "it hangs", 3);
    assert_int_equal(json_array_size(events), 2);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(events, 1), "time")), 3);
    json_decref(events);
    events = note("disk", "Unmount volume", "", 4);
    assert_int_equal(json_array_size(events), 3);
    assert_string_equal(json_string_value(json_object_get(json_array_get(events, 1), "error")),
                        "it hangs");
    json_decref(events);
    for (int64_t now = 5; now < 20; now++) {
        char name[8];
        assert_true(text_format(name, sizeof(name), "d%d", (int)now));
        json_decref(note(name, "Mount volume", "", now));
    }
    events = note("\xff", "Mount volume", "", 20); /* no text: nothing */
    assert_int_equal(json_array_size(events), 10);
    assert_string_equal(json_string_value(json_object_get(json_array_get(events, 9), "volume")),
                        "d19");
    json_decref(events);
}

/* The errors of all events, newest last, after a plugin has said TEXT of the disk at NOW_S. */
static void hear(struct health *health, bool abnormal, const char *text, int64_t now_s,
                 const char *expected)
{
    char errors[200] = "";
    json_t *event;
    size_t i;

    health_note_condition(health, "disk", abnormal, text, now_s * 1000000000);
    json_array_foreach(json_object_get(health->json, "events"), i, event)
    {
        assert_true(text_append(errors, sizeof(errors),
                                json_string_value(json_object_get(event, "error"))));
        assert_true(text_append(errors, sizeof(errors), ";"));
    }
    assert_string_equal(errors, expected);
}

/* Each is a write; so whoever asks often writes once a minute, whatever the plugin says. */
static void test_words_that_change_are_told_once_a_minute(void **state)
{
    struct health health = begin();

    (void)state;
    hear(&health, false, "fine", 100, "");
    hear(&health, true, "9 % free", 100, "9 % free;");
    health.untold = false;
    hear(&health, true, "8 % free", 101, "9 % free;");
    hear(&health, true, "7 % free", 159, "9 % free;");
    assert_false(health.untold);
    hear(&health, true, "6 % free", 160, "9 % free;6 % free;");
    hear(&health, false, "fine", 161, "9 % free;6 % free;;"); /* that is news at once */
    hear(&health, false, "better", 500, "9 % free;6 % free;;");
    hear(&health, true, "5 % free", 501, "9 % free;6 % free;;5 % free;");
    hear(&health, true, "4 % free", 400,
         "9 % free;6 % free;;5 % free;4 % free;"); /* clock put back */
    health_free(&health);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_what_makes_no_sense_is_put_aside_and_begun_anew, forget),
        cmocka_unit_test_setup(test_the_first_look_is_no_event_and_the_next_daemon_knows_since_when,
                               forget),
        cmocka_unit_test_setup(test_the_last_ten_changes_are_kept, forget),
        cmocka_unit_test_setup(test_what_servers_have_heard_of_outlives_the_daemon, forget),
        cmocka_unit_test_setup(test_what_becomes_of_volumes_is_kept_and_told_once, forget),
        cmocka_unit_test_setup(test_words_that_change_are_told_once_a_minute, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
