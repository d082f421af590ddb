/*
 * Hook envoy_bootstrap: the file that the sidecar's Envoy begins with, which Consul's own program
 * makes.
 *
 * `consul connect envoy -bootstrap` asks the agent for the service, which may not know it yet: it
 * is run again and again for a minute.  Each run is bounded, and ended with the task.  The token
 * that it takes comes by its environment, which other users do not see, and not, as in Nomad, by
 * its arguments, which they do; the file belongs to the task's user.
 */
#include "hooks/connect/part.h"
#include "hooks/services.h"
#include "io/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

enum {
    ADMIN_PORT = 19000, /* as Consul has it, the task's place in its group more */
    READY_PORT = 19100,
    RUN_MS = 20 * 1000,
    AGAIN_MS = 1000, /* doubled each time */
    AGAIN_ALL_MS = 60 * 1000,
    ARGUMENTS_MAX = 24,
    VARIABLES_MAX = 24,
};

static const char file_name[] = "envoy_bootstrap.json";

/* --- what is run --- */

static void add_text(json_t *list, const char *text)
{
    check(json_array_append_new(list, json_string(text)) == 0);
}

static void add_option(json_t *list, const char *option, const char *value)
{
    if (value[0] == '\0')
        return;
    add_text(list, option);
    add_text(list, value);
}

/* Copied to TO: the id with which the sidecar is registered. */
static int find_proxy(const struct hooks *hooks, const struct hook_run *asked, char to[PATH_SIZE],
                      struct err *err)
{
    const char *name = asked->task->connect_service;
    struct hooks_services *services;
    bool found = false;
    int code = hooks_services_make(hooks, asked->alloc, false, NULL, &services, err);

    if (code != 0)
        return code;
    for (size_t i = 0; i < services->count; i++) {
        const struct hooks_service *one = &services->items[i];

        if (one->spec->connect != NULL && one->spec->task[0] == '\0' &&
            (text_equal(one->name, name) || text_equal(one->spec->name, name)))
            found = text_format(to, PATH_SIZE, "%s-sidecar-proxy", one->id);
    }
    hooks_services_free(services);
    return found ? 0
                 : err_set(err, ERR_INVALID,
                           "connect proxy sidecar task exists but no services configured with a "
                           "sidecar");
}

static int grpc_address(const struct hooks *hooks, const struct hook_run *asked,
                        char to[PATH_SIZE + 8], struct err *err)
{
    static const char variable[] = "CONSUL_GRPC_ADDR";
    char path[PATH_SIZE];

    for (size_t i = 0; i < asked->task->env.count; i++) {
        if (text_equal(asked->task->env.items[i].key, variable))
            return text_copy(to, PATH_SIZE + 8, asked->task->env.items[i].value)
                       ? 0
                       : err_set(err, ERR_LIMIT, "%s is too long", variable);
    }
    int code = connect_socket_path(hooks, asked, HOOKS_GRPC_SOCKET, path, err);
    if (code == 0)
        (void)text_format(to, PATH_SIZE + 8, "unix://%s", path); /* fits */
    return code;
}

/* Which of its group it is: each Envoy of one network has ports of its own. */
static unsigned place_of(const struct hook_run *asked)
{
    unsigned place = 0;

    while (place + 1 < asked->alloc->tasks_count &&
           !text_equal(asked->alloc->tasks[place].name, asked->task->name))
        place++;
    return place;
}

/* NOMAD_ENVOY_ADMIN_ADDR_<service> and the like, as far as names of variables go. */
static void put_bind(json_t *env, const char *prefix, const char *service, const char *bind)
{
    char name[PATH_SIZE];

    (void)text_format(name, sizeof(name), "%s%s", prefix, service); /* a label of DNS */
    for (char *at = name; *at != '\0'; at++)
        *at = *at == '-' ? '_' : *at;
    check(json_object_set_new(env, name, json_string(bind)) == 0);
}

static json_t *variables_of(const struct hooks *hooks, const struct alloc_spec *alloc)
{
    char short_id[8 + 1];

    (void)text_copy(short_id, sizeof(short_id), alloc->id); /* cut on purpose */
    json_t *made = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "NOMAD_ALLOC_ID",
                             alloc->id, "NOMAD_SHORT_ALLOC_ID", short_id, "NOMAD_ALLOC_NAME",
                             alloc->name, "NOMAD_GROUP_NAME", alloc->group, "NOMAD_JOB_NAME",
                             alloc->job_name, "NOMAD_JOB_ID", alloc->job_id, "NOMAD_NAMESPACE",
                             alloc->namespace, "NOMAD_REGION", alloc->region, "CONSUL_HTTP_SSL",
                             hooks->connect->ssl ? "true" : "false", "CONSUL_HTTP_SSL_VERIFY",
                             hooks->connect->verifies ? "true" : "false");

    check(made != NULL);
    return made;
}

/* The order: arguments, the environment, and what the task is told. */
int hooks_bootstrap_begin(const struct hooks *hooks, const struct hook_run *asked, char **ret_order,
                          struct err *err)
{
    const struct hooks_connect *connect = hooks->connect;
    char proxy[PATH_SIZE], grpc[PATH_SIZE + 8], admin[32], ready[32];
    unsigned place = place_of(asked);

    if (connect == NULL)
        return err_set(err, ERR_UNSUPPORTED, "this agent has no Consul");
    int code = find_proxy(hooks, asked, proxy, err);
    if (code == 0)
        code = grpc_address(hooks, asked, grpc, err);
    if (code != 0)
        return code;
    (void)text_format(admin, sizeof(admin), "127.0.0.2:%u", ADMIN_PORT + place); /* both fit */
    (void)text_format(ready, sizeof(ready), "127.0.0.1:%u", READY_PORT + place);
    json_t *list = json_pack("[s, s]", "connect", "envoy"), *env = json_object();
    add_option(list, "-grpc-addr", grpc);
    add_option(list, "-http-addr", connect->address);
    add_option(list, "-admin-bind", admin);
    add_option(list, "-address", ready);
    add_option(list, "-proxy-id", proxy);
    add_text(list, "-bootstrap");
    add_option(list, "-grpc-ca-file", connect->grpc_ca_file);
    add_option(list, "-ca-file", connect->ca_file);
    add_option(list, "-client-cert", connect->cert_file);
    add_option(list, "-client-key", connect->key_file);
    put_bind(env, "NOMAD_ENVOY_ADMIN_ADDR_", asked->task->connect_service, admin);
    put_bind(env, "NOMAD_ENVOY_READY_ADDR_", asked->task->connect_service, ready);
    json_t *order = json_pack("{s:o, s:o, s:o}", "Arguments", list, "Variables",
                              variables_of(hooks, asked->alloc), "Env", env);
    check(order != NULL);
    *ret_order = json_dumps(order, JSON_COMPACT);
    check(*ret_order != NULL);
    json_decref(order);
    return 0;
}

/* --- one run, on the pool --- */

struct bootstrapping {
    struct hooks_asking asking;
    struct hooks *hooks;
    struct hook_request request;    /* its texts are `texts` */
    json_t *order;                  /* owned */
    char token[CONNECT_TOKEN_SIZE]; /* a secret; "": none */
    char path[PATH_SIZE];           /* of the program */
    int cancel_fd;
    struct err err; /* of the last run */
    bool failed;    /* the program has, and may not the next time */

    bool runs; /* on the pool */
    uint64_t waited_ms, after_ms;
    struct io_work work;
    struct io_timer timer;
    struct results results;
    hooks_asked *done; /* NULL: nobody waits any more */
    void *ctx;
    char *texts; /* owned */
};

static void write_arguments(const struct bootstrapping *it, char *argv[ARGUMENTS_MAX + 1])
{
    const json_t *list = json_object_get(it->order, "Arguments"), *text;
    size_t i, count = 0;

    argv[count++] = (char *)(uintptr_t) "consul";
    json_array_foreach(list, i, text)
    {
        check(count < ARGUMENTS_MAX);
        argv[count++] = (char *)(uintptr_t)json_string_value(text);
    }
    argv[count] = NULL;
}

static void write_variables(const struct bootstrapping *it, char *variables[VARIABLES_MAX + 1])
{
    json_t *value;
    const char *name;
    size_t count = 0;

    json_object_foreach(json_object_get(it->order, "Variables"), name, value)
    {
        check(count < VARIABLES_MAX - 2);
        check(asprintf(&variables[count++], "%s=%s", name, json_string_value(value)) >= 0);
    }
    check(asprintf(&variables[count++], "HOME=/nonexistent") >= 0);
    if (it->token[0] != '\0')
        check(asprintf(&variables[count++], "CONSUL_HTTP_TOKEN=%s", it->token) >= 0);
    variables[count] = NULL;
}

static void wipe_variables(char *variables[VARIABLES_MAX + 1])
{
    for (size_t i = 0; variables[i] != NULL; i++) {
        explicit_bzero(variables[i], strlen(variables[i]));
        free(variables[i]);
    }
}

/* What comes of it is a JSON object, whatever else. */
static int keep(struct bootstrapping *it, const struct program_answer *answer, struct err *err)
{
    json_t *made = json_loads(answer->output, 0, NULL);
    bool sound = json_is_object(made);

    json_decref(made);
    if (!sound)
        return err_set(err, ERR_INVALID, "consul made no JSON of it");
    return connect_write_secret(&it->request, file_name, answer->output, strlen(answer->output),
                                err);
}

static void on_pool(struct io_work *work)
{
    struct bootstrapping *it = work->ctx;
    char *argv[ARGUMENTS_MAX + 1], *variables[VARIABLES_MAX + 1];
    struct program_answer answer;

    it->err = (struct err){0};
    write_arguments(it, argv);
    write_variables(it, variables);
    const struct program_call call = {.program = it->path,
                                      .argv = argv,
                                      .environment = variables,
                                      .input = "",
                                      .lock_fd = -1,
                                      .cancel_fd = it->cancel_fd,
                                      .limit_ms = RUN_MS,
                                      .ends_with_us = true};
    int code = program_run(&call, &answer, &it->err);
    wipe_variables(variables);
    it->failed = code == ERR_TIMEOUT;
    if (code != 0)
        return;
    if (answer.status == 0) {
        (void)keep(it, &answer, &it->err); /* it fills that */
    } else {
        it->failed = true;
        (void)err_set(&it->err, ERR_REFUSED, "exit status %d: %.150s", answer.status,
                      answer.complaint);
    }
    program_close(&answer);
}

/* --- all of them --- */

static void it_free(struct bootstrapping *it)
{
    io_timer_stop(&it->timer);
    explicit_bzero(it->token, sizeof(it->token));
    if (it->cancel_fd >= 0)
        (void)close(it->cancel_fd); /* nothing was lost with it */
    json_decref(it->order);
    free(it->results.bytes);
    free(it->texts);
    free(it);
}

static void finish(struct bootstrapping *it)
{
    struct err *err = &it->err;

    if (err->code != 0) {
        bool recoverable = it->failed || err->recoverable;

        (void)err_wrap(err, "error creating bootstrap configuration for Connect proxy "
                            "sidecar"); /* only to be filled */
        err->recoverable = recoverable;
    }
    if (it->done != NULL)
        it->done(it->ctx, &it->results, err->code == 0 ? NULL : err);
    it_free(it);
}

static void run(struct io_timer *timer);

static void on_done(struct io_work *work)
{
    struct bootstrapping *it = work->ctx;

    it->runs = false;
    if (it->done == NULL) {
        it_free(it);
    } else if (it->failed && it->waited_ms < AGAIN_ALL_MS) {
        it->waited_ms += it->after_ms;
        io_timer_start(it->hooks->loop, &it->timer, loop_now_ms() + it->after_ms, run, it);
        it->after_ms *= 2;
    } else {
        finish(it);
    }
}

/* The task's own token, or the daemon's. */
static void run(struct io_timer *timer)
{
    struct bootstrapping *it = timer->ctx;
    const char *path = getenv("PATH");

    if (it->cancel_fd < 0) {
        (void)err_os(&it->err, ERR_LIMIT, EMFILE, "cannot be run");
        it->err.recoverable = true;
        finish(it);
        return;
    }
    if (!hooks_read_token(it->hooks, it->request.alloc, it->request.task, it->token))
        (void)text_copy(it->token, sizeof(it->token), it->hooks->connect->token); /* same size */
    if (!program_find(path == NULL ? "" : path, "consul", it->path)) {
        it->failed = false;
        (void)err_set(&it->err, ERR_GONE, "there is no program consul in PATH");
        finish(it);
        return;
    }
    it->runs = true;
    io_work_submit(it->hooks->loop, &it->work, on_pool, on_done, it);
}

/* What is on the pool is ended, and gone when it has. */
static void forget(struct hooks_asking *asking)
{
    struct bootstrapping *it = (struct bootstrapping *)(void *)asking;

    it->done = NULL;
    if (!it->runs)
        it_free(it);
    else
        (void)eventfd_write(it->cancel_fd, 1); /* there is room for one */
}

/* Copies of what the runs need of REQUEST, which may be gone before they are. */
static void copy_request(struct bootstrapping *it, const struct hook_request *request)
{
    size_t sizes[] = {strlen(request->alloc_dir) + 1, strlen(request->alloc) + 1,
                      strlen(request->task) + 1};
    char *at = malloc(sizes[0] + sizes[1] + sizes[2]);

    check(at != NULL);
    it->texts = at;
    it->request = (struct hook_request){.is_image = request->is_image,
                                        .privileged = request->privileged,
                                        .alloc_dir = memcpy(at, request->alloc_dir, sizes[0])};
    at += sizes[0];
    it->request.alloc = memcpy(at, request->alloc, sizes[1]);
    at += sizes[1];
    it->request.task = memcpy(at, request->task, sizes[2]);
}

static void put_results(struct bootstrapping *it)
{
    const struct hook_request request = {.results = &it->results};
    json_t *value;
    const char *name;

    it->results =
        (struct results){.bytes = calloc(1, RESULTS_BYTES_MAX), .size = RESULTS_BYTES_MAX};
    check(it->results.bytes != NULL);
    json_object_foreach(json_object_get(it->order, "Env"), name, value)
    {
        struct err err;

        check(connect_set(&request, TASK_HOOK_ENVOY_BOOTSTRAP, name, json_string_value(value),
                          &err) == 0); /* both are short */
    }
}

struct hooks_asking *hooks_bootstrap_ask(struct hooks *hooks, const struct hook_request *request,
                                         hooks_asked *done, void *ctx)
{
    struct bootstrapping *it = calloc(1, sizeof(*it));

    check(it != NULL);
    it->asking = (struct hooks_asking){.forget = forget, .abandon = forget};
    it->hooks = hooks;
    it->done = done;
    it->ctx = ctx;
    it->after_ms = AGAIN_MS;
    it->cancel_fd = eventfd(0, EFD_CLOEXEC);
    it->order = json_loads(request->order, 0, NULL);
    check(it->order != NULL); /* hooks_bootstrap_begin has made it */
    copy_request(it, request);
    put_results(it);
    io_timer_start(hooks->loop, &it->timer, loop_now_ms(), run, it);
    return &it->asking;
}
