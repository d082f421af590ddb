#include "agent/config/pairs.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

static char *copy_text(const char *text)
{
    char *copy = strdup(text);

    check(copy != NULL);
    return copy;
}

void pairs_set(struct spec_pairs *pairs, const char *key, const char *value)
{
    for (size_t i = 0; i < pairs->count; i++) {
        struct spec_pair *pair = &pairs->items[i];

        if (text_equal(pair->key, key)) {
            free((char *)(uintptr_t)pair->value); /* ours, const for readers */
            pair->value = copy_text(value);
            return;
        }
    }
    pairs->items = reallocarray(pairs->items, pairs->count + 1, sizeof(*pairs->items));
    check(pairs->items != NULL);
    pairs->items[pairs->count++] = (struct spec_pair){copy_text(key), copy_text(value)};
}

void pairs_drop(struct spec_pairs *pairs, const char *key)
{
    size_t length = strlen(key), kept = 0;

    for (size_t i = 0; i < pairs->count; i++) {
        struct spec_pair pair = pairs->items[i];

        if (!text_starts_with(pair.key, key) ||
            (pair.key[length] != '\0' && pair.key[length] != '.')) {
            pairs->items[kept++] = pair;
            continue;
        }
        free((char *)(uintptr_t)pair.key);
        free((char *)(uintptr_t)pair.value);
    }
    pairs->count = kept;
}

void pairs_free(struct spec_pairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++) {
        free((char *)(uintptr_t)pairs->items[i].key);
        free((char *)(uintptr_t)pairs->items[i].value);
    }
    free(pairs->items);
    *pairs = (struct spec_pairs){0};
}
