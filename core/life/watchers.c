/*
 * Who hears of which change: of everything, of one job, of one alloc.
 *
 * A subject is in the table while it is watched, and from its first change until it is gone.  One
 * that is not has the index of the floor, which is at least that of all that were dropped: an
 * index never decreases.
 */
#include "core/life/part.h"

#include "base/list.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct watcher {
    void (*cb)(void *ctx); /* NULL: went while watchers were told */
    void *ctx;
};

struct watcher_list {
    struct watcher *items;
    size_t count, size;
};

struct subject {
    struct watcher_list watchers;
    uint64_t index;
    bool changed; /* since watchers were told */
    bool lasting; /* it is there, and has changed: its index is kept though nobody watches */
    bool telling;
    UT_hash_handle hh;
    size_t key_length;
    char key[];
};

/* --- the table --- */

/* A letter, then the names, each with its NUL. */
struct key {
    char bytes[2 + SPEC_NAMESPACE_SIZE + SPEC_NAME_SIZE];
    size_t length;
};

static bool key_add(struct key *key, const char *name)
{
    size_t length = strlen(name) + 1;

    if (key->length + length > sizeof(key->bytes))
        return false;
    memcpy(key->bytes + key->length, name, length);
    key->length += length;
    return true;
}

/* False: nothing can have such a name, so nothing of it will ever change. */
static bool key_of(const struct life_subject *subject, struct key *ret_key)
{
    *ret_key = (struct key){.bytes = {subject->kind == LIFE_JOB ? 'j' : 'a'}, .length = 1};
    if (subject->kind == LIFE_JOB && !key_add(ret_key, subject->namespace))
        return false;
    return key_add(ret_key, subject->id);
}

static struct subject *new_subject(const char *key, size_t length, uint64_t index)
{
    struct subject *subject = calloc(1, sizeof(*subject) + length);

    check(subject != NULL);
    subject->index = index;
    subject->key_length = length;
    memcpy(subject->key, key, length);
    return subject;
}

/* NULL: it is not in the table. */
static struct subject *find(const struct life *life, const struct life_subject *what)
{
    struct subject *subject;
    struct key key;

    if (what->kind == LIFE_EVERYTHING)
        return life->watched.everything;
    if (!key_of(what, &key))
        return NULL;
    HASH_FIND(hh, life->watched.subjects, key.bytes, key.length, subject);
    return subject;
}

/* NULL: nothing can have such a name. */
static struct subject *find_or_add(struct life *life, const struct life_subject *what)
{
    struct subject *subject = find(life, what);
    struct key key;

    if (subject != NULL || !key_of(what, &key))
        return subject;
    subject = new_subject(key.bytes, key.length, life->watched.floor);
    HASH_ADD_KEYPTR(hh, life->watched.subjects, subject->key, subject->key_length, subject);
    return subject;
}

static void free_subject(struct subject *subject)
{
    free(subject->watchers.items);
    free(subject);
}

static void drop_if_idle(struct life *life, struct subject *subject)
{
    struct watched *watched = &life->watched;

    if (subject == watched->everything || subject->watchers.count > 0 || subject->lasting ||
        subject->changed || subject->telling)
        return;
    if (subject->index > watched->floor)
        watched->floor = subject->index;
    HASH_DEL(watched->subjects, subject);
    free_subject(subject);
}

/* --- watching --- */

void life_watch(struct life *life, const struct life_subject *what, void (*cb)(void *ctx),
                void *ctx)
{
    struct subject *subject = find_or_add(life, what);

    check(life->watched.watchers_count < WATCHERS_MAX); /* callers are bounded by who watches */
    if (subject == NULL)
        return;
    *list_more(&subject->watchers) = (struct watcher){cb, ctx};
    life->watched.watchers_count++;
}

void life_unwatch(struct life *life, const struct life_subject *what, void (*cb)(void *ctx),
                  void *ctx)
{
    struct subject *subject = find(life, what);

    for (size_t i = 0; subject != NULL && i < subject->watchers.count; i++) {
        struct watcher *watcher = &subject->watchers.items[i];

        if (watcher->cb != cb || watcher->ctx != ctx)
            continue;
        if (subject->telling)
            *watcher = (struct watcher){NULL, NULL};
        else
            *watcher = subject->watchers.items[--subject->watchers.count];
        check(life->watched.watchers_count > 0);
        life->watched.watchers_count--;
        drop_if_idle(life, subject);
        return;
    }
}

uint64_t life_index(const struct life *life, const struct life_subject *what)
{
    const struct subject *subject = find(life, what);
    uint64_t index = subject == NULL ? life->watched.floor : subject->index;

    check(index <= life->watched.everything->index); /* what changes is part of everything */
    return index;
}

uint64_t life_next_index(const struct life *life)
{
    return life->watched.everything->index + 1;
}

void life_index_follows(struct life *life, uint64_t index)
{
    if (index > life->watched.everything->index && index <= NUMBER_BEGIN_MAX)
        life_index_begins(life, index);
}

/* --- what changes --- */

static void note_changed(struct life *life, struct subject *subject)
{
    if (subject->changed)
        return;
    subject->changed = true;
    *list_more(&life->watched.changed) = subject;
}

static void change(struct life *life, const struct life_subject *what, bool lasting)
{
    struct subject *subject = find_or_add(life, what);

    note_changed(life, life->watched.everything);
    if (subject == NULL)
        return;
    subject->lasting = lasting;
    note_changed(life, subject);
}

void life_changed(struct life *life, const struct life_subject *subject)
{
    change(life, subject, true);
}

void life_gone(struct life *life, const struct life_subject *subject)
{
    change(life, subject, false);
}

static void change_job_of(struct life *life, const struct alloc *alloc)
{
    change(life, &(struct life_subject){LIFE_JOB, alloc->assign.namespace, alloc->assign.job_id},
           true);
}

void life_alloc_changed(struct life *life, const char *id, const struct alloc *alloc)
{
    change(life, &(struct life_subject){LIFE_ALLOC, NULL, id}, true);
    change_job_of(life, alloc);
}

void life_alloc_gone(struct life *life, const char *id, const struct alloc *alloc)
{
    change(life, &(struct life_subject){LIFE_ALLOC, NULL, id}, false);
    change_job_of(life, alloc);
}

/* --- telling --- */

/* Those who begin to watch meanwhile have seen it already. */
static void call_watchers(const struct subject *subject)
{
    size_t count = subject->watchers.count;

    for (size_t i = 0; i < count; i++) {
        struct watcher watcher = subject->watchers.items[i];
        if (watcher.cb != NULL)
            watcher.cb(watcher.ctx);
    }
}

static void remove_gone(struct watcher_list *list)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].cb != NULL)
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
}

void life_listen(struct life *life,
                 void (*cb)(void *ctx, uint64_t index, const struct life_subject *subject),
                 void *ctx)
{
    life->watched.listener = cb;
    life->watched.listener_ctx = ctx;
}

static void call_listener(const struct life *life, const struct subject_list *list, uint64_t index)
{
    const struct watched *watched = &life->watched;

    if (watched->listener == NULL || list->count == 0)
        return;
    for (size_t i = 0; i < list->count; i++) {
        const struct subject *subject = list->items[i];
        const char *first = subject->key + 1;
        bool is_job = subject != watched->everything && subject->key[0] == 'j';
        struct life_subject what = {is_job ? LIFE_JOB : LIFE_ALLOC, is_job ? first : NULL,
                                    is_job ? first + strlen(first) + 1 : first};

        if (subject != watched->everything)
            watched->listener(watched->listener_ctx, index, &what);
    }
    watched->listener(watched->listener_ctx, index,
                      &(struct life_subject){LIFE_EVERYTHING, NULL, NULL});
}

void life_tell_watchers(struct life *life)
{
    struct subject_list list = life->watched.changed;
    uint64_t index = core_figures(life->core).sequence;

    if (list.count > 0 && index <= life->watched.everything->index)
        index = life->watched.everything->index + 1;  /* of a commit that had no event */
    life->watched.changed = (struct subject_list){0}; /* a watcher may change something */
    for (size_t i = 0; i < list.count; i++) {
        check(index >= list.items[i]->index);
        list.items[i]->index = index;
        list.items[i]->changed = false;
        list.items[i]->telling = true;
    }
    check(implies(list.count > 0, life->watched.everything->index == index));
    call_listener(life, &list, index);
    for (size_t i = 0; i < list.count; i++)
        call_watchers(list.items[i]);
    for (size_t i = 0; i < list.count; i++) {
        list.items[i]->telling = false;
        remove_gone(&list.items[i]->watchers);
        drop_if_idle(life, list.items[i]);
    }
    free(list.items);
}

/* --- birth and end --- */

void life_begin_watchers(struct life *life)
{
    life->watched.everything = new_subject("", 0, 0);
}

void life_index_begins(struct life *life, uint64_t index)
{
    check(life->watched.floor <= index);
    life->watched.floor = index;
    life->watched.everything->index = index;
}

void life_free_watchers(struct life *life)
{
    struct subject *subject, *next;

    HASH_ITER(hh, life->watched.subjects, subject, next)
    {
        HASH_DEL(life->watched.subjects, subject);
        free_subject(subject);
    }
    free_subject(life->watched.everything);
    free(life->watched.changed.items);
}
