/* What calls are answered with. */
#include "sim/answer.h"

#include "fsm/plugin.h"
#include "fsm/task.h"
#include "fsm/volume.h"

struct failure sim_failed(int code, bool recoverable, const char *text)
{
    struct failure failure = {.code = code, .recoverable = recoverable};
    bool whole = text_copy(failure.text, sizeof(failure.text), text);

    check(whole);
    return failure;
}

uint8_t sim_volume_answer(uint8_t effect, int code, bool mounted)
{
    static const uint8_t success[VX_COUNT] = {
        [VX_CLAIM] = VE_CLAIMED,
        [VX_UNCLAIM] = VE_RELEASED,
        [VX_STAGE] = VE_STAGED,
        [VX_PUBLISH] = VE_PUBLISHED,
        [VX_UNPUBLISH] = VE_UNPUBLISHED,
        [VX_UNSTAGE] = VE_UNSTAGED,
        [VX_LOOK] = VE_MOUNT_FOUND,
        [VX_UNMOUNT] = VE_UNPUBLISHED,
        [VX_UNMOUNT_STAGING] = VE_UNSTAGED,
    };

    check(effect < VX_COUNT);
    if (code != 0)
        return effect == VX_CLAIM || effect == VX_UNCLAIM ? VE_RPC_FAILED : VE_NODE_FAILED;
    return effect == VX_LOOK && !mounted ? VE_MOUNT_MISSING : success[effect];
}

uint8_t sim_plugin_answer(uint8_t effect, int code)
{
    static const struct {
        uint8_t success, failure;
    } events[PX_COUNT] = {
        [PX_LAUNCH] = {PE_LAUNCHED, PE_LAUNCH_FAILED},
        [PX_RECOVER] = {PE_RECOVERED, PE_LOST},
        [PX_TERMINATE] = {PE_STOPPED, PE_STOP_FAILED},
        [PX_PROBE] = {PE_PROBED, PE_PROBE_FAILED},
        [PX_IDENTIFY] = {PE_IDENTIFIED, PE_IDENTIFY_FAILED},
    };

    check(effect < PX_COUNT);
    return code == 0 ? events[effect].success : events[effect].failure;
}

uint8_t sim_driver_failure(uint8_t effect)
{
    static const uint8_t events[TX_COUNT] = {
        [TX_DRIVER_START] = TE_START_FAILED, [TX_DRIVER_RECOVER] = TE_LOST,
        [TX_DRIVER_STOP] = TE_STOP_FAILED,   [TX_DRIVER_DESTROY] = TE_REAP_FAILED,
        [TX_SCRIPT] = TE_SCRIPTED,
    };

    check(effect < TX_COUNT);
    return events[effect];
}
