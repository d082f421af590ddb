/*
 * Salvage: what its three steps share.  collect.c takes what the data file still holds, decide.c
 * says which of it is the node as it was, write.c makes a journal of that.
 */
#ifndef CAIRN_INSPECT_SALVAGE_H
#define CAIRN_INSPECT_SALVAGE_H

#include "inspect/part.h"

#include <uthash.h>

/* One event, as journal_encode_event gives it. */
struct found_event {
    uint64_t sequence, digest;
    struct machine_id id;
    enum journal_trust trust;
    bool initial, final; /* it makes the machine; it ends it */
    void *bytes;
    size_t length;
};

/* One record of a machine, of which several may be found: old ones, and its base. */
struct found_record {
    enum journal_trust trust;
    bool base;
    uint64_t digest;
    struct machine *record;
};

struct found_machine {
    struct machine_id id;
    struct {
        struct found_record *items;
        size_t count, size;
    } records;
    bool has_event, ended; /* by its last event */
    bool before_hole;      /* behind that one others are missing, of whatever machine */
    uint64_t digest;       /* that this left */
    struct machine *state; /* what it is now; NULL: lost or gone */
    struct machine *base;  /* and where its history begins; NULL: with its making */
    bool in_history;       /* it has events that are brought over */
    UT_hash_handle hh;
};

/* One specification or other text: the best of those that were found. */
struct found_blob {
    char key[1 + JOURNAL_KEY_SIZE]; /* 's' or 'm' before it: of a specification, or not */
    enum journal_trust trust;
    uint64_t age; /* of two equally good ones the one with more of it is taken */
    char *bytes;  /* a NUL behind it */
    size_t length;
    bool wanted;
    UT_hash_handle hh;
};

struct found_item {
    struct journal_quarantined item; /* bytes owned */
};

struct salvage {
    inspect_say_cb *say;
    void *say_ctx;
    int64_t now_unix_ns;
    struct journal_salvaged file;
    struct inspect_salvaged result;
    struct {
        struct found_event *items;
        size_t count, size;
    } events;
    size_t history; /* index of the first event that is brought over */
    struct found_machine *machines;
    struct found_blob *blobs;
    struct {
        struct found_item *items;
        size_t count, size;
    } put_aside;
};

/* A line of the report. */
void salvage_say(struct salvage *salvage, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* NULL if nothing was found of it. */
struct found_machine *salvage_machine(const struct salvage *salvage, const struct machine_id *id);

/* KIND is 's' or 'm'. */
struct found_blob *salvage_blob(const struct salvage *salvage, char kind, const char *key);

/* The event as it was; its payload goes to PAYLOAD, of FSM_PAYLOAD_BYTES_MAX bytes. */
void salvage_event(const struct found_event *found, struct journal_event *event, void *payload);

void salvage_free(struct salvage *salvage);

int salvage_collect(struct salvage *salvage, const char *path, struct err *err);
void salvage_decide(struct salvage *salvage);
int salvage_write(struct salvage *salvage, const char *path, struct err *err);

#endif
