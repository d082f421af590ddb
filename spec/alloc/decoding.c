/*
 * The fields of one alloc's JSON, each checked for its type and range before it is used: the first
 * that is not as it must be is told, and what is read after it is for nothing.
 */
#include "spec/alloc/decoding.h"

#include "spec/names.h"

#include <stdlib.h>
#include <string.h>

void decoding_damaged(struct decoding *decoding, const char *field, const char *wanted)
{
    if (decoding->code == 0)
        decoding->code = err_set(decoding->err, ERR_CORRUPT,
                                 "specification of an alloc: %s is not %s", field, wanted);
}

const json_t *decoding_object(struct decoding *decoding, const json_t *from, const char *field)
{
    const json_t *object = json_object_get(from, field);

    if (!json_is_object(object))
        decoding_damaged(decoding, field, "an object");
    return object;
}

const char *decoding_text(struct decoding *decoding, const json_t *from, const char *field,
                          size_t size)
{
    const json_t *value = json_object_get(from, field);

    if (value == NULL)
        return "";
    if (!json_is_string(value) || json_string_length(value) >= size ||
        strlen(json_string_value(value)) != json_string_length(value)) {
        decoding_damaged(decoding, field, "a text of the length allowed");
        return "";
    }
    return arena_text(&decoding->holder->arena, json_string_value(value));
}

const char *decoding_name(struct decoding *decoding, const json_t *from, const char *field,
                          const char *(*fault_of)(const char *text))
{
    const char *text = decoding_text(decoding, from, field, SPEC_NAME_SIZE);

    if (fault_of(text) != NULL)
        decoding_damaged(decoding, field, "a name");
    return text;
}

uint64_t decoding_whole(struct decoding *decoding, const json_t *from, const char *field,
                        uint64_t max)
{
    const json_t *value = json_object_get(from, field);

    if (value == NULL)
        return 0;
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 0 || (uint64_t)number > max) {
        decoding_damaged(decoding, field, "a whole number in its range");
        return 0;
    }
    return (uint64_t)number;
}

uint32_t decoding_u32(struct decoding *decoding, const json_t *from, const char *field)
{
    return (uint32_t)decoding_whole(decoding, from, field, INT32_MAX);
}

uint64_t decoding_ms(struct decoding *decoding, const json_t *from, const char *field)
{
    uint64_t ns = decoding_whole(decoding, from, field, DURATION_MS_MAX * 1000000);

    return ns / 1000000 + (ns % 1000000 != 0);
}

bool decoding_bool(struct decoding *decoding, const json_t *from, const char *field)
{
    const json_t *value = json_object_get(from, field);

    if (value != NULL && !json_is_boolean(value))
        decoding_damaged(decoding, field, "a bool");
    return json_is_true(value);
}

static int compare_pairs(const void *a, const void *b)
{
    const struct spec_pair *left = a, *right = b;

    return strcmp(left->key, right->key);
}

struct spec_pairs decoding_pairs(struct decoding *decoding, const json_t *const *maps,
                                 size_t maps_count, const char *what)
{
    json_t *merged = json_object(), *value;
    struct spec_pairs pairs = {0};
    const char *key;

    for (size_t i = 0; i < maps_count; i++) {
        if (maps[i] == NULL)
            continue;
        if (!json_is_object(maps[i]) || json_object_update(merged, (json_t *)maps[i]) != 0)
            decoding_damaged(decoding, what, "a map of texts");
    }
    pairs.items =
        arena_new(&decoding->holder->arena, (json_object_size(merged) + 1) * sizeof(*pairs.items));
    json_object_foreach(merged, key, value)
    {
        const char *text = json_string_value(value);

        if (text == NULL || strlen(text) != json_string_length(value)) {
            decoding_damaged(decoding, what, "a map of texts");
            continue;
        }
        pairs.items[pairs.count++] =
            (struct spec_pair){.key = arena_text(&decoding->holder->arena, key),
                               .value = arena_text(&decoding->holder->arena, text)};
    }
    json_decref(merged);
    qsort(pairs.items, pairs.count, sizeof(*pairs.items), compare_pairs);
    return pairs;
}

struct spec_texts decoding_texts(struct decoding *decoding, const json_t *from, const char *field)
{
    const json_t *list = json_object_get(from, field), *item;
    struct spec_texts texts = {0};
    size_t i;

    texts.items =
        arena_new(&decoding->holder->arena, (json_array_size(list) + 1) * sizeof(*texts.items));
    json_array_foreach(list, i, item)
    {
        if (!json_is_string(item) || strlen(json_string_value(item)) != json_string_length(item))
            decoding_damaged(decoding, field, "a list of texts");
        else
            texts.items[texts.count++] =
                arena_text(&decoding->holder->arena, json_string_value(item));
    }
    return texts;
}
