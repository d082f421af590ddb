/* A plugin that is a program of the operator's. */
#include "io/program.h"
#include "hooks/hosted/part.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LOOK_MS = 5 * 1000,
    CALL_MS = 60 * 1000, /* as long as Nomad waits */
    VARIABLES = 12,
};

#define PLUGIN_NAME "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

bool hosted_find(const char *directory, const char *name, char path[PATH_SIZE])
{
    struct stat status;

    return name[0] != '\0' && name[0] != '.' && name[strspn(name, PLUGIN_NAME)] == '\0' &&
           strlen(name) < PLUGIN_NAME_SIZE && path_join(path, directory, name) == 0 &&
           stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

/* What it is told beside its argument: "NAME=value", each its own. */
struct environment {
    char *items[VARIABLES + 1];
    size_t count;
};

__attribute__((format(printf, 2, 3))) static void add(struct environment *to, const char *format,
                                                      ...)
{
    va_list arguments;

    check(to->count < VARIABLES);
    va_start(arguments, format);
    check(vasprintf(&to->items[to->count++], format, arguments) >= 0);
    va_end(arguments);
}

static void free_environment(struct environment *environment)
{
    for (size_t i = 0; i < environment->count; i++)
        free(environment->items[i]);
}

static void tell(const struct hosted_request *request, const char *operation,
                 struct environment *to)
{
    const struct hosted_ask *ask = &request->ask;

    add(to, "DHV_OPERATION=%s", operation);
    add(to, "DHV_VOLUMES_DIR=%s", request->volumes_dir);
    add(to, "DHV_PLUGIN_DIR=%s", request->plugin_dir);
    add(to, "DHV_NODE_POOL=%s", request->node_pool);
    add(to, "DHV_NAMESPACE=%s", ask->namespace);
    add(to, "DHV_VOLUME_NAME=%s", ask->name);
    add(to, "DHV_VOLUME_ID=%s", ask->id);
    add(to, "DHV_NODE_ID=%s", request->node_id);
    add(to, "DHV_PARAMETERS=%s", ask->parameters);
    if (ask->deletes) {
        add(to, "DHV_CREATED_PATH=%s", ask->path);
        return;
    }
    add(to, "DHV_CAPACITY_MIN_BYTES=%lld", (long long)ask->bytes_min);
    add(to, "DHV_CAPACITY_MAX_BYTES=%lld", (long long)ask->bytes_max);
}

static int run(const char *program, const char *operation, struct environment *environment,
               int cancel_fd, uint64_t limit_ms, struct program_answer *ret_answer, struct err *err)
{
    char *const argv[] = {(char *)(uintptr_t)program, (char *)(uintptr_t)operation, NULL};
    const struct program_call call = {.program = program,
                                      .argv = argv,
                                      .environment = environment->items,
                                      .input = "",
                                      .lock_fd = -1,
                                      .cancel_fd = cancel_fd,
                                      .limit_ms = limit_ms};

    return program_run(&call, ret_answer, err);
}

/* Why it has failed: what it says as JSON, or what it complained of. */
static void note_failure(const struct program_answer *answer, const json_t *said,
                         const struct hosted_request *request, struct hosted_result *result)
{
    const char *error = json_string_value(json_object_get(said, "error"));

    hosted_fail(result, ERR_REFUSED, true,
                "error %s volume \"%s\" with plugin \"%s\": exit status %d: %s",
                request->ask.deletes ? "deleting" : "creating", request->ask.id,
                request->ask.plugin, answer->status, error != NULL ? error : answer->complaint);
}

static void read_made(const json_t *said, struct hosted_result *result)
{
    const char *path = json_string_value(json_object_get(said, "path"));
    json_t *bytes = json_object_get(said, "bytes");

    if (path == NULL || path[0] != '/' || !text_copy(result->path, sizeof(result->path), path) ||
        (bytes != NULL && (!json_is_integer(bytes) || json_integer_value(bytes) < 0))) {
        hosted_fail(result, ERR_INVALID, true,
                    "the plugin does not say as JSON which absolute path it has made, and of how "
                    "many bytes");
        result->answer.is_odd = true;
        return;
    }
    result->answer.bytes = json_integer_value(bytes);
}

void hosted_program(const struct hosted_request *request, struct hosted_result *result)
{
    const char *operation = request->ask.deletes ? "delete" : "create";
    struct environment environment = {0};
    struct program_answer answer;
    char program[PATH_SIZE];
    struct err err = {0};

    if (!hosted_find(request->plugin_dir, request->ask.plugin, program)) {
        hosted_fail(result, ERR_GONE, false, "no such plugin: \"%.100s\"", request->ask.plugin);
        return;
    }
    tell(request, operation, &environment);
    int code = run(program, operation, &environment, request->cancel_fd, CALL_MS, &answer, &err);
    free_environment(&environment);
    if (code != 0) {
        hosted_fail(result, code, false, "plugin \"%s\": %s", request->ask.plugin, err.text);
        return;
    }
    json_t *said = json_loads(answer.output, 0, NULL);
    if (answer.status != 0)
        note_failure(&answer, said, request, result);
    else if (!request->ask.deletes)
        read_made(said, result);
    json_decref(said);
    program_close(&answer);
}

bool hosted_version(const char *directory, const char *name, int cancel_fd,
                    char to[PLUGIN_NAME_SIZE])
{
    struct environment environment = {0};
    struct program_answer answer;
    char program[PATH_SIZE];
    bool told = false;
    struct err err;

    if (!hosted_find(directory, name, program))
        return false;
    add(&environment, "DHV_OPERATION=fingerprint");
    if (run(program, "fingerprint", &environment, cancel_fd, LOOK_MS, &answer, &err) == 0) {
        json_t *said = json_loads(answer.output, 0, NULL);
        const char *version = json_string_value(json_object_get(said, "version"));

        told = answer.status == 0 && version != NULL && version[0] != '\0' &&
               text_copy(to, PLUGIN_NAME_SIZE, version);
        json_decref(said);
        program_close(&answer);
    }
    free_environment(&environment);
    return told;
}
