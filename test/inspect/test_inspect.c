/* The inspector on the journal of one story (test/core/small_node.h): what it prints, what it
 * refuses, that secrets stay hidden. */
#include "test/inspect/inspecting.h"

#include <sys/wait.h>

#define WEB "a1000001-0000-4000-8000-000000000001/web"

/* --- list --- */

static void test_list_names_every_machine_once(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(run(inspecting, "list -dir @/journal"), 0);
    assert_int_equal(count_lines(inspecting->out), 1 + 5);
    assert_has(line_with(inspecting->out, "a1000001/web"), "DEAD");
    assert_has(line_with(inspecting->out, "a1000001/web"), "raw_exec exit 143 restarts 1");
    assert_has(line_with(inspecting->out, "sums.front[2]"), "TERMINAL");
    assert_has(line_with(inspecting->out, "sums.front[2]"), "complete");
}

static void test_list_filters_hold_together(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(run(inspecting, "list -dir @/journal -kind task -alloc a1000001"), 0);
    assert_int_equal(count_lines(inspecting->out), 1 + 2);
    assert_int_equal(run(inspecting, "list -dir @/journal -state TERMINAL"), 0);
    assert_int_equal(count_lines(inspecting->out), 1 + 2);
    assert_int_equal(run(inspecting, "list -dir @/journal -state RUNNING"), 0);
    assert_string_equal(inspecting->out, "no machines\n");
    assert_int_equal(run(inspecting, "list -dir @/journal -age 876000h"), 0);
    assert_string_equal(inspecting->out, "no machines\n");
}

static void test_list_json_is_one_object_a_line_without_secrets(void **state)
{
    struct inspecting *inspecting = *state;
    char *rest;

    assert_int_equal(run(inspecting, "list -dir @/journal -json"), 0);
    assert_int_equal(count_lines(inspecting->out), 5);
    assert_lacks(inspecting->out, "s3cret");
    rest = inspecting->out;
    for (char *line = strsep(&rest, "\n"); line != NULL && *line != '\0';
         line = strsep(&rest, "\n")) {
        json_t *json = json_loads(line, 0, NULL);
        assert_non_null(json);
        assert_true(json_is_object(json_object_get(json, "record")));
        json_decref(json);
    }
    assert_int_equal(run(inspecting, "list -dir @/journal -json -reveal"), 0);
    assert_has(inspecting->out, "s3cret");
}

/* --- show --- */

static void test_show_prints_record_and_history(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(run(inspecting, "show a1000001/we -dir @/journal"), 0);
    assert_has(inspecting->out, "task " WEB "\n");
    assert_has(line_with(inspecting->out, "define.restart_delay_ms"), "15000");
    assert_has(line_with(inspecting->out, "restart_count"), "1");
    assert_has(line_with(inspecting->out, "results.1.env.TOKEN"), "***");
    assert_has(inspecting->out, "ABSENT -DEFINE-> WAITING\n");
    assert_has(inspecting->out, "RUNNING -RESTORE-> RECOVERING +DRIVER_RECOVER\n");
    assert_lacks(inspecting->out, "s3cret");
    assert_lacks(inspecting->out, "remove_wanted");
    assert_int_equal(run(inspecting, "show a1000001/web -dir @/journal -all -reveal"), 0);
    assert_has(line_with(inspecting->out, "remove_wanted"), "    # its alloc is gone");
    assert_has(inspecting->out, "s3cret");
}

static void test_show_alloc_prints_its_spec_without_secrets(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(run(inspecting, "show a1000001 -dir @/journal"), 0);
    assert_has(inspecting->out, "\"PASSWORD\": \"***\"");
    assert_lacks(inspecting->out, "hunter2");
    assert_int_equal(run(inspecting, "show a1000001 -dir @/journal -json"), 0);
    json_t *json = json_loads(inspecting->out, 0, NULL);
    assert_non_null(json);
    assert_string_equal(text_of(json_object_get(json, "machine"), "state"), "TERMINAL");
    assert_true(json_array_size(json_object_get(json, "history")) > 5);
    json_decref(json);
    assert_has(inspecting->out, "\"EmbeddedTmpl\":\"***\"");
    assert_has(inspecting->out, "\"Authorization\":\"***\"");
    assert_lacks(inspecting->out, "hunter2");
}

static void test_show_unclear_name_is_refused(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(run(inspecting, "show a1 -dir @/journal"), 1);
    assert_has(inspecting->complain, "\"a1\" is the begin of");
    assert_int_equal(run(inspecting, "show nothing -dir @/journal"), 1);
    assert_has(inspecting->complain, "no machine \"nothing\"");
}

/* --- log --- */

static void test_log_filters_and_ranges(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(run(inspecting, "log -dir @/journal"), 0);
    assert_int_equal(count_lines(inspecting->out), 63);
    assert_int_equal(run(inspecting, "log -dir @/journal -event EXITED"), 0);
    assert_int_equal(count_lines(inspecting->out), 4);
    assert_int_equal(run(inspecting, "log -dir @/journal -since 10 -until 19"), 0);
    assert_int_equal(count_lines(inspecting->out), 10);
    assert_int_equal(run(inspecting, "log -dir @/journal -n 3"), 0);
    assert_int_equal(count_lines(inspecting->out), 3);
    assert_has(inspecting->out, "      63  2026-01-12T10:01:31.063Z  alloc");
    assert_int_equal(run(inspecting, "log -dir @/journal -kind task -state DEAD -json"), 0);
    assert_int_equal(count_lines(inspecting->out), 3);
    assert_lacks(inspecting->out, "s3cret");
}

static void test_log_takes_times_of_every_form(void **state)
{
    static const char *const since[] = {
        "2026-01-12T10:01:31Z", "2026-01-12T11:01:31+01:00", "10:01:31", "-64ms", "+89.997s",
    };
    struct inspecting *inspecting = *state;
    char line[160];

    for (size_t i = 0; i < COUNT_OF(since); i++) {
        (void)text_format(line, sizeof(line), "log -dir @/journal -since %s", since[i]);
        assert_int_equal(run(inspecting, line), 0);
        if (count_lines(inspecting->out) != 18)
            fail_msg("-since %s:\n%s", since[i], inspecting->out);
        assert_has(inspecting->out, "      46  2026-01-12T10:01:31.051Z");
    }
    assert_int_equal(run(inspecting, "log -dir @/journal -since yesterday"), 1);
    assert_has(inspecting->complain, "\"yesterday\" is neither");
}

/* One more alloc; the sequence of its last event. */
static uint64_t add_alloc(const char *path, unsigned number)
{
    struct small_node node;

    small_open(&node, path);
    node.now_ms += number * 1000;
    core_continue(node.core, journal_next_sequence(node.journal), number * 100);
    small_place(&node, number, "web", false);
    small_turns(&node);
    uint64_t last = journal_next_sequence(node.journal) - 1;
    small_close(&node);
    return last;
}

/* The reader goes on while another process writes, and ends at -until. */
static void test_log_follow_sees_what_is_added(void **state)
{
    struct inspecting *inspecting = *state;
    char path[192], until[24], byte = 0;
    int status, ready[2];

    uint64_t first = add_alloc(inspecting->journal, 1);
    (void)text_format(path, sizeof(path), "%s/followed", inspecting->path);
    (void)text_format(until, sizeof(until), "%llu", (unsigned long long)first * 2);
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct inspect_options options = {.out = fopen(path, "we"), .follow = true, .until = until};
        struct inspect *inspect;
        struct err err;
        (void)!write(ready[1], &byte, 1);
        if (options.out == NULL || inspect_open(inspecting->journal, &options, &inspect, &err) < 0)
            _exit(9);
        status = inspect_log(inspect, 0, &err) < 0 || fflush(options.out) != 0;
        _exit(status);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(add_alloc(inspecting->journal, 2), first * 2);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    char *text = read_text(path);
    assert_int_equal(count_lines(text), first * 2);
    assert_has(text, "a1000002");
    free(text);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

/* --- at, diff --- */

static void test_at_shows_the_node_as_it_was(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(run(inspecting, "at 23 -dir @/journal"), 0);
    assert_has(inspecting->out, "after event 23, 2026-01-12T10:00:03.018Z\n");
    assert_has(line_with(inspecting->out, "a1000001/web"), "REAPING");
    assert_has(line_with(inspecting->out, "a1000001/side"), "RUNNING");
    assert_int_equal(run(inspecting, "at 10:00:10 -dir @/journal -kind task"), 0);
    assert_has(line_with(inspecting->out, "a1000001/web"), "BACKOFF");
    assert_lacks(inspecting->out, "alloc");
    assert_int_equal(run(inspecting, "at 0 -dir @/journal"), 0);
    assert_string_equal(inspecting->out, "after event 0\nno machines\n");
    assert_int_equal(run(inspecting, "at 64 -dir @/journal"), 1);
    assert_has(inspecting->complain, "the log ends at 63");
}

/* What `at` makes again at the end is what the state table holds, field by field. */
static void test_at_the_end_equals_the_records(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(run(inspecting, "at 63 -dir @/journal -json -reveal"), 0);
    char *then = strdup(inspecting->out);
    assert_int_equal(run(inspecting, "list -dir @/journal -json -reveal"), 0);
    assert_string_equal(then, inspecting->out);
    free(then);
}

static void test_diff_names_each_changed_field(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(run(inspecting, "diff 22 23 -dir @/journal"), 0);
    assert_has(inspecting->out, "  task a1000001/web\n");
    assert_has(line_with(inspecting->out, "    state "), "RUNNING -> REAPING");
    assert_has(line_with(inspecting->out, "exit.code"), "0 -> 1");
    assert_has(line_with(inspecting->out, "lane.driver"), "-> awaits DRIVER_DESTROY ticket 4");
    assert_has(inspecting->out, "events[3].type");
    assert_lacks(inspecting->out, "alloc");
    assert_has(inspecting->out, "\n1 machines, ");
    assert_int_equal(run(inspecting, "diff 5 5 -dir @/journal"), 0);
    assert_string_equal(inspecting->out, "from event 5 to event 5\n0 machines, 0 fields\n");
    assert_int_equal(run(inspecting, "diff 9 5 -dir @/journal"), 1);
}

static void test_diff_shows_what_came_and_hides_secrets(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(run(inspecting, "diff 0 23 -dir @/journal"), 0);
    assert_has(inspecting->out, "+ task a1000001/web REAPING\n");
    assert_has(line_with(inspecting->out, "results.1.env.TOKEN"), "(none) -> ***");
    assert_lacks(inspecting->out, "s3cret");
    assert_int_equal(run(inspecting, "diff 0 1 -dir @/journal -json"), 0);
    assert_has(inspecting->out, "\"path\":\"assign.job_id\",\"before\":null,"
                                "\"after\":\"\\\"shop\\\"\"");
}

/* --- restore --- */

/* Nothing is asked of the world and nothing is written, and yet each row, effect and wait is told.
 */
static void test_restore_tells_rows_effects_and_waits(void **state)
{
    struct inspecting *inspecting = *state;
    struct small_node node;

    small_open(&node, inspecting->journal);
    small_place(&node, 1, "web", false);
    small_place(&node, 2, "sum", true);
    small_turns(&node);
    small_exit(&node, 1, "web", 1);
    small_turns(&node);
    small_close(&node);
    assert_int_equal(run(inspecting, "export -dir @/journal -out @/before"), 0);
    assert_int_equal(run(inspecting, "restore -dir @/journal -after 5s"), 0);
    assert_has(inspecting->out, "task a1000002/sum  raw_exec pid 102\n"
                                "  takes    RUNNING -RESTORE-> RECOVERING\n"
                                "  performs DRIVER_RECOVER for generation 1\n"
                                "  waits    START_FAILED or RECOVERED or LOST of DRIVER_RECOVER\n");
    assert_has(inspecting->out, "  takes    BACKOFF -RESTORE-> BACKOFF\n");
    assert_has(inspecting->out, "  waits    TIMEOUT in ");
    assert_has(inspecting->out, "the restart delay\n");
    assert_has(inspecting->out, "nothing was performed\n");
    assert_int_equal(run(inspecting, "export -dir @/journal -out @/after"), 0);
    char before_path[192], after_path[192];
    (void)text_format(before_path, sizeof(before_path), "%s/before", inspecting->path);
    (void)text_format(after_path, sizeof(after_path), "%s/after", inspecting->path);
    char *before = read_text(before_path), *after = read_text(after_path);
    assert_string_equal(before, after);
    free(before);
    free(after);
}

/* What storage plugins have mounted is looked at first, and they have to answer again. */
static void test_restore_tells_of_volumes_and_plugins(void **state)
{
    struct inspecting *inspecting = *state;
    struct small_node node;

    small_open(&node, inspecting->journal);
    small_disks(&node);
    small_place(&node, 1, "web +data", false);
    small_turns(&node);
    small_close(&node);
    assert_int_equal(run(inspecting, "restore -dir @/journal -after 5s"), 0);
    assert_has(inspecting->out,
               "volume a1000001/data  data of plugin disks claimed staged published\n"
               "  takes    READY -RESTORE-> VERIFYING\n"
               "  performs LOOK for generation 1\n"
               "  waits    MOUNT_FOUND or MOUNT_MISSING or NODE_FAILED of LOOK, at most 10.000s\n");
    assert_has(inspecting->out, "plugin csi/disks  disks 1.0\n"
                                "  takes    READY -RESTORE-> RECOVERING\n"
                                "  performs RECOVER for generation 1\n"
                                "  waits    RECOVERED or LOST of RECOVER, at most 30.000s\n");
    assert_int_equal(run(inspecting, "list -dir @/journal -kind volume"), 0);
    assert_has(line_with(inspecting->out, "a1000001/data"), "READY");
}

/* Its plugin has not come; after a restart its server is asked again before that. */
static void test_claim_that_waits_for_its_plugin_is_told_of(void **state)
{
    struct inspecting *inspecting = *state;
    struct small_node node;

    small_open(&node, inspecting->journal);
    small_place(&node, 1, "web +data", false);
    small_turns(&node);
    small_close(&node);
    assert_int_equal(run(inspecting, "show a1000001/data -dir @/journal"), 0);
    assert_has(line_with(inspecting->out, "define.plugin"), "disks");
    assert_has(inspecting->out, "CLAIMING -CLAIMED-> QUEUED");
    assert_int_equal(run(inspecting, "restore -dir @/journal -after 5s"), 0);
    assert_has(inspecting->out, "  takes    QUEUED -RESTORE-> CLAIMING\n"
                                "  performs CLAIM for generation 1\n"
                                "  waits    CLAIMED or RPC_FAILED of CLAIM, at most 1m0s\n");
}

static void test_restore_without_authority_holds_what_would_start(void **state)
{
    struct inspecting *inspecting = *state;
    struct small_node node;

    small_open(&node, inspecting->journal);
    node.holds_hooks = true;
    small_place(&node, 1, "web", false);
    small_turns(&node);
    node.holds_hooks = false;
    small_restart(&node, 10, false);
    node.holds_hooks = true;
    small_turns(&node);
    small_exit(&node, 1, "web", 1);
    small_turns(&node);
    small_wait(&node, 60000);
    small_close(&node);
    assert_int_equal(run(inspecting, "restore -dir @/journal -after 1s"), 0);
    assert_has(inspecting->out, "  takes    PRESTART -RESTORE[MAY_START]-> PRESTART\n"
                                "  performs HOOK validate of phase prestart\n");
    assert_int_equal(run(inspecting, "restore -dir @/journal -after 1s -servers"), 0);
    assert_has(inspecting->out, "servers have to be asked first");
    assert_has(inspecting->out, "  takes    PRESTART -RESTORE-> HELD\n"
                                "  waits    a fresh desired state");
    assert_lacks(inspecting->out, "validate");
    assert_int_equal(run(inspecting, "restore -dir @/journal -after 1s -rebooted -json"), 0);
    assert_int_equal(count_lines(inspecting->out), 2);
}

static bool drop_web(json_t *line, void *ctx)
{
    (void)ctx;
    return !line_is(line, "state") || !text_equal(text_of(entry_of(line), "id"), WEB);
}

/* A task whose record is not there costs its alloc, and says so before it happens. */
static void test_restore_tells_what_a_lost_record_costs(void **state)
{
    struct inspecting *inspecting = *state;
    struct small_node node;

    small_open(&node, inspecting->journal);
    small_place(&node, 1, "web side", false);
    small_turns(&node);
    small_close(&node);
    forge(inspecting, drop_web, NULL);
    assert_int_equal(run(inspecting, "restore -dir @/forged -after 1s"), 0);
    assert_has(inspecting->out, "  then     RUNNING -MEMBER_LOST-> KILLING\n");
    assert_has(inspecting->out, "task a1000001/side  ");
    assert_has(inspecting->out, "  then     RECOVERING -KILL-> RECOVERING\n");
}

static bool drop_states(json_t *line, void *ctx)
{
    (void)ctx;
    return !line_is(line, "state");
}

/* Where only the specification is left, the alloc is made again, in order to end it. */
static void test_restore_tells_of_an_alloc_that_would_be_adopted(void **state)
{
    struct inspecting *inspecting = *state;
    struct small_node node;

    small_open(&node, inspecting->journal);
    small_place(&node, 1, "web", false);
    small_turns(&node);
    small_close(&node);
    forge(inspecting, drop_states, NULL);
    assert_int_equal(run(inspecting, "restore -dir @/forged -after 1s"), 0);
    assert_has(inspecting->out, "alloc a1000001  ");
    assert_has(inspecting->out, "  then     ABSENT -ASSIGN[CONDEMNED]-> POSTRUN\n");
}

/* --- stats, compact, quarantine --- */

static void test_stats_counts_what_is_there(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(run(inspecting, "stats -dir @/journal"), 0);
    assert_has(line_with(inspecting->out, "  events  "), " 63");
    assert_has(line_with(inspecting->out, "specifications"), " 2");
    assert_has(line_with(inspecting->out, "  restarts"), " 1");
    assert_has(line_with(inspecting->out, "  EXITED"), " 4");
    assert_has(line_with(inspecting->out, "  DEAD"), " 3");
}

static void test_compact_copy_holds_the_same(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(run(inspecting, "log -dir @/journal -json -reveal"), 0);
    char *whole = strdup(inspecting->out);
    assert_int_equal(run(inspecting, "compact @/copy -dir @/journal"), 0);
    assert_int_equal(run(inspecting, "log -dir @/copy -json -reveal"), 0);
    assert_string_equal(inspecting->out, whole);
    assert_int_equal(run(inspecting, "verify -dir @/copy"), 0);
    assert_int_equal(run(inspecting, "compact @/copy -dir @/journal"), 1);
    assert_has(inspecting->complain, "not an empty directory");
    free(whole);
}

static void test_quarantine_is_listed_shown_and_dropped(void **state)
{
    struct inspecting *inspecting = *state;
    struct journal *journal;
    struct err err = {0};

    assert_int_equal(run(inspecting, "quarantine list -dir @/journal"), 0);
    assert_string_equal(inspecting->out, "nothing in quarantine\n");
    assert_int_equal(journal_open(inspecting->journal, JOURNAL_WRITE, &journal, &err), 0);
    assert_int_equal(
        journal_quarantine(journal, "state", "task/" WEB, "looked bad", small_start_unix_ns, &err),
        0);
    journal_close(journal);
    assert_int_equal(run(inspecting, "quarantine list -dir @/journal"), 0);
    assert_has(inspecting->out, "     1  2026-01-12T10:00:00.000Z  state  task/" WEB);
    assert_has(inspecting->out, "looked bad");
    assert_int_equal(run(inspecting, "quarantine show 1 -dir @/journal"), 0);
    assert_lacks(inspecting->out, "  000000  ");
    assert_int_equal(run(inspecting, "quarantine show 1 -dir @/journal -reveal"), 0);
    assert_has(inspecting->out, "  000000  ");
    assert_int_equal(run(inspecting, "quarantine show 2 -dir @/journal"), 1);
    assert_has(inspecting->complain, "no entry 2 in quarantine");
    assert_int_equal(run(inspecting, "quarantine drop 1 -dir @/journal"), 0);
    assert_int_equal(run(inspecting, "quarantine drop 1 -dir @/journal"), 1);
    assert_int_equal(run(inspecting, "quarantine list -dir @/journal"), 0);
    assert_string_equal(inspecting->out, "nothing in quarantine\n");
}

/* --- opening --- */

static void test_journal_is_found_from_the_data_directory_and_the_file(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(run(inspecting, "verify -dir @"), 0);
    assert_int_equal(run(inspecting, "verify -dir @/journal/data.mdb"), 0);
    assert_int_equal(run(inspecting, "verify -dir @/nowhere"), 1);
    assert_has(inspecting->complain, "no journal at ");
    assert_int_equal(run(inspecting, "verify -dir /proc/self/status"), 1);
    assert_has(inspecting->complain, "neither a directory nor a data.mdb");
    assert_int_equal(run(inspecting, "verify -dir /proc/self"), 1);
    assert_has(inspecting->complain, "name its directory with -dir");
}

/* Reading takes no lock that a daemon wants, and a daemon's lock does not hinder reading. */
static void test_live_journal_is_read_while_it_is_held(void **state)
{
    struct inspecting *inspecting = *state;
    int ready[2], done[2], status;
    char byte = 0;

    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(done), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct small_node node;
        (void)close(done[1]); /* so that the parent's end is an end here, too */
        small_open(&node, inspecting->journal);
        (void)!write(ready[1], &byte, 1);
        (void)!read(done[0], &byte, 1);
        small_close(&node);
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(run(inspecting, "verify -dir @/journal"), 0);
    assert_int_equal(run(inspecting, "quarantine drop 1 -dir @/journal"), 1);
    assert_has(inspecting->complain, "is in use by process ");
    assert_int_equal(write(done[1], &byte, 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    for (int i = 0; i < 2; i++) {
        (void)close(ready[i]);
        (void)close(done[i]);
    }
}

#define STORY(test) cmocka_unit_test_setup_teardown(test, inspecting_make_story, inspecting_remove)
#define EMPTY(test) cmocka_unit_test_setup_teardown(test, inspecting_make, inspecting_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(test_list_names_every_machine_once),
        STORY(test_list_filters_hold_together),
        STORY(test_list_json_is_one_object_a_line_without_secrets),
        STORY(test_show_prints_record_and_history),
        STORY(test_show_alloc_prints_its_spec_without_secrets),
        STORY(test_show_unclear_name_is_refused),
        STORY(test_log_filters_and_ranges),
        STORY(test_log_takes_times_of_every_form),
        EMPTY(test_log_follow_sees_what_is_added),
        STORY(test_at_shows_the_node_as_it_was),
        STORY(test_at_the_end_equals_the_records),
        STORY(test_diff_names_each_changed_field),
        STORY(test_diff_shows_what_came_and_hides_secrets),
        EMPTY(test_restore_tells_rows_effects_and_waits),
        EMPTY(test_restore_tells_of_volumes_and_plugins),
        EMPTY(test_claim_that_waits_for_its_plugin_is_told_of),
        EMPTY(test_restore_without_authority_holds_what_would_start),
        EMPTY(test_restore_tells_what_a_lost_record_costs),
        EMPTY(test_restore_tells_of_an_alloc_that_would_be_adopted),
        STORY(test_stats_counts_what_is_there),
        STORY(test_compact_copy_holds_the_same),
        STORY(test_quarantine_is_listed_shown_and_dropped),
        STORY(test_journal_is_found_from_the_data_directory_and_the_file),
        STORY(test_live_journal_is_read_while_it_is_held),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
