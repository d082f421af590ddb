/* What functions of templates take and give, and what they need of values. */
#include "spec/template/functions/part.h"

#include <stdlib.h>
#include <string.h>

json_t *call_refuse(const struct call *call, const char *why)
{
    return template_fail(call->evaluating, ERR_INVALID, "%s: %s", call->name, why);
}

const char *call_text(const struct call *call, size_t at)
{
    const char *text = json_string_value(call->arguments[at]);

    if (text == NULL)
        (void)call_refuse(call, "wrong type of argument: a string is needed");
    return text == NULL ? "" : text;
}

bool call_charge(const struct call *call, size_t bytes)
{
    return template_charge(call->evaluating, bytes / 16);
}

json_t *call_give(const struct call *call, const char *text, size_t length)
{
    return call->evaluating->code == 0 ? template_text(call->evaluating, text, length) : NULL;
}

json_t *call_give_text(const struct call *call, const char *text)
{
    return call_give(call, text, strlen(text));
}

json_t *call_give_made(const struct call *call, json_t *made)
{
    if (call->evaluating->code == 0)
        return made;
    json_decref(made);
    return NULL;
}

const json_t *call_ask(const struct call *call, enum spec_question_kind kind, const char *namespace,
                       const char *name, bool needed)
{
    const struct spec_question question = {.kind = kind, .namespace = namespace, .name = name};
    const struct template_world *world = call->evaluating->world;
    struct err err = {0};

    if (call->evaluating->code != 0)
        return NULL;
    const json_t *answer = world->ask(world->ctx, &question, needed, &err);
    if (answer == NULL && err.code == ERR_AGAIN)
        call->evaluating->lacks = true;
    else if (answer == NULL)
        (void)template_fail(call->evaluating, err.code, "%s: %.120s", call->name, err.text);
    else if (!call_charge(call, 16 * json_array_size(answer)))
        return NULL;
    return answer;
}

bool call_check_region(const struct call *call, const char *region)
{
    static const char name[] = "node.region";
    const struct template_world *world = call->evaluating->world;
    const char *own = world->find(world->ctx, name, strlen(name));

    if (*region == '\0' || (own != NULL && text_equal(region, own)))
        return true;
    (void)template_fail(call->evaluating, ERR_INVALID, "%s: no path to region \"%.60s\"",
                        call->name, region);
    return false;
}

bool text_is_of(const char *text, size_t length, const char *characters)
{
    return length > 0 && strspn(text, characters) >= length;
}

void growing_add(struct growing *to, const char *text, size_t length)
{
    to->full = to->full || length > TEMPLATE_BYTES_MAX - to->length;
    if (to->full)
        return;
    if (to->length + length + 1 > to->size) {
        to->size = 2 * (to->length + length + 1);
        to->text = realloc(to->text, to->size);
        check(to->text != NULL);
    }
    memcpy(to->text + to->length, text, length);
    to->length += length;
}

json_t *call_give_grown(const struct call *call, struct growing *grown)
{
    json_t *value = grown->full
                        ? template_fail(call->evaluating, ERR_LIMIT, "%s: longer than %d bytes",
                                        call->name, TEMPLATE_BYTES_MAX)
                        : call_give(call, grown->length == 0 ? "" : grown->text, grown->length);

    free(grown->text);
    return value;
}

bool value_is_deep(const json_t *value, int depth)
{
    const char *key;
    json_t *item;
    size_t i;

    if (depth == 0)
        return true;
    json_object_foreach((json_t *)value, key, item)
    {
        if (value_is_deep(item, depth - 1))
            return true;
    }
    json_array_foreach(value, i, item)
    {
        if (value_is_deep(item, depth - 1))
            return true;
    }
    return false;
}

static int compare_keys(const void *a, const void *b)
{
    const char *const *left = a, *const *right = b;

    return strcmp(*left, *right);
}

const char **value_keys(const json_t *map, size_t *ret_count)
{
    const char **keys = calloc(json_object_size(map) + 1, sizeof(*keys)), *key;
    json_t *value;

    check(keys != NULL);
    *ret_count = 0;
    json_object_foreach((json_t *)map, key, value) keys[(*ret_count)++] = key;
    qsort(keys, *ret_count, sizeof(*keys), compare_keys);
    return keys;
}
