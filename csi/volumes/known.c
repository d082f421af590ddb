/*
 * What is known of claims: how a volume is mounted, with what, and which secrets it takes.
 *
 * In memory only, and wiped when it is not needed any more.
 */
#include "csi/volumes/part.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { KEY_SIZE = 40 + SPEC_NAME_SIZE };

struct entry {
    char key[KEY_SIZE]; /* "<alloc>/<name>" */
    struct csi_known known;
    UT_hash_handle hh;
};

struct csi_knowledge {
    struct entry *entries;
};

static char *copy_text(const char *text)
{
    char *copy = strdup(text);

    check(copy != NULL);
    return copy;
}

static void wipe_text(const char *text)
{
    explicit_bzero((char *)(uintptr_t)text, strlen(text)); /* ours, and not read again */
    free((char *)(uintptr_t)text);
}

static struct csi_map copy_map(const struct csi_map *map)
{
    struct csi_pair *pairs = calloc(map->count + 1, sizeof(*pairs));

    check(pairs != NULL);
    for (size_t i = 0; i < map->count; i++)
        pairs[i] = (struct csi_pair){copy_text(map->pairs[i].key), copy_text(map->pairs[i].value)};
    return (struct csi_map){pairs, map->count};
}

static void wipe_map(const struct csi_map *map)
{
    for (size_t i = 0; i < map->count; i++) {
        wipe_text(map->pairs[i].key);
        wipe_text(map->pairs[i].value);
    }
    free((struct csi_pair *)(uintptr_t)map->pairs);
}

static void entry_free(struct csi_knowledge *knowledge, struct entry *entry)
{
    struct csi_known *known = &entry->known;

    HASH_DEL(knowledge->entries, entry);
    for (size_t i = 0; i < known->flags_count; i++)
        wipe_text(known->flags[i]);
    free(known->flags);
    free(known->fs_type);
    wipe_map(&known->publish_context);
    wipe_map(&known->volume_context);
    csi_secrets_free(known->secrets);
    free(entry);
}

static struct entry *find(const struct csi_knowledge *knowledge, const char *alloc,
                          const char *name)
{
    struct entry *entry;
    char key[KEY_SIZE];

    if (!text_format(key, sizeof(key), "%s/%s", alloc, name))
        return NULL;
    HASH_FIND_STR(knowledge->entries, key, entry);
    return entry;
}

struct csi_knowledge *csi_knowledge_new(void)
{
    struct csi_knowledge *knowledge = calloc(1, sizeof(*knowledge));

    check(knowledge != NULL);
    return knowledge;
}

void csi_knowledge_free(struct csi_knowledge *knowledge)
{
    while (knowledge->entries != NULL)
        entry_free(knowledge, knowledge->entries);
    free(knowledge);
}

void csi_knowledge_set(struct csi_knowledge *knowledge, const char *alloc, const char *name,
                       const struct csi_terms *terms)
{
    struct entry *entry = calloc(1, sizeof(*entry));

    check(entry != NULL);
    csi_knowledge_drop(knowledge, alloc, name);
    check(text_format(entry->key, sizeof(entry->key), "%s/%s", alloc, name)); /* of a machine */
    entry->known = (struct csi_known){
        .fs_type = copy_text(terms->fs_type),
        .flags = calloc(terms->flags_count + 1, sizeof(*entry->known.flags)),
        .flags_count = terms->flags_count,
        .publish_context = copy_map(&terms->publish_context),
        .volume_context = copy_map(&terms->volume_context),
        .secrets = terms->secrets,
        .recalled = terms->recalled,
    };
    check(entry->known.flags != NULL);
    for (size_t i = 0; i < terms->flags_count; i++)
        entry->known.flags[i] = copy_text(terms->flags[i]);
    HASH_ADD_STR(knowledge->entries, key, entry);
}

void csi_knowledge_drop(struct csi_knowledge *knowledge, const char *alloc, const char *name)
{
    struct entry *entry = find(knowledge, alloc, name);

    if (entry != NULL)
        entry_free(knowledge, entry);
}

const struct csi_known *csi_knowledge_find(const struct csi_knowledge *knowledge, const char *alloc,
                                           const char *name)
{
    const struct entry *entry = find(knowledge, alloc, name);

    return entry == NULL ? NULL : &entry->known;
}
