/*
 * What the journal costs above LMDB: transitions a second through journal_commit, against a bare
 * LMDB loop with the same keys, sizes and sync in the same run, turn by turn in alternation; and
 * events decoded a second, as `verify` reads them.
 *
 *     bench_journal [turns [directory]]
 *
 * Prints one line for each figure: name, value, unit.  A turn is 100 transitions of 300 tasks.
 */
#include "journal/codec.h"
#include "journal/part.h"
#include "test/journal/make.h"

#include <endian.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TASKS = 300, TURN = 100, TURNS_DEFAULT = 1000 };

struct bare {
    MDB_env *env;
    MDB_dbi log, state;
};

struct sample {
    struct journal_event events[TURN];
    struct journal_record records[TURN];
    struct codec *codec;
    struct codec_value event_values[TURN], record_values[TURN]; /* of these sizes, owned */
    unsigned char payloads[TURN][256] __attribute__((aligned(16)));
};

static unsigned char tasks[TASKS][8 * 1024] __attribute__((aligned(16)));
static struct machine_id ids[TASKS];
static struct sample sample;

static void must(int code, const char *what)
{
    if (code == 0)
        return;
    fprintf(stderr, "bench_journal: %s: %s\n", what, mdb_strerror(code));
    exit(1);
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A task as most are: running, a handful of events, some environment left by hooks. */
static void make_tasks(void)
{
    struct rng rng = rng_init(1);
    char text[MACHINE_ID_SIZE];

    for (int i = 0; i < TASKS; i++) {
        struct task *task = (struct task *)(void *)tasks[i];
        struct results results = {.bytes = task->results, .size = 1024};
        text_format(text, sizeof(text), "%08x-0b7d-4e5c-9a86-%012llx/web", (unsigned)rng_next(&rng),
                    (unsigned long long)rng_below(&rng, 1ull << 48));
        ids[i] = machine_id_make(MACHINE_TASK, text);
        task->machine = (struct machine){.kind = MACHINE_TASK,
                                         .state = T_RUNNING,
                                         .revision = 12,
                                         .generation = 1,
                                         .tickets = 9,
                                         .entered_ms = 123456789};
        task->phase = PHASE_POSTSTART;
        task->hook = HOOK_NONE; /* all of them are done */
        task->run_state = TASK_RUN_RUNNING;
        task->ran = 1;
        task->started_unix_ns = 1700000000000000000;
        task->status_revision = 4;
        text_copy(task->define.driver, sizeof(task->define.driver), "raw_exec");
        task->define.restart_attempts = 2;
        task->define.restart_interval_ms = 1800000;
        task->define.restart_delay_ms = 15000;
        task->define.kill_timeout_ms = 5000;
        task->process = (struct started){1000, 990, 4711, 4710};
        task->events_count = 3;
        for (int j = 0; j < task->events_count; j++) {
            task->events[j].time_unix_ns = 1700000000000000000 + j;
            task->events[j].type = (uint8_t)(TASK_EVENT_RECEIVED + j);
        }
        text_copy(task->events[1].text, sizeof(task->events[1].text), "Building Task Directory");
        (void)results_set(&results, 1, RESULT_DATA, "dir", "/var/lib/cairn/alloc", 20); /* fits */
        task->results_bytes = results.used;
    }
}

/* One turn's work: start, end and hook events in turn, each with its task's new record. */
static void make_turn(struct rng *rng, uint64_t turn)
{
    static const uint8_t kinds[] = {TE_HOOK_DONE, TE_STARTED, TE_TIMEOUT, TE_EXITED};
    static unsigned char payload[FSM_PAYLOAD_BYTES_MAX] __attribute__((aligned(16)));
    uint64_t first = rng_below(rng, TASKS);

    for (uint64_t i = 0; i < TURN; i++) {
        struct journal_event *event = &sample.events[i];
        uint64_t at = (first + i * 7) % TASKS;
        struct task *task = (struct task *)(void *)tasks[at];
        make_event(rng, turn * TURN + i + 1, MACHINE_TASK, TE_TIMEOUT, payload, event);
        event->id = ids[at];
        if (event->issues_count > 2)
            event->issues_count = 2;
        memset(event->issues + event->issues_count, 0,
               (FSM_EFFECTS_MAX - event->issues_count) * sizeof(event->issues[0]));
        event->event.kind = kinds[i % COUNT_OF(kinds)];
        event->event.payload = event->event.kind == TE_TIMEOUT ? NULL : sample.payloads[i];
        memset(sample.payloads[i], 0, sizeof(sample.payloads[i]));
        if (event->event.kind == TE_STARTED)
            *(struct started *)(void *)sample.payloads[i] = task->process;
        task->machine.revision++;
        task->machine.tickets++;
        task->machine.entered_ms += 17;
        sample.records[i] = (struct journal_record){.id = ids[at], .record = &task->machine};
    }
}

static struct codec_value keep(struct codec_value value)
{
    uint8_t *bytes = malloc(value.length);

    check(bytes != NULL);
    memcpy(bytes, value.bytes, value.length);
    return (struct codec_value){.bytes = bytes, .length = value.length};
}

static void make_values(void)
{
    sample.codec = codec_new();
    for (int i = 0; i < TURN; i++) {
        sample.event_values[i] = keep(codec_encode_event(sample.codec, &sample.events[i], 0));
        sample.record_values[i] =
            keep(codec_encode_record(sample.codec, sample.records[i].record, 0));
    }
}

static void free_values(void)
{
    for (int i = 0; i < TURN; i++) {
        free((void *)(uintptr_t)sample.event_values[i].bytes);
        free((void *)(uintptr_t)sample.record_values[i].bytes);
    }
    codec_free(sample.codec);
}

static void bare_open(struct bare *bare, const char *path)
{
    MDB_txn *txn;

    must(mkdir(path, 0700), "mkdir");
    must(mdb_env_create(&bare->env), "create");
    must(mdb_env_set_maxdbs(bare->env, 8), "maxdbs");
    must(mdb_env_set_mapsize(bare->env, (size_t)4 << 30), "mapsize");
    must(mdb_env_open(bare->env, path, MDB_NOTLS, 0600), "open");
    must(mdb_txn_begin(bare->env, NULL, 0, &txn), "begin");
    must(mdb_dbi_open(txn, "log", MDB_CREATE, &bare->log), "log");
    must(mdb_dbi_open(txn, "state", MDB_CREATE, &bare->state), "state");
    must(mdb_txn_commit(txn), "commit");
}

static void bare_turn(struct bare *bare)
{
    MDB_txn *txn;
    MDB_cursor *cursor;

    must(mdb_txn_begin(bare->env, NULL, 0, &txn), "begin");
    must(mdb_cursor_open(txn, bare->log, &cursor), "cursor");
    for (int i = 0; i < TURN; i++) {
        uint64_t big = htobe64(sample.events[i].sequence);
        MDB_val key = {.mv_size = sizeof(big), .mv_data = &big};
        MDB_val value = {.mv_size = sample.event_values[i].length,
                         .mv_data = (void *)(uintptr_t)sample.event_values[i].bytes};
        must(mdb_cursor_put(cursor, &key, &value, MDB_APPEND), "append");
    }
    mdb_cursor_close(cursor);
    for (int i = 0; i < TURN; i++) {
        struct key name = key_of_machine(&sample.records[i].id);
        MDB_val key = {.mv_size = name.length, .mv_data = name.bytes};
        MDB_val value = {.mv_size = sample.record_values[i].length,
                         .mv_data = (void *)(uintptr_t)sample.record_values[i].bytes};
        must(mdb_put(txn, bare->state, &key, &value, 0), "put");
    }
    must(mdb_txn_commit(txn), "commit");
}

static bool count_event(void *ctx, const struct journal_event *event)
{
    uint64_t *count = ctx;

    (*count) += event->sequence > 0;
    return true;
}

static uint64_t resident_kb(void)
{
    unsigned long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    if (file != NULL) {
        if (fscanf(file, "%lu %lu", &size, &resident) != 2)
            resident = 0;
        fclose(file);
    }
    return (uint64_t)resident * 4;
}

static int compare_double(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return left < right ? -1 : left > right;
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare_double);
    return values[count / 2];
}

static void bench_codec(void)
{
    static unsigned char payload[FSM_PAYLOAD_BYTES_MAX] __attribute__((aligned(16)));
    enum { ROUNDS = 3000 };
    struct journal_event event;
    double begin = seconds();

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < TURN; i++)
            (void)codec_encode_event(sample.codec, &sample.events[i], 0); /* timed only */
    }
    printf("encode_event %.0f ns\n", (seconds() - begin) / (ROUNDS * TURN) * 1e9);
    begin = seconds();
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < TURN; i++)
            (void)codec_encode_record(sample.codec, sample.records[i].record, 0); /* timed only */
    }
    printf("encode_record %.0f ns\n", (seconds() - begin) / (ROUNDS * TURN) * 1e9);
    begin = seconds();
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < TURN; i++)
            check(codec_decode_event(sample.codec, sample.event_values[i].bytes,
                                     sample.event_values[i].length, 0, &event, payload) == NULL);
    }
    printf("decode_event %.0f ns\n", (seconds() - begin) / (ROUNDS * TURN) * 1e9);
    printf("event_bytes %zu\nrecord_bytes %zu\n", sample.event_values[1].length,
           sample.record_values[0].length);
}

int main(int argc, char **argv)
{
    uint64_t turns = TURNS_DEFAULT, count = 0;
    char directory[4000], ours[4096], bare_path[4096], command[4200];
    struct journal *journal;
    struct bare bare;
    struct err err;
    struct rng rng = rng_init(7);

    if (argc > 1 && (!text_to_u64(argv[1], &turns) || turns == 0)) {
        fprintf(stderr, "usage: bench_journal [turns [directory]]\n");
        return 2;
    }
    text_format(directory, sizeof(directory), "%s/bench-XXXXXX", argc > 2 ? argv[2] : ".");
    if (mkdtemp(directory) == NULL) {
        perror("bench_journal: mkdtemp");
        return 1;
    }
    text_format(ours, sizeof(ours), "%s/ours", directory);
    text_format(bare_path, sizeof(bare_path), "%s/bare", directory);
    double *of_ours = calloc(turns, sizeof(double)), *of_bare = calloc(turns, sizeof(double));
    check(of_ours != NULL && of_bare != NULL);
    make_tasks();
    bare_open(&bare, bare_path);
    if (journal_open(ours, JOURNAL_WRITE, &journal, &err) < 0) {
        fprintf(stderr, "bench_journal: %s\n", err.text);
        return 1;
    }

    double total_ours = 0, total_bare = 0;
    for (uint64_t turn = 0; turn < turns; turn++) {
        struct journal_batch batch = {.events = sample.events,
                                      .events_count = TURN,
                                      .records = sample.records,
                                      .records_count = TURN};
        make_turn(&rng, turn);
        make_values();
        double begin = seconds();
        if (journal_commit(journal, &batch, &err) < 0) {
            fprintf(stderr, "bench_journal: %s\n", err.text);
            return 1;
        }
        double middle = seconds();
        bare_turn(&bare);
        double end = seconds();
        of_ours[turn] = middle - begin;
        of_bare[turn] = end - middle;
        total_ours += middle - begin;
        total_bare += end - middle;
        if (turn + 1 < turns)
            free_values();
    }
    double median_ours = median(of_ours, turns), median_bare = median(of_bare, turns);
    printf("journal_transitions %.0f 1/s\n", TURN / median_ours);
    printf("bare_transitions %.0f 1/s\n", TURN / median_bare);
    printf("ratio %.2f\n", median_bare / median_ours);
    printf("ratio_of_totals %.2f\n", total_bare / total_ours);

    double begin = seconds();
    if (journal_each_event(journal, 1, count_event, NULL, &count, &err) < 0) {
        fprintf(stderr, "bench_journal: %s\n", err.text);
        return 1;
    }
    printf("events_read %.0f 1/s\n", (double)count / (seconds() - begin));
    bench_codec();
    free_values();

    mdb_env_close(bare.env);
    uint64_t before = resident_kb();
    journal_release_memory(journal);
    printf("rss_before_release %llu kB\nrss_after_release %llu kB\n", (unsigned long long)before,
           (unsigned long long)resident_kb());
    journal_close(journal);
    begin = seconds();
    must(journal_open(ours, JOURNAL_WRITE, &journal, &err), "open");
    printf("open %.2f ms\n", (seconds() - begin) * 1e3);
    journal_close(journal);
    free(of_ours);
    free(of_bare);
    text_format(command, sizeof(command), "%s/data.mdb", ours);
    (void)unlink(command); /* what is left is shown by rmdir */
    text_format(command, sizeof(command), "%s/lock.mdb", ours);
    (void)unlink(command);
    text_format(command, sizeof(command), "%s/lock", ours);
    (void)unlink(command);
    text_format(command, sizeof(command), "%s/data.mdb", bare_path);
    (void)unlink(command);
    text_format(command, sizeof(command), "%s/lock.mdb", bare_path);
    (void)unlink(command);
    return rmdir(ours) == 0 && rmdir(bare_path) == 0 && rmdir(directory) == 0 ? 0 : 1;
}
