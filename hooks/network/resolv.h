/* How tasks find names: their own resolv.conf. */
#ifndef CAIRN_HOOKS_NETWORK_RESOLV_H
#define CAIRN_HOOKS_NETWORK_RESOLV_H

#include "base/base.h"

#include <jansson.h>

/* Writes PATH by DNS, {Servers, Searches, Options}; what it says nothing of is as on the host
 * (nomad v2.0.5 drivers/shared/resolvconf). */
int resolv_write(const char *path, const json_t *dns, struct err *err);

#endif
