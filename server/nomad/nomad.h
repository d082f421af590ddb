/*
 * The node as a client of Nomad's servers: they decide what runs here.
 *
 *     register -> heartbeats          (registration.c)
 *     ask for allocs -> ASSIGN, UPDATE, STOP, DESTROY, AUTHORIZED          (allocs.c)
 *     what the machines say of them -> Node.UpdateAlloc -> STATUS_ACKED          (status.c)
 *
 * It holds nothing that has to survive: what runs is in the journal, with the version of it that
 * the servers have given, and what they have not heard of follows from the records.  After a
 * restart nothing new is started before a server was asked (I-3); what is found running goes on.
 *
 * It sees no io: who makes it hands in how servers are called and when it is woken.  Facts of the
 * protocol are nomad v1.1.2 to v2.0.5 nomad/node_endpoint.go, nomad/alloc_endpoint.go and
 * client/client.go.
 */
#ifndef CAIRN_SERVER_NOMAD_NOMAD_H
#define CAIRN_SERVER_NOMAD_NOMAD_H

#include "core/life.h"
#include "server/assign.h"
#include "server/control.h"
#include "spec/question.h"

#include <jansson.h>

struct nomad;

enum {
    NOMAD_SERVERS_MAX = 64,
    NOMAD_ADDRESS_SIZE = 272, /* "host:port" */
};

/* REPLY, borrowed; NULL: ERR says why, ERR_REFUSED in the server's own words, any other that it may
 * not have been heard. */
typedef void nomad_reply_cb(void *ctx, const json_t *reply, const struct err *err);

struct nomad_config {
    struct life *life; /* borrowed */
    struct say say;
    void *ctx;
    /* Makes METHOD with ARGS (borrowed) of SERVER, "host:port".  CB comes exactly once, never from
     * inside, within TIMEOUT_MS. */
    void (*call)(void *ctx, const char *server, const char *method, const json_t *args,
                 uint64_t timeout_ms, nomad_reply_cb *cb, void *cb_ctx);
    /* No server that is known answers: others are looked for, and nomad_found has what is found.
     * NULL: nobody looks. */
    void (*seek)(void *ctx);
    /* Wants nomad_wake to be called at this node time; 0: at none. */
    void (*arm)(void *ctx, uint64_t at_ms);
    uint64_t (*random)(void *ctx);
    const char *region, *node_id, *secret; /* borrowed */
    /* The node as Node.Register has it, but for SecretID and Status: a new reference. */
    json_t *(*describe_node)(void *ctx);
    /* What Node.UpdateAlloc says of ALLOC, but for NodeID: a new reference; NULL: there is no such
     * alloc. */
    json_t *(*describe_alloc)(void *ctx, const char *alloc);
    /* The node's events that the servers have not heard of, as Node.EmitEvents has them: a new
     * reference, and when the last of them was; NULL: there are none. */
    json_t *(*unheard_events)(void *ctx, int64_t *ret_until_unix_ns);
    /* They have heard of all up to then. */
    void (*events_heard)(void *ctx, int64_t until_unix_ns);
    /* SPEC (moved) is what an alloc runs by that is about to be committed.  May be NULL. */
    void (*placed)(void *ctx, struct alloc_spec *spec);
    struct assign_plans plans;
    const char *datacenter; /* of the node */
};

/* SERVERS are those of the configuration, each with a port; where somebody looks for them there may
 * be none.  Nothing is called before nomad_start. */
struct nomad *nomad_new(const struct nomad_config *config, const char *const *servers,
                        size_t servers_count);

/* Calls that are still under way may answer afterwards no more. */
void nomad_free(struct nomad *nomad);

/* The life has started. */
void nomad_start(struct nomad *nomad);

/* It is time, as ARM was told. */
void nomad_wake(struct nomad *nomad);

/* There are servers at PLACES, each with a port: those that are new are asked next, unless one has
 * answered since they were looked for. */
void nomad_found(struct nomad *nomad, const char (*places)[NOMAD_ADDRESS_SIZE], size_t count);

/* The servers are those at PLACES, 1 to NOMAD_SERVERS_MAX, whoever was known before: the first one
 * is asked next.  They say who they are when they answer. */
void nomad_set_servers(struct nomad *nomad, const char (*places)[NOMAD_ADDRESS_SIZE], size_t count);

/* These take NULL, of a node without servers.  EVENT was committed. */
void nomad_note(struct nomad *nomad, const struct journal_event *event);

/* A turn is over. */
void nomad_settle(struct nomad *nomad);

/* Claims on volumes, which the servers grant; as long as NOMAD is. */
const struct control *nomad_control(const struct nomad *nomad);

/* Writes to TO why ALLOC, which is in A_WAITING, waits for one that is on another node; false: it
 * does not. */
bool nomad_awaits(const struct nomad *nomad, const char *alloc, char *to, size_t size);

/* A connection to servers is over: the next question is one that is answered at once, as what would
 * have woken the last one may be over, too. */
void nomad_connection_over(struct nomad *nomad);

/* What describe_node says is something else. */
void nomad_node_changed(struct nomad *nomad);

/* The node has a new event. */
void nomad_events_changed(struct nomad *nomad);

/* --- what others ask of them --- */

/* Calls METHOD (a literal) with ARGS (moved), and TOKEN instead of the secret of the node; the
 * servers may wait WAIT_MS for a change.  CB as of nomad_config.call, or never, once NOMAD is
 * freed. */
void nomad_ask(struct nomad *nomad, const char *method, json_t *args, const char *token,
               uint64_t wait_ms, nomad_reply_cb *cb, void *ctx);

/* Wants the answer to QUESTION, as hooks_facts has it: NEWS is told when it may be another one, in
 * turns of the life or calls of this room; unwanted before NOMAD is freed, or not at all. */
void *nomad_want(struct nomad *nomad, const struct spec_question *question, void (*news)(void *ctx),
                 void *ctx);
const char *nomad_known(const void *wanted, struct err *err);
void nomad_unwant(void *wanted);

/* --- disks --- */

/* Looks for that of PREVIOUS, which ALLOC takes over.  CB comes once, a limited time later at the
 * latest, or never, once NOMAD is freed. */
void nomad_find_disk(struct nomad *nomad, const char *alloc, const char *previous, spec_disk_cb *cb,
                     void *ctx);

/* --- identities --- */

/* Has tokens signed for COUNT bearers, one at least, of ALLOC, whose create_index is INDEX.  All
 * that is handed in is borrowed for the call; CB as of nomad_ask.  Of what a server has refused
 * asking again does not help. */
void nomad_sign(struct nomad *nomad, const char *alloc, uint64_t index,
                const struct spec_bearer *bearers, size_t count, spec_signed_cb *cb, void *ctx);

/* --- services --- */

/* REGISTRATION, as Nomad has service registrations (borrowed), is offered, or is it with what is
 * new of it; or it is not any more (OFFERED is false).  The servers hear of it until they have
 * answered.
 */
void nomad_offer(struct nomad *nomad, bool offered, const json_t *registration);

/* --- what is seen of it --- */

struct nomad_standing {
    bool registered;    /* the servers know this node, as far as we know */
    bool synced;        /* they have said what is to run since the daemon began */
    const char *server; /* that is asked now, "": none; borrowed until the next call of one */
    size_t servers_count;
    uint64_t heard_ms; /* node time of the last heartbeat that was answered, 0: never */
    uint64_t ttl_ms;
    const char *trouble; /* why not, in one line, or ""; borrowed likewise */
};
void nomad_describe(const struct nomad *nomad, struct nomad_standing *ret_standing);

/* "host:port" of each, the one that is asked first. */
const char *nomad_server(const struct nomad *nomad, size_t number);

#endif
