/* verify finds what was forged: journals are exported, one line is changed, the rest is imported
 * again, so that every entry carries a valid check and only stepping can find the lie. */
#include "test/inspect/inspecting.h"

#include "core/retention.h"

#define WEB "a1000001-0000-4000-8000-000000000001/web"

/* --- what is right --- */

static void test_verify_true_journal_is_ok(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(run(inspecting, "verify -dir @/journal"), 0);
    assert_string_equal(inspecting->out, "ok: 63 events, 1 to 63, 5 machines\n");
    assert_int_equal(run(inspecting, "verify -dir @/journal -json"), 0);
    assert_string_equal(inspecting->out,
                        "{\"verdict\":\"ok\",\"events\":63,\"first\":1,\"last\":63,"
                        "\"machines\":5,\"bad\":0,\"notes\":0,\"unchecked\":0}\n");
}

static bool change_nothing(json_t *line, void *ctx)
{
    (void)line;
    (void)ctx;
    return true;
}

static void test_verify_import_of_an_export_is_ok(void **state)
{
    struct inspecting *inspecting = *state;

    forge(inspecting, change_nothing, NULL);
    assert_int_equal(run(inspecting, "verify -dir @/forged"), 0);
}

/* --- forged events --- */

static bool is_event(const json_t *line, json_int_t sequence)
{
    return line_is(line, "log") &&
           json_integer_value(json_object_get(entry_of(line), "sequence")) == sequence;
}

/* One finding of NAME, about EVENT; machines that have nothing to do with it stay clean. */
static void assert_finding(struct inspecting *inspecting, const char *name, const char *where)
{
    char head[64];

    assert_int_equal(run(inspecting, "verify -dir @/forged"), 1);
    (void)text_format(head, sizeof(head), "WRONG %s: ", name);
    assert_has(inspecting->out, head);
    const char *at = strstr(inspecting->out, head);
    const char *line = strstr(at, "  where  ");
    assert_non_null(line);
    if (strncmp(line + strlen("  where  "), where, strlen(where)) != 0)
        fail_msg("\"%s\" is not where it was found:\n%s", where, inspecting->out);
    assert_has(at, "  costs  ");
    assert_has(at, "  do     ");
}

static bool change_digest(json_t *line, void *ctx)
{
    (void)ctx;
    if (is_event(line, 23))
        json_object_set_new(entry_of(line), "digest", json_string("0123456789abcdef"));
    return true;
}

static void test_verify_changed_digest_is_found(void **state)
{
    struct inspecting *inspecting = *state;

    forge(inspecting, change_digest, NULL);
    assert_finding(inspecting, "DIGEST", "event 23, task " WEB " RUNNING -EXITED-> REAPING");
    assert_has(inspecting->out, "0123456789abcdef stored");
    assert_has(inspecting->out, "; 1 wrong; 11 events behind what is wrong were not checked\n");
}

static bool swap_row(json_t *line, void *ctx)
{
    json_t *entry = entry_of(line);

    (void)ctx;
    if (is_event(line, 23))
        json_object_set_new(entry, "guard", json_string("KILL_WANTED"));
    return true;
}

static void test_verify_swapped_row_is_found(void **state)
{
    struct inspecting *inspecting = *state;

    forge(inspecting, swap_row, NULL);
    assert_finding(inspecting, "OTHER_ROW", "event 23, ");
}

static bool change_payload(json_t *line, void *ctx)
{
    (void)ctx;
    if (is_event(line, 23))
        json_object_set_new(json_object_get(entry_of(line), "payload"), "code", json_integer(7));
    return true;
}

static void test_verify_changed_payload_is_found(void **state)
{
    struct inspecting *inspecting = *state;

    forge(inspecting, change_payload, NULL);
    assert_finding(inspecting, "DIGEST", "event 23, ");
}

static bool change_kind_of_event(json_t *line, void *ctx)
{
    json_t *entry = entry_of(line);

    (void)ctx;
    if (is_event(line, 23)) {
        json_object_set_new(entry, "event", json_string("REAPED"));
        json_object_del(entry, "payload");
    }
    return true;
}

static void test_verify_impossible_event_is_found(void **state)
{
    struct inspecting *inspecting = *state;

    forge(inspecting, change_kind_of_event, NULL);
    assert_finding(inspecting, "NO_ROW", "event 23, ");
}

/* A member that the alloc does not have breaks an assertion of the rules; the tool goes on. */
static bool change_member(json_t *line, void *ctx)
{
    json_t *payload = json_object_get(entry_of(line), "payload");

    (void)ctx;
    if (is_event(line, 24))
        json_object_set_new(payload, "name", json_string("nobody"));
    return true;
}

static void test_verify_event_that_breaks_an_assertion_is_a_finding(void **state)
{
    struct inspecting *inspecting = *state;

    forge(inspecting, change_member, NULL);
    assert_finding(inspecting, "ASSERTION", "event 24, alloc ");
    assert_has(inspecting->out, "member != NULL");
    assert_has(inspecting->out, "; 1 wrong; ");
    assert_int_equal(run(inspecting, "at 40 -dir @/forged"), 1);
    assert_has(inspecting->complain, "event 24 cannot be stepped");
}

static bool turn_back_time(json_t *line, void *ctx)
{
    (void)ctx;
    if (is_event(line, 63))
        json_object_set_new(entry_of(line), "turn", json_integer(1));
    return true;
}

static void test_verify_turn_that_goes_back_is_found(void **state)
{
    struct inspecting *inspecting = *state;

    forge(inspecting, turn_back_time, NULL);
    assert_finding(inspecting, "TIME_BACK", "event 63");
}

/* --- missing events --- */

static bool drop_event(json_t *line, void *ctx)
{
    const json_int_t *sequence = ctx;

    return !is_event(line, *sequence);
}

static void test_verify_removed_event_is_found(void **state)
{
    struct inspecting *inspecting = *state;
    json_int_t sequence = 23;

    forge(inspecting, drop_event, &sequence);
    assert_finding(inspecting, "GAP", "table log, behind entry 22");
    assert_has(inspecting->out, "23 to 23 are not there");
    assert_finding(inspecting, "NO_ROW", "event 25, task " WEB);
    assert_has(inspecting->out, "perhaps because an event before it, as 23, is not there");
}

static void test_verify_removed_last_event_is_found(void **state)
{
    struct inspecting *inspecting = *state;
    json_int_t sequence = 63;

    forge(inspecting, drop_event, &sequence);
    assert_finding(inspecting, "GAP", "table log, behind entry 62");
    assert_finding(inspecting, "STATE_DIFFERS", "alloc a1000001");
    assert_has(inspecting->out, "state: POSTRUN by its history, TERMINAL stored");
}

/* --- forged records --- */

static bool is_record(const json_t *line, const char *table, const char *id)
{
    return line_is(line, table) && text_equal(text_of(entry_of(line), "id"), id);
}

static bool change_record(json_t *line, void *ctx)
{
    (void)ctx;
    if (is_record(line, "state", WEB))
        json_object_set_new(json_object_get(entry_of(line), "record"), "restarts",
                            json_integer(99));
    return true;
}

static void test_verify_changed_record_is_found_with_its_field(void **state)
{
    struct inspecting *inspecting = *state;

    forge(inspecting, change_record, NULL);
    assert_finding(inspecting, "STATE_DIFFERS", "task " WEB);
    assert_has(inspecting->out, "  found  restarts: 1 by its history, 99 stored\n");
    assert_has(inspecting->out, "; 1 wrong\n");
}

static bool drop_record(json_t *line, void *ctx)
{
    return !is_record(line, "state", ctx);
}

static void test_verify_removed_record_is_found(void **state)
{
    struct inspecting *inspecting = *state;
    char id[] = WEB;

    forge(inspecting, drop_record, id);
    assert_finding(inspecting, "STATE_MISSING", "task " WEB);
    assert_has(inspecting->out, "it should be in state DEAD");
}

static void test_verify_orphans_are_found(void **state)
{
    struct inspecting *inspecting = *state;
    char id[] = "a1000001-0000-4000-8000-000000000001";

    forge(inspecting, drop_record, id);
    assert_finding(inspecting, "ORPHAN", "task a1000001-0000-4000-8000-000000000001/side");
    assert_finding(inspecting, "STATE_MISSING", "alloc a1000001");
    assert_has(inspecting->out, "note STRAY_SPEC: ");
}

static bool drop_history(json_t *line, void *ctx)
{
    return !is_record(line, "log", ctx);
}

static void test_verify_record_without_history_is_found(void **state)
{
    struct inspecting *inspecting = *state;
    char id[] = WEB;

    forge(inspecting, drop_history, id);
    assert_finding(inspecting, "STATE_STRAY", "task " WEB);
}

/* --- records that contradict each other --- */

/* It has not failed, as its alloc was told. */
static bool fail_task(json_t *line, void *ctx)
{
    json_t *record = json_object_get(entry_of(line), "record");

    if (is_record(line, "state", ctx))
        json_object_set_new(record, "failed", json_integer(1));
    return true;
}

static void test_verify_task_that_its_alloc_knows_otherwise_is_found(void **state)
{
    struct inspecting *inspecting = *state;
    char id[] = WEB;

    forge(inspecting, fail_task, id);
    assert_finding(inspecting, "CONTRADICTION", "task " WEB);
    assert_has(inspecting->out, "its alloc was told another outcome; the alloc's is believed\n");
    assert_has(inspecting->out, "; 2 wrong\n"); /* nor is it what its events give */
    assert_int_equal(run(inspecting, "verify -dir @/forged -json"), 1);
    const char *line = line_with(inspecting->out, "{\"finding\":\"CONTRADICTION\"");
    assert_has(line, "\"bad\":true");
    assert_has(line, "\"kind\":\"task\",\"id\":\"" WEB "\"");
}

/* --- a live node: members and specs --- */

static int make_live(void **state)
{
    struct inspecting *inspecting;
    struct small_node node;

    (void)inspecting_make(state);
    inspecting = *state;
    small_open(&node, inspecting->journal);
    small_place(&node, 1, "web side", false);
    small_turns(&node);
    small_close(&node);
    return 0;
}

static void test_verify_lost_member_of_a_live_alloc_is_found(void **state)
{
    struct inspecting *inspecting = *state;
    char id[] = WEB;

    forge(inspecting, drop_record, id);
    assert_finding(inspecting, "LOST_MEMBER", "alloc a1000001");
    assert_has(inspecting->out, "task web has no record");
}

static bool drop_specs(json_t *line, void *ctx)
{
    (void)ctx;
    return !line_is(line, "spec");
}

static void test_verify_live_alloc_without_spec_is_found(void **state)
{
    struct inspecting *inspecting = *state;

    forge(inspecting, drop_specs, NULL);
    assert_finding(inspecting, "NO_SPEC", "alloc a1000001");
}

/* --- bases: a journal whose begin has been trimmed --- */

static struct retention *retention;

static int commit_trimmed(void *ctx, const struct journal_batch *batch, struct err *err)
{
    struct small_node *node = ctx;
    struct journal_batch whole = *batch;

    retention_extend(retention, &whole);
    int code = journal_commit(node->journal, &whole, err);
    retention_settle(retention);
    return code;
}

static int make_trimmed(void **state)
{
    struct inspecting *inspecting;
    struct small_node node;

    (void)inspecting_make(state);
    inspecting = *state;
    struct world world = {
        .ctx = &node,
        .commit = commit_trimmed,
        .perform = small_perform,
        .refuse = small_refuse,
    };
    small_open(&node, inspecting->journal);
    core_free(node.core);
    node.core = core_new(&world);
    struct store store = store_of_journal(node.journal);
    struct say nobody = {0};
    retention = retention_new(&store, &nobody);
    retention_limit(retention, 10);
    small_place(&node, 1, "web side", false);
    small_turns(&node);
    small_wait(&node, 1000);
    small_exit(&node, 1, "web", 1);
    small_turns(&node);
    small_wait(&node, 30000);
    retention_free(retention);
    small_close(&node);
    return 0;
}

static void test_verify_trimmed_journal_is_ok(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(run(inspecting, "verify -dir @/journal"), 0);
    assert_lacks(inspecting->out, ", 1 to ");
    assert_int_equal(run(inspecting, "at 1 -dir @/journal"), 1);
    assert_has(inspecting->complain, "earlier events are gone");
    forge(inspecting, change_nothing, NULL);
    assert_int_equal(run(inspecting, "verify -dir @/forged"), 0);
}

static bool drop_base(json_t *line, void *ctx)
{
    return !is_record(line, "base", ctx);
}

static void test_verify_missing_base_is_found(void **state)
{
    struct inspecting *inspecting = *state;
    char id[] = WEB;

    forge(inspecting, drop_base, id);
    assert_int_equal(run(inspecting, "verify -dir @/forged"), 1);
    assert_has(inspecting->out, "WRONG MISSING_BASE: ");
    assert_has(inspecting->out, "; 1 wrong; ");
}

/* --- what an earlier start put aside is a note --- */

static void test_verify_quarantine_is_a_note(void **state)
{
    struct inspecting *inspecting = *state;
    struct journal *journal;
    struct err err = {0};

    assert_int_equal(journal_open(inspecting->journal, JOURNAL_WRITE, &journal, &err), 0);
    assert_int_equal(journal_quarantine(journal, "spec",
                                        "alloc/a1000001-0000-4000-8000-000000000001", "no JSON",
                                        small_start_unix_ns, &err),
                     0);
    journal_close(journal);
    assert_int_equal(run(inspecting, "verify -dir @/journal"), 0);
    assert_has(inspecting->out, "note QUARANTINED: ");
    assert_has(inspecting->out, "; 1 notes\n");
}

/* A start that put a record aside and ended before its first turn was committed. */
static void test_verify_member_in_quarantine_is_a_note(void **state)
{
    struct inspecting *inspecting = *state;
    struct journal *journal;
    struct err err = {0};

    assert_int_equal(journal_open(inspecting->journal, JOURNAL_WRITE, &journal, &err), 0);
    assert_int_equal(
        journal_quarantine(journal, "state", "task/" WEB, "torn", small_start_unix_ns, &err), 0);
    journal_close(journal);
    assert_int_equal(run(inspecting, "verify -dir @/journal"), 0);
    assert_has(inspecting->out, "note MEMBER_ASIDE: ");
}

#define STORY(test) cmocka_unit_test_setup_teardown(test, inspecting_make_story, inspecting_remove)
#define LIVE(test) cmocka_unit_test_setup_teardown(test, make_live, inspecting_remove)
#define TRIMMED(test) cmocka_unit_test_setup_teardown(test, make_trimmed, inspecting_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(test_verify_true_journal_is_ok),
        STORY(test_verify_import_of_an_export_is_ok),
        STORY(test_verify_changed_digest_is_found),
        STORY(test_verify_swapped_row_is_found),
        STORY(test_verify_changed_payload_is_found),
        STORY(test_verify_impossible_event_is_found),
        STORY(test_verify_event_that_breaks_an_assertion_is_a_finding),
        STORY(test_verify_turn_that_goes_back_is_found),
        STORY(test_verify_removed_event_is_found),
        STORY(test_verify_removed_last_event_is_found),
        STORY(test_verify_changed_record_is_found_with_its_field),
        STORY(test_verify_removed_record_is_found),
        STORY(test_verify_orphans_are_found),
        STORY(test_verify_record_without_history_is_found),
        STORY(test_verify_task_that_its_alloc_knows_otherwise_is_found),
        LIVE(test_verify_lost_member_of_a_live_alloc_is_found),
        LIVE(test_verify_member_in_quarantine_is_a_note),
        LIVE(test_verify_live_alloc_without_spec_is_found),
        TRIMMED(test_verify_trimmed_journal_is_ok),
        TRIMMED(test_verify_missing_base_is_found),
        STORY(test_verify_quarantine_is_a_note),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
