/* What the world of a template gives: its environment, files, the time. */
#include "spec/template/functions/part.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TIME_SIZE = 64 };

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

/* Go's layouts are many; two are told apart. */
static json_t *run_timestamp(const struct call *call)
{
    time_t now = (time_t)(call->evaluating->world->now_unix_ns / 1000000000);
    char text[TIME_SIZE];
    struct tm parts;

    if (call->evaluating->world->asks_time != NULL)
        *call->evaluating->world->asks_time = true;
    if (call->count == 1 && text_equal(call_text(call, 0), "unix"))
        return json_integer((json_int_t)now);
    if (call->count == 1)
        return call_refuse(call, "only \"unix\" is known of its layouts");
    check(gmtime_r(&now, &parts) != NULL);
    check(strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts) > 0);
    return call_give_text(call, text);
}

const struct function template_world_functions[] = {
    {"env", 1, 1, run_env},     {"envOrDefault", 2, 2, run_env},    {"file", 1, 1, run_file},
    {"mustEnv", 1, 1, run_env}, {"timestamp", 0, 1, run_timestamp}, {NULL, 0, 0, NULL},
};
