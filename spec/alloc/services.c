/* The services of one alloc's JSON and their checks, as decode.c has all of it. */
#include "spec/alloc/decoding.h"

enum { STATUS_SIZE = 16 };

/* Names and each of their values, those of one name together. */
static struct spec_pairs decode_headers(struct decoding *decoding, const json_t *from)
{
    struct arena *arena = &decoding->holder->arena;
    json_t *headers = json_object_get(from, "Header"), *list;
    struct spec_pairs pairs = {.items =
                                   arena_new(arena, SPEC_CHECK_HEADERS_MAX * sizeof(*pairs.items))};
    const char *name;

    json_object_foreach(headers, name, list)
    {
        struct spec_texts values = decoding_texts(decoding, headers, name);

        if (pairs.count + values.count > SPEC_CHECK_HEADERS_MAX) {
            decoding_damaged(decoding, "Header", "a map of so many lists of texts");
            break;
        }
        for (size_t i = 0; i < values.count; i++)
            pairs.items[pairs.count++] =
                (struct spec_pair){.key = arena_text(arena, name), .value = values.items[i]};
    }
    return pairs;
}

static void decode_http(struct decoding *decoding, const json_t *from, struct spec_check *to)
{
    to->path = decoding_text(decoding, from, "Path", SPEC_SOURCE_URL_SIZE);
    to->method = decoding_text(decoding, from, "Method", 16);
    to->protocol = decoding_text(decoding, from, "Protocol", SPEC_SERVICE_TEXT_SIZE);
    to->body = decoding_text(decoding, from, "Body", SPEC_CHECK_BODY_SIZE);
    to->tls_skip_verify = decoding_bool(decoding, from, "TLSSkipVerify");
    to->headers = decode_headers(decoding, from);
}

/* What only checks of Consul have. */
static void decode_of_consul(struct decoding *decoding, const json_t *from, struct spec_check *to)
{
    const json_t *restart = json_object_get(from, "CheckRestart");

    to->warnings_pass =
        text_equal(decoding_text(decoding, from, "OnUpdate", 16), "ignore_warnings");
    to->restart_ignores_warnings = decoding_bool(decoding, restart, "IgnoreWarnings");
    to->command = decoding_text(decoding, from, "Command", SPEC_CHECK_COMMAND_SIZE);
    to->arguments = decoding_texts(decoding, from, "Args");
    if (to->arguments.count >= SPEC_SCRIPT_ARGUMENTS_MAX ||
        (to->type == CHECK_SCRIPT && to->command[0] == '\0'))
        decoding_damaged(decoding, "Args", "a command and so many arguments");
    to->grpc_service = decoding_text(decoding, from, "GRPCService", SPEC_SERVICE_TEXT_SIZE);
    to->grpc_tls = decoding_bool(decoding, from, "GRPCUseTLS");
    to->initial_status = decoding_text(decoding, from, "InitialStatus", STATUS_SIZE);
    to->notes = decoding_text(decoding, from, "Notes", SPEC_CHECK_NOTES_SIZE);
    to->tls_server_name = decoding_text(decoding, from, "TLSServerName", SPEC_SERVICE_TEXT_SIZE);
    to->before_passing = decoding_u32(decoding, from, "SuccessBeforePassing");
    to->before_critical = decoding_u32(decoding, from, "FailuresBeforeCritical");
    to->before_warning = decoding_u32(decoding, from, "FailuresBeforeWarning");
}

static void decode_check(struct decoding *decoding, const json_t *from, struct spec_check *to)
{
    const char *mode = decoding_text(decoding, from, "AddressMode", 8);
    const json_t *restart = json_object_get(from, "CheckRestart");

    to->name = decoding_text(decoding, from, "Name", SPEC_CHECK_NAME_SIZE);
    to->task = decoding_text(decoding, from, "TaskName", SPEC_NAME_SIZE);
    to->port = decoding_text(decoding, from, "PortLabel", SPEC_SERVICE_TEXT_SIZE);
    to->has_address_mode = *mode != '\0';
    if (!spec_check_type(decoding_text(decoding, from, "Type", 8), &to->type) ||
        (to->has_address_mode && !spec_address_mode(mode, &to->address_mode)))
        decoding_damaged(decoding, "Checks", "a list of checks");
    decode_http(decoding, from, to);
    decode_of_consul(decoding, from, to);
    to->interval_ms = decoding_ms(decoding, from, "Interval");
    to->timeout_ms = decoding_ms(decoding, from, "Timeout");
    if (to->interval_ms == 0 || to->timeout_ms == 0)
        decoding_damaged(decoding, "Interval", "a time");
    to->ready_only = text_equal(decoding_text(decoding, from, "OnUpdate", 16), "ignore");
    to->restart_limit = decoding_u32(decoding, restart, "Limit");
    to->restart_grace_ms = decoding_ms(decoding, restart, "Grace");
}

/* What only services of Consul have. */
static void decode_registration(struct decoding *decoding, const json_t *from,
                                struct spec_service *to)
{
    const json_t *meta = json_object_get(from, "Meta");
    const json_t *canary_meta = json_object_get(from, "CanaryMeta");
    const json_t *weights = json_object_get(from, "Weights");

    to->meta = decoding_pairs(decoding, &meta, 1, "Meta");
    to->canary_meta = decoding_pairs(decoding, &canary_meta, 1, "CanaryMeta");
    to->tag_override = decoding_bool(decoding, from, "EnableTagOverride");
    to->weight_passing = decoding_u32(decoding, weights, "Passing");
    to->weight_warning = decoding_u32(decoding, weights, "Warning");
}

static void decode_service(struct decoding *decoding, const json_t *from, const char *task,
                           size_t *checks, struct spec_service *to)
{
    const json_t *list = json_object_get(from, "Checks"), *check_of;
    size_t count = json_array_size(list), i;

    to->task = task;
    to->name = decoding_text(decoding, from, "Name", SPEC_SERVICE_TEXT_SIZE);
    to->port = decoding_text(decoding, from, "PortLabel", SPEC_SERVICE_TEXT_SIZE);
    to->address = decoding_text(decoding, from, "Address", SPEC_SERVICE_TEXT_SIZE);
    if (!spec_address_mode(decoding_text(decoding, from, "AddressMode", 8), &to->address_mode))
        decoding_damaged(decoding, "AddressMode", "a mode of addresses");
    const char *provider = decoding_text(decoding, from, "Provider", 8);
    to->provider = text_equal(provider, "nomad") ? PROVIDER_NOMAD : PROVIDER_CONSUL;
    if (to->provider == PROVIDER_CONSUL && !text_equal(provider, "consul"))
        decoding_damaged(decoding, "Provider", "one that this version has");
    decode_registration(decoding, from, to);
    to->identity = decoding_text(decoding, json_object_get(from, "Identity"), "Name",
                                 SPEC_SERVICE_IDENTITY_SIZE);
    to->connect = decode_connect(decoding, from);
    to->tags = decoding_texts(decoding, from, "Tags");
    to->canary_tags = decoding_texts(decoding, from, "CanaryTags");
    if (to->tags.count > SPEC_TAGS_MAX || to->canary_tags.count > SPEC_TAGS_MAX)
        decoding_damaged(decoding, "Tags", "a list of so many");
    *checks += count;
    if (*checks > SPEC_CHECKS_MAX || (list != NULL && !json_is_array(list))) {
        decoding_damaged(decoding, "Checks", "a list of so many checks");
        return;
    }
    to->checks = arena_new(&decoding->holder->arena, (count + 1) * sizeof(*to->checks));
    to->checks_count = count;
    json_array_foreach(list, i, check_of) decode_check(decoding, check_of, &to->checks[i]);
}

/* Those of FROM, the group or a task that is called TASK. */
static void decode_services_of(struct decoding *decoding, const json_t *from, const char *task,
                               size_t *checks, struct alloc_spec *spec)
{
    const json_t *list = json_object_get(from, "Services"), *service;
    size_t i;

    if ((list != NULL && !json_is_array(list)) ||
        spec->services_count + json_array_size(list) > SPEC_SERVICES_MAX) {
        decoding_damaged(decoding, "Services", "a list of services");
        return;
    }
    json_array_foreach(list, i, service)
        decode_service(decoding, service, task, checks, &spec->services[spec->services_count++]);
}

void decode_services(struct decoding *decoding, const json_t *group, struct alloc_spec *spec)
{
    const json_t *tasks = json_object_get(group, "Tasks"), *task;
    size_t count = json_array_size(json_object_get(group, "Services")), checks = 0, i;

    json_array_foreach(tasks, i, task) count += json_array_size(json_object_get(task, "Services"));
    if (count > SPEC_SERVICES_MAX || json_array_size(tasks) != spec->tasks_count) {
        decoding_damaged(decoding, "Services", "a list of services");
        return;
    }
    spec->services = arena_new(&decoding->holder->arena, (count + 1) * sizeof(*spec->services));
    decode_services_of(decoding, group, "", &checks, spec);
    json_array_foreach(tasks, i, task)
        decode_services_of(decoding, task, spec->tasks[i].name, &checks, spec);
}
