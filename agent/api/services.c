/*
 * Nomad's own services over HTTP: who offers what on this node, and what checks have found.
 *
 * Follows nomad v2.0.5 command/agent/service_registration_endpoint.go, alloc_endpoint.go
 * (allocChecks, allocServiceRegistrations) and nomad/structs/checks.go.  A registration cannot be
 * deleted: it is there because what offers it runs.
 */
#include "agent/api/format/format.h"
#include "agent/api/part.h"

#include "agent/services/catalogue.h"
#include "spec/registration.h"

#include <stdlib.h>
#include <string.h>

/* --- names --- */

/* A list of them is made in the order of the catalogue: names and tags are found at its end. */
struct names {
    struct api_request *request;
    json_t *namespaces;
};

/* The item of LIST whose FIELD is VALUE, made if there is none. */
static json_t *item_of(json_t *list, const char *field, const char *value, const char *rest)
{
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        if (text_equal(json_string_value(json_object_get(item, field)), value))
            return item;
    }
    item = json_pack("{s:s, s:[]}", field, value, rest);
    check(item != NULL);
    check(json_array_append_new(list, item) == 0);
    return item;
}

static bool has_text(const json_t *list, const char *text)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        if (text_equal(json_string_value(item), text))
            return true;
    }
    return false;
}

/* Names come one behind the other, so that the last is the one, if any is. */
static json_t *service_of(json_t *services, const char *name)
{
    size_t count = json_array_size(services);
    json_t *last = count == 0 ? NULL : json_array_get(services, count - 1);

    if (last == NULL ||
        !text_equal(json_string_value(json_object_get(last, "ServiceName")), name)) {
        last = json_pack("{s:s, s:[]}", "ServiceName", name, "Tags");
        check(last != NULL);
        check(json_array_append_new(services, last) == 0);
    }
    return last;
}

static void list_name(void *ctx, const struct catalogue_entry *entry)
{
    struct names *names = ctx;

    if (!api_namespace_matches(names->request, entry->alloc->namespace) ||
        !text_starts_with(entry->service->name, names->request->prefix))
        return;
    json_t *namespace =
        item_of(names->namespaces, "Namespace", entry->alloc->namespace, "Services");
    json_t *service = service_of(json_object_get(namespace, "Services"), entry->service->name);
    json_t *tags = json_object_get(service, "Tags");
    for (size_t i = 0; i < entry->service->tags.count; i++) {
        if (!has_text(tags, entry->service->tags.items[i]))
            check(json_array_append_new(tags, json_string(entry->service->tags.items[i])) == 0);
    }
}

void api_services_list(struct api_request *request)
{
    struct names names = {request, json_array()};

    check(names.namespaces != NULL);
    catalogue_each(request->api->parts->catalogue, NULL, list_name, &names);
    api_reply(request, names.namespaces);
}

/* --- registrations --- */

struct registrations {
    struct api_request *request;
    const char *name, *alloc; /* NULL: any */
    json_t *list;
};

static void list_registration(void *ctx, const struct catalogue_entry *entry)
{
    struct registrations *to = ctx;

    if (!api_namespace_matches(to->request, entry->alloc->namespace) ||
        (to->name != NULL && !text_equal(to->name, entry->service->name)) ||
        (to->alloc != NULL && !text_equal(to->alloc, entry->alloc->id)))
        return;
    check(json_array_append_new(
              to->list, catalogue_registration(to->request->api->parts->catalogue, entry)) == 0);
}

static json_t *list_registrations(struct api_request *request, const char *name, const char *alloc)
{
    struct registrations to = {request, name, alloc, json_array()};

    check(to.list != NULL);
    catalogue_each(request->api->parts->catalogue, NULL, list_registration, &to);
    return to.list;
}

struct ranked {
    json_t *registration; /* borrowed */
    uint8_t rank[REGISTRATION_RANK_SIZE];
};

static int by_rank(const void *a, const void *b)
{
    return memcmp(((const struct ranked *)a)->rank, ((const struct ranked *)b)->rank,
                  REGISTRATION_RANK_SIZE);
}

/* The first COUNT of ALL (moved) as KEY ranks them. */
static json_t *choose(json_t *all, size_t count, const char *key)
{
    size_t have = json_array_size(all);
    struct ranked *ranked = calloc(have + 1, sizeof(*ranked));
    json_t *chosen = json_array();

    check(ranked != NULL && chosen != NULL);
    for (size_t i = 0; i < have; i++) {
        ranked[i].registration = json_array_get(all, i);
        registration_rank(ranked[i].registration, key, ranked[i].rank);
    }
    qsort(ranked, have, sizeof(*ranked), by_rank);
    for (size_t i = 0; i < have && i < count; i++)
        check(json_array_append(chosen, ranked[i].registration) == 0);
    free(ranked);
    json_decref(all);
    return chosen;
}

void api_service_get(struct api_request *request)
{
    const char *choice = api_query_text(request, "choose"), *key = NULL;
    uint64_t count = 0;

    if (choice != NULL) {
        size_t digits = strspn(choice, "0123456789");
        key = digits > 0 && digits < 10 && choice[digits] == '|' ? choice + digits + 1 : "";
        count = strtoull(choice, NULL, 10);
    }
    if (request->argument[0] == '\0') {
        api_refuse(request, 400, "missing service name");
    } else if (key != NULL && *key == '\0') {
        api_refuse(request, 400,
                   "failed to choose services: choose parameter must be in form '<n>|<key>'");
    } else {
        json_t *all = list_registrations(request, request->argument, NULL);
        api_reply(request, key == NULL ? all : choose(all, count, key));
    }
}

void api_service_delete(struct api_request *request)
{
    api_refuse(request, 400,
               "a service is registered as long as what offers it runs: stop its alloc instead");
}

void api_alloc_services(struct api_request *request)
{
    struct machine_id id;

    if (api_alloc_of(request, request->argument, &id) != NULL)
        api_reply(request, list_registrations(request, NULL, id.text));
}

/* --- checks --- */

static json_t *check_result(const struct hooks_service *service, const struct hooks_check *check_of,
                            const char *alloc_name)
{
    static const char *const statuses[] = {
        [CHECK_PENDING] = "pending", [CHECK_SUCCESS] = "success", [CHECK_FAILURE] = "failure"};
    json_t *to = json_pack("{s:s, s:s, s:s, s:o, s:I, s:s, s:s, s:s}", "ID", check_of->id, "Mode",
                           check_of->spec->ready_only ? "readiness" : "healthiness", "Status",
                           statuses[check_of->status], "Output", api_text(check_of->output),
                           "Timestamp", (json_int_t)(check_of->unix_ns / 1000000000), "Group",
                           alloc_name, "Service", service->name, "Check", check_of->name);

    check(to != NULL);
    if (check_of->code != 0)
        api_set(to, "StatusCode", json_integer(check_of->code));
    if (service->spec->task[0] != '\0')
        api_set(to, "Task", json_string(service->spec->task));
    return to;
}

void api_alloc_checks(struct api_request *request)
{
    struct parts *parts = request->api->parts;
    struct machine_id id;
    struct err err;

    if (api_alloc_of(request, request->argument, &id) == NULL)
        return;
    const struct hooks_services *services = catalogue_of_alloc(parts->catalogue, id.text);
    const struct alloc_spec *spec = specs_find(parts->specs, id.text, &err);
    json_t *to = json_object();
    for (size_t i = 0; services != NULL && spec != NULL && i < services->count; i++) {
        const struct hooks_service *service = &services->items[i];
        bool of_nomad = service->spec->provider == PROVIDER_NOMAD; /* as Nomad shows no other */
        for (size_t j = 0; of_nomad && j < service->checks_count; j++)
            api_set(to, service->checks[j].id,
                    check_result(service, &service->checks[j], spec->name));
    }
    api_reply(request, to);
}
