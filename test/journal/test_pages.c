/* Damaged data files: one clear error, or a journal that still reads; never a crash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "journal/pages.h"
#include "journal/store.h"
#include "test/journal/scratch.h"

#include <sys/resource.h>

static struct turn_batch turn;

enum { PAGE = 4096 };

/* A journal in which every kind of page occurs: branches, leaves, long values, free pages. */
static unsigned char *make_rich(size_t *ret_length)
{
    struct journal *journal;
    struct err err;
    char path[PATH_MAX], *large = malloc(20000);
    struct journal_blob spec = {.bytes = large, .length = 20000};
    struct journal_batch batch = {.specs = &spec, .specs_count = 1};

    memset(large, 'x', 20000);
    assert_int_equal(journal_open(in_scratch(path, "journal"), JOURNAL_WRITE, &journal, &err), 0);
    for (uint64_t number = 1; number <= 60; number++) {
        turn_make(&turn, number);
        assert_int_equal(journal_commit(journal, &turn.batch, &err), 0);
    }
    for (int i = 0; i < 3; i++) {
        text_format(spec.key, sizeof(spec.key), "large/%d", i);
        assert_int_equal(journal_commit(journal, &batch, &err), 0);
    }
    spec.bytes = NULL;
    text_copy(spec.key, sizeof(spec.key), "large/1");
    assert_int_equal(journal_commit(journal, &batch, &err), 0);
    journal_close(journal);
    free(large);
    return file_read(in_scratch(path, "journal/data.mdb"), ret_length);
}

/* --- using a journal that may be damaged, in a child that must not die --- */

static bool any_record(void *ctx, const struct machine_id *id, const struct machine *record)
{
    (void)ctx, (void)id;
    check(fsm_broken(record) == NULL);
    return true;
}

static bool any_event(void *ctx, const struct journal_event *event)
{
    (void)ctx;
    check(event->id.kind < MACHINE_KIND_COUNT);
    return true;
}

static bool any_blob(void *ctx, const char *key, const void *bytes, size_t length)
{
    (void)ctx, (void)key;
    check(hash_bytes(0, bytes, length) != 1); /* all of it can be read */
    return true;
}

static void any_bad(void *ctx, const char *table, const char *key, const void *bytes, size_t length,
                    const char *reason)
{
    unsigned *bad = ctx;

    (void)table, (void)key, (void)reason;
    check(hash_bytes(0, bytes, length) != 1);
    (*bad)++;
}

/* Walks everything and commits; the number of bad entries, or an error that only damage explains.
 */
static int use_journal(struct journal *journal, enum journal_mode mode)
{
    unsigned bad = 0;
    struct err err;

    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
        check(journal_each_record(journal, (enum machine_kind)kind, any_record, any_bad, &bad,
                                  &err) == 0);
        check(journal_each_base(journal, (enum machine_kind)kind, any_record, any_bad, &bad,
                                &err) == 0);
    }
    check(journal_each_event(journal, 0, any_event, any_bad, &bad, &err) == 0);
    int specs = journal_each_spec(journal, "", any_blob, NULL, &err);
    int metas = journal_each_meta(journal, any_blob, NULL, &err);
    check(specs == 0 || specs == ERR_CORRUPT);
    check(metas == 0 || metas == ERR_CORRUPT);
    bad += (specs != 0 ? 1u : 0u) + (metas != 0 ? 1u : 0u);
    if (mode == JOURNAL_WRITE) {
        struct journal_blob spec = {.key = "after", .bytes = "x", .length = 1};
        struct journal_batch batch = {
            .specs = &spec, .specs_count = 1, .trim_below = journal_first_sequence(journal) + 100};
        check(journal_commit(journal, &batch, &err) == 0);
    }
    return (int)bad;
}

enum { SAID_FINE, SAID_BAD_ENTRIES, SAID_REFUSED, SAID_COUNT };

static void use_damaged(int orders, int answers)
{
    struct journal *journal;
    char path[PATH_MAX];
    struct err err;
    char mode;
    struct rlimit none = {0};

    (void)answers;
    setrlimit(RLIMIT_CORE, &none);
    child_check(read(orders, &mode, 1) == 1);
    int code = journal_open(in_scratch(path, "damaged"), (enum journal_mode)mode, &journal, &err);
    if (code != 0) {
        child_check(err.text[0] != '\0');
        if (code != ERR_CORRUPT && code != ERR_UNSUPPORTED && code != ERR_GONE)
            fprintf(stderr, "%d: %s\n", code, err.text);
        child_check(code == ERR_CORRUPT || code == ERR_UNSUPPORTED || code == ERR_GONE);
        _exit(100 + SAID_REFUSED);
    }
    int bad = use_journal(journal, (enum journal_mode)mode);
    journal_close(journal);
    _exit(100 + (bad > 0 ? SAID_BAD_ENTRIES : SAID_FINE));
}

/* What a process says that uses BYTES as its journal. */
static int try_damaged(const unsigned char *bytes, size_t length, enum journal_mode mode)
{
    char path[PATH_MAX], order = (char)mode;

    (void)mkdir(in_scratch(path, "damaged"), 0700); /* from the second time on it is there */
    file_write(in_scratch(path, "damaged/data.mdb"), bytes, length);
    struct child child = child_start(use_damaged);
    assert_int_equal(write(child.orders, &order, 1), 1);
    int status = child_end(&child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) < 100)
        fail_msg("the process died of it: status %x", (unsigned)status);
    return WEXITSTATUS(status) - 100;
}

static void assert_refused(const unsigned char *bytes, size_t length)
{
    assert_int_equal(try_damaged(bytes, length, JOURNAL_WRITE), SAID_REFUSED);
    assert_int_equal(try_damaged(bytes, length, JOURNAL_READ), SAID_REFUSED);
}

static void test_sound_journal_passes(void **state)
{
    size_t length;
    unsigned char *bytes = make_rich(&length);

    (void)state;
    assert_int_equal(try_damaged(bytes, length, JOURNAL_READ), SAID_FINE);
    assert_int_equal(try_damaged(bytes, length, JOURNAL_WRITE), SAID_FINE);
    free(bytes);
}

static void test_file_of_something_else_is_refused(void **state)
{
    unsigned char *zeroes = calloc(1, 10 * PAGE);
    static const unsigned char text[] = "SQLite format 3";

    (void)state;
    assert_refused(text, sizeof(text));
    assert_refused(zeroes, 10 * PAGE);
    assert_refused(zeroes, 100);
    memset(zeroes, 0xFF, 10 * PAGE);
    assert_refused(zeroes, 10 * PAGE);
    free(zeroes);
}

static void test_truncated_file_is_refused(void **state)
{
    size_t length;
    unsigned char *bytes = make_rich(&length);
    const size_t sizes[] = {1,
                            100,
                            PAGE,
                            PAGE + 100,
                            2 * PAGE,
                            3 * PAGE,
                            length / 2,
                            length / 2 + 77,
                            length - PAGE,
                            length - 1};
    unsigned refused = 0;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        int said = try_damaged(bytes, sizes[i], JOURNAL_READ);
        assert_int_equal(said, try_damaged(bytes, sizes[i], JOURNAL_WRITE));
        refused += said == SAID_REFUSED;
        if (sizes[i] <= length / 2 + 77)
            assert_int_equal(said, SAID_REFUSED);
    }
    assert_true(refused >= 8); /* the last page may be a free one that nobody misses */
    free(bytes);
}

static void test_zeroed_head_is_refused(void **state)
{
    size_t length;
    unsigned char *bytes = make_rich(&length), *damaged = malloc(length);

    (void)state;
    for (size_t head = 0; head < 2; head++) {
        memcpy(damaged, bytes, length);
        memset(damaged + head * PAGE, 0, PAGE);
        assert_refused(damaged, length);
    }
    free(damaged);
    free(bytes);
}

static uint16_t flags_of(const unsigned char *bytes, size_t page)
{
    uint16_t flags;

    memcpy(&flags, bytes + page * PAGE + 10, sizeof(flags));
    return flags;
}

/* Bits in every page: in its first bytes, where its structure is, and anywhere.  Most are found,
 * some hit free space; the process lives, reads and writes. */
static void test_flipped_bits_in_every_kind_of_page_are_survived(void **state)
{
    size_t length;
    unsigned char *bytes = make_rich(&length);
    unsigned said[SAID_COUNT] = {0}, kinds = 0;
    struct rng rng = rng_init(5);

    (void)state;
    for (size_t page = 0; page < length / PAGE; page++)
        kinds |= flags_of(bytes, page);
    assert_int_equal(kinds & 0xF, 0xF); /* branch, leaf, long, head: all are there */
    for (int i = 0; i < 700; i++) {
        size_t page = i % 5 == 0 ? rng_below(&rng, 2) : rng_below(&rng, length / PAGE);
        size_t at = page * PAGE + rng_below(&rng, i % 3 == 0 ? PAGE : page < 2 ? 152 : 64);
        unsigned char before = bytes[at];
        bytes[at] ^= (unsigned char)(1u << rng_below(&rng, 8));
        said[try_damaged(bytes, length, i % 2 == 0 ? JOURNAL_READ : JOURNAL_WRITE)]++;
        bytes[at] = before;
    }
    assert_true(said[SAID_REFUSED] > 100);
    assert_true(said[SAID_BAD_ENTRIES] > 5);
    assert_true(said[SAID_FINE] > 5);
    free(bytes);
}

static void test_pages_of_garbage_are_survived(void **state)
{
    size_t length;
    unsigned char *bytes = make_rich(&length), *damaged = malloc(length);
    struct rng rng = rng_init(5);

    (void)state;
    for (int i = 0; i < 60; i++) {
        size_t page = 2 + rng_below(&rng, length / PAGE - 2);
        memcpy(damaged, bytes, length);
        if (i % 2 == 0) /* what a lost write leaves: another page's contents */
            memcpy(damaged + page * PAGE, bytes + rng_below(&rng, length / PAGE) * PAGE, PAGE);
        else
            for (size_t j = 0; j < PAGE; j++)
                damaged[page * PAGE + j] = (unsigned char)rng_next(&rng);
        (void)try_damaged(damaged, length, JOURNAL_WRITE); /* it fails the test if it dies */
    }
    free(damaged);
    free(bytes);
}

static void test_check_names_the_page(void **state)
{
    char path[PATH_MAX];
    size_t length;
    unsigned char *bytes = make_rich(&length);
    struct err err;
    uint16_t upper = 60000;

    (void)state;
    for (size_t page = 2; page < length / PAGE; page++) {
        if (flags_of(bytes, page) == 2)
            memcpy(bytes + page * PAGE + 14, &upper, sizeof(upper));
    }
    file_write(in_scratch(path, "file"), bytes, length);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(pages_check(fd, 0, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.text, "the free space of page "));
    assert_int_equal(pages_check(fd, 3, &err), ERR_AGAIN); /* a head long overwritten */
    close(fd);
    free(bytes);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_file_of_something_else_is_refused),
        TEST(test_truncated_file_is_refused),
        TEST(test_zeroed_head_is_refused),
        TEST(test_flipped_bits_in_every_kind_of_page_are_survived),
        TEST(test_pages_of_garbage_are_survived),
        TEST(test_check_names_the_page),
        TEST(test_sound_journal_passes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
