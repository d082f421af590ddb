/* The texts of enums, each from the list that made the enum. */
#include "fsm/alloc.h"
#include "fsm/task.h"

const char *task_event_type_name(unsigned type)
{
    static const char *const names[TASK_EVENT_TYPE_COUNT] = {[TASK_EVENT_NONE] = "",
#define X(name, text) [TASK_EVENT_##name] = text,
                                                             TASK_EVENT_TYPES(X)
#undef X
    };
    return type < TASK_EVENT_TYPE_COUNT ? names[type] : "?";
}

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

/* "Exit Code: 137, Signal: 9, Exit Message: \"...\"" */
static void terminated_message(const struct task_event *event, char *to, size_t size)
{
    char part[TASK_EVENT_TEXT_SIZE + 32];

    (void)text_format(to, size, "Exit Code: %lld", (long long)event->number);
    if (event->signal != 0) {
        (void)text_format(part, sizeof(part), ", Signal: %d", (int)event->signal);
        (void)text_append(to, size, part);
    }
    if (event->text[0] != '\0') {
        (void)text_format(part, sizeof(part), ", Exit Message: \"%s\"", event->text);
        (void)text_append(to, size, part);
    }
}

static void duration_message(const char *before, int64_t ns, const char *after, char *to,
                             size_t size)
{
    char duration[48];

    text_from_duration_ns(duration, sizeof(duration), ns);
    (void)text_format(to, size, "%s%s%s", before, duration, after);
}

void task_event_message(const struct task_event *event, char *to, size_t size)
{
    const char *text = event->text;
    bool given = text[0] != '\0';

    switch ((enum task_event_type)event->type) {
    case TASK_EVENT_RECEIVED:
        (void)text_copy(to, size, "Task received by client");
        return;
    case TASK_EVENT_SETUP_FAILURE:
        (void)text_copy(to, size, given ? text : "Task setup failed");
        return;
    case TASK_EVENT_FAILED_VALIDATION:
        (void)text_copy(to, size, given ? text : "Validation of task failed");
        return;
    case TASK_EVENT_DRIVER_FAILURE:
        (void)text_copy(to, size, given ? text : "Failed to start task");
        return;
    case TASK_EVENT_STARTED:
        (void)text_copy(to, size, "Task started by client");
        return;
    case TASK_EVENT_TERMINATED:
        terminated_message(event, to, size);
        return;
    case TASK_EVENT_RESTARTING: {
        char before[TASK_EVENT_TEXT_SIZE + 32] = "";
        if (given && !text_equal(text, "Restart within policy"))
            (void)text_format(before, sizeof(before), "%s - ", text);
        (void)text_append(before, sizeof(before), "Task restarting in ");
        duration_message(before, event->number, "", to, size);
        return;
    }
    case TASK_EVENT_NOT_RESTARTING:
        (void)text_copy(to, size, given ? text : "Task exceeded restart policy");
        return;
    case TASK_EVENT_KILLING:
        if (given)
            (void)text_copy(to, size, text);
        else if (event->number > 0)
            duration_message("Sent interrupt. Waiting ", event->number, " before force killing", to,
                             size);
        else
            (void)text_copy(to, size, "Sent interrupt");
        return;
    case TASK_EVENT_KILLED:
        (void)text_copy(to, size, given ? text : "Task successfully killed");
        return;
    case TASK_EVENT_SIGNALING:
        (void)text_copy(to, size, given ? text : "Task being sent a signal");
        return;
    case TASK_EVENT_RESTART_SIGNALED:
        (void)text_copy(to, size, given ? text : "Task signaled to restart");
        return;
    case TASK_EVENT_SIBLING_FAILED:
        (void)text_format(to, size, "Task's sibling \"%s\" failed", text);
        return;
    case TASK_EVENT_LEADER_DEAD:
        (void)text_copy(to, size, "Leader Task in Group dead");
        return;
    case TASK_EVENT_MAIN_DEAD:
        (void)text_copy(to, size, "Main tasks in the group died");
        return;
    case TASK_EVENT_RESTORE_FAILED:
        (void)text_copy(to, size, "failed to restore task; will not run until server is contacted");
        return;
    case TASK_EVENT_SHUTDOWN_DELAY:
        duration_message("Waiting for shutdown_delay of ", event->number,
                         " before killing the task.", to, size);
        return;
    case TASK_EVENT_TASK_SETUP:
    case TASK_EVENT_HOOK_FAILED:
    case TASK_EVENT_ALLOC_UNHEALTHY:
    case TASK_EVENT_NONE:
    case TASK_EVENT_TYPE_COUNT:
        (void)text_copy(to, size, text);
        return;
    }
    unreachable("task event type");
}
