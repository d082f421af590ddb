/* Coverage of rows: what was taken, what was not, and the reasons for what cannot be. */
#include "sim/cover.h"

/* clang-format off */

/* Reasons that more than one row has. */
#define HAS_STAGE "what inherits has a stage to undo"
#define NOTHING_LEFT "nothing that it counts on is left to be lost"
#define ONE_HOOK "allocs have one hook so far"
#define BOTH_LOST "record and specification of a volume lost at once; worlds keep the latter"
#define PAUSED "what has nothing published is in its pause, or its plugin wakes it when it comes"
#define HAS_CLAIM "whoever has something to undo has a claim, what was inherited, too"
#define STILL_WANTED "its alloc tells no task that has failed or was told to end"
#define LAST_END "the turn of the last end moves it on; lost tasks come after RESTORE"

static const struct reason {
    uint8_t kind;
    const char *state, *event, *guard;
    const char *why;
} reasons[] = {
    {MACHINE_VOLUME, "DRAINING", "INHERIT", "BACK_CLAIM", HAS_STAGE},
    {MACHINE_VOLUME, "DRAINING", "INHERIT", "ALWAYS", HAS_STAGE},
    {MACHINE_VOLUME, "DRAINING", "INHERIT", "AGAIN_UNSTAGE", PAUSED},
    {MACHINE_VOLUME, "DRAINING", "TURN", "AGAIN_UNMOUNT_STAGING", PAUSED},
    {MACHINE_VOLUME, "DRAINING", "INHERIT", "AGAIN_UNMOUNT_STAGING", PAUSED},
    {MACHINE_VOLUME, "QUEUED", "RELEASE", "BACK_UNSTAGE",
     "what may unstage may mount, and is told so before its alloc can let go"},
    {MACHINE_VOLUME, "DRAINING", "TURN", "ALWAYS", PAUSED},
    {MACHINE_VOLUME, "DRAINING", "PLUGIN_UP", "ALWAYS", HAS_CLAIM},
    {MACHINE_VOLUME, "DRAINING", "TIMEOUT", "ALWAYS", HAS_CLAIM},
    {MACHINE_VOLUME, "DRAINING", "RESTORE", "ALWAYS", HAS_CLAIM},
    {MACHINE_VOLUME, "UNSTAGING", "UNSTAGED", "ALWAYS", HAS_CLAIM},
    {MACHINE_VOLUME, "UNSTAGING", "INHERIT", "ALWAYS",
     "who unstages and inherits has lost its record, and another leaves in that moment"},
    {MACHINE_PLUGIN, "LAUNCHING", "TIMEOUT", "ALWAYS",
     "the only time it has is the one by which it is to be well"},
    {MACHINE_PLUGIN, "STOPPED", "DEFINE", "ALWAYS",
     "one with a process of its own is defined when there is none"},
    {MACHINE_TASK, "STARTING", "EXITED", "ALWAYS",
     "a driver answers the start before it tells the end"},
    {MACHINE_TASK, "RECOVERING", "EXITED", "ALWAYS",
     "a driver answers the look before it tells the end"},
    {MACHINE_TASK, "HELD", "RESTORE", "MAY_START", "a node that had a server and has none now"},
    {MACHINE_TASK, "WAITING", "REWIND", "ALWAYS", STILL_WANTED},
    {MACHINE_TASK, "PRESTART", "REWIND", "ALWAYS", STILL_WANTED},
    {MACHINE_TASK, "RUNNING", "REWIND", "ALWAYS", STILL_WANTED},
    {MACHINE_TASK, "HELD", "REWIND", "ALWAYS", STILL_WANTED},
    {MACHINE_TASK, "DELAYING", "REWIND", "ALWAYS", STILL_WANTED},
    {MACHINE_TASK, "BACKOFF", "REWIND", "ALWAYS", STILL_WANTED},
    {MACHINE_TASK, "CLEANUP", "REVIVE", "ALWAYS", STILL_WANTED},
    {MACHINE_TASK, "DEAD", "REVIVE", "ALWAYS", STILL_WANTED},
    {MACHINE_TASK, "OWING", "REVIVE", "ALWAYS", STILL_WANTED},
    {MACHINE_TASK, "LOOKING", "REWIND", "ALWAYS", STILL_WANTED},
    {MACHINE_ALLOC, "POSTRUN", "MEMBER_LOST", "ALWAYS", NOTHING_LEFT},
    {MACHINE_ALLOC, "TERMINAL", "MEMBER_LOST", "ALWAYS", NOTHING_LEFT},
    {MACHINE_ALLOC, "DESTROYING", "MEMBER_LOST", "ALWAYS", NOTHING_LEFT},
    {MACHINE_ALLOC, "PREKILL", "HOOK_DONE", "HOOKS_LEFT", ONE_HOOK},
    {MACHINE_ALLOC, "PREKILL", "HOOK_FAILED", "HOOKS_LEFT", ONE_HOOK},
    {MACHINE_ALLOC, "DESTROYING", "HOOK_DONE", "HOOKS_LEFT", ONE_HOOK},
    {MACHINE_ALLOC, "MOUNTING", "VOLUME_GONE", "ALWAYS", BOTH_LOST},
    {MACHINE_ALLOC, "RUNNING", "VOLUME_GONE", "ALWAYS", BOTH_LOST},
    {MACHINE_ALLOC, "PREKILL", "VOLUME_GONE", "ALWAYS", BOTH_LOST},
    {MACHINE_ALLOC, "DELAYING", "VOLUME_GONE", "ALWAYS", BOTH_LOST},
    {MACHINE_ALLOC, "KILLING", "VOLUME_GONE", "ALWAYS", BOTH_LOST},
    {MACHINE_ALLOC, "POSTSTOP", "VOLUME_GONE", "ALWAYS", BOTH_LOST},
    {MACHINE_ALLOC, "REPLAYING", "VOLUME_GONE", "ALWAYS", BOTH_LOST},
    {MACHINE_ALLOC, "MOUNTING", "MEMBER_LOST", "ALL_DEAD",
     "its volumes would have to be lost with their specification, too"},
    {MACHINE_ALLOC, "KILLING", "RESTORE", "ALL_DEAD_POSTSTOP", LAST_END},
    {MACHINE_ALLOC, "KILLING", "RESTORE", "ALL_DEAD_VOLUMES", LAST_END},
    {MACHINE_ALLOC, "KILLING", "RESTORE", "ALL_DEAD", LAST_END},
    {MACHINE_ALLOC, "RELEASING", "RESTORE", "VOLUMES_GONE",
     "the turn of the last VOLUME_GONE moves it on"},
};

/* clang-format on */

static bool is_about(const struct reason *reason, enum machine_kind kind, const struct fsm_row *row)
{
    const struct fsm_def *def = fsm_definition(kind);

    return reason->kind == kind && text_equal(reason->state, fsm_state_name(def, row->state)) &&
           text_equal(reason->event, fsm_event_name(def, row->event)) &&
           text_equal(reason->guard, fsm_guard_name(def, row->guard));
}

const char *sim_cover_reason(enum machine_kind kind, unsigned row)
{
    check(row < fsm_definition(kind)->rows_count);
    for (size_t i = 0; i < COUNT_OF(reasons); i++) {
        if (is_about(&reasons[i], kind, &fsm_definition(kind)->rows[row]))
            return reasons[i].why;
    }
    return NULL;
}

const char *sim_cover_stale(void)
{
    for (size_t i = 0; i < COUNT_OF(reasons); i++) {
        const struct fsm_def *def = fsm_definition((enum machine_kind)reasons[i].kind);
        bool found = false;
        for (unsigned row = 0; row < def->rows_count; row++)
            found |= is_about(&reasons[i], (enum machine_kind)reasons[i].kind, &def->rows[row]);
        if (!found)
            return reasons[i].why;
    }
    return NULL;
}

static void print_row(const struct fsm_def *def, unsigned number, bool taken, fsm_print *print,
                      void *ctx)
{
    const struct fsm_row *row = &def->rows[number];
    const char *why = sim_cover_reason((enum machine_kind)def->kind, number);
    const char *guard = row->guard == 0 ? NULL : fsm_guard_name(def, row->guard);
    char line[256];

    (void)text_format(line, sizeof(line), "  %s %s -%s%s%s%s-> %s: %s%s\n", def->name,
                      fsm_state_name(def, row->state), fsm_event_name(def, row->event),
                      guard == NULL ? "" : "[", guard == NULL ? "" : guard,
                      guard == NULL ? "" : "]", fsm_state_name(def, row->next),
                      taken ? "taken, although " : "",
                      why != NULL ? why : "not taken, and no reason is known"); /* cut */
    print(ctx, line);
}

static void look_at(const struct fsm_def *def, unsigned number, bool taken, struct sim_cover *cover,
                    fsm_print *print, void *ctx)
{
    bool excused = sim_cover_reason((enum machine_kind)def->kind, number) != NULL;

    cover->rows++;
    cover->taken += taken;
    cover->excused += !taken && excused;
    cover->unlikely += taken && excused;
    if (print != NULL && (!taken || excused))
        print_row(def, number, taken, print, ctx);
}

struct sim_cover sim_cover_look(const struct sim_tally *tally, fsm_print *print, void *ctx)
{
    struct sim_cover cover = {0};

    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
        const struct fsm_def *def = fsm_definition((enum machine_kind)kind);
        for (unsigned row = 0; row < def->rows_count; row++)
            look_at(def, row, (tally->rows[kind][row / 64] >> row % 64 & 1) != 0, &cover, print,
                    ctx);
    }
    return cover;
}
