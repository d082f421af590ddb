/* Inside hooks/services/ only: services on their way to be whole, and who runs their checks. */
#ifndef CAIRN_HOOKS_SERVICES_PART_H
#define CAIRN_HOOKS_SERVICES_PART_H

#include "hooks/env/expand.h"
#include "hooks/part.h"
#include "hooks/services.h"
#include "hooks/services/wire.h"

/* --- making them --- */

/* What is asked of the process, for one check. */
struct services_order {
    char *text;
    size_t length; /* 0: nobody knows yet where */
};

/* As the caller has them, and what is not to be seen. */
struct services_made {
    struct hooks_services shown; /* first, so that it is their address */
    struct arena arena;          /* everything they point to, but for what checks say */
    struct services_order orders[SPEC_CHECKS_MAX]; /* by the checks' numbers */
};

/* Where something is, or is asked. */
struct services_place {
    const char *address; /* "": it is not known yet, or the node has none */
    uint16_t port;       /* 0: none */
};

/* What an address is looked for by; texts are interpolated. */
struct services_wanted {
    const struct hooks *hooks;
    const struct alloc_spec *alloc;
    const json_t *network; /* status of the alloc's own, NULL: none is known */
    const char *task;      /* whose ports count as well; "": only the group's */
    const char *custom;    /* the address that the job gives, "": none */
    const char *port;      /* a label or a number, "": none */
    enum spec_address_mode mode;
};

/* ERR_INVALID, in Nomad's words, where it has some. */
int services_address(const struct services_wanted *wanted, struct services_place *ret_place,
                     struct err *err);

/* HOST:PORT, with brackets around an address that has colons; in ARENA. */
char *services_authority(struct arena *arena, const struct services_place *place);

/* PROTOCOL://AUTHORITY and PATH, which is a reference of RFC 3986 that stays on that host; in
 * ARENA.  ERR_INVALID: it is none. */
int services_url(struct arena *arena, const char *protocol, const char *authority, const char *path,
                 char **ret_url, struct err *err);

/* The texts of a check, interpolated. */
struct check_texts {
    const char *name, *port, *path, *method, *protocol;
    const char *command, *grpc_service, *initial_status, *notes; /* of Consul's checks */
    struct spec_texts arguments;
    json_t *headers; /* a list of pairs, owned */
};

/* What a check is known by, from its interpolated texts. */
struct services_identity {
    const struct spec_check *spec;
    const struct check_texts *texts;
    const char *alloc, *group, *task;
};
void services_check_id(const struct services_identity *identity, char to[CHECK_ID_SIZE]);

/* The same of a check of the service SERVICE_ID of Consul. */
void services_consul_check_id(const char *service_id, const struct spec_check *spec,
                              const struct check_texts *texts, char to[CHECK_ID_SIZE]);

/* --- registrations with Consul --- */

/* META is interpolated; a new reference, without checks. */
json_t *services_registration(const struct hooks_service *service, const struct spec_pairs *meta,
                              const char *node_id);

/* Puts how SERVICE, a group's, takes part in the mesh into its registration: texts interpolated by
 * EXPAND.  ERR_INVALID: a port that the group has not. */
typedef int services_expand(void *ctx, const char *text, const char **ret_text);
int services_register_connect(const struct alloc_spec *alloc, struct hooks_service *service,
                              services_expand *expand, void *ctx, struct err *err);

/* CHECK and its TEXTS as Consul is told of them. */
void services_register_check(json_t *registration, const struct hooks_check *check,
                             const struct check_texts *texts);

/* --- the process --- */

/* One order.  Zeroed before first use, but for what is asked. */
struct checker_job {
    const char *order; /* borrowed until it is done or forgotten */
    size_t order_length;
    uint64_t timeout_ms;
    void (*done)(struct checker_job *job, const struct wire_answer *answer); /* on the loop */
    struct checker_job *next, **link; /* private: waits, if there is a link */
    unsigned slot;                    /* private: and one more, 0: it is not with the process */
};

/* While there is a user the process may run; what is asked waits for it. */
void checker_use(struct hooks *hooks);
void checker_leave(struct hooks *hooks);

/* DONE follows, from a callback of the loop's; until then JOB belongs to the checker. */
void checker_ask(struct hooks *hooks, struct checker_job *job);

/* DONE does not follow any more. */
void checker_forget(struct hooks *hooks, struct checker_job *job);

/* Ends the process, if there is one, and waits for that. */
void checker_free(struct hooks *hooks);

#endif
