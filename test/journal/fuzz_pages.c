/*
 * A damaged data file, salvaged, read and then written: it is refused at once, or it can be used
 * and is there after use.  The input is what to change in a journal that has all kinds of pages:
 * pieces of four bytes offset and what to put there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/fuzz.h"
#include "test/journal/reading.h"
#include "test/journal/scratch.h"

enum { TURNS = 60, WRITES = 6 };

static struct turn_batch turn;
static unsigned char *whole, *damaged;
static size_t whole_length;

/* May fail: then what is damaged has been found. */
static void write_turn(struct journal *journal, uint64_t number)
{
    const uint64_t next = journal_next_sequence(journal);
    struct err err = {0};

    turn_make(&turn, number);
    for (size_t i = 0; i < turn.batch.events_count; i++)
        turn.events[i].sequence = next + i;
    check(journal_commit(journal, &turn.batch, &err) == 0 || err.text[0] != '\0');
}

/* A journal with branches, leaves, long values and free pages. */
int LLVMFuzzerInitialize(int *arguments_count, char ***arguments)
{
    struct journal *journal;
    struct err err;
    char path[512];
    static char large[20000];
    struct journal_blob spec = {.key = "large/1", .bytes = large, .length = sizeof(large)};
    struct journal_batch batch = {.specs = &spec, .specs_count = 1};

    (void)arguments_count, (void)arguments;
    check(journal_open(fuzz_path(path, "journal"), JOURNAL_WRITE, &journal, &err) == 0);
    for (uint64_t number = 1; number <= TURNS; number++) {
        turn_make(&turn, number);
        check(journal_commit(journal, &turn.batch, &err) == 0);
    }
    check(journal_commit(journal, &batch, &err) == 0);
    spec.bytes = NULL;
    check(journal_commit(journal, &batch, &err) == 0);
    journal_close(journal);
    whole = file_read(fuzz_path(path, "journal/data.mdb"), &whole_length);
    damaged = malloc(whole_length);
    check(damaged != NULL);
    return 0;
}

static void damage(struct fuzz_input *input)
{
    const uint8_t *bytes;
    uint32_t offset;
    size_t length;

    memcpy(damaged, whole, whole_length);
    while (fuzz_piece(input, &bytes, &length)) {
        if (length <= sizeof(offset))
            continue;
        memcpy(&offset, bytes, sizeof(offset));
        for (size_t i = sizeof(offset); i < length; i++)
            damaged[(offset + i - sizeof(offset)) % whole_length] = bytes[i];
    }
}

static void on_event(void *ctx, enum journal_trust trust, const struct journal_event *event)
{
    (void)trust;
    check(event->sequence != 0);
    ++*(uint64_t *)ctx;
}

static void on_record(void *ctx, enum journal_trust trust, bool base, const struct machine_id *id,
                      const struct machine *record)
{
    (void)trust, (void)base;
    check(memchr(id->text, '\0', sizeof(id->text)) != NULL && record != NULL);
    ++*(uint64_t *)ctx;
}

static void on_blob(void *ctx, enum journal_trust trust, bool meta, const char *key,
                    const void *bytes, size_t length)
{
    (void)trust, (void)meta;
    check(strlen(key) < JOURNAL_KEY_SIZE && (bytes != NULL || length == 0));
    ++*(uint64_t *)ctx;
}

static void on_quarantined(void *ctx, enum journal_trust trust,
                           const struct journal_quarantined *item)
{
    (void)trust;
    check(item != NULL);
    ++*(uint64_t *)ctx;
}

/* All that is told of is counted; there is more, of which nobody is told. */
static void salvage(const char *path)
{
    struct journal_salvaged result;
    uint64_t told = 0;
    const struct journal_salvaging to = {&told, on_event, on_record, on_blob, on_quarantined};
    struct err err = {0};

    if (journal_salvage(path, &to, &result, &err) == 0)
        check(told <= result.entries);
    else
        check(err.text[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct journal *journal;
    struct err err;
    char path[512];

    damage(&input);
    fuzz_write(fuzz_path(path, "journal/data.mdb"), damaged, whole_length);
    (void)fuzz_path(path, "journal");
    salvage(path);
    if (journal_open(path, JOURNAL_WRITE, &journal, &err) != 0) {
        check(err.text[0] != '\0');
        return 0;
    }
    (void)read_all(journal); /* bad entries are none too many */
    for (uint64_t i = 1; i <= WRITES; i++)
        write_turn(journal, TURNS + i);
    journal_close(journal);
    if (journal_open(path, JOURNAL_READ, &journal, &err) != 0) {
        (void)fprintf(stderr, "after use: %s\n", err.text);
        check(false);
    }
    journal_close(journal);
    return 0;
}
