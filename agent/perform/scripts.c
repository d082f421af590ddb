/*
 * Scripts of templates that changed: commands in the task, bounded in time.
 *
 * A script is a session (drivers/drivers.h) without input, whose output nobody keeps; so it ends
 * with the task and with the daemon, whose next life runs one again that had not ended.  What users
 * read of it is in the words of nomad v2.0.5 client/allocrunner/taskrunner/template processScript.
 */
#include "agent/perform/scripts.h"

#include "agent/launch.h"
#include "agent/perform/calls.h"
#include "io/log.h"

#include <stdlib.h>
#include <string.h>

struct script {
    struct perform_call *call;
    struct driver_session *session;
    struct io_timer limit;
    bool fails_task;
    char words[DESCRIPTION_SIZE]; /* "PATH with arguments [A B]" */
    char plain[DESCRIPTION_SIZE]; /* "PATH with arguments: [A B]" */
    struct script *next, **link;
};

static void script_free(struct script *script)
{
    io_timer_stop(&script->limit);
    *script->link = script->next;
    if (script->next != NULL)
        script->next->link = script->link;
    free(script);
}

/* SAID is for users, "": nothing. */
static void finish(struct script *script, int code, const char *said)
{
    struct failure result = {.code = code, .recoverable = !script->fails_task};

    (void)text_copy(result.text, sizeof(result.text), said); /* cut if too long */
    if (code == ERR_GONE)
        result.recoverable = true; /* how the task ended decides */
    if (code != 0)
        log_warn("templates", "a change script failed task=%s reason=%s", script->call->id.text,
                 log_value(said));
    perform_call_end(script->call, TE_SCRIPTED, &result);
    script_free(script);
}

static void fail(struct script *script, int code, const char *why)
{
    char said[2 * DESCRIPTION_SIZE];

    (void)text_format(said, sizeof(said),
                      "Template failed to run script %s on change: %s. Exit code: 0", script->words,
                      why); /* cut if too long */
    finish(script, code, said);
}

/* --- the session --- */

static void on_output(void *ctx, bool is_stderr, const char *bytes, size_t length)
{
    (void)ctx; /* nobody reads it */
    (void)is_stderr;
    (void)bytes;
    (void)length;
}

static void on_closed(void *ctx, bool is_stderr)
{
    (void)ctx;
    (void)is_stderr;
}

static void on_end(void *ctx, int code, const struct err *err)
{
    struct script *script = ctx;
    char said[2 * DESCRIPTION_SIZE];

    script->session = NULL;
    if (err != NULL && err->code == ERR_GONE) {
        finish(script, ERR_GONE, "");
        return;
    }
    if (err != NULL) {
        fail(script, err->code, err->text);
        return;
    }
    if (code == 0)
        (void)text_format(said, sizeof(said), "Template successfully ran script %s. Exit code: 0",
                          script->plain); /* cut if too long, as below */
    else
        (void)text_format(said, sizeof(said),
                          "Template ran script %s on change but it exited with code: %d",
                          script->words, code);
    finish(script, code == 0 ? 0 : ERR_INVALID, said);
}

static void on_limit(struct io_timer *timer)
{
    struct script *script = timer->ctx;

    driver_session_end(script->session);
    script->session = NULL;
    fail(script, ERR_TIMEOUT, "context deadline exceeded");
}

/* --- its beginning --- */

static const struct spec_script *find_script(const struct task_spec *task, unsigned number)
{
    for (size_t i = 0; i < task->templates_count; i++) {
        const struct spec_template *template = &task->templates[i];

        if (template->change == SPEC_CHANGE_SCRIPT && template->script.number == number)
            return &template->script;
    }
    return NULL;
}

static void put_words(struct script *script, const struct spec_script *spec)
{
    char list[DESCRIPTION_SIZE] = "";

    for (size_t i = 0; i < spec->arguments.count; i++) {
        (void)text_append(list, sizeof(list), i == 0 ? "" : " "); /* cut if too long */
        (void)text_append(list, sizeof(list), spec->arguments.items[i]);
    }
    (void)text_format(script->words, sizeof(script->words), "%s with arguments [%s]", spec->command,
                      list);
    (void)text_format(script->plain, sizeof(script->plain), "%s with arguments: [%s]",
                      spec->command, list);
}

/* Fills SCRIPT's session; what is asked for may be gone by now. */
static int begin(struct script *script, const struct effect *effect, struct err *err)
{
    struct parts *parts = script->call->parts;
    const struct task *task = task_of(effect->record);
    struct machine_id owner = machine_id_owner(&effect->id);
    const struct alloc_spec *alloc = specs_find(parts->specs, owner.text, err);
    const struct task_spec *spec =
        alloc == NULL ? NULL : launch_task(alloc, machine_id_name(&effect->id));
    const struct spec_script *wanted =
        spec == NULL || task->script == 0 ? NULL : find_script(spec, task->script - 1u);
    const char *arguments[SPEC_SCRIPT_ARGUMENTS_MAX];
    const struct driver_session_calls calls = {
        .on_output = on_output, .on_closed = on_closed, .on_end = on_end, .ctx = script};
    struct launch launch;

    if (wanted == NULL)
        return err_set(err, ERR_GONE, "the specification has no such script");
    put_words(script, wanted);
    script->fails_task = wanted->fails_task;
    arguments[0] = wanted->command;
    for (size_t i = 0; i < wanted->arguments.count; i++)
        arguments[i + 1] = wanted->arguments.items[i];
    int code = launch_open(parts, alloc, spec, task, &launch, err);
    if (code != 0)
        return code;
    script->session = driver_session_new(parts->drivers, &launch.start, arguments,
                                         wanted->arguments.count + 1, false, &calls, err);
    launch_close(&launch);
    if (script->session == NULL)
        return err->code;
    io_timer_start(parts->loop, &script->limit, loop_now_ms() + wanted->timeout_ms, on_limit,
                   script);
    driver_session_close_input(script->session);
    return 0;
}

void scripts_perform(struct parts *parts, const struct effect *effect)
{
    struct script *script = calloc(1, sizeof(*script));
    struct err err = {0};

    check(script != NULL);
    script->call = perform_call_new(parts, effect);
    script->next = parts->scripts;
    script->link = &parts->scripts;
    if (script->next != NULL)
        script->next->link = &script->next;
    parts->scripts = script;
    int code = begin(script, effect, &err);
    if (code == ERR_GONE)
        finish(script, ERR_GONE, "");
    else if (code != 0)
        fail(script, code, err.text);
}

void scripts_forget(struct parts *parts)
{
    while (parts->scripts != NULL) {
        struct script *script = parts->scripts;

        if (script->session != NULL)
            driver_session_end(script->session);
        script_free(script);
    }
}
