/* `cairn journal`: what is typed reaches the inspector, what is not understood does not, and the
 * exit status says how it went.  What the inspector answers is tested in test/inspect. */
#include "test/agent/cli/running.h"
#include "test/inspect/inspecting.h"

static const struct cli_verb *const verbs[] = {
    &cli_journal_list,       &cli_journal_show,   &cli_journal_log,      &cli_journal_at,
    &cli_journal_diff,       &cli_journal_verify, &cli_journal_timeline, &cli_journal_restore,
    &cli_journal_stats,      &cli_journal_export, &cli_journal_import,   &cli_journal_compact,
    &cli_journal_quarantine,
};

/* Runs "cairn journal LINE"; @ in it is the test's directory.  The exit status. */
static int cairn_journal(struct inspecting *inspecting, const char *line)
{
    struct typed typed = {.out = inspecting->out, .complain = inspecting->complain};
    char words[1024] = "journal ";
    const struct cli_verb *verb = &cli_journal_list;

    for (const char *at = line; *at != '\0'; at++) {
        char one[2] = {*at, '\0'};
        assert_true(text_append(words, sizeof(words), *at == '@' ? inspecting->path : one));
    }
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        if (strcspn(line, " ") == strlen(verbs[i]->name) && text_starts_with(line, verbs[i]->name))
            verb = verbs[i];
    }
    type(&typed, verb, words);
    inspecting->out = typed.out;
    inspecting->complain = typed.complain;
    return typed.status;
}

/* --- reading the command line --- */

static void test_command_line_that_is_not_understood_is_refused(void **state)
{
    static const char *const lines[] = {
        "nosuch",
        "list -dir",
        "list -nosuch",
        "list -json=1",
        "list more",
        "show",
        "list -kind house",
        "list -state NOWHERE",
        "log -event NOTHING",
        "log -n 0",
        "log -n 100001",
        "log -n many",
        "list -age long",
        "list -age -5s",
        "list -5m",
        "restore -after soon",
        "timeline -width wide",
        "quarantine empty",
        "quarantine list 1",
        "quarantine show",
        "quarantine show x",
        "quarantine drop 0",
    };
    struct inspecting *inspecting = *state;

    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        char line[160];
        (void)text_format(line, sizeof(line),
                          strstr(lines[i], "-dir") == NULL ? "%s -dir @/journal" : "%s", lines[i]);
        if (cairn_journal(inspecting, line) != CLI_USAGE)
            fail_msg("\"%s\" was taken", line);
        assert_string_equal(inspecting->out, "");
        assert_true(text_starts_with(inspecting->complain, "cairn: "));
        assert_int_equal(count_lines(inspecting->complain), 1);
    }
}

static void test_help_of_every_verb_names_its_flags(void **state)
{
    struct inspecting *inspecting = *state;
    char line[64], usage[64];

    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        (void)text_format(line, sizeof(line), "%s -h", verbs[i]->name);
        (void)text_format(usage, sizeof(usage), "Usage: cairn journal %s ", verbs[i]->name);
        assert_int_equal(cairn_journal(inspecting, line), CLI_OK);
        assert_true(text_starts_with(inspecting->out, usage));
        for (const struct cli_flag *flag = verbs[i]->flags; flag != NULL && flag->name != NULL;
             flag++) {
            (void)text_format(line, sizeof(line), "\n  -%s ", flag->name);
            assert_has(inspecting->out, line);
        }
    }
}

static void test_help_of_a_flag_goes_on_in_its_column(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(cairn_journal(inspecting, "stats -h"), CLI_OK);
    assert_has(inspecting->out,
               "  -dir PATH               the journal's directory or the data directory it is in;\n"
               "                          default: $CAIRN_DATA_DIR, or /var/lib/cairn\n");
}

static void test_moments_before_the_end_are_arguments(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(cairn_journal(inspecting, "at -64ms -dir @/journal"), CLI_OK);
    assert_has(inspecting->out, "after event 45, ");
    assert_int_equal(cairn_journal(inspecting, "diff -1m -64ms -dir @/journal"), CLI_OK);
    assert_has(inspecting->out, " to event 45\n");
    assert_int_equal(cairn_journal(inspecting, "log -since -64ms -dir @/journal"), CLI_OK);
    assert_int_equal(count_lines(inspecting->out), 18);
}

/* --- what reaches the inspector --- */

static void test_flags_reach_the_inspector(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(cairn_journal(inspecting, "list -dir=@/journal --kind task -alloc a1000001"),
                     CLI_OK);
    assert_int_equal(count_lines(inspecting->out), 1 + 2);
    assert_int_equal(cairn_journal(inspecting, "list -dir @/journal -age 876000h"), CLI_OK);
    assert_string_equal(inspecting->out, "no machines\n");
    assert_int_equal(cairn_journal(inspecting, "list -json -state DEAD -dir @/journal"), CLI_OK);
    assert_int_equal(count_lines(inspecting->out), 3);
    assert_lacks(inspecting->out, "s3cret");
    assert_int_equal(cairn_journal(inspecting, "list -json -reveal -dir @/journal"), CLI_OK);
    assert_has(inspecting->out, "s3cret");
    assert_int_equal(cairn_journal(inspecting, "log -event EXITED -n 2 -until 60 -dir @/journal"),
                     CLI_OK);
    assert_int_equal(count_lines(inspecting->out), 2);
    assert_int_equal(
        cairn_journal(inspecting, "restore -servers -rebooted -after 1s -dir @/journal"), CLI_OK);
    assert_has(inspecting->out, "a restart 1.000s after the last event, the host booted since, "
                                "servers have to be asked first:\n");
}

static void test_drawing_is_as_wide_as_asked_for(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(cairn_journal(inspecting, "timeline -dir @/journal"), CLI_OK);
    assert_int_equal(strlen(line_with(inspecting->out, "daemon  ")), 100);
    assert_int_equal(cairn_journal(inspecting, "timeline -width 120 -dir @/journal"), CLI_OK);
    assert_int_equal(strlen(line_with(inspecting->out, "daemon  ")), 120);
}

static void test_journal_is_named_by_flag_or_environment(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(setenv("CAIRN_DATA_DIR", inspecting->path, 1), 0);
    assert_int_equal(cairn_journal(inspecting, "verify"), CLI_OK);
    assert_int_equal(cairn_journal(inspecting, "verify -dir @/nowhere"), CLI_FAILED);
    assert_has(inspecting->complain, "cairn journal: no journal at ");
    assert_int_equal(unsetenv("CAIRN_DATA_DIR"), 0);
}

static void test_export_comes_back_by_import(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(cairn_journal(inspecting, "export -dir @/journal -out @/whole"), CLI_OK);
    assert_has(inspecting->out, "/whole: 71 entries\n");
    assert_int_equal(cairn_journal(inspecting, "import @/whole @/again"), CLI_OK);
    assert_has(inspecting->out, "/again: 71 entries\n");
    assert_int_equal(cairn_journal(inspecting, "import @/whole @/again"), CLI_FAILED);
    assert_has(inspecting->complain, "exists and is not an empty directory");
    assert_int_equal(cairn_journal(inspecting, "compact @/copy -dir @/again"), CLI_OK);
    assert_int_equal(cairn_journal(inspecting, "verify -dir @/copy"), CLI_OK);
}

static void test_quarantine_is_seen_and_dropped(void **state)
{
    struct inspecting *inspecting = *state;
    struct journal *journal;
    struct err err = {0};

    assert_int_equal(journal_open(inspecting->journal, JOURNAL_WRITE, &journal, &err), 0);
    assert_int_equal(
        journal_quarantine(journal, "spec", "alloc/none", "looked bad", small_start_unix_ns, &err),
        ERR_GONE);
    assert_int_equal(journal_quarantine(journal, "state",
                                        "task/a1000001-0000-4000-8000-000000000001/web",
                                        "looked bad", small_start_unix_ns, &err),
                     0);
    journal_close(journal);
    assert_int_equal(cairn_journal(inspecting, "quarantine list -dir @/journal"), CLI_OK);
    assert_has(inspecting->out, "looked bad");
    assert_int_equal(cairn_journal(inspecting, "quarantine show 1 -reveal -dir @/journal"), CLI_OK);
    assert_has(inspecting->out, "  000000  ");
    assert_int_equal(cairn_journal(inspecting, "quarantine drop 1 -dir @/journal"), CLI_OK);
    assert_string_equal(inspecting->out, "entry 1 is gone\n");
    assert_int_equal(cairn_journal(inspecting, "quarantine drop 1 -dir @/journal"), CLI_FAILED);
    assert_string_equal(inspecting->complain, "cairn journal: no entry 1 in quarantine\n");
}

/* --- exit status --- */

static bool drop_web(json_t *line, void *ctx)
{
    (void)ctx;
    return !line_is(line, "state") || strstr(text_of(entry_of(line), "id"), "/web") == NULL;
}

static void test_what_verify_finds_wrong_is_the_exit_status(void **state)
{
    struct inspecting *inspecting = *state;

    assert_int_equal(cairn_journal(inspecting, "verify -dir @/journal"), CLI_OK);
    forge(inspecting, drop_web, NULL);
    assert_int_equal(cairn_journal(inspecting, "verify -dir @/forged"), CLI_FAILED);
    assert_has(inspecting->out, "STATE_MISSING");
    assert_string_equal(inspecting->complain, "");
}

/* Changes a job's name wherever it stands: in one record, and in events. */
static void damage_a_job(const char *path)
{
    char file[192];
    char *bytes;
    size_t length;
    struct err err = {0};

    (void)text_format(file, sizeof(file), "%s/data.mdb", path);
    assert_int_equal(file_read(file, 64 << 20, &bytes, &length, &err), 0);
    char *at = memmem(bytes, length, "sums", 4);
    assert_non_null(at);
    for (; at != NULL; at = memmem(at, length - (size_t)(at - bytes), "sums", 4))
        *at = 'S';
    FILE *to = fopen(file, "we");
    assert_non_null(to);
    assert_int_equal(fwrite(bytes, 1, length, to), length);
    assert_int_equal(fclose(to), 0);
    free(bytes);
}

static void test_damage_is_counted_and_is_the_exit_status(void **state)
{
    struct inspecting *inspecting = *state;

    damage_a_job(inspecting->journal);
    assert_int_equal(cairn_journal(inspecting, "list -dir @/journal"), CLI_FAILED);
    assert_has(inspecting->out, "a1000001/web");
    assert_has(inspecting->complain, "cairn journal: damaged, skipped: state ");
    assert_has(inspecting->complain, "cairn journal: 1 damaged entries were skipped; see: ");
}

#define STORY(test) cmocka_unit_test_setup_teardown(test, inspecting_make_story, inspecting_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(test_command_line_that_is_not_understood_is_refused),
        STORY(test_help_of_every_verb_names_its_flags),
        STORY(test_help_of_a_flag_goes_on_in_its_column),
        STORY(test_moments_before_the_end_are_arguments),
        STORY(test_flags_reach_the_inspector),
        STORY(test_drawing_is_as_wide_as_asked_for),
        STORY(test_journal_is_named_by_flag_or_environment),
        STORY(test_export_comes_back_by_import),
        STORY(test_quarantine_is_seen_and_dropped),
        STORY(test_what_verify_finds_wrong_is_the_exit_status),
        STORY(test_damage_is_counted_and_is_the_exit_status),
    };

    return cmocka_run_group_tests_name("cli_journal", tests, NULL, NULL);
}
