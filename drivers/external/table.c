/* Drivers that are plugins, in the list of all drivers. */
#include "drivers/external/external.h"

#include "io/log.h"

#include <stdlib.h>
#include <string.h>

/* What tasks can be asked, as the plugin has said it. */
static void take_kind(struct external_driver *external, const struct plugin_driver *from)
{
    const struct plugin_capabilities *can = &from->capabilities;

    external->driver = (struct driver){
        .kind = {.name = external->name,
                 .isolation = can->isolation,
                 .user = "",
                 .mounts = true, /* no plugin says anything else: it is not told by any */
                 .enters_network = can->enters_network && !can->makes_network,
                 .signals = can->signals,
                 .runs_commands = can->runs_commands},
        .stop_signal = "",
        .way = WAY_PLUGIN,
    };
}

static struct external_driver *find(const struct drivers *drivers, const char *name)
{
    for (size_t i = 0; i < drivers->external_count; i++) {
        if (text_equal(drivers->external[i]->name, name))
            return drivers->external[i];
    }
    return NULL;
}

static struct external_driver *add(struct drivers *drivers, const char *name)
{
    if (driver_at(drivers, DRIVERS_MAX - 1) != NULL) {
        log_warn("drivers", "more than %d drivers, this one is left out driver=%s", DRIVERS_MAX,
                 log_value(name));
        return NULL;
    }
    struct external_driver *made = calloc(1, sizeof(*made));
    check(made != NULL);
    check(text_copy(made->name, sizeof(made->name), name)); /* the plugins have looked */
    drivers->external[drivers->external_count++] = made;
    return made;
}

void table_look(struct drivers *drivers)
{
    struct plugin_driver from;
    size_t at = 0;

    while (drivers->config.plugins != NULL &&
           plugins_next_driver(drivers->config.plugins, &at, &from)) {
        struct external_driver *external = find(drivers, from.name);

        if (external == NULL)
            external = add(drivers, from.name);
        if (external != NULL)
            take_kind(external, &from);
    }
}

void table_close(struct drivers *drivers)
{
    for (size_t i = 0; i < drivers->external_count; i++)
        free(drivers->external[i]);
}

void table_tell(const struct drivers *drivers, const struct driver *driver,
                struct driver_info *ret_info)
{
    struct plugin_driver from;

    if (!plugins_find_driver(drivers->config.plugins, driver->kind.name, &from)) {
        (void)text_copy(ret_info->description, sizeof(ret_info->description),
                        "its plugin is not there"); /* fits */
        return;
    }
    ret_info->detected = from.detected;
    ret_info->healthy = from.detected && from.healthy;
    ret_info->more = from.detected ? from.attributes : NULL;
    (void)text_copy(ret_info->description, sizeof(ret_info->description),
                    ret_info->healthy && from.description[0] == '\0' ? "Healthy"
                                                                     : from.description);
}
