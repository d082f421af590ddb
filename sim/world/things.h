/* What there is in a world: allocs, tasks, claims, plugins and disks, and who is who among them. */
#ifndef CAIRN_SIM_WORLD_THINGS_H
#define CAIRN_SIM_WORLD_THINGS_H

#include "fsm/alloc.h"
#include "fsm/plugin.h"
#include "fsm/policy.h"
#include "fsm/task.h"
#include "fsm/volume.h"
#include "sim/script/script.h"

struct sim;

enum {
    SIM_EFFECTS_MAX = 28, /* of one machine */
    SIM_PLACED_MAX = 96,  /* allocs, by the control plane of one world */
};

/* What a task has used of its restart policy. */
struct sim_tries {
    struct task_define define; /* by the newest version that it was told of */
    uint64_t begun_ms;         /* node time: the interval */
    uint64_t again_at_ms;      /* node time: not before */
    uint64_t ran_turn; /* the last in which it was seen running, which its alloc then heard */
    uint32_t used;     /* in the interval */
    uint32_t asked;    /* generation that somebody asked to be restarted */
    bool in_turn;      /* it ran when its alloc told it to begin again */
    bool known;        /* since it was defined */
};

/* A call that has failed, and how often it was made again too soon. */
struct sim_failing {
    uint64_t at_ms;
    uint32_t incarnation; /* 0: it has not failed */
    uint32_t hasty;
};

struct sim_task_state {
    struct machine_id id;
    const struct sim_task *plan;
    const struct task *past; /* a world from a journal: its record there, if it can be read */
    uint32_t past_hooks;     /* prestart hooks that had run by then */
    int32_t newest;          /* attempt, -1: none */
    uint8_t directory;       /* its directory is there */
    uint8_t dead;            /* it was dead once */
    uint8_t hooked;          /* the attempt under way has had its hooks */
    uint64_t looking_turn;   /* the last in which its volumes were to be looked at */
    uint32_t prestarted;     /* prestart hooks that have run since the last start */
    uint32_t stopped;        /* stop hooks that have succeeded */
    uint32_t files[CHANGE_MODE_COUNT]; /* version of what its template of each mode reads */
    uint32_t watched;                  /* incarnation that looks at them, 0: none does */
    uint32_t retrying;                 /* incarnation that will render again, 0: none does */
    uint32_t unrendered;               /* times in a row that this has failed */
    uint64_t unrendered_until_ms;      /* and as long as it does */
    uint32_t hups;                     /* signals that its payloads got for them, and for tokens */
    uint32_t scripts;                  /* that were begun in them */
    uint32_t signings[CHANGE_SCRIPT];  /* of its identity of each mode, so far */
    uint32_t tokens[CHANGE_SCRIPT];    /* number of the one that its file has */
    uint32_t renewed;                  /* incarnation that has them renewed, 0: none does */
    struct sim_tries tries;
    uint64_t first_results; /* digest of the hooks' results at the first start, 0: none yet */
    uint32_t entered[T_COUNT];
    uint16_t calls[SIM_EFFECTS_MAX]; /* made so far, by effect */
    struct sim_failing failing[SIM_EFFECTS_MAX];
};

struct sim_claim_state {
    struct machine_id id;
    uint16_t plugin, disk; /* where in the world's */
    uint8_t exclusive;     /* the server lets nobody else have it */
    uint8_t mounted;
    uint8_t held;       /* the server's claim */
    uint8_t snatched;   /* somebody else unmounted it */
    uint8_t counted;    /* publishes that its plugin counts, whatever is mounted */
    uint64_t seen_turn; /* the last in which it was known to be mounted */
    uint64_t made_turn;
    uint64_t unstaging_turn; /* the last in which it was decided to unstage */
    uint64_t busy_until_ms;
    uint32_t entered[V_COUNT];
    uint16_t calls[SIM_EFFECTS_MAX]; /* made so far, by effect */
    struct sim_failing failing[SIM_EFFECTS_MAX];
};

enum sim_wish { WISH_NONE, WISH_RUN, WISH_STOP, WISH_GONE };

struct sim_alloc_state {
    struct machine_id id;
    const struct sim_alloc *plan; /* of the group; its members have their own */
    struct sim_task_state *tasks; /* among the world's */
    struct sim_claim_state *claims;
    uint16_t tasks_count, claims_count;
    uint16_t after;    /* alloc to wait for + 1, 0: none */
    uint8_t specified; /* "alloc/<id>" is in the journal */
    const char *spec;  /* a world from a journal: what it says, NULL if it cannot be read */
    size_t spec_length;
    int16_t job,
        group; /* placed by the control plane: of which job, by which alloc of the script */
    uint16_t index;
    uint16_t ports[SIM_PORTS_MAX]; /* that it was given, 0: none */
    uint64_t ended_turn;           /* of the commit that ended it, 0: it has not */
    uint64_t asked_ms;             /* node time at which its health began to be asked for */
    uint64_t checks_pass;          /* of its services, as the node was told last; durable */
    uint64_t contact_ms;           /* of the server's newest word that is durable, 0: none */
    uint8_t wish;                  /* of the control plane: enum sim_wish */
    uint8_t hurried;               /* and by now it is to end without its delays */
    uint8_t accepted;              /* the node has said so: it must not be lost */
    uint8_t directory;
    uint8_t disk;    /* and in it what it and those before it have written */
    uint8_t network; /* of its own, if its first hooks make one */
    uint8_t netless; /* it was taken away under its tasks in this boot */
    uint8_t begun;   /* its set-up was once */
    uint8_t torn;    /* postrun hooks that have succeeded */
    uint8_t ended;   /* it was terminal once */
    uint8_t unasked; /* and nobody had told it to end */
    uint8_t cut_off; /* it ended for want of a server */
    uint8_t gone;    /* it was removed */
    uint8_t follows; /* the alloc it waits for was there when it came */
    uint8_t damaged; /* a record of it was, so promises about it are off */
    uint8_t older;   /* its record was replaced by an older one: it forgot what it had told */
    uint8_t unknown; /* that journal has never heard of it, and nobody has named it since */
    uint32_t fresh;  /* incarnation that has applied a fresh desired state to it */
    uint32_t entered[A_COUNT];
    uint16_t calls[SIM_EFFECTS_MAX]; /* made so far, by effect */
    struct sim_failing failing[SIM_EFFECTS_MAX];
    /* As the server knows it. */
    uint64_t wished_index[WISH_GONE + 1]; /* at which it came to wish so, 0: never */
    uint64_t updated_index;               /* of its newest version, 0: there is one only */
    uint8_t updated_times;                /* and what it says, as in a script */
    uint64_t first_version;               /* as it was before that */
    uint64_t offered_index, seen_index;   /* of the version the node is told, has applied */
    uint8_t reported_status, reported_health;
    uint64_t pushed_digest, pushed_revision, confirmed_digest, acked_digest;
};

struct sim_plugin_state {
    struct machine_id id;
    const char *name;            /* of it among plugins, and in the script */
    struct sim_task_state *task; /* that is its process; NULL: it has one of its own */
    const struct plugin *past;   /* as of a task */
    int16_t serves;              /* the first instance of the same plugin, which may be itself */
    uint8_t stages;
    uint8_t alive, removed;
    uint8_t stop_asked;
    uint32_t launched; /* newest generation that was, since it was defined */
    uint32_t generation;
    uint64_t boot;
    uint32_t entered[P_COUNT];
    uint16_t calls[SIM_EFFECTS_MAX]; /* made so far, by effect */
    struct sim_failing failing[SIM_EFFECTS_MAX];
};

struct sim_disk_state {
    uint16_t plugin, number;          /* the number of it among its plugin's */
    const struct volume_define *past; /* a world from a journal: what claims on it say */
    uint8_t staged;
    uint8_t calls; /* of this incarnation, under way */
};

/* Who is who, by the digest of the id. */
struct sim_names {
    struct sim_whom *items;
    size_t max; /* a power of two */
};

/* --- plan.c --- */

/* Makes everything that the script names, or the journal to begin from, as it is before the first
 * start. */
void sim_plan(struct sim *sim);

/* The control plane places an alloc under ID as the script's alloc GROUP says. */
struct sim_alloc_state *sim_plan_placed(struct sim *sim, const char *id, int group);
/* It was not committed. */
void sim_plan_forget(struct sim *sim, struct sim_alloc_state *alloc);

/* Where ID is in this world; kind MACHINE_KIND_COUNT if it is not of it. */
struct sim_whom sim_find(const struct sim *sim, const struct machine_id *id);
const struct machine_id *sim_id(const struct sim *sim, const struct sim_whom *whom);
bool sim_is_same(const struct sim_whom *a, const struct sim_whom *b);
/* As scripts call it. */
const char *sim_name(const struct sim *sim, const struct sim_whom *whom);
/* True if ALLOC has a network of its own: as hooks/table.c plans it, with hooks before and behind
 * its tasks and before each start of each. */
bool sim_has_network(const struct sim_alloc_state *alloc);

/* What the script says of WHOM: itself, or what it was placed as by the control plane. */
struct sim_whom sim_role(const struct sim *sim, const struct sim_whom *whom);
/* The other way round: the first one that lives of what the script names; kind MACHINE_KIND_COUNT
 * if there is none. */
struct sim_whom sim_actor(const struct sim *sim, const struct sim_whom *role);
const struct machine *sim_record(const struct sim *sim, const struct sim_whom *whom);

#endif
