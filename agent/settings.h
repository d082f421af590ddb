/* What the rooms below are told by the configuration and by what the machine is; whom they call is
 * up to the daemon, which borrows all of it to them. */
#ifndef CAIRN_AGENT_SETTINGS_H
#define CAIRN_AGENT_SETTINGS_H

#include "drivers/drivers.h"
#include "hooks/hooks.h"

struct config;
struct parts;

/* Without callbacks. */
struct drivers_config settings_of_drivers(const struct parts *parts);

/* STATE_DIR is where is kept what they are. */
struct hooks_network settings_of_networks(const struct parts *parts, const char *state_dir);

struct hooks_fetch settings_of_artifacts(const struct config *config);

#endif
