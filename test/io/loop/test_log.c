/* The log: one line for one call, bounded, nothing from outside gets through raw. */
#include "io/log.h"

#include "test/io/scratch.h"

#include <jansson.h>
#include <pthread.h>
#include <regex.h>
#include <signal.h>

static void assert_matches(const char *text, const char *pattern)
{
    regex_t regex;

    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    if (regexec(&regex, text, 0, NULL, 0) != 0)
        fail_msg("\"%s\" does not match \"%s\"", text, pattern);
    regfree(&regex);
}

/* All that was written, and starts anew. */
static char *take_log(struct scratch *scratch)
{
    char *bytes = NULL;
    size_t length;

    assert_int_equal(file_read(at(scratch, "log"), 1 << 20, &bytes, &length, &scratch->err), 0);
    assert_int_equal(strlen(bytes), length);
    assert_return_code(truncate(scratch->text, 0), 0);
    return bytes;
}

static int start(void **state)
{
    (void)scratch_make(state);
    return log_init(LOG_INFO, at(*state, "log"), false);
}

static int finish(void **state)
{
    assert_int_equal(log_init(LOG_INFO, NULL, false), 0);
    return scratch_remove(state);
}

static void test_line_has_the_documented_form(void **state)
{
    struct scratch *scratch = *state;

    errno = ENOSPC;
    log_info("agent", "node registered node=%s servers=%d", log_value("3f2a91c4"), 3);
    assert_int_equal(errno, ENOSPC);
    char *text = take_log(scratch);
    assert_matches(text,
                   "^20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]"
                   "\\.[0-9]{3}Z \\[INFO\\] agent: node registered node=3f2a91c4 servers=3\n$");
    free(text);
}

static void test_less_important_lines_are_left_out(void **state)
{
    struct scratch *scratch = *state;

    log_debug("io", "not wanted");
    assert_false(log_wants(LOG_DEBUG));
    log_set_level(LOG_WARN);
    log_info("io", "not wanted");
    log_warn("io", "wanted");
    log_error("io", "wanted");
    char *text = take_log(scratch);
    assert_matches(text, "^[^\n]*\\[WARN\\] io: wanted\n[^\n]*\\[ERROR\\] io: wanted\n$");
    free(text);
}

static void test_newlines_and_control_characters_are_escaped(void **state)
{
    struct scratch *scratch = *state;

    log_info("io", "got %s", "a\nb\r\x1b[31m\x7f \xc2\x9b \xff \xe2\x82 \xc3\xa9 \xe2\x82\xac.");
    char *text = take_log(scratch);
    assert_non_null(strstr(text, ": got a\\x0ab\\x0d\\x1b[31m\\x7f \\xc2\\x9b \\xff \\xe2\\x82 "
                                 "\xc3\xa9 \xe2\x82\xac.\n"));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    free(text);
}

static void test_value_cannot_forge_another(void **state)
{
    (void)state;
    assert_string_equal(log_value("plain-word_1.2/3:4@5"), "plain-word_1.2/3:4@5");
    assert_string_equal(log_value("x level=error"), "\"x level=error\"");
    assert_string_equal(log_value("a\" b=\"c\\"), "\"a\\\" b=\\\"c\\\\\"");
    assert_string_equal(log_value("a=b"), "\"a=b\"");
    assert_string_equal(log_value("a\nb"), "\"a\\x0ab\"");
    assert_string_equal(log_value(""), "\"\"");
    assert_string_equal(log_value(NULL), "\"\"");
}

static void test_long_value_is_cut_with_its_quotes(void **state)
{
    char text[1000];
    (void)state;

    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    const char *value = log_value(text);
    assert_int_equal(strlen(value) < TEXT_VALUE_SIZE, 1);
    assert_matches(value, "^\"a+\\.\\.\\.\"$");
    memset(text, '"', sizeof(text) - 1); /* each takes two */
    assert_matches(log_value(text), "^\"(\\\\\")+\\.\\.\\.\"$");
}

static void test_long_line_is_cut_and_stays_one(void **state)
{
    struct scratch *scratch = *state;
    static char large[100000];

    for (int json = 0; json <= 1; json++) {
        for (const char *fill = "a\n\"\xff"; *fill != '\0'; fill++) {
            memset(large, *fill, sizeof(large) - 1);
            assert_int_equal(log_init(LOG_INFO, at(scratch, "log"), json == 1), 0);
            log_info("io", "%s", large);
            char *text = take_log(scratch);
            size_t length = strlen(text);
            assert_true(length < LOG_LINE_SIZE);
            assert_true(length > LOG_LINE_SIZE / 2);
            assert_ptr_equal(strchr(text, '\n'), text + length - 1);
            text[length - 1] = '\0';
            assert_true(text_ends_with(text, json == 1 ? "...\"}" : "..."));
            if (json == 1) {
                json_t *value = json_loads(text, 0, NULL);
                assert_non_null(value);
                json_decref(value);
            }
            free(text);
        }
    }
}

static void test_json_line_is_what_nomad_writes(void **state)
{
    struct scratch *scratch = *state;

    assert_int_equal(log_init(LOG_INFO, at(scratch, "log"), true), 0);
    log_warn("agent", "odd \"name\" \\ %s", "\t\xc3\xa9");
    char *text = take_log(scratch);
    json_t *line = json_loads(text, 0, NULL);
    assert_non_null(line);
    assert_string_equal(json_string_value(json_object_get(line, "@level")), "warn");
    assert_string_equal(json_string_value(json_object_get(line, "@module")), "agent");
    assert_string_equal(json_string_value(json_object_get(line, "@message")),
                        "odd \"name\" \\ \\x09\xc3\xa9");
    assert_matches(json_string_value(json_object_get(line, "@timestamp")), "^20.*Z$");
    json_decref(line);
    free(text);
}

static void test_file_that_cannot_be_opened_changes_nothing(void **state)
{
    struct scratch *scratch = *state;

    assert_int_equal(log_init(LOG_DEBUG, at(scratch, "no/log"), true), -ENOENT);
    log_debug("io", "still not wanted");
    log_info("io", "still here");
    char *text = take_log(scratch);
    assert_matches(text, "^[^{]*still here\n$");
    free(text);
}

static void test_reopen_follows_a_rotation(void **state)
{
    struct scratch *scratch = *state;
    char old[PATH_SIZE];

    (void)text_copy(old, sizeof(old), at(scratch, "log.1"));
    assert_return_code(rename(at(scratch, "log"), old), 0);
    log_info("io", "before");
    assert_int_equal(log_reopen(), 0);
    log_info("io", "after");
    char *text = take_log(scratch);
    assert_matches(text, "^[^\n]*io: after\n$");
    free(text);
}

static void test_reader_that_went_away_is_survived(void **state)
{
    int pair[2], saved = dup(STDERR_FILENO);
    (void)state;

    assert_true(saved >= 0);
    assert_return_code(pipe(pair), 0);
    assert_int_equal(log_init(LOG_INFO, NULL, false), 0);
    assert_return_code(dup2(pair[1], STDERR_FILENO), 0);
    close(pair[1]);
    close(pair[0]);
    log_error("io", "nobody reads this");
    assert_return_code(dup2(saved, STDERR_FILENO), 0);
    close(saved);
}

struct heard {
    unsigned count;
    char last[LOG_LINE_SIZE];
};

static void hear(void *ctx, const struct log_entry *entry)
{
    struct heard *heard = ctx;

    heard->count++;
    (void)log_format(heard->last, entry, false);
    log_error("io", "said while listening"); /* must not come back to us */
}

static void test_listener_has_a_level_of_its_own(void **state)
{
    struct scratch *scratch = *state;
    struct log_listener listener = {0};
    struct heard heard = {0};

    log_listen(&listener, LOG_DEBUG, hear, &heard);
    assert_true(log_wants(LOG_DEBUG));
    assert_false(log_wants(LOG_TRACE));
    log_line(LOG_TRACE, "io", "too much");
    log_debug("io", "for the listener\n");
    assert_int_equal(heard.count, 1);
    assert_matches(heard.last, "\\[DEBUG\\] io: for the listener\\\\x0a$");
    log_listen_end(&listener);
    log_listen_end(&listener); /* does nothing */
    assert_false(log_wants(LOG_DEBUG));
    log_debug("io", "for nobody");
    assert_int_equal(heard.count, 1);
    char *text = take_log(scratch);
    assert_matches(text, "^[^\n]*\\[ERROR\\] io: said while listening\n$");
    free(text);
}

/* A listener that ends another one, as a stream that breaks may. */
struct ending {
    struct log_listener listener, *other;
    unsigned count;
};

static void end_the_other(void *ctx, const struct log_entry *entry)
{
    struct ending *ending = ctx;
    (void)entry;

    ending->count++;
    log_listen_end(ending->other);
    log_listen_end(&ending->listener);
}

static void test_listeners_of_several_nodes_hear_all_and_may_go_at_any_time(void **state)
{
    struct log_listener listeners[3] = {0};
    struct heard heard[3] = {0};
    struct ending ending = {.other = &listeners[1]};
    (void)state;

    log_listen(&listeners[0], LOG_INFO, hear, &heard[0]);
    log_listen(&listeners[1], LOG_INFO, hear, &heard[1]); /* told after those that came later */
    log_listen(&ending.listener, LOG_INFO, end_the_other, &ending);
    log_listen(&listeners[2], LOG_ERROR, hear, &heard[2]);
    log_info("io", "one");
    log_info("io", "two");
    assert_int_equal(heard[0].count, 2);
    assert_int_equal(heard[1].count, 0);
    assert_int_equal(ending.count, 1);
    assert_int_equal(heard[2].count, 0);
    log_listen(&listeners[1], LOG_INFO, hear, &heard[1]);
    log_info("io", "three");
    assert_int_equal(heard[1].count, 1);
    for (size_t i = 0; i < 3; i++)
        log_listen_end(&listeners[i]);
}

static void *log_elsewhere(void *ctx)
{
    assert_false(log_wants(LOG_DEBUG));
    log_error("io", "from another thread");
    return ctx;
}

static void test_listener_hears_its_own_thread_only(void **state)
{
    struct log_listener listener = {0};
    struct heard heard = {0};
    pthread_t thread;
    (void)state;

    log_listen(&listener, LOG_DEBUG, hear, &heard);
    assert_int_equal(pthread_create(&thread, NULL, log_elsewhere, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(heard.count, 0);
    log_listen_end(&listener);
}

static void test_level_names(void **state)
{
    enum log_level level = LOG_ERROR;
    (void)state;

    assert_true(log_level_from_text("Debug", &level));
    assert_int_equal(level, LOG_DEBUG);
    assert_true(log_level_from_text("WARN", &level));
    assert_int_equal(level, LOG_WARN);
    assert_false(log_level_from_text("verbose", &level));
    assert_false(log_level_from_text("", &level));
    assert_int_equal(level, LOG_WARN);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, finish)
    const struct CMUnitTest tests[] = {
        TEST(test_line_has_the_documented_form),
        TEST(test_less_important_lines_are_left_out),
        TEST(test_newlines_and_control_characters_are_escaped),
        TEST(test_value_cannot_forge_another),
        TEST(test_long_value_is_cut_with_its_quotes),
        TEST(test_long_line_is_cut_and_stays_one),
        TEST(test_json_line_is_what_nomad_writes),
        TEST(test_file_that_cannot_be_opened_changes_nothing),
        TEST(test_reopen_follows_a_rotation),
        TEST(test_reader_that_went_away_is_survived),
        TEST(test_listener_has_a_level_of_its_own),
        TEST(test_listeners_of_several_nodes_hear_all_and_may_go_at_any_time),
        TEST(test_listener_hears_its_own_thread_only),
        TEST(test_level_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
