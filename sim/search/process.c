/*
 * Shims and payloads in the world of the search, and the driver's calls on them.
 *
 * As sim/world/process.c has it, without time: everything is found by its key, a second start under
 * a key finds what the first one left, the exit record is written last, and the end of what was
 * reported as running is told once.
 */
#include "sim/search/part.h"

enum { SIGKILL_NUMBER = 9, SIGNAL_BASE = 128 };

/* --- attempts --- */

/* The newest one comes first. */
static struct search_attempt *new_attempt(struct search *search, unsigned task, uint32_t generation)
{
    struct search_attempt *attempts = search->world.tasks[task].attempts;

    if (search_exists(&attempts[1]))
        search_violate(search, SIM_SAFETY, 2, "%s is begun a third time, and two are left",
                       search->ids[WHO_TASK_A + task].text);
    attempts[1] = attempts[0];
    attempts[0] = (struct search_attempt){.generation = generation};
    return &attempts[0];
}

static bool has_shim(const struct search_attempt *attempt)
{
    return attempt->shim == SHIM_IS_STARTING || attempt->shim == SHIM_IS_ALIVE;
}

static void end_payload(struct search_attempt *attempt, enum search_end end)
{
    check(attempt->payload == PAYLOAD_LIVES);
    attempt->payload = PAYLOAD_HAS_ENDED;
    attempt->end = (uint8_t)end;
}

/* The shim writes the record last, and goes. */
static void end_in_order(struct search_attempt *attempt, enum search_end end)
{
    end_payload(attempt, end);
    if (attempt->shim != SHIM_IS_ALIVE)
        return;
    attempt->record = RECORD_OF_END;
    attempt->shim = SHIM_HAS_ENDED;
}

static void kill_cgroup(struct search_attempt *attempt)
{
    if (attempt->payload == PAYLOAD_LIVES)
        end_in_order(attempt, ENDS_KILLED);
}

static void remove_rest(struct search_attempt *attempt)
{
    attempt->begun = attempt->record = attempt->stopping = 0;
    attempt->shim = SEEN_NO_SHIM;
}

/* --- telling the core --- */

static void tell_exit(struct search *search, unsigned who, struct search_attempt *attempt)
{
    static const int32_t codes[SEARCH_ENDS] = {0, 1, SIGNAL_BASE + SIGKILL_NUMBER};
    bool known = attempt->record == RECORD_OF_END;
    struct exited exited = {
        .known = known,
        .code = known ? codes[attempt->end] : -1,
        .signal = known && attempt->end == ENDS_KILLED ? SIGKILL_NUMBER : 0,
        .finished_unix_ns = known,
    };

    if (attempt->payload == PAYLOAD_LIVES)
        search_violate(search, SIM_SAFETY, 7, "an end of %s is told while its payload lives",
                       search->ids[who].text);
    attempt->reported = 0;
    core_news(search->core, &search->ids[who], attempt->generation, TE_EXITED, &exited);
}

static void conclude(struct search *search, unsigned who, struct search_attempt *attempt)
{
    if (attempt->reported)
        tell_exit(search, who, attempt);
}

static void done(struct search *search, unsigned who, uint8_t event, const void *payload)
{
    core_done(search->core, &search->ids[who], LANE_DRIVER, event, payload);
}

static void answer_failed(struct search *search, unsigned who, uint8_t effect, int code,
                          bool recoverable)
{
    struct failure failure = sim_failed(code, recoverable, "it failed");

    failure.untouched = effect == TX_DRIVER_RECOVER && search->world.tasks[who_task(who)].untouched;
    done(search, who, sim_driver_failure(effect), &failure);
}

/* The record says so, whoever asks. */
static void answer_not_started(struct search *search, unsigned who, bool unmounted)
{
    struct failure failure = unmounted
                                 ? sim_failed(ERR_GONE, true, "a volume is not mounted any more")
                                 : sim_failed(ERR_INVALID, false, "the program cannot be executed");

    done(search, who, TE_START_FAILED, &failure);
}

static void answer_found(struct search *search, unsigned who, uint8_t effect,
                         struct search_attempt *attempt)
{
    struct started started = {.payload_pid = 1};
    bool lives = has_shim(attempt) && attempt->payload == PAYLOAD_LIVES;

    done(search, who, effect == TX_DRIVER_START ? TE_STARTED : TE_RECOVERED, &started);
    attempt->answered = 1;
    attempt->reported = 1;
    if (!lives)
        tell_exit(search, who, attempt);
}

/* --- the driver's calls --- */

static struct search_attempt *called(struct search *search, unsigned who)
{
    return search_attempt(search, who_task(who), search_lane(search, who, LANE_DRIVER)->generation);
}

bool search_driver_ready(struct search *search, unsigned who)
{
    const struct lane *lane = search_lane(search, who, LANE_DRIVER);
    const struct search_attempt *attempt = called(search, who);
    bool begun = attempt != NULL && attempt->begun;

    if (lane->effect == TX_DRIVER_DESTROY)
        return true;
    if (lane->effect == TX_DRIVER_START && !begun)
        return false; /* a shim must be made first */
    return !begun || attempt->shim != SHIM_IS_STARTING;
}

static void look_done(struct search *search, unsigned who, uint8_t effect,
                      struct search_attempt *attempt)
{
    bool begun = attempt != NULL && attempt->begun;

    if (!begun) {
        answer_failed(search, who, effect, ERR_GONE, false);
    } else if (attempt->shim == SHIM_IS_ALIVE || attempt->record == RECORD_OF_END) {
        answer_found(search, who, effect, attempt);
    } else if (attempt->record == RECORD_OF_FAILURE || attempt->record == RECORD_OF_NO_MOUNT) {
        answer_not_started(search, who, attempt->record == RECORD_OF_NO_MOUNT);
    } else {
        kill_cgroup(attempt);
        if (effect == TX_DRIVER_START)
            answer_found(search, who, effect, attempt);
        else
            answer_failed(search, who, effect, ERR_GONE, false);
    }
}

static void stop_done(struct search *search, unsigned who, struct search_attempt *attempt)
{
    if (attempt != NULL && attempt->begun) {
        bool alive = attempt->shim == SHIM_IS_ALIVE && attempt->payload == PAYLOAD_LIVES;
        attempt->stopping |= alive;
        if (!alive && attempt->record == NO_RECORD) {
            kill_cgroup(attempt);
            conclude(search, who, attempt);
        }
    }
    done(search, who, TE_STOP_ACCEPTED, NULL);
}

static void destroy(struct search_attempt *attempt)
{
    kill_cgroup(attempt);
    if (has_shim(attempt))
        attempt->shim = SHIM_HAS_ENDED;
}

static void destroy_done(struct search *search, unsigned who, struct search_attempt *attempt)
{
    if (attempt != NULL && search_exists(attempt)) {
        destroy(attempt);
        conclude(search, who, attempt);
        remove_rest(attempt);
    }
    done(search, who, TE_REAPED, NULL);
}

void search_driver_done(struct search *search, unsigned who)
{
    uint8_t effect = search_lane(search, who, LANE_DRIVER)->effect;
    struct search_attempt *attempt = called(search, who);

    switch (effect) {
    case TX_DRIVER_START:
    case TX_DRIVER_RECOVER:
        look_done(search, who, effect, attempt);
        return;
    case TX_DRIVER_STOP:
        stop_done(search, who, attempt);
        return;
    case TX_DRIVER_DESTROY:
        destroy_done(search, who, attempt);
        return;
    }
    unreachable("effect of a driver");
}

void search_spawn(struct search *search, unsigned who)
{
    const struct lane *lane = search_lane(search, who, LANE_DRIVER);
    struct search_attempt *attempt = called(search, who);

    if (attempt == NULL)
        attempt = new_attempt(search, who_task(who), lane->generation);
    attempt->begun = 1;
    attempt->shim = SHIM_IS_STARTING;
}

void search_driver_fail(struct search *search, unsigned who, enum search_how how)
{
    uint8_t effect = search_lane(search, who, LANE_DRIVER)->effect;
    struct search_attempt *attempt = called(search, who);

    /* No process could be made: only the mark is there. */
    if (how == HOW_LATE && (attempt == NULL || !attempt->begun)) {
        search_spawn(search, who);
        called(search, who)->shim = SEEN_NO_SHIM;
    }
    if (how == HOW_LAST)
        search->world.tasks[who_task(who)].unseen = 1;
    answer_failed(search, who, effect, how == HOW_HARD ? ERR_INVALID : ERR_IO, how != HOW_HARD);
}

/* --- death in mid-call --- */

bool search_driver_is_open(const struct search *search, unsigned who)
{
    const struct lane *lane = search_lane(search, who, LANE_DRIVER);
    const struct search_task *task = &search->world.tasks[who_task(who)];
    const struct search_attempt *attempt = NULL;

    for (unsigned i = 0; i < SEARCH_ATTEMPTS; i++) {
        if (lane->effect != 0 && task->attempts[i].generation == lane->generation)
            attempt = &task->attempts[i];
    }
    bool begun = attempt != NULL && attempt->begun;
    if (lane->effect == TX_DRIVER_START)
        return !begun;
    return begun && (lane->effect == TX_DRIVER_DESTROY || lane->effect == TX_DRIVER_STOP) &&
           attempt->shim != SHIM_IS_STARTING;
}

void search_driver_cut(struct search *search, unsigned who)
{
    uint8_t effect = search_lane(search, who, LANE_DRIVER)->effect;
    struct search_attempt *attempt = called(search, who);

    if (effect == TX_DRIVER_START) {
        search_spawn(search, who);
        called(search, who)->shim = SEEN_NO_SHIM; /* died between the mark and the fork */
    } else if (effect == TX_DRIVER_STOP) {
        if (attempt->shim == SHIM_IS_ALIVE)
            attempt->stopping = attempt->payload == PAYLOAD_LIVES;
        else
            kill_cgroup(attempt);
    } else {
        destroy(attempt);
        remove_rest(attempt);
    }
}

/* --- what happens by itself --- */

static void fail_start(struct search_attempt *attempt, enum search_record record)
{
    attempt->record = (uint8_t)record;
    attempt->unfit = 1;
    attempt->shim = SHIM_HAS_ENDED;
}

static void run(struct search *search, unsigned who, struct search_attempt *attempt)
{
    if (!search_check_mount(search, who_task(who))) { /* the shim binds nothing but mounts */
        fail_start(attempt, RECORD_OF_NO_MOUNT);
        return;
    }
    attempt->shim = SHIM_IS_ALIVE;
    attempt->payload = PAYLOAD_LIVES;
    attempt->starts++;
    search_check_payload(search, who_task(who), attempt);
}

void search_process(struct search *search, const struct search_move *move,
                    struct search_attempt *attempt)
{
    switch (move->kind) {
    case MOVE_RUN:
        run(search, move->who, attempt);
        return;
    case MOVE_UNFIT:
        fail_start(attempt, RECORD_OF_FAILURE);
        return;
    case MOVE_EXIT:
        end_in_order(attempt, (enum search_end)move->how);
        return;
    case MOVE_FORGET:
        attempt->shim = SHIM_HAS_ENDED;
        end_payload(attempt, ENDS_BADLY);
        return;
    case MOVE_SHIM:
        attempt->shim = SHIM_HAS_ENDED;
        return;
    case MOVE_SEE:
        if (attempt->record == NO_RECORD)
            kill_cgroup(attempt);
        tell_exit(search, move->who, attempt);
        return;
    }
    unreachable("a move of a process");
}

/* --- the sweep, the reboot --- */

static bool is_nobodys(const struct search *search, unsigned task,
                       const struct search_attempt *attempt)
{
    const struct machine *record = search_record(search, WHO_TASK_A + task);
    bool owned = record != NULL && record->generation == attempt->generation &&
                 task_holds_work(task_of(record));

    return !owned && search_exists(attempt);
}

/* The next thing to be done for the task may be a start. */
static bool may_start(const struct search *search, unsigned task)
{
    const struct machine *record = search_record(search, WHO_TASK_A + task);

    return record != NULL && (record->state == T_PRESTART ||
                              (record->state == T_RECOVERING && !task_of(record)->ran));
}

/* When the answer of the sweep comes makes a difference to what it ends, and to starts. */
bool search_may_sweep(const struct search *search)
{
    for (unsigned t = 0; t < SEARCH_TASKS; t++) {
        if (may_start(search, t))
            return true;
        for (unsigned i = 0; i < SEARCH_ATTEMPTS; i++) {
            if (is_nobodys(search, t, &search->world.tasks[t].attempts[i]))
                return true;
        }
    }
    return false;
}

void search_sweep(struct search *search)
{
    for (unsigned t = 0; t < SEARCH_TASKS; t++) {
        for (unsigned i = 0; i < SEARCH_ATTEMPTS; i++) {
            struct search_attempt *attempt = &search->world.tasks[t].attempts[i];
            if (!is_nobodys(search, t, attempt))
                continue;
            search_check_sweep(search, t, attempt);
            destroy(attempt);
            remove_rest(attempt);
        }
    }
    search->world.unswept = 0;
    core_swept(search->core, true);
}

void search_processes_reboot(struct search *search, bool marks_go)
{
    for (unsigned t = 0; t < SEARCH_TASKS; t++) {
        search->world.tasks[t].prestarted = 0;
        for (unsigned i = 0; i < SEARCH_ATTEMPTS; i++) {
            struct search_attempt *attempt = &search->world.tasks[t].attempts[i];
            if (has_shim(attempt))
                attempt->shim = SHIM_HAS_ENDED;
            if (attempt->payload == PAYLOAD_LIVES) {
                end_payload(attempt, ENDS_KILLED);
                attempt->by_boot = 1;
            }
            attempt->reported = attempt->stopping = 0;
            /* The mark of a start is not synced (drivers/launch.c). */
            if (marks_go && attempt->begun && !attempt->answered && attempt->record == NO_RECORD)
                attempt->begun = attempt->starts = 0;
        }
    }
}
