/*
 * What tasks ask the servers: variables, services, what runs.
 *
 * Rows name a path of Nomad's API, the method of servers that answers it, and where in its answer
 * what is wanted is.  The values of an answer are those of Nomad's JSON but for times and bytes.
 * Follows nomad v2.0.6 command/agent/variable_endpoint.go, service_registration_endpoint.go,
 * job_endpoint.go and alloc_endpoint.go.
 */
#include "agent/tasks/part.h"

#include "agent/api/format/values.h"
#include "server/nomad/nomad.h"

#include <stdlib.h>
#include <string.h>

enum { WAIT_MAX_MS = 10 * 60 * 1000 };

struct forward {
    const char *verb, *path; /* a * stands for the rest of the path */
    const char *method;
    const char *named;   /* the argument that the rest of the path becomes; NULL: none */
    const char *wanted;  /* of the answer */
    const char *missing; /* what is said, with 404, where it is nil; NULL: it is an empty list */
    const char *changes; /* the operation on a variable; NULL: it is read */
};

/* clang-format off */
static const struct forward rows[] = {
    {"GET", "/v1/vars", "Variables.List", NULL, "Data", NULL, NULL},
    {"GET", "/v1/var/*", "Variables.Read", "Path", "Data", "variable not found", NULL},
    {"PUT", "/v1/var/*", "Variables.Apply", NULL, "Output", "", "set"},
    {"DELETE", "/v1/var/*", "Variables.Apply", NULL, "Output", "", "delete"},
    {"GET", "/v1/services", "ServiceRegistration.List", NULL, "Services", NULL, NULL},
    {"GET", "/v1/service/*", "ServiceRegistration.GetService", "ServiceName", "Services", NULL,
     NULL},
    {"GET", "/v1/jobs", "Job.List", NULL, "Jobs", NULL, NULL},
    {"GET", "/v1/allocations", "Alloc.List", NULL, "Allocations", NULL, NULL},
};
/* clang-format on */

/* What PATH has in the place of the star; NULL: it is no such path. */
static const char *rest_of(const struct forward *row, const char *path)
{
    size_t length = strcspn(row->path, "*");

    if (row->path[length] == '\0')
        return text_equal(row->path, path) ? "" : NULL;
    return strncmp(row->path, path, length) == 0 && path[length] != '\0' ? path + length : NULL;
}

const struct forward *forward_find(const struct http_exchange *exchange)
{
    const char *method = http_method(exchange);
    const char *verb = text_equal(method, "POST") ? "PUT" : method;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (text_equal(rows[i].verb, verb) && rest_of(&rows[i], http_path(exchange)) != NULL)
            return &rows[i];
    }
    return NULL;
}

/* --- answers --- */

/* VALUE of io/rpc.h as Nomad's JSON has it: a new reference. */
static json_t *json_of(const json_t *value);

/* What a variable holds is texts by names of anybody's choice; and no lock is nothing. */
static json_t *member_of(const char *name, json_t *value)
{
    if (text_equal(name, "Items"))
        return json_incref(value);
    return text_equal(name, "Lock") && json_is_null(value) ? NULL : json_of(value);
}

static json_t *json_of(const json_t *value)
{
    json_t *time = json_object_get(value, "$time"), *bytes = json_object_get(value, "$bytes");
    char text[API_TIME_SIZE];
    const char *name;
    json_t *to, *item;
    size_t i;

    if (time != NULL) {
        api_time(text, json_integer_value(time));
        return json_string(text);
    }
    if (bytes != NULL)
        return json_incref(bytes);
    if (json_is_array(value)) {
        to = json_array();
        json_array_foreach(value, i, item) check(json_array_append_new(to, json_of(item)) == 0);
        return to;
    }
    if (!json_is_object(value))
        return json_incref((json_t *)(uintptr_t)value);
    to = json_object();
    json_object_foreach((json_t *)(uintptr_t)value, name, item)
    {
        json_t *member = member_of(name, item);

        if (member != NULL)
            check(json_object_set_new(to, name, member) == 0);
    }
    return to;
}

/* As Nomad's API hands on what it hears: errors may carry the status that they are. */
static void refuse(struct task_request *request, const struct err *err)
{
    static const char coded[] = "RPC Error:: ";
    const char *text = err->text;
    int status = 500;

    if (err->code == ERR_REFUSED && text_ends_with(text, "Permission denied")) {
        request_refuse(request, 403, "Permission denied");
        return;
    }
    if (text_starts_with(text, coded)) {
        long said = strtol(text + strlen(coded), NULL, 10);
        const char *comma = strchr(text, ',');

        status = said >= 400 && said < 600 ? (int)said : 500;
        text = comma == NULL ? text : comma + 1;
    } else if (strstr(text, "cas error:") != NULL) {
        status = 409;
    }
    request_refuse(request, status, text);
}

static void answered(void *ctx, const json_t *reply, const struct err *err)
{
    struct task_request *request = ctx;
    const struct forward *row = request->forward;
    const json_t *found = json_object_get(reply, row->wanted);
    const json_t *conflict = json_object_get(reply, "Conflict");
    bool is_nil = found == NULL || json_is_null(found);

    if (reply == NULL) {
        refuse(request, err);
        return;
    }
    bool conflicts = row->changes != NULL && json_is_object(conflict);
    if (row->changes == NULL && is_nil && row->missing != NULL) {
        request_refuse(request, 404, row->missing);
        return;
    }
    json_t *value = conflicts ? json_of(conflict)
                    : !is_nil ? json_of(found)
                              : (row->missing == NULL ? json_array() : NULL);
    request_answer(request, conflicts ? 409 : value == NULL ? 204 : 200, reply, value);
    json_decref(value);
}

/* --- questions --- */

/* Queries that lists and whatever is read may have; whole numbers and words as they are. */
static void put_query(json_t *args, const struct http_exchange *exchange)
{
    static const char *const texts[][2] = {{"prefix", "Prefix"},
                                           {"filter", "Filter"},
                                           {"next_token", "NextToken"},
                                           {"choose", "Choose"}};
    const char *stale = http_query(exchange, "stale");
    uint64_t pages;

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        const char *value = http_query(exchange, texts[i][0]);

        if (value != NULL && value[0] != '\0')
            check(json_object_set_new(args, texts[i][1], json_string(value)) == 0);
    }
    if (stale != NULL && !text_equal(stale, "false"))
        check(json_object_set_new(args, "AllowStale", json_true()) == 0);
    const char *per_page = http_query(exchange, "per_page");
    if (per_page != NULL && text_to_u64(per_page, &pages) && pages <= INT32_MAX)
        check(json_object_set_new(args, "PerPage", json_integer((json_int_t)pages)) == 0);
}

/* For how long the servers may wait for a change; 0: not at all. */
static uint64_t put_wait(json_t *args, const struct http_exchange *exchange)
{
    const char *index_text = http_query(exchange, "index"), *wait = http_query(exchange, "wait");
    uint64_t index, wait_ms = WAIT_MAX_MS / 2;
    int64_t wait_ns;

    if (index_text == NULL || !text_to_u64(index_text, &index) || index == 0 || index > INT64_MAX)
        return 0;
    if (wait != NULL && text_to_duration_ns(wait, &wait_ns) && wait_ns > 0)
        wait_ms = (uint64_t)wait_ns / 1000000;
    if (wait_ms > WAIT_MAX_MS)
        wait_ms = WAIT_MAX_MS;
    check(json_object_set_new(args, "MinQueryIndex", json_integer((json_int_t)index)) == 0);
    check(json_object_set_new(args, "MaxQueryTime", json_integer((json_int_t)wait_ms * 1000000)) ==
          0);
    return wait_ms + wait_ms / 16;
}

/* What of the body is the variable, as a new reference; NULL: it is none, which is said. */
static json_t *variable_of(struct task_request *request, const char *path, const char *namespace)
{
    size_t length;
    const char *text = http_body(request->exchange, &length);
    bool sets = text_equal(request->forward->changes, "set");
    json_t *body = sets ? json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL) : json_object();
    json_t *items = json_object_get(body, "Items"), *item;
    const char *own = json_string_value(json_object_get(body, "Namespace")), *name;
    bool sound = json_is_object(body);

    json_object_foreach(items, name, item) sound &=
        json_is_string(item) && name[0] != '$'; /* which says something else to io/rpc.h */
    if (!sound || (sets && json_object_size(items) == 0)) {
        request_refuse(request, 400,
                       sound ? "variable missing required Items object" : "invalid variable");
        json_decref(body);
        return NULL;
    }
    json_t *variable =
        json_pack("{s:s, s:s, s:o}", "Namespace", own != NULL && own[0] != '\0' ? own : namespace,
                  "Path", path, "Items", items == NULL ? json_object() : json_incref(items));
    check(variable != NULL);
    json_decref(body);
    return variable;
}

/* Puts the operation and its variable into ARGS; false: it is refused, and REQUEST is gone. */
static bool put_change(struct task_request *request, json_t *args, const char *path,
                       const char *namespace)
{
    static const char *const locks[] = {"lock-renew", "lock-acquire", "lock-release"};
    const char *cas = http_query(request->exchange, "cas"), *operation = request->forward->changes;
    bool checks = cas != NULL && cas[0] != '\0';
    uint64_t index = 0;

    for (size_t i = 0; i < COUNT_OF(locks); i++) {
        if (http_query(request->exchange, locks[i]) == NULL)
            continue;
        request_refuse(request, 501, "locks of variables are not supported here yet");
        return false;
    }
    if (checks && (!text_to_u64(cas, &index) || index > INT64_MAX)) {
        request_refuse(request, 400, "can not parse cas");
        return false;
    }
    json_t *variable = variable_of(request, path, namespace);
    if (variable == NULL)
        return false;
    if (checks) {
        operation = text_equal(operation, "set") ? "cas" : "delete-cas";
        check(json_object_set_new(variable, "ModifyIndex", json_integer((json_int_t)index)) == 0);
    }
    check(json_object_set_new(args, "Op", json_string(operation)) == 0);
    check(json_object_set_new(args, "Var", variable) == 0);
    return true;
}

void forward_begin(struct task_request *request)
{
    const struct forward *row = request->forward;
    struct http_exchange *exchange = request->exchange;
    const char *rest = rest_of(row, http_path(exchange));
    const char *given = http_query(exchange, "namespace");
    const char *namespace = given != NULL && given[0] != '\0' ? given : "default";
    json_t *args = json_pack("{s:s}", "Namespace", namespace);
    uint64_t wait_ms = 0;

    if (args == NULL) {
        request_refuse(request, 400, "the namespace is no text");
        return;
    }
    if (row->changes != NULL) {
        if (!put_change(request, args, rest, namespace)) {
            json_decref(args);
            return;
        }
    } else {
        put_query(args, exchange);
        wait_ms = put_wait(args, exchange);
    }
    if (row->named != NULL)
        check(json_object_set_new(args, row->named, json_string(rest)) == 0);
    nomad_ask(request->tasks->parts->nomad, row->method, args, request->token, wait_ms, answered,
              request);
}
