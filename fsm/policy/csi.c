/*
 * What to do when a call of CSI has ended.
 *
 * A table by status and kind of call, and the calls that are exceptions.  Every call of CSI may be
 * repeated with the same arguments, and undoing what is not there succeeds, so that an unknown
 * outcome is never taken for a failure: it is repeated, or undone.
 */
#include "fsm/csi.h"

#include "base/base.h"

/* The columns are the kinds: asks, makes, undoes. */
#define ALL(verdict)                                                                               \
    {                                                                                              \
        CSI_##verdict, CSI_##verdict, CSI_##verdict                                                \
    }
#define EACH(asks, makes, undoes)                                                                  \
    {                                                                                              \
        CSI_##asks, CSI_##makes, CSI_##undoes                                                      \
    }

static const struct {
    enum csi_verdict verdicts[CSI_KIND_COUNT];
    bool may_run; /* although the plugin has answered */
} statuses[CSI_STATUS_COUNT] = {
    {ALL(DONE), false},                     /* OK */
    {ALL(REPEAT), true},                    /* CANCELLED */
    {ALL(DOUBT), false},                    /* UNKNOWN */
    {ALL(REFUSED), false},                  /* INVALID_ARGUMENT */
    {ALL(REPEAT), true},                    /* DEADLINE_EXCEEDED */
    {EACH(REFUSED, REFUSED, DONE), false},  /* NOT_FOUND */
    {ALL(REFUSED), false},                  /* ALREADY_EXISTS */
    {ALL(REFUSED), false},                  /* PERMISSION_DENIED */
    {ALL(REPEAT), false},                   /* RESOURCE_EXHAUSTED */
    {EACH(REFUSED, REPEAT, REPEAT), false}, /* FAILED_PRECONDITION: in use elsewhere */
    {ALL(REPEAT), true},                    /* ABORTED: a call for it is under way */
    {ALL(REFUSED), false},                  /* OUT_OF_RANGE */
    {ALL(REFUSED), false},                  /* UNIMPLEMENTED */
    {ALL(DOUBT), false},                    /* INTERNAL */
    {ALL(REPEAT), true},                    /* UNAVAILABLE: also from a server that ends */
    {ALL(DOUBT), false},                    /* DATA_LOSS */
    {ALL(REFUSED), false},                  /* UNAUTHENTICATED */
};

enum { ALREADY_EXISTS = 6, RESOURCE_EXHAUSTED = 8, FAILED_PRECONDITION = 9 };

static const struct {
    enum csi_call call;
    unsigned status;
    enum csi_verdict verdict;
} exceptions[] = {
    {CSI_PROBE, FAILED_PRECONDITION, CSI_REPEAT},         /* it lacks something yet */
    {CSI_CREATE_VOLUME, RESOURCE_EXHAUSTED, CSI_REFUSED}, /* who asked is told, and makes room */
    {CSI_NODE_STAGE, FAILED_PRECONDITION, CSI_REFUSED},   /* more than the volume can do */
    {CSI_NODE_PUBLISH, FAILED_PRECONDITION, CSI_STAGE_FIRST},
    {CSI_NODE_PUBLISH, ALREADY_EXISTS, CSI_UNDO_FIRST},
    {CSI_NODE_EXPAND, FAILED_PRECONDITION, CSI_REFUSED}, /* while it is in use: not at all */
    {CSI_CONTROLLER_EXPAND, FAILED_PRECONDITION, CSI_REFUSED},
};

struct csi_outcome policy_csi_outcome(enum csi_call call, unsigned status, bool sent, bool answered)
{
    static const enum csi_kind kinds[] = {
#define X(name, service, method, kind, limit_ms) CSI_##kind,
        CSI_CALLS(X)
#undef X
    };

    check((unsigned)call < CSI_CALL_COUNT);
    check(status < CSI_STATUS_COUNT);
    check(implies(answered, sent));
    struct csi_outcome outcome = {.verdict = statuses[status].verdicts[kinds[call]]};
    outcome.may_run = kinds[call] != CSI_ASKS && sent && (!answered || statuses[status].may_run);
    for (size_t i = 0; answered && i < COUNT_OF(exceptions); i++) {
        if (exceptions[i].call == call && exceptions[i].status == status)
            outcome.verdict = exceptions[i].verdict;
    }
    return outcome;
}
