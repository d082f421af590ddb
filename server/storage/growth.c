/*
 * Growing volumes: first their storage, by the controller, then what allocs have mounted of them,
 * by the node, where the plugin wants that.
 *
 * What is open of it is stored with the volume: "cairnExpands" is what its controller is asked for,
 * "cairnGrows" what its node is, in the same commit in which the first has ended; both are [min,
 * max] in bytes.  A volume that nobody has mounted grows on the node when somebody has: what CSI
 * wants for all of them, and Nomad (v2.0.5 nomad/csi_endpoint.go) does not do.
 *
 *   asked --stored--> controller --stored--> each claim that is mounted --stored--> done
 */
#include "server/storage/operation.h"

#include <stdlib.h>
#include <string.h>

static const char of_controller[] = "cairnExpands", of_node[] = "cairnGrows";

int growth_plan(struct operation *operation, bool *ret_calls)
{
    json_int_t min = json_integer_value(json_object_get(operation->wanted, "RequestedCapacityMin"));
    json_int_t max = json_integer_value(json_object_get(operation->wanted, "RequestedCapacityMax"));
    json_t *volume = operation->volume;
    json_int_t has = json_integer_value(json_object_get(volume, "Capacity"));

    *ret_calls = false;
    if ((min == 0 && max == 0) ||
        (min == json_integer_value(json_object_get(volume, "RequestedCapacityMin")) &&
         max == json_integer_value(json_object_get(volume, "RequestedCapacityMax"))))
        return 0;
    if (max > 0 && max < min)
        return err_set(&operation->err, ERR_INVALID,
                       "unable to update volume: max requested capacity (%lld B) less than or "
                       "equal to min (%lld B)",
                       (long long)max, (long long)min);
    if (max > 0 && max < has)
        return err_set(&operation->err, ERR_INVALID,
                       "unable to update volume: max requested capacity (%lld B) less than or "
                       "equal to current (%lld B)",
                       (long long)max, (long long)has);
    *ret_calls = min > has;
    check(json_object_update_new(volume, *ret_calls
                                             ? json_pack("{s:[I, I]}", of_controller, min, max)
                                             : json_pack("{s:I, s:I}", "RequestedCapacityMin", min,
                                                         "RequestedCapacityMax", max)) == 0);
    return 0;
}

/* --- the node --- */

/* The next claim to grow. */
struct finding_mounted {
    const struct operation *operation;
    struct machine_id id;
    const struct volume *volume; /* NULL: there is none */
    bool others_come;            /* one is on its way to be mounted */
};

static bool find_mounted(void *ctx, const struct machine_id *id, const struct machine *record)
{
    static const uint32_t comes = 1u << V_IDLE | 1u << V_CLAIMING | 1u << V_QUEUED |
                                  1u << V_STAGING | 1u << V_PUBLISHING | 1u << V_VERIFYING;
    struct finding_mounted *finding = ctx;

    if (record->state != V_READY) { /* on its way back nobody uses it any more */
        finding->others_come |= (comes >> record->state & 1u) != 0;
        return true;
    }
    if (json_object_get(finding->operation->grown, id->text) != NULL)
        return true;
    finding->id = *id;
    finding->volume = volume_of(record);
    return false;
}

static void grow_next(struct operation *operation);

static void grown(void *ctx, const struct control_answer *answer)
{
    struct operation *operation = ctx;

    if (answer->answer != NULL) {
        grow_next(operation);
        return;
    }
    operation->err = answer->error;
    (void)err_wrap(&operation->err, "its storage has grown, but not what is mounted of it");
    if (!policy_is_settled(&answer->outcome, answer->answered)) {
        operation_store_as(operation, REGISTRATION_READY, NULL, operation_doubt);
        return;
    }
    (void)json_object_del(operation->volume, of_node); /* it is there */
    operation_store_as(operation, REGISTRATION_READY, NULL, operation_done);
}

/* What Nomad's servers ask a node for. */
static void call_node(struct operation *operation, const struct finding_mounted *mounted)
{
    const struct volume_define *define = &mounted->volume->define;
    struct machine_id owner = machine_id_owner(&mounted->id);
    json_t *range = json_object_get(operation->volume, of_node);
    json_t *request =
        json_pack("{s:s, s:s, s:s, s:s, s:{s:O, s:O}, s:{s:s, s:s}}", "PluginID", define->plugin,
                  "VolumeID", define->volume, "VolumeNamespace", define->namespace, "ExternalID",
                  registry_remote_id(operation->volume), "Capacity", "RequiredBytes",
                  json_array_get(range, 0), "LimitBytes", json_array_get(range, 1), "Claim",
                  "AllocationID", owner.text, "Mode", define->read_only ? "read" : "write");

    check(json_object_set_new(operation->grown, mounted->id.text, json_true()) == 0);
    operation_call(operation, CSI_NODE_EXPAND, request, grown);
}

static void grow_next(struct operation *operation)
{
    struct storage *storage = operation->task.storage;
    const struct registered *volume = registry_find(storage, operation->namespace, operation->id);
    struct finding_mounted mounted = {.operation = operation};

    check(volume != NULL); /* it has its turn until it ends */
    storage_each_claim(storage, &volume->public, find_mounted, &mounted);
    if (mounted.volume != NULL) {
        call_node(operation, &mounted);
    } else if (mounted.others_come) {
        operation_later(operation);
    } else if (json_object_size(operation->grown) > 0) {
        (void)json_object_del(operation->volume, of_node); /* it is there */
        operation_store_as(operation, REGISTRATION_READY, NULL, operation_done);
    } else {
        operation_done(operation); /* claims.c sees to it with the first that has it */
    }
}

static void begin_node(struct operation *operation)
{
    operation->grown = json_object();
    grow_next(operation);
}

/* --- the controller --- */

static void expanded(void *ctx, const struct control_answer *answer)
{
    struct operation *operation = ctx;
    json_t *asked = json_object_get(operation->volume, of_controller);
    const json_t *bytes = json_object_get(answer->answer, "CapacityBytes");

    if (answer->answer == NULL) {
        operation->err = answer->error;
        (void)err_wrap(&operation->err, "unable to expand volume");
    }
    if (answer->answer == NULL && !policy_is_settled(&answer->outcome, answer->answered)) {
        operation_store_as(operation, REGISTRATION_READY, NULL, operation_doubt);
        return;
    }
    if (answer->answer != NULL) {
        check(json_object_set(operation->volume, "RequestedCapacityMin",
                              json_array_get(asked, 0)) == 0);
        check(json_object_set(operation->volume, "RequestedCapacityMax",
                              json_array_get(asked, 1)) == 0);
        check(json_object_set_new(operation->volume, "Capacity",
                                  json_integer(json_integer_value(bytes))) == 0);
    }
    bool goes_on = json_is_true(json_object_get(answer->answer, "NodeExpansionRequired"));
    if (goes_on)
        check(json_object_set(operation->volume, of_node, asked) == 0);
    (void)json_object_del(operation->volume, of_controller); /* it is there */
    operation_store_as(operation, REGISTRATION_READY, NULL, goes_on ? begin_node : operation_done);
}

static void call_controller(struct operation *operation)
{
    json_t *asked = json_object_get(operation->volume, of_controller);
    json_t *request = json_pack(
        "{s:s, s:{s:O, s:O}, s:{s:s}, s:O}", "ExternalVolumeID",
        registry_remote_id(operation->volume), "CapacityRange", "RequiredBytes",
        json_array_get(asked, 0), "LimitBytes", json_array_get(asked, 1), "MountOptions",
        "Filesystem", registry_text(json_object_get(operation->volume, "MountOptions"), "FSType"),
        "VolumeCapabilities", json_object_get(operation->volume, "RequestedCapabilities"));

    operation_call(operation, CSI_CONTROLLER_EXPAND, request, expanded);
}

void growth_begin(struct operation *operation)
{
    if (registry_grows_on_node(operation->volume))
        begin_node(operation);
    else
        call_controller(operation);
}
