/* Inside drivers only: sessions in tasks that have no process. */
#ifndef CAIRN_DRIVERS_MOCK_PRETENDED_H
#define CAIRN_DRIVERS_MOCK_PRETENDED_H

#include "drivers/part.h"

struct pretended;

/* What is pretended in the task of RUN, which is held; CALLS come from the loop, on_end as the
 * last. NULL and a reason: ERR_UNSUPPORTED where its config says nothing. */
struct pretended *pretended_new(struct drivers *drivers, const struct run *run,
                                const struct driver_session_calls *calls, struct err *err);
extern const struct session_way pretended_way;

/* The task KEY has ended: so do they. */
void pretended_end_all(struct drivers *drivers, const struct driver_key *key);

#endif
