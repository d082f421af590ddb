/* An ephemeral disk that goes on with the next alloc: whole, once, and whatever its payloads left
 * in its place. */
#include "test/hooks/fixture.h"

#define OLD_ID "0a0a0a0a-9a1d-4d5e-8f00-0123456789ab"
#define OLDER_ID "0b0b0b0b-9a1d-4d5e-8f00-0123456789ab"

static void begin(struct fixture *fixture, const char *const *from, const char *elsewhere)
{
    const struct hook_run run = {
        .phase = PHASE_PRERUN,
        .hook = ALLOC_HOOK_MIGRATE_DISK,
        .alloc = &fixture->alloc,
        .disk_from = from,
        .disk_elsewhere = elsewhere,
    };

    fixture->answered = false;
    hook_run(fixture->hooks, &run, on_outcome, fixture);
}

static int migrate(struct fixture *fixture, const char *const *from)
{
    begin(fixture, from, NULL);
    loop_run(fixture->loop);
    assert_true(fixture->answered);
    return fixture->outcome.code;
}

static int take_over(struct fixture *fixture)
{
    return migrate(fixture, (const char *[]){OLD_ID, NULL});
}

/* A path below the directory of the alloc ID, until the next call. */
static const char *below(struct fixture *fixture, const char *id, const char *name)
{
    static char path[1024];

    assert_true(text_format(path, sizeof(path), "%s/%s/%s", fixture->alloc_dir, id, name));
    return path;
}

/* The alloc ID as it is when its task has run. */
static void leave_behind(struct fixture *fixture, const char *id)
{
    fixture->alloc.id = id;
    assert_true(text_format(fixture->root, sizeof(fixture->root), "%s/%s", fixture->alloc_dir, id));
    assert_int_equal(build_alloc(fixture), 0);
    assert_int_equal(build_task(fixture), 0);
    put_file(below(fixture, id, "alloc/data/shared"), id);
    put_file(below(fixture, id, "alloc/logs/kept"), id);
    put_file(below(fixture, id, "web/local/own"), id);
    put_file(below(fixture, id, "web/tmp/kept"), id);
    assert_int_equal(strip_task(fixture), 0);
    fixture->alloc.id = ALLOC_ID;
    assert_true(
        text_format(fixture->root, sizeof(fixture->root), "%s/%s", fixture->alloc_dir, ALLOC_ID));
}

static void test_without_its_own_directory_nothing_is_taken(void **state)
{
    struct fixture *fixture = *state;

    leave_behind(fixture, OLD_ID);
    assert_int_equal(take_over(fixture), ERR_GONE);
    assert_outcome(fixture, ERR_GONE, false, "alloc directory is gone");
    assert_file_is(below(fixture, OLD_ID, "alloc/data/shared"), OLD_ID);
}

static void test_one_that_cannot_be_taken_stays_whole(void **state)
{
    struct fixture *fixture = *state;

    need_root();
    leave_behind(fixture, OLD_ID);
    assert_int_equal(build_alloc(fixture), 0);
    assert_return_code(mount("tmpfs", below(fixture, OLD_ID, "alloc/data"), "tmpfs", 0, ""), 0);
    assert_int_equal(take_over(fixture), ERR_AGAIN);
    assert_outcome(fixture, ERR_AGAIN, true, "cannot take over alloc/data");
    assert_file_is(below(fixture, OLD_ID, "web/local/own"), OLD_ID);
    assert_return_code(umount(below(fixture, OLD_ID, "alloc/data")), 0);
    assert_int_equal(take_over(fixture), 0);
    assert_file_is(below(fixture, ALLOC_ID, "alloc/data/shared"), OLD_ID);
}

static void test_links_in_its_place_are_not_followed(void **state)
{
    struct fixture *fixture = *state;
    char outside[600];

    assert_true(text_format(outside, sizeof(outside), "%s/outside", fixture->scratch.path));
    assert_return_code(mkdir(outside, 0700), 0);
    put_file(below(fixture, "../outside", "canary"), "alive");
    leave_behind(fixture, OLD_ID);
    assert_int_equal(
        tree_remove(AT_FDCWD, below(fixture, OLD_ID, "web/local"), &fixture->scratch.err), 0);
    assert_return_code(symlink(outside, below(fixture, OLD_ID, "web/local")), 0);
    assert_int_equal(build_alloc(fixture), 0);
    assert_int_equal(take_over(fixture), 0);
    assert_false(exists(below(fixture, ALLOC_ID, "web/local")));
    assert_int_equal(build_task(fixture), 0);
    assert_false(exists(below(fixture, ALLOC_ID, "web/local/canary")));
    assert_int_equal(strip_task(fixture), 0);

    assert_int_equal(tree_remove(AT_FDCWD, below(fixture, OLD_ID, "web"), &fixture->scratch.err),
                     0);
    assert_return_code(symlink("..", below(fixture, OLD_ID, "web")), 0); /* the task's, too */
    assert_int_equal(take_over(fixture), 0);
    assert_true(exists(outside));
}

static void test_data_and_local_of_each_task_go_on_and_nothing_else(void **state)
{
    struct fixture *fixture = *state;

    leave_behind(fixture, OLD_ID);
    assert_return_code(chmod(below(fixture, OLD_ID, "web/local"), 0700), 0);
    assert_int_equal(build_alloc(fixture), 0);
    assert_int_equal(take_over(fixture), 0);
    assert_int_equal(build_task(fixture), 0);
    assert_file_is(below(fixture, ALLOC_ID, "alloc/data/shared"), OLD_ID);
    assert_file_is(below(fixture, ALLOC_ID, "web/local/own"), OLD_ID);
    assert_int_equal(mode_of(below(fixture, ALLOC_ID, "web/local")), 0700); /* the payload's own */
    assert_directory(below(fixture, ALLOC_ID, "web"), 0755, "root");
    assert_false(exists(below(fixture, ALLOC_ID, "web/tmp/kept")));
    assert_false(exists(below(fixture, ALLOC_ID, "alloc/logs/kept")));
    assert_file_is(below(fixture, OLD_ID, "alloc/logs/kept"), OLD_ID); /* for who reads on */
    assert_int_equal(strip_task(fixture), 0);
}

static void test_the_same_again_changes_nothing(void **state)
{
    struct fixture *fixture = *state;

    leave_behind(fixture, OLD_ID);
    assert_int_equal(build_alloc(fixture), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(take_over(fixture), 0);
        assert_file_is(below(fixture, ALLOC_ID, "alloc/data/shared"), OLD_ID);
        assert_file_is(below(fixture, ALLOC_ID, "web/local/own"), OLD_ID);
    }
}

/* A crash between two renames, and an alloc that died of something else then. */
static void test_what_one_before_left_behind_is_found_with_the_one_before_it(void **state)
{
    struct fixture *fixture = *state;
    char from[600], to[600];

    leave_behind(fixture, OLDER_ID);
    fixture->alloc.id = OLD_ID;
    assert_int_equal(build_alloc(fixture), 0);
    fixture->alloc.id = ALLOC_ID;
    assert_true(text_copy(from, sizeof(from), below(fixture, OLDER_ID, "alloc/data")));
    assert_true(text_copy(to, sizeof(to), below(fixture, OLD_ID, "alloc/data")));
    assert_return_code(rename(from, to), 0);
    assert_int_equal(build_alloc(fixture), 0);
    assert_int_equal(migrate(fixture, (const char *[]){OLD_ID, OLDER_ID, NULL}), 0);
    assert_file_is(below(fixture, ALLOC_ID, "alloc/data/shared"), OLDER_ID);
    assert_file_is(below(fixture, ALLOC_ID, "web/local/own"), OLDER_ID);
}

static void test_nobody_before_it_is_no_failure(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(build_alloc(fixture), 0);
    assert_int_equal(take_over(fixture), 0);
    assert_true(exists(below(fixture, ALLOC_ID, "alloc/data")));
}

/* --- from another node --- */

/* Who knows where it is. */
static struct {
    const char *address; /* NULL: nobody does */
    struct loop *silent; /* which is stopped instead of an answer; NULL: it is given */
    unsigned asked;
    spec_disk_cb *cb;
    void *ctx;
} book;

static void tell(void)
{
    const struct spec_disk_place place = {
        .node = "n", .address = book.address, .token = "secret of a node"};
    struct err err = {0};

    (void)err_set(&err, ERR_GONE, "the servers know it no more");
    book.cb(book.ctx, book.address == NULL ? NULL : &place, &err);
}

static void find(void *ctx, const char *alloc, const char *previous, spec_disk_cb *cb, void *cb_ctx)
{
    (void)ctx;
    assert_string_equal(alloc, ALLOC_ID);
    assert_string_equal(previous, OLD_ID);
    book.asked++;
    book.cb = cb;
    book.ctx = cb_ctx;
    if (book.silent == NULL)
        tell();
    else
        loop_stop(book.silent);
}

static void look_elsewhere(struct fixture *fixture)
{
    static char program[PATH_SIZE];
    static const struct hooks_fetch fetch = {.program = program, .variables = ""};
    static const struct hooks_disks disks = {
        .find = find, .region = "global", .ca_file = "", .cert_file = "", .key_file = ""};

    beside_program(program, "cairn-fetch");
    book.address = NULL;
    book.silent = NULL;
    book.asked = 0;
    fixture->fetch = &fetch;
    fixture->disks = &disks;
    start_hooks(fixture, NULL);
    assert_int_equal(build_alloc(fixture), 0);
}

static int take_from_elsewhere(struct fixture *fixture)
{
    begin(fixture, (const char *[]){OLD_ID, NULL}, OLD_ID);
    loop_run(fixture->loop);
    assert_true(fixture->answered);
    return fixture->outcome.code;
}

static void assert_begins_empty(struct fixture *fixture, const char *why)
{
    assert_int_equal(take_from_elsewhere(fixture), 0);
    assert_non_null(strstr(fixture->text, "The disk of alloc 0a0a0a0a on another node is not "));
    assert_non_null(strstr(fixture->text, why));
    assert_int_equal(fixture->outcome.results_bytes, 0); /* a token is nobody's to keep */
    assert_false(exists(below(fixture, ALLOC_ID, ".disk.new")));
    assert_false(exists(below(fixture, ALLOC_ID, ".disk")));
}

static void test_one_that_cannot_be_had_is_empty_and_says_why(void **state)
{
    struct fixture *fixture = *state;

    look_elsewhere(fixture);
    assert_begins_empty(fixture, "the servers know it no more");
    book.address = "127.0.0.1:1"; /* where nobody listens */
    assert_begins_empty(fixture, "onnect");
    static const char *const none[] = {"",           "host",    ":1",    "host:", "host:0",
                                       "host:65536", "ho st:1", "a@b:1", "h/x:1"};
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        book.address = none[i];
        assert_begins_empty(fixture, "its node has no address");
    }
    assert_int_equal(book.asked, 2 + COUNT_OF(none));
}

/* The daemon ended when all had come, and some of it was moved. */
static void test_what_has_come_whole_is_taken_whoever_answers_now(void **state)
{
    struct fixture *fixture = *state;

    look_elsewhere(fixture);
    put_file(below(fixture, ALLOC_ID, "alloc/data/shared"), "moved before");
    assert_return_code(mkdir(below(fixture, ALLOC_ID, ".disk"), 0700), errno);
    assert_return_code(mkdir(below(fixture, ALLOC_ID, ".disk/web"), 0755), errno);
    assert_return_code(mkdir(below(fixture, ALLOC_ID, ".disk/web/local"), 0755), errno);
    put_file(below(fixture, ALLOC_ID, ".disk/web/local/own"), "came");
    assert_int_equal(take_from_elsewhere(fixture), 0);
    assert_string_equal(fixture->text, "");
    assert_file_is(below(fixture, ALLOC_ID, "web/local/own"), "came");
    assert_file_is(below(fixture, ALLOC_ID, "alloc/data/shared"), "moved before");
    assert_false(exists(below(fixture, ALLOC_ID, ".disk")));
}

static void test_half_of_one_is_thrown_away(void **state)
{
    struct fixture *fixture = *state;

    look_elsewhere(fixture);
    assert_return_code(mkdir(below(fixture, ALLOC_ID, ".disk.new"), 0700), errno);
    assert_return_code(mkdir(below(fixture, ALLOC_ID, ".disk.new/alloc"), 0755), errno);
    assert_return_code(mkdir(below(fixture, ALLOC_ID, ".disk.new/alloc/data"), 0755), errno);
    put_file(below(fixture, ALLOC_ID, ".disk.new/alloc/data/shared"), "half");
    book.address = "127.0.0.1:1";
    assert_begins_empty(fixture, "onnect");
    assert_false(exists(below(fixture, ALLOC_ID, "alloc/data/shared")));
}

static void test_one_that_is_here_is_not_asked_for(void **state)
{
    struct fixture *fixture = *state;

    leave_behind(fixture, OLD_ID);
    look_elsewhere(fixture);
    assert_int_equal(take_over(fixture), 0);
    assert_int_equal(book.asked, 0);
    assert_file_is(below(fixture, ALLOC_ID, "alloc/data/shared"), OLD_ID);
}

static void test_nobody_waits_for_one_that_is_not_wanted_any_more(void **state)
{
    struct fixture *fixture = *state;

    look_elsewhere(fixture);
    book.silent = fixture->loop;
    begin(fixture, (const char *[]){OLD_ID, NULL}, OLD_ID);
    loop_run(fixture->loop);
    assert_int_equal(book.asked, 1);
    hooks_abort(fixture->hooks, ALLOC_ID, "");
    loop_run(fixture->loop);
    assert_true(fixture->answered);
    assert_int_equal(fixture->outcome.code, ERR_CANCELED);
    tell(); /* to nobody */

    book.asked = 0;
    begin(fixture, (const char *[]){OLD_ID, NULL}, OLD_ID);
    hooks_abort(fixture->hooks, ALLOC_ID, ""); /* before anybody was asked */
    loop_run(fixture->loop);
    assert_int_equal(fixture->outcome.code, ERR_CANCELED);
    assert_int_equal(book.asked, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_make, fixture_remove)
        TEST(test_without_its_own_directory_nothing_is_taken),
        TEST(test_one_that_cannot_be_taken_stays_whole),
        TEST(test_links_in_its_place_are_not_followed),
        TEST(test_data_and_local_of_each_task_go_on_and_nothing_else),
        TEST(test_the_same_again_changes_nothing),
        TEST(test_what_one_before_left_behind_is_found_with_the_one_before_it),
        TEST(test_nobody_before_it_is_no_failure),
        TEST(test_one_that_cannot_be_had_is_empty_and_says_why),
        TEST(test_what_has_come_whole_is_taken_whoever_answers_now),
        TEST(test_half_of_one_is_thrown_away),
        TEST(test_one_that_is_here_is_not_asked_for),
        TEST(test_nobody_waits_for_one_that_is_not_wanted_any_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
