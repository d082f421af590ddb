/*
 * Who has which volume of the host: allocs, by the name of the volume.
 *
 * An alloc has one from the moment it is placed, be its commit still to come, until it has ended.
 * What it has stands in its specification, so that a life begins with what the journal holds; those
 * whose job is as it was when they were placed, and asks for no such volume, need not be read.
 */
#include "server/alone/part.h"

#include "spec/job.h"

#include <stdlib.h>

enum { USED_KEY_SIZE = SPEC_NAMESPACE_SIZE + SPEC_SOURCE_SIZE };

/* A volume that somebody has. */
struct used {
    char key[USED_KEY_SIZE]; /* "<namespace>/<name>" */
    struct use *uses;
    UT_hash_handle hh;
};

/* That one alloc has one, once for each time that it asks for it. */
struct use {
    struct used *used;
    const struct user *user;
    bool read_only;
    struct use **link, *next; /* of the same volume */
    struct use *other;        /* of the same alloc */
};

struct user {
    char alloc[UUID_TEXT_SIZE];
    struct use *uses;
    UT_hash_handle hh;
};

struct users {
    struct used *by_volume;
    struct user *by_alloc;
};

void users_begin(struct alone *alone)
{
    alone->users = calloc(1, sizeof(*alone->users));
    check(alone->users != NULL);
}

static void let_go(struct users *users, struct use *use)
{
    struct used *used = use->used;

    *use->link = use->next;
    if (use->next != NULL)
        use->next->link = use->link;
    free(use);
    if (used->uses != NULL)
        return;
    HASH_DEL(users->by_volume, used);
    free(used);
}

void users_release(struct alone *alone, const char *alloc)
{
    struct user *user;

    HASH_FIND_STR(alone->users->by_alloc, alloc, user);
    if (user == NULL)
        return;
    HASH_DEL(alone->users->by_alloc, user);
    for (struct use *use = user->uses, *other; use != NULL; use = other) {
        other = use->other;
        let_go(alone->users, use);
    }
    free(user);
    alone->room_freed = true;
}

void users_end(struct alone *alone)
{
    struct user *user, *next;

    HASH_ITER(hh, alone->users->by_alloc, user, next)
    users_release(alone, user->alloc);
    check(alone->users->by_volume == NULL);
    free(alone->users);
    alone->users = NULL;
}

static struct used *find(const struct users *users, const char key[USED_KEY_SIZE])
{
    struct used *used;

    HASH_FIND_STR(users->by_volume, key, used);
    return used;
}

static void take(struct users *users, struct user *user, const char *namespace,
                 const struct spec_volume *volume)
{
    struct use *use = calloc(1, sizeof(*use));
    char key[USED_KEY_SIZE];

    check(use != NULL);
    check(text_format(key, sizeof(key), "%s/%s", namespace, volume->source)); /* both are bounded */
    struct used *used = find(users, key);
    if (used == NULL) {
        used = calloc(1, sizeof(*used));
        check(used != NULL);
        (void)text_copy(used->key, sizeof(used->key), key); /* of that size */
        HASH_ADD_STR(users->by_volume, key, used);
    }
    *use = (struct use){.used = used,
                        .user = user,
                        .read_only = volume->read_only,
                        .link = &used->uses,
                        .next = used->uses,
                        .other = user->uses};
    if (use->next != NULL)
        use->next->link = &use->next;
    used->uses = user->uses = use;
}

void users_keep(struct alone *alone, const struct alloc_spec *spec)
{
    struct user *user = NULL;

    for (size_t i = 0; i < spec->volumes_count; i++) {
        if (spec->volumes[i].type != VOLUME_HOST)
            continue;
        if (user == NULL) {
            user = calloc(1, sizeof(*user));
            check(user != NULL);
            (void)text_copy(user->alloc, sizeof(user->alloc), spec->id); /* a UUID */
            HASH_ADD_STR(alone->users->by_alloc, alloc, user);
        }
        take(alone->users, user, spec->namespace, &spec->volumes[i]);
    }
}

/* --- a new life --- */

/* True if what ALLOC was placed by need not be read. */
static bool asks_for_none(const struct alone *alone, const struct alloc *alloc)
{
    const struct job *job = job_find(alone, alloc->assign.namespace, alloc->assign.job_id);
    size_t number;
    const json_t *group = job == NULL || job->public.version != alloc->assign.job_version
                              ? NULL
                              : job_group(job, alloc->assign.group, &number);
    const char *name;
    json_t *volume;

    json_object_foreach(json_object_get(group, "Volumes"), name, volume)
    {
        if (!text_equal(json_string_value(json_object_get(volume, "Type")), "csi"))
            return false;
    }
    return group != NULL;
}

static bool keep_stored(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct alone *alone = ctx;
    const struct alloc *alloc = alloc_of(record);

    if (alloc->ended_unix_ns != 0 || asks_for_none(alone, alloc))
        return true;
    struct alloc_spec *spec = alone_read_spec(alone, id->text);
    if (spec != NULL) /* else it ends, and failed: without it nothing of it runs on */
        users_keep(alone, spec);
    alloc_spec_free(spec);
    return true;
}

void users_load(struct alone *alone)
{
    core_each(life_core(alone->config.life), MACHINE_ALLOC, keep_stored, alone);
}

/* --- asking --- */

/* Whoever only waits for its end is made to wait by the order of allocs, not here. */
static bool writes(const struct alone *alone, const struct use *use)
{
    const struct alloc *alloc = core_alloc(life_core(alone->config.life), use->user->alloc);
    bool stops = alloc != NULL && alloc->stop_wanted; /* NULL: its commit is to come */

    return !use->read_only && !stops && !posted_to_end(alone, use->user->alloc);
}

json_t *users_of_volume(const struct alone *alone, const char *namespace, const char *name,
                        bool only_writers)
{
    json_t *list = json_array();
    char key[USED_KEY_SIZE];
    const struct user *last = NULL;

    if (!text_format(key, sizeof(key), "%s/%s", namespace, name))
        return list; /* so long a name has no volume */
    const struct used *used = find(alone->users, key);
    for (const struct use *use = used == NULL ? NULL : used->uses; use != NULL; use = use->next) {
        if (only_writers && !writes(alone, use))
            continue;
        if (use->user != last) /* those of one alloc are beside each other */
            check(json_array_append_new(list, json_string(use->user->alloc)) == 0);
        last = use->user;
    }
    return list;
}

json_t *alone_hosted_users(void *ctx, const char *namespace, const char *name)
{
    return users_of_volume(ctx, namespace, name, false);
}
