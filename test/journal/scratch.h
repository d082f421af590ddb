/*
 * Directories, files and child processes for the tests of the journal.  Each test program includes
 * this once, after cmocka.
 */
#ifndef CAIRN_TEST_JOURNAL_SCRATCH_H
#define CAIRN_TEST_JOURNAL_SCRATCH_H

#include "test/journal/make.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- directories and files --- */

static char scratch[64]; /* of the running test */

/* In memory where that is possible: the tests sync thousands of times. */
static inline int scratch_setup(void **state)
{
    (void)state;
    text_copy(scratch, sizeof(scratch),
              access("/dev/shm", W_OK) == 0 ? "/dev/shm/cairn-XXXXXX" : "/tmp/cairn-XXXXXX");
    return mkdtemp(scratch) == NULL ? -1 : 0;
}

static inline int scratch_unlink(const char *path, const struct stat *about, int kind,
                                 struct FTW *walk)
{
    (void)about, (void)kind, (void)walk; /* only the path matters */
    return remove(path);
}

static inline int scratch_teardown(void **state)
{
    (void)state;
    return nftw(scratch, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static inline const char *in_scratch(char *to, const char *name)
{
    text_format(to, PATH_MAX, "%s/%s", scratch, name);
    return to;
}

/* The journal of the running test. */
static inline struct journal *open_journal(enum journal_mode mode)
{
    struct journal *journal;
    struct err err;
    char path[PATH_MAX];

    int code = journal_open(in_scratch(path, "journal"), mode, &journal, &err);
    if (code != 0)
        fprintf(stderr, "open: %s\n", err.text);
    check(code == 0); /* in children, too */
    return journal;
}

/* A whole file into a new buffer; the caller frees it. */
static inline unsigned char *file_read(const char *path, size_t *ret_length)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &about), 0);
    unsigned char *bytes = malloc((size_t)about.st_size + 1);
    assert_int_equal(read(fd, bytes, (size_t)about.st_size), about.st_size);
    close(fd);
    *ret_length = (size_t)about.st_size;
    return bytes;
}

static inline void file_write(const char *path, const void *bytes, size_t length)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, length), length);
    close(fd);
}

static inline void file_copy(const char *from, const char *to)
{
    size_t length;
    unsigned char *bytes = file_read(from, &length);

    file_write(to, bytes, length);
    free(bytes);
}

/* Names in a directory, sorted, as one text. */
static inline void directory_names(const char *path, char *to, size_t size)
{
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort);

    assert_true(count >= 0);
    to[0] = '\0';
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            text_append(to, size, entries[i]->d_name);
            text_append(to, size, " ");
        }
        free(entries[i]);
    }
    free(entries);
}

/* --- children --- */

struct child {
    pid_t pid;
    int orders;  /* the parent writes a byte for each step */
    int answers; /* and reads one when it is done */
};

/* Runs BODY in a child process.  A journal may not be used across fork: none is open here. */
static inline struct child child_start(void (*body)(int orders, int answers))
{
    struct child child;
    int orders[2], answers[2];

    assert_int_equal(pipe2(orders, O_CLOEXEC), 0);
    assert_int_equal(pipe2(answers, O_CLOEXEC), 0);
    child.pid = fork();
    assert_true(child.pid >= 0);
    if (child.pid == 0) {
        close(orders[1]);
        close(answers[0]);
        body(orders[0], answers[1]);
        _exit(0);
    }
    close(orders[0]);
    close(answers[1]);
    child.orders = orders[1];
    child.answers = answers[0];
    return child;
}

/* For the child: a condition of the test. */
#define child_check(condition)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: in the child: %s\n", __FILE__, __LINE__, #condition);          \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* For the child: tells that a step is done, and waits for the next order. */
static inline void child_done(int answers)
{
    child_check(write(answers, "", 1) == 1);
}

static inline void child_wait(int orders)
{
    char byte;

    if (read(orders, &byte, 1) != 1)
        _exit(0); /* the parent has given up */
}

static inline void child_order(const struct child *child)
{
    assert_int_equal(write(child->orders, "", 1), 1);
}

static inline void child_await(const struct child *child)
{
    char byte;

    assert_int_equal(read(child->answers, &byte, 1), 1);
}

/* Whether it has not ended yet; its status stays for child_end(). */
static inline bool child_lives(const struct child *child)
{
    siginfo_t info = {0};

    assert_int_equal(waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
    return info.si_pid == 0;
}

/* Waits for its end; its status as of waitpid. */
static inline int child_end(struct child *child)
{
    int status;

    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    close(child->orders);
    close(child->answers);
    return status;
}

static inline void child_kill(struct child *child)
{
    assert_int_equal(kill(child->pid, SIGKILL), 0);
    assert_true(WIFSIGNALED(child_end(child)));
}

/* --- journals --- */

enum { TURN_EVENTS = 6, TURN_MACHINES = 5 };

/* One turn in which everything says its number: the records' revision, the events' turn, a text in
 * `meta`.  A reader that finds two numbers has found half a turn. */
struct turn_batch {
    struct journal_event events[TURN_EVENTS];
    unsigned char payload[FSM_PAYLOAD_BYTES_MAX] __attribute__((aligned(16)));
    unsigned char bytes[TURN_MACHINES][FSM_RECORD_BYTES_MAX] __attribute__((aligned(16)));
    struct journal_record records[TURN_MACHINES];
    struct journal_blob meta, spec;
    char text[32];
    struct journal_batch batch;
};

static inline struct machine_id turn_machine(int i)
{
    char text[MACHINE_ID_SIZE];

    text_format(text, sizeof(text), "3f2a91c4-0b7d-4e5c-9a86-%012d/web", i);
    return machine_id_make(i % 2 == 0 ? MACHINE_TASK : MACHINE_VOLUME, text);
}

static inline void turn_make(struct turn_batch *turn, uint64_t number)
{
    struct rng rng = rng_init(number);

    for (int i = 0; i < TURN_EVENTS; i++) {
        make_event(&rng, (number - 1) * TURN_EVENTS + (uint64_t)i + 1, MACHINE_TASK, TE_EXITED,
                   turn->payload, &turn->events[i]);
        turn->events[i].turn = number;
    }
    for (int i = 0; i < TURN_MACHINES; i++) {
        struct machine *record = (struct machine *)(void *)turn->bytes[i];
        turn->records[i].id = turn_machine(i);
        make_record(&rng, (enum machine_kind)turn->records[i].id.kind, record);
        record->revision = number;
        turn->records[i].record = record;
    }
    text_format(turn->text, sizeof(turn->text), "%llu", (unsigned long long)number);
    turn->meta = turn->spec =
        (struct journal_blob){.bytes = turn->text, .length = strlen(turn->text)};
    text_copy(turn->meta.key, sizeof(turn->meta.key), "turn");
    text_copy(turn->spec.key, sizeof(turn->spec.key), "alloc/turn");
    turn->batch = (struct journal_batch){.events = turn->events,
                                         .events_count = TURN_EVENTS,
                                         .records = turn->records,
                                         .records_count = TURN_MACHINES,
                                         .metas = &turn->meta,
                                         .metas_count = 1,
                                         .specs = &turn->spec,
                                         .specs_count = 1,
                                         .bases = turn->records,
                                         .bases_count = 1};
}

struct turn_seen {
    uint64_t number;
    unsigned records, events, bad;
};

static inline bool turn_see_record(void *ctx, const struct machine_id *id,
                                   const struct machine *record)
{
    struct turn_seen *seen = ctx;

    check(id->kind == record->kind);
    check(record->revision == seen->number);
    seen->records++;
    return true;
}

static inline bool turn_see_event(void *ctx, const struct journal_event *event)
{
    struct turn_seen *seen = ctx;

    check(event->sequence == seen->events + 1u);
    check(event->turn == (event->sequence - 1) / TURN_EVENTS + 1);
    seen->events++;
    return true;
}

static inline void turn_see_bad(void *ctx, const char *table, const char *key, const void *bytes,
                                size_t length, const char *reason)
{
    struct turn_seen *seen = ctx;

    (void)table, (void)key, (void)bytes, (void)length, (void)reason; /* only counted */
    seen->bad++;
}

/* The last turn in JOURNAL, after making sure that all of it is there and nothing of a later one.
 * Fails by check(), so that children may call it. */
static inline uint64_t turn_verify(struct journal *journal)
{
    struct turn_seen seen = {0};
    struct err err;
    char *text;
    size_t length;

    int code = journal_meta_read(journal, "turn", &text, &length, &err);
    if (code == 0) {
        check(text_to_u64(text, &seen.number));
        free(text);
        check(journal_spec_read(journal, "alloc/turn", &text, &length, &err) == 0);
        uint64_t number;
        check(text_to_u64(text, &number));
        check(number == seen.number);
        free(text);
    } else {
        check(code == ERR_GONE);
    }
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
        check(journal_each_record(journal, (enum machine_kind)kind, turn_see_record, turn_see_bad,
                                  &seen, &err) == 0);
        check(journal_each_base(journal, (enum machine_kind)kind, turn_see_record, turn_see_bad,
                                &seen, &err) == 0);
    }
    check(journal_each_event(journal, 1, turn_see_event, turn_see_bad, &seen, &err) == 0);
    check(seen.bad == 0);
    check(seen.events == seen.number * TURN_EVENTS);
    check(seen.records == (seen.number == 0 ? 0 : TURN_MACHINES + 1));
    check(journal_next_sequence(journal) == seen.number * TURN_EVENTS + 1);
    return seen.number;
}

#endif
