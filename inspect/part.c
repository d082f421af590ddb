/* What the verbs of the inspector share: finding, opening, filters, names. */
#include "inspect/part.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

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

void inspect_ignore(void *ctx, const char *table, const char *key, const void *bytes, size_t length,
                    const char *reason)
{
    (void)ctx; /* the verb's own walk reports it */
    (void)table;
    (void)key;
    (void)bytes;
    (void)length;
    (void)reason;
}

bool inspect_flag(const struct inspect *inspect, enum inspect_flag flag)
{
    return inspect->flags[flag] != NULL;
}

/* --- opening --- */

int inspect_open(struct inspect *inspect, enum journal_mode mode, struct err *err)
{
    const char *path = inspect->flags[FLAG_DIR];

    if (path == NULL)
        path = getenv("CAIRN_DATA_DIR");
    if (path == NULL || path[0] == '\0')
        path = "/var/lib/cairn";
    int code = journal_locate(path, inspect->path, err);
    if (code == 0)
        code = journal_open(inspect->path, mode, &inspect->journal, err);
    return code;
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
    core_describe(event, to, size);
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
                                   inspect_ignore, &naming, err);
    if (code == 0 && naming.matches == 0) /* gone, but its history may still be there */
        code = journal_each_event(inspect->journal, inspect->first.sequence, match_event,
                                  inspect_ignore, &naming, err);
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
