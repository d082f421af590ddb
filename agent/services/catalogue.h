/*
 * What groups on this node offer to others under a name, and what their checks do.
 *
 * It holds nothing that is not in the journal or seen again: who is registered follows from the
 * machines (fsm/policy.h), what from the alloc's specification (hooks/services.h).  So nothing has
 * to be registered, deregistered or restored (I-34): after a restart of the daemon it is as it was
 * with the first turn.  What checks find reaches the alloc's machine when it is another thing than
 * before, and a check that fails too often its task's or all tasks.
 */
#ifndef CAIRN_AGENT_SERVICES_CATALOGUE_H
#define CAIRN_AGENT_SERVICES_CATALOGUE_H

#include "fsm/policy.h"
#include "hooks/services.h"
#include "journal/journal.h"

struct catalogue;
struct parts;

/* PARTS are borrowed; its hooks, specs and life are used from the first event on. */
struct catalogue *catalogue_new(struct parts *parts);
void catalogue_free(struct catalogue *catalogue);

/* EVENT was committed.  What follows from it is done by catalogue_settle. */
void catalogue_note(struct catalogue *catalogue, const struct journal_event *event);

/* A turn is over: brings everything up to date that was noted.  May post events. */
void catalogue_settle(struct catalogue *catalogue);

/* Something that is offered.  Borrowed for the call. */
struct catalogue_entry {
    const struct alloc_spec *alloc;
    const struct hooks_service *service;
    uint64_t create_index, modify_index; /* of the alloc, 0: not known */
};

/* ENTRY is registered, or is it with what is new of it; or it is not any more. */
typedef void catalogue_news(void *ctx, bool registered, const struct catalogue_entry *entry);

/* NEWS is called for each change from now on; NULL: nobody wants to know.  CATALOGUE_CONSUL hears
 * of services of Consul, the others of Nomad's own. */
enum catalogue_listener {
    CATALOGUE_EVENTS,
    CATALOGUE_SERVERS,
    CATALOGUE_CONSUL,
    CATALOGUE_LISTENERS
};
void catalogue_listen(struct catalogue *catalogue, enum catalogue_listener who,
                      catalogue_news *news, void *ctx);

/* CHANGED is called whenever another thing is offered in a namespace than before. */
void catalogue_on_change(struct catalogue *catalogue,
                         void (*changed)(void *ctx, const char *namespace), void *ctx);

/* The agent of Consul says that CHECK, by its id, of ALLOC is of STATUS. */
void catalogue_checked(struct catalogue *catalogue, const char *alloc, const char *check,
                       enum consul_status status);

/* True if a deployment or a restart waits for what checks of Consul find.  Looks at everything
 * again, also at what nobody tells: canaries that are some no more. */
bool catalogue_watches_consul(struct catalogue *catalogue);

/* Each of Nomad's own in NAMESPACE (NULL: in any), by name, then by id. */
typedef void catalogue_each_cb(void *ctx, const struct catalogue_entry *entry);
void catalogue_each(struct catalogue *catalogue, const char *namespace, catalogue_each_cb *cb,
                    void *ctx);

/* All services of ALLOC, offered or not, with what their checks have found; NULL: it has none at
 * the moment.  Borrowed until the loop goes on. */
const struct hooks_services *catalogue_of_alloc(const struct catalogue *catalogue,
                                                const char *alloc);

/* What is offered in NAMESPACE, by names: a list of Nomad's service registrations, a new reference.
 */
json_t *catalogue_list(struct catalogue *catalogue, const char *namespace);

/* As Nomad's API shows it; a new reference. */
json_t *catalogue_registration(const struct catalogue *catalogue,
                               const struct catalogue_entry *entry);

#endif
