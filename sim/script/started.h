/* What a journal that worlds begin from is made of.  Private to sim/. */
#ifndef CAIRN_SIM_SCRIPT_STARTED_H
#define CAIRN_SIM_SCRIPT_STARTED_H

#include "core/clock.h"
#include "sim/start.h"

#include "fsm/alloc.h"
#include "fsm/plugin.h"
#include "fsm/task.h"
#include "fsm/volume.h"

/* A record as it was stored. */
struct sim_past {
    struct machine_id id;
    struct machine *record; /* NULL: it cannot be read */
    uint32_t size;
};

struct sim_started_task {
    struct machine_id id;
    struct sim_task plan;
    const struct sim_past *kept; /* NULL: there is no record */
};

struct sim_started_claim {
    struct machine_id id;
    const struct sim_past *kept;
    uint16_t plugin, disk;
};

struct sim_started_alloc {
    struct machine_id id;
    struct sim_alloc plan; /* its members are below */
    const struct sim_past *kept;
    size_t tasks, claims; /* the first ones */
    uint16_t tasks_count, claims_count;
    uint16_t after; /* alloc it waits for + 1, 0: none that is here */
    bool specified;
    char *spec; /* owned; NULL: it is not there, or cannot be read */
    size_t spec_length;
};

struct sim_started_plugin {
    struct machine_id id;
    const struct sim_past *kept;
    bool stages;
};

struct sim_started_disk {
    struct volume_define define;
    uint16_t plugin;
};

struct sim_start {
    struct {
        struct sim_past *items;
        size_t count, size;
    } kept; /* in order of kind and id */
    struct {
        struct sim_started_alloc *items;
        size_t count, size;
    } allocs; /* in order of their ids, as all of them */
    struct {
        struct sim_started_task *items;
        size_t count, size;
    } tasks;
    struct {
        struct sim_started_claim *items;
        size_t count, size;
    } claims;
    struct {
        struct sim_started_plugin *items;
        size_t count, size;
    } plugins;
    struct {
        struct sim_started_disk *items;
        size_t count, size;
    } disks;
    bool known;  /* the node's identity was stored */
    bool server; /* a server decides */
    char node_id[UUID_TEXT_SIZE], secret[UUID_TEXT_SIZE];
    char boot_id[UUID_TEXT_SIZE]; /* of the boot in which the newest event was written */
    uint64_t clock_offset_ms, server_index;
    uint64_t next_sequence, turn;
    struct clock_last last;
};

/* The record of a kept machine, NULL if there is none that can be read. */
static inline const struct machine *sim_past_record(const struct sim_past *kept)
{
    return kept == NULL ? NULL : kept->record;
}

#endif
