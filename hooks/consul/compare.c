/*
 * Whether the agent has what is wanted: nomad v2.0.5 command/agent/consul/service_client.go
 * `different`, and beyond it whether the checks are those that are wanted.
 */
#include "hooks/consul/part.h"

#include <string.h>

static const char *text_in(const json_t *object, const char *field)
{
    const char *text = json_string_value(json_object_get(object, field));

    return text == NULL ? "" : text;
}

static bool same_text(const json_t *a, const char *field_a, const json_t *b, const char *field_b)
{
    return text_equal(text_in(a, field_a), text_in(b, field_b));
}

static bool has_item(const json_t *list, const json_t *wanted)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        if (json_equal(item, wanted))
            return true;
    }
    return false;
}

/* As sets: their order says nothing. */
static bool same_tags(const json_t *a, const json_t *b)
{
    const json_t *item;
    size_t i;

    json_array_foreach(a, i, item)
    {
        if (!has_item(b, item))
            return false;
    }
    json_array_foreach(b, i, item)
    {
        if (!has_item(a, item))
            return false;
    }
    return true;
}

/* One that is missing is an empty one. */
static bool same_map(const json_t *a, const json_t *b)
{
    size_t count_a = json_object_size(a), count_b = json_object_size(b);

    return count_a == count_b && (count_a == 0 || json_equal(a, b));
}

static json_int_t weight_of(const json_t *service, const char *which)
{
    const json_t *weight = json_object_get(json_object_get(service, "Weights"), which);

    return json_is_integer(weight) ? json_integer_value(weight) : 1; /* as Consul fills it in */
}

static bool same_checks(const json_t *wanted, const json_t *checks)
{
    const json_t *list = json_object_get(wanted, "Checks"), *check_of;
    const char *service = text_in(wanted, "ID"), *id;
    size_t found = 0, i;

    json_array_foreach(list, i, check_of)
    {
        const json_t *one = json_object_get(checks, text_in(check_of, "CheckID"));

        if (!text_equal(text_in(one, "ServiceID"), service))
            return false;
    }
    json_object_foreach((json_t *)(uintptr_t)checks, id, check_of)
    {
        if (text_starts_with(id, CONSUL_CHECK_PREFIX) &&
            text_equal(text_in(check_of, "ServiceID"), service))
            found++;
    }
    return found == json_array_size(list);
}

static bool overrides(const json_t *service)
{
    return json_is_true(json_object_get(service, "EnableTagOverride"));
}

/* --- the mesh --- */

/* Consul gives numbers back as it likes to write them. */
static bool same_value(const json_t *a, const json_t *b)
{
    const char *key;
    json_t *item;
    size_t i;

    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    if (json_is_object(a) && json_is_object(b)) {
        json_object_foreach((json_t *)(uintptr_t)a, key, item)
        {
            if (!same_value(item, json_object_get(b, key)))
                return false;
        }
        return json_object_size(a) == json_object_size(b);
    }
    if (json_is_array(a) && json_is_array(b)) {
        json_array_foreach(a, i, item)
        {
            if (!same_value(item, json_array_get(b, i)))
                return false;
        }
        return json_array_size(a) == json_array_size(b);
    }
    return json_equal((json_t *)(uintptr_t)a, (json_t *)(uintptr_t)b);
}

static bool same_number(const json_t *a, const json_t *b, const char *field)
{
    return json_integer_value(json_object_get(a, field)) ==
           json_integer_value(json_object_get(b, field));
}

static bool same_upstream(const json_t *wanted, const json_t *there)
{
    static const char *const fields[] = {"DestinationName",     "DestinationPeer",
                                         "Datacenter",          "LocalBindAddress",
                                         "LocalBindSocketPath", "LocalBindSocketMode"};
    const json_t *config = json_object_get(wanted, "Config");
    const json_t *found = json_object_get(there, "Config");
    const char *type = text_in(wanted, "DestinationType");
    bool same = same_text(json_object_get(wanted, "MeshGateway"), "Mode",
                          json_object_get(there, "MeshGateway"), "Mode");

    for (size_t i = 0; i < COUNT_OF(fields); i++)
        same &= same_text(wanted, fields[i], there, fields[i]);
    return same && same_number(wanted, there, "LocalBindPort") &&
           text_equal(*type == '\0' ? "service" : type, text_in(there, "DestinationType")) &&
           json_object_size(config) == json_object_size(found) &&
           (json_object_size(config) == 0 || same_value(config, found));
}

static bool same_exposed(const json_t *wanted, const json_t *there)
{
    return same_text(wanted, "Path", there, "Path") && same_number(wanted, there, "ListenerPort") &&
           same_number(wanted, there, "LocalPathPort");
}

/* In their order. */
static bool same_list(const json_t *wanted, const json_t *there,
                      bool (*same)(const json_t *wanted, const json_t *there))
{
    const json_t *item;
    size_t i;

    json_array_foreach(wanted, i, item)
    {
        if (!same(item, json_array_get(there, i)))
            return false;
    }
    return json_array_size(wanted) == json_array_size(there);
}

/* What a sidecar is not told it has from its service, or from Consul; its config is made of what
 * does not change (nomad sidecarIsDifferent). */
static bool same_sidecar(const json_t *wanted, const json_t *of_service, const json_t *there,
                         bool tags_count)
{
    const json_t *proxy = json_object_get(wanted, "Proxy"),
                 *found = json_object_get(there, "Proxy");
    const json_t *own = json_object_get(wanted, "Tags");
    const json_t *tags = json_array_size(own) > 0 ? own : json_object_get(of_service, "Tags");

    return there != NULL && same_text(wanted, "Address", there, "Address") &&
           same_number(wanted, there, "Port") &&
           implies(tags_count, same_tags(tags, json_object_get(there, "Tags"))) &&
           same_list(json_object_get(proxy, "Upstreams"), json_object_get(found, "Upstreams"),
                     same_upstream) &&
           same_list(json_object_get(json_object_get(proxy, "Expose"), "Paths"),
                     json_object_get(json_object_get(found, "Expose"), "Paths"), same_exposed);
}

static bool same_connect(const json_t *wanted, const json_t *there, const json_t *services,
                         bool tags_count)
{
    const json_t *connect = json_object_get(wanted, "Connect");
    const json_t *sidecar = json_object_get(connect, "SidecarService");
    char id[CONSUL_ID_SIZE];

    if (json_is_true(json_object_get(connect, "Native")) !=
        json_is_true(json_object_get(json_object_get(there, "Connect"), "Native")))
        return false;
    return sidecar == NULL ||
           (text_format(id, sizeof(id), "%s" CONSUL_SIDECAR, text_in(wanted, "ID")) &&
            same_sidecar(sidecar, wanted, json_object_get(services, id), tags_count));
}

bool consul_is_same(const json_t *wanted, const json_t *services, const json_t *checks, bool tags)
{
    const json_t *there = json_object_get(services, text_in(wanted, "ID"));
    bool tags_count = tags || !overrides(wanted) || !overrides(there);

    return same_text(wanted, "Name", there, "Service") &&
           same_text(wanted, "Address", there, "Address") &&
           json_integer_value(json_object_get(wanted, "Port")) ==
               json_integer_value(json_object_get(there, "Port")) &&
           overrides(wanted) == overrides(there) &&
           same_map(json_object_get(wanted, "Meta"), json_object_get(there, "Meta")) &&
           weight_of(wanted, "Passing") == weight_of(there, "Passing") &&
           weight_of(wanted, "Warning") == weight_of(there, "Warning") &&
           implies(tags_count,
                   same_tags(json_object_get(wanted, "Tags"), json_object_get(there, "Tags"))) &&
           same_checks(wanted, checks) && same_connect(wanted, there, services, tags_count);
}

json_t *consul_merge(const json_t *wanted, const json_t *there, bool tags)
{
    json_t *merged = json_copy((json_t *)(uintptr_t)wanted);
    json_t *theirs = json_object_get(there, "Tags");

    check(merged != NULL);
    if (!tags && overrides(wanted) && overrides(there) && json_is_array(theirs))
        check(json_object_set(merged, "Tags", theirs) == 0);
    return merged;
}

bool consul_is_ours(const json_t *there, const char *node_id)
{
    return text_equal(text_in(json_object_get(there, "Meta"), CONSUL_MARK), node_id);
}

bool consul_alloc_of(const char *id, char ret_alloc[UUID_TEXT_SIZE])
{
    char alloc[UUID_TEXT_SIZE];

    if (!text_starts_with(id, CONSUL_SERVICE_PREFIX))
        return false;
    id += strlen(CONSUL_SERVICE_PREFIX);
    if (strlen(id) < UUID_TEXT_SIZE || id[UUID_TEXT_SIZE - 1] != '-')
        return false;
    memcpy(alloc, id, UUID_TEXT_SIZE - 1);
    alloc[UUID_TEXT_SIZE - 1] = '\0';
    if (!uuid_is_valid(alloc))
        return false;
    memcpy(ret_alloc, alloc, UUID_TEXT_SIZE);
    return true;
}

enum consul_status consul_status_of(const json_t *check_of)
{
    const char *status = text_in(check_of, "Status");

    return text_equal(status, "passing")   ? CONSUL_PASSING
           : text_equal(status, "warning") ? CONSUL_WARNING
                                           : CONSUL_CRITICAL;
}
