/*
 * What a job asks for and does not get: rows of schema.c that are kept and not acted on, where a
 * job says something else than their defaults.
 *
 * The form is Nomad's (v1.1.2 helper MergeMultierrorWarnings), so that its tool prints it as its
 * own.
 */
#include "spec/job/part.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { WARNINGS_MAX = 20, WARNING_SIZE = 640 };

/* A block within others; the job itself is none. */
struct place {
    const struct place *outer; /* NULL: it is the job's */
    const char *block, *name;  /* NULL: it has no name */
};

struct warnings {
    const struct place *place; /* NULL: the job */
    const json_t *job;         /* whose blocks its groups inherit */
    const char *provider;      /* of the service that is looked at */
    size_t count;              /* found; more than WARNINGS_MAX are only counted */
    char text[WARNINGS_MAX * WARNING_SIZE];
};

/* `group "a", task "b"`; what is too long is cut. */
static void say_place(const struct place *place, char *to, size_t size)
{
    char name[96] = "";

    if (place == NULL)
        return;
    say_place(place->outer, to, size);
    if (place->name != NULL)
        (void)text_format(name, sizeof(name), " \"%.90s\"", place->name);
    (void)text_append(to, size, place->outer == NULL ? "" : ", ");
    (void)text_append(to, size, place->block);
    (void)text_append(to, size, name);
}

static void warn(struct warnings *warnings, const struct jobspec_field *field, const char *parts,
                 const char *format)
{
    const char *name = field->hcl != NULL ? field->hcl : field->json;
    char where[256] = "", said[WARNING_SIZE / 2], line[WARNING_SIZE];

    if (warnings->count++ >= WARNINGS_MAX)
        return;
    say_place(warnings->place, where, sizeof(where));
    (void)text_format(said, sizeof(said), "%s%s", name, parts); /* cut if long */
    (void)text_format(line, sizeof(line), "%s* %s%s%s %s: %s", warnings->count > 1 ? "\n" : "",
                      where, where[0] == '\0' ? "" : ": ", said, format, field->advice);
    check(text_append(warnings->text, sizeof(warnings->text), line));
}

/* PART of an update block is acted on in jobs of TYPE as its row says: system jobs have no
 * canaries. */
static bool is_rolled(const char *type, const struct jobspec_field *part)
{
    bool tries = text_equal(part->json, "Canary") || text_equal(part->json, "AutoPromote");

    return text_equal(type, "service") || (text_equal(type, "system") && !tries);
}

/* What of VALUE is not acted on in JOB, and that neither the block's default nor the job's block
 * for its groups does, as " (canary, stagger)"; "" if there is nothing. */
static void say_parts(const json_t *job, const struct jobspec_field *field, const json_t *value,
                      const json_t *inherited, char *to, size_t size)
{
    const char *type = json_string_value(json_object_get(job, "Type"));
    json_t *defaults = NULL; /* made when it is asked for */

    (void)text_copy(to, size, "");
    for (size_t i = 0; i < field->block->count; i++) {
        const struct jobspec_field *part = &field->block->fields[i];
        const json_t *said = json_object_get(value, part->json);

        if (said == NULL || (is_rolled(type, part) && part->fate != FATE_KEPT) ||
            json_equal(said, json_object_get(inherited, part->json)))
            continue;
        if (defaults == NULL)
            defaults = jobspec_default_block(field->block);
        if (json_equal(said, json_object_get(defaults, part->json)))
            continue;
        (void)text_append(to, size, to[0] == '\0' ? " (" : ", ");
        (void)text_append(to, size, part->hcl); /* all of them fit */
    }
    if (to[0] != '\0')
        (void)text_append(to, size, ")");
    json_decref(defaults);
}

#define FOR_CONSUL "it is for services of Consul"

/* Acted on, but for blocks whose type is this one, and in services those of this provider. */
static const struct {
    const struct jobspec_schema *schema;
    const char *field, *type, *advice;
} idle[] = {
    {&jobspec_volume, "Sticky", "csi",
     "a volume of a storage plugin is found by its id, wherever its allocs are"},
    {&jobspec_service, "Meta", "nomad", FOR_CONSUL},
    {&jobspec_service, "CanaryMeta", "nomad", FOR_CONSUL},
    {&jobspec_service, "EnableTagOverride", "nomad", FOR_CONSUL},
    {&jobspec_service, "Weights", "nomad", FOR_CONSUL},
    {&jobspec_service_check, "Command", "nomad", FOR_CONSUL},
    {&jobspec_service_check, "Args", "nomad", FOR_CONSUL},
    {&jobspec_service_check, "GRPCService", "nomad", FOR_CONSUL},
    {&jobspec_service_check, "GRPCUseTLS", "nomad", FOR_CONSUL},
    {&jobspec_service_check, "InitialStatus", "nomad", FOR_CONSUL},
    {&jobspec_service_check, "Notes", "nomad", FOR_CONSUL},
};

static void warn_idle(struct warnings *warnings, const struct jobspec_schema *schema,
                      const struct jobspec_field *field, const json_t *block)
{
    bool of_service = schema == &jobspec_service || schema == &jobspec_service_check;
    const char *type =
        of_service ? warnings->provider : json_string_value(json_object_get(block, "Type"));

    for (size_t i = 0; i < COUNT_OF(idle); i++) {
        struct jobspec_field told = *field;

        if (idle[i].schema != schema || !text_equal(idle[i].field, field->json) || type == NULL ||
            !text_equal(idle[i].type, type) ||
            jobspec_is_empty(json_object_get(block, field->json)))
            continue;
        told.advice = idle[i].advice;
        warn(warnings, &told, "", "is kept and not acted on");
    }
}

/* True if a service says so that says nothing of it. */
static bool is_default(const struct jobspec_field *field, const json_t *value)
{
    return text_equal(field->json, "Cluster") && json_is_string(value) &&
           text_equal(json_string_value(value), "default");
}

static void warn_kept(struct warnings *warnings, const struct jobspec_field *field,
                      const json_t *value, const json_t *inherited)
{
    static const char kept[] = "is kept and not acted on";
    char parts[WARNING_SIZE / 4] = "";

    if (jobspec_is_empty(value) || is_default(field, value))
        return;
    if (field->kind == KIND_BLOCK) {
        say_parts(warnings->job, field, value, inherited, parts, sizeof(parts));
        if (parts[0] == '\0')
            return;
    }
    warn(warnings, field, parts, kept);
}

static void look(struct warnings *warnings, const struct jobspec_schema *schema,
                 const json_t *value);

static void look_into(struct warnings *warnings, const struct jobspec_schema *schema,
                      const json_t *value)
{
    bool has_name = schema == &jobspec_service || schema == &jobspec_service_check;
    const char *label = has_name ? "Name" : schema->label;
    const struct place place = {
        .outer = warnings->place,
        .block = schema->name,
        .name = label == NULL ? NULL : json_string_value(json_object_get(value, label)),
    };

    if (schema == &jobspec_service)
        warnings->provider = json_string_value(json_object_get(value, "Provider"));
    warnings->place = &place;
    look(warnings, schema, value);
    warnings->place = place.outer;
}

/* The recursion follows the tables. */
static void look(struct warnings *warnings, const struct jobspec_schema *schema,
                 const json_t *value)
{
    const char *name;
    size_t at;
    json_t *item;

    for (size_t i = 0; i < schema->count; i++) {
        const struct jobspec_field *field = &schema->fields[i];
        const json_t *said = field->json == NULL ? NULL : json_object_get(value, field->json);

        if (said == NULL)
            continue;
        if (field->fate == FATE_KEPT) {
            warn_kept(warnings, field, said,
                      schema == &jobspec_group_schema ? json_object_get(warnings->job, field->json)
                                                      : NULL);
        } else if (field->fate != FATE_SERVER && field->fate != FATE_REFUSED) {
            warn_idle(warnings, schema, field, value);
            if (field->advice != NULL && !jobspec_is_empty(said))
                warn(warnings, field, "", "is not acted on in full");
            if (field->kind == KIND_BLOCK)
                look_into(warnings, field->block, said);
            json_array_foreach(field->kind == KIND_BLOCKS ? said : NULL, at, item)
                look_into(warnings, field->block, item);
            json_object_foreach(field->kind == KIND_NAMED ? (json_t *)(uintptr_t)said : NULL, name,
                                item) look_into(warnings, field->block, item);
        }
    }
}

char *jobspec_warnings(const json_t *job)
{
    struct warnings *warnings = malloc(sizeof(*warnings));
    char *text, head[64] = "", rest[64] = "";

    check(warnings != NULL);
    warnings->place = NULL;
    warnings->job = job;
    warnings->provider = NULL;
    warnings->count = 0;
    warnings->text[0] = '\0';
    look(warnings, &jobspec_job, job);
    if (warnings->count > 0)
        (void)text_format(head, sizeof(head), "%zu warning(s):\n\n", warnings->count);
    if (warnings->count > WARNINGS_MAX)
        (void)text_format(rest, sizeof(rest), "\n* and %zu more", warnings->count - WARNINGS_MAX);
    size_t size = strlen(head) + strlen(warnings->text) + strlen(rest) + 1;
    text = malloc(size);
    check(text != NULL);
    (void)text_format(text, size, "%s%s%s", head, warnings->text, rest); /* it fits */
    free(warnings);
    return text;
}
