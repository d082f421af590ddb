/*
 * How the node's drivers were and are, in the journal's meta under "drivers".
 *
 * What changed while no daemon looked counts from when it was seen; what is as it was before a
 * restart is as old as it was then.  The last changes are kept as the node's events, with what
 * became of its volumes.
 */
#ifndef CAIRN_AGENT_NODE_HEALTH_H
#define CAIRN_AGENT_NODE_HEALTH_H

#include "core/core.h"
#include "core/say.h"
#include "core/store.h"
#include "drivers/drivers.h"

#include <jansson.h>

struct health {
    json_t *json; /* {"drivers": {<name>: {"detected", "healthy", "description", "since"}},
                      "events": [{"time", "driver", "message"} or
                                 {"time", "volume", "message", "error"}]}, the oldest event first;
                      "error": "" is none; "heard": the time of the last one that servers have
                      heard of, if they have heard of any */
    bool untold;  /* there are events that no commit has */
    void (*changed)(void *ctx); /* there is a new one; NULL: nobody cares */
    void *ctx;
};

/* Reads what STORE holds; what is damaged is put into quarantine, and begun anew. */
int health_read(struct health *health, const struct store *store, const struct say *log,
                int64_t now_unix_ns, struct err *err);
void health_free(struct health *health);

/* The drivers are like this now; what has changed goes into the next commit. */
void health_note(struct health *health, struct core *core, const struct driver_info *drivers,
                 size_t count, int64_t now_unix_ns);

/* A volume was mounted or unmounted, as MESSAGE says, or not, as ERROR does ("": it was); the next
 * health_tell puts this, and what is next, into the next commit.  The same again takes the place of
 * what was. */
void health_note_volume(struct health *health, const char *volume, const char *message,
                        const char *error, int64_t now_unix_ns);

/* What the plugin of VOLUME says of its condition, TEXT: an event if that is news.  Other words for
 * the same condition are once a minute: they may have figures in them, and whoever asks often would
 * fill the journal. */
void health_note_condition(struct health *health, const char *volume, bool abnormal,
                           const char *text, int64_t now_unix_ns);
void health_tell(struct health *health, struct core *core);

/* The events that servers have not heard of, a new reference, and when the last of them was; NULL:
 * there are none. */
json_t *health_unheard(const struct health *health, int64_t *ret_until_unix_ns);

/* They have heard of all up to then; the next commit has that, too. */
void health_heard(struct health *health, struct core *core, int64_t until_unix_ns);

/* Since when DRIVER has been as it is. */
int64_t health_since(const struct health *health, const struct driver_info *driver);

#endif
