/* A service as Consul's agent is told of it, with its checks: nomad v2.0.5
 * command/agent/consul/service_client.go (serviceRegs, createCheckReg). */
#include "hooks/services/part.h"

#include <string.h>

enum { TTL_MORE_MS = 31 * 1000 }; /* that a script may come later than its interval has it */

/* TEXT is UTF-8, as all that is made whole. */
static void put(json_t *object, const char *field, const char *text)
{
    if (text[0] != '\0')
        check(json_object_set_new(object, field, json_string(text)) == 0);
}

static void put_time(json_t *object, const char *field, uint64_t ms)
{
    char text[40];

    text_from_duration_ns(text, sizeof(text), (int64_t)ms * 1000000); /* as limits have it */
    put(object, field, text);
}

static void put_count(json_t *object, const char *field, uint32_t count)
{
    if (count != 0)
        check(json_object_set_new(object, field, json_integer(count)) == 0);
}

static void put_true(json_t *object, const char *field, bool is_true)
{
    if (is_true)
        check(json_object_set_new(object, field, json_true()) == 0);
}

json_t *services_registration(const struct hooks_service *service, const struct spec_pairs *meta,
                              const char *node_id)
{
    const struct spec_service *spec = service->spec;
    json_t *tags = json_array(), *all = json_object();

    check(tags != NULL && all != NULL);
    for (size_t i = 0; i < service->tags.count; i++)
        check(json_array_append_new(tags, json_string(service->tags.items[i])) == 0);
    for (size_t i = 0; i < meta->count; i++)
        check(json_object_set_new(all, meta->items[i].key, json_string(meta->items[i].value)) == 0);
    put(all, "external-source", "nomad");
    put(all, CONSUL_MARK, node_id);
    json_t *made = json_pack("{s:s, s:s, s:o, s:i, s:s, s:o, s:[]}", "ID", service->id, "Name",
                             service->name, "Tags", tags, "Port", service->port, "Address",
                             service->address, "Meta", all, "Checks");
    check(made != NULL);
    put_true(made, "EnableTagOverride", spec->tag_override);
    if (spec->weight_passing != 0 || spec->weight_warning != 0)
        check(json_object_set_new(made, "Weights",
                                  json_pack("{s:i, s:i}", "Passing", (int)spec->weight_passing,
                                            "Warning", (int)spec->weight_warning)) == 0);
    return made;
}

static void put_http(json_t *to, const struct hooks_check *check_of,
                     const struct check_texts *texts)
{
    json_t *headers = json_object(), *pair;
    size_t i;

    check(headers != NULL);
    json_array_foreach(texts->headers, i, pair)
    {
        const char *name = json_string_value(json_array_get(pair, 0));
        json_t *values = json_object_get(headers, name);

        if (values == NULL) {
            values = json_array();
            check(json_object_set_new(headers, name, values) == 0);
        }
        check(json_array_append(values, json_array_get(pair, 1)) == 0);
    }
    put(to, "HTTP", check_of->target);
    put(to, "Method", texts->method);
    put(to, "Body", check_of->spec->body);
    if (json_object_size(headers) > 0)
        check(json_object_set(to, "Header", headers) == 0);
    json_decref(headers);
}

void services_register_check(json_t *registration, const struct hooks_check *check_of,
                             const struct check_texts *texts)
{
    const struct spec_check *spec = check_of->spec;
    json_t *to = json_object();
    char id[sizeof(CONSUL_CHECK_PREFIX) + CHECK_ID_SIZE];

    check(to != NULL);
    (void)text_format(id, sizeof(id), CONSUL_CHECK_PREFIX "%s", check_of->id); /* fits */
    put(to, "CheckID", id);
    put(to, "Name", texts->name);
    put(to, "Notes", texts->notes);
    put(to, "Status", texts->initial_status);
    put_time(to, "Timeout", spec->timeout_ms);
    if (spec->type == CHECK_SCRIPT)
        put_time(to, "TTL", spec->interval_ms + TTL_MORE_MS);
    else
        put_time(to, "Interval", spec->interval_ms);
    if (spec->type == CHECK_HTTP)
        put_http(to, check_of, texts);
    else if (spec->type != CHECK_SCRIPT)
        put(to, spec->type == CHECK_TCP ? "TCP" : "GRPC", check_of->target);
    put_true(to, "GRPCUseTLS", spec->type == CHECK_GRPC && spec->grpc_tls);
    put_true(to, "TLSSkipVerify", spec->tls_skip_verify);
    put(to, "TLSServerName", spec->tls_server_name);
    put_count(to, "SuccessBeforePassing", spec->before_passing);
    put_count(to, "FailuresBeforeCritical", spec->before_critical);
    put_count(to, "FailuresBeforeWarning", spec->before_warning);
    check(json_array_append_new(json_object_get(registration, "Checks"), to) == 0);
}
