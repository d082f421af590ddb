/*
 * Hook artifacts: what a task needs is fetched before it starts.
 *
 * Follows nomad v2.0.5 client/allocrunner/taskrunner/artifact_hook.go.  What is asked for is
 * interpolated here and handed to cairn-fetch as one order.  That it was carried out is a result of
 * the hook, and so in the journal, by a digest of the order: neither a restart of the daemon nor
 * one of the task fetches it again, but for what lies in `secrets`, which a reboot or an unmount
 * empties.
 */
#include "hooks/directory.h"
#include "hooks/env/env.h"
#include "hooks/env/expand.h"
#include "hooks/fetching.h"

#include "io/proc.h"
#include "spec/names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

enum { DIGEST_SIZE = 17, TEXT_BYTES_MAX = 16 * 1024, ORDER_BYTES_MAX = 1 << 20 };

static const char done_key[] = "fetched";

/* --- the order --- */

struct ordering {
    const struct hooks *hooks;
    const struct hook_run *asked;
    struct hooks_names names;
    struct arena *arena;
    struct err *err;
    struct hooks_paths paths;
    bool has_secrets; /* one of them is to be in `secrets` */
};

static int expand(const struct ordering *ordering, const char *text, const char **ret_text)
{
    return hooks_expand_plain(&ordering->names, ordering->arena, text, TEXT_BYTES_MAX, ret_text,
                              ordering->err);
}

static bool is_line(const char *text)
{
    return strpbrk(text, "\r\n") == NULL;
}

static int expand_pairs(const struct ordering *ordering, const struct spec_pairs *pairs,
                        json_t **ret_object)
{
    json_t *object = json_object();
    int code = 0;

    for (size_t i = 0; code == 0 && i < pairs->count; i++) {
        const char *value;

        code = expand(ordering, pairs->items[i].value, &value);
        if (code == 0 && (!is_line(pairs->items[i].key) || !is_line(value)))
            code = err_set(ordering->err, ERR_INVALID, "a header or an option has a line's end");
        json_t *text = code == 0 ? json_string(value) : NULL;
        if (code == 0 &&
            (text == NULL || json_object_set_new(object, pairs->items[i].key, text) != 0))
            code = err_set(ordering->err, ERR_INVALID, "a header or an option is no UTF-8");
    }
    if (code != 0)
        json_decref(object);
    else
        *ret_object = object;
    return code;
}

/* Where a destination is, as the task knows it. */
static int place(struct ordering *ordering, const char *text, struct hooks_place *ret_place)
{
    const char *driver = ordering->asked->task->driver, *path;
    bool host_paths = hooks_driver(ordering->hooks, driver)->isolation == ISOLATION_NONE;
    const struct hooks_view view = {.name = ordering->asked->task->name,
                                    .task = host_paths ? ordering->paths.task : "",
                                    .shared = host_paths ? ordering->paths.shared : "/alloc"};
    int code = expand(ordering, text, &path);

    if (code != 0)
        return code;
    if (!hooks_place(&view, path, ordering->arena, ret_place))
        return err_set(ordering->err, ERR_INVALID,
                       "artifact destination path escapes the directories of the task: %.120s",
                       path);
    bool is_secret = !ret_place->shared && (text_equal(ret_place->path, "secrets") ||
                                            text_starts_with(ret_place->path, "secrets/"));
    ordering->has_secrets = ordering->has_secrets || is_secret;
    return 0;
}

static int add_artifact(struct ordering *ordering, const struct spec_artifact *artifact,
                        json_t *list)
{
    static const char *const modes[] = {
        [ARTIFACT_ANY] = "any", [ARTIFACT_FILE] = "file", [ARTIFACT_DIRECTORY] = "dir"};
    json_t *options = NULL, *headers = NULL;
    const char *source = "";
    struct hooks_place destination = {.path = ""};
    int code = expand(ordering, artifact->source, &source);

    if (code == 0)
        code = place(ordering, artifact->destination, &destination);
    if (code == 0)
        code = expand_pairs(ordering, &artifact->options, &options);
    if (code == 0)
        code = expand_pairs(ordering, &artifact->headers, &headers);
    if (code != 0) {
        json_decref(options);
        return code;
    }
    json_t *value =
        json_pack("{s:s, s:s, s:s, s:s, s:b, s:o, s:o}", "source", source, "shown",
                  artifact->source, "destination", destination.path, "mode", modes[artifact->mode],
                  "insecure", artifact->insecure, "options", options, "headers", headers);
    if (value == NULL)
        return err_set(ordering->err, ERR_INVALID, "an artifact is not UTF-8 text");
    if (destination.shared) /* an order without it is as those of older versions */
        check(json_object_set_new(value, "shared", json_true()) == 0);
    check(json_array_append_new(list, value) == 0);
    return 0;
}

static int add_all(struct ordering *ordering, json_t *list)
{
    const struct task_spec *task = ordering->asked->task;
    int code = hooks_paths(ordering->hooks, ordering->asked->alloc->id, task->name,
                           &ordering->paths, ordering->err);

    for (size_t i = 0; code == 0 && i < task->artifacts_count; i++)
        code = add_artifact(ordering, &task->artifacts[i], list);
    return code;
}

/* --- whether it was carried out --- */

/* What `secrets` lie on is another after a boot, and when they are mounted anew; kernels tell one
 * tmpfs from another since Linux 5.13. */
static int digest_of_secrets(const struct ordering *ordering, uint64_t *ret_digest)
{
    char boot[BOOT_ID_SIZE] = "";
    struct statfs system;
    int code = proc_boot_id(boot, ordering->err);

    *ret_digest = hash_bytes(0, boot, strlen(boot));
    if (code == 0 && statfs(ordering->paths.secrets, &system) == 0)
        *ret_digest = hash_bytes(*ret_digest, &system.f_fsid, sizeof(system.f_fsid));
    return code;
}

static int digest_of(const struct ordering *ordering, const json_t *list, char to[DIGEST_SIZE])
{
    uint64_t digest = hash_bytes(0, "", 0);
    int code = ordering->has_secrets ? digest_of_secrets(ordering, &digest) : 0;
    char *text = json_dumps(list, JSON_COMPACT | JSON_SORT_KEYS);

    check(text != NULL);
    digest = hash_bytes(digest, text, strlen(text));
    free(text);
    (void)text_format(to, DIGEST_SIZE, "%016llx", (unsigned long long)digest); /* fits */
    return code;
}

static bool is_done(const struct hook_run *asked, const char *digest)
{
    struct result result;

    for (uint32_t at = 0; results_next(asked->results, asked->results_bytes, &at, &result);) {
        if (result.hook == TASK_HOOK_ARTIFACTS && result.kind == RESULT_DATA &&
            text_equal(result.key, done_key))
            return result.value_length == strlen(digest) &&
                   memcmp(result.value, digest, result.value_length) == 0;
    }
    return false;
}

/* The digest and a line's end, and the order if it is to be carried out. */
static int write_order(const struct ordering *ordering, json_t *list, char **ret_order)
{
    const struct hooks_fetch *fetch = ordering->hooks->fetch;
    char digest[DIGEST_SIZE];
    int code = digest_of(ordering, list, digest);

    if (code != 0)
        return code;
    json_t *order = json_pack(
        "{s:I, s:I, s:I, s:I, s:O}", "timeout_ms", (json_int_t)fetch->timeout_ms, "bytes_max",
        (json_int_t)fetch->bytes_max, "unpacked_bytes_max", (json_int_t)fetch->unpacked_bytes_max,
        "entries_max", (json_int_t)fetch->entries_max, "artifacts", list);
    char *text = is_done(ordering->asked, digest) ? strdup("") : json_dumps(order, JSON_COMPACT);
    json_decref(order);
    check(text != NULL);
    size_t bytes = strlen(text) + DIGEST_SIZE + 1;
    if (bytes > ORDER_BYTES_MAX) {
        free(text);
        return err_set(ordering->err, ERR_LIMIT, "the artifacts are longer than %d bytes",
                       ORDER_BYTES_MAX);
    }
    *ret_order = malloc(bytes);
    check(*ret_order != NULL);
    check(text_format(*ret_order, bytes, "%s\n%s", digest, text));
    free(text);
    return 0;
}

int hooks_artifacts_begin(const struct hooks *hooks, const struct hook_run *asked, char **ret_order,
                          struct err *err)
{
    struct arena arena = {0};
    struct hooks_env env = {.arena = &arena};
    struct ordering ordering = {.hooks = hooks,
                                .asked = asked,
                                .names = {.node = hooks->node, .env = &env},
                                .arena = &arena,
                                .err = err};
    json_t *list = json_array();
    int code = hooks->fetch == NULL
                   ? err_set(err, ERR_UNSUPPORTED, "this agent fetches no artifacts")
                   : hooks_env_build(hooks, asked->alloc, asked->task, asked->results,
                                     asked->results_bytes, &env, err);

    if (code == 0)
        code = add_all(&ordering, list);
    if (code == 0)
        code = write_order(&ordering, list, ret_order);
    json_decref(list);
    arena_free(&arena);
    return code;
}

/* --- on the pool --- */

/* The task's files are its user's, or the daemon's own. */
static int find_owner(const struct hook_request *request, struct err *err)
{
    struct hooks_fetching *fetching = request->fetching;
    struct host_user owner = {.uid = geteuid(), .gid = getegid()};
    int code = request->privileged && *request->user != '\0'
                   ? host_user_find(request->user, &owner, err)
                   : 0;

    fetching->uid = owner.uid;
    fetching->gid = owner.gid;
    return code;
}

int hooks_artifacts_prepare(const struct hook_request *request, struct err *err)
{
    struct hooks_fetching *fetching = request->fetching;
    const char *order = strchr(request->order, '\n');
    scoped_fd int root = -1;

    check(order != NULL);
    if (results_set(request->results, TASK_HOOK_ARTIFACTS, RESULT_DATA, done_key, request->order,
                    (uint32_t)(order - request->order)) != 0)
        return err_set(err, ERR_LIMIT, "too many results"); /* it is the first */
    if (order[1] == '\0')
        return 0; /* it was carried out */
    fetching->is_needed = true;
    fetching->failing = "failed to download artifacts: ";
    int code = hooks_open_root(request, &root, err);
    if (code == 0)
        code = hooks_directory_open(root, request->task, request->task, &fetching->place, err);
    if (code == 0)
        code = hooks_directory_open(root, "alloc", "alloc", &fetching->shared, err);
    if (code == 0)
        code = find_owner(request, err);
    return code == 0 ? fetching_order(fetching, order + 1, err) : code;
}
