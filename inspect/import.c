/*
 * `import`: a journal from an export, byte for byte the same entries.
 *
 * The journal is made beside its place and moved there when it is whole; what goes wrong says the
 * line and leaves nothing behind.  Lines are from outside: every value is checked as the codec
 * checks what it reads.
 */
#include "inspect/part.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_BYTES_MAX = 32 << 20, BATCH_MAX = 512 };

struct importing {
    FILE *from;
    struct journal *journal;
    char path[JOURNAL_PATH_SIZE]; /* where it is made */
    char *line;
    size_t line_size;
    uint64_t number; /* of the line */
    uint64_t next;   /* sequence that the next event may have at least */
    uint64_t next_at_end;
    struct journal_event events[BATCH_MAX];
    struct journal_record records[BATCH_MAX], bases[BATCH_MAX];
    struct journal_blob specs[BATCH_MAX], metas[BATCH_MAX];
    size_t events_count, records_count, bases_count, specs_count, metas_count;
    struct machine *record; /* scratch, FSM_RECORD_BYTES_MAX */
    void *payload;          /* scratch, FSM_PAYLOAD_BYTES_MAX */
};

/* --- batches --- */

static void *copy_of(const void *bytes, size_t length)
{
    void *copy = malloc(length + 1);

    check(copy != NULL);
    memcpy(copy, bytes, length);
    return copy;
}

static void free_const(const void *bytes)
{
    free((void *)(uintptr_t)bytes); /* our own copy, const only for readers */
}

static void forget_batch(struct importing *importing)
{
    for (size_t i = 0; i < importing->events_count; i++)
        free_const(importing->events[i].event.payload);
    for (size_t i = 0; i < importing->records_count; i++)
        free_const(importing->records[i].record);
    for (size_t i = 0; i < importing->bases_count; i++)
        free_const(importing->bases[i].record);
    for (size_t i = 0; i < importing->specs_count; i++)
        free_const(importing->specs[i].bytes);
    for (size_t i = 0; i < importing->metas_count; i++)
        free_const(importing->metas[i].bytes);
    importing->events_count = importing->records_count = importing->bases_count = 0;
    importing->specs_count = importing->metas_count = 0;
}

static int flush(struct importing *importing, struct err *err)
{
    struct journal_batch batch = {
        .events = importing->events,
        .events_count = importing->events_count,
        .records = importing->records,
        .records_count = importing->records_count,
        .bases = importing->bases,
        .bases_count = importing->bases_count,
        .specs = importing->specs,
        .specs_count = importing->specs_count,
        .metas = importing->metas,
        .metas_count = importing->metas_count,
    };
    int code = journal_commit(importing->journal, &batch, err);

    forget_batch(importing);
    return code;
}

/* Room for one more entry. */
static int make_room(struct importing *importing, size_t used, struct err *err)
{
    return used == BATCH_MAX ? flush(importing, err) : 0;
}

/* --- entries --- */

static int take_record(struct importing *importing, const json_t *json, bool base, struct err *err)
{
    struct journal_record *list = base ? importing->bases : importing->records;
    size_t *count = base ? &importing->bases_count : &importing->records_count;
    struct machine_id id;

    int code = make_room(importing, *count, err);
    if (code < 0)
        return code;
    memset(importing->record, 0, FSM_RECORD_BYTES_MAX);
    code = inspect_read_record(json_object_get(json, "entry"), &id, importing->record, err);
    if (code < 0)
        return code;
    list[(*count)++] = (struct journal_record){
        .id = id,
        .record = copy_of(importing->record, fsm_record_size(importing->record)),
    };
    return 0;
}

/* The codec refuses what no machine can read; better here than when it is read. */
static int check_event(const struct journal_event *event, struct err *err)
{
    struct journal_event again;
    void *bytes, *payload = calloc(1, FSM_PAYLOAD_BYTES_MAX);
    size_t length;

    check(payload != NULL);
    journal_encode_event(event, &bytes, &length);
    int code = journal_decode_event(bytes, length, &again, payload, err);
    free(bytes);
    free(payload);
    return code;
}

static int take_event(struct importing *importing, const json_t *json, struct err *err)
{
    struct journal_event event;

    memset(importing->payload, 0, FSM_PAYLOAD_BYTES_MAX);
    int code = inspect_read_event(json_object_get(json, "entry"), &event, importing->payload, err);
    if (code == 0)
        code = check_event(&event, err);
    if (code < 0)
        return code;
    if (!machine_id_is_sound(&event.id))
        return err_set(err, ERR_INVALID, "event %" PRIu64 ": no machine has such an id",
                       event.sequence);
    if (event.turn > NUMBER_MAX || event.now_ms > NUMBER_MAX)
        return err_set(err, ERR_INVALID,
                       "event %" PRIu64 ": its turn or time is more than anything ever counted",
                       event.sequence);
    if (event.sequence < importing->next)
        return err_set(err, ERR_INVALID, "event %" PRIu64 " comes after a later one",
                       event.sequence);
    code = event.sequence > importing->next ? flush(importing, err)
                                            : make_room(importing, importing->events_count, err);
    if (code == 0 && event.sequence > importing->next)
        code = journal_continue(importing->journal, event.sequence, err);
    if (code < 0)
        return code;
    const struct fsm_def *def = fsm_definition((enum machine_kind)event.id.kind);
    enum fsm_payload kind = (enum fsm_payload)def->events[event.event.kind].payload;
    if (kind != PAYLOAD_NONE)
        event.event.payload =
            copy_of(importing->payload, fsm_payload_size(kind, importing->payload));
    importing->events[importing->events_count++] = event;
    importing->next = event.sequence + 1;
    return 0;
}

/* "text" or "hex" of JSON as bytes owned by the caller. */
static int take_bytes(const json_t *json, char **ret_bytes, size_t *ret_length, struct err *err)
{
    const json_t *text = json_object_get(json, "text");
    const char *hex = json_string_value(json_object_get(json, "hex"));

    if (json_is_string(text)) {
        *ret_bytes = copy_of(json_string_value(text), json_string_length(text));
        *ret_length = json_string_length(text);
        return 0;
    }
    if (hex == NULL)
        return err_set(err, ERR_INVALID, "neither text nor hex");
    char *bytes = malloc(strlen(hex) / 2 + 1);
    check(bytes != NULL);
    if (inspect_read_hex(hex, bytes, strlen(hex) / 2, ret_length) < 0) {
        free(bytes);
        return err_set(err, ERR_INVALID, "hex: not a number of whole bytes");
    }
    *ret_bytes = bytes;
    return 0;
}

static int take_blob(struct importing *importing, const json_t *json, bool meta, struct err *err)
{
    struct journal_blob *list = meta ? importing->metas : importing->specs;
    size_t *count = meta ? &importing->metas_count : &importing->specs_count;
    const char *key = json_string_value(json_object_get(json, "key"));
    struct journal_blob blob = {.length = 0};
    char *bytes;

    if (key == NULL || key[0] == '\0' || !text_copy(blob.key, sizeof(blob.key), key))
        return err_set(err, ERR_INVALID, "key: missing or too long");
    if (meta && text_starts_with(key, "journal/"))
        return err_set(err, ERR_INVALID, "key: %s is the journal's own", key);
    int code = make_room(importing, *count, err);
    if (code == 0)
        code = take_bytes(json, &bytes, &blob.length, err);
    if (code < 0)
        return code;
    blob.bytes = bytes;
    list[(*count)++] = blob;
    return 0;
}

static int take_quarantined(struct importing *importing, const json_t *json, struct err *err)
{
    const char *table = json_string_value(json_object_get(json, "of"));
    const char *key = json_string_value(json_object_get(json, "key"));
    const char *reason = json_string_value(json_object_get(json, "reason"));
    json_int_t number = json_integer_value(json_object_get(json, "number"));
    struct journal_quarantined item = {
        .number = (uint64_t)number,
        .unix_ns = json_integer_value(json_object_get(json, "unix_ns")),
    };
    char *bytes;

    if (number <= 0 || table == NULL || key == NULL || reason == NULL ||
        !text_copy(item.table, sizeof(item.table), table) ||
        !text_copy(item.key, sizeof(item.key), key) ||
        !text_copy(item.reason, sizeof(item.reason), reason))
        return err_set(err, ERR_INVALID, "not an entry of the quarantine");
    int code = take_bytes(json, &bytes, &item.length, err);
    if (code < 0)
        return code;
    item.bytes = bytes;
    code = journal_quarantine_put(importing->journal, &item, err);
    free(bytes);
    return code;
}

static int take_head(struct importing *importing, const json_t *json, struct err *err)
{
    json_int_t version = json_integer_value(json_object_get(json, "cairn_journal_export"));
    json_int_t schema = json_integer_value(json_object_get(json, "schema"));
    json_int_t next = json_integer_value(json_object_get(json, "next"));

    if (version != 1)
        return err_set(err, ERR_INVALID, "not an export of a journal, or one of a newer cairn");
    if (schema > JOURNAL_SCHEMA)
        return err_set(err, ERR_UNSUPPORTED, "exported from schema %lld, this cairn knows %d",
                       (long long)schema, JOURNAL_SCHEMA);
    if (json_is_true(json_object_get(json, "redacted")))
        return err_set(err, ERR_REFUSED,
                       "the export is redacted: a journal made of it would start "
                       "tasks with *** in their environment");
    importing->next_at_end = next > 0 ? (uint64_t)next : 0;
    return 0;
}

static int take_entry(struct importing *importing, const json_t *json, struct err *err)
{
    const char *table = json_string_value(json_object_get(json, "table"));

    if (importing->number == 1)
        return take_head(importing, json, err);
    if (table == NULL)
        return err_set(err, ERR_INVALID, "no table named");
    if (text_equal(table, "log"))
        return take_event(importing, json, err);
    if (text_equal(table, "state") || text_equal(table, "base"))
        return take_record(importing, json, text_equal(table, "base"), err);
    if (text_equal(table, "spec") || text_equal(table, "meta"))
        return take_blob(importing, json, text_equal(table, "meta"), err);
    if (text_equal(table, "quarantine"))
        return take_quarantined(importing, json, err);
    return err_set(err, ERR_INVALID, "unknown table \"%s\"", table);
}

/* --- lines --- */

/* The next line without its end; ERR_GONE behind the last one. */
static int read_line(struct importing *importing, size_t *ret_length, struct err *err)
{
    size_t used = 0;
    int c;

    while ((c = getc_unlocked(importing->from)) != EOF && c != '\n') {
        if (used == importing->line_size) {
            if (importing->line_size >= LINE_BYTES_MAX)
                return err_set(err, ERR_LIMIT, "longer than %d bytes", LINE_BYTES_MAX);
            importing->line = list_room(importing->line, &importing->line_size, used + 65536, 1);
        }
        importing->line[used++] = (char)c;
    }
    if (ferror(importing->from))
        return err_os(err, ERR_IO, errno, "cannot be read");
    if (c == EOF && used == 0)
        return ERR_GONE;
    *ret_length = used;
    return 0;
}

static int import_line(struct importing *importing, size_t length, struct err *err)
{
    json_error_t where;
    json_t *json = json_loadb(importing->line, length, JSON_REJECT_DUPLICATES, &where);

    if (json == NULL)
        return err_set(err, ERR_INVALID, "column %d: %s", where.column, where.text);
    int code = take_entry(importing, json, err);
    json_decref(json);
    return code;
}

static int import_lines(struct importing *importing, struct err *err)
{
    size_t length = 0;
    int code = 0;

    importing->next = 1;
    while (code == 0) {
        importing->number++;
        code = read_line(importing, &length, err);
        if (code == 0)
            code = import_line(importing, length, err);
        if (code < 0 && code != ERR_GONE)
            return err_wrap(err, "line %" PRIu64, importing->number);
    }
    if (importing->number == 1)
        return err_set(err, ERR_INVALID, "the export is empty");
    code = flush(importing, err);
    if (code == 0 && importing->next_at_end > importing->next)
        code = journal_continue(importing->journal, importing->next_at_end, err);
    return code;
}

/* --- places --- */

static int make_journal(struct importing *importing, const char *to, struct err *err)
{
    if (!text_format(importing->path, sizeof(importing->path) - 16, "%s.importing", to))
        return err_set(err, ERR_LIMIT, "the path is too long");
    if (mkdir(importing->path, 0700) != 0)
        return err_os(err, err_from_errno(errno), errno, "make the directory %s", importing->path);
    int code = journal_open(importing->path, JOURNAL_WRITE, &importing->journal, err);
    if (code == 0)
        code = import_lines(importing, err);
    forget_batch(importing);
    journal_close(importing->journal);
    if (code == 0)
        code = place_move(importing->path, to, err);
    if (code < 0)
        place_remove(importing->path);
    return code;
}

static int import_from(struct importing *importing, const char *name, const char *to,
                       struct err *err)
{
    if (place_is_taken(to))
        return err_set(err, ERR_EXISTS, "%s exists and is not an empty directory", to);
    importing->from = name == NULL ? stdin : fopen(name, "re");
    if (importing->from == NULL)
        return err_os(err, err_from_errno(errno), errno, "read %s", name);
    int code = make_journal(importing, to, err);
    if (name != NULL)
        (void)fclose(importing->from); /* only read from */
    return code;
}

int inspect_import(const char *from, const char *to, uint64_t *ret_entries, struct err *err)
{
    struct importing *importing = calloc(1, sizeof(*importing));

    check(importing != NULL);
    importing->record = calloc(1, FSM_RECORD_BYTES_MAX);
    importing->payload = calloc(1, FSM_PAYLOAD_BYTES_MAX);
    check(importing->record != NULL);
    check(importing->payload != NULL);
    int code = import_from(importing, from, to, err);
    if (code == 0)
        *ret_entries = importing->number - 2; /* all lines but the head and the end */
    free(importing->record);
    free(importing->payload);
    free(importing->line);
    free(importing);
    return code;
}
