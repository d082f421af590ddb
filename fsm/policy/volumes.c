/*
 * Volumes of storage plugins, as the control plane has them: who may have one beside whom, and what
 * follows when a plugin has answered.
 *
 * The rules of claims are Nomad's (nomad v2.0.5 nomad/structs/csi.go), and stricter in two things.
 * A claim is of a kind that the volume was registered for; and it obeys the mode that it asks for
 * itself, and not only that of whoever came first: who asks to be the only writer is.
 */
#include "fsm/policy.h"

/* True if one more claim may stand beside READERS and WRITERS by the rules of ACCESS. */
static bool has_room(uint8_t access, bool read_only, size_t readers, size_t writers)
{
    switch ((enum csi_access)access) {
    case CSI_SINGLE_NODE_READER:
        return read_only && readers == 0;
    case CSI_SINGLE_NODE_WRITER:
    case CSI_SINGLE_NODE_SINGLE_WRITER:
        return writers == 0 && (!read_only || readers == 0);
    case CSI_MULTI_NODE_READER:
        return read_only;
    case CSI_MULTI_NODE_SINGLE_WRITER:
        return read_only || writers == 0;
    case CSI_MULTI_NODE_MULTI_WRITER:
    case CSI_SINGLE_NODE_MULTI_WRITER:
    case CSI_ACCESS_UNKNOWN:
        return true;
    case CSI_ACCESS_COUNT:
        break;
    }
    unreachable("access mode");
}

static bool can_be_written(uint8_t access)
{
    return access != CSI_SINGLE_NODE_READER && access != CSI_MULTI_NODE_READER;
}

enum claim_verdict policy_claim(const struct claim_terms *volume, size_t volume_count,
                                const struct claim_terms *claims, size_t claims_count,
                                const struct claim_terms *asked)
{
    size_t readers = 0, writers = 0;
    bool is_capable = false;

    check(asked->access < CSI_ACCESS_COUNT);
    for (size_t i = 0; i < volume_count; i++)
        is_capable |=
            volume[i].access == asked->access && volume[i].attachment == asked->attachment;
    if (!is_capable)
        return CLAIM_NOT_CAPABLE;
    for (size_t i = 0; i < claims_count; i++) {
        readers += claims[i].read_only;
        writers += !claims[i].read_only;
    }
    if (claims_count > 0 && claims[0].attachment != asked->attachment)
        return CLAIM_OTHERWISE_ATTACHED;
    if (!asked->read_only &&
        (!can_be_written(asked->access) || (claims_count > 0 && !can_be_written(claims[0].access))))
        return CLAIM_NOT_WRITABLE;
    for (size_t i = 0; i < claims_count; i++) {
        if (!has_room(claims[i].access, asked->read_only, readers, writers))
            return asked->read_only ? CLAIM_READERS_EXHAUSTED : CLAIM_WRITERS_EXHAUSTED;
    }
    if (!has_room(asked->access, asked->read_only, readers, writers))
        return asked->read_only ? CLAIM_READERS_EXHAUSTED : CLAIM_WRITERS_EXHAUSTED;
    return CLAIM_FITS;
}

/* --- what a claim waits for --- */

/* What it does at first, and then what has come of it so far. */
static void say_try(const struct volume *volume, uint32_t failed, const char *first, char *to,
                    size_t size)
{
    if (failed == 0)
        (void)text_format(to, size, "plugin \"%.60s\" is asked to %s it", volume->define.plugin,
                          first); /* fits */
    else
        (void)text_format(to, size, "%s (%u %s, trying again)", volume->failure, failed,
                          failed == 1 ? "try" : "tries"); /* fits */
}

bool policy_claim_waits(const struct volume *volume, char *to, size_t size)
{
    switch ((enum volume_state)volume->machine.state) {
    case V_CLAIMING:
        if (volume->machine.attempt > 0)
            say_try(volume, volume->machine.attempt, "", to, size);
        else
            (void)text_format(to, size, "it is asked for"); /* fits */
        return true;
    case V_QUEUED:
        if (volume->plugin_until_ms != 0)
            (void)text_format(to, size,
                              "plugin \"%.60s\" is not ready: run its job, or see its logs",
                              volume->define.plugin); /* fits */
        else
            (void)text_format(to, size, "others who have it are seen to first"); /* fits */
        return true;
    case V_STAGING:
        say_try(volume, volume->tries, "stage", to, size);
        return true;
    case V_PUBLISHING:
        say_try(volume, volume->tries, "publish", to, size);
        return true;
    case V_VERIFYING:
        (void)text_format(to, size, "it is looked whether it is mounted"); /* fits */
        return true;
    case V_ABSENT:
    case V_IDLE:
    case V_READY:
    case V_BROKEN:
    case V_DRAINING:
    case V_UNPUBLISHING:
    case V_UNSTAGING:
    case V_RELEASING:
    case V_GONE:
        return false;
    case V_COUNT:
        break;
    }
    unreachable("a state of a claim");
}

/* --- volumes that are made and deleted --- */

/* A call that was never heard says nothing of the one before it, in which a daemon died.  One that
 * is refused before it is sent was refused each time. */
bool policy_is_settled(const struct csi_outcome *outcome, bool answered)
{
    return outcome->verdict == CSI_DONE ||
           (!outcome->may_run && (answered || outcome->verdict == CSI_REFUSED));
}

enum registration_step policy_registration(enum registration_state state, enum csi_call call,
                                           const struct csi_outcome *outcome, bool answered)
{
    bool done = outcome->verdict == CSI_DONE, settled = policy_is_settled(outcome, answered);
    /* The plugin works on nothing: it is as if nobody had asked. */
    bool refused = outcome->verdict == CSI_REFUSED && settled;

    switch (state) {
    case REGISTRATION_CREATING:
        check(call == CSI_CREATE_VOLUME);
        if (done)
            return REGISTRATION_BECOMES_READY;
        if (outcome->verdict == CSI_LIES) /* it is there, and nobody can tell what */
            return REGISTRATION_CALLS_NEXT;
        return refused ? REGISTRATION_IS_FORGOTTEN : REGISTRATION_CALLS_AGAIN;
    case REGISTRATION_DELETING:
        if (call == CSI_CREATE_VOLUME) /* to hear the id of what was perhaps made */
            return done      ? REGISTRATION_CALLS_NEXT
                   : refused ? REGISTRATION_IS_FORGOTTEN
                             : REGISTRATION_CALLS_AGAIN;
        check(call == CSI_DELETE_VOLUME);
        if (done)
            return REGISTRATION_IS_FORGOTTEN;
        /* Whoever answers has not deleted it: who asked is told, and the volume is as it was. */
        return settled ? REGISTRATION_BECOMES_READY : REGISTRATION_CALLS_AGAIN;
    case REGISTRATION_READY:
        check(call == CSI_CREATE_VOLUME); /* once more, or as something else */
        if (done)
            return REGISTRATION_BECOMES_READY;
        return refused || outcome->verdict == CSI_LIES ? REGISTRATION_IS_FORGOTTEN
                                                       : REGISTRATION_CALLS_AGAIN;
    case REGISTRATION_STATE_COUNT:
        break;
    }
    unreachable("a call for a volume that is neither made nor deleted");
}
