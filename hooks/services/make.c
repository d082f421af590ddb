/*
 * Services as they are registered, and what is asked of them.
 *
 * Names, tags, ports and addresses are interpolated, and of checks all but bodies and names of
 * servers: nomad v2.0.5 client/taskenv/services.go.  A group's services are so with what can be
 * said of the alloc, a task's with that of the task, also in its checks, which Nomad interpolates
 * as if they were the group's.
 */
#include "hooks/services/part.h"

#include "hooks/env/env.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 4096 };

_Static_assert(CHECK_OUTPUT_SIZE - 1 == (int)WIRE_OUTPUT_MAX, "what may be said may be kept");

static const char waiting[] = "nomad: waiting to run";

struct making {
    const struct hooks *hooks;
    const struct alloc_spec *alloc;
    const json_t *network;
    bool canary;
    struct services_made *made;
    const char *env_of; /* whose the environment is, "": the group's; NULL: none is built */
    struct arena env_arena;
    struct hooks_env env;
    struct hooks_names names;
    uint8_t checks_count; /* of all so far */
    struct err *err;
};

/* --- interpolation --- */

static const struct task_spec *find_task(const struct alloc_spec *alloc, const char *name)
{
    for (size_t i = 0; i < alloc->tasks_count; i++) {
        if (text_equal(alloc->tasks[i].name, name))
            return &alloc->tasks[i];
    }
    return NULL;
}

/* The environment of TASK, "": of the group. */
static int enter(struct making *making, const char *task)
{
    const struct task_spec *spec = find_task(making->alloc, task);

    if (making->env_of != NULL && text_equal(making->env_of, task))
        return 0;
    if (task[0] != '\0' && spec == NULL)
        return err_set(making->err, ERR_INVALID, "there is no task \"%.64s\"", task);
    arena_free(&making->env_arena);
    making->env = (struct hooks_env){.arena = &making->env_arena};
    making->env_of = task;
    return spec == NULL ? hooks_env_build_alloc(making->hooks, making->alloc, making->network,
                                                &making->env, making->err)
                        : hooks_env_build_task(making->hooks, making->alloc, spec, making->network,
                                               &making->env, making->err);
}

/* In the arena of what is made: the environment goes, and what it lent with it. */
static int expand(struct making *making, const char *text, const char **ret_text)
{
    int code = hooks_expand_plain(&making->names, &making->made->arena, text, TEXT_BYTES_MAX,
                                  ret_text, making->err);

    if (code == 0 && !text_is_utf8(*ret_text, strlen(*ret_text))) /* a variable of the host's */
        code = err_set(making->err, ERR_INVALID, "what is interpolated in it is no text");
    return code;
}

static int expand_all(struct making *making, const struct spec_texts *from, struct spec_texts *to)
{
    int code = 0;

    to->count = from->count;
    to->items =
        from->count == 0 ? NULL : arena_new(&making->made->arena, from->count * sizeof(*to->items));
    for (size_t i = 0; code == 0 && i < from->count; i++)
        code = expand(making, from->items[i], &to->items[i]);
    return code;
}

/* --- one check --- */

static bool is_one_line(const char *text)
{
    return strpbrk(text, "\r\n") == NULL;
}

static int expand_headers(struct making *making, const struct spec_pairs *headers, json_t *to)
{
    for (size_t i = 0; i < headers->count; i++) {
        const char *name, *value;
        int code = expand(making, headers->items[i].key, &name);

        if (code == 0)
            code = expand(making, headers->items[i].value, &value);
        if (code != 0)
            return code;
        if (!is_one_line(name) || !is_one_line(value) || *name == '\0' || strchr(name, ':') != NULL)
            return err_set(making->err, ERR_INVALID, "its header \"%.64s\" is none", name);
        check(json_array_append_new(to, json_pack("[s, s]", name, value)) == 0);
    }
    return 0;
}

static bool is_method(const char *text)
{
    return text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-")] == '\0';
}

/* What is run in a task knows what that one is told. */
static int expand_script(struct making *making, const struct spec_check *spec,
                         struct check_texts *texts)
{
    const char *before = making->env_of;
    int code = enter(making, spec->task);

    if (code == 0)
        code = expand(making, spec->command, &texts->command);
    if (code == 0)
        code = expand_all(making, &spec->arguments, &texts->arguments);
    return code == 0 ? enter(making, before) : code;
}

/* What only checks of Consul have. */
static int expand_of_consul(struct making *making, const struct spec_check *spec,
                            struct check_texts *texts)
{
    int code = expand(making, spec->grpc_service, &texts->grpc_service);

    if (code == 0)
        code = expand(making, spec->initial_status, &texts->initial_status);
    if (code == 0)
        code = expand(making, spec->notes, &texts->notes);
    if (code == 0 && spec->type == CHECK_SCRIPT)
        code = expand_script(making, spec, texts);
    return code;
}

static int expand_check(struct making *making, const struct spec_check *spec,
                        struct check_texts *texts)
{
    const struct {
        const char *from, **to;
    } all[] = {{spec->name, &texts->name},
               {spec->port, &texts->port},
               {spec->path, &texts->path},
               {spec->method, &texts->method},
               {spec->protocol, &texts->protocol}};
    int code = 0;

    for (size_t i = 0; code == 0 && i < COUNT_OF(all); i++)
        code = expand(making, all[i].from, all[i].to);
    if (code == 0)
        code = expand_headers(making, &spec->headers, texts->headers);
    if (code == 0 && !is_method(texts->method))
        code = err_set(making->err, ERR_INVALID, "its method \"%.32s\" is none", texts->method);
    return code;
}

/* With a slash between them, whatever is behind it. */
static const char *join(struct arena *arena, const char *authority, const char *service)
{
    size_t size = strlen(authority) + strlen(service) + 2;
    char *text = arena_new(arena, size);

    (void)text_format(text, size, "%s/%s", authority, service); /* made to fit */
    return text;
}

/* Its own port and mode before those of its service; nobody asks without a port. */
static int find_target(struct making *making, const struct hooks_service *service,
                       const struct services_wanted *of_service, const struct check_texts *texts,
                       const struct spec_check *spec, const char **ret_target)
{
    struct services_wanted wanted = *of_service;
    struct arena *arena = &making->made->arena;
    struct services_place place;
    char *url;

    wanted.mode = spec->has_address_mode   ? spec->address_mode
                  : *wanted.custom != '\0' ? ADDRESS_AUTO
                                           : ADDRESS_HOST;
    *ret_target = "";
    if (spec->type == CHECK_SCRIPT)
        return 0;
    if (texts->port[0] != '\0')
        wanted.port = texts->port;
    int code = services_address(&wanted, &place, making->err);
    if (code != 0)
        return code;
    if (place.port == 0)
        return err_set(making->err, ERR_INVALID, "neither it nor service \"%s\" has a port",
                       service->name);
    if (wanted.mode == ADDRESS_ALLOC && making->network == NULL)
        return 0; /* not yet */
    if (place.address[0] == '\0')
        place.address = "127.0.0.1"; /* a node that does not know its own */
    const char *authority = services_authority(arena, &place);
    *ret_target = authority;
    if (spec->type == CHECK_TCP)
        return 0;
    if (spec->type == CHECK_GRPC) {
        *ret_target = join(arena, authority, texts->grpc_service);
        return 0;
    }
    const char *protocol = texts->protocol[0] == '\0' ? "http" : texts->protocol;
    if (!text_equal(protocol, "http") && !text_equal(protocol, "https"))
        return err_set(making->err, ERR_INVALID,
                       "its protocol \"%.32s\" is not \"http\" or "
                       "\"https\"",
                       protocol);
    code = services_url(arena, protocol, authority, texts->path, &url, making->err);
    if (code == 0)
        *ret_target = url;
    return code;
}

/* What the process is told of CHECK, which is whole but for that. */
static int write_order(struct making *making, const struct hooks_check *check_made,
                       const struct check_texts *texts)
{
    const struct spec_check *spec = check_made->spec;
    struct services_order *to = &making->made->orders[check_made->number];
    uint64_t timeout_ms =
        spec->timeout_ms < WIRE_TIMEOUT_MS_MAX ? spec->timeout_ms : WIRE_TIMEOUT_MS_MAX;
    json_t *order =
        json_pack("{s:s, s:I}", "target", check_made->target, "timeout_ms", (json_int_t)timeout_ms);

    if (check_made->target[0] == '\0') {
        json_decref(order);
        return 0;
    }
    if (order != NULL && spec->type == CHECK_HTTP) {
        json_t *more = json_pack(
            "{s:s, s:O, s:s, s:b}", "method", texts->method[0] == '\0' ? "GET" : texts->method,
            "headers", texts->headers, "body", spec->body, "insecure", spec->tls_skip_verify);
        check(more != NULL && json_object_update(order, more) == 0); /* all of it is UTF-8 */
        json_decref(more);
    }
    check(order != NULL);
    char *text = json_dumps(order, JSON_COMPACT);
    check(text != NULL);
    to->length = strlen(text);
    to->text = arena_copy(&making->made->arena, text, to->length);
    free(text);
    json_decref(order);
    if (to->length > WIRE_ORDER_MAX - WIRE_NUMBER)
        return err_set(making->err, ERR_LIMIT, "its body and headers are longer than %d bytes",
                       WIRE_ORDER_MAX - WIRE_NUMBER);
    return 0;
}

static void make_for_consul(struct hooks_service *service, const struct check_texts *texts,
                            struct hooks_check *to)
{
    services_consul_check_id(service->id, to->spec, texts, to->id);
    if (service->registration == NULL)
        return;
    if (to->target[0] == '\0' && to->spec->type != CHECK_SCRIPT) {
        json_decref(service->registration); /* it waits until all of it is known */
        service->registration = NULL;
    } else {
        services_register_check(service->registration, to, texts);
    }
}

static int make_for_process(struct making *making, const struct check_texts *texts,
                            struct hooks_check *to)
{
    const struct services_identity identity = {
        .spec = to->spec,
        .texts = texts,
        .alloc = making->alloc->id,
        .group = making->alloc->group,
        .task = to->task,
    };

    services_check_id(&identity, to->id);
    return write_order(making, to, texts);
}

static int make_check(struct making *making, struct hooks_service *service,
                      const struct services_wanted *wanted, const struct spec_check *spec,
                      struct hooks_check *to)
{
    struct check_texts texts = {.name = "", .command = "", .headers = json_array()};

    check(texts.headers != NULL && making->checks_count < SPEC_CHECKS_MAX);
    to->spec = spec;
    to->number = making->checks_count++;
    hooks_check_say(to, waiting);
    int code = expand_check(making, spec, &texts);
    if (code == 0 && service->spec->provider == PROVIDER_CONSUL)
        code = expand_of_consul(making, spec, &texts);
    if (code == 0)
        code = find_target(making, service, wanted, &texts, spec, &to->target);
    to->name = texts.name;
    to->task = spec->task[0] != '\0' ? spec->task : service->spec->task;
    to->command = texts.command;
    to->arguments = texts.arguments;
    if (code == 0 && service->spec->provider == PROVIDER_CONSUL)
        make_for_consul(service, &texts, to);
    else if (code == 0)
        code = make_for_process(making, &texts, to);
    json_decref(texts.headers);
    return code == 0 ? 0
                     : err_wrap(making->err, "check \"%.40s\" of service \"%.63s\"", texts.name,
                                service->name);
}

/* --- one service --- */

/* A label of DNS: RFC 1123, as Nomad has it. */
static bool is_service_name(const char *name)
{
    static const char ends[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    size_t length = strlen(name);

    if (length == 0 || length >= SPEC_SERVICE_NAME_SIZE || name[0] == '-' ||
        name[length - 1] == '-')
        return false;
    for (size_t i = 0; i < length; i++) {
        if (strchr(ends, name[i]) == NULL && name[i] != '-')
            return false;
    }
    return true;
}

static const char *id_of(struct making *making, const struct hooks_service *service,
                         const char *port)
{
    const char *task = service->spec->task;
    bool of_group = task[0] == '\0';
    const char *owner = of_group ? making->alloc->group : task;
    size_t size = sizeof("_nomad-task--group---") + strlen(making->alloc->id) + strlen(owner) +
                  strlen(service->name) + strlen(port);
    char *id = arena_new(&making->made->arena, size);

    (void)text_format(id, size, "_nomad-task-%s-%s%s-%s-%s", making->alloc->id,
                      of_group ? "group-" : "", owner, service->name, port); /* made to fit */
    return id;
}

static int make_checks(struct making *making, const struct services_wanted *wanted,
                       struct hooks_service *service)
{
    const struct spec_service *spec = service->spec;
    int code = 0;

    if (spec->checks_count > 0)
        service->checks =
            arena_new(&making->made->arena, spec->checks_count * sizeof(*service->checks));
    for (size_t i = 0; code == 0 && i < spec->checks_count; i++) {
        service->checks_count = i + 1;
        code = make_check(making, service, wanted, &spec->checks[i], &service->checks[i]);
    }
    return code;
}

static int expand_service(struct making *making, const struct spec_service *spec,
                          struct services_wanted *wanted, struct hooks_service *to)
{
    bool of_canary = making->canary && spec->canary_tags.count > 0;
    int code = enter(making, spec->task);

    if (code == 0)
        code = expand(making, spec->name, &to->name);
    if (code == 0 && !is_service_name(to->name))
        return err_set(making->err, ERR_INVALID,
                       "service name \"%.80s\" must be a label of DNS: letters, digits and dashes "
                       "between them, %d at most",
                       to->name, SPEC_SERVICE_NAME_SIZE - 1);
    if (code == 0)
        code = expand(making, spec->port, &wanted->port);
    if (code == 0)
        code = expand(making, spec->address, &wanted->custom);
    if (code == 0)
        code = expand_all(making, of_canary ? &spec->canary_tags : &spec->tags, &to->tags);
    return code == 0 ? 0 : err_wrap(making->err, "service \"%.80s\"", spec->name);
}

static int expand_text(void *ctx, const char *text, const char **ret_text)
{
    return expand(ctx, text, ret_text);
}

static int begin_registration(struct making *making, struct hooks_service *service)
{
    const struct spec_service *spec = service->spec;
    bool of_canary = making->canary && spec->canary_meta.count > 0;
    const struct spec_pairs *from = of_canary ? &spec->canary_meta : &spec->meta;
    struct spec_pairs meta = {.count = from->count};
    int code = 0;

    meta.items = arena_new(&making->made->arena, (from->count + 1) * sizeof(*meta.items));
    for (size_t i = 0; code == 0 && i < from->count; i++) {
        code = expand(making, from->items[i].key, &meta.items[i].key);
        if (code == 0)
            code = expand(making, from->items[i].value, &meta.items[i].value);
    }
    if (code != 0)
        return err_wrap(making->err, "meta of service \"%.63s\"", service->name);
    service->registration = services_registration(service, &meta, making->hooks->node->id);
    code = services_register_connect(making->alloc, service, expand_text, making, making->err);
    return code == 0 ? 0 : err_wrap(making->err, "connect of service \"%.63s\"", service->name);
}

static int make_service(struct making *making, const struct spec_service *spec,
                        struct hooks_service *to)
{
    struct services_wanted wanted = {
        .hooks = making->hooks,
        .alloc = making->alloc,
        .network = making->network,
        .task = spec->task,
        .mode = spec->address_mode,
    };
    struct services_place place;

    to->spec = spec;
    to->name = spec->name;
    int code = expand_service(making, spec, &wanted, to);
    if (code != 0)
        return code;
    if (services_address(&wanted, &place, making->err) != 0)
        return err_wrap(making->err, "unable to get address for service \"%s\"", to->name);
    to->address = place.address[0] == '\0'
                      ? ""
                      : arena_text(&making->made->arena, place.address); /* of whomever it was */
    to->port = place.port;
    to->id = id_of(making, to, wanted.port);
    bool waits = spec->address_mode == ADDRESS_ALLOC && making->network == NULL;
    if (spec->provider == PROVIDER_CONSUL && !waits) {
        code = begin_registration(making, to);
        if (code != 0)
            return code;
    }
    return make_checks(making, &wanted, to);
}

/* --- all of them --- */

int hooks_services_make(const struct hooks *hooks, const struct alloc_spec *alloc, bool canary,
                        const json_t *network, struct hooks_services **ret_services,
                        struct err *err)
{
    struct services_made *made = calloc(1, sizeof(*made));
    struct making making = {
        .hooks = hooks,
        .alloc = alloc,
        .network = network,
        .canary = canary,
        .made = made,
        .err = err,
    };
    int code = 0;

    check(made != NULL);
    making.names = (struct hooks_names){.node = hooks->node, .env = &making.env};
    if (alloc->services_count > 0)
        made->shown.items =
            arena_new(&made->arena, alloc->services_count * sizeof(*made->shown.items));
    for (size_t i = 0; code == 0 && i < alloc->services_count; i++) {
        made->shown.count = i + 1;
        code = make_service(&making, &alloc->services[i], &made->shown.items[i]);
    }
    arena_free(&making.env_arena);
    if (code != 0) {
        hooks_services_free(&made->shown);
        return code;
    }
    *ret_services = &made->shown;
    return 0;
}

void hooks_services_free(struct hooks_services *services)
{
    struct services_made *made = (struct services_made *)(void *)services;

    if (services == NULL)
        return;
    for (size_t i = 0; i < services->count; i++) {
        json_decref(services->items[i].registration);
        for (size_t j = 0; j < services->items[i].checks_count; j++)
            free(services->items[i].checks[j].output);
    }
    arena_free(&made->arena);
    free(made);
}

void hooks_check_say(struct hooks_check *to, const char *output)
{
    size_t length = strlen(output);
    size_t size = length < CHECK_OUTPUT_SIZE ? length + 1 : CHECK_OUTPUT_SIZE;
    char *text = malloc(size);

    check(text != NULL);
    (void)text_copy(text, size, output); /* cut is enough */
    free(to->output);
    to->output = text;
}

int hooks_services_validate(const struct hook_request *request, struct err *err)
{
    struct hooks_services *services;
    int code =
        hooks_services_make(request->hooks, request->asked->alloc, false, NULL, &services, err);

    if (code == 0)
        hooks_services_free(services);
    return code;
}
