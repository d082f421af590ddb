/*
 * What is registered of Nomad's own services, as templates see it.
 *
 * Follows consul-template v0.41 dependency/nomad_service.go and nomad_services.go, and of the
 * choice nomad v2.0.5 nomad/service_registration_endpoint.go (choose: rendezvous hashing, among all
 * of the name, before tags are looked at).  A service that nobody offers is an empty list.
 */
#include "spec/json.h"
#include "spec/registration.h"
#include "spec/template/functions/part.h"

#include <stdlib.h>
#include <string.h>

/* What is asked for: [TAG.]NAME[@REGION]. */
struct query {
    const char *tag, *name, *region;
    size_t tag_length, name_length; /* 0: none */
};

/* False: TEXT asks for nothing. */
static bool read_query(const char *text, struct query *query)
{
    const char *at = strchr(text, '@'), *point = NULL;
    size_t length = at == NULL ? strlen(text) : (size_t)(at - text);

    for (size_t i = 0; i < length; i++)
        point = text[i] == '.' ? text + i : point;
    *query = (struct query){.tag = text, .name = point == NULL ? text : point + 1};
    query->region = at == NULL ? "" : at + 1;
    query->tag_length = point == NULL ? 0 : (size_t)(point - text);
    query->name_length = length - (size_t)(query->name - text);
    return text_is_of(query->name, query->name_length, WORD "-") &&
           (point == NULL || text_is_of(query->tag, query->tag_length, WORD "=:.-")) &&
           (at == NULL || text_is_of(query->region, strlen(query->region), WORD ".-"));
}

static int by_text(const void *a, const void *b)
{
    const char *left = json_string_value(*(json_t *const *)a);
    const char *right = json_string_value(*(json_t *const *)b);

    return strcmp(left == NULL ? "" : left, right == NULL ? "" : right);
}

/* A new list of TAGS in their order, each once if ONCE says so. */
static json_t *sorted_tags(const json_t *tags, bool once)
{
    json_t *sorted = json_array(), *tag;
    json_t **items = calloc(json_array_size(tags) + 1, sizeof(*items));
    size_t count = 0, i;

    check(items != NULL);
    json_array_foreach(tags, i, tag)
    {
        if (json_is_string(tag))
            items[count++] = tag;
    }
    qsort(items, count, sizeof(*items), by_text); /* who are equal are the same */
    for (i = 0; i < count; i++) {
        if (!once || i == 0 || !json_equal(items[i], items[i - 1]))
            check(json_array_append(sorted, items[i]) == 0);
    }
    free(items);
    return sorted;
}

/* --- nomadServices --- */

/* The names that there are, with the tags of all that have one. */
static json_t *run_services(const struct call *call)
{
    const char *region = call->count == 0 ? "" : call_text(call, 0);
    bool fits = *region == '\0' ||
                (*region == '@' && text_is_of(region + 1, strlen(region + 1), WORD ".-"));
    json_t *by_name = json_object(), *made = json_array(), *service;
    size_t count = 0, i;

    if (!fits)
        (void)template_fail(call->evaluating, ERR_INVALID, "%s: invalid format: \"%.60s\"",
                            call->name, region);
    const json_t *list = fits && call_check_region(call, region + (*region == '@'))
                             ? call_ask(call, QUESTION_SERVICES, "", "", false)
                             : NULL;
    json_array_foreach(list, i, service)
    {
        json_t *tags = json_object_get(service, "Tags");

        check(json_object_set(by_name, text_of(service, "ServiceName"),
                              tags == NULL ? json_null() : tags) == 0); /* it may have none */
    }
    const char **names = value_keys(by_name, &count);
    for (i = 0; i < count && call_charge(call, 256); i++)
        check(json_array_append_new(
                  made, json_pack("{s:s, s:o}", "Name", names[i], "Tags",
                                  sorted_tags(json_object_get(by_name, names[i]), true))) == 0);
    free(names);
    json_decref(by_name);
    return call_give_made(call, made);
}

/* --- nomadService --- */

struct candidate {
    const json_t *service;
    uint8_t rank[REGISTRATION_RANK_SIZE]; /* its place among those that may be chosen */
};

static int by_rank(const void *a, const void *b)
{
    const struct candidate *left = a, *right = b;

    return memcmp(left->rank, right->rank, sizeof(left->rank));
}

static int by_id(const void *a, const void *b)
{
    const struct candidate *left = a, *right = b;

    return strcmp(text_of(left->service, "ID"), text_of(right->service, "ID"));
}

static bool has_tag(const json_t *service, const struct query *query)
{
    const json_t *tag;
    size_t i;

    json_array_foreach(json_object_get(service, "Tags"), i, tag)
    {
        const char *text = json_string_value(tag);

        if (text != NULL && strlen(text) == query->tag_length &&
            memcmp(text, query->tag, query->tag_length) == 0)
            return true;
    }
    return query->tag_length == 0;
}

static json_t *shown(const json_t *service)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:s, s:o, s:s, s:s}", "ID", text_of(service, "ID"),
                     "Name", text_of(service, "ServiceName"), "Node", text_of(service, "NodeID"),
                     "Address", text_of(service, "Address"), "Port",
                     json_integer_value(json_object_get(service, "Port")), "Datacenter",
                     text_of(service, "Datacenter"), "Tags",
                     sorted_tags(json_object_get(service, "Tags"), false), "JobID",
                     text_of(service, "JobID"), "AllocID", text_of(service, "AllocID"));
}

/* As many of LIST, all of the name, as are wanted: with a key those that are chosen by it. */
static json_t *choose(const struct call *call, const struct query *query, const json_t *list,
                      size_t wanted, const char *key)
{
    struct candidate *candidates = calloc(json_array_size(list) + 1, sizeof(*candidates));
    json_t *made = json_array(), *service;
    size_t count = 0, i;

    check(candidates != NULL);
    json_array_foreach(list, i, service) candidates[count++].service = service;
    for (i = 0; key != NULL && i < count && call_charge(call, 1024); i++)
        registration_rank(candidates[i].service, key, candidates[i].rank);
    qsort(candidates, count, sizeof(*candidates), key != NULL ? by_rank : by_id);
    for (i = 0; i < count && i < wanted && call_charge(call, 1024); i++) {
        if (has_tag(candidates[i].service, query))
            check(json_array_append_new(made, shown(candidates[i].service)) == 0);
    }
    free(candidates);
    return call_give_made(call, made);
}

/* nomadService QUERY, or COUNT KEY QUERY. */
static json_t *run_service(const struct call *call)
{
    bool chooses = call->count == 3;
    const char *text, *key = chooses ? call_text(call, 1) : NULL;
    json_int_t wanted = INT32_MAX;
    struct query query;
    char name[QUESTION_NAME_SIZE];

    if (call->count == 2)
        return call_refuse(call, "expected arguments <service> or <count> <key> <service>");
    if (chooses && !json_is_integer(call->arguments[0]))
        return call_refuse(call, "expected integer for <count> argument");
    if (chooses)
        wanted = json_integer_value(call->arguments[0]);
    if (wanted < 0 || (key != NULL && *key == '\0'))
        return call_refuse(call, "choose parameter must be in form '<n>|<key>'");
    text = call_text(call, call->count - 1);
    if (call->evaluating->code != 0)
        return NULL;
    if (!read_query(text, &query) ||
        !text_format(name, sizeof(name), "%.*s", (int)query.name_length, query.name))
        return template_fail(call->evaluating, ERR_INVALID, "%s: invalid format: \"%.60s\"",
                             call->name, text);
    const json_t *list = call_check_region(call, query.region)
                             ? call_ask(call, QUESTION_SERVICE, "", name, false)
                             : NULL;
    return choose(call, &query, list, (size_t)wanted, key);
}

const struct function template_services_functions[] = {
    {"nomadService", 1, 3, run_service},
    {"nomadServices", 0, 1, run_services},
    {NULL, 0, 0, NULL},
};
