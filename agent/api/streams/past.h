/*
 * Inside agent/api/ only: the last events that were told, for a reader who comes back.
 *
 * As the event buffer of Nomad's servers (of 100 by default): of the oldest is let go what is
 * too much, and up to which index something is gone is known.
 */
#ifndef CAIRN_AGENT_API_PAST_H
#define CAIRN_AGENT_API_PAST_H

#include <stddef.h>
#include <stdint.h>

enum { PAST_EVENTS_MAX = 100, PAST_BYTES_MAX = 512 << 10, EVENT_FILTER_KEYS = 2 };

enum topic {
    TOPIC_JOB,
    TOPIC_ALLOC,
    TOPIC_EVALUATION,
    TOPIC_DEPLOYMENT,
    TOPIC_NODE,
    TOPIC_SERVICE,
    TOPIC_COUNT,
};

/* One event; what else than its key it is found by. */
struct event {
    enum topic topic;
    const char *type, *key, *namespace;
    const char *filter_keys[EVENT_FILTER_KEYS]; /* NULL: none */
};

struct past;

/* Knows nothing of what happened up to INDEX. */
struct past *past_new(uint64_t index);
void past_free(struct past *past);

/* EVENT is copied; its LINE of LENGTH bytes is moved.  Indexes never fall. */
void past_add(struct past *past, uint64_t index, const struct event *event, char *line,
              size_t length);

/* The highest index of which something is gone. */
uint64_t past_gone(const struct past *past);

/* Calls TELL with each that is kept from INDEX on, oldest first; it adds none. */
typedef void past_tell(void *ctx, const struct event *event, const char *line, size_t length);
void past_each(const struct past *past, uint64_t index, past_tell *tell, void *ctx);

#endif
