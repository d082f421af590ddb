/*
 * Which generations of which tasks an earlier life of the daemon left.
 *
 * They may be ones that this journal has never heard of, when an older copy of it was put back.
 * Noted when the room is opened, by their files and their cgroups, until each has been seen to be
 * gone.
 */
#include "drivers/part.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t task_digest(const struct driver_key *key)
{
    return hash_bytes(hash_bytes(0, key->alloc, strlen(key->alloc)), key->task, strlen(key->task));
}

static int compare(const void *a, const void *b)
{
    const struct generation *left = a, *right = b;

    if (left->task != right->task)
        return left->task < right->task ? -1 : 1;
    return left->number == right->number ? 0 : left->number < right->number ? -1 : 1;
}

static bool note_name(void *ctx, const char *name)
{
    struct generations *found = ctx;
    struct driver_key key;

    if (key_from_name(name, &key))
        *list_more(found) = (struct generation){task_digest(&key), key.generation, true};
    return true;
}

int generations_open(struct drivers *drivers, struct err *err)
{
    struct generations *found = &drivers->found;
    char parent[CGROUP_NAME_SIZE];
    DIR *directory = opendir(drivers->shim_dir);

    if (directory == NULL)
        return err_os(err, err_from_errno(errno), errno, "cannot list %s", drivers->shim_dir);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        (void)note_name(found, entry->d_name); /* there is no end to come to */
    (void)closedir(directory);                 /* only read from */
    int code = 0;
    for (int cores = 0; code == 0 && cores < 2 && keys_cgroup(drivers, cores == 1, parent); cores++)
        code = cgroup_each_child(drivers->config.cgroup_mode, parent, note_name, found, err);
    if (code == 0 && found->count > 0)
        qsort(found->items, found->count, sizeof(*found->items), compare);
    return code;
}

/* The first of the task with this digest, or where it would be. */
static size_t first_of(const struct generations *found, uint64_t task)
{
    size_t low = 0, high = found->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (found->items[middle].task < task)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void generations_gone(struct drivers *drivers, const struct driver_key *key)
{
    struct generations *found = &drivers->found;
    uint64_t task = task_digest(key);

    for (size_t i = first_of(found, task); i < found->count && found->items[i].task == task; i++) {
        if (found->items[i].number == key->generation)
            found->items[i].there = false; /* twice in the list: by its file, and by its cgroup */
    }
}

bool generations_other(const struct drivers *drivers, const struct driver_key *key, size_t *at,
                       struct driver_key *ret_key)
{
    const struct generations *found = &drivers->found;
    uint64_t task = task_digest(key);

    for (size_t i = first_of(found, task) + *at; i < found->count; i++) {
        const struct generation *one = &found->items[i];

        if (one->task != task)
            return false;
        ++*at;
        if (one->there && one->number != key->generation) {
            *ret_key = *key;
            ret_key->generation = one->number;
            return true;
        }
    }
    return false;
}

void generations_close(struct drivers *drivers)
{
    free(drivers->found.items);
}
