/*
 * What the groups of this node offer to others under a name, and the checks of it: Nomad's own
 * services, and those that are registered with Consul, whose agent asks.
 *
 * Who is registered is nowhere stored: it follows from the machines (fsm/policy.h) and from what
 * the job says, which is made whole here: names and tags interpolated, addresses found.  Checks
 * are run by a process beside the daemon, which has no rights and reads what the checked answer.
 *
 * Behaviour follows nomad v2.0.5 client/serviceregistration (nsd, checks), with the differences
 * that a check is not run twice at once and that one timer belongs to one check; of Consul
 * command/agent/consul/service_client.go.
 */
#ifndef CAIRN_HOOKS_SERVICES_H
#define CAIRN_HOOKS_SERVICES_H

#include "hooks/hooks.h"

/* How Nomad calls what it registers with Consul, and the key of its metadata whose value is the id
 * of the node that has done so here. */
#define CONSUL_SERVICE_PREFIX "_nomad-task-"
#define CONSUL_CHECK_PREFIX "_nomad-check-"
#define CONSUL_MARK "cairn-node"

enum check_status { CHECK_PENDING, CHECK_SUCCESS, CHECK_FAILURE };

enum { CHECK_OUTPUT_SIZE = 3072 + 1, CHECK_ID_SIZE = 64 + 1 };

/* A check, and what came of it last. */
struct hooks_check {
    const struct spec_check *spec;
    char id[CHECK_ID_SIZE]; /* Nomad's: a digest of what it asks */
    const char *name;       /* interpolated */
    const char *target;     /* a URL, or HOST:PORT; "" of a script, or it is not known yet */
    const char *task;       /* whom a script is run in */
    const char *command;    /* interpolated, as its arguments are */
    struct spec_texts arguments;
    uint8_t number; /* among those of its alloc, below SPEC_CHECKS_MAX */

    enum check_status status;
    int code;        /* of HTTP, 0: none */
    int64_t unix_ns; /* when that was; 0: it has not run yet */
    char *output;    /* what it said, at most CHECK_OUTPUT_SIZE with its NUL; never NULL; owned, and
                        replaced by hooks_check_say */
};

struct hooks_service {
    const struct spec_service *spec;
    const char *id; /* _nomad-task-<alloc>-<task or group-GROUP>-<name>-<port> */
    const char *name;
    struct spec_texts tags; /* of a canary: its canary_tags, if it has any */
    const char *address;
    uint16_t port; /* 0: none */
    struct hooks_check *checks;
    size_t checks_count;
    json_t *registration; /* with Consul, owned; NULL: it is none of Consul's, or its address is not
                             known yet */
};

/* All of an alloc; owns what it points to but for the specs. */
struct hooks_services {
    struct hooks_service *items;
    size_t count;
};

/* OUTPUT, cut if it is too long, is what CHECK has said last. */
void hooks_check_say(struct hooks_check *check, const char *output);

/* Makes whole what ALLOC offers.  NETWORK is the status of its own network as hooks_network_status
 * gives it, NULL: it is the host's, or not known yet.  ERR_INVALID: a name that is none once it is
 * interpolated, a port that the group has not, an address that cannot be had.  ALLOC has to live
 * as long as RET_SERVICES. */
int hooks_services_make(const struct hooks *hooks, const struct alloc_spec *alloc, bool canary,
                        const json_t *network, struct hooks_services **ret_services,
                        struct err *err);
void hooks_services_free(struct hooks_services *services);

/* --- the checks of the node's services --- */

/* A check has run; on the loop, never from inside a call.  CHECK holds what came of it. */
typedef void hooks_checked(void *ctx, const struct hooks_service *service,
                           const struct hooks_check *check);

/* Begins those of SERVICES that are Nomad's, borrowed until they are ended, each first after half
 * of its interval, with what is written in them as what is known.  RET_CHECKS is NULL if there are
 * none. */
struct hooks_checks;
void hooks_checks_begin(struct hooks *hooks, struct hooks_services *services,
                        hooks_checked *checked, void *ctx, struct hooks_checks **ret_checks);

/* No CHECKED comes any more.  NULL is nothing to end. */
void hooks_checks_end(struct hooks_checks *checks);

#endif
