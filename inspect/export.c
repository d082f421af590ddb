/*
 * `export`: all tables as JSON Lines, in an order that import can follow in one pass.
 *
 * Secrets go along, since the journal must come out of it byte for byte: an export goes to a new
 * file that only its owner reads, to a pipe, or to a file that is as closed already.  A terminal
 * gets it redacted.
 */
#include "inspect/part.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct exporting {
    struct inspect *inspect; /* first: inspect_bad finds it here */
    FILE *to;
    bool redact;
    const char *table;
    uint64_t lines;
};

/* --- lines --- */

static void put_bytes(FILE *to, const void *bytes, size_t length)
{
    if (text_is_utf8(bytes, length)) {
        (void)fputs(",\"text\":", to);
        inspect_json_text(to, bytes, length);
    } else {
        (void)fputs(",\"hex\":", to);
        inspect_json_hex(to, bytes, length);
    }
}

/* A blob that is JSON with what may be secret replaced; NULL if it is no JSON. */
static char *redacted(const void *bytes, size_t length)
{
    json_t *json = json_loadb(bytes, length, 0, NULL);
    char *text = NULL;

    if (json != NULL) {
        inspect_redact(json);
        text = json_dumps(json, JSON_COMPACT);
    }
    json_decref(json);
    return text;
}

static bool put_blob(void *ctx, const char *key, const void *bytes, size_t length)
{
    struct exporting *exporting = ctx;

    if (text_starts_with(key, "journal/"))
        return true; /* the journal's own, made again by the import */
    if (text_starts_with(key, "secret/"))
        return true; /* of volumes: it never leaves the node, whatever else is revealed */
    (void)fprintf(exporting->to, "{\"table\":\"%s\",\"key\":", exporting->table);
    inspect_json_string(exporting->to, key);
    char *text = exporting->redact ? redacted(bytes, length) : NULL;
    if (text != NULL)
        put_bytes(exporting->to, text, strlen(text));
    else if (exporting->redact)
        put_bytes(exporting->to, "***", 3);
    else
        put_bytes(exporting->to, bytes, length);
    free(text);
    (void)fputs("}\n", exporting->to);
    exporting->lines++;
    return !ferror(exporting->to);
}

static bool put_record(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct exporting *exporting = ctx;

    (void)fprintf(exporting->to, "{\"table\":\"%s\",\"entry\":", exporting->table);
    inspect_json_record(exporting->to, id, record, exporting->redact);
    (void)fputs("}\n", exporting->to);
    exporting->lines++;
    return !ferror(exporting->to);
}

static bool put_event(void *ctx, const struct journal_event *event)
{
    struct exporting *exporting = ctx;

    (void)fputs("{\"table\":\"log\",\"entry\":", exporting->to);
    inspect_json_event(exporting->to, event, exporting->redact);
    (void)fputs("}\n", exporting->to);
    exporting->lines++;
    return !ferror(exporting->to);
}

static bool put_quarantined(void *ctx, const struct journal_quarantined *item)
{
    struct exporting *exporting = ctx;

    (void)fprintf(exporting->to,
                  "{\"table\":\"quarantine\",\"number\":%" PRIu64 ",\"unix_ns\":%" PRId64
                  ",\"of\":",
                  item->number, item->unix_ns);
    inspect_json_string(exporting->to, item->table);
    (void)fputs(",\"key\":", exporting->to);
    inspect_json_string(exporting->to, item->key);
    (void)fputs(",\"reason\":", exporting->to);
    inspect_json_string(exporting->to, item->reason);
    (void)fputs(",\"hex\":", exporting->to);
    inspect_json_hex(exporting->to, item->bytes,
                     exporting->redact || text_starts_with(item->key, "secret/") ? 0
                                                                                 : item->length);
    (void)fputs("}\n", exporting->to);
    exporting->lines++;
    return !ferror(exporting->to);
}

/* --- tables --- */

/* Blobs that are damaged are passed over and told by the walk's result. */
static int report_damage(struct exporting *exporting, int code, const struct err *err)
{
    if (code != ERR_CORRUPT)
        return code;
    inspect_bad(exporting, exporting->table, "(one or more)", NULL, 0, err->text);
    return 0;
}

static int put_records(struct exporting *exporting, const char *table, struct err *err)
{
    struct journal *journal = exporting->inspect->journal;
    bool bases = text_equal(table, "base");
    int code = 0;

    exporting->table = table;
    for (int kind = 0; kind < MACHINE_KIND_COUNT && code == 0; kind++)
        code = (bases ? journal_each_base : journal_each_record)(
            journal, (enum machine_kind)kind, put_record, inspect_bad, exporting, err);
    return code;
}

static int put_all(struct exporting *exporting, struct err *err)
{
    struct journal *journal = exporting->inspect->journal;

    (void)fprintf(exporting->to,
                  "{\"cairn_journal_export\":1,\"schema\":%d,\"first\":%" PRIu64
                  ",\"next\":%" PRIu64 ",\"redacted\":%s}\n",
                  JOURNAL_SCHEMA, journal_first_sequence(journal), journal_next_sequence(journal),
                  exporting->redact ? "true" : "false");
    exporting->table = "meta";
    int code = journal_each_meta(journal, put_blob, exporting, err);
    code = report_damage(exporting, code, err);
    if (code < 0)
        return code;
    exporting->table = "spec";
    code = journal_each_spec(journal, "", put_blob, exporting, err);
    code = report_damage(exporting, code, err);
    if (code == 0)
        code = put_records(exporting, "base", err);
    if (code == 0)
        code = journal_each_event(journal, 0, put_event, inspect_bad, exporting, err);
    if (code == 0)
        code = put_records(exporting, "state", err);
    if (code == 0)
        code = journal_each_quarantined(journal, put_quarantined, exporting, err);
    return code;
}

/* --- where to --- */

static int open_file(struct exporting *exporting, const char *path, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return err_os(err, err_from_errno(errno), errno, "make the file %s", path);
    exporting->to = fdopen(fd, "w");
    check(exporting->to != NULL);
    return 0;
}

/* What goes to standard output may end where others can read it. */
static int protect(struct exporting *exporting, struct err *err)
{
    int fd = fileno(exporting->to);
    struct stat about;

    if (exporting->redact || fd < 0 || fstat(fd, &about) != 0)
        return 0;
    if (isatty(fd) == 1) {
        inspect_say(exporting->inspect,
                    "to a terminal: values that may be secret are ***; see -out");
        exporting->redact = true;
        return 0;
    }
    if (S_ISREG(about.st_mode) && (about.st_mode & (S_IRGRP | S_IROTH)) != 0)
        return err_set(err, ERR_REFUSED,
                       "an export holds secrets, and others may read this file: use -out FILE, "
                       "chmod 600, or -redact");
    return 0;
}

static int close_file(struct exporting *exporting, const char *path, struct err *err)
{
    bool failed =
        fflush(exporting->to) != 0 || ferror(exporting->to) || fsync(fileno(exporting->to)) != 0;
    int number = errno;

    failed = fclose(exporting->to) != 0 || failed;
    return failed ? err_os(err, err_from_errno(number), number, "write %s", path) : 0;
}

int inspect_export(struct inspect *inspect, const char *path, bool redact, struct err *err)
{
    struct exporting exporting = {.inspect = inspect, .to = inspect->options.out, .redact = redact};
    struct err closing = {0};

    int code = path != NULL ? open_file(&exporting, path, err) : protect(&exporting, err);
    if (code < 0)
        return code;
    code = put_all(&exporting, err);
    if (path == NULL)
        return code;
    int closed = close_file(&exporting, path, &closing);
    if (code == 0 && closed < 0) {
        *err = closing;
        code = closed;
    }
    if (code == 0)
        (void)fprintf(inspect->options.out, "%s: %" PRIu64 " entries\n", path, exporting.lines);
    return code;
}
