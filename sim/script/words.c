/*
 * The words of scripts, and which faults a call can meet.
 */
#include "sim/script/words.h"

#include "fsm/plugin.h"
#include "fsm/task.h"
#include "fsm/volume.h"

/* --- faults --- */

const char *sim_fault_name(unsigned fault)
{
    static const char *const names[SIM_FAULT_COUNT] = {"none",
#define X(name, text, place, what) [SIM_##name] = text,
                                                       SIM_FAULTS(X)
#undef X
    };

    return fault < SIM_FAULT_COUNT ? names[fault] : "?";
}

const char *sim_fault_what(unsigned fault)
{
    static const char *const whats[SIM_FAULT_COUNT] = {"",
#define X(name, text, place, what) [SIM_##name] = what,
                                                       SIM_FAULTS(X)
#undef X
    };

    return fault < SIM_FAULT_COUNT ? whats[fault] : "?";
}

enum sim_place sim_fault_place(unsigned fault)
{
    static const uint8_t places[SIM_FAULT_COUNT] = {0,
#define X(name, text, place, what) [SIM_##name] = SIM_PLACE_##place,
                                                    SIM_FAULTS(X)
#undef X
    };

    check(fault < SIM_FAULT_COUNT);
    return (enum sim_place)places[fault];
}

#define F(fault) ((uint64_t)1 << SIM_##fault)

_Static_assert((int)SIM_FAULT_COUNT <= 64, "faults fit a mask");

/* The faults that a call can meet. */
static uint64_t faults_of(uint8_t kind, uint8_t effect)
{
    static const uint64_t task[TX_COUNT] = {
        [TX_HOOK] = F(HANG) | F(ERR) | F(ERR_HARD) | F(SLOW) | F(DONE_ERR),
        [TX_DRIVER_START] = F(HANG) | F(ERR) | F(ERR_HARD) | F(LATE) | F(SLOW) | F(FORK) | F(EXEC),
        [TX_DRIVER_RECOVER] = F(ERR) | F(SLOW),
        [TX_DRIVER_STOP] = F(ERR) | F(SLOW),
        [TX_DRIVER_DESTROY] = F(ERR) | F(SLOW),
        [TX_DRIVER_NOTIFY] = F(SLOW),
        [TX_SCRIPT] = F(ERR) | F(ERR_HARD) | F(SLOW),
    };
    static const uint64_t alloc[AX_COUNT] = {
        [AX_HOOK] = F(HANG) | F(ERR) | F(ERR_HARD) | F(SLOW) | F(DONE_ERR),
        [AX_CHECK_NETWORK] = F(ERR) | F(SLOW),
    };
    static const uint64_t volume[VX_COUNT] = {
        [VX_CLAIM] = F(HANG) | F(ERR) | F(LATE) | F(SLOW) | F(SRV_DROP) | F(SRV_DENIED),
        [VX_UNCLAIM] = F(HANG) | F(ERR) | F(LATE) | F(SLOW) | F(SRV_DROP),
        [VX_STAGE] =
            F(HANG) | F(ERR) | F(ERR_HARD) | F(LATE) | F(SLOW) | F(DONE_ERR) | F(LIE) | F(DOUBT),
        [VX_PUBLISH] = F(HANG) | F(ERR) | F(ERR_HARD) | F(LATE) | F(SLOW) | F(DONE_ERR) | F(LIE) |
                       F(CLASH) | F(FORGOT) | F(DOUBT),
        [VX_UNPUBLISH] = F(HANG) | F(ERR) | F(LATE) | F(SLOW) | F(DONE_ERR) | F(LIE) | F(DOUBT),
        [VX_UNSTAGE] = F(HANG) | F(ERR) | F(LATE) | F(SLOW) | F(DONE_ERR) | F(LIE) | F(DOUBT),
        [VX_LOOK] = F(ERR) | F(SLOW),
        [VX_UNMOUNT] = F(ERR) | F(SLOW),
        [VX_UNMOUNT_STAGING] = F(ERR) | F(SLOW),
    };
    static const uint64_t plugin[PX_COUNT] = {
        [PX_LAUNCH] = F(HANG) | F(ERR) | F(ERR_HARD) | F(SLOW) | F(DONE_ERR),
        [PX_RECOVER] = F(ERR) | F(SLOW),
        [PX_TERMINATE] = F(ERR) | F(SLOW) | F(DONE_ERR),
        [PX_PROBE] = F(HANG) | F(ERR) | F(SLOW),
        [PX_IDENTIFY] = F(HANG) | F(ERR) | F(ERR_HARD) | F(SLOW),
    };

    switch ((enum machine_kind)kind) {
    case MACHINE_TASK:
        return task[effect];
    case MACHINE_ALLOC:
        return alloc[effect];
    case MACHINE_VOLUME:
        return volume[effect];
    case MACHINE_PLUGIN:
        return plugin[effect];
    case MACHINE_KIND_COUNT:
        break;
    }
    unreachable("machine kind");
}

bool sim_can_meet(uint8_t kind, uint8_t effect, unsigned fault)
{
    return (faults_of(kind, effect) >> fault & 1u) != 0;
}

/* --- words --- */

static const struct action {
    const char *name;
    enum sim_takes takes;
} actions[SIM_ACTION_COUNT] = {
#define X(name, takes, text) {text, TAKES_##takes},
    SIM_ACTIONS(X)
#undef X
};

const char *sim_action_name(unsigned action)
{
    return action < SIM_ACTION_COUNT ? actions[action].name : "?";
}

enum sim_takes sim_action_takes(unsigned action)
{
    check(action < SIM_ACTION_COUNT);
    return actions[action].takes;
}

bool sim_action_names_one(unsigned action)
{
    return sim_action_takes(action) != TAKES_NONE;
}

const struct sim_fact_word sim_fact_words[SIM_FACT_COUNT] = {
#define X(name, about, detail, text) {text, TAKES_##about, DETAIL_##detail},
    SIM_FACTS(X)
#undef X
};
const struct sim_question_word sim_question_words[SIM_QUESTION_COUNT] = {
#define X(name, about, text) {text, TAKES_##about},
    SIM_QUESTIONS(X)
#undef X
};
const char *const sim_relation_words[SIM_AT_LEAST + 1] = {"exactly", "at_most", "at_least"};
const char *const sim_health_words[HEALTH_COUNT] = {
    [HEALTH_UNKNOWN] = "unknown",
    [HEALTH_HEALTHY] = "healthy",
    [HEALTH_UNHEALTHY] = "unhealthy",
};

const char *const sim_status_words[CLIENT_FAILED + 1] = {
    "pending",
    "running",
    "complete",
    "failed",
};
const char *const sim_note_words[TASK_EVENT_TYPE_COUNT] = {"none",
#define X(name, text) #name,
                                                           TASK_EVENT_TYPES(X)
#undef X
};
const char *const sim_server_words[SIM_SERVER_COUNT] = {
    "up", "down", "blackhole", "stale", "partial", "slow",
};
const char *const sim_moment_words[SIM_THEN + 1] = {"at", "before", "after", "then"};
const char *const sim_lifecycle_words[LIFECYCLE_POSTSTOP + 1] = {
    "main",
    "prestart",
    "poststart",
    "poststop",
};
const char *const sim_cut_words[SIM_CUT_FATES] = {"drawn", "happens", "not"};
const char *const sim_mode_words[2] = {"alone", "server"};

const char *sim_server_name(unsigned server)
{
    return server < SIM_SERVER_COUNT ? sim_server_words[server] : "?";
}
