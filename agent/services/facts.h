/*
 * What templates ask for that is not in files (hooks_facts): of servers, where there are some, else
 * of what allocs offer here.
 */
#ifndef CAIRN_AGENT_SERVICES_FACTS_H
#define CAIRN_AGENT_SERVICES_FACTS_H

#include "hooks/hooks.h"

struct facts;
struct parts;

/* PARTS are borrowed.  Hooks that were given it end before it does. */
struct facts *facts_new(struct parts *parts);
void facts_free(struct facts *facts);

/* As long as FACTS. */
const struct hooks_facts *facts_for_hooks(const struct facts *facts);

/* Another thing is offered in NAMESPACE (catalogue_on_change); CTX is the struct facts. */
void facts_offered(void *ctx, const char *namespace);

#endif
