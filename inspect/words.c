/* Times, ages, ids, records and events in words, each in a line or less; and what may be secret in
 * a specification. */
#include "inspect/part.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

void inspect_print_time(int64_t unix_ns, char to[TIME_TEXT_SIZE])
{
    time_t seconds = (time_t)(unix_ns / 1000000000);
    int64_t rest = unix_ns % 1000000000;
    struct tm parts;
    char day[24];

    if (rest < 0) {
        rest += 1000000000;
        seconds--;
    }
    if (gmtime_r(&seconds, &parts) == NULL ||
        strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &parts) == 0)
        (void)text_copy(day, sizeof(day), "?");
    (void)text_format(to, TIME_TEXT_SIZE, "%s.%03dZ", day, (int)(rest / 1000000)); /* fits */
}

void inspect_print_age(int64_t ns, char to[AGE_TEXT_SIZE])
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

void inspect_print_id(const struct machine_id *id, char to[ID_TEXT_SIZE])
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
    if (task->ran && !task->exit_seen && task->process.payload_pid > 0) {
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

void inspect_print_summary(const struct machine *record, char *to, size_t size)
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

void inspect_print_event(const struct journal_event *event, char *to, size_t size)
{
    core_describe(event, to, size);
    text_clean(to);
}

/* A source of an artifact, whose user and query are hidden. */
static json_t *hidden_source(const char *source)
{
    struct url_shown shown = url_shown(source);
    char rest[2] = {shown.rest, '\0'};

    return json_sprintf("%.*s%s%.*s%s%s", shown.scheme_length, shown.scheme,
                        shown.user ? "***@" : "", shown.place_length, shown.place, rest,
                        shown.rest != '\0' ? "***" : "");
}

static void hide_all(json_t *values)
{
    const char *name;
    json_t *item;
    size_t i;

    json_array_foreach(values, i, item)(void) json_string_set(item, "***"); /* valid UTF-8 */
    json_object_foreach(values, name, item)(void) json_string_set(item, "***");
}

void inspect_redact(json_t *value)
{
    static const char *const texts = "EmbeddedTmpl, Payload, secret";
    static const char *const lists =
        "Env, GetterHeaders, GetterOptions, MountFlags, SignedIdentities";
    const char *name;
    json_t *item;
    size_t i;
    void *next;

    json_array_foreach(value, i, item) inspect_redact(item);
    json_object_foreach_safe(value, next, name, item)
    {
        if (json_is_string(item) && text_lists(texts, name)) {
            (void)json_string_set(item, "***");
        } else if (json_is_string(item) && text_equal(name, "GetterSource")) {
            json_t *source = hidden_source(json_string_value(item));
            check(source != NULL && json_object_set_new(value, name, source) == 0);
        } else if (text_lists(lists, name)) {
            hide_all(item);
        } else if (!text_equal(name, "ParameterizedJob")) { /* its payload is "optional" */
            inspect_redact(item);
        }
    }
}
