/* What users read of a task: its events, a bounded list of the newest.  Pure. */
#include "fsm/task/part.h"

#include <string.h>

struct task_event *task_note(struct task *task, const struct fsm_now *now,
                             enum task_event_type type, const char *text)
{
    check(type > TASK_EVENT_NONE);
    check(type < TASK_EVENT_TYPE_COUNT);
    check(task->events_count <= TASK_EVENTS_MAX);
    if (task->events_count == TASK_EVENTS_MAX) {
        memmove(&task->events[0], &task->events[1],
                (TASK_EVENTS_MAX - 1) * sizeof(task->events[0]));
        task->events_count--;
    }
    struct task_event *event = &task->events[task->events_count++];
    memset(event, 0, sizeof(*event));
    event->type = (uint8_t)type;
    event->time_unix_ns = now->unix_ns;
    (void)text_copy(event->text, sizeof(event->text), text); /* cut if too long */
    task->status_revision++;
    return event;
}

void task_note_failing(struct task *task, const struct fsm_now *now, enum task_event_type type,
                       const char *text)
{
    task_note(task, now, type, text)->fails = 1;
    task->failed = 1;
}
