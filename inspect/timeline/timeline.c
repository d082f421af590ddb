/* The timeline: lanes and restarts, collected from the log (timeline.h). */
#include "inspect/timeline/timeline.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

uint8_t timeline_state(const struct timeline_lane *lane, size_t number)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)lane->id.kind);

    check(number < lane->steps.count);
    return def->rows[lane->steps.items[number].row].next;
}

/* --- lanes --- */

static struct timeline_lane *lane_at(struct timeline *timeline, const struct machine_id *id)
{
    struct timeline_lane *lane;

    HASH_FIND(hh, timeline->lanes, id, sizeof(*id), lane);
    return lane;
}

static struct timeline_lane *lane_add(struct timeline *timeline, const struct machine_id *id,
                                      uint8_t state, uint64_t born_ms)
{
    struct timeline_lane *lane = calloc(1, sizeof(*lane));

    check(lane != NULL);
    lane->id = *id;
    lane->first_state = state;
    lane->born_ms = born_ms;
    HASH_ADD(hh, timeline->lanes, id, sizeof(lane->id), lane);
    return lane;
}

static struct step *step_add(struct timeline *timeline, struct timeline_lane *lane,
                             const struct journal_event *event)
{
    struct step *step = list_more(&lane->steps);

    *step = (struct step){
        .sequence = event->sequence,
        .ms = event->now_ms,
        .unix_ns = event->unix_ns,
        .row = event->row,
    };
    timeline->steps_count++;
    return step;
}

/* --- what an event means to a reader --- */

/* True if the end of a payload was wanted: it had been told to end. */
static bool is_ordered(const struct journal_event *event)
{
    return event->id.kind == MACHINE_TASK &&
           (event->before == T_PREKILL || event->before == T_DELAYING ||
            event->before == T_STOPPING);
}

static enum note_kind note_exit(const struct journal_event *event, char *to, size_t size)
{
    const struct exited *exited = event->event.payload;
    bool well = exited->known && exited->code == 0 && exited->signal == 0;
    char part[64];

    if (!exited->known) {
        (void)text_copy(to, size, "ended, nobody knows how");
    } else if (exited->signal != 0) {
        (void)text_format(to, size, "ended by signal %d", (int)exited->signal);
    } else {
        (void)text_format(to, size, "ended with exit code %d", (int)exited->code);
    }
    if (exited->oom_killed)
        (void)text_append(to, size, ", out of memory");
    if (exited->with_host)
        (void)text_append(to, size, ", when all were told to end");
    if (exited->known && exited->message[0] != '\0') {
        (void)text_format(part, sizeof(part), ": %.60s", exited->message);
        (void)text_append(to, size, part);
    }
    return well || is_ordered(event) ? NOTE_ENDED : NOTE_CRASHED;
}

static enum note_kind note_started(const struct journal_event *event, char *to, size_t size)
{
    const struct started *started = event->event.payload;
    char part[24];
    bool found = event->id.kind == MACHINE_TASK ? event->event.kind == TE_RECOVERED
                                                : event->event.kind == PE_RECOVERED;

    (void)text_copy(to, size, found ? "found again" : "runs"); /* fits */
    if (started->payload_pid > 0) {
        (void)text_format(part, sizeof(part), ", pid %d", (int)started->payload_pid); /* fits */
        (void)text_append(to, size, part);
    }
    return found ? NOTE_FOUND : NOTE_STARTED;
}

static enum note_kind note_order(const struct journal_event *event, const char *text, char *to,
                                 size_t size)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)event->id.kind);

    (void)text_format(to, size, "%s%s%s", fsm_event_name(def, event->event.kind),
                      text[0] == '\0' ? "" : ": ", text); /* cut if too long */
    return NOTE_ORDER;
}

static enum note_kind note_of(const struct journal_event *event, char *to, size_t size)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)event->id.kind);
    const void *payload = event->event.payload;

    switch ((enum fsm_payload)def->events[event->event.kind].payload) {
    case PAYLOAD_EXIT:
        return note_exit(event, to, size);
    case PAYLOAD_STARTED:
        return note_started(event, to, size);
    case PAYLOAD_FAILURE: {
        const struct failure *failure = payload;
        (void)text_format(to, size, "%s: %s", fsm_event_name(def, event->event.kind),
                          failure->text); /* cut if too long */
        return NOTE_FAILED;
    }
    case PAYLOAD_HOOK: {
        const struct hook_outcome *outcome = payload;
        if (outcome->code == 0)
            return NOTE_NONE;
        (void)text_format(to, size, "hook %s failed: %s",
                          event->id.kind == MACHINE_TASK ? task_hook_name(outcome->hook)
                                                         : alloc_hook_name(outcome->hook),
                          outcome->text); /* cut if too long */
        return NOTE_FAILED;
    }
    case PAYLOAD_REQUEST: {
        const struct request *request = payload;
        return note_order(event, request->text, to, size);
    }
    case PAYLOAD_KILL: {
        const struct kill_order *order = payload;
        return note_order(event, order->text, to, size);
    }
    case PAYLOAD_MEMBER: {
        const struct member_news *news = payload;
        if (news->text[0] == '\0')
            return NOTE_NONE;
        (void)text_format(to, size, "%s: %s", news->name, news->text); /* cut if too long */
        return NOTE_FAILED;
    }
    case PAYLOAD_ALLOC_ASSIGN:
        if (event->event.kind != AE_UPDATE)
            return NOTE_NONE;
        (void)text_format(to, size, "goes on by version %llu",
                          (unsigned long long)((const struct alloc_assign *)payload)->job_version);
        return NOTE_ORDER;
    case PAYLOAD_CHECKED: {
        const struct checked *checked = payload;
        bool pass = (checked->ran & ~checked->pass) == 0;
        (void)text_copy(to, size, pass ? "its checks pass" : "a check of it fails"); /* fits */
        return pass ? NOTE_NONE : NOTE_FAILED;
    }
    case PAYLOAD_NONE:
    case PAYLOAD_TASK_DEFINE:
    case PAYLOAD_VOLUME_DEFINE:
    case PAYLOAD_PLUGIN_DEFINE:
    case PAYLOAD_RESTORE:
    case PAYLOAD_TASK_CHANGED:
    case PAYLOAD_CLAIM:
    case PAYLOAD_IDENTITY:
    case PAYLOAD_ACK:
        return NOTE_NONE;
    case PAYLOAD_KIND_COUNT:
        break;
    }
    unreachable("payload kind");
}

static void describe_lane(struct timeline_lane *lane, const struct journal_event *event)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)lane->id.kind);
    const void *payload = event->event.payload;
    enum fsm_payload kind = (enum fsm_payload)def->events[event->event.kind].payload;

    if (kind == PAYLOAD_ALLOC_ASSIGN) {
        const struct alloc_assign *assign = payload;
        (void)text_format(lane->what, sizeof(lane->what), "%s.%s[%u]", assign->job_id,
                          assign->group, assign->index); /* cut if too long */
    } else if (kind == PAYLOAD_TASK_DEFINE) {
        const struct task_define *define = payload;
        (void)text_copy(lane->what, sizeof(lane->what), define->driver);
    } else if (kind == PAYLOAD_VOLUME_DEFINE) {
        const struct volume_define *define = payload;
        (void)text_copy(lane->what, sizeof(lane->what), define->volume); /* cut if too long */
    } else if (kind == PAYLOAD_PLUGIN_DEFINE) {
        const struct plugin_define *define = payload;
        (void)text_copy(lane->what, sizeof(lane->what), define->plugin); /* cut if too long */
    }
    text_clean(lane->what);
}

/* --- restarts: turns with RESTORE events --- */

static void note_restart(struct timeline *timeline, const struct journal_event *event)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)event->id.kind);
    const struct restore *restore = event->event.payload;

    if (def->events[event->event.kind].class != FSM_RESTORE ||
        event->turn == timeline->restart_turn)
        return;
    timeline->restart_turn = event->turn;
    uint64_t before = timeline->previous_ms;
    *list_more(&timeline->restarts) = (struct timeline_restart){
        .sequence = event->sequence,
        .ms = event->now_ms,
        .away_ms = before != 0 && before < event->now_ms ? event->now_ms - before : 0,
        .unix_ns = event->unix_ns,
        .rebooted = restore->rebooted != 0,
    };
}

static bool take_event(void *ctx, const struct journal_event *event)
{
    struct timeline *timeline = ctx;
    char note[NOTE_SIZE];

    if (event->sequence > timeline->last)
        return false;
    if (timeline->steps_count == TIMELINE_EVENTS_MAX) {
        timeline->cut = true;
        return false;
    }
    if (timeline->begin_unix_ns == 0) {
        timeline->begin_unix_ns = event->unix_ns;
        timeline->begin_ms = event->now_ms;
    }
    note_restart(timeline, event);
    timeline->previous_ms = timeline->end_ms = event->now_ms;
    if (!inspect_wants(timeline->inspect, &event->id))
        return true;
    struct timeline_lane *lane = lane_at(timeline, &event->id);
    if (lane == NULL) {
        const struct fsm_def *def = fsm_definition((enum machine_kind)event->id.kind);
        bool born = (def->states[event->before].flags & FSM_INITIAL) != 0;
        lane = lane_add(timeline, &event->id, event->before,
                        born ? event->now_ms : timeline->begin_ms);
    }
    describe_lane(lane, event);
    struct step *step = step_add(timeline, lane, event);
    step->note = (uint8_t)note_of(event, note, sizeof(note));
    if (step->note != NOTE_NONE) {
        text_clean(note);
        step->text = strdup(note);
        check(step->text != NULL);
    }
    return true;
}

/* Machines that live without an event in the range, and what the others are. */
static bool take_record(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct timeline *timeline = ctx;
    struct timeline_lane *lane = lane_at(timeline, id);

    if (!inspect_wants(timeline->inspect, id))
        return true;
    if (lane == NULL) {
        if (record->entered_ms > timeline->end_ms || timeline->cut)
            return true;
        uint64_t born = record->entered_ms;
        lane = lane_add(timeline, id, record->state,
                        born < timeline->begin_ms ? timeline->begin_ms : born);
    }
    if (lane->what[0] == '\0')
        inspect_print_summary(record, lane->what, sizeof(lane->what));
    return true;
}

/* --- order: each alloc as it came, what belongs to it behind it --- */

static size_t owner_length(const struct timeline_lane *lane)
{
    return strcspn(lane->id.text, "/");
}

static bool is_same_owner(const struct timeline_lane *a, const struct timeline_lane *b)
{
    return owner_length(a) == owner_length(b) &&
           strncmp(a->id.text, b->id.text, owner_length(a)) == 0;
}

static int by_owner(struct timeline_lane *a, struct timeline_lane *b)
{
    static const int ranks[MACHINE_KIND_COUNT] = {
        [MACHINE_ALLOC] = 0,
        [MACHINE_VOLUME] = 1,
        [MACHINE_PLUGIN] = 2,
        [MACHINE_TASK] = 3,
    };

    if (is_same_owner(a, b) && a->id.kind != b->id.kind)
        return ranks[a->id.kind] - ranks[b->id.kind];
    return strcmp(a->id.text, b->id.text);
}

static int by_birth(struct timeline_lane *a, struct timeline_lane *b)
{
    if (a->owner_ms != b->owner_ms)
        return a->owner_ms < b->owner_ms ? -1 : 1;
    return by_owner(a, b);
}

static void sort_lanes(struct timeline *timeline)
{
    struct timeline_lane *first = NULL;
    uint64_t birth = 0;

    HASH_SORT(timeline->lanes, by_owner);
    for (struct timeline_lane *lane = timeline->lanes; lane != NULL; lane = lane->hh.next) {
        if (first == NULL || !is_same_owner(first, lane)) {
            first = lane;
            birth = lane->born_ms;
        }
        birth = lane->born_ms < birth ? lane->born_ms : birth;
        const struct timeline_lane *next = lane->hh.next;
        if (next != NULL && is_same_owner(first, next))
            continue;
        for (struct timeline_lane *member = first; member != next; member = member->hh.next)
            member->owner_ms = birth;
    }
    HASH_SORT(timeline->lanes, by_birth);
}

/* --- all of it --- */

int timeline_collect(struct timeline *timeline, struct err *err)
{
    struct inspect *inspect = timeline->inspect;
    int code = inspect_range(inspect, &timeline->first, &timeline->last, err);

    if (code == 0)
        code = journal_each_event(inspect->journal, timeline->first, take_event, inspect_bad,
                                  timeline, err);
    if (timeline->begin_unix_ns == 0) { /* no event in the range: the records as they stand */
        timeline->begin_unix_ns = inspect->last.unix_ns;
        timeline->begin_ms = timeline->end_ms = inspect->last.now_ms;
    }
    for (int kind = 0; kind < MACHINE_KIND_COUNT && code == 0; kind++)
        code = journal_each_record(inspect->journal, (enum machine_kind)kind, take_record,
                                   inspect_bad, timeline, err);
    sort_lanes(timeline);
    return code;
}

void timeline_free(struct timeline *timeline)
{
    struct timeline_lane *lane, *next;

    HASH_ITER(hh, timeline->lanes, lane, next)
    {
        HASH_DEL(timeline->lanes, lane);
        for (size_t i = 0; i < lane->steps.count; i++)
            free(lane->steps.items[i].text);
        free(lane->steps.items);
        free(lane);
    }
    free(timeline->restarts.items);
}
