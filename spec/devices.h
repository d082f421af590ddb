/*
 * Devices: which of a node's a task is given that asks for some.
 *
 * What there is, is an array of groups of equal devices as Nomad's API has it (NodeDeviceResource):
 * Vendor, Type, Name, Attributes, and Instances with ID and Healthy.  What is asked for is an
 * element of a task's Resources.Devices, what is given one of its AllocatedResources' (Vendor,
 * Type, Name, DeviceIDs).  All that one request gets is of one group.
 *
 * Follows nomad v2.0.5 scheduler/feasible/device.go, nomad/structs/devices.go and
 * plugins/shared/structs (attributes, units).
 */
#ifndef CAIRN_SPEC_DEVICES_H
#define CAIRN_SPEC_DEVICES_H

#include "base/base.h"

#include <jansson.h>

enum { DEVICES_WHY_SIZE = 192, DEVICE_WORD_MAX = 128 /* bytes of a name or an id */ };

/* True if numbers of UNIT ("MiB", "GHz") can be told apart; "" is none, and fine. */
bool device_unit_is_known(const char *unit);

/* 0, or ERR_INVALID and what is wrong with what is asked for. */
int device_check(const json_t *request, struct err *err);

/* Adds what is GIVEN to ALLOC to HELD, an object: nobody else gets it. */
void devices_hold(json_t *held, const json_t *given, const char *alloc);

/* What of DEVICES is given for REQUEST, that nobody has by HELD and that is well: a new reference.
 * NULL, and why: there are not so many of that kind, or others have them. */
json_t *devices_pick(const json_t *devices, const json_t *request, const json_t *held,
                     char ret_why[DEVICES_WHY_SIZE]);

#endif
