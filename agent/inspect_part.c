/* What the verbs of the inspector share: finding, opening, filters, times, names. */
#include "agent/inspect_part.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* --- errors --- */

int inspect_fail(struct inspect *inspect, const struct err *err)
{
    char text[ERR_TEXT_SIZE];

    (void)text_copy(text, sizeof(text), err->text); /* same size */
    text_clean(text);
    (void)fflush(inspect->out); /* what was shown comes first */
    (void)fprintf(inspect->complain, "cairn journal: %s\n", text);
    return STATUS_WRONG;
}

int inspect_usage(struct inspect *inspect, const char *format, ...)
{
    va_list list;

    (void)fputs("cairn journal: ", inspect->complain);
    va_start(list, format);
    (void)vfprintf(inspect->complain, format, list);
    va_end(list);
    (void)fputc('\n', inspect->complain);
    return STATUS_USAGE;
}

void inspect_bad(void *ctx, const char *table, const char *key, const void *bytes, size_t length,
                 const char *reason)
{
    struct inspect *inspect = *(struct inspect **)ctx;
    char line[JOURNAL_KEY_SIZE + ERR_TEXT_SIZE + 64];

    (void)bytes; /* kept as they are: cairn journal export shows them */
    (void)text_format(line, sizeof(line), "damaged, skipped: %s %s (%zu bytes): %s", table, key,
                      length, reason);
    text_clean(line);
    inspect->damaged++;
    (void)fflush(inspect->out);
    (void)fprintf(inspect->complain, "cairn journal: %s\n", line);
}

bool inspect_flag(const struct inspect *inspect, enum inspect_flag flag)
{
    return inspect->flags[flag] != NULL;
}

/* --- finding and opening --- */

static bool has_journal(const char *path, const char *below, char to[INSPECT_PATH_SIZE])
{
    char file[INSPECT_PATH_SIZE];
    struct stat about;

    return text_format(to, INSPECT_PATH_SIZE, "%s%s", path, below) &&
           text_format(file, sizeof(file), "%s/data.mdb", to) && stat(file, &about) == 0;
}

/* The directory of the journal: PATH itself, below a data directory, or around PATH if that is the
 * data file. */
static int find_journal(struct inspect *inspect, const char *path, struct err *err)
{
    static const char *const below[] = {"", "/client/journal", "/journal"};
    struct stat about;
    int number = 0;

    if (stat(path, &about) != 0)
        return err_os(err, err_from_errno(errno), errno, "no journal at %s", path);
    if (!S_ISDIR(about.st_mode)) {
        const char *slash = strrchr(path, '/');
        const char *name = slash == NULL ? path : slash + 1;
        if (!text_equal(name, "data.mdb"))
            return err_set(err, ERR_INVALID, "%s is neither a directory nor a data.mdb", path);
        if (slash == NULL)
            (void)text_copy(inspect->path, sizeof(inspect->path), "."); /* fits */
        else
            (void)text_format(inspect->path, sizeof(inspect->path), "%.*s/", (int)(slash - path),
                              path); /* it was opened by this name, so it is short enough */
        return 0;
    }
    for (size_t i = 0; i < COUNT_OF(below); i++) {
        if (has_journal(path, below[i], inspect->path))
            return 0;
        if (errno == EACCES)
            number = errno;
    }
    if (number != 0)
        return err_os(err, ERR_REFUSED, number, "the journal in %s may not be read by this user",
                      path);
    return err_set(
        err, ERR_GONE,
        "no journal in %s, %s/client/journal or %s/journal; name its directory with -dir", path,
        path, path);
}

int inspect_open(struct inspect *inspect, enum journal_mode mode, struct err *err)
{
    const char *path = inspect->flags[FLAG_DIR];

    if (path == NULL)
        path = getenv("CAIRN_DATA_DIR");
    if (path == NULL || path[0] == '\0')
        path = "/var/lib/cairn";
    int code = find_journal(inspect, path, err);
    if (code == 0)
        code = journal_open(inspect->path, mode, &inspect->journal, err);
    return code;
}

/* --- the ends of the log --- */

struct looking {
    struct inspect *inspect;
    struct moment found;
};

static bool take_moment(void *ctx, const struct journal_event *event)
{
    struct looking *looking = ctx;

    looking->found = (struct moment){
        .sequence = event->sequence,
        .turn = event->turn,
        .now_ms = event->now_ms,
        .unix_ns = event->unix_ns,
    };
    return false;
}

static bool take_last(void *ctx, const struct journal_event *event)
{
    (void)take_moment(ctx, event);
    return true;
}

static void ignore_bad(void *ctx, const char *table, const char *key, const void *bytes,
                       size_t length, const char *reason)
{
    (void)ctx; /* the verb's own walk reports it */
    (void)table;
    (void)key;
    (void)bytes;
    (void)length;
    (void)reason;
}

/* The first event at or behind SEQUENCE; sequence 0 in RET if there is none. */
static int moment_at(struct inspect *inspect, uint64_t sequence, struct moment *ret,
                     struct err *err)
{
    struct looking looking = {.inspect = inspect};
    int code =
        journal_each_event(inspect->journal, sequence, take_moment, ignore_bad, &looking, err);

    if (code == 0)
        *ret = looking.found;
    return code;
}

int inspect_ends(struct inspect *inspect, struct err *err)
{
    struct looking looking = {.inspect = inspect};
    uint64_t next = journal_next_sequence(inspect->journal);
    uint64_t first = journal_first_sequence(inspect->journal);
    int code = moment_at(inspect, first, &inspect->first, err);

    /* The last one may be damaged: further and further back until one can be read. */
    for (uint64_t back = 1; code == 0 && looking.found.sequence == 0 && back < next; back *= 2) {
        uint64_t from = next > first + back ? next - back : first;
        code = journal_each_event(inspect->journal, from, take_last, ignore_bad, &looking, err);
        if (from == first)
            break;
    }
    inspect->last = looking.found;
    return code;
}

/* --- times --- */

static bool read_rfc3339(const char *text, int64_t *ret_unix_ns)
{
    struct tm parts = {0};
    int64_t fraction = 0, scale = 100000000;
    int offset_hours, offset_minutes, used = 0;
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);

    if (rest == NULL)
        rest = strptime(text, "%Y-%m-%d %H:%M:%S", &parts);
    if (rest == NULL)
        return false;
    if (*rest == '.') {
        for (rest++; *rest >= '0' && *rest <= '9'; rest++, scale /= 10)
            fraction += (*rest - '0') * scale;
    }
    int64_t seconds = (int64_t)timegm(&parts);
    if ((*rest == '+' || *rest == '-') &&
        sscanf(rest + 1, "%2d:%2d%n", &offset_hours, &offset_minutes, &used) == 2) {
        int64_t offset = (int64_t)offset_hours * 3600 + (int64_t)offset_minutes * 60;
        seconds += *rest == '-' ? offset : -offset;
        rest += 1 + used;
    } else if (*rest == 'Z') {
        rest++;
    }
    if (*rest != '\0')
        return false;
    *ret_unix_ns = seconds * 1000000000 + fraction;
    return true;
}

/* A time of day: on the day on which the log ends, or the day before if it did not come to it. */
static bool read_time_of_day(const struct inspect *inspect, const char *text, int64_t *ret_unix_ns)
{
    struct tm parts = {0};
    const char *rest = strptime(text, "%H:%M:%S", &parts);
    const int64_t day_s = 24 * 60 * 60;

    if (rest == NULL || *rest != '\0')
        return false;
    int64_t end_s = inspect->last.unix_ns / 1000000000;
    int64_t at_s = end_s - end_s % day_s + parts.tm_hour * 3600 + parts.tm_min * 60 + parts.tm_sec;
    if (at_s > end_s)
        at_s -= day_s;
    *ret_unix_ns = at_s * 1000000000;
    return true;
}

int inspect_time(const struct inspect *inspect, const char *text, int64_t *ret_unix_ns,
                 struct err *err)
{
    int64_t duration_ns;

    if ((text[0] == '-' || text[0] == '+') && text_to_duration_ns(text + 1, &duration_ns)) {
        *ret_unix_ns = text[0] == '-' ? inspect->last.unix_ns - duration_ns
                                      : inspect->first.unix_ns + duration_ns;
        return 0;
    }
    if (read_rfc3339(text, ret_unix_ns) || read_time_of_day(inspect, text, ret_unix_ns))
        return 0;
    return err_set(err, ERR_INVALID,
                   "\"%s\" is neither a sequence number nor a time: 2026-01-31T15:04:05Z, 15:04:05 "
                   "(UTC), -5m (before the end), +90s (after the begin)",
                   text);
}

/* The last event that is not later than UNIX_NS; 0: none.  Halving, so a wall clock that was set
 * back in between gives one of the possible answers. */
static int last_by(struct inspect *inspect, int64_t unix_ns, uint64_t *ret_sequence,
                   struct err *err)
{
    uint64_t low = inspect->first.sequence, high = inspect->last.sequence, found = 0;

    while (low != 0 && low <= high) {
        uint64_t middle = low + (high - low) / 2;
        struct moment at = {0};
        int code = moment_at(inspect, middle, &at, err);
        if (code < 0)
            return code;
        if (at.sequence != 0 && at.unix_ns <= unix_ns) {
            found = at.sequence;
            low = at.sequence + 1;
        } else {
            high = middle - 1;
        }
    }
    *ret_sequence = found;
    return 0;
}

int inspect_when(struct inspect *inspect, const char *text, uint64_t *ret_sequence, struct err *err)
{
    int64_t unix_ns;

    if (text_to_u64(text, ret_sequence))
        return 0;
    int code = inspect_time(inspect, text, &unix_ns, err);
    return code < 0 ? code : last_by(inspect, unix_ns, ret_sequence, err);
}

int inspect_range(struct inspect *inspect, uint64_t *ret_first, uint64_t *ret_last, struct err *err)
{
    const char *since = inspect->flags[FLAG_SINCE], *until = inspect->flags[FLAG_UNTIL];
    uint64_t first = inspect->first.sequence, last = UINT64_MAX;
    int64_t unix_ns;
    int code = 0;

    if (since != NULL && !text_to_u64(since, &first)) {
        code = inspect_time(inspect, since, &unix_ns, err);
        if (code == 0)
            code = last_by(inspect, unix_ns - 1, &first, err);
        first++;
    }
    if (code == 0 && until != NULL)
        code = inspect_when(inspect, until, &last, err);
    if (code < 0)
        return code;
    *ret_first = first;
    *ret_last = last;
    return 0;
}

int64_t inspect_unix_ns(const struct inspect *inspect, uint64_t ms)
{
    return inspect->last.unix_ns - (int64_t)(inspect->last.now_ms - ms) * 1000000;
}

void age_print(int64_t ns, char to[AGE_TEXT_SIZE])
{
    int64_t ms = ns / 1000000, s = ms / 1000;

    if (ms < 60000)
        (void)text_format(to, AGE_TEXT_SIZE, "%lld.%03llds", (long long)s, (long long)(ms % 1000));
    else if (s < 3600)
        (void)text_format(to, AGE_TEXT_SIZE, "%lldm%llds", (long long)(s / 60),
                          (long long)(s % 60));
    else if (s < 86400)
        (void)text_format(to, AGE_TEXT_SIZE, "%lldh%lldm", (long long)(s / 3600),
                          (long long)(s / 60 % 60));
    else
        (void)text_format(to, AGE_TEXT_SIZE, "%lldd%lldh", (long long)(s / 86400),
                          (long long)(s / 3600 % 24));
}

/* --- machines --- */

bool id_in_alloc(const struct machine_id *id, const char *prefix)
{
    return text_starts_with(id->text, prefix) &&
           (id->kind == MACHINE_ALLOC || strchr(id->text, '/'));
}

bool inspect_wants(const struct inspect *inspect, const struct machine_id *id)
{
    const char *alloc = inspect->flags[FLAG_ALLOC];

    if (inspect->kind >= 0 && id->kind != inspect->kind)
        return false;
    return alloc == NULL || id_in_alloc(id, alloc);
}

void id_print(const struct machine_id *id, char to[ID_TEXT_SIZE])
{
    char alloc[UUID_TEXT_SIZE] = "";
    const char *rest = id->text + strnlen(id->text, UUID_TEXT_SIZE - 1);

    memcpy(alloc, id->text, (size_t)(rest - id->text));
    if (uuid_is_valid(alloc) && (*rest == '\0' || *rest == '/'))
        (void)text_format(to, ID_TEXT_SIZE, "%.*s%s", ID_SHORT, id->text, rest); /* shorter */
    else
        (void)text_copy(to, ID_TEXT_SIZE, id->text); /* same size */
    text_clean(to);
}

static void summarise_task(const struct task *task, char *to, size_t size)
{
    char part[64];

    (void)text_format(to, size, "%s", task->define.driver);
    if (task->ran && !task->exit_seen) {
        (void)text_format(part, sizeof(part), " pid %d", (int)task->process.payload_pid);
        (void)text_append(to, size, part);
    }
    if (task->exit_seen && !task->exit.known) {
        (void)text_append(to, size, " exit unknown");
    } else if (task->exit_seen) {
        (void)text_format(part, sizeof(part), " exit %d", (int)task->exit.code);
        (void)text_append(to, size, part);
    }
    if (task->restarts > 0) {
        (void)text_format(part, sizeof(part), " restarts %u", task->restarts);
        (void)text_append(to, size, part);
    }
    if (task->failed)
        (void)text_append(to, size, " failed");
}

void record_summary(const struct machine *record, char *to, size_t size)
{
    switch ((enum machine_kind)record->kind) {
    case MACHINE_ALLOC: {
        const struct alloc *alloc = alloc_of(record);
        (void)text_format(to, size, "%s %s.%s[%u]",
                          client_status_name((enum client_status)alloc->client_status),
                          alloc->assign.job_id, alloc->assign.group, alloc->assign.index);
        break;
    }
    case MACHINE_TASK:
        summarise_task(task_of(record), to, size);
        break;
    case MACHINE_VOLUME: {
        const struct volume *volume = volume_of(record);
        (void)text_format(to, size, "%s of plugin %s%s%s%s", volume->define.volume,
                          volume->define.plugin, volume->claimed ? " claimed" : "",
                          volume->staged ? " staged" : "", volume->published ? " published" : "");
        break;
    }
    case MACHINE_PLUGIN: {
        const struct plugin *plugin = plugin_of(record);
        (void)text_format(to, size, "%s %s", plugin->define.plugin, plugin->identity.version);
        break;
    }
    case MACHINE_KIND_COUNT:
        unreachable("machine kind");
    }
    text_clean(to);
}

void event_describe(const struct journal_event *event, char *to, size_t size)
{
    agent_describe(event, to, size);
    text_clean(to);
}

void spec_redact(json_t *value)
{
    const char *name;
    json_t *item;
    size_t i;
    void *next;

    json_array_foreach(value, i, item) spec_redact(item);
    json_object_foreach_safe(value, next, name, item)
    {
        const char *key;
        json_t *inner;
        if (text_equal(name, "secret") && json_is_string(item)) {
            (void)json_string_set(item, "***"); /* valid UTF-8 */
        } else if (text_equal(name, "Env") && json_is_object(item)) {
            json_object_foreach(item, key, inner)(void) json_string_set(inner, "***");
        } else {
            spec_redact(item);
        }
    }
}

/* --- naming one machine --- */

struct naming {
    struct inspect *inspect;
    const char *text;
    struct machine_id found, other;
    uint32_t matches;
    bool exact;
};

static bool is_named(const char *id, const char *text)
{
    const char *slash = strchr(text, '/'), *id_slash = strchr(id, '/');

    if (slash == NULL)
        return text_starts_with(id, text);
    /* "<begin of the alloc>/<begin of the name>" */
    return id_slash != NULL && strncmp(id, text, (size_t)(slash - text)) == 0 &&
           text_starts_with(id_slash + 1, slash + 1);
}

static void note_match(struct naming *naming, const struct machine_id *id)
{
    bool exact = text_equal(id->text, naming->text);
    bool has_slash = strchr(naming->text, '/') != NULL;

    if (naming->inspect->kind >= 0 && id->kind != naming->inspect->kind)
        return;
    if (!exact && (naming->exact || !is_named(id->text, naming->text)))
        return;
    /* A bare prefix of an alloc's id means the alloc, not its tasks. */
    bool is_part = strchr(id->text, '/') != NULL && id->kind != MACHINE_PLUGIN;
    if (!exact && !has_slash && naming->inspect->kind < 0 && is_part)
        return;
    if (machine_id_equal(id, &naming->found))
        return;
    if (exact && !naming->exact) {
        naming->exact = true;
        naming->matches = 0;
    }
    naming->other = naming->found;
    naming->found = *id;
    naming->matches++;
}

static bool match_record(void *ctx, const struct machine_id *id, const struct machine *record)
{
    (void)record;
    note_match(ctx, id);
    return true;
}

static bool match_event(void *ctx, const struct journal_event *event)
{
    struct naming *naming = ctx;

    note_match(naming, &event->id);
    return naming->matches < 2;
}

int inspect_find(struct inspect *inspect, const char *text, struct machine_id *ret_id,
                 struct err *err)
{
    struct naming naming = {.inspect = inspect, .text = text};
    char one[ID_TEXT_SIZE], two[ID_TEXT_SIZE];
    int code = 0;

    for (int kind = MACHINE_KIND_COUNT - 1; kind >= 0 && code == 0; kind--)
        code = journal_each_record(inspect->journal, (enum machine_kind)kind, match_record,
                                   ignore_bad, &naming, err);
    if (code == 0 && naming.matches == 0) /* gone, but its history may still be there */
        code = journal_each_event(inspect->journal, inspect->first.sequence, match_event,
                                  ignore_bad, &naming, err);
    if (code < 0)
        return code;
    if (naming.matches == 0)
        return err_set(err, ERR_GONE, "no machine \"%s\" in this journal; see: cairn journal list",
                       text);
    if (naming.matches > 1) {
        (void)text_copy(one, sizeof(one), naming.other.text); /* same size */
        (void)text_copy(two, sizeof(two), naming.found.text);
        return err_set(err, ERR_INVALID, "\"%s\" is the begin of %s %s and of %s %s%s", text,
                       machine_kind_name((enum machine_kind)naming.other.kind), one,
                       machine_kind_name((enum machine_kind)naming.found.kind), two,
                       naming.matches > 2 ? " and others" : "");
    }
    *ret_id = naming.found;
    return 0;
}
