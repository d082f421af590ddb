/* Files and logs over HTTP: from anywhere to the end, followed, rotated, and nothing outside. */
#include "agent/api/part.h"
#include "test/agent/api/query.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { LARGE = 200000 };

static char alloc_id[UUID_TEXT_SIZE];

static bool note_alloc(void *ctx, const struct machine_id *id, const struct machine *record)
{
    (void)ctx;
    (void)record;
    (void)text_copy(alloc_id, sizeof(alloc_id), id->text); /* of that size */
    return false;
}

static void path_of(const struct whole_node *node, const char *name, char to[PATH_SIZE])
{
    assert_true(text_format(to, PATH_SIZE, "%s/%s/%s", node->config.alloc_dir, alloc_id, name));
}

static void make_directory(const struct whole_node *node, const char *name)
{
    char path[PATH_SIZE];

    path_of(node, name, path);
    assert_return_code(mkdir(path, 0755), 0);
}

static void add(const struct whole_node *node, const char *name, const char *text)
{
    char path[PATH_SIZE];

    path_of(node, name, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static int open_with_alloc(void **state)
{
    struct whole_node *node;

    (void)node_open(state); /* asserts by itself */
    node = *state;
    whole_register(node, "web", 1);
    whole_turns(node);
    core_each(node->parts.core, MACHINE_ALLOC, note_alloc, NULL);
    make_directory(node, "");
    make_directory(node, "alloc");
    make_directory(node, "alloc/logs");
    make_directory(node, "t");
    make_directory(node, "t/local");
    make_directory(node, "t/secrets");
    return 0;
}

/* The question of "/v1/client/fs/<WHAT>/<alloc>?<QUERY>". */
static struct question about(const char *what, const char *query, bool listen)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % COUNT_OF(paths)];

    assert_true(
        text_format(path, sizeof(paths[0]), "/v1/client/fs/%s/%s?%s", what, alloc_id, query));
    return (struct question){.path = path, .listen = listen};
}

static void assert_told(struct whole_node *node, const char *what, const char *query, int status,
                        const char *told)
{
    const struct question question = about(what, query, false);
    char *text;
    int found = talk(node, &question, &text);

    if (found != status || strcmp(text, told) != 0)
        fail_msg("%s?%s: %d \"%s\", not %d \"%s\"", what, query, found, text, status, told);
    free(text);
}

static void assert_refused(struct whole_node *node, const char *what, const char *query, int status)
{
    const struct question question = about(what, query, false);
    char *text;
    int found = talk(node, &question, &text);

    if (found != status)
        fail_msg("%s?%s: %d \"%s\", not %d", what, query, found, text, status);
    free(text);
}

static void test_file_is_read_whole_or_in_part(void **state)
{
    struct whole_node *node = *state;
    char *large = malloc(LARGE + 1);

    assert_non_null(large);
    for (int i = 0; i < LARGE; i++)
        large[i] = (char)('a' + i % 23);
    large[LARGE] = '\0';
    add(node, "t/local/large", large);
    assert_told(node, "cat", "path=t/local/large", 200, large);
    assert_told(node, "readat", "path=t/local/large&offset=23&limit=5", 200, "abcde");
    assert_told(node, "readat", "path=t/local/large&offset=199999", 200, large + LARGE - 1);
    assert_told(node, "readat", "path=t/local/large&offset=900000&limit=5", 200, "");
    assert_int_equal(node->api->reads_count, 0);
    free(large);
}

static void test_file_that_may_not_be_read_is_refused(void **state)
{
    struct whole_node *node = *state;

    add(node, "t/secrets/key", "secret");
    assert_refused(node, "cat", "path=t/secrets/key", 403);
    assert_refused(node, "cat", "path=../../../../etc/passwd", 403);
    assert_refused(node, "cat", "path=none", 404);
    assert_refused(node, "cat", "path=t", 400);
    assert_refused(node, "cat", "", 400);
    assert_refused(node, "readat", "path=none&offset=x", 400);
    assert_refused(node, "stream", "path=none&origin=middle", 400);
    assert_refused(node, "ls", "path=none", 404);
    assert_refused(node, "stat", "", 400);
    assert_int_equal(status_of(node, "GET", "/v1/client/fs/cat/none?path=x"), 404);
    assert_int_equal(node->api->reads_count + node->api->followers_count, 0);
    assert_int_equal(node->api->asides_count, 0);
}

static void test_directory_and_file_are_shown(void **state)
{
    struct whole_node *node = *state;
    const struct question list = about("ls", "path=t/local", false);
    const struct question stat = about("stat", "path=t/local/one", false);
    char *text;

    add(node, "t/local/one", "12345");
    assert_int_equal(talk(node, &list, &text), 200);
    assert_non_null(strstr(text, "\"Name\":\"one\""));
    free(text);
    assert_int_equal(talk(node, &stat, &text), 200);
    assert_non_null(strstr(text, "\"Size\":5"));
    free(text);
}

/* --- logs --- */

static void test_log_is_read_over_its_files(void **state)
{
    struct whole_node *node = *state;

    add(node, "alloc/logs/t.stdout.3", "one ");
    add(node, "alloc/logs/t.stdout.4", "two ");
    add(node, "alloc/logs/t.stdout.5", "three");
    add(node, "alloc/logs/t.stderr.0", "oh");
    assert_told(node, "logs", "task=t&type=stdout&plain=true", 200, "one two three");
    assert_told(node, "logs", "task=t&type=stderr&plain=true", 200, "oh");
    assert_told(node, "logs", "task=t&type=stdout&plain=true&offset=5", 200, "wo three");
    assert_told(node, "logs", "task=t&type=stdout&plain=true&offset=7&origin=end", 200, "o three");
    assert_refused(node, "logs", "type=stdout", 400);
    assert_refused(node, "logs", "task=t&type=out", 400);
    assert_refused(node, "logs", "task=u&type=stdout", 400);
    assert_refused(node, "logs", "task=t&type=stdout&follow=perhaps", 400);
}

struct expected {
    struct query *query;
    const char *text;
};

static bool has_come(void *ctx)
{
    const struct expected *expected = ctx;

    return expected->query->body != NULL && strstr(expected->query->body, expected->text) != NULL;
}

static void await(struct whole_node *node, struct query *query, const char *text)
{
    run_until(node, has_come, &(struct expected){query, text});
}

static bool is_unfollowed(void *ctx)
{
    return ((struct whole_node *)ctx)->api->followers_count == 0;
}

static void test_log_is_followed_into_the_next_file(void **state)
{
    struct whole_node *node = *state;
    const struct question follow = about("logs", "task=t&type=stdout&plain=true&follow=true", true);

    add(node, "alloc/logs/t.stdout.0", "one ");
    struct query *query = ask_with(node, &follow);
    await(node, query, "one ");
    add(node, "alloc/logs/t.stdout.0", "more ");
    await(node, query, "one more ");
    add(node, "alloc/logs/t.stdout.0", "last ");
    add(node, "alloc/logs/t.stdout.1", "next");
    await(node, query, "one more last next");
    assert_false(query->answered);
    assert_int_equal(node->api->followers_count, 1);
    assert_int_equal(node->api->reads_count, 0);
    query_end(query);
    run_until(node, is_unfollowed, node);
}

static void test_log_that_is_removed_and_made_anew_is_followed(void **state)
{
    struct whole_node *node = *state;
    const struct question follow = about("logs", "task=t&type=stdout&plain=true&follow=true", true);
    char path[PATH_SIZE];

    path_of(node, "alloc/logs/t.stdout.0", path);
    add(node, "alloc/logs/t.stdout.0", "one ");
    struct query *query = ask_with(node, &follow);
    await(node, query, "one ");
    assert_return_code(unlink(path), 0);
    whole_turns(node);
    add(node, "alloc/logs/t.stdout.0", "anew ");
    await(node, query, "one anew ");
    add(node, "alloc/logs/t.stdout.1", "next");
    await(node, query, "one anew next");
    query_end(query);
    run_until(node, is_unfollowed, node);
}

static void test_log_ends_with_its_directory(void **state)
{
    struct whole_node *node = *state;
    const struct question follow = about("logs", "task=t&type=stdout&plain=true&follow=true", true);
    char path[PATH_SIZE];

    add(node, "alloc/logs/t.stdout.0", "one ");
    struct query *query = ask_with(node, &follow);
    await(node, query, "one ");
    path_of(node, "alloc/logs/t.stdout.0", path);
    assert_return_code(unlink(path), 0);
    path_of(node, "alloc/logs", path);
    assert_return_code(rmdir(path), 0);
    hear(node, query);
    assert_int_equal(query->status, 200);
    query_end(query);
}

static void test_file_that_is_followed_tells_what_happens_to_it(void **state)
{
    struct whole_node *node = *state;
    const struct question follow = about("stream", "path=t/local/file", true);
    char path[PATH_SIZE];

    add(node, "t/local/file", "hello");
    path_of(node, "t/local/file", path);
    struct query *query = ask_with(node, &follow);
    await(node, query, "\"Data\":\"aGVsbG8=\"");
    assert_return_code(truncate(path, 0), 0);
    await(node, query, "\"FileEvent\":\"file truncated\"");
    add(node, "t/local/file", "again");
    await(node, query, "\"Data\":\"YWdhaW4=\"");
    await(node, query, "{}"); /* that we are alive */
    assert_return_code(unlink(path), 0);
    hear(node, query);
    assert_int_equal(query->status, 200);
    assert_int_equal(node->api->followers_count, 0);
    query_end(query);
}

static void test_node_ends_while_a_log_is_followed(void **state)
{
    struct whole_node *node = *state;
    const struct question follow = about("logs", "task=t&type=stdout&follow=true", true);

    add(node, "alloc/logs/t.stdout.0", "hello");
    struct query *query = ask_with(node, &follow);
    await(node, query, "aGVsbG8=");
    query_end(query);
}

static void test_readers_have_a_bound_of_their_own(void **state)
{
    struct whole_node *node = *state;
    const struct question file = about("cat", "path=t/local/file", false);

    add(node, "t/local/file", "short");
    node->api->reads_count = API_READS_MAX;
    assert_refused(node, "cat", "path=t/local/file", 503);
    node->api->reads_count = 0;
    assert_int_equal(talk(node, &file, NULL), 200);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_with_alloc, node_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_file_is_read_whole_or_in_part),
        TEST(test_file_that_may_not_be_read_is_refused),
        TEST(test_directory_and_file_are_shown),
        TEST(test_log_is_read_over_its_files),
        TEST(test_log_is_followed_into_the_next_file),
        TEST(test_log_that_is_removed_and_made_anew_is_followed),
        TEST(test_log_ends_with_its_directory),
        TEST(test_file_that_is_followed_tells_what_happens_to_it),
        TEST(test_node_ends_while_a_log_is_followed),
        TEST(test_readers_have_a_bound_of_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
