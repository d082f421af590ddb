/*
 * The services of groups and of their tasks: what is not given, and what is wrong.
 *
 * Follows nomad v2.0.5: api/services.go and nomad/structs/services.go (Canonicalize, Validate), and
 * TaskGroup.validateServices and validateServices in nomad/structs/structs.go.  What Nomad finds
 * out when an alloc starts is refused here already: the port of a group's service that the group
 * has not, and a check of another protocol than HTTP's two.
 */
#include "spec/blocks/blocks.h"
#include "spec/json.h"
#include "spec/names.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const json_int_t SECOND_NS =
    1000000000; /* of grace, and the least of interval and timeout */

static void set_text(json_t *object, const char *field, const char *text)
{
    json_t *value = json_string(text);

    if (value != NULL) /* else it is no UTF-8, and refused by what it was made of */
        check(json_object_set_new(object, field, value) == 0);
}

static void set_missing(json_t *object, const char *field, json_t *value)
{
    if (json_object_get(object, field) == NULL)
        check(json_object_set(object, field, value) == 0);
    json_decref(value);
}

static bool has_variables(const char *text)
{
    return strstr(text, "${") != NULL;
}

/* --- defaults --- */

/* What is empty says nothing, however it is written. */
static void default_fields(const struct jobspec_schema *schema, json_t *object)
{
    for (size_t i = 0; i < schema->count; i++) {
        const struct jobspec_field *field = &schema->fields[i];
        const json_t *value = field->json == NULL ? NULL : json_object_get(object, field->json);
        bool is_list =
            field->kind == KIND_TEXTS || field->kind == KIND_LISTS || field->kind == KIND_BLOCKS;

        if (field->fate == FATE_KEPT || is_list) {
            if (jobspec_is_empty(value) && (!is_list || json_array_size(value) == 0) &&
                field->json != NULL)
                (void)json_object_del(object, field->json); /* missing is fine */
        } else if (field->fate == FATE_RUN || field->fate == FATE_PLACE) {
            if (field->kind == KIND_TEXT)
                set_missing(object, field->json, json_string(""));
            else if (field->kind == KIND_BOOL)
                set_missing(object, field->json, json_false());
            else if (field->kind == KIND_WHOLE || field->kind == KIND_DURATION)
                set_missing(object, field->json, json_integer(0));
        }
    }
}

/* What a check says of check_restart goes before what its service does; a new reference, or NULL.
 */
static json_t *merge_restart(json_t *of_service, json_t *of_check)
{
    json_t *merged;

    if (of_service == NULL && of_check == NULL)
        return NULL;
    merged = json_copy(of_service == NULL ? of_check : of_service);
    check(merged != NULL);
    if (of_service != NULL && of_check != NULL) {
        json_t *grace = json_object_get(of_check, "Grace");
        json_t *limit = json_object_get(of_check, "Limit");

        if (json_integer_value(limit) > 0)
            check(json_object_set(merged, "Limit", limit) == 0);
        if (grace != NULL)
            check(json_object_set(merged, "Grace", grace) == 0);
    }
    set_missing(merged, "Grace", json_integer(SECOND_NS));
    set_missing(merged, "Limit", json_integer(0));
    return merged;
}

static void default_check(json_t *service, json_t *check_of)
{
    json_t *restart = merge_restart(json_object_get(service, "CheckRestart"),
                                    json_object_get(check_of, "CheckRestart"));
    char name[SPEC_CHECK_NAME_SIZE];

    default_fields(&jobspec_service_check, check_of);
    if (restart != NULL)
        check(json_object_set_new(check_of, "CheckRestart", restart) == 0);
    if (*text_of(check_of, "OnUpdate") == '\0')
        set_text(check_of, "OnUpdate", text_of(service, "OnUpdate"));
    (void)text_format(name, sizeof(name), "service: \"%s\" check", text_of(service, "Name"));
    if (*text_of(check_of, "Name") == '\0')
        set_text(check_of, "Name", name);
    if (*text_of(check_of, "TaskName") == '\0')
        set_text(check_of, "TaskName", text_of(service, "TaskName"));
}

/* Of what job, group and task a name may speak. */
struct names {
    const char *job, *group, *task;
    bool of_task; /* else TASK is "group", as in Nomad */
};

/* The value of the variable at TEXT, of LENGTH; false: it is none of these. */
static bool name_value(const struct names *names, const char *text, size_t length,
                       char to[4 * SPEC_NAME_SIZE])
{
    const struct {
        const char *variable, *value;
    } values[] = {{"${JOB}", names->job}, {"${TASKGROUP}", names->group}, {"${TASK}", names->task}};

    for (size_t i = 0; i < COUNT_OF(values); i++) {
        if (strlen(values[i].variable) == length && strncmp(text, values[i].variable, length) == 0)
            return text_copy(to, 4 * SPEC_NAME_SIZE, values[i].value);
    }
    return length == strlen("${BASE}") && strncmp(text, "${BASE}", length) == 0 &&
           text_format(to, 4 * SPEC_NAME_SIZE, "%s-%s-%s", names->job, names->group, names->task);
}

/* The name TEXT with what is known of it already; what is too long is cut, and refused. */
static void make_name(const struct names *names, const char *text, char *to, size_t size)
{
    char value[4 * SPEC_NAME_SIZE], one[2] = "";

    to[0] = '\0';
    while (*text != '\0') {
        const char *end = strncmp(text, "${", 2) == 0 ? strchr(text, '}') : NULL;

        if (end != NULL && name_value(names, text, (size_t)(end + 1 - text), value)) {
            (void)text_append(to, size, value);
            text = end + 1;
        } else {
            one[0] = *text++;
            (void)text_append(to, size, one);
        }
    }
}

static void default_service(const struct names *names, json_t *service)
{
    char name[2 * SPEC_SERVICE_TEXT_SIZE], base[4 * SPEC_NAME_SIZE];
    json_t *check_of;
    size_t i;

    default_fields(&jobspec_service, service);
    (void)text_format(base, sizeof(base), names->of_task ? "%s-%s-%s" : "%s-%s%.0s", names->job,
                      names->group, names->task);
    make_name(names, *text_of(service, "Name") == '\0' ? base : text_of(service, "Name"), name,
              sizeof(name));
    set_text(service, "Name", name);
    if (*text_of(service, "Provider") == '\0')
        set_text(service, "Provider", "consul");
    if (*text_of(service, "AddressMode") == '\0')
        set_text(service, "AddressMode", "auto");
    if (*text_of(service, "OnUpdate") == '\0')
        set_text(service, "OnUpdate", "require_healthy");
    if (*text_of(service, "TaskName") == '\0' && names->of_task)
        set_text(service, "TaskName", names->task);
    if (*text_of(service, "Cluster") == '\0')
        set_text(service, "Cluster", "default");
    json_array_foreach(jobspec_list(service, "Checks"), i, check_of)
        default_check(service, check_of);
    (void)json_object_del(service, "CheckRestart"); /* each check has its own */
}

void jobspec_default_services(const json_t *job, json_t *group)
{
    struct names names = {text_of(job, "Name"), text_of(group, "Name"), "group", false};
    json_t *task, *service;
    size_t i, s;

    json_array_foreach(jobspec_list(group, "Services"), s, service)
        default_service(&names, service);
    if (json_array_size(json_object_get(group, "Services")) == 0)
        (void)json_object_del(group, "Services"); /* missing is fine */
    json_array_foreach(jobspec_list(group, "Tasks"), i, task)
    {
        names.task = text_of(task, "Name");
        names.of_task = true;
        json_array_foreach(jobspec_list(task, "Services"), s, service)
            default_service(&names, service);
        if (json_array_size(json_object_get(task, "Services")) == 0)
            (void)json_object_del(task, "Services"); /* likewise */
    }
}

/* --- words --- */

bool spec_address_mode(const char *text, enum spec_address_mode *ret_mode)
{
    static const struct jobspec_word modes[] = {
        {"auto", ADDRESS_AUTO}, {"host", ADDRESS_HOST}, {"alloc", ADDRESS_ALLOC}};
    int mode;

    if (!jobspec_word_value(modes, COUNT_OF(modes), text, &mode))
        return false;
    *ret_mode = (enum spec_address_mode)mode;
    return true;
}

bool spec_check_type(const char *text, enum spec_check_type *ret_type)
{
    static const struct jobspec_word types[] = {
        {"http", CHECK_HTTP}, {"tcp", CHECK_TCP}, {"grpc", CHECK_GRPC}, {"script", CHECK_SCRIPT}};
    int type;

    if (!jobspec_word_value(types, COUNT_OF(types), text, &type))
        return false;
    *ret_type = (enum spec_check_type)type;
    return true;
}

/* --- rules --- */

struct looking {
    struct jobspec_work *work;
    const json_t *group, *task; /* TASK: whose the service is, NULL: the group's */
    const json_t *service;
    const json_t *check; /* NULL: it is about the service */
};

/* A problem with FIELD of what is looked at; "": with all of it. */
static void complain(const struct looking *looking, const char *field, const char *hint,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

static void complain(const struct looking *looking, const char *field, const char *hint,
                     const char *format, ...)
{
    const json_t *object = looking->check != NULL ? looking->check : looking->service;
    const json_t *value = json_object_get(object, field);
    bool is_given = value != NULL && !(json_is_string(value) && json_string_length(value) == 0);
    char text[ERR_TEXT_SIZE], name[80] = "";
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args); /* cut if long */
    va_end(args);
    if (looking->check != NULL)
        (void)text_format(name, sizeof(name), ", check \"%.60s\"", text_of(looking->check, "Name"));
    jobspec_complain(looking->work, object, is_given ? field : "", hint, "service \"%.64s\"%s: %s",
                     text_of(looking->service, "Name"), name, text);
}

/* FIELD is one line that its records have room for. */
static bool check_text(const struct looking *looking, const char *field, const char *what,
                       size_t size)
{
    const char *text = text_of(looking->check != NULL ? looking->check : looking->service, field);
    size_t length = strlen(text);

    for (const char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20u || *at == 0x7f)
            length = size;
    }
    if (length >= size)
        complain(looking, field, NULL, "its %s must be one line of at most %zu bytes", what,
                 size - 1);
    return length < size;
}

static bool has_port(const json_t *object, const char *label)
{
    static const char *const kinds[] = {"ReservedPorts", "DynamicPorts"};
    const json_t *network = json_array_get(json_object_get(object, "Networks"), 0), *port;
    size_t i;

    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        json_array_foreach(jobspec_list(network, kinds[k]), i, port)
        {
            if (text_equal(text_of(port, "Label"), label))
                return true;
        }
    }
    return false;
}

/* The label of a port, or for a group's service a number. */
static void check_port(const struct looking *looking, const char *label)
{
    int64_t number;

    if (*label == '\0' || has_variables(label) || has_port(looking->group, label) ||
        (looking->task != NULL && has_port(json_object_get(looking->task, "Resources"), label)))
        return;
    if (!text_to_i64(label, &number))
        complain(looking, "PortLabel", "ports are those of the network block of the group",
                 "port label \"%.60s\" does not exist", label);
    else if (looking->task != NULL)
        complain(looking, "PortLabel", "give the group's network such a port, and write its label",
                 "port %.20s is a number, only services of a group may have one", label);
    else if (number < 1 || number > UINT16_MAX)
        complain(looking, "PortLabel", NULL, "%.20s is the number of no port", label);
}

static void check_on_update(const struct looking *looking, const char *text)
{
    static const char *const known[] = {"require_healthy", "ignore_warnings", "ignore"};

    for (size_t i = 0; i < COUNT_OF(known); i++) {
        if (text_equal(text, known[i]))
            return;
    }
    complain(looking, "OnUpdate", NULL,
             "on_update must be \"require_healthy\", \"ignore_warnings\" or \"ignore\", not "
             "\"%.40s\"",
             text);
}

/* True if MODE is one that services and checks of this node have. */
static bool check_mode(const struct looking *looking, const char *mode)
{
    enum spec_address_mode known;
    bool is_known = spec_address_mode(mode, &known);

    if (text_equal(mode, "driver"))
        complain(looking, "AddressMode", "write \"host\" or \"alloc\"",
                 "address_mode \"driver\" is not there: no driver gives its tasks a network");
    else if (text_equal(mode, "alloc_ipv6"))
        complain(looking, "AddressMode", "write \"alloc\"",
                 "address_mode \"alloc_ipv6\" is not supported yet");
    else if (is_known && known == ADDRESS_ALLOC && looking->task != NULL)
        complain(looking, "AddressMode", NULL,
                 "cannot use address_mode = \"alloc\", only services of a group can");
    return is_known || text_equal(mode, "driver") || text_equal(mode, "alloc_ipv6");
}

/* --- checks --- */

/* As Go's url.Parse reads it, as far as somebody might get it wrong. */
static const char *path_fault(const char *path)
{
    size_t until = strcspn(path, "?#"), scheme = strspn(path, "abcdefghijklmnopqrstuvwxyz"
                                                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                              "0123456789+-.");
    size_t colon = strcspn(path, ":/?#");

    if (*path == '\0')
        return "http type must have http path";
    if (path[colon] == ':')
        return colon > 0 && scheme == colon && strchr("0123456789+-.", path[0]) == NULL
                   ? "http type must have relative http path"
                   : "http type must have valid http path";
    for (size_t i = 0; i < until; i++) {
        if (path[i] == '%' && strspn(path + i + 1, "0123456789abcdefABCDEF") < 2)
            return "http type must have valid http path";
    }
    return NULL;
}

static bool is_method(const char *text)
{
    static const char *const methods[] = {"GET",    "HEAD",    "POST",    "PUT",  "PATCH",
                                          "DELETE", "CONNECT", "OPTIONS", "TRACE"};

    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        if (strcasecmp(text, methods[i]) == 0)
            return true;
    }
    return false;
}

/* What would be more than a header is none. */
static bool is_header(const char *name, const char *value)
{
    for (const char *at = value; *at != '\0'; at++) {
        if (((unsigned char)*at < 0x20u && *at != '\t') || *at == 0x7f)
            return false;
    }
    for (const char *at = name; *at != '\0'; at++) {
        if ((unsigned char)*at <= 0x20u || (unsigned char)*at >= 0x7fu || *at == ':')
            return false;
    }
    return *name != '\0';
}

static void check_headers(const struct looking *looking)
{
    json_t *headers = json_object_get(looking->check, "Header"), *list, *value;
    const char *name;
    size_t count = 0, i;

    json_object_foreach(headers, name, list)
    {
        count += json_array_size(list);
        json_array_foreach(list, i, value)
        {
            if (!is_header(name, json_string_value(value)))
                complain(looking, "Header", NULL, "\"%.60s\" cannot be the header of a request",
                         name);
        }
    }
    if (count > SPEC_CHECK_HEADERS_MAX)
        complain(looking, "Header", NULL, "%zu headers, there may be %d", count,
                 SPEC_CHECK_HEADERS_MAX);
}

static void check_http(const struct looking *looking)
{
    const char *method = text_of(looking->check, "Method");
    const char *protocol = text_of(looking->check, "Protocol");
    const char *fault = path_fault(text_of(looking->check, "Path"));

    if (check_text(looking, "Path", "path", SPEC_SOURCE_URL_SIZE) && fault != NULL)
        complain(looking, "Path", "for example path = \"/\"", "%s", fault);
    if (*method != '\0' && !is_method(method))
        complain(looking, "Method", NULL, "method type \"%.40s\" not supported in Nomad http check",
                 method);
    if (*protocol != '\0' && !has_variables(protocol) && !text_equal(protocol, "http") &&
        !text_equal(protocol, "https"))
        complain(looking, "Protocol", NULL,
                 "the protocol must be \"http\" or \"https\", not \"%.40s\"", protocol);
    (void)check_text(looking, "Protocol", "protocol", SPEC_SERVICE_TEXT_SIZE);
    if (strlen(text_of(looking->check, "Body")) >= SPEC_CHECK_BODY_SIZE)
        complain(looking, "Body", NULL, "its body may have %d bytes", SPEC_CHECK_BODY_SIZE - 1);
    check_headers(looking);
}

static void check_time(const struct looking *looking, const char *field, const char *what)
{
    json_int_t ns = json_integer_value(json_object_get(looking->check, field));
    char text[40];

    text_from_duration_ns(text, sizeof(text), ns);
    if (ns == 0 && !jobspec_was_given(looking->work, looking->check, field))
        complain(looking, field, NULL, "missing required value %s, which cannot be less than 1s",
                 what);
    else if (ns < SECOND_NS)
        complain(looking, field, NULL, "%s (%s) cannot be lower than 1s", what, text);
}

/* Which task it is of, by its name. */
static void check_task(const struct looking *looking)
{
    const char *name =
        text_of(looking->check != NULL ? looking->check : looking->service, "TaskName");
    const char *own = text_of(looking->task, "Name");
    const json_t *task;
    size_t i;

    if (looking->task != NULL && *name != '\0' && !text_equal(name, own))
        complain(looking, "TaskName", "remove it",
                 "may only specify the task it belongs to, not \"%.60s\"", name);
    if (looking->task != NULL || *name == '\0')
        return;
    json_array_foreach(jobspec_list(looking->group, "Tasks"), i, task)
    {
        if (text_equal(text_of(task, "Name"), name))
            return;
    }
    complain(looking, "TaskName", NULL, "refers to non-existent task \"%.60s\"", name);
}

static bool is_of_consul(const struct looking *looking)
{
    return text_equal(text_of(looking->service, "Provider"), "consul");
}

static void check_update(const struct looking *looking)
{
    const char *on_update = text_of(looking->check, "OnUpdate");
    const json_t *restart = json_object_get(looking->check, "CheckRestart");
    bool ignores = json_is_true(json_object_get(restart, "IgnoreWarnings"));

    check_on_update(looking, on_update);
    if (text_equal(on_update, "ignore_warnings") && !is_of_consul(looking))
        complain(looking, "OnUpdate", "write \"ignore\" or \"require_healthy\"",
                 "on_update may only be \"ignore_warnings\" of checks of Consul, which have them");
    else if (text_equal(on_update, "ignore_warnings") && restart != NULL && !ignores)
        complain(looking, "OnUpdate", "write check_restart { ignore_warnings = true }",
                 "on_update value \"ignore_warnings\" is not compatible with a check_restart that "
                 "does not ignore them");
    if (text_equal(on_update, "ignore") && restart != NULL)
        complain(looking, "OnUpdate", NULL,
                 "on_update value \"ignore\" is not compatible with check_restart");
    if (ignores && !is_of_consul(looking))
        complain(looking, "CheckRestart", "remove ignore_warnings",
                 "only checks of Consul have warnings");
}

static void check_script(const struct looking *looking)
{
    const char *command = text_of(looking->check, "Command");

    if (*command == '\0')
        complain(looking, "Command", NULL, "script type must have a valid script path");
    if (looking->task == NULL && *text_of(looking->check, "TaskName") == '\0')
        complain(looking, "", "write task = \"NAME\"",
                 "a script of a group's service needs the task that it is run in");
    if (json_array_size(jobspec_list(looking->check, "Args")) >= SPEC_SCRIPT_ARGUMENTS_MAX)
        complain(looking, "Args", NULL, "a script may have %d arguments",
                 SPEC_SCRIPT_ARGUMENTS_MAX - 1);
}

static const char *name_in_check(const struct looking *looking, const char *field)
{
    return jobspec_name_of(looking->work, jobspec_by_json(&jobspec_service_check, field));
}

/* What Nomad's own checks have not. */
static void check_no_consul(const struct looking *looking)
{
    static const char *const fields[] = {"TLSServerName", "SuccessBeforePassing",
                                         "FailuresBeforeCritical", "FailuresBeforeWarning"};

    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        const json_t *value = json_object_get(looking->check, fields[i]);

        if (!jobspec_is_empty(value))
            complain(looking, fields[i], "remove it", "only checks of Consul have %s",
                     name_in_check(looking, fields[i]));
    }
}

static void check_consul(const struct looking *looking, enum spec_check_type type)
{
    static const char *const counts[] = {"SuccessBeforePassing", "FailuresBeforeCritical",
                                         "FailuresBeforeWarning"};
    static const char *const statuses[] = {"", "passing", "warning", "critical"};
    const char *status = text_of(looking->check, "InitialStatus");
    bool known = false;

    for (size_t i = 0; i < COUNT_OF(statuses); i++)
        known |= text_equal(status, statuses[i]);
    if (!known)
        complain(looking, "InitialStatus", NULL,
                 "invalid initial check state (\"%.40s\"), must be one of \"passing\", "
                 "\"warning\", \"critical\"",
                 status);
    for (size_t i = 0; type == CHECK_SCRIPT && i < COUNT_OF(counts); i++) {
        if (!jobspec_is_empty(json_object_get(looking->check, counts[i])))
            complain(looking, counts[i], "remove it", "scripts have no %s",
                     name_in_check(looking, counts[i]));
    }
    (void)check_text(looking, "GRPCService", "grpc_service", SPEC_SERVICE_TEXT_SIZE);
    (void)check_text(looking, "TLSServerName", "tls_server_name", SPEC_SERVICE_TEXT_SIZE);
    (void)check_text(looking, "Command", "command", SPEC_CHECK_COMMAND_SIZE);
    if (strlen(text_of(looking->check, "Notes")) >= SPEC_CHECK_NOTES_SIZE)
        complain(looking, "Notes", NULL, "its notes may have %d bytes", SPEC_CHECK_NOTES_SIZE - 1);
    if (type == CHECK_SCRIPT)
        check_script(looking);
}

static void check_type(const struct looking *looking)
{
    const char *type = text_of(looking->check, "Type");
    bool of_consul = is_of_consul(looking);
    enum spec_check_type known;

    if (!spec_check_type(type, &known) || (!of_consul && known >= CHECK_GRPC)) {
        complain(looking, "Type", of_consul ? NULL : "other types are those of Consul",
                 "invalid check type (\"%.40s\"), must be one of %s", type,
                 of_consul ? "grpc, http, script, tcp" : "tcp, http");
        return;
    }
    if (known == CHECK_HTTP)
        check_http(looking);
    if (of_consul)
        check_consul(looking, known);
    else
        check_no_consul(looking);
    if (known != CHECK_SCRIPT && *text_of(looking->check, "PortLabel") == '\0' &&
        *text_of(looking->service, "PortLabel") == '\0')
        complain(looking, "", "write port = \"label\"",
                 "check requires a port but neither check nor service have one");
}

static void check_check(const struct looking *looking)
{
    const char *port = text_of(looking->check, "PortLabel");
    const char *mode = text_of(looking->check, "AddressMode");

    (void)check_text(looking, "Name", "name", SPEC_CHECK_NAME_SIZE);
    check_type(looking);
    if (check_text(looking, "PortLabel", "port", SPEC_SERVICE_TEXT_SIZE))
        check_port(looking, port);
    check_time(looking, "Interval", "interval");
    check_time(looking, "Timeout", "timeout");
    if (text_equal(mode, "auto"))
        complain(looking, "AddressMode", NULL,
                 "invalid address_mode \"auto\" - only valid for services");
    else if (*mode != '\0' && !check_mode(looking, mode))
        complain(looking, "AddressMode", NULL, "invalid address_mode \"%.40s\"", mode);
    check_update(looking);
    check_task(looking);
}

/* Names of checks in a service of a task are given once. */
static void check_check_names(struct looking *looking)
{
    const json_t *checks = jobspec_list(looking->service, "Checks");

    for (size_t i = 0; i < json_array_size(checks); i++) {
        looking->check = json_array_get(checks, i);
        for (size_t j = 0; j < i; j++) {
            if (!text_equal(text_of(looking->check, "Name"),
                            text_of(json_array_get(checks, j), "Name")))
                continue;
            complain(looking, "Name", "give it another name", "is duplicate");
            break;
        }
    }
    looking->check = NULL;
}

/* --- services --- */

/* What of it an alloc makes whole may be anything yet: variables are taken for a word. */
static void check_name(const struct looking *looking)
{
    const char *text = text_of(looking->service, "Name"), *fault;
    char name[SPEC_SERVICE_TEXT_SIZE] = "", one[2] = "";

    if (!check_text(looking, "Name", "name", SPEC_SERVICE_TEXT_SIZE))
        return;
    while (*text != '\0') {
        size_t length =
            strncmp(text, "${", 2) != 0
                ? 0
                : strspn(text + 2, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "0123456789_-.");

        if (length > 0 && text[2 + length] == '}') {
            (void)text_append(name, sizeof(name), "ENV-VAR");
            text += length + 3;
        } else {
            one[0] = *text++;
            (void)text_append(name, sizeof(name), one);
        }
    }
    fault = spec_service_name_fault(name);
    if (fault != NULL)
        complain(looking, "Name", NULL, "the name of a service %s", fault);
}

static void check_tags(const struct looking *looking, const char *field, const char *what)
{
    const json_t *tags = jobspec_list(looking->service, field), *tag;
    size_t i;

    if (json_array_size(tags) > SPEC_TAGS_MAX)
        complain(looking, field, NULL, "%zu %s, there may be %d", json_array_size(tags), what,
                 SPEC_TAGS_MAX);
    json_array_foreach(tags, i, tag)
    {
        for (const char *at = json_string_value(tag); *at != '\0'; at++) {
            if ((unsigned char)*at >= 0x20u && *at != 0x7f)
                continue;
            complain(looking, field, NULL, "%s must not contain control characters", what);
            break;
        }
    }
}

/* Consul's bounds; the mark of the node is one more. */
static void check_meta(const struct looking *looking, const char *field, const char *what)
{
    json_t *meta = json_object_get(looking->service, field), *value;
    const char *key;

    if (json_object_size(meta) > SPEC_SERVICE_META_MAX)
        complain(looking, field, NULL, "%zu entries of %s, there may be %d", json_object_size(meta),
                 what, SPEC_SERVICE_META_MAX);
    json_object_foreach(meta, key, value)
    {
        if (strlen(key) > 128 || strlen(json_string_value(value)) > 512)
            complain(looking, field, NULL,
                     "%s \"%.40s\": a key may have 128 bytes, and a value 512", what, key);
    }
}

/* Whose it is decides what the rest of it means. */
static bool check_provider(const struct looking *looking)
{
    const char *provider = text_of(looking->service, "Provider");

    if (text_equal(provider, "nomad") || text_equal(provider, "consul"))
        return true;
    if (!jobspec_was_told(looking->work, looking->service, "Provider"))
        complain(looking, "Provider", NULL,
                 "the provider of a service must be \"nomad\" or \"consul\", not \"%.40s\"",
                 provider);
    return false;
}

static void check_service(struct looking *looking)
{
    const char *mode = text_of(looking->service, "AddressMode");
    json_t *check_of;
    size_t i;

    if (!check_provider(looking))
        return;
    check_name(looking);
    if (!check_mode(looking, mode))
        complain(looking, "AddressMode", NULL,
                 "address_mode must be \"auto\", \"host\" or \"alloc\", not \"%.40s\"", mode);
    if (*text_of(looking->service, "Address") != '\0' && !text_equal(mode, "auto"))
        complain(looking, "Address", NULL, "address_mode must be \"auto\" if address is set");
    (void)check_text(looking, "Address", "address", SPEC_SERVICE_TEXT_SIZE);
    if (check_text(looking, "PortLabel", "port", SPEC_SERVICE_TEXT_SIZE))
        check_port(looking, text_of(looking->service, "PortLabel"));
    check_on_update(looking, text_of(looking->service, "OnUpdate"));
    check_tags(looking, "Tags", "tags");
    check_tags(looking, "CanaryTags", "canary_tags");
    check_meta(looking, "Meta", "meta");
    check_meta(looking, "CanaryMeta", "canary_meta");
    check_task(looking);
    json_array_foreach(jobspec_list(looking->service, "Checks"), i, check_of)
    {
        looking->check = check_of;
        check_check(looking);
    }
    looking->check = NULL;
    if (looking->task != NULL)
        check_check_names(looking);
}

/* The id of a service is made of its name, its port and whose it is. */
static void check_services(struct looking *looking, const json_t *services)
{
    for (size_t i = 0; i < json_array_size(services); i++) {
        looking->service = json_array_get(services, i);
        check_service(looking);
        for (size_t j = 0; j < i; j++) {
            const json_t *other = json_array_get(services, j);

            if (!text_equal(text_of(other, "Name"), text_of(looking->service, "Name")) ||
                !text_equal(text_of(other, "PortLabel"), text_of(looking->service, "PortLabel")))
                continue;
            complain(looking, "Name", "give it another name or another port",
                     "a second one with this name and port");
            break;
        }
    }
}

static size_t count_checks(const json_t *services)
{
    const json_t *service;
    size_t count = 0, i;

    json_array_foreach(services, i, service) count +=
        json_array_size(jobspec_list(service, "Checks"));
    return count;
}

void jobspec_check_services(struct jobspec_work *work, const json_t *group)
{
    struct looking looking = {.work = work, .group = group};
    const json_t *services = jobspec_list(group, "Services"), *task;
    size_t count = json_array_size(services), checks = count_checks(services), i;

    json_array_foreach(jobspec_list(group, "Tasks"), i, task)
    {
        count += json_array_size(jobspec_list(task, "Services"));
        checks += count_checks(jobspec_list(task, "Services"));
    }
    if (count > SPEC_SERVICES_MAX)
        jobspec_complain(work, group, "", NULL,
                         "%zu services of the group and its tasks, there may be %d", count,
                         SPEC_SERVICES_MAX);
    if (checks > SPEC_CHECKS_MAX)
        jobspec_complain(work, group, "", NULL,
                         "%zu checks of the group's services and its tasks', there may be %d",
                         checks, SPEC_CHECKS_MAX);
    check_services(&looking, services);
}

void jobspec_check_task_services(struct jobspec_work *work, const json_t *group, const json_t *task)
{
    struct looking looking = {.work = work, .group = group, .task = task};

    check_services(&looking, jobspec_list(task, "Services"));
}
