/*
 * Salvage: what a refused journal still holds, and nothing that it does not.
 *
 * The data file of a whole node is damaged in many ways.  Whatever is made of it opens, leads to
 * its records, and has no record but those that the node had in the end: none that is older, none
 * of a machine that was gone.
 *
 * Built as debug, clang-asan: the pages of a file are the same to every build.
 */
#include "test/inspect/inspecting.h"

#include <fcntl.h>

enum { PAGE = 4096 };

struct file {
    char path[192];
    uint8_t *bytes, *whole;
    size_t length;
};

static struct file read_data(struct inspecting *inspecting, const char *directory)
{
    struct file file = {.length = 0};
    struct stat about;

    (void)text_format(file.path, sizeof(file.path), "%s/%s/data.mdb", inspecting->path, directory);
    int fd = open(file.path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &about), 0);
    file.length = (size_t)about.st_size;
    file.bytes = malloc(file.length);
    file.whole = malloc(file.length);
    assert_non_null(file.bytes);
    assert_non_null(file.whole);
    assert_int_equal(read(fd, file.bytes, file.length), file.length);
    assert_int_equal(close(fd), 0);
    memcpy(file.whole, file.bytes, file.length);
    return file;
}

static void write_data(const struct file *file, size_t length)
{
    int fd = open(file->path, O_WRONLY | O_TRUNC | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, file->bytes, length), length);
    assert_int_equal(close(fd), 0);
}

static void free_data(struct file *file)
{
    free(file->bytes);
    free(file->whole);
}

/* --- what is there --- */

struct digests {
    struct {
        struct machine_id id;
        uint64_t digest;
    } items[64];
    size_t count;
};

static bool note_digest(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct digests *digests = ctx;

    check(digests->count < COUNT_OF(digests->items));
    digests->items[digests->count].id = *id;
    digests->items[digests->count++].digest = fsm_digest(record);
    return true;
}

static struct digests digests_of(const char *path)
{
    struct digests digests = {.count = 0};
    struct journal *journal;
    struct err err;

    if (journal_open(path, JOURNAL_WRITE, &journal, &err) < 0)
        fail_msg("%s", err.text);
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        assert_int_equal(journal_each_record(journal, (enum machine_kind)kind, note_digest, NULL,
                                             &digests, &err),
                         0);
    journal_close(journal);
    return digests;
}

static bool has_digest(const struct digests *digests, const struct machine_id *id, uint64_t digest)
{
    for (size_t i = 0; i < digests->count; i++) {
        if (machine_id_equal(&digests->items[i].id, id))
            return digests->items[i].digest == digest;
    }
    return false;
}

static void note_line(void *ctx, const char *text)
{
    size_t *lines = ctx;

    assert_true(text[0] != '\0');
    (*lines)++;
}

static void forgive_losses(void *ctx, const struct finding *finding)
{
    if (finding->bad && finding->kind < FINDING_ORPHAN && finding->kind != FINDING_TIME_BACK)
        fail_msg("%s: %s: %s %s", (const char *)ctx, finding->what, finding->where,
                 finding->details);
}

static void verify_salvaged(const char *path, const char *what)
{
    struct inspect_verdict verdict;
    struct journal *journal;
    struct err err;

    assert_int_equal(journal_open(path, JOURNAL_WRITE, &journal, &err), 0);
    assert_int_equal(
        inspect_verify(journal, forgive_losses, (void *)(uintptr_t)what, &verdict, &err), 0);
    journal_close(journal);
}

/* --- salvaging --- */

struct tally {
    size_t tried, nothing, machines, missing, lines;
};

/* Salvages @/DIRECTORY into @/salvaged and looks at it beside what there was. */
static void salvage(struct inspecting *inspecting, const char *directory,
                    const struct digests *before, const char *what, struct tally *tally)
{
    char from[192], to[192];
    struct inspect_salvaged salvaged;
    struct err err = {0};

    (void)text_format(from, sizeof(from), "%s/%s", inspecting->path, directory);
    (void)text_format(to, sizeof(to), "%s/salvaged", inspecting->path);
    (void)tree_remove(AT_FDCWD, to, &err); /* of the time before */
    tally->tried++;
    int code = inspect_salvage(from, to, 1, note_line, &tally->lines, &salvaged, &err);
    if (code < 0) {
        if (code != ERR_GONE && code != ERR_UNSUPPORTED)
            fail_msg("%s: %s", what, err.text);
        assert_int_equal(access(to, F_OK), -1);
        tally->nothing++;
        return;
    }
    struct digests after = digests_of(to);
    assert_int_equal(after.count, salvaged.machines);
    for (size_t i = 0; i < after.count; i++) {
        if (!has_digest(before, &after.items[i].id, after.items[i].digest))
            fail_msg("%s: %s is not as it was", what, after.items[i].id.text);
    }
    verify_salvaged(to, what);
    tally->machines += after.count;
    tally->missing += before->count - after.count;
}

static struct digests digests_before(struct inspecting *inspecting)
{
    return digests_of(inspecting->journal);
}

static void test_whole_journal_is_brought_over_whole(void **state)
{
    struct inspecting *inspecting = *state;
    struct digests before = digests_before(inspecting);
    struct tally tally = {0};
    char name[192];

    salvage(inspecting, "journal", &before, "whole", &tally);
    assert_int_equal(tally.missing, 0);
    assert_int_equal(tally.lines, 0);
    assert_int_equal(run(inspecting, "export -redact -dir @/journal"), 0);
    char *was = strdup(inspecting->out);
    assert_int_equal(run(inspecting, "export -redact -dir @/salvaged"), 0);
    assert_string_equal(inspecting->out, was);
    free(was);
    (void)text_format(name, sizeof(name), "%s/salvaged/data.mdb", inspecting->path);
    struct stat about;
    assert_int_equal(stat(name, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
}

/* Each flip costs what it hit, and the rest is as it was. */
static void test_flipped_bytes_cost_what_they_hit(void **state)
{
    struct inspecting *inspecting = *state;
    struct digests before = digests_before(inspecting);
    struct file file = read_data(inspecting, "journal");
    struct tally tally = {0};
    char what[64];

    for (size_t at = 0; at < file.length; at += at % PAGE < 64 && at / PAGE < 12 ? 5 : 211) {
        file.bytes[at] ^= 0x41;
        write_data(&file, file.length);
        (void)text_format(what, sizeof(what), "flip at %zu", at);
        salvage(inspecting, "journal", &before, what, &tally);
        file.bytes[at] ^= 0x41;
    }
    print_message("%zu flips: %zu machines, %zu missing, nothing %zu times\n", tally.tried,
                  tally.machines, tally.missing, tally.nothing);
    assert_int_equal(tally.nothing, 0);
    assert_true(tally.missing * 50 < tally.machines);
    free_data(&file);
}

/* Whole pages are gone, the heads among them, or what followed them. */
static void test_lost_pages_cost_what_they_held(void **state)
{
    struct inspecting *inspecting = *state;
    struct digests before = digests_before(inspecting);
    struct file file = read_data(inspecting, "journal");
    struct tally tally = {0};
    char what[64];

    for (size_t page = 0; page < file.length / PAGE; page++) {
        for (int how = 0; how < 3; how++) {
            memcpy(file.bytes, file.whole, file.length);
            memset(file.bytes + page * PAGE, how == 0 ? 0 : 0xFF, PAGE);
            if (how == 2) /* no head either */
                memset(file.bytes, 0, 2 * (size_t)PAGE);
            write_data(&file, file.length);
            (void)text_format(what, sizeof(what), "page %zu, %d", page, how);
            salvage(inspecting, "journal", &before, what, &tally);
        }
        memcpy(file.bytes, file.whole, file.length);
        write_data(&file, page * PAGE + 100);
        (void)text_format(what, sizeof(what), "cut at page %zu", page);
        salvage(inspecting, "journal", &before, what, &tally);
    }
    print_message("%zu losses: %zu machines, %zu missing, nothing %zu times\n", tally.tried,
                  tally.machines, tally.missing, tally.nothing);
    assert_true(tally.machines > tally.missing);
    free_data(&file);
}

static void test_in_place_keeps_what_was_refused(void **state)
{
    struct inspecting *inspecting = *state;
    struct digests before = digests_before(inspecting);
    struct file file = read_data(inspecting, "journal");
    struct inspect_salvaged salvaged;
    char kept[JOURNAL_PATH_SIZE];
    size_t lines = 0, length;
    struct journal *journal;
    struct err err;
    char *bytes;

    memset(file.bytes, 0, PAGE);
    for (int time = 1; time <= 2; time++) {
        write_data(&file, file.length);
        assert_int_equal(journal_open(inspecting->journal, JOURNAL_WRITE, &journal, &err),
                         ERR_CORRUPT);
        assert_int_equal(inspect_salvage_in_place(inspecting->journal, 1, note_line, &lines, kept,
                                                  &salvaged, &err),
                         0);
        char expected[192];
        (void)text_format(expected, sizeof(expected), "%s/refused-%d.mdb", inspecting->journal,
                          time);
        assert_string_equal(kept, expected);
        assert_int_equal(file_read(kept, 64 << 20, &bytes, &length, &err), 0);
        assert_int_equal(length, file.length);
        assert_memory_equal(bytes, file.bytes, length);
        free(bytes);
        struct digests after = digests_of(inspecting->journal);
        assert_int_equal(after.count, before.count);
    }
    assert_true(lines > 0);
    free_data(&file);
}

static void test_nothing_readable_leaves_everything_as_it_is(void **state)
{
    struct inspecting *inspecting = *state;
    struct file file = read_data(inspecting, "journal");
    struct inspect_salvaged salvaged;
    char kept[JOURNAL_PATH_SIZE], *bytes;
    size_t lines = 0, length;
    struct err err;

    memset(file.bytes, 'x', file.length);
    write_data(&file, file.length);
    assert_int_equal(
        inspect_salvage_in_place(inspecting->journal, 1, note_line, &lines, kept, &salvaged, &err),
        ERR_GONE);
    assert_int_equal(file_read(file.path, 64 << 20, &bytes, &length, &err), 0);
    assert_int_equal(length, file.length);
    assert_memory_equal(bytes, file.bytes, length);
    free(bytes);
    free_data(&file);
}

/* --- a commit that the power has cut short --- */

static bool holds(const struct file *file, size_t page, const char *text)
{
    return memmem(file->bytes + page * PAGE, PAGE, text, strlen(text)) != NULL;
}

/* Of the pages that a commit has written, FILE, those are as BEFORE that hold TEXT; its head is
 * gone. */
static void cut_short(struct file *file, const struct file *before, const char *text)
{
    for (size_t page = 0; page < file->length / PAGE; page++) {
        bool is_new = (page + 1) * PAGE > before->length;
        bool is_lost = text != NULL && holds(file, page, text);
        bool is_head =
            page < 2 && memcmp(file->bytes + page * PAGE, before->bytes + page * PAGE, PAGE) != 0;

        if (is_head || (is_new && is_lost))
            memset(file->bytes + page * PAGE, 0, PAGE);
        else if (is_lost)
            memcpy(file->bytes + page * PAGE, before->bytes + page * PAGE, PAGE);
    }
}

static void test_half_a_commit_is_none(void **state)
{
    static const char job[] = "{\"ID\":\"sums\"}", key[] = "job/default/sums";
    struct inspecting *inspecting = *state;
    struct digests before = {.count = 0}, after;
    struct tally tally = {0};
    struct small_node node;
    struct err err;

    small_open(&node, inspecting->journal);
    node.now_ms = 3600 * 1000; /* behind the story */
    small_restart(&node, 1000, false);
    core_spec(node.core, "job/default/shop", job, sizeof(job) - 1);
    small_wait(&node, 1000);
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        if (journal_each_record(node.journal, (enum machine_kind)kind, note_digest, NULL, &before,
                                &err) != 0)
            fail_msg("%s", err.text);
    struct file was = read_data(inspecting, "journal");
    node.holds_hooks = true;
    small_place(&node, 3, "sum", true);
    core_spec(node.core, key, job, sizeof(job) - 1);
    small_turns(&node);
    struct file file = read_data(inspecting, "journal");
    small_close(&node);
    after = digests_of(inspecting->journal);
    cut_short(&file, &was, key);
    write_data(&file, file.length);
    salvage(inspecting, "journal", &before, "half a commit", &tally);
    assert_int_equal(tally.nothing, 0);
    assert_int_equal(tally.missing, 0);
    /* All of it may be the last commit as well, whose head was damaged later. */
    memcpy(file.bytes, file.whole, file.length);
    cut_short(&file, &was, NULL);
    write_data(&file, file.length);
    salvage(inspecting, "journal", &after, "a commit without its head", &tally);
    assert_int_equal(tally.missing, 0);
    free_data(&was);
    free_data(&file);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, inspecting_make_story, inspecting_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_whole_journal_is_brought_over_whole),
        TEST(test_flipped_bytes_cost_what_they_hit),
        TEST(test_lost_pages_cost_what_they_held),
        TEST(test_in_place_keeps_what_was_refused),
        TEST(test_nothing_readable_leaves_everything_as_it_is),
        TEST(test_half_a_commit_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
