/* What the world of a template gives: its environment, files, its other templates. */
#include "spec/template/functions/part.h"

#include <stdlib.h>
#include <string.h>

static json_t *run_env(const struct call *call)
{
    const char *name = call_text(call, 0);
    const struct template_world *world = call->evaluating->world;
    const char *value = world->find(world->ctx, name, strlen(name));

    if (value == NULL && text_equal(call->name, "mustEnv"))
        return template_fail(call->evaluating, ERR_INVALID, "mustEnv: \"%.60s\" is not set", name);
    if ((value == NULL || *value == '\0') && text_equal(call->name, "envOrDefault"))
        return json_incref(call->arguments[1]);
    return call_give_text(call, value == NULL ? "" : value);
}

static json_t *run_file(const struct call *call)
{
    const struct template_world *world = call->evaluating->world;
    const char *path = call_text(call, 0);
    struct err err = {0};
    size_t length = 0;
    char *text = NULL;

    if (call->evaluating->code != 0)
        return NULL;
    int code = world->read(world->ctx, path, &text, &length, &err);
    if (code != 0)
        return template_fail(call->evaluating, code, "file \"%.60s\": %.120s", path, err.text);
    json_t *value = call_give(call, text, length);
    free(text);
    return value;
}

/* executeTemplate NAME, and what it is about. */
static json_t *run_execute(const struct call *call)
{
    const char *name = call_text(call, 0);

    if (call->evaluating->code != 0)
        return NULL;
    return template_execute(call->evaluating, name,
                            call->count == 2 ? call->arguments[1] : json_null());
}

const struct function template_world_functions[] = {
    {"env", 1, 1, run_env},
    {"envOrDefault", 2, 2, run_env},
    {"executeTemplate", 1, 2, run_execute},
    {"file", 1, 1, run_file},
    {"mustEnv", 1, 1, run_env},
    {NULL, 0, 0, NULL},
};
