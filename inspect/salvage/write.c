/* Makes a journal of what was decided, and puts it in its place (inspect.h). */
#include "core/identity.h"
#include "inspect/salvage/salvage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BATCH_MAX = 512,
    LOST_EVENTS = 4096, /* numbers that are left out behind a torn log: none is given twice */
};

/* --- entries --- */

static int write_events(struct salvage *salvage, struct journal *journal, struct err *err)
{
    struct journal_event *events = calloc(BATCH_MAX, sizeof(*events));
    char *payloads = malloc((size_t)BATCH_MAX * FSM_PAYLOAD_BYTES_MAX);
    struct journal_batch batch = {.events = events};
    int code = 0;

    check(events != NULL);
    check(payloads != NULL);
    if (salvage->history < salvage->events.count)
        code = journal_continue(journal, salvage->events.items[salvage->history].sequence, err);
    for (size_t i = salvage->history; i < salvage->events.count && code == 0; i++) {
        salvage_event(&salvage->events.items[i], &events[batch.events_count],
                      payloads + batch.events_count * FSM_PAYLOAD_BYTES_MAX);
        batch.events_count++;
        salvage->result.events++;
        if (batch.events_count == BATCH_MAX || i + 1 == salvage->events.count) {
            code = journal_commit(journal, &batch, err);
            batch.events_count = 0;
        }
    }
    free(events);
    free(payloads);
    return code;
}

static int write_lost(struct salvage *salvage, struct journal *journal,
                      const struct found_machine *machine, uint64_t number, struct err *err)
{
    struct journal_quarantined item = {
        .number = number,
        .unix_ns = salvage->now_unix_ns,
        .table = "state",
        .reason = "it could not be read when the journal was salvaged",
        .bytes = "",
    };

    (void)text_format(item.key, sizeof(item.key), "%s/%s",
                      machine_kind_name((enum machine_kind)machine->id.kind),
                      machine->id.text); /* fits: the id was a key */
    return journal_quarantine_put(journal, &item, err);
}

static int write_machines(struct salvage *salvage, struct journal *journal, uint64_t number,
                          struct err *err)
{
    struct found_machine *machine, *next;
    int code = 0;

    HASH_ITER(hh, salvage->machines, machine, next)
    {
        struct journal_record state = {machine->id, machine->state}, base = {machine->id, NULL};
        struct journal_batch batch = {.records = &state, .bases = &base};
        base.record = machine->in_history ? machine->base : machine->state;
        batch.records_count = state.record != NULL;
        batch.bases_count = base.record != NULL;
        code = journal_commit(journal, &batch, err);
        if (code == 0 && machine->state == NULL && machine->has_event && !machine->ended)
            code = write_lost(salvage, journal, machine, number++, err);
        if (code < 0)
            return code;
    }
    return 0;
}

static int write_blobs(struct salvage *salvage, struct journal *journal, struct err *err)
{
    struct found_blob *blob, *next;
    int code = 0;

    HASH_ITER(hh, salvage->blobs, blob, next)
    {
        struct journal_blob item = {.bytes = blob->bytes, .length = blob->length};
        struct journal_batch batch = {.specs_count = 0};
        if (!blob->wanted)
            continue;
        (void)text_copy(item.key, sizeof(item.key), blob->key + 1); /* it was a key */
        batch.specs = batch.metas = &item;
        batch.specs_count = blob->key[0] == 's';
        batch.metas_count = blob->key[0] == 'm';
        code = journal_commit(journal, &batch, err);
        if (code < 0)
            return code;
    }
    return 0;
}

/* Where no event is brought over, the time of the last one: the node's clock goes on from it. */
static int write_clock(struct salvage *salvage, struct journal *journal, struct err *err)
{
    void *payload = malloc(FSM_PAYLOAD_BYTES_MAX);
    struct journal_event event;

    check(payload != NULL);
    salvage_event(&salvage->events.items[salvage->events.count - 1], &event, payload);
    free(payload);
    json_t *clock = json_pack("{s:I, s:I, s:I}", "turn", (json_int_t)event.turn, "now_ms",
                              (json_int_t)event.now_ms, "unix_ns", (json_int_t)event.unix_ns);
    char *text = json_dumps(clock, JSON_COMPACT | JSON_SORT_KEYS);
    check(text != NULL);
    struct journal_blob item = {.key = IDENTITY_CLOCK, .bytes = text, .length = strlen(text)};
    struct journal_batch batch = {.metas = &item, .metas_count = 1};
    int code = journal_commit(journal, &batch, err);
    json_decref(clock);
    free(text);
    return code;
}

static int write_all(struct salvage *salvage, struct journal *journal, struct err *err)
{
    uint64_t number = 1, next = salvage->file.next;
    int code = 0;

    for (size_t i = 0; i < salvage->put_aside.count && code == 0; i++) {
        const struct journal_quarantined *item = &salvage->put_aside.items[i].item;
        code = journal_quarantine_put(journal, item, err);
        number = item->number >= number ? item->number + 1 : number;
    }
    salvage->result.events = 0;
    if (code == 0)
        code = write_events(salvage, journal, err);
    if (code == 0)
        code = write_machines(salvage, journal, number, err);
    if (code == 0)
        code = write_blobs(salvage, journal, err);
    if (code == 0 && salvage->result.events == 0 && salvage->events.count > 0) {
        code = write_clock(salvage, journal, err);
        next += LOST_EVENTS;
    }
    if (code == 0 && next > journal_next_sequence(journal))
        code = journal_continue(journal, next, err);
    return code;
}

/* --- the journal --- */

/* What only says that something is lost, as an alloc without its task, is no fault of the history.
 */
static void judge(void *ctx, const struct finding *finding)
{
    bool *sound = ctx;

    *sound = *sound && (finding->kind >= FINDING_ORPHAN || finding->kind == FINDING_TIME_BACK);
}

/* Makes it at PATH; RET_SOUND: its history leads to its records. */
static int make_journal(struct salvage *salvage, const char *path, bool *ret_sound, struct err *err)
{
    struct inspect_verdict verdict;
    struct journal *journal = NULL;

    *ret_sound = true;
    if (mkdir(path, 0700) != 0)
        return err_os(err, err_from_errno(errno), errno, "make the directory %s", path);
    int code = journal_open(path, JOURNAL_WRITE, &journal, err);
    if (code == 0)
        code = write_all(salvage, journal, err);
    if (code == 0)
        code = inspect_verify(journal, judge, ret_sound, &verdict, err);
    journal_close(journal);
    if (code < 0)
        place_remove(path);
    return code;
}

/* History that does not lead to the records as they are now would only be in the way. */
static int make_sound_journal(struct salvage *salvage, const char *path, struct err *err)
{
    bool sound;
    int code = make_journal(salvage, path, &sound, err);

    if (code == 0 && !sound && salvage->history < salvage->events.count) {
        struct found_machine *machine, *next;
        HASH_ITER(hh, salvage->machines, machine, next)
        machine->in_history = false;
        salvage->history = salvage->events.count;
        place_remove(path);
        code = make_journal(salvage, path, &sound, err);
    }
    return code;
}

static void report(struct salvage *salvage)
{
    const struct journal_salvaged *file = &salvage->file;

    if (!file->certain)
        salvage_say(salvage, "the head of the last commit is damaged: what the log does not "
                             "confirm is left behind");
    if (file->damaged_pages > 0 || file->damaged_entries > 0)
        salvage_say(salvage, "%" PRIu64 " pages and %" PRIu64 " entries are damaged",
                    file->damaged_pages, file->damaged_entries);
    if (salvage->result.events < salvage->events.count)
        salvage_say(salvage,
                    "history before event %" PRIu64 " is left behind: it has a hole, or does not "
                    "lead to the records as they are",
                    salvage->result.events == 0 ? salvage->file.next
                                                : salvage->events.items[salvage->history].sequence);
    if (salvage->result.doubtful > 0)
        salvage_say(salvage, "%" PRIu64 " entries are left behind: they may be old, or deleted",
                    salvage->result.doubtful);
}

static int salvage_to(const char *from, const char *path, int64_t now_unix_ns, inspect_say_cb *tell,
                      void *tell_ctx, struct inspect_salvaged *ret_salvaged, struct err *err)
{
    struct salvage salvage = {.say = tell, .say_ctx = tell_ctx, .now_unix_ns = now_unix_ns};
    int code = salvage_collect(&salvage, from, err);

    if (code == 0) {
        salvage_decide(&salvage);
        code = make_sound_journal(&salvage, path, err);
    }
    if (code == 0) {
        report(&salvage);
        *ret_salvaged = salvage.result;
    }
    salvage_free(&salvage);
    return code;
}

/* --- doors --- */

int inspect_salvage(const char *from, const char *to, int64_t now_unix_ns, inspect_say_cb *tell,
                    void *tell_ctx, struct inspect_salvaged *ret_salvaged, struct err *err)
{
    char path[JOURNAL_PATH_SIZE], making[JOURNAL_PATH_SIZE];
    int code = journal_locate(from, path, err);

    if (code < 0)
        return code;
    if (journal_is_held(path))
        return err_set(err, ERR_EXISTS, "the journal in %s is in use, so it can be read", path);
    if (place_is_taken(to))
        return err_set(err, ERR_EXISTS, "%s exists and is not an empty directory", to);
    if (!text_format(making, sizeof(making), "%s.salvaging", to))
        return err_set(err, ERR_LIMIT, "the path is too long");
    code = salvage_to(path, making, now_unix_ns, tell, tell_ctx, ret_salvaged, err);
    if (code < 0)
        return code;
    code = place_move(making, to, err);
    if (code < 0)
        place_remove(making);
    return code;
}

int inspect_salvage_in_place(const char *path, int64_t now_unix_ns, inspect_say_cb *tell,
                             void *tell_ctx, char ret_kept[JOURNAL_PATH_SIZE],
                             struct inspect_salvaged *ret_salvaged, struct err *err)
{
    char making[JOURNAL_PATH_SIZE];
    int held;

    if (!text_format(making, sizeof(making), "%s/salvaging", path))
        return err_set(err, ERR_LIMIT, "the path is too long");
    int code = journal_hold(path, &held, err);
    if (code < 0)
        return code;
    place_remove(making); /* of one that was interrupted */
    code = salvage_to(path, making, now_unix_ns, tell, tell_ctx, ret_salvaged, err);
    if (code == 0)
        code = journal_replace(path, making, ret_kept, err);
    place_remove(making);
    (void)close(held); /* a lock, nothing was written */
    return code;
}
