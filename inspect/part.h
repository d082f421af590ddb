/* What the files of the inspector share. */
#ifndef CAIRN_INSPECT_PART_H
#define CAIRN_INSPECT_PART_H

#include "inspect/fields.h"
#include "inspect/inspect.h"

enum { ID_SHORT = 8 };

/* Where the log stands at one event. */
struct moment {
    uint64_t sequence, turn, now_ms;
    int64_t unix_ns;
};

struct inspect {
    struct inspect_options options;
    struct journal *journal;
    struct moment first, last; /* of the log; zeroes if it is empty */
    uint64_t damaged;          /* entries that could not be read */
};

/* --- telling (say.c) --- */

void inspect_say(const struct inspect *inspect, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* For all walks: says that an entry is damaged and counts it.  CTX points to a struct whose first
 * member is the struct inspect pointer. */
void inspect_bad(void *ctx, const char *table, const char *key, const void *bytes, size_t length,
                 const char *reason);

/* For walks over what another walk reports. */
void inspect_ignore(void *ctx, const char *table, const char *key, const void *bytes, size_t length,
                    const char *reason);

/* --- moments (time.c) --- */

/* Reads the log's first and last event. */
int inspect_ends(struct inspect *inspect, struct err *err);

/* The last event that was stored by the moment TEXT (inspect.h); 0: none. */
int inspect_when(struct inspect *inspect, const char *text, uint64_t *ret_sequence,
                 struct err *err);

/* The options' since and until as sequences, both included. */
int inspect_range(struct inspect *inspect, uint64_t *ret_first, uint64_t *ret_last,
                  struct err *err);

/* The wall clock when node time was MS, by the log's end. */
int64_t inspect_unix_ns(const struct inspect *inspect, uint64_t ms);

/* --- machines (find.c) --- */

/* True if the options let ID through. */
bool inspect_wants(const struct inspect *inspect, const struct machine_id *id);

/* Finds the machine that TEXT names: an id or its begin, an alloc's before its parts. */
int inspect_find(struct inspect *inspect, const char *text, struct machine_id *ret_id,
                 struct err *err);

/* --- the place of a new journal (place.c) --- */

/* Only nothing, or an empty directory, may make room for a journal. */
bool place_is_taken(const char *path);

/* Moves the journal in FROM to TO, which may be an empty directory. */
int place_move(const char *from, const char *to, struct err *err);

/* Removes what a journal has in the directory PATH, and that if nothing else is in it. */
void place_remove(const char *path);

/* --- in words (words.c) --- */

/* "1.234s", "3m5s", "2h10m", "5d3h". */
enum { AGE_TEXT_SIZE = 32 };
void inspect_print_age(int64_t ns, char to[AGE_TEXT_SIZE]);

/* The id as people want it: the alloc's first eight digits, and the name. */
enum { ID_TEXT_SIZE = MACHINE_ID_SIZE };
void inspect_print_id(const struct machine_id *id, char to[ID_TEXT_SIZE]);

/* One line about what a machine is: its job and group, driver, plugin. */
void inspect_print_summary(const struct machine *record, char *to, size_t size);

/* core_describe, with control characters replaced. */
void inspect_print_event(const struct journal_event *event, char *to, size_t size);

/* Makes *** of what may be secret, wherever it is: the values of environments, of headers and
 * options of artifacts and of mount flags, users and queries of sources, texts of templates,
 * payloads, members called "secret". */
void inspect_redact(json_t *value);

#endif
