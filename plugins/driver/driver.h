/* What plugins say of the driver that they are.  Inside the room only. */
#ifndef CAIRN_PLUGINS_DRIVER_DRIVER_H
#define CAIRN_PLUGINS_DRIVER_DRIVER_H

#include "plugins/plugins.h"

/* Whether NAME can be that of a driver here: a word of jobs, of attributes and of records. */
bool driver_name_is_good(const char *name);

/* What it can do; ERR_*. */
int driver_read_capabilities(const void *bytes, size_t length,
                             struct plugin_capabilities *ret_capabilities, struct err *err);

/* The schema of its tasks' configuration, owned by the caller (free); of length 0: they take none.
 * ERR_*. */
int driver_read_schema(const void *bytes, size_t length, char **ret_schema, size_t *ret_length,
                       struct err *err);

struct driver_state {
    bool detected, healthy;
    char description[ERR_TEXT_SIZE];
    json_t *attributes; /* of those named "driver.NAME. ...", texts; owned by the caller */
};

/* How it is, of the driver NAME; ERR_*. */
int driver_read_state(const void *bytes, size_t length, const char *name,
                      struct driver_state *ret_state, struct err *err);

#endif
