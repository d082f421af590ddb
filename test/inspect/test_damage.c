/*
 * Damaged journals: the inspector reports, skips, and never crashes.
 *
 * Bytes of the data file are flipped and it is cut, at places all over it, and each time every verb
 * that walks it is run.  Whatever can still be read is printed; whatever cannot, is said.
 */
#include "test/inspect/inspecting.h"

#include <fcntl.h>

static const char *const verbs[] = {
    "verify", "list",           "log",   "timeline",          "restore",
    "stats",  "export -redact", "at 30", "show a1000001/web", "quarantine list",
};

struct file {
    char path[192];
    uint8_t *bytes;
    size_t length;
};

/* A compact copy: every page of it is in use. */
static struct file read_data(struct inspecting *inspecting)
{
    struct file file = {.length = 0};
    struct stat about;

    assert_int_equal(run(inspecting, "compact @/copy -dir @/journal"), 0);
    (void)text_format(file.path, sizeof(file.path), "%s/copy/data.mdb", inspecting->path);
    int fd = open(file.path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &about), 0);
    file.length = (size_t)about.st_size;
    file.bytes = malloc(file.length);
    assert_non_null(file.bytes);
    assert_int_equal(read(fd, file.bytes, file.length), file.length);
    assert_int_equal(close(fd), 0);
    return file;
}

static void write_data(const struct file *file, size_t length)
{
    int fd = open(file->path, O_WRONLY | O_TRUNC | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, file->bytes, length), length);
    assert_int_equal(close(fd), 0);
}

/* Every verb ends by itself; those that find something wrong say so.  True if verify did. */
static bool run_all(struct inspecting *inspecting, const char *what, size_t at)
{
    bool found = false;
    char line[128];

    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        (void)text_format(line, sizeof(line), "%s -dir @/copy", verbs[i]);
        int status = run(inspecting, line);
        if (status != 0 && status != 1)
            fail_msg("%s at %zu: %s ended with %d", what, at, verbs[i], status);
        if (status == 1 && inspecting->out[0] == '\0' && inspecting->complain[0] == '\0')
            fail_msg("%s at %zu: %s says nothing", what, at, verbs[i]);
        found = found || (i == 0 && status == 1);
    }
    return found;
}

static void test_flipped_bytes_are_survived(void **state)
{
    struct inspecting *inspecting = *state;
    struct file file = read_data(inspecting);
    size_t step = file.length / 200 + 13, found = 0, tried = 0;

    for (size_t at = 3; at < file.length; at += step, tried++) {
        file.bytes[at] ^= 0x41;
        write_data(&file, file.length);
        found += run_all(inspecting, "flip", at);
        file.bytes[at] ^= 0x41;
    }
    assert_true(tried >= 100);
    assert_true(found >= 20); /* the rest hit room that holds nothing */
    write_data(&file, file.length);
    assert_int_equal(run(inspecting, "verify -dir @/copy"), 0);
    free(file.bytes);
}

static void test_truncated_files_are_survived(void **state)
{
    struct inspecting *inspecting = *state;
    struct file file = read_data(inspecting);

    for (size_t length = 0; length < file.length; length += file.length / 9 + 1) {
        write_data(&file, length);
        (void)run_all(inspecting, "cut", length);
    }
    write_data(&file, file.length - 1);
    (void)run_all(inspecting, "cut", file.length - 1);
    free(file.bytes);
}

static void test_zeroed_pages_are_survived(void **state)
{
    struct inspecting *inspecting = *state;
    struct file file = read_data(inspecting);
    uint8_t page[4096];

    for (size_t at = 0; at + sizeof(page) <= file.length; at += sizeof(page)) {
        memcpy(page, file.bytes + at, sizeof(page));
        memset(file.bytes + at, 0, sizeof(page));
        write_data(&file, file.length);
        (void)run_all(inspecting, "torn page", at);
        memcpy(file.bytes + at, page, sizeof(page));
    }
    free(file.bytes);
}

/* --- one entry of each table: it is named, and the others are still there --- */

/* Flips a byte close to the COUNT-th place at which NEEDLE stands in the file. */
static bool flip_near(struct file *file, const void *needle, size_t length, size_t behind,
                      unsigned count)
{
    uint8_t *at = file->bytes;
    size_t left = file->length;

    for (;;) {
        uint8_t *place = memmem(at, left, needle, length);
        if (place == NULL)
            return false;
        if (count-- == 0) {
            place[length + behind] ^= 0x20;
            return true;
        }
        left -= (size_t)(place + 1 - at);
        at = place + 1;
    }
}

static void test_damaged_spec_is_named_and_the_rest_is_read(void **state)
{
    struct inspecting *inspecting = *state;
    struct file file = read_data(inspecting);

    assert_true(flip_near(&file, "PASSWORD\":\"", 11, 1, 0));
    write_data(&file, file.length);
    assert_int_equal(run(inspecting, "verify -dir @/copy"), 1);
    assert_has(inspecting->out, "WRONG DAMAGED_SPEC: ");
    assert_int_equal(run(inspecting, "list -dir @/copy"), 0);
    assert_int_equal(count_lines(inspecting->out), 6);
    assert_int_equal(run(inspecting, "export -dir @/copy -redact"), 1);
    assert_has(inspecting->complain, "damaged, skipped: spec");
    free(file.bytes);
}

static void test_damaged_event_is_named_and_the_rest_is_read(void **state)
{
    struct inspecting *inspecting = *state;
    struct file file = read_data(inspecting);

    /* "raw_exec" stands in DEFINE events and in the records of tasks; the first one is an event's
     * or a record's, and either is named. */
    assert_true(flip_near(&file, "raw_exec", 8, 0, 0));
    write_data(&file, file.length);
    assert_int_equal(run(inspecting, "verify -dir @/copy"), 1);
    assert_has(inspecting->out, "WRONG DAMAGED_");
    bool event = strstr(inspecting->out, "DAMAGED_EVENT") != NULL;
    assert_int_equal(run(inspecting, "log -dir @/copy"), event ? 1 : 0);
    assert_int_equal(count_lines(inspecting->out), event ? 62 : 63);
    free(file.bytes);
}

/* Every place where a record's or an event's text stands: each is found by verify. */
static void test_every_flip_inside_an_entry_is_found(void **state)
{
    struct inspecting *inspecting = *state;
    struct file file = read_data(inspecting);
    unsigned count = 0;

    while (flip_near(&file, "raw_exec", 8, 1, count)) {
        write_data(&file, file.length);
        assert_int_equal(run(inspecting, "verify -dir @/copy"), 1);
        assert_has(inspecting->out, "WRONG DAMAGED_");
        assert_true(flip_near(&file, "raw_exec", 8, 1, count));
        count++;
    }
    assert_int_equal(count, 6); /* three DEFINE events, three records */
    free(file.bytes);
}

static void test_file_that_is_no_journal_is_refused(void **state)
{
    struct inspecting *inspecting = *state;
    struct file file = read_data(inspecting);

    memset(file.bytes, 'x', file.length);
    write_data(&file, file.length);
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        char line[128];
        (void)text_format(line, sizeof(line), "%s -dir @/copy", verbs[i]);
        assert_int_equal(run(inspecting, line), 1);
        assert_string_equal(inspecting->out, "");
        assert_has(inspecting->complain, "open the journal in ");
    }
    free(file.bytes);
}

#define STORY(test) cmocka_unit_test_setup_teardown(test, inspecting_make_story, inspecting_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(test_flipped_bytes_are_survived),
        STORY(test_truncated_files_are_survived),
        STORY(test_zeroed_pages_are_survived),
        STORY(test_damaged_spec_is_named_and_the_rest_is_read),
        STORY(test_damaged_event_is_named_and_the_rest_is_read),
        STORY(test_every_flip_inside_an_entry_is_found),
        STORY(test_file_that_is_no_journal_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
