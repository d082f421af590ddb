/* One journal record, "node", holds id, secret, boot id and clock offset; another, "clock", the
 * time of the last event where the log has been lost. */
#include "core/identity.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char key[] = "node";

enum { LAST_TRIES = 64 };

/* --- the last event of the journal --- */

struct last {
    const struct say *say;
    struct clock_last clock;
    uint64_t turn;
};

static bool note_last(void *ctx, const struct journal_event *event)
{
    struct last *last = ctx;

    if (event->turn <= NUMBER_BEGIN_MAX && event->now_ms <= NUMBER_BEGIN_MAX) {
        last->clock = (struct clock_last){event->now_ms, event->unix_ns};
        last->turn = event->turn;
    }
    return true;
}

static void tell_damage(void *ctx, const char *table, const char *name, const void *bytes,
                        size_t length, const char *reason)
{
    const struct last *last = ctx;

    (void)table;
    (void)bytes;
    (void)length;
    say(last->say, SAY_WARN, "journal", "event cannot be read sequence=%s reason=%s",
        text_value(name), text_value(reason));
}

/* A log that could not be brought over has left when it ended. */
static int read_lost(struct last *last, const struct store *store, struct err *err)
{
    char *text;
    size_t length;
    int code = store->meta_read(store->ctx, IDENTITY_CLOCK, &text, &length, err);

    if (code < 0)
        return code == ERR_GONE || code == ERR_CORRUPT ? 0 : code;
    json_t *stored = json_loadb(text, length, 0, NULL);
    free(text);
    uint64_t turn = (uint64_t)json_integer_value(json_object_get(stored, "turn"));
    uint64_t now_ms = (uint64_t)json_integer_value(json_object_get(stored, "now_ms"));
    int64_t unix_ns = json_integer_value(json_object_get(stored, "unix_ns"));
    json_decref(stored);
    if (turn > NUMBER_BEGIN_MAX || now_ms > NUMBER_BEGIN_MAX)
        return 0; /* as if there were none */
    last->turn = turn;
    last->clock = (struct clock_last){now_ms, unix_ns};
    return 0;
}

static int read_last(struct last *last, const struct store *store, struct err *err)
{
    uint64_t next = store->next_sequence(store->ctx), first = store->first_sequence(store->ctx);
    int code = 0;

    /* Damaged events at the end must not set the clock back to nothing. */
    for (uint64_t at = next - 1, tries = 0;
         code == 0 && at >= first && at > 0 && last->turn == 0 && tries < LAST_TRIES; at--, tries++)
        code = store->each_event(store->ctx, at, note_last, tell_damage, last, err);
    return code == 0 && last->turn == 0 ? read_lost(last, store, err) : code;
}

/* --- ids --- */

static bool take_id(char to[UUID_TEXT_SIZE], const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text != NULL && uuid_is_valid(text) && text_copy(to, UUID_TEXT_SIZE, text);
}

static int read_stored(struct identity *identity, const struct store *store, struct err *err)
{
    char *text;
    size_t length;
    int code = store->meta_read(store->ctx, key, &text, &length, err);

    if (code < 0)
        return code;
    json_t *stored = json_loadb(text, length, 0, NULL);
    free(text);
    bool whole = take_id(identity->id, stored, "id") &&
                 take_id(identity->secret, stored, "secret") &&
                 take_id(identity->boot_id, stored, "boot_id");
    identity->clock_offset_ms =
        (uint64_t)json_integer_value(json_object_get(stored, "clock_offset_ms"));
    json_decref(stored);
    return whole ? 0 : err_set(err, ERR_CORRUPT, "the node's identity in the journal is damaged");
}

int identity_recall(struct identity *identity, const struct store *store, const struct say *say,
                    struct clock_last *ret_last, struct err *err)
{
    struct last last = {.say = say};
    int code = read_last(&last, store, err);

    if (code < 0)
        return code;
    *ret_last = last.clock;
    identity->last_turn = last.turn;
    return read_stored(identity, store, err);
}

char *identity_encode(const struct identity *identity)
{
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:I}", "id", identity->id, "secret", identity->secret, "boot_id",
                  identity->boot_id, "clock_offset_ms", (json_int_t)identity->clock_offset_ms);
    char *text = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);

    check(text != NULL);
    json_decref(object);
    return text;
}

static int write_stored(const struct identity *identity, const struct store *store, struct err *err)
{
    char *text = identity_encode(identity);
    struct journal_blob blob = {.bytes = text, .length = strlen(text)};
    (void)text_copy(blob.key, sizeof(blob.key), key); /* fits */
    struct journal_batch batch = {.metas = &blob, .metas_count = 1};
    int code = store->commit(store->ctx, &batch, err);
    free(text);
    return code;
}

/* ERR_GONE: out of the way. */
static int set_aside(const struct store *store, const struct identity_now *now, struct err *err)
{
    say(&now->say, SAY_ERROR, "journal",
        "the node's identity is damaged, put into quarantine, and made anew error=%s",
        text_value(err->text));
    int code = store->quarantine(store->ctx, "meta", key, err->text, now->unix_ns, err);
    return code == 0 ? ERR_GONE : code;
}

int identity_take(struct identity *identity, const struct store *store,
                  const struct identity_now *now, struct err *err)
{
    char boot_id[UUID_TEXT_SIZE];
    struct clock_last last = {0};

    *identity = (struct identity){0};
    int code = identity_recall(identity, store, &now->say, &last, err);
    if (code == ERR_CORRUPT && read_stored(identity, store, err) == ERR_CORRUPT)
        code = set_aside(store, now, err); /* the identity, and not what else was read */
    bool first = code == ERR_GONE;
    if (code < 0 && !first)
        return code;
    (void)text_copy(boot_id, sizeof(boot_id), identity->boot_id);                /* same size */
    (void)text_copy(identity->boot_id, sizeof(identity->boot_id), now->boot_id); /* a UUID */
    if (first) {
        uuid_format(identity->id, now->random[0], now->random[1]);
        uuid_format(identity->secret, now->random[2], now->random[3]);
        code = write_stored(identity, store, err);
        if (code < 0)
            return code;
    }
    uint64_t offset_ms = identity->clock_offset_ms;
    identity->rebooted = boot_id[0] != '\0' && !text_equal(boot_id, identity->boot_id);
    identity->clock_offset_ms =
        clock_continue(offset_ms, identity->rebooted, &last, now->since_boot_ms, now->unix_ns);
    identity->changed = identity->rebooted || identity->clock_offset_ms != offset_ms;
    return 0;
}

void identity_keep(const struct identity *identity, struct core *core)
{
    if (!identity->changed)
        return;
    char *text = identity_encode(identity);
    core_meta(core, key, text, strlen(text));
    free(text);
}
