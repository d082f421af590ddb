/*
 * Constraints: whether a node is one that a job may run on.
 *
 * Follows nomad v1.1.2 nomad/structs/structs.go (Constraint.Validate) and scheduler/feasible.go
 * (checkConstraint); <, <=, > and >= compare numbers as numbers, as Nomad does since 1.6.
 * distinct_hosts and distinct_property are about other allocs, which the control plane knows.
 */
#ifndef CAIRN_SPEC_CONSTRAINT_H
#define CAIRN_SPEC_CONSTRAINT_H

#include "base/err.h"
#include "spec/spec.h"

#include <jansson.h>

/* What constraints may name of a node: ${node.unique.id}, ${node.unique.name}, ${node.datacenter},
 * ${node.class}, ${node.pool}, ${attr.NAME} and ${meta.NAME}.  All borrowed, none NULL but the
 * pairs. */
struct constraint_node {
    const char *id, *name, *datacenter, *class, *pool;
    const struct spec_pairs *attributes, *meta;
};

/* 0, or ERR_INVALID and what is wrong with CONSTRAINT (as JSON); IN_TASK: it stands in a task. */
int constraint_check(const json_t *constraint, bool in_task, struct err *err);

/* TARGET as NODE has it, or TARGET itself if it is no ${...}; borrowed from either.  NULL: the node
 * has no such thing. */
const char *constraint_target(const struct constraint_node *node, const char *target);

/* True if NODE fulfils CONSTRAINT; of those about other allocs nothing is asked here. */
bool constraint_holds(const struct constraint_node *node, const json_t *constraint);

/* The first constraint of JOB, of its GROUP and of that one's tasks that NODE does not fulfil, in
 * Nomad's words: a new reference to a string, or NULL. */
json_t *constraint_unmet(const struct constraint_node *node, const json_t *job,
                         const json_t *group);

/* True if operator semver can compare TEXT. */
bool constraint_is_version(const char *text);

/* How many of the allocs that CONSTRAINTS (of a job or a group) are about may be on NODE together.
 */
size_t constraint_room(const struct constraint_node *node, const json_t *constraints);

/* Why no further one may be placed there beside COUNT: a new reference to a string, or NULL. */
json_t *constraint_crowded(const struct constraint_node *node, const json_t *constraints,
                           size_t count);

#endif
