/*
 * Inside server/nomad/ only: what its parts share.
 *
 * nomad.c makes it and says when each part is to be woken; mine.c knows the allocs, and servers.c
 * calls whichever server is the one to be asked; registration.c registers the node and keeps it
 * alive; allocs.c learns what is to run, place.c does it, with what finding.c has found out about
 * its volumes; awaiting.c knows for whom it waits, moving.c where the disk is that it takes over,
 * facts.c what its templates ask for; status.c tells what has become of it, offers.c what they
 * offer to others; claims.c has volumes claimed, signing.c has identities signed, and events.c
 * tells what has happened to the node.
 */
#ifndef CAIRN_SERVER_NOMAD_PART_H
#define CAIRN_SERVER_NOMAD_PART_H

#include "base/hash.h"
#include "base/list.h"
#include "fsm/policy.h"
#include "server/nomad/nomad.h"

#include <uthash.h>

/* How long a server may take: as its own hold of 5 s while it has no leader, and then some; and a
 * question that it may keep until something has changed. */
enum {
    NOMAD_CALL_MS = 15 * 1000,
    NOMAD_BLOCK_MS = 300 * 1000,
    NOMAD_BLOCKED_CALL_MS = NOMAD_BLOCK_MS + NOMAD_BLOCK_MS / 16 + NOMAD_CALL_MS,
};

/* An alloc that the servers have given, or that is here. */
struct mine {
    char id[UUID_TEXT_SIZE];
    uint64_t index; /* of the version that it goes by; of one that is not here: as it was seen */
    bool minds_contact; /* it ends when the servers are not heard of for too long */
    bool dirty;         /* the servers have not heard of what it is now */
    uint64_t told;      /* digest of what they have heard, 0: nothing */
    bool presumed;      /* before a restart they had heard all: what it is now is that */
    char *refused;      /* why it cannot run here, in one sentence; owned; NULL: it can */
    int64_t refused_unix_ns;
    UT_hash_handle hh;
};

/* A status on its way. */
struct pushed {
    char id[UUID_TEXT_SIZE];
    uint64_t digest, revision;
};

struct pushed_list {
    struct pushed *items;
    size_t count, size;
};

/* The rows of registration.c. */
enum session_state { SESSION_AWAY, SESSION_REGISTERING, SESSION_HERE, SESSION_BEATING };

struct nomad {
    struct nomad_config config;
    bool started;
    uint64_t began_ms;           /* node time of that */
    char trouble[ERR_TEXT_SIZE]; /* what went wrong last, "": nothing since */

    /* servers.c */
    char servers[NOMAD_SERVERS_MAX][NOMAD_ADDRESS_SIZE]; /* the one that is asked is the first */
    size_t servers_count;
    struct asked *asked;                /* calls under way */
    void (*heard)(struct nomad *nomad); /* an answer was looked at */

    /* registration.c */
    enum session_state session;
    uint64_t session_at_ms; /* node time of what it does next, 0: it waits for an answer */
    uint32_t tries;         /* that have failed since a heartbeat was answered */
    struct heartbeat beat;
    bool registered;
    bool is_unknown;       /* somebody has heard that they do not know this node */
    bool beats_soon;       /* what kept the node from being ready has been heard */
    uint64_t node_told;    /* digest of what the servers know of the node */
    uint64_t change_at_ms; /* node time at which it is looked whether that has changed; 0: never */

    /* allocs.c */
    bool asking;        /* for allocs, or for what they are */
    uint64_t ask_at_ms; /* node time; 0: not by itself */
    uint64_t asked_at_ms;
    uint64_t index; /* of the last answer that was carried out */
    bool synced;    /* there is one */
    /* Connections that were lost, when the last question was asked, and that which was carried out:
     * what was deleted meanwhile wakes nobody. */
    uint64_t losses, asked_losses, synced_losses;
    json_t *listing;   /* the answer that is being carried out; NULL: none */
    json_t *pulled;    /* allocs to be looked at, the last first; NULL: not yet */
    size_t missing;    /* of what is listed, when more was pulled last; 0: nothing was */
    struct mine *mine; /* by id */
    size_t contacted;  /* those that mind */

    /* finding.c */
    struct finding *findings; /* allocs whose volumes are asked for */

    /* awaiting.c */
    struct awaiting *awaiting, *awaited_by; /* allocs that wait for others; these also by id */

    /* facts.c */
    struct fact *facts, *facts_by; /* that are asked for; by what they are */
    size_t facts_bytes;            /* of their answers */

    /* moving.c */
    struct disk_finding *disk_findings; /* disks on other nodes that are looked for */
    json_t *tokens;                     /* by allocs here, as last listed: secrets; NULL: none */

    /* place.c */
    struct {
        size_t allocs, members, bytes;
    } posted; /* to be begun by the next turn */

    /* status.c */
    bool pushing, telling_all;
    uint64_t push_at_ms;    /* node time; 0: there is nothing to tell */
    uint64_t push_after_ms; /* and not before, as it has just failed */
    struct pushed_list pushed;

    /* offers.c */
    struct told_offer *offers; /* by id */
    bool offering;
    uint64_t offer_at_ms; /* node time; 0: there is nothing to tell */

    /* events.c */
    bool telling_events;
    uint64_t event_at_ms;         /* node time; 0: there is nothing to tell */
    int64_t events_until_unix_ns; /* the last of those that are being told */

    /* signing.c */
    struct signing *signing; /* who waits for tokens */

    /* claims.c */
    struct control control;
    struct claiming *claiming; /* who waits for an answer */
};

static inline uint64_t nomad_now_ms(const struct nomad *nomad)
{
    return life_now_ms(nomad->config.life);
}

/* Of what servers are told, never 0. */
static inline uint64_t nomad_digest(const json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);

    check(text != NULL);
    uint64_t digest = hash_bytes(1, text, strlen(text));
    free(text);
    return digest == 0 ? 1 : digest;
}

/* --- mine.c --- */

struct mine *mine_find(const struct nomad *nomad, const char *id);
struct mine *mine_add(struct nomad *nomad, const char *id);
void mine_drop(struct nomad *nomad, struct mine *mine);
void mine_end(struct nomad *nomad);

/* --- servers.c --- */

/* Calls METHOD (a literal) of the server whose turn it is, with the region and the secret in ARGS
 * (moved); AS_STRANGER: without the secret.  The server is passed over next time if it does not
 * answer.  CB comes once, but for those that are under way at the end. */
void servers_call(struct nomad *nomad, const char *method, json_t *args, bool as_stranger,
                  uint64_t timeout_ms, nomad_reply_cb *cb, void *ctx);

/* The calls of METHOD that are under way fail now if another server is the one to be asked by now.
 * Their callbacks make no call. */
void servers_abandon(struct nomad *nomad, const char *method);

/* Those of PLACES that are not known yet are asked next, the first of them first; false: none is
 * new. */
bool servers_add(struct nomad *nomad, const char (*places)[NOMAD_ADDRESS_SIZE], size_t count);

/* PLACES, and no others. */
void servers_set(struct nomad *nomad, const char (*places)[NOMAD_ADDRESS_SIZE], size_t count);

/* Takes the list of an answer of theirs; the one that was asked stays the first, if it is in it. */
void servers_learn(struct nomad *nomad, const json_t *list);

void servers_end(struct nomad *nomad);

/* --- claims.c --- */

void claims_open(struct nomad *nomad);

/* Nobody who waits is told any more. */
void claims_end(struct nomad *nomad);

/* --- registration.c --- */

/* There are servers that were not asked yet. */
void registration_found(struct nomad *nomad);

void registration_wake(struct nomad *nomad);

/* --- allocs.c --- */

void allocs_wake(struct nomad *nomad);

/* A server has not answered a heartbeat: it may have lost the others, and would not hear of
 * anything new.  What it is keeping for an answer is asked of another one. */
void allocs_elsewhere(struct nomad *nomad);

/* The servers have been heard of: what waited to be tried again is tried now. */
void allocs_heard(struct nomad *nomad);

void allocs_begin(struct nomad *nomad); /* with those that are here */
void allocs_end(struct nomad *nomad);

/* --- place.c --- */

/* A volume of an alloc whose plugin has to be found out. */
struct lacking {
    char name[SPEC_NAME_SIZE]; /* that its group gives it */
    char namespace[SPEC_NAMESPACE_SIZE], volume[VOLUME_NAME_SIZE];
};

enum place_outcome { PLACE_DONE, PLACE_NO_ROOM /* in the core, now */, PLACE_LACKS };

/* Does what the servers want of ALLOC, as Alloc.GetAllocs has it.  PLUGINS: ids of those of its
 * volumes by their names, {"data": "ebs"}; NULL: none is known. */
enum place_outcome place_alloc(struct nomad *nomad, const json_t *alloc, const json_t *plugins,
                               struct lacking *ret_lacking);

/* ALLOC, which is not known to the machines, is told as failed. */
void place_refuse(struct nomad *nomad, const char *alloc, const struct err *err);

/* The version that ALLOC, which is here, goes by; 0: it cannot be read. */
uint64_t place_index(const struct nomad *nomad, const char *alloc);

/* --- offers.c --- */

void offers_wake(struct nomad *nomad);

/* All that is offered is told again. */
void offers_all(struct nomad *nomad);
void offers_end(struct nomad *nomad);

/* --- events.c --- */

void events_begin(struct nomad *nomad); /* with those that they have not heard of */
void events_wake(struct nomad *nomad);

/* --- signing.c --- */

/* Nobody who waits is told any more. */
void signing_end(struct nomad *nomad);

/* --- finding.c --- */

/* ALLOC is placed when the plugins of its volumes are known, of which one is LACKING. */
void finding_begin(struct nomad *nomad, const json_t *alloc, const struct lacking *lacking);

/* Nobody wants the alloc ID any more as it was. */
void finding_drop(struct nomad *nomad, const char *id);

void finding_wake(struct nomad *nomad);
uint64_t finding_at_ms(const struct nomad *nomad); /* node time of that; 0: none is wanted */
void finding_end(struct nomad *nomad);

/* --- awaiting.c --- */

void awaiting_open(struct nomad *nomad);
void awaiting_wake(struct nomad *nomad);
uint64_t awaiting_at_ms(const struct nomad *nomad); /* node time of that; 0: none is wanted */

/* A turn is over: some of them may be waiting no more. */
void awaiting_settle(struct nomad *nomad);

/* As allocs_elsewhere and allocs_heard. */
void awaiting_elsewhere(struct nomad *nomad);
void awaiting_heard(struct nomad *nomad);
void awaiting_end(struct nomad *nomad);

/* --- facts.c --- */

void facts_wake(struct nomad *nomad);
uint64_t facts_at_ms(const struct nomad *nomad); /* node time of that; 0: none is wanted */

/* As allocs_heard. */
void facts_heard(struct nomad *nomad);

/* Whoever wants something is told nothing any more. */
void facts_end(struct nomad *nomad);

/* --- moving.c --- */

void moving_learn(struct nomad *nomad, const json_t *listing);
void moving_wake(struct nomad *nomad);
uint64_t moving_at_ms(const struct nomad *nomad); /* node time of that; 0: none is wanted */
void moving_end(struct nomad *nomad);

/* --- status.c --- */

void status_wake(struct nomad *nomad);
void status_dirty(struct nomad *nomad, struct mine *mine, enum status_haste haste);

/* All that are here are told again. */
void status_all(struct nomad *nomad);

#endif
