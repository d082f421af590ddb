#include "agent/node/meta.h"

#include "agent/config/pairs.h"
#include "agent/node/entry.h"
#include "fsm/limits.h"
#include "spec/hcl.h"

#include <stdlib.h>
#include <string.h>

static const char entry[] = "metadata";

/* --- keys and values --- */

/* Names with dots between them, as constraints can have it. */
static bool is_key(const char *text)
{
    char *copy = strdup(text), *rest = copy, *part;
    bool is = true;

    check(copy != NULL);
    while (is && (part = strsep(&rest, ".")) != NULL)
        is = hcl_is_name(part);
    free(copy);
    return is;
}

static bool is_value(const json_t *value)
{
    return json_is_string(value) || json_is_null(value);
}

static bool is_whole(const json_t *json)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)json, key, value)
    {
        if (!is_key(key) || !is_value(value))
            return false;
    }
    return json_is_object(json);
}

static int check_change(const char *key, const json_t *value, struct err *err)
{
    size_t bytes = json_string_length(value);

    if (key[0] == '\0')
        return err_set(err, ERR_INVALID, "metadata keys must not be empty");
    if (strlen(key) >= NODE_META_KEY_SIZE)
        return err_set(err, ERR_LIMIT, "a metadata key may have %d bytes: \"%.40s...\" has %zu",
                       NODE_META_KEY_SIZE - 1, key, strlen(key));
    if (!is_key(key))
        return err_set(err, ERR_INVALID,
                       "\"%.120s\" is invalid; metadata keys must be valid dotted hcl identifiers",
                       key);
    if (!is_value(value))
        return err_set(err, ERR_INVALID,
                       "the value of metadata key \"%.120s\" must be text or null", key);
    if (bytes > NODE_META_VALUE_MAX)
        return err_set(err, ERR_LIMIT,
                       "a metadata value may have %d bytes: that of \"%.80s\" has %zu",
                       NODE_META_VALUE_MAX, key, bytes);
    return 0;
}

static int check_changes(const json_t *changes, struct err *err)
{
    const char *key;
    json_t *value;
    int code = 0;

    if (json_object_size(changes) == 0)
        return err_set(err, ERR_INVALID, "missing required Meta object");
    json_object_foreach((json_t *)(uintptr_t)changes, key, value)
    {
        code = check_change(key, value, err);
        if (code != 0)
            break;
    }
    return code;
}

/* A journal may have brought more: then there may be less. */
static int check_bound(const char *what, size_t has, size_t would, size_t max, struct err *err)
{
    if (would <= max || would <= has)
        return 0;
    return err_set(err, ERR_LIMIT, "there may be %zu %s, and there would be %zu", max, what, would);
}

static size_t bytes_of(const json_t *said)
{
    return json_dumpb(said, NULL, 0, JSON_COMPACT);
}

/* --- what holds --- */

static bool is_configured(const struct node_meta *meta, const char *key)
{
    for (size_t i = 0; i < meta->configured->count; i++) {
        if (text_equal(meta->configured->items[i].key, key))
            return true;
    }
    return false;
}

static void merge(struct node_meta *meta)
{
    const char *key;
    json_t *value;

    pairs_free(meta->merged);
    for (size_t i = 0; i < meta->configured->count; i++) {
        const struct spec_pair *pair = &meta->configured->items[i];

        if (json_object_get(meta->said, pair->key) == NULL)
            pairs_set(meta->merged, pair->key, pair->value);
    }
    json_object_foreach(meta->said, key, value)
    {
        if (json_is_string(value))
            pairs_set(meta->merged, key, json_string_value(value));
    }
}

/* What was taken away of a configuration that has it no more is forgotten for good. */
static void forget_gone(struct node_meta *meta)
{
    const char *key;
    json_t *value;
    void *next;

    json_object_foreach_safe(meta->said, next, key, value)
    {
        if (!json_is_null(value) || is_configured(meta, key))
            continue;
        check(json_object_del(meta->said, key) == 0);
        meta->untold = true;
    }
}

int node_meta_read(struct node_meta *meta, const struct store *store, const struct say *log,
                   int64_t now_unix_ns, struct err *err)
{
    int code = entry_read(store, log, entry, is_whole, now_unix_ns, &meta->said, err);

    if (meta->said == NULL)
        meta->said = json_object();
    forget_gone(meta);
    merge(meta);
    return code;
}

void node_meta_free(struct node_meta *meta)
{
    if (meta->merged != NULL)
        pairs_free(meta->merged);
    json_decref(meta->said);
    json_decref(meta->next);
    *meta = (struct node_meta){0};
}

void node_meta_begin(struct node_meta *meta, struct life *life, void (*changed)(void *ctx),
                     void *ctx)
{
    meta->life = life;
    meta->changed = changed;
    meta->ctx = ctx;
    if (meta->untold)
        entry_write(life_core(life), entry, meta->said);
    meta->untold = false;
}

/* --- what changes --- */

static void decided(void *ctx, int code, const struct err *err)
{
    struct node_meta *meta = ctx;

    (void)err; /* whoever asked gets it too */
    if (meta->next == NULL)
        return; /* by one that was asked for before it, in the same turn */
    if (code == 0) {
        json_decref(meta->said);
        meta->said = meta->next;
        merge(meta);
        if (meta->changed != NULL)
            meta->changed(meta->ctx);
        life_changed(meta->life, &(struct life_subject){.kind = LIFE_EVERYTHING});
    } else {
        json_decref(meta->next);
    }
    meta->next = NULL;
}

/* SAID (moved) holds from the next commit on. */
static void post(struct node_meta *meta, json_t *said)
{
    struct core *core = life_core(meta->life);

    json_decref(meta->next);
    meta->next = said;
    core_propose(core, true);
    entry_write(core, entry, said);
    core_propose(core, false);
    life_after_commit(meta->life, decided, meta);
}

/* What was SAID, a new reference, with CHANGES. */
static json_t *change(const struct node_meta *meta, const json_t *said, const json_t *changes)
{
    json_t *changed = json_copy((json_t *)(uintptr_t)said), *value;
    const char *key;

    json_object_foreach((json_t *)(uintptr_t)changes, key, value)
    {
        if (json_is_null(value) && !is_configured(meta, key))
            (void)json_object_del(changed, key); /* it may never have been there */
        else
            check(json_object_set(changed, key, value) == 0);
    }
    return changed;
}

int node_meta_apply(struct node_meta *meta, const json_t *changes, struct err *err)
{
    const json_t *before = meta->next != NULL ? meta->next : meta->said;
    int code = check_changes(changes, err);

    if (code == 0)
        code = life_check_turn(meta->life, 0, err);
    if (code < 0)
        return code;
    json_t *said = change(meta, before, changes);
    code = check_bound("metadata keys", json_object_size(before), json_object_size(said),
                       NODE_META_MAX, err);
    if (code == 0)
        code = check_bound("bytes of metadata", bytes_of(before), bytes_of(said),
                           NODE_META_BYTES_MAX, err);
    if (code < 0 || json_equal(before, said))
        json_decref(said);
    else
        post(meta, said);
    return code;
}
