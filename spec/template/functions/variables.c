/*
 * Variables of Nomad's servers, as templates see them.
 *
 * Follows consul-template v0.42 template/nomad_funcs.go, dependency/nomad_var_get.go and
 * nomad_var_list.go.  A variable that is not there keeps its template from being rendered until it
 * is; whether it is there, and lists, are known either way.
 */
#include "spec/json.h"
#include "spec/template/functions/part.h"

#include <ctype.h>
#include <string.h>

/* PATH[@NAMESPACE[.REGION]]. */
struct place {
    char path[QUESTION_NAME_SIZE], namespace[QUESTION_NAMESPACE_SIZE];
    const char *region;
};

/* The namespace and the region behind AT; "@*" is all of them, where lists are asked for. */
static bool read_namespace(const char *at, bool lists, struct place *place)
{
    size_t length = strcspn(at, ".");
    bool all = lists && length == 1 && *at == '*';

    place->region = at[length] == '.' ? at + length + 1 : "";
    return (all || text_is_of(at, length, WORD "-")) &&
           (at[length] == '\0' || text_is_of(place->region, strlen(place->region), WORD "-")) &&
           text_format(place->namespace, sizeof(place->namespace), "%.*s", (int)length, at);
}

/* False: TEXT names nothing, which is told. */
static bool read_place(const struct call *call, const char *text, const char *end, bool lists,
                       struct place *place)
{
    const char *at = memchr(text, '@', (size_t)(end - text));
    const char *behind = at == NULL ? end : at;
    char namespace[2 * QUESTION_NAMESPACE_SIZE] = "";

    *place = (struct place){.region = ""};
    text += text < behind && *text == '/';
    bool fits = (lists || text < behind) &&
                text_format(place->path, sizeof(place->path), "%.*s", (int)(behind - text), text) &&
                text_format(namespace, sizeof(namespace), "%.*s",
                            at == NULL ? 0 : (int)(end - at - 1), at == NULL ? "" : at + 1) &&
                (at == NULL || read_namespace(namespace, lists, place));
    if (!fits)
        (void)template_fail(call->evaluating, ERR_INVALID, "%s: invalid format: \"%.60s\"",
                            call->name, text);
    return fits && call_check_region(call, place->region);
}

/* The variable of the path that is the argument; NULL: it is not known, an error is told, or there
 * is no path. */
static const json_t *ask_for_one(const struct call *call, bool needed)
{
    const char *text = call_text(call, 0), *end = text + strlen(text);
    struct place place;

    if (*text == '\0')
        return NULL;
    while (text < end && isspace((unsigned char)*text))
        text++;
    while (end > text && isspace((unsigned char)end[-1]))
        end--;
    while (text < end && *text == '/')
        text++;
    while (end > text && end[-1] == '/')
        end--;
    return read_place(call, text, end, false, &place)
               ? call_ask(call, QUESTION_VARIABLE, place.namespace, place.path, needed)
               : NULL;
}

/* False: what bytes an item has no text holds, which is told. */
static bool are_texts(const struct call *call, const json_t *items)
{
    const char *key;
    json_t *item;

    json_object_foreach((json_t *)(uintptr_t)items, key, item)
    {
        if (json_is_string(item))
            continue;
        (void)call_refuse(call, "an item of the variable is no UTF-8");
        return false;
    }
    return call_charge(call, 64 * json_object_size(items));
}

static json_t *run_variable(const struct call *call)
{
    const json_t *variable = ask_for_one(call, true);
    const json_t *items = json_object_get(variable, "Items");

    if (!json_is_object(items))
        return call_give_made(call, json_object());
    return are_texts(call, items) ? variable_items(call->evaluating, variable) : NULL;
}

static json_t *run_exists(const struct call *call)
{
    const json_t *variable = ask_for_one(call, false);

    return call_give_made(call, json_boolean(json_is_object(variable)));
}

static json_t *run_list(const struct call *call)
{
    const char *text = call->count == 0 ? "" : call_text(call, 0);
    bool safe = text_equal(call->name, "nomadVarListSafe");
    json_t *made = json_array(), *metadata;
    const json_t *list = NULL;
    struct place place;
    size_t i;

    if (call->evaluating->code == 0 && read_place(call, text, text + strlen(text), true, &place))
        list = call_ask(call, QUESTION_VARIABLES, place.namespace,
                        place.path[strspn(place.path, "/")] == '\0' ? "" : place.path, safe);
    json_array_foreach(list, i, metadata)
    {
        if (call_charge(call, 512))
            check(json_array_append_new(made, variable_listed(call->evaluating, metadata)) == 0);
    }
    return call_give_made(call, made);
}

const struct function template_variables_functions[] = {
    {"nomadVar", 1, 1, run_variable},
    {"nomadVarExists", 1, 1, run_exists},
    {"nomadVarList", 0, 1, run_list},
    {"nomadVarListSafe", 0, 1, run_list},
    {NULL, 0, 0, NULL},
};
