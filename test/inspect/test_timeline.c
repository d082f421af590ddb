/* timeline: the drawing, the words, the JSON, and the page as a file.  What a browser makes of the
 * page is tested by test/live/agent/test_inspector.py. */
#include "test/inspect/inspecting.h"

/* --- text --- */

static void test_timeline_draws_a_lane_for_each_machine(void **state)
{
    static const char *const lanes[] = {
        "\ndaemon ",     "\nalloc a1000001 shop.front[1] ", "\n  task side ",
        "\n  task web ", "\nalloc a1000002 sums.front[2] ", "\n  task sum ",
    };
    struct inspecting *inspecting = *state;
    const char *at;

    assert_int_equal(run(inspecting, "timeline -dir @/journal -width 120"), 0);
    at = inspecting->out;
    for (size_t i = 0; i < COUNT_OF(lanes); i++) {
        const char *next = strstr(at, lanes[i]);
        if (next == NULL)
            fail_msg("no \"%s\" behind the one before it:\n%s", lanes[i] + 1, inspecting->out);
        at = next;
        assert_true(strcspn(at + 1, "\n") <= 120);
    }
    assert_has(line_with(inspecting->out, "  task web"), "|BACKOFF");
    assert_has(line_with(inspecting->out, "  task web"), "=x"); /* it crashed while it ran */
    assert_has(line_with(inspecting->out, "  task sum"), "=o"); /* it ended well */
    assert_has(line_with(inspecting->out, "  task sum"), "|DEAD...");
}

/* The restart stands in the same column as the moment at which the tasks left RUNNING. */
static void test_timeline_marks_the_restart_of_the_daemon(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(run(inspecting, "timeline -dir @/journal -width 120"), 0);
    const char *daemon = strstr(inspecting->out, "\ndaemon ") + 1;
    size_t column = strcspn(daemon, "R");
    const char *side = strstr(inspecting->out, "\n  task side") + 1;
    assert_int_equal(side[column], '|');
    assert_int_equal(side[column - 1], '=');
    assert_has(inspecting->out, "+25.030s   daemon came back; last event 3.003s before\n");
    assert_has(inspecting->out, ", 5 machines, 1 restarts\n");
}

static void test_timeline_tells_what_happened_in_order(void **state)
{
    static const char *const words[] = {
        "+0.012s    task a1000001/web: runs, pid 101\n",
        "+2.015s    task a1000001/web: ended with exit code 1\n",
        "+22.027s   task a1000001/web: runs, pid 104\n",
        "daemon came back",
        "task a1000001/web: found again, pid 104\n",
        "task a1000002/sum: ended with exit code 0\n",
        "alloc a1000001: STOP: job was stopped\n",
        "task a1000001/web: ended by signal 15\n",
    };
    struct inspecting *inspecting = *state;
    const char *at;

    assert_int_equal(run(inspecting, "timeline -dir @/journal"), 0);
    at = inspecting->out;
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        at = strstr(at, words[i]);
        if (at == NULL)
            fail_msg("\"%s\" is missing or too early:\n%s", words[i], inspecting->out);
    }
    assert_int_equal(run(inspecting, "timeline -dir @/journal -alloc a1000002 -since 32"), 0);
    assert_lacks(inspecting->out, "a1000001");
    assert_lacks(inspecting->out, "task sum: runs");
    assert_has(line_with(inspecting->out, "  task sum"), "RUNNING");
}

static void test_timeline_of_rebooted_and_failing_node(void **state)
{
    struct inspecting *inspecting = *state;
    struct small_node node;
    struct machine_id id = small_task_id(1, "web");
    struct failure failure = {.code = ERR_IO, .text = "no \x1b[31m such program"};

    small_open(&node, inspecting->journal);
    node.holds_starts = true;
    small_place(&node, 1, "web", false);
    small_turns(&node);
    core_done(node.core, &id, LANE_DRIVER, TE_START_FAILED, &failure);
    small_turns(&node);
    small_restart(&node, 90000, true);
    small_close(&node);
    assert_int_equal(run(inspecting, "timeline -dir @/journal"), 0);
    assert_has(line_with(inspecting->out, "daemon  "), "B");
    assert_has(inspecting->out,
               "daemon came back, the host had been booted; last event 1m30s before");
    assert_has(inspecting->out, "START_FAILED: no ?[31m such program");
    assert_has(line_with(inspecting->out, "  task web"), "!");
}

/* The state in which EVENT left the first machine of KIND, "": it had no such event. */
static const char *state_after(const json_t *data, const char *kind, const char *event)
{
    size_t i, k;
    json_t *lane, *step;

    json_array_foreach(json_object_get(data, "lanes"), i, lane)
    {
        if (!text_equal(text_of(lane, "kind"), kind))
            continue;
        json_array_foreach(json_object_get(lane, "steps"), k, step)
        {
            if (text_equal(text_of(step, "event"), event))
                return text_of(step, "state");
        }
        return "";
    }
    return "";
}

/* A claim waits for its plugin, has its volume, and is looked at when the daemon comes back. */
static void test_timeline_draws_claims_and_plugins(void **state)
{
    struct inspecting *inspecting = *state;
    struct small_node node;

    small_open(&node, inspecting->journal);
    small_place(&node, 1, "web +data", false);
    small_turns(&node);
    small_wait(&node, 5000);
    small_disks(&node);
    small_turns(&node);
    small_wait(&node, 5000);
    small_restart(&node, 3000, false);
    small_wait(&node, 5000);
    small_close(&node);
    assert_int_equal(run(inspecting, "timeline -dir @/journal -width 120"), 0);
    assert_has(line_with(inspecting->out, "  volume data"), "|QUEUED----");
    assert_has(line_with(inspecting->out, "  volume data"), "|READY====");
    assert_has(line_with(inspecting->out, "  plugin disks"), "|READY====");
    assert_int_equal(run(inspecting, "timeline -dir @/journal -json"), 0);
    json_t *data = json_loads(inspecting->out, 0, NULL);
    assert_non_null(data);
    assert_string_equal(state_after(data, "volume", "CLAIMED"), "QUEUED");
    assert_string_equal(state_after(data, "volume", "PLUGIN_UP"), "STAGING");
    assert_string_equal(state_after(data, "volume", "RESTORE"), "VERIFYING");
    assert_string_equal(state_after(data, "volume", "MOUNT_FOUND"), "READY");
    assert_string_equal(state_after(data, "plugin", "IDENTIFIED"), "READY");
    assert_string_equal(state_after(data, "plugin", "RESTORE"), "RECOVERING");
    json_decref(data);
}

/* --- JSON and page --- */

static void check_data(json_t *data)
{
    size_t i;
    json_t *lane;

    assert_non_null(data);
    assert_int_equal(json_array_size(json_object_get(data, "lanes")), 5);
    assert_int_equal(json_array_size(json_object_get(data, "restarts")), 1);
    json_array_foreach(json_object_get(data, "lanes"), i, lane)
    {
        json_t *machine = json_object_get(json_object_get(data, "machines"), text_of(lane, "kind"));
        json_t *rows = json_object_get(machine, "rows"), *steps = json_object_get(lane, "steps");
        assert_true(json_array_size(steps) > 3);
        /* Each step is a row of the table that goes along. */
        for (size_t k = 0; k < json_array_size(steps); k++) {
            json_t *step = json_array_get(steps, k);
            json_t *row =
                json_array_get(rows, (size_t)json_integer_value(json_object_get(step, "row")));
            assert_string_equal(text_of(row, "event"), text_of(step, "event"));
        }
    }
}

static void test_timeline_json_holds_lanes_and_tables(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(run(inspecting, "timeline -dir @/journal -json"), 0);
    json_t *data = json_loads(inspecting->out, 0, NULL);
    check_data(data);
    json_decref(data);
    assert_lacks(inspecting->out, "s3cret");
}

static void test_timeline_page_holds_the_data_and_loads_nothing(void **state)
{
    static const char open_tag[] = "<script type=\"application/json\" id=\"data\">";
    static const char *const outside[] = {"src=",   "href=",   "url(",      "@import",
                                          "fetch(", "XMLHttp", "WebSocket", "import("};
    struct inspecting *inspecting = *state;
    char path[192];

    assert_int_equal(run(inspecting, "timeline -dir @/journal -html @/page.html"), 0);
    (void)text_format(path, sizeof(path), "%s/page.html", inspecting->path);
    char *page = read_text(path);
    assert_true(text_starts_with(page, "<!DOCTYPE html>"));
    assert_true(text_ends_with(page, "</html>\n"));
    assert_has(page, "default-src 'none'");
    for (size_t i = 0; i < COUNT_OF(outside); i++)
        assert_lacks(page, outside[i]);
    assert_lacks(page, "@TIMELINE@");
    assert_lacks(page, "s3cret");
    assert_lacks(page, "hunter2");
    char *data = strstr(page, open_tag);
    assert_non_null(data);
    data += strlen(open_tag);
    *strstr(data, "</script>") = '\0';
    json_t *json = json_loads(data, 0, NULL);
    check_data(json);
    json_decref(json);
    free(page);
}

/* A name from outside cannot end the script element that holds it. */
static void test_timeline_page_keeps_names_from_outside_inside_the_data(void **state)
{
    struct inspecting *inspecting = *state;
    struct small_node node;
    struct machine_id id = small_alloc(1);
    struct request request = {.text = "</script><script>alert(1)</script>"};
    char path[192];

    small_open(&node, inspecting->journal);
    small_place(&node, 1, "web", false);
    small_turns(&node);
    core_tell(node.core, &id, AE_STOP, &request);
    small_turns(&node);
    small_close(&node);
    assert_int_equal(run(inspecting, "timeline -dir @/journal -html @/page.html"), 0);
    (void)text_format(path, sizeof(path), "%s/page.html", inspecting->path);
    char *page = read_text(path);
    assert_lacks(page, "alert(1)</script>");
    assert_has(page, "\\u003c/script\\u003e\\u003cscript\\u003ealert(1)");
    free(page);
}

static void test_timeline_page_that_cannot_be_written_is_an_error(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(run(inspecting, "timeline -dir @/journal -html @/no/page.html"), 1);
    assert_has(inspecting->complain, "write ");
    assert_int_equal(run(inspecting, "timeline -dir @/journal -html /dev/full"), 1);
}

static void test_timeline_of_an_empty_journal_is_drawn(void **state)
{
    struct inspecting *inspecting = *state;
    struct journal *journal;
    struct err err = {0};

    assert_int_equal(journal_open(inspecting->journal, JOURNAL_WRITE, &journal, &err), 0);
    journal_close(journal);
    assert_int_equal(run(inspecting, "timeline -dir @/journal"), 0);
    assert_has(inspecting->out, "0 events, 0 machines, 0 restarts");
    assert_int_equal(run(inspecting, "timeline -dir @/journal -json"), 0);
    assert_int_equal(run(inspecting, "timeline -dir @/journal -html @/page.html"), 0);
}

#define STORY(test) cmocka_unit_test_setup_teardown(test, inspecting_make_story, inspecting_remove)
#define EMPTY(test) cmocka_unit_test_setup_teardown(test, inspecting_make, inspecting_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(test_timeline_draws_a_lane_for_each_machine),
        STORY(test_timeline_marks_the_restart_of_the_daemon),
        STORY(test_timeline_tells_what_happened_in_order),
        EMPTY(test_timeline_of_rebooted_and_failing_node),
        EMPTY(test_timeline_draws_claims_and_plugins),
        STORY(test_timeline_json_holds_lanes_and_tables),
        STORY(test_timeline_page_holds_the_data_and_loads_nothing),
        EMPTY(test_timeline_page_keeps_names_from_outside_inside_the_data),
        STORY(test_timeline_page_that_cannot_be_written_is_an_error),
        EMPTY(test_timeline_of_an_empty_journal_is_drawn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
