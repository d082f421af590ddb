/* The journal of a world: in memory, and written to a directory if somebody wants to see it. */
#ifndef CAIRN_SIM_WORLD_JOURNAL_STORE_H
#define CAIRN_SIM_WORLD_JOURNAL_STORE_H

#include "core/store.h"
#include "journal/journal.h"
#include "sim/script/script.h"
#include "sim/world/journal/history.h"

struct sim;
struct sim_alloc_state;
struct sim_task_state;

struct sim_stored {
    struct machine_id id;
    struct machine *record; /* its bytes, as committed */
    uint32_t size, room;
    bool damaged;    /* since it was stored */
    uint64_t digest; /* of the bytes before that: the same damage twice is none */
};

struct sim_node {
    uint64_t boot, clock_offset_ms;
};

/* What is stored beside records. */
struct sim_store_head {
    uint64_t next_sequence, turn;
    uint64_t last_now_ms; /* of the newest event */
    int64_t last_unix_ns;
    uint64_t last_at_ms; /* and of the world, then */
    int64_t last_jump_ms;
    struct sim_node node;  /* meta: as the node stored it, boot 0: never */
    uint64_t server_index; /* meta: of the newest desired state that was applied */
};

struct sim_store {
    struct sim_stored **items; /* in order of kind and id */
    size_t count, size;
    struct {
        struct sim_stored **items;
        size_t count, size;
    } spare; /* to be used again */
    struct sim_store_head head;
    struct sim_history history;
};

/* Commits go there, too. */
struct sim_sink {
    struct journal *journal; /* NULL: nowhere */
    uint32_t incarnations;   /* of so many incarnations, 0: of all */
};

/* A copy of the journal, and of what the simulator keeps in mind of it. */
struct sim_copied {
    struct machine_id id;
    struct machine *record; /* owned; NULL: it cannot be read */
};

struct sim_copy {
    struct sim_copied *items;
    size_t count, size;
    struct sim_store_head head;
    struct sim_alloc_state *allocs; /* as they were then */
    struct sim_task_state *tasks;
    uint8_t *told; /* of each attempt */
    size_t attempts_count;
    bool made;
    bool wanted;  /* it is put back when the daemon has died */
    bool was_put; /* in this world */
};

/* --- older.c --- */

void sim_older_copy(struct sim *sim);
/* The daemon is down, and there is a copy. */
void sim_older_put(struct sim *sim);
void sim_older_free(struct sim *sim);

/* --- store.c: in memory --- */

void sim_store_reset(struct sim *sim);
/* Stores RECORD, or, if it is NULL, something that cannot be read. */
void sim_store_put(struct sim_store *store, const struct machine_id *id,
                   const struct machine *record);
void sim_store_free(struct sim_store *store);
int sim_store_commit(void *ctx, const struct journal_batch *batch, struct err *err);
/* The record as it was stored, NULL if there is none or it was damaged. */
const struct machine *sim_store_find(const struct sim_store *store, const struct machine_id *id);
bool sim_store_has(const struct sim_store *store, const struct machine_id *id);
/* False: there is no such record. */
bool sim_store_damage(struct sim *sim, const struct sim_whom *whom, enum sim_fault how);
/* False: damage has come over it. */
bool sim_store_is_sound(const struct sim_stored *item);
void sim_store_drop(struct sim_store *store, const struct machine_id *id);

/* --- commit.c: the same as a life sees it --- */

struct store sim_store_of(struct sim *sim);

/* --- write.c: in a directory --- */

/* What is stored, if it is to be written: a commit, the node's identity at its first start, a
 * record that was put aside. */
void sim_write(struct sim *sim, const struct journal_batch *batch);
void sim_write_identity(struct sim *sim);
void sim_write_quarantine(struct sim *sim, const struct machine_id *id);

#endif
