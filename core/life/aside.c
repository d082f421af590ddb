/* What cannot be believed goes into quarantine, where it can be looked at. */
#include "core/life/part.h"

int life_set_aside(struct life *life, const char *table, const char *key, const char *reason,
                   struct err *err)
{
    const struct store *store = &life->world.store;
    int64_t unix_ns;

    say(&life->world.say, SAY_ERROR, "journal",
        "entry is damaged, put into quarantine table=%s key=%s reason=%s", table, text_value(key),
        text_value(reason));
    if (store->quarantine == NULL)
        return 0;
    (void)life->world.now(life->world.ctx, &unix_ns); /* only the wall clock is wanted */
    return store->quarantine(store->ctx, table, key, reason, unix_ns, err);
}
