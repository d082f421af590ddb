/* Go's %v of a value: how a template shows what an action gives. */
#include "spec/template/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_SIZE = 64, LONGEST_PLAIN = 6, DIGITS_MAX = 17 };

struct printed {
    char *text;
    size_t length, size;
};

static void add(struct printed *to, const char *text, size_t length)
{
    if (to->length + length + 1 > to->size) {
        to->size = 2 * (to->length + length + 1);
        to->text = realloc(to->text, to->size);
        check(to->text != NULL);
    }
    memcpy(to->text + to->length, text, length);
    to->length += length;
    to->text[to->length] = '\0';
}

/* The fewest digits that mean NUMBER; with an exponent where Go's fmt writes one. */
static void add_real(struct printed *to, double number)
{
    char text[NUMBER_SIZE];
    int digits = 0;

    do
        (void)snprintf(text, sizeof(text), "%.*e", digits, number); /* fits */
    while (strtod(text, NULL) != number && ++digits < DIGITS_MAX);
    long exponent = strtol(strchr(text, 'e') + 1, NULL, 10);
    if (exponent >= -4 && exponent < LONGEST_PLAIN)
        (void)snprintf(text, sizeof(text), "%.*f", digits > exponent ? digits - (int)exponent : 0,
                       number); /* fits */
    add(to, text, strlen(text));
}

static int compare_keys(const void *a, const void *b)
{
    const char *const *left = a, *const *right = b;

    return strcmp(*left, *right);
}

static void add_value(struct printed *to, const json_t *value);

static void add_map(struct printed *to, const json_t *map)
{
    const char **keys = calloc(json_object_size(map) + 1, sizeof(*keys)), *key;
    size_t count = 0;
    json_t *value;

    check(keys != NULL);
    json_object_foreach((json_t *)map, key, value) keys[count++] = key;
    qsort(keys, count, sizeof(*keys), compare_keys);
    add(to, "map[", 4);
    for (size_t i = 0; i < count; i++) {
        add(to, " ", i > 0);
        add(to, keys[i], strlen(keys[i]));
        add(to, ":", 1);
        add_value(to, json_object_get(map, keys[i]));
    }
    add(to, "]", 1);
    free(keys);
}

static void add_value(struct printed *to, const json_t *value)
{
    char number[NUMBER_SIZE];

    switch (json_typeof(value)) {
    case JSON_OBJECT:
        add_map(to, value);
        break;
    case JSON_ARRAY:
        add(to, "[", 1);
        for (size_t i = 0; i < json_array_size(value); i++) {
            add(to, " ", i > 0);
            add_value(to, json_array_get(value, i));
        }
        add(to, "]", 1);
        break;
    case JSON_STRING:
        add(to, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        (void)snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        add(to, number, strlen(number));
        break;
    case JSON_REAL:
        add_real(to, json_real_value(value));
        break;
    case JSON_TRUE:
        add(to, "true", 4);
        break;
    case JSON_FALSE:
        add(to, "false", 5);
        break;
    case JSON_NULL:
        add(to, "<nil>", 5);
        break;
    }
}

char *template_print(const json_t *value)
{
    struct printed to = {0};

    add(&to, "", 0);
    add_value(&to, value);
    return to.text;
}
