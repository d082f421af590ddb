/* export and import: the round trip loses no byte, secrets stay with their owner, and lines from
 * outside are refused with their number. */
#include "test/inspect/inspecting.h"

#include <fcntl.h>

static char *exported(struct inspecting *inspecting, const char *name)
{
    char path[192];

    (void)text_format(path, sizeof(path), "%s/%s", inspecting->path, name);
    return read_text(path);
}

/* --- round trip --- */

static void test_export_of_the_import_equals_the_export(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(run(inspecting, "export -dir @/journal -out @/first"), 0);
    assert_int_equal(run(inspecting, "import @/first @/again"), 0);
    assert_int_equal(run(inspecting, "export -dir @/again -out @/second"), 0);
    char *first = exported(inspecting, "first"), *second = exported(inspecting, "second");
    assert_string_equal(first, second);
    assert_has(first, "hunter2");
    assert_has(first, "s3cret");
    free(first);
    free(second);
    assert_int_equal(run(inspecting, "verify -dir @/again"), 0);
}

struct values {
    char *text;
    size_t size;
    FILE *to;
};

static bool put_record(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct values *values = ctx;
    const uint8_t *bytes = (const uint8_t *)record;

    (void)fprintf(values->to, "%u %s ", id->kind, id->text);
    for (uint32_t i = 0; i < fsm_record_size(record); i++)
        (void)fprintf(values->to, "%02x", bytes[i]);
    (void)fputc('\n', values->to);
    return true;
}

static char *records_of(const char *path)
{
    struct values values = {.text = NULL};
    struct journal *journal;
    struct err err = {0};

    values.to = open_memstream(&values.text, &values.size);
    assert_non_null(values.to);
    assert_int_equal(journal_open(path, JOURNAL_READ, &journal, &err), 0);
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        assert_int_equal(
            journal_each_record(journal, (enum machine_kind)kind, put_record, NULL, &values, &err),
            0);
    journal_close(journal);
    assert_int_equal(fclose(values.to), 0);
    return values.text;
}

/* The same not only in what export prints, but in every byte of the structs. */
static void test_import_gives_the_same_records_byte_for_byte(void **state)
{
    struct inspecting *inspecting = *state;
    char path[192];

    assert_int_equal(run(inspecting, "export -dir @/journal -out @/first"), 0);
    assert_int_equal(run(inspecting, "import @/first @/again"), 0);
    (void)text_format(path, sizeof(path), "%s/again", inspecting->path);
    char *before = records_of(inspecting->journal), *after = records_of(path);
    assert_string_equal(before, after);
    assert_int_equal(count_lines(before), 5);
    free(before);
    free(after);
}

/* Texts that are no UTF-8, largest numbers, quotes: what JSON has no direct form for. */
static void test_round_trip_keeps_what_json_has_no_form_for(void **state)
{
    struct inspecting *inspecting = *state;
    struct small_node node;
    struct machine_id id = small_task_id(1, "web");
    struct exited exited = {.known = 1, .code = -1, .finished_unix_ns = INT64_MIN};
    const char bytes[] = "\x00\xff spec that is no text";
    struct err err = {0};

    small_open(&node, inspecting->journal);
    small_place(&node, 1, "web", false);
    small_turns(&node);
    (void)text_copy(exited.message, sizeof(exited.message), "\"\\ \xff\xfe \x1b[31m <b>");
    core_news(node.core, &id, 1, TE_EXITED, &exited);
    core_spec(node.core, "job/default/shop", bytes, sizeof(bytes));
    small_turns(&node);
    assert_int_equal(journal_quarantine(node.journal, "spec", "job/default/shop", "why \"so\"",
                                        small_start_unix_ns, &err),
                     0);
    small_close(&node);
    assert_int_equal(run(inspecting, "export -dir @/journal -out @/first"), 0);
    assert_int_equal(run(inspecting, "import @/first @/again"), 0);
    assert_int_equal(run(inspecting, "export -dir @/again -out @/second"), 0);
    char *first = exported(inspecting, "first"), *second = exported(inspecting, "second");
    assert_string_equal(first, second);
    assert_has(first, "\"finished_unix_ns\":-9223372036854775808");
    assert_has(first, "\"message\":{\"hex\":\"225c20fffe201b5b33316d203c623e\"}");
    free(first);
    free(second);
    assert_int_equal(run(inspecting, "verify -dir @/again"), 0);
    assert_int_equal(run(inspecting, "quarantine show 1 -dir @/again -reveal"), 0);
    assert_has(inspecting->out, "that is no text.");
}

/* --- secrets --- */

static void test_export_file_belongs_to_its_owner_only(void **state)
{
    struct inspecting *inspecting = *state;
    struct stat about;
    char path[192];
    mode_t mask = umask(0);

    assert_int_equal(run(inspecting, "export -dir @/journal -out @/first"), 0);
    (void)umask(mask);
    (void)text_format(path, sizeof(path), "%s/first", inspecting->path);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    assert_int_equal(run(inspecting, "export -dir @/journal -out @/first"), 1);
    assert_has(inspecting->complain, "make the file");
}

static int export_to(struct inspecting *inspecting, mode_t mode, bool redact)
{
    struct inspect_options options = {.out = NULL};
    struct inspect *inspect;
    struct err err = {0};
    char path[192];

    (void)text_format(path, sizeof(path), "%s/to", inspecting->path);
    (void)unlink(path); /* of an earlier call */
    options.out = fopen(path, "we");
    assert_non_null(options.out);
    assert_int_equal(chmod(path, mode), 0);
    assert_int_equal(inspect_open(inspecting->journal, &options, &inspect, &err), 0);
    int code = inspect_export(inspect, NULL, redact, &err);
    inspect_close(inspect);
    assert_int_equal(fclose(options.out), 0);
    return code;
}

static void test_export_to_a_file_that_others_read_is_refused(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(export_to(inspecting, 0644, false), ERR_REFUSED);
    assert_int_equal(export_to(inspecting, 0640, false), ERR_REFUSED);
    assert_int_equal(export_to(inspecting, 0644, true), 0);
    assert_int_equal(export_to(inspecting, 0600, false), 0);
    char *text = exported(inspecting, "to");
    assert_has(text, "hunter2");
    free(text);
}

static void test_redacted_export_holds_no_secret_and_cannot_be_imported(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(run(inspecting, "export -dir @/journal -redact -out @/first"), 0);
    char *text = exported(inspecting, "first");
    assert_lacks(text, "hunter2");
    assert_lacks(text, "s3cret");
    assert_lacks(text, "do-not-tell");
    assert_has(text, "\"key\":\"TOKEN\",\"value\":\"***\"");
    free(text);
    assert_int_equal(run(inspecting, "import @/first @/again"), 1);
    assert_has(inspecting->complain, "line 1: the export is redacted");
    assert_int_equal(run(inspecting, "verify -dir @/again"), 1);
}

/* --- imports from outside --- */

static void write_lines(struct inspecting *inspecting, const char *lines)
{
    char path[192];

    (void)text_format(path, sizeof(path), "%s/lines", inspecting->path);
    FILE *to = fopen(path, "we");
    assert_non_null(to);
    (void)fputs(lines, to);
    assert_int_equal(fclose(to), 0);
}

#define HEAD "{\"cairn_journal_export\":1,\"schema\":1,\"first\":1,\"next\":2,\"redacted\":false}\n"

static void test_import_of_bad_lines_says_which_and_leaves_nothing(void **state)
{
    static const struct {
        const char *lines, *complaint;
    } cases[] = {
        {"", "the export is empty"},
        {"{}\n", "line 1: not an export"},
        {"{\"cairn_journal_export\":2}\n", "line 1: not an export"},
        {"{\"cairn_journal_export\":1,\"schema\":99}\n", "line 1: exported from schema 99"},
        {HEAD "{\"table\":\"log\"\n", "line 2: column "},
        {HEAD "[]\n", "line 2: no table named"},
        {HEAD "{\"table\":\"houses\"}\n", "line 2: unknown table \"houses\""},
        {HEAD "{\"table\":\"log\",\"entry\":{}}\n", "line 2: kind: not a kind of machine"},
        {HEAD "{\"table\":\"state\",\"entry\":{\"kind\":\"task\",\"id\":\"a/b\",\"head\":{},"
              "\"state\":\"FLYING\"}}\n",
         "line 2: state: not a state of this machine"},
        {HEAD "{\"table\":\"state\",\"entry\":{\"kind\":\"task\",\"id\":\"a/b\",\"head\":{\"wings\""
              ":2},\"state\":\"DEAD\"}}\n",
         "unknown member \"wings\""},
        {HEAD "{\"table\":\"state\",\"entry\":{\"kind\":\"task\",\"id\":\"a/b\",\"head\":{},"
              "\"state\":\"DEAD\",\"record\":{\"restarts\":-1}}}\n",
         "restarts: not a value of this field"},
        {HEAD "{\"table\":\"state\",\"entry\":{\"kind\":\"task\",\"id\":\"a/b\",\"head\":{},"
              "\"state\":\"RUNNING\",\"record\":{}}}\n",
         "a/b: alive, but was never seen running"},
        {HEAD "{\"table\":\"state\",\"entry\":{\"kind\":\"task\",\"id\":\"web\",\"head\":{},"
              "\"state\":\"DEAD\",\"record\":{\"run_state\":2}}}\n",
         "line 2: web: no machine has such an id"},
        {HEAD "{\"table\":\"base\",\"entry\":{\"kind\":\"alloc\",\"id\":\"../a\",\"head\":{},"
              "\"state\":\"TERMINAL\",\"record\":{}}}\n",
         "line 2: ../a: no machine has such an id"},
        {HEAD "{\"table\":\"state\",\"entry\":{\"kind\":\"task\",\"id\":\"a/b\",\"head\":"
              "{\"tickets\":4294967295},\"state\":\"DEAD\",\"record\":{\"run_state\":2}}}\n",
         "line 2: a/b: tickets is more than anything ever counted"},
        {HEAD "{\"table\":\"state\",\"entry\":{\"kind\":\"volume\",\"id\":\"a/b\",\"head\":"
              "{\"deadline_ms\":9},\"state\":\"DRAINING\",\"record\":{\"define\":{\"plugin\":\"p\","
              "\"volume\":\"v\"}}}}\n",
         "line 2: a/b: on the way back, but nobody has let go"},
        {HEAD "{\"table\":\"quarantine\",\"number\":9007199254740993,\"of\":\"spec\",\"key\":\"x\","
              "\"reason\":\"x\",\"unix_ns\":1,\"text\":\"\"}\n",
         "line 2: not an entry of the quarantine"},
        {HEAD "{\"table\":\"meta\",\"key\":\"journal/schema\",\"text\":\"9\"}\n",
         "line 2: key: journal/schema is the journal's own"},
        {HEAD "{\"table\":\"spec\",\"key\":\"x\",\"hex\":\"0g\"}\n", "line 2: hex: "},
        {HEAD "{\"table\":\"spec\",\"key\":\"\",\"text\":\"\"}\n", "line 2: key: missing"},
        {HEAD "{\"table\":\"quarantine\",\"number\":0}\n", "line 2: not an entry"},
    };
    struct inspecting *inspecting = *state;
    char path[192];

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        write_lines(inspecting, cases[i].lines);
        if (run(inspecting, "import @/lines @/again") != 1)
            fail_msg("taken: %s", cases[i].lines);
        assert_has(inspecting->complain, cases[i].complaint);
        (void)text_format(path, sizeof(path), "%s/again", inspecting->path);
        assert_int_equal(access(path, F_OK), -1);
        (void)text_format(path, sizeof(path), "%s/again.importing", inspecting->path);
        assert_int_equal(access(path, F_OK), -1);
    }
}

static void test_import_of_events_out_of_order_is_refused(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(run(inspecting, "export -dir @/journal -out @/first"), 0);
    char *text = exported(inspecting, "first"), *rest = text;
    char lines[65536] = "", one[8192] = "";
    for (char *line = strsep(&rest, "\n"); line != NULL && *line != '\0';
         line = strsep(&rest, "\n")) {
        if (strstr(line, "\"sequence\":1,") != NULL)
            (void)text_copy(one, sizeof(one), line);
        if (strstr(line, "\"sequence\":3,") != NULL)
            break;
        (void)text_append(lines, sizeof(lines), line);
        (void)text_append(lines, sizeof(lines), "\n");
    }
    (void)text_append(lines, sizeof(lines), one);
    free(text);
    write_lines(inspecting, lines);
    assert_int_equal(run(inspecting, "import @/lines @/again"), 1);
    assert_has(inspecting->complain, "event 1 comes after a later one");
}

/* The first event is to be of another machine, time or number. */
static void test_import_of_odd_events_is_refused(void **state)
{
    static const struct {
        const char *member, *value, *complaint;
    } cases[] = {
        {"id", "\"a/b\"", "no machine has such an id"},
        {"id", "\"\\u001b[31m\"", "no machine has such an id"},
        {"now_ms", "9007199254740993", "its turn or time is more than anything ever counted"},
        {"turn", "9223372036854775807", "its turn or time is more than anything ever counted"},
        {"sequence", "9223372036854775807", "the log goes on at 1, not at 9223372036854775807"},
        {"guard", "\"NOBODY\"", "line 2: guard: not a guard of this machine"},
        {"before", "\"NOWHERE\"", "line 2: before, after: not a state of this machine"},
    };
    struct inspecting *inspecting = *state;

    assert_int_equal(run(inspecting, "export -dir @/journal -out @/first"), 0);
    char *text = exported(inspecting, "first");
    json_t *line = json_loads(line_with(text, "{\"table\":\"log\""), 0, NULL);
    free(text);
    assert_non_null(line);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char *dumped, lines[16384];
        json_t *changed = json_deep_copy(line);
        json_object_set_new(entry_of(changed), cases[i].member,
                            json_loads(cases[i].value, JSON_DECODE_ANY, NULL));
        dumped = json_dumps(changed, JSON_COMPACT);
        assert_true(text_format(lines, sizeof(lines), HEAD "%s\n", dumped));
        free(dumped);
        json_decref(changed);
        write_lines(inspecting, lines);
        if (run(inspecting, "import @/lines @/again") != 1)
            fail_msg("taken: %s", lines);
        assert_has(inspecting->complain, cases[i].complaint);
    }
    json_decref(line);
}

static void test_import_touches_no_journal_that_is_there(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(run(inspecting, "export -dir @/journal -out @/first"), 0);
    assert_int_equal(run(inspecting, "import @/first @/journal"), 1);
    assert_has(inspecting->complain, "exists and is not an empty directory");
    assert_int_equal(run(inspecting, "import @/nothing @/again"), 1);
    assert_has(inspecting->complain, "read ");
    assert_int_equal(run(inspecting, "verify -dir @/journal"), 0);
}

#define STORY(test) cmocka_unit_test_setup_teardown(test, inspecting_make_story, inspecting_remove)
#define EMPTY(test) cmocka_unit_test_setup_teardown(test, inspecting_make, inspecting_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(test_export_of_the_import_equals_the_export),
        STORY(test_import_gives_the_same_records_byte_for_byte),
        EMPTY(test_round_trip_keeps_what_json_has_no_form_for),
        STORY(test_export_file_belongs_to_its_owner_only),
        STORY(test_export_to_a_file_that_others_read_is_refused),
        STORY(test_redacted_export_holds_no_secret_and_cannot_be_imported),
        EMPTY(test_import_of_bad_lines_says_which_and_leaves_nothing),
        STORY(test_import_of_events_out_of_order_is_refused),
        STORY(test_import_of_odd_events_is_refused),
        STORY(test_import_touches_no_journal_that_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
