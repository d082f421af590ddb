/*
 * Volumes of storage plugins, and of the host: as they are stored, and found.
 */
#include "server/storage/part.h"

#include <stdlib.h>
#include <string.h>

/* --- volumes --- */

struct registered *registry_find(const struct storage *storage, const char *namespace,
                                 const char *id)
{
    char key[JOURNAL_KEY_SIZE];
    struct registered *volume;

    if (!text_format(key, sizeof(key), "%s/%s/%s", storage->kind->prefix, namespace, id))
        return NULL;
    HASH_FIND_STR(storage->volumes, key, volume);
    return volume;
}

static struct registered *add(struct storage *storage, const char *namespace, const char *id)
{
    struct registered *volume = calloc(1, sizeof(*volume));

    check(volume != NULL);
    (void)text_format(volume->key, sizeof(volume->key), "%s/%s/%s", storage->kind->prefix,
                      namespace, id);
    (void)text_copy(volume->namespace, sizeof(volume->namespace), namespace);
    (void)text_copy(volume->id, sizeof(volume->id), id);
    volume->public.namespace = volume->namespace;
    volume->public.id = volume->id;
    HASH_ADD_STR(storage->volumes, key, volume);
    storage->volumes_unsorted = true;
    return volume;
}

/* It keeps its name for life. */
static void find_by(struct storage *storage, struct registered *volume, const char *name)
{
    volume->name = strdup(name);
    check(volume->name != NULL);
    HASH_ADD_KEYPTR(by_name, storage->by_name, volume->name, strlen(volume->name), volume);
}

static void drop(struct storage *storage, struct registered *volume)
{
    HASH_DEL(storage->volumes, volume);
    if (volume->name != NULL)
        HASH_DELETE(by_name, storage->by_name, volume);
    free(volume->name);
    json_decref(volume->json);
    free(volume);
}

static enum registration_state state_of(const json_t *json)
{
    const char *name = registry_text(json, "cairnState");
    int state = 0;

    /* It was checked, or is our own. */
    while (!text_equal(name, registration_name((enum registration_state)state)))
        state++;
    return (enum registration_state)state;
}

/* JSON is moved. */
static void set(struct storage *storage, struct registered *volume, json_t *json)
{
    if (storage->kind->has_names && volume->name == NULL)
        find_by(storage, volume, registry_text(json, "Name"));
    json_decref(volume->json);
    volume->json = json;
    volume->public.json = json;
    volume->public.state = state_of(json);
    volume->public.last_fail = registry_text(json, "cairnFailure");
    volume->public.has_mount_flags = json_is_true(json_object_get(json, "cairnMountFlags"));
}

void registry_free(struct storage *storage)
{
    struct registered *volume, *next;

    HASH_ITER(hh, storage->volumes, volume, next)
    drop(storage, volume);
}

/* --- secrets --- */

static bool secret_key(const struct storage *storage, char key[JOURNAL_KEY_SIZE],
                       const char *namespace, const char *id)
{
    return text_format(key, JOURNAL_KEY_SIZE, "secret/%s/%s/%s", storage->kind->prefix, namespace,
                       id);
}

json_t *registry_secret(const struct storage *storage, const struct registered *volume)
{
    char key[JOURNAL_KEY_SIZE], *text;
    size_t length;

    if (!secret_key(storage, key, volume->namespace, volume->id))
        return NULL;
    int code = life_read_spec(storage->config.life, key, &text, &length, NULL);
    if (code == ERR_GONE)
        return json_object();
    if (code < 0)
        return NULL;
    json_t *secret = json_loadb(text, length, 0, NULL);
    explicit_bzero(text, length);
    free(text);
    return secret;
}

/* --- as they are stored --- */

/* A change that the next commit decides. */
struct change_of_volume {
    struct storage *storage;
    char namespace[SPEC_NAMESPACE_SIZE], id[REGISTRY_ID_SIZE];
    json_t *json;
    life_answer *then;
    void *ctx;
    struct change_of_volume *next, **link;
};

static void forget(struct change_of_volume *change)
{
    *change->link = change->next;
    if (change->next != NULL)
        change->next->link = change->link;
    json_decref(change->json);
    free(change);
}

static void apply(struct change_of_volume *change)
{
    struct storage *storage = change->storage;
    struct registered *volume = registry_find(storage, change->namespace, change->id);

    if (change->json == NULL) {
        if (volume != NULL)
            drop(storage, volume);
        return;
    }
    if (volume == NULL)
        volume = add(storage, change->namespace, change->id);
    set(storage, volume, json_incref(change->json));
}

static void decided(void *ctx, int code, const struct err *err)
{
    struct change_of_volume *change = ctx;
    struct storage *storage = change->storage;
    life_answer *then = change->then;
    void *then_ctx = change->ctx;

    if (code == 0) {
        apply(change);
        storage->config.freed(storage->config.freed_ctx); /* somebody may wait for it */
    }
    forget(change);
    then(then_ctx, code, err);
}

static void post(struct storage *storage, const struct change_of_volume *change,
                 const json_t *secret)
{
    struct core *core = life_core(storage->config.life);
    char key[JOURNAL_KEY_SIZE], secret_at[JOURNAL_KEY_SIZE];
    char *text = change->json == NULL ? NULL : json_dumps(change->json, JSON_COMPACT);
    char *hidden = json_object_size(secret) == 0 ? NULL : json_dumps(secret, JSON_COMPACT);

    (void)text_format(key, sizeof(key), "%s/%s/%s", storage->kind->prefix, change->namespace,
                      change->id);                                       /* fits */
    (void)secret_key(storage, secret_at, change->namespace, change->id); /* as it was read */
    core_spec(core, key, text, text == NULL ? 0 : strlen(text));
    if (secret != NULL || text == NULL)
        core_spec(core, secret_at, hidden, hidden == NULL ? 0 : strlen(hidden));
    free(text);
    if (hidden != NULL)
        explicit_bzero(hidden, strlen(hidden));
    free(hidden);
}

void registry_store(struct storage *storage, const char *namespace, const char *id, json_t *json,
                    const json_t *secret, life_answer *then, void *ctx)
{
    struct change_of_volume *change = calloc(1, sizeof(*change));
    struct life_subject everything = {.kind = LIFE_EVERYTHING};

    check(change != NULL);
    change->storage = storage;
    (void)text_copy(change->namespace, sizeof(change->namespace), namespace);
    (void)text_copy(change->id, sizeof(change->id), id);
    change->json = json;
    change->then = then;
    change->ctx = ctx;
    change->next = storage->volume_changes;
    change->link = &storage->volume_changes;
    if (change->next != NULL)
        change->next->link = &change->next;
    storage->volume_changes = change;
    core_propose(life_core(storage->config.life), true);
    post(storage, change, secret);
    core_propose(life_core(storage->config.life), false);
    life_after_commit(storage->config.life, decided, change);
    life_changed(storage->config.life, &everything);
}

void registry_forget_changes(struct storage *storage)
{
    while (storage->volume_changes != NULL)
        forget(storage->volume_changes);
}

/* --- reading them --- */

struct disbelieved {
    char key[JOURNAL_KEY_SIZE];
    const char *why;
};

struct loading {
    struct storage *storage;
    struct disbelieved *items;
    size_t count, size;
};

static bool load_volume(void *ctx, const char *key, const void *bytes, size_t length)
{
    struct loading *loading = ctx;
    json_t *json = json_loadb(bytes, length, 0, NULL);
    const char *fault = loading->storage->kind->fault(key, json);

    if (fault != NULL) {
        struct disbelieved *disbelieved = list_more(loading);
        (void)text_copy(disbelieved->key, sizeof(disbelieved->key), key); /* same size */
        disbelieved->why = fault;
        json_decref(json);
        return true;
    }
    struct registered *volume =
        add(loading->storage, registry_text(json, "Namespace"), registry_text(json, "ID"));
    set(loading->storage, volume, json);
    return true;
}

int registry_load(struct storage *storage, struct err *err)
{
    struct loading loading = {.storage = storage};
    char prefix[32];

    (void)text_format(prefix, sizeof(prefix), "%s/", storage->kind->prefix); /* fits */
    int code = life_each_spec(storage->config.life, prefix, load_volume, &loading, err);

    for (size_t i = 0; i < loading.count && code == 0; i++) {
        say(&storage->config.say, SAY_ERROR, "server",
            "a stored volume cannot be read; who has it keeps it, register it again key=%s",
            text_value(loading.items[i].key));
        code =
            life_spec_aside(storage->config.life, loading.items[i].key, loading.items[i].why, err);
    }
    free(loading.items);
    return code;
}

/* --- looking --- */

const struct registered *registry_named(const struct storage *storage, const char *name)
{
    const struct registered *volume;

    HASH_FIND(by_name, storage->by_name, name, strlen(name), volume);
    return volume;
}

const struct storage_volume *storage_find_volume(const struct storage *storage,
                                                 const char *namespace, const char *id)
{
    const struct registered *volume = registry_find(storage, namespace, id);

    return volume == NULL ? NULL : &volume->public;
}

/* Lists of volumes are the same before and after a restart. */
static int by_key(const struct registered *a, const struct registered *b)
{
    return strcmp(a->key, b->key);
}

void storage_each_volume(struct storage *storage, storage_volume_cb *cb, void *ctx)
{
    const struct registered *next;

    if (storage->volumes_unsorted)
        HASH_SRT(hh, storage->volumes, by_key);
    storage->volumes_unsorted = false;
    for (const struct registered *volume = storage->volumes; volume != NULL; volume = next) {
        next = volume->hh.next;
        if (!cb(ctx, &volume->public))
            return;
    }
}
