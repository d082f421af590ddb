/*
 * Identities of a task that have names: having them signed before a start, and again while it runs.
 *
 * What is to be had is an order, made on the loop of the specification; the tokens are the hook's
 * results, and so in the journal: of each one under the name of its variable, if it has one, or
 * else as "token/NAME" (RESULT_DATA), and beside them what they say (RENDERED_KEY) and until when
 * (EXPIRES_KEY), in the order of the specification.
 */
#ifndef CAIRN_HOOKS_SIGNING_H
#define CAIRN_HOOKS_SIGNING_H

#include "fsm/policy.h"
#include "hooks/part.h"

#define EXPIRES_KEY "expires" /* int64_t, of the wall clock in nanoseconds, 0: never */

/* An order that was read; texts are borrowed from `order`. */
struct signing_order {
    json_t *order; /* owned */
    const char *alloc;
    uint64_t index;
    size_t count;
    struct spec_bearer bearers[SPEC_IDENTITIES_MAX];
    struct spec_signed tokens[SPEC_IDENTITIES_MAX]; /* token NULL: there is none that was signed */
    bool expiring[SPEC_IDENTITIES_MAX];
};

void signing_open(struct signing_order *order, const char *text);

/* The tokens are those that RESULTS, BYTES of them, say. */
void signing_read(struct signing_order *order, const uint8_t *results, uint32_t bytes);

/* True if a file of a token is there, and has another one than the results of REQUEST. */
bool signing_differs(const struct hook_request *request);
void signing_close(struct signing_order *order);

/* Those that are still being asked for are asked for by nobody. */
void signings_free(struct hooks *hooks);

/* What TOKENS leave, of which there is one for each identity, in their order. */
int signing_results(const struct signing_order *order, const struct spec_signed *tokens,
                    struct results *results, struct err *err);

/* --- renewing --- */

struct renewals;

struct renewals *renewals_new(struct hooks *hooks);
void renewals_free(struct renewals *renewals); /* work under way ends, and nobody is told */

/* Ends that of a task, if there is one.  True: it is just writing files, and RESUME follows on the
 * loop when it does not any more. */
bool renewals_end(struct renewals *renewals, const char *alloc, const char *task,
                  void (*resume)(void *ctx), void *ctx);

#endif
