/* The timeline: lanes of states and what happened on them, collected from the log. */
#ifndef CAIRN_INSPECT_TIMELINE_TIMELINE_H
#define CAIRN_INSPECT_TIMELINE_TIMELINE_H

#include "inspect/part.h"

#include <uthash.h>

enum { TIMELINE_EVENTS_MAX = 200000, NOTE_SIZE = 200 };

enum note_kind {
    NOTE_NONE,
    NOTE_STARTED, /* a payload runs */
    NOTE_FOUND,   /* and was found again after a restart */
    NOTE_ENDED,   /* well, or as ordered */
    NOTE_CRASHED, /* with an error, by a signal, or nobody knows how */
    NOTE_FAILED,  /* something that was tried */
    NOTE_ORDER,   /* somebody wanted it: stop, restart, kill */
};

/* One event of a lane. */
struct step {
    uint64_t sequence, ms;
    int64_t unix_ns;
    uint16_t row;
    uint8_t note;
    char *text; /* of the note; owned, NULL without one */
};

struct timeline_lane {
    struct machine_id id;
    uint8_t first_state; /* before its first step */
    uint64_t born_ms;    /* when it came; the timeline's begin if earlier */
    uint64_t owner_ms;   /* when the first of its alloc came */
    char what[128];
    struct {
        struct step *items; /* owned */
        size_t count, size;
    } steps;
    UT_hash_handle hh;
};

struct timeline_restart {
    uint64_t sequence, ms, away_ms;
    int64_t unix_ns;
    bool rebooted;
};

struct timeline {
    struct inspect *inspect; /* first: inspect_bad finds it here */
    struct timeline_lane *lanes;
    struct {
        struct timeline_restart *items; /* owned */
        size_t count, size;
    } restarts;
    uint64_t first, last;      /* range of sequences asked for */
    uint64_t begin_ms, end_ms; /* node time */
    int64_t begin_unix_ns;
    uint64_t previous_ms, restart_turn, steps_count;
    bool cut; /* more events than TIMELINE_EVENTS_MAX */
};

/* Fills TIMELINE, whose inspect is set, from the log and the records; what it got so far is to be
 * freed in any case. */
int timeline_collect(struct timeline *timeline, struct err *err);
void timeline_free(struct timeline *timeline);

/* State of LANE after its step NUMBER. */
uint8_t timeline_state(const struct timeline_lane *lane, size_t number);

/* COLUMNS of a line, 0: as usual. */
void timeline_put_text(struct timeline *timeline, int64_t columns);
void timeline_put_json(struct timeline *timeline, FILE *to);
int timeline_put_html(struct timeline *timeline, const char *path, struct err *err);

/* inspect/timeline/timeline.html, put into the program by inspect/SConscript. */
extern const char timeline_page[];
extern const size_t timeline_page_length;

#endif
