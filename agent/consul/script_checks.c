#include "agent/consul/script_checks.h"

#include "agent/launch.h"
#include "agent/parts.h"
#include "agent/services/catalogue.h"

#include <stdlib.h>
#include <string.h>

enum {
    OUTPUT_SIZE = 4096 + 1, /* the last of it, as Nomad's executor keeps */
    AWAY_MS = 1000,         /* until a task is looked for again that does not run */
};

struct script_check {
    struct script_checks *scripts;
    char alloc[UUID_TEXT_SIZE];
    char id[CHECK_ID_SIZE];
    char *service; /* its id, owned */
    struct driver_session *session;
    struct io_timer timer; /* of the next run, or of the end of this one */
    uint64_t interval_ms, timeout_ms;
    char output[OUTPUT_SIZE];
    size_t length;
    struct script_check *next, **link;
};

struct script_checks {
    struct parts *parts;
    struct consul *consul;
    struct script_check *all;
};

static void run(struct io_timer *timer);

static void arm(struct script_check *script, uint64_t after_ms, void (*cb)(struct io_timer *timer))
{
    io_timer_start(script->scripts->parts->loop, &script->timer, loop_now_ms() + after_ms, cb,
                   script);
}

static void script_free(struct script_check *script)
{
    io_timer_stop(&script->timer);
    if (script->session != NULL)
        driver_session_end(script->session);
    *script->link = script->next;
    if (script->next != NULL)
        script->next->link = script->link;
    free(script->service);
    free(script);
}

/* --- what it says --- */

static void keep_output(struct script_check *script, const char *bytes, size_t length)
{
    size_t most = sizeof(script->output) - 1;

    if (length > most) {
        bytes += length - most;
        length = most;
    }
    if (script->length + length > most) {
        size_t drop = script->length + length - most;

        memmove(script->output, script->output + drop, script->length - drop);
        script->length -= drop;
    }
    memcpy(script->output + script->length, bytes, length);
    script->length += length;
}

/* Whatever it has written is a text from now on. */
static void make_text(struct script_check *script)
{
    bool is_text = text_is_utf8(script->output, script->length);

    for (size_t i = 0; i < script->length; i++) {
        unsigned char byte = (unsigned char)script->output[i];

        if (byte == '\0' || (byte >= 0x80 && !is_text))
            script->output[i] = '?';
    }
    script->output[script->length] = '\0';
}

static void on_output(void *ctx, bool is_stderr, const char *bytes, size_t length)
{
    (void)is_stderr; /* both, as they come */
    keep_output(ctx, bytes, length);
}

static void on_closed(void *ctx, bool is_stderr)
{
    (void)ctx;
    (void)is_stderr;
}

static void tell(struct script_check *script, enum consul_status status)
{
    make_text(script);
    consul_beat(script->scripts->consul, script->id, status, script->output);
    arm(script, script->interval_ms, run);
}

static void fail(struct script_check *script, const char *why)
{
    script->length = 0;
    keep_output(script, why, strlen(why));
    tell(script, CONSUL_CRITICAL);
}

/* --- a run --- */

static void on_end(void *ctx, int code, const struct err *err)
{
    struct script_check *script = ctx;

    script->session = NULL;
    io_timer_stop(&script->timer);
    if (err != NULL && err->code == ERR_GONE)
        arm(script, AWAY_MS, run); /* with its task: how that has ended is no news of the check */
    else if (err != NULL)
        fail(script, err->text);
    else
        tell(script, code == 0 ? CONSUL_PASSING : code == 1 ? CONSUL_WARNING : CONSUL_CRITICAL);
}

static void on_limit(struct io_timer *timer)
{
    struct script_check *script = timer->ctx;

    driver_session_end(script->session);
    script->session = NULL;
    fail(script, "the script has not ended within its timeout");
}

static const struct hooks_check *find_check(const struct script_check *script)
{
    const struct hooks_services *services =
        catalogue_of_alloc(script->scripts->parts->catalogue, script->alloc);

    for (size_t i = 0; services != NULL && i < services->count; i++) {
        for (size_t j = 0; j < services->items[i].checks_count; j++) {
            if (text_equal(services->items[i].checks[j].id, script->id))
                return &services->items[i].checks[j];
        }
    }
    return NULL;
}

/* ERR_GONE: there is nobody now whom it could be run in. */
static int begin(struct script_check *script, struct err *err)
{
    struct parts *parts = script->scripts->parts;
    const struct hooks_check *check_of = find_check(script);
    const struct task *task =
        check_of == NULL ? NULL : core_task(parts->core, script->alloc, check_of->task);
    const struct alloc_spec *alloc = specs_find(parts->specs, script->alloc, err);
    const struct task_spec *spec =
        alloc == NULL || task == NULL ? NULL : launch_task(alloc, check_of->task);
    const struct driver_session_calls calls = {
        .on_output = on_output, .on_closed = on_closed, .on_end = on_end, .ctx = script};
    const char *arguments[SPEC_SCRIPT_ARGUMENTS_MAX];
    struct launch launch;

    if (spec == NULL || task->machine.state != T_RUNNING)
        return err_set(err, ERR_GONE, "its task does not run");
    arguments[0] = check_of->command;
    for (size_t i = 0; i < check_of->arguments.count; i++)
        arguments[i + 1] = check_of->arguments.items[i];
    int code = launch_open(parts, alloc, spec, task, &launch, err);
    if (code != 0)
        return code;
    script->session = driver_session_new(parts->drivers, &launch.start, arguments,
                                         check_of->arguments.count + 1, false, &calls, err);
    launch_close(&launch);
    if (script->session == NULL)
        return err->code;
    driver_session_close_input(script->session);
    return 0;
}

static void run(struct io_timer *timer)
{
    struct script_check *script = timer->ctx;
    struct err err = {0};

    script->length = 0;
    int code = begin(script, &err);
    if (code == 0)
        arm(script, script->timeout_ms, on_limit);
    else if (code == ERR_GONE)
        arm(script, AWAY_MS, run);
    else
        fail(script, err.text);
}

/* --- the door --- */

struct script_checks *script_checks_new(struct parts *parts, struct consul *consul)
{
    struct script_checks *scripts = calloc(1, sizeof(*scripts));

    check(scripts != NULL);
    scripts->parts = parts;
    scripts->consul = consul;
    return scripts;
}

void script_checks_free(struct script_checks *scripts)
{
    if (scripts == NULL)
        return;
    while (scripts->all != NULL)
        script_free(scripts->all);
    free(scripts);
}

static struct script_check *find(const struct script_checks *scripts, const char *alloc,
                                 const char *id)
{
    struct script_check *script = scripts->all;

    while (script != NULL && !(text_equal(script->id, id) && text_equal(script->alloc, alloc)))
        script = script->next;
    return script;
}

static void add(struct script_checks *scripts, const char *alloc, const char *service,
                const struct hooks_check *of)
{
    struct script_check *script = calloc(1, sizeof(*script));

    check(script != NULL);
    *script = (struct script_check){.scripts = scripts,
                                    .service = strdup(service),
                                    .interval_ms = of->spec->interval_ms,
                                    .timeout_ms = of->spec->timeout_ms,
                                    .next = scripts->all,
                                    .link = &scripts->all};
    check(script->service != NULL && text_copy(script->alloc, sizeof(script->alloc), alloc) &&
          text_copy(script->id, sizeof(script->id), of->id));
    if (script->next != NULL)
        script->next->link = &script->next;
    scripts->all = script;
    arm(script, 0, run);
}

/* Those of the service ID, but what SERVICE, if it is one, still has. */
static void drop(struct script_checks *scripts, const char *alloc, const char *id,
                 const struct hooks_service *service)
{
    struct script_check *next;

    for (struct script_check *script = scripts->all; script != NULL; script = next) {
        bool stays = false;

        next = script->next;
        if (!text_equal(script->service, id) || !text_equal(script->alloc, alloc))
            continue;
        for (size_t i = 0; service != NULL && i < service->checks_count; i++)
            stays |= text_equal(service->checks[i].id, script->id);
        if (!stays)
            script_free(script);
    }
}

void script_checks_begin(struct script_checks *scripts, const char *alloc,
                         const struct hooks_service *service)
{
    drop(scripts, alloc, service->id, service);
    for (size_t i = 0; i < service->checks_count; i++) {
        const struct hooks_check *one = &service->checks[i];

        if (one->spec->type == CHECK_SCRIPT && find(scripts, alloc, one->id) == NULL)
            add(scripts, alloc, service->id, one);
    }
}

void script_checks_end(struct script_checks *scripts, const char *alloc, const char *service)
{
    drop(scripts, alloc, service, NULL);
}
