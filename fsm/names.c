/* The texts of enums, each from the list that made the enum. */
#include "fsm/alloc.h"
#include "fsm/task.h"

#include "base/quote.h"

#include <string.h>

const char *task_event_type_name(unsigned type)
{
    static const char *const names[TASK_EVENT_TYPE_COUNT] = {[TASK_EVENT_NONE] = "",
#define X(name, text) [TASK_EVENT_##name] = text,
                                                             TASK_EVENT_TYPES(X)
#undef X
    };
    return type < TASK_EVENT_TYPE_COUNT ? names[type] : "?";
}

_Static_assert((int)TASK_HOOK_COUNT <= (int)HOOK_NONE, "a hook fits its mask");
_Static_assert((int)ALLOC_HOOK_COUNT <= (int)HOOK_NONE, "a hook fits its mask");

const char *task_hook_name(unsigned hook)
{
    static const char *const names[TASK_HOOK_COUNT] = {
#define X(name, text) [TASK_HOOK_##name] = text,
        TASK_HOOKS(X)
#undef X
    };
    return hook < TASK_HOOK_COUNT ? names[hook] : "none";
}

const char *alloc_hook_name(unsigned hook)
{
    static const char *const names[ALLOC_HOOK_COUNT] = {
#define X(name, text) [ALLOC_HOOK_##name] = text,
        ALLOC_HOOKS(X)
#undef X
    };
    return hook < ALLOC_HOOK_COUNT ? names[hook] : "none";
}

const char *hook_phase_name(unsigned phase)
{
    static const char *const names[PHASE_COUNT] = {
#define X(name, text) [PHASE_##name] = text,
        HOOK_PHASES(X)
#undef X
    };
    return phase < PHASE_COUNT ? names[phase] : "?";
}

const char *client_status_name(enum client_status status)
{
    switch (status) {
    case CLIENT_PENDING:
        return "pending";
    case CLIENT_RUNNING:
        return "running";
    case CLIENT_COMPLETE:
        return "complete";
    case CLIENT_FAILED:
        return "failed";
    }
    return "?";
}

/* TEXT in quotes, as Go's %q has it; what does not fit is cut. */
static void append_quoted(char *to, size_t size, const char *text)
{
    static const char controls[] = "\a\b\f\n\r\t\v", letters[] = "abfnrtv";
    bool fits = text_append(to, size, "\"");

    while (*text != '\0' && fits) {
        const char *control = strchr(controls, *text);
        const char escaped[] = {'\\', control == NULL ? 'x' : letters[control - controls], '\0'};
        char part[TASK_EVENT_TEXT_SIZE];
        size_t length = 0;

        while (text[length] != '\0' && strchr(controls, text[length]) == NULL &&
               length < sizeof(part) - 1)
            length++;
        memcpy(part, text, length);
        part[length] = '\0';
        fits = control != NULL ? text_append(to, size, escaped)
                               : text_append_clean(to, size, part, "\"\\");
        text += control != NULL ? 1 : length;
    }
    (void)text_append(to, size, "\"");
}

/* "Exit Code: 137, Signal: 9, Exit Message: \"...\"" */
static void terminated_message(const struct task_event *event, char *to, size_t size)
{
    char part[32];

    (void)text_format(to, size, "Exit Code: %lld", (long long)event->number);
    if (event->signal != 0) {
        (void)text_format(part, sizeof(part), ", Signal: %d", (int)event->signal);
        (void)text_append(to, size, part);
    }
    if (event->text[0] != '\0') {
        (void)text_append(to, size, ", Exit Message: ");
        append_quoted(to, size, event->text);
    }
}

static void duration_message(const char *before, int64_t ns, const char *after, char *to,
                             size_t size)
{
    char duration[48];

    text_from_duration_ns(duration, sizeof(duration), ns);
    (void)text_format(to, size, "%s%s%s", before, duration, after);
}

static void restarting_message(const struct task_event *event, char *to, size_t size)
{
    char before[TASK_EVENT_TEXT_SIZE + 32] = "";

    if (event->text[0] != '\0' && !text_equal(event->text, "Restart within policy"))
        (void)text_format(before, sizeof(before), "%s - ", event->text);
    (void)text_append(before, sizeof(before), "Task restarting in ");
    duration_message(before, event->number, "", to, size);
}

static void killing_message(const struct task_event *event, char *to, size_t size)
{
    if (event->text[0] != '\0')
        (void)text_copy(to, size, event->text);
    else if (event->number > 0)
        duration_message("Sent interrupt. Waiting ", event->number, " before force killing", to,
                         size);
    else
        (void)text_copy(to, size, "Sent interrupt");
}

/* What an event says whatever its text is, or where it has none. */
static const struct {
    const char *always, *otherwise;
} messages[TASK_EVENT_TYPE_COUNT] = {
    [TASK_EVENT_RECEIVED] = {.always = "Task received by client"},
    [TASK_EVENT_RECONNECTED] = {.always = "Client reconnected"},
    [TASK_EVENT_STARTED] = {.always = "Task started by client"},
    [TASK_EVENT_LEADER_DEAD] = {.always = "Leader Task in Group dead"},
    [TASK_EVENT_MAIN_DEAD] = {.always = "Main tasks in the group died"},
    [TASK_EVENT_RESTORE_FAILED] = {.always = "failed to restore task; will not run until server is "
                                             "contacted"},
    [TASK_EVENT_DOWNLOADING] = {.always = "Client is downloading artifacts"},
    [TASK_EVENT_DOWNLOAD_FAILED] = {.otherwise = "Failed to download artifacts"},
    [TASK_EVENT_SETUP_FAILURE] = {.otherwise = "Task setup failed"},
    [TASK_EVENT_FAILED_VALIDATION] = {.otherwise = "Validation of task failed"},
    [TASK_EVENT_DRIVER_FAILURE] = {.otherwise = "Failed to start task"},
    [TASK_EVENT_NOT_RESTARTING] = {.otherwise = "Task exceeded restart policy"},
    [TASK_EVENT_KILLED] = {.otherwise = "Task successfully killed"},
    [TASK_EVENT_SIGNALING] = {.always = "Task being sent a signal"}, /* Details say which */
    [TASK_EVENT_RESTART_SIGNALED] = {.otherwise = "Task signaled to restart"},
};

void task_event_message(const struct task_event *event, char *to, size_t size)
{
    check(event->type < TASK_EVENT_TYPE_COUNT);
    const char *text = messages[event->type].always;

    if (text == NULL)
        text = event->text[0] != '\0' ? event->text : messages[event->type].otherwise;
    if (event->type == TASK_EVENT_TERMINATED)
        terminated_message(event, to, size);
    else if (event->type == TASK_EVENT_RESTARTING)
        restarting_message(event, to, size);
    else if (event->type == TASK_EVENT_KILLING)
        killing_message(event, to, size);
    else if (event->type == TASK_EVENT_SIGNALING && event->number != SIGNALED_BY_USER)
        (void)text_copy(to, size,
                        event->number == SIGNALED_BY_IDENTITY ? "New identity token acquired"
                                                              : "Template re-rendered");
    else if (event->type == TASK_EVENT_SIBLING_FAILED)
        (void)text_format(to, size, "Task's sibling \"%s\" failed", event->text);
    else if (event->type == TASK_EVENT_SHUTDOWN_DELAY)
        duration_message("Waiting for shutdown_delay of ", event->number,
                         " before killing the task.", to, size);
    else if (event->type == TASK_EVENT_SKIPPING_DELAY)
        duration_message("Skipping shutdown_delay of ", event->number, " before killing the task.",
                         to, size);
    else
        (void)text_copy(to, size, text); /* NULL counts as "" */
}
