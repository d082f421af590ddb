/*
 * A ring of the last events, bounded by their number and their bytes.
 */
#include "agent/api/streams/past.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

struct kept {
    uint64_t index;
    struct event event; /* its texts are owned, but for its type */
    char *line;         /* owned */
    size_t length;
};

struct past {
    struct kept ring[PAST_EVENTS_MAX];
    size_t first, count, bytes;
    uint64_t gone;
};

struct past *past_new(uint64_t index)
{
    struct past *past = calloc(1, sizeof(*past));

    check(past != NULL);
    past->gone = index;
    return past;
}

static char *copy(const char *text)
{
    char *copied = text != NULL ? strdup(text) : NULL;

    check(text == NULL || copied != NULL);
    return copied;
}

static void let_oldest_go(struct past *past)
{
    struct kept *oldest = &past->ring[past->first];

    past->gone = oldest->index;
    past->bytes -= oldest->length;
    past->first = (past->first + 1) % PAST_EVENTS_MAX;
    past->count--;
    free((char *)oldest->event.key);
    free((char *)oldest->event.namespace);
    for (size_t i = 0; i < EVENT_FILTER_KEYS; i++)
        free((char *)oldest->event.filter_keys[i]);
    free(oldest->line);
}

void past_free(struct past *past)
{
    while (past != NULL && past->count > 0)
        let_oldest_go(past);
    free(past);
}

void past_add(struct past *past, uint64_t index, const struct event *event, char *line,
              size_t length)
{
    if (past->count == PAST_EVENTS_MAX)
        let_oldest_go(past);
    struct kept *kept = &past->ring[(past->first + past->count) % PAST_EVENTS_MAX];
    *kept = (struct kept){.index = index, .event = *event, .line = line, .length = length};
    kept->event.key = copy(event->key);
    kept->event.namespace = copy(event->namespace);
    for (size_t i = 0; i < EVENT_FILTER_KEYS; i++)
        kept->event.filter_keys[i] = copy(event->filter_keys[i]);
    past->count++;
    past->bytes += length;
    while (past->bytes > PAST_BYTES_MAX) /* it may be too large by itself */
        let_oldest_go(past);
}

uint64_t past_gone(const struct past *past)
{
    return past->gone;
}

void past_each(const struct past *past, uint64_t index, past_tell *tell, void *ctx)
{
    for (size_t i = 0; i < past->count; i++) {
        const struct kept *kept = &past->ring[(past->first + i) % PAST_EVENTS_MAX];

        if (kept->index >= index)
            tell(ctx, &kept->event, kept->line, kept->length);
    }
}
