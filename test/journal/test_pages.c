/*
 * Damaged data files: one clear error, or a journal that still reads and can be written for ever;
 * never a crash.  `test_pages all` flips every bit of a small journal, each in its turn, and draws
 * 20,000 larger damages; it says what came of them and takes minutes.
 *
 * Built as debug: sanitizers see the same code in fuzz_pages.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "journal/format.h"
#include "journal/pages.h"
#include "journal/store.h"
#include "test/journal/reading.h"
#include "test/journal/scratch.h"

#include <sys/mman.h>
#include <sys/resource.h>

static struct turn_batch turn;

static bool exhaustive;

enum { PAGE = 4096 };

/* A journal of TURNS turns in which every kind of page occurs: branches, leaves, long values, free
 * pages. */
static unsigned char *make_journal(uint64_t turns, size_t long_bytes, size_t *ret_length)
{
    struct journal *journal;
    struct err err;
    char path[PATH_MAX], *large = malloc(long_bytes);
    struct journal_blob spec = {.bytes = large, .length = long_bytes};
    struct journal_batch batch = {.specs = &spec, .specs_count = 1};

    memset(large, 'x', long_bytes);
    assert_int_equal(journal_open(in_scratch(path, "journal"), JOURNAL_WRITE, &journal, &err), 0);
    for (uint64_t number = 1; number <= turns; number++) {
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

static unsigned char *make_rich(size_t *ret_length)
{
    return make_journal(60, 20000, ret_length);
}

/* --- using a journal that may be damaged, in a child that must not die --- */

/* Walks everything and commits; the number of bad entries. */
static int use_journal(struct journal *journal, enum journal_mode mode)
{
    unsigned bad = read_all(journal);
    struct err err;

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

/* --- a writer that goes on with what was not refused --- */

/* What a child tells while it lives, and what is known of it when it has died. */
struct tally {
    uint64_t next; /* the damage that is being tried */
    uint64_t refused, written;
    uint64_t crashed, refused_later; /* of these there may be none */
};

struct damaging {
    const unsigned char *whole;
    unsigned char *bytes;
    size_t length;
    /* Spoils BYTES, which are WHOLE, as NUMBER says. */
    void (*spoil)(struct damaging *damaging, uint64_t number);
    uint64_t count;
    uint64_t step; /* of the numbers, every so many are tried */
};

struct set_aside {
    char table[16], key[JOURNAL_KEY_SIZE];
};

struct bad_list {
    struct set_aside items[64];
    size_t count;
};

static void note_bad(void *ctx, const char *table, const char *key, const void *bytes,
                     size_t length, const char *reason)
{
    struct bad_list *list = ctx;

    (void)bytes, (void)length, (void)reason;
    if (list->count == COUNT_OF(list->items))
        return; /* the next start finds the rest */
    text_copy(list->items[list->count].table, sizeof(list->items[0].table), table);
    text_copy(list->items[list->count].key, sizeof(list->items[0].key), key);
    list->count++;
}

/* As a daemon that starts: what cannot be read goes into quarantine. */
static void quarantine_bad(struct journal *journal)
{
    static struct bad_list bad;
    struct err err;

    bad.count = 0;
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        check(journal_each_record(journal, (enum machine_kind)kind, any_record, note_bad, &bad,
                                  &err) == 0);
    check(journal_each_bad_spec(journal, note_bad, &bad, &err) == 0);
    for (size_t i = 0; i < bad.count; i++)
        check(journal_quarantine(journal, bad.items[i].table, bad.items[i].key, "damaged", 1,
                                 &err) == 0);
}

/* Commits that touch every table, add, replace, delete and trim, and use pages again.  Their turns
 * are the same for each damage, and drawn once: that takes far longer than to commit them. */
static void write_on(struct journal *journal)
{
    enum { FIRST = 100, TURNS = 4 };
    static struct turn_batch turns[TURNS];
    static const char large[9000] = "large";
    struct journal_batch removal = {.specs_count = 1};
    struct journal_blob spec = {.key = "large/0"};
    struct err err;

    for (uint64_t number = FIRST; number < FIRST + TURNS; number++) {
        struct turn_batch *next = &turns[number - FIRST];
        if (next->batch.events_count == 0)
            turn_make(next, number);
        for (size_t i = 0; i < TURN_EVENTS; i++)
            next->events[i].sequence = journal_next_sequence(journal) + i;
        next->batch.trim_below = journal_first_sequence(journal) + 4;
        check(journal_commit(journal, &next->batch, &err) == 0);
        spec.bytes = number % 2 == 0 ? large : NULL;
        spec.length = spec.bytes == NULL ? 0 : sizeof(large);
        removal.specs = &spec;
        check(journal_commit(journal, &removal, &err) == 0);
    }
}

/* Tries damages in this process, which may die of one. */
static void try_on(struct damaging *damaging, struct tally *tally)
{
    char path[PATH_MAX], file[PATH_MAX];
    struct journal *journal;
    struct rlimit none = {0};
    struct err err;

    setrlimit(RLIMIT_CORE, &none);
    (void)mkdir(in_scratch(path, "damaged"), 0700); /* from the second time on it is there */
    in_scratch(file, "damaged/data.mdb");
    for (; tally->next < damaging->count; tally->next += damaging->step) {
        memcpy(damaging->bytes, damaging->whole, damaging->length);
        damaging->spoil(damaging, tally->next);
        file_write(file, damaging->bytes, damaging->length);
        if (journal_open(path, JOURNAL_WRITE, &journal, &err) != 0) {
            tally->refused++;
            continue;
        }
        quarantine_bad(journal);
        write_on(journal);
        journal_close(journal);
        if (journal_open(path, JOURNAL_WRITE, &journal, &err) != 0) {
            fprintf(stderr, "damage %llu: %s\n", (unsigned long long)tally->next, err.text);
            tally->refused_later++;
            continue;
        }
        write_on(journal);
        journal_close(journal);
        tally->written++;
    }
    _exit(0);
}

static struct tally try_all(struct damaging *damaging)
{
    struct tally *tally =
        mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = -1;

    assert_true(tally != MAP_FAILED);
    damaging->bytes = malloc(damaging->length);
    while (status != 0) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            try_on(damaging, tally);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (status != 0) {
            fprintf(stderr, "damage %llu: the writer died, status %x\n",
                    (unsigned long long)tally->next, (unsigned)status);
            tally->crashed++;
            tally->next += damaging->step;
        }
    }
    struct tally result = *tally;
    munmap(tally, sizeof(*tally));
    free(damaging->bytes);
    return result;
}

static void flip_bit(struct damaging *damaging, uint64_t number)
{
    damaging->bytes[number / 8] ^= (unsigned char)(1u << number % 8);
}

/* Some bytes anywhere become others, a piece moves, or a page becomes what another one is. */
static void spoil_more(struct damaging *damaging, uint64_t number)
{
    struct rng rng = rng_init(number + 1);
    size_t pages = damaging->length / PAGE, page = rng_below(&rng, pages);
    unsigned char *at = damaging->bytes + page * PAGE;
    size_t from = rng_below(&rng, PAGE), length = 1 + rng_below(&rng, PAGE - from);

    switch (rng_below(&rng, 5)) {
    case 0:
        for (uint64_t i = 0, count = 2 + rng_below(&rng, 6); i < count; i++)
            at[rng_below(&rng, rng_chance(&rng, 1, 2) ? 64 : PAGE)] = (unsigned char)rng_next(&rng);
        return;
    case 1:
        memset(at + from, rng_chance(&rng, 1, 2) ? 0 : 0xFF, length);
        return;
    case 2: /* shifted within its page */
        memmove(at + from, at + rng_below(&rng, PAGE - length + 1), length);
        return;
    case 3: /* another page's contents, under its own number or this one's */
        length = rng_chance(&rng, 1, 2) ? 0 : 8;
        memcpy(at + length, damaging->whole + rng_below(&rng, pages) * PAGE + length,
               PAGE - length);
        return;
    default: /* an even number in the structure is another small one */
        at[10 + 2 * rng_below(&rng, 40)] = (unsigned char)(2 * rng_below(&rng, 128));
    }
}

static struct tally try_damages(const unsigned char *bytes, size_t length, bool flips,
                                uint64_t count, uint64_t step)
{
    struct damaging damaging = {.whole = bytes, .length = length, .count = count, .step = step};

    damaging.spoil = flips ? flip_bit : spoil_more;
    struct tally tally = try_all(&damaging);
    printf("%s: %llu refused, %llu written on, %llu crashed, %llu refused later\n",
           flips ? "flipped bits" : "larger damages", (unsigned long long)tally.refused,
           (unsigned long long)tally.written, (unsigned long long)tally.crashed,
           (unsigned long long)tally.refused_later);
    return tally;
}

/* What is not refused at once can be written for ever: nothing passes that breaks later. */
static void test_what_passes_can_be_written_on(void **state)
{
    size_t length;
    unsigned char *bytes = make_journal(3, 5000, &length);

    (void)state;
    struct tally flips = try_damages(bytes, length, true, length * 8, exhaustive ? 1 : 211);
    struct tally larger = try_damages(bytes, length, false, exhaustive ? 20000 : 500, 1);
    assert_int_equal(flips.crashed + flips.refused_later, 0);
    assert_int_equal(larger.crashed + larger.refused_later, 0);
    assert_true(flips.refused > 0 && flips.written > 0);
    assert_true(larger.refused > 0 && larger.written > 0);
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

/* What pages_check() says of BYTES. */
static void check_bytes(const unsigned char *bytes, size_t length, struct err *ret_err)
{
    char path[PATH_MAX];

    ret_err->text[0] = '\0';
    file_write(in_scratch(path, "file"), bytes, length);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    (void)pages_check(fd, 0, ret_err);
    close(fd);
}

/* The first page of KIND that is used and has two entries or more. */
static struct page *page_with_entries(unsigned char *bytes, size_t length, uint16_t kind)
{
    unsigned count;

    for (size_t i = HEADS; i < length / PAGE; i++) {
        struct page *page = (void *)(bytes + i * PAGE);
        if (page->flags == kind && format_counts(page, PAGE, &count) && count >= 2)
            return page;
    }
    fail_msg("no page of the kind %u", kind);
    return NULL;
}

/* A page whose second entry is its first one once more. */
static void test_entries_that_overlap_are_found(void **state)
{
    static const uint16_t kinds[] = {PAGE_LEAF, PAGE_BRANCH};
    size_t length;
    unsigned char *bytes = make_rich(&length);
    struct err err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct page *page = page_with_entries(bytes, length, kinds[i]);
        uint16_t *places = (uint16_t *)(void *)(page + 1), was = places[1];
        places[1] = places[0];
        check_bytes(bytes, length, &err);
        assert_non_null(strstr(err.text, "overlap"));
        places[1] = was;
        check_bytes(bytes, length, &err);
        assert_string_equal(err.text, "");
    }
    free(bytes);
}

/* Runs of bits are taken as their bits are, each by itself. */
static void test_runs_are_taken_as_their_bits(void **state)
{
    enum { BITS = 64 * 8, TRIES = 20000 };
    struct rng rng = rng_init(1);

    (void)state;
    for (int i = 0; i < TRIES; i++) {
        uint64_t words[BITS / 64] = {0};
        uint8_t bits[BITS / 8] = {0};
        for (int run = 0; run < 6; run++) {
            uint64_t first = rng_below(&rng, BITS), count = rng_below(&rng, BITS - first + 1);
            if (rng_chance(&rng, 1, 2))
                count %= 9;
            bool is_free = true;
            for (uint64_t bit = first; bit < first + count; bit++)
                is_free = format_take(bits, bit) && is_free;
            assert_int_equal(format_take_run(words, first, count), is_free);
            assert_memory_equal(words, bits, sizeof(bits));
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(int argc, char **argv)
{
    exhaustive = argc > 1 && text_equal(argv[1], "all");
    const struct CMUnitTest tests[] = {
        TEST(test_file_of_something_else_is_refused),
        TEST(test_truncated_file_is_refused),
        TEST(test_zeroed_head_is_refused),
        TEST(test_flipped_bits_in_every_kind_of_page_are_survived),
        TEST(test_pages_of_garbage_are_survived),
        TEST(test_what_passes_can_be_written_on),
        TEST(test_check_names_the_page),
        TEST(test_entries_that_overlap_are_found),
        TEST(test_runs_are_taken_as_their_bits),
        TEST(test_sound_journal_passes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
