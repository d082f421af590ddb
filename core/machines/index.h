/*
 * What a core finds without looking at every machine: who is of a kind, what is due next, the
 * allocs of a job, the claims on a volume, who waits for one or for a plugin.  Inside core only.
 *
 * Groups keep the order in which their members came; a machine is in its groups from its first
 * record, committed or not, until it has gone, and in those of who waits while it does.
 */
#ifndef CAIRN_CORE_MACHINES_INDEX_H
#define CAIRN_CORE_MACHINES_INDEX_H

#include "fsm/fsm.h"

#include <stddef.h>

#include <uthash.h>

struct core;
struct slot;
struct volume;

/* Its places: the group of what it is, and those of what it waits for. */
enum { PLACE_OF, PLACE_VOLUME_WAITING, PLACE_VOLUME_HEIRS, PLACE_PLUGIN_WAITING, INDEX_GROUPS_MAX };
enum { INDEX_NONE = SIZE_MAX };

/* A slot's place in one group. */
struct group_member {
    struct slot *slot;
    struct group *group; /* NULL: in none */
    uint32_t counted;    /* of a volume: what it is to the others on it (volume_add_peer) */
    struct group_member *prev, *next;
};

struct group {
    struct group_member *members; /* prev of the first is the last (utlist) */
    struct {
        uint32_t users, busy, staged, debts; /* members that are so */
    } claims;                                /* of a volume's */
    UT_hash_handle hh;
    char key[];
};

/* --- groups --- */

/* SLOT has its first record (slot_now): joins the groups that its kind and record name. */
void index_join(struct core *core, struct slot *slot);

/* The record of SLOT is another one (slot_now): what others see of it is. */
void index_note(struct core *core, struct slot *slot);

/* Records that name the same groups. */
bool index_is_same(const struct machine *one, const struct machine *other);

/* It has gone. */
void index_leave(struct core *core, struct slot *slot);

/* The members of a group, or NULL. */
const struct group_member *index_job(const struct core *core, const char *namespace,
                                     const char *job);
const struct group_member *index_plugin(const struct core *core, const char *plugin);

/* All claims on a volume; those that wait (volume_waits) or inherit (volume_inherits); those
 * that wait and need a plugin. */
const struct group_member *index_volume(const struct core *core, const struct volume *volume);
const struct group_member *index_volume_waiting(const struct core *core,
                                                const struct volume *volume);
const struct group_member *index_volume_heirs(const struct core *core, const struct volume *volume);
const struct group_member *index_plugin_waiting(const struct core *core, const char *plugin);

/* What the claim of SLOT (NULL: it is not there yet) on VOLUME must know of all others on it, as
 * volume_add_peer puts it; counted as they come, change and go. */
uint32_t index_peers(const struct core *core, const struct slot *slot, const struct volume *volume);

/* --- deadlines --- */

/* The committed record of SLOT is another one: what is due of it is. */
void index_deadline(struct core *core, struct slot *slot);

/* Calls CB for each slot that is due at NOW_MS, in the order in which machines came. */
void index_each_due(struct core *core, uint64_t now_ms, void (*cb)(struct core *, struct slot *));

#endif
