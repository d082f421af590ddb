/*
 * Hook template: files that a task needs are rendered before each of its starts (first.c), and
 * again while it runs (watch.c).
 *
 * Follows nomad v2.0.5 client/allocrunner/taskrunner/template.  What a template sees is
 * interpolated names, the environment, files of the task's own directory, and what others know
 * (asks.h).  A file that is as it would be rendered is not touched; one that is missing, as after a
 * reboot in `secrets`, is there before the task is.  What a template with env = true says is a
 * result of the hook, and so in the journal.
 *
 * The directory is the task's to change: all is opened beneath it and by no link (hooks/file.h).
 * Templates are read and rendered by a process without privileges (hooks/render/renderer.h), to
 * which the files are handed that they ask for.
 */
#include "hooks/render/render.h"
#include "hooks/render/renderer.h"

#include "hooks/directory.h"
#include "hooks/env/env.h"
#include "hooks/env/expand.h"
#include "hooks/file.h"

#include "base/hash.h"
#include "base/list.h"
#include "io/host.h"
#include "io/proc.h"
#include "spec/template.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PLACE_BYTES_MAX = 4096,
    SETTLE_MS = 100, /* what is written is left alone for so long */
    SETTLE_MS_MAX = 1000,
};

/* --- the order --- */

static void set_text(json_t *object, const char *key, const char *value)
{
    json_t *text = json_string(value == NULL ? "" : value);

    if (text != NULL)                                 /* what is no UTF-8 no template can show */
        (void)json_object_set_new(object, key, text); /* likewise the name */
}

/* What can be named: as find_node() and the environment. */
static json_t *names_of(const struct hooks_node *node, const struct hooks_env *env)
{
    const struct spec_pair facts[] = {
        {"node.unique.id", node->id},          {"node.unique.name", node->name},
        {"node.datacenter", node->datacenter}, {"node.class", node->class},
        {"node.region", node->region},         {"node.pool", node->pool},
    };
    const struct {
        const char *prefix;
        const struct spec_pairs *pairs;
    } maps[] = {{"attr.", &node->attributes}, {"meta.", &node->meta}, {"", &env->pairs}};
    json_t *names = json_object();
    char name[512];

    for (size_t i = 0; i < COUNT_OF(facts); i++)
        set_text(names, facts[i].key, facts[i].value);
    for (size_t m = 0; m < COUNT_OF(maps); m++) {
        for (size_t i = 0; i < maps[m].pairs->count; i++) {
            const struct spec_pair *pair = &maps[m].pairs->items[i];

            if (text_format(name, sizeof(name), "%s%s", maps[m].prefix, pair->key))
                set_text(names, name, pair->value);
        }
    }
    return names;
}

struct ordering {
    struct hooks_names names;
    struct arena *arena;
    struct err *err;
    struct hooks_view view;
};

/* Where TEXT, interpolated, is. */
static int place(const struct ordering *ordering, const char *text, struct hooks_place *ret_place)
{
    const char *path;
    int code = hooks_expand_plain(&ordering->names, ordering->arena, text, PLACE_BYTES_MAX, &path,
                                  ordering->err);

    if (code != 0)
        return code;
    if (!hooks_place(&ordering->view, path, ordering->arena, ret_place))
        return err_set(ordering->err, ERR_INVALID,
                       "template path escapes the directories of the task: %.120s", path);
    return 0;
}

static int change_of(const struct spec_template *template)
{
    static const int modes[] = {
        [SPEC_CHANGE_NOOP] = CHANGE_NOOP,
        [SPEC_CHANGE_SIGNAL] = CHANGE_SIGNAL,
        [SPEC_CHANGE_RESTART] = CHANGE_RESTART,
        [SPEC_CHANGE_SCRIPT] = CHANGE_SCRIPT,
    };

    return modes[template->change];
}

/* Which signal, or which of the scripts. */
static int number_of(const struct spec_template *template)
{
    return template->change == SPEC_CHANGE_SCRIPT ? template->script.number
                                                  : proc_signal_number(template->signal);
}

static int add_template(const struct ordering *ordering, const struct spec_template *template,
                        json_t *list)
{
    struct hooks_place source, destination;
    int code = place(ordering, template->source, &source);

    if (code == 0)
        code = place(ordering, template->destination, &destination);
    if (code != 0)
        return code;
    json_t *value = json_pack(
        "{s:s, s:b, s:s, s:s, s:b, s:s, s:s, s:i, s:I, s:I, s:b, s:b, s:b, s:i, s:i, s:I}",
        "source", source.path, "source_shared", source.shared, "data", template->data,
        "destination", destination.path, "shared", destination.shared, "left", template->left,
        "right", template->right, "mode", (int)template->mode, "uid", (json_int_t) template->uid,
        "gid", (json_int_t) template->gid, "env", template->env, "strict", template->strict, "once",
        template->once, "change", change_of(template), "number", number_of(template), "splay",
        (json_int_t) template->splay_ms);
    if (value == NULL)
        return err_set(ordering->err, ERR_INVALID, "a template is not UTF-8 text");
    check(json_array_append_new(list, value) == 0);
    return 0;
}

/* What earlier hooks left: what templates have said is nothing that they see. */
static struct results others_of(const struct hook_run *asked, uint8_t *bytes)
{
    struct results results = {bytes, asked->results_bytes, RESULTS_BYTES_MAX};

    if (asked->results_bytes > 0)
        memcpy(bytes, asked->results, asked->results_bytes);
    results_clear(&results, TASK_HOOK_TEMPLATE);
    return results;
}

/* How long what is read may take to settle, from the least on: the longest that a template asks
 * for. */
static json_t *waits_of(const struct task_spec *task, uint64_t min_ms, uint64_t max_ms)
{
    for (size_t i = 0; i < task->templates_count; i++) {
        const struct spec_template *template = &task->templates[i];

        if (template->wait_min_ms > min_ms)
            min_ms = template->wait_min_ms;
        if (template->wait_max_ms > max_ms)
            max_ms = template->wait_max_ms;
    }
    return json_pack("[I, I]", (json_int_t)min_ms, (json_int_t)(max_ms < min_ms ? min_ms : max_ms));
}

/* The same of what others know. */
static json_t *waits_for_facts(const struct hooks *hooks, const struct task_spec *task)
{
    bool says = hooks->facts == NULL;

    for (size_t i = 0; i < task->templates_count; i++)
        says |= task->templates[i].wait_max_ms > 0;
    return says ? waits_of(task, SETTLE_MS, SETTLE_MS)
                : waits_of(task, hooks->facts->settle_ms, hooks->facts->settle_max_ms);
}

int hooks_render_begin(const struct hooks *hooks, const struct hook_run *asked, char **ret_order,
                       struct err *err)
{
    const struct task_spec *task = asked->task;
    scoped_string char *bytes = malloc(RESULTS_BYTES_MAX);
    bool host_paths = hooks_driver(hooks, task->driver)->isolation == ISOLATION_NONE;
    struct arena arena = {0};
    struct hooks_env env = {.arena = &arena};
    struct hooks_paths paths;
    json_t *list = json_array();
    int code = hooks_paths(hooks, asked->alloc->id, task->name, &paths, err);

    check(bytes != NULL);
    check(asked->results_bytes <= RESULTS_BYTES_MAX);
    struct results others = others_of(asked, (uint8_t *)bytes);
    if (code == 0)
        code = hooks_env_build(hooks, asked->alloc, task, others.bytes, others.used, &env, err);
    const struct ordering ordering = {.names = {.node = hooks->node, .env = &env},
                                      .arena = &arena,
                                      .err = err,
                                      .view = {.name = task->name,
                                               .task = host_paths ? paths.task : "",
                                               .shared = host_paths ? paths.shared : "/alloc"}};
    for (size_t i = 0; code == 0 && i < task->templates_count; i++)
        code = add_template(&ordering, &task->templates[i], list);
    if (code == 0) {
        json_t *order = json_pack(
            "{s:o, s:O, s:s, s:s, s:I, s:o, s:o, s:o, s:b}", "names", names_of(hooks->node, &env),
            "templates", list, "task", ordering.view.task, "shared", ordering.view.shared, "now",
            (json_int_t)loop_now_unix_ns(), "settle", waits_of(task, SETTLE_MS, SETTLE_MS_MAX),
            "settle_facts", waits_for_facts(hooks, task), "asker", asks_asker(asked), "alone",
            hooks->facts == NULL || hooks->facts->alone);

        check(order != NULL);
        *ret_order = json_dumps(order, JSON_COMPACT);
        check(*ret_order != NULL);
        json_decref(order);
    }
    json_decref(list);
    arena_free(&arena);
    return code;
}

/* --- on the pool: what templates see --- */

struct rendering {
    const struct hook_request *request;
    const json_t *order;
    int place, shared; /* the directories of the task and of its alloc */
    struct host_user owner;
    struct rendered *said; /* of each template */
    struct renderer renderer;
};

static const char *order_text(const json_t *object, const char *field)
{
    const char *text = json_string_value(json_object_get(object, field));

    return text == NULL ? "" : text;
}

static int read_all(int fd, char **ret_text, size_t *ret_length, struct err *err)
{
    char *text = malloc(TEMPLATE_BYTES_MAX + 2);
    size_t length = 0;
    ssize_t got;

    check(text != NULL);
    do {
        got = read(fd, text + length, TEMPLATE_BYTES_MAX + 1 - length);
        length += got > 0 ? (size_t)got : 0;
    } while (got > 0 || (got < 0 && errno == EINTR));
    if (got < 0 || length > TEMPLATE_BYTES_MAX) {
        int code = got < 0 ? err_os(err, err_from_errno(errno), errno, "cannot read it")
                           : err_set(err, ERR_LIMIT, "longer than %d bytes", TEMPLATE_BYTES_MAX);
        free(text);
        return code;
    }
    text[length] = '\0';
    *ret_text = text;
    *ret_length = length;
    return 0;
}

/* --- on the pool: what they read, for a task that runs --- */

static void mark(struct hooks_rerender *again, int fd, uint32_t events, const char *name)
{
    char path[32];

    if (again->marks.count == MARKS_MAX) {
        again->blind = true;
        return;
    }
    (void)text_format(path, sizeof(path), "/proc/self/fd/%d", fd); /* fits */
    int wd = inotify_add_watch(again->inotify, path, events);
    if (wd < 0) {
        again->blind = true;
        return;
    }
    for (size_t i = 0; i < again->marks.count; i++) {
        if (again->marks.items[i].wd == wd && text_equal(again->marks.items[i].name, name))
            return;
    }
    struct render_mark *made = list_more(&again->marks);
    made->wd = wd;
    (void)text_copy(made->name, sizeof(made->name), name); /* of one size */
}

/* Each directory on the way to PATH, as far as there is one, for what comes or goes there. */
static void mark_way(const struct rendering *rendering, int place, const char *path)
{
    static const uint32_t events =
        IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR | IN_EXCL_UNLINK;
    struct hooks_rerender *again = rendering->request->again;
    scoped_fd int at = openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char name[NAME_SIZE];

    while (again != NULL && at >= 0) {
        path += strspn(path, "/");
        size_t length = strcspn(path, "/");
        if (length == 0 || length >= NAME_SIZE)
            return;
        (void)text_format(name, sizeof(name), "%.*s", (int)length, path); /* fits */
        mark(again, at, events, name);
        path += length;
        int next =
            *path == '\0' ? -1 : beneath_open(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
        (void)close(at);
        at = next < 0 ? -1 : next;
    }
}

/* A file in PLACE, by a path from there on.  Marked before it is read: what changes meanwhile is
 * told. */
static int read_beneath(const struct rendering *rendering, int place, const char *path,
                        char **ret_text, size_t *ret_length, struct err *err)
{
    struct stat status;

    mark_way(rendering, place, path);
    scoped_fd int fd = beneath_open(place, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);

    if (fd < 0)
        return err_os(err, err_from_errno(-fd), -fd, "cannot open it");
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return err_set(err, ERR_INVALID, "it is no file");
    if (rendering->request->again != NULL)
        mark(rendering->request->again, fd, IN_MODIFY, "");
    return read_all(fd, ret_text, ret_length, err);
}

static int read_file(void *ctx, const char *path, char **ret_text, size_t *ret_length,
                     struct err *err)
{
    const struct rendering *rendering = ctx;
    const struct hooks_view view = {.name = rendering->request->task,
                                    .task = order_text(rendering->order, "task"),
                                    .shared = order_text(rendering->order, "shared")};
    struct arena arena = {0};
    struct hooks_place place;
    int code = 0;

    if (!hooks_place(&view, path, &arena, &place) || place.shared)
        code = err_set(err, ERR_REFUSED, "it is not in the directory of the task");
    else
        code = read_beneath(rendering, rendering->place, place.path, ret_text, ret_length, err);
    arena_free(&arena);
    return code;
}

static int ask_others(void *ctx, const char *question, const char **ret_text, struct err *err)
{
    const struct rendering *rendering = ctx;

    return asks_answer(rendering->request->asks, question, ret_text, err);
}

/* --- what is rendered --- */

/* The directory that a path of TEMPLATE starts from: FIELD says which. */
static int place_of(const struct rendering *rendering, const json_t *template, const char *field)
{
    bool shared = json_is_true(json_object_get(template, field));

    return shared ? rendering->shared : rendering->place;
}

/* True if the file NAME is what would be written. */
static bool is_so(int directory, const char *name, const char *text, size_t length,
                  const struct stat *wanted)
{
    scoped_fd int fd =
        openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;
    char *there = NULL;
    size_t there_length;

    if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
        (status.st_mode & 07777u) != wanted->st_mode || status.st_uid != wanted->st_uid ||
        status.st_gid != wanted->st_gid || (size_t)status.st_size != length ||
        read_all(fd, &there, &there_length, NULL) != 0)
        return false;
    bool same = there_length == length && memcmp(there, text, length) == 0;
    free(there);
    return same;
}

static int write_file(const struct rendering *rendering, const json_t *template, const char *text,
                      size_t length, struct err *err)
{
    json_int_t uid = json_integer_value(json_object_get(template, "uid"));
    json_int_t gid = json_integer_value(json_object_get(template, "gid"));
    const struct stat wanted = {
        .st_mode = (mode_t)json_integer_value(json_object_get(template, "mode")),
        .st_uid = uid >= 0 ? (uid_t)uid : rendering->owner.uid,
        .st_gid = gid >= 0 ? (gid_t)gid : rendering->owner.gid,
    };
    scoped_fd int directory = -1;
    char name[NAME_SIZE];
    bool gives = rendering->request->privileged;
    int code = hooks_file_enter(place_of(rendering, template, "shared"),
                                order_text(template, "destination"),
                                gives ? &rendering->owner : NULL, name, &directory, err);

    if (code != 0 || is_so(directory, name, text, length, &wanted))
        return code;
    return hooks_file_replace(directory, name, text, length, &wanted, gives, err);
}

/* --- variables --- */

/* VALUE without its quotes, in place; false if they are not closed. */
static bool unquote(char *value)
{
    char quote = *value, *to = value;

    if (quote != '"' && quote != '\'')
        return true;
    for (char *from = value + 1; *from != '\0'; from++) {
        if (*from == quote) {
            *to = '\0';
            return from[1 + strspn(from + 1, " \t")] == '\0';
        }
        if (*from == '\\' && quote == '"' && from[1] != '\0')
            *to++ = *++from == 'n' ? '\n' : *from == 't' ? '\t' : *from;
        else
            *to++ = *from;
    }
    return false;
}

static int add_variable(const struct rendering *rendering, char *line, unsigned number,
                        struct err *err)
{
    line += strspn(line, " \t");
    line[strcspn(line, "\r")] = '\0';
    if (*line == '\0' || *line == '#')
        return 0;
    if (text_starts_with(line, "export "))
        line += strlen("export ");
    char *value = strchr(line, '=');
    if (value == NULL || value == line)
        return err_set(err, ERR_INVALID, "line %u of an env template is no NAME=VALUE", number);
    for (char *end = value; end > line && isblank((unsigned char)end[-1]); end--)
        end[-1] = '\0';
    *value++ = '\0';
    value += strspn(value, " \t");
    if (!unquote(value))
        return err_set(err, ERR_INVALID, "line %u of an env template: a quote is not closed",
                       number);
    if (results_set(rendering->request->results, TASK_HOOK_TEMPLATE, RESULT_ENV, line, value,
                    (uint32_t)strlen(value)) != 0)
        return err_set(err, ERR_LIMIT, "line %u of an env template: too many or too long variables",
                       number);
    return 0;
}

static int add_variables(const struct rendering *rendering, char *text, struct err *err)
{
    unsigned number = 0;
    int code = 0;

    for (char *line; code == 0 && (line = strsep(&text, "\n")) != NULL;)
        code = add_variable(rendering, line, ++number, err);
    return code;
}

/* --- all of them --- */

/* What TEMPLATE says, whose text is ORDER's, and what its digest is.  That of one that asks for the
 * time is of what it says at none in particular: time that goes by changes nothing. */
static int say(struct rendering *rendering, const json_t *template, struct renderer_order *order,
               char **ret_text, size_t *ret_length, bool *ret_asks_time, uint8_t digest[14],
               struct err *err)
{
    order->left = order_text(template, "left");
    order->right = order_text(template, "right");
    order->strict = json_is_true(json_object_get(template, "strict"));
    order->alone = json_is_true(json_object_get(rendering->order, "alone"));
    int code = renderer_say(&rendering->renderer, order, ret_text, ret_length, ret_asks_time, err);

    if (code != 0)
        return code;
    const uint64_t halves[] = {hash_bytes(1, *ret_text, *ret_length),
                               hash_bytes(2, *ret_text, *ret_length)};
    memcpy(digest, halves, 14);
    if (!*ret_asks_time)
        return 0;
    free(*ret_text);
    *ret_text = NULL;
    order->now_unix_ns = json_integer_value(json_object_get(rendering->order, "now"));
    return renderer_say(&rendering->renderer, order, ret_text, ret_length, ret_asks_time, err);
}

static bool is_there(const struct rendering *rendering, const json_t *template)
{
    scoped_fd int fd = beneath_open(place_of(rendering, template, "shared"),
                                    order_text(template, "destination"), O_PATH | O_CLOEXEC, 0);

    return fd >= 0;
}

/* What it said before, NULL: nobody knows. */
static const struct rendered *said_before(const struct rendering *rendering, size_t number)
{
    const struct hooks_rerender *again = rendering->request->again;

    return again != NULL && number < again->before_count ? &again->before[number] : NULL;
}

static int render(struct rendering *rendering, const json_t *template, size_t number,
                  struct err *err)
{
    const char *source = order_text(template, "source"), *data = order_text(template, "data");
    const char *destination = order_text(template, "destination");
    const struct rendered *before = said_before(rendering, number);
    struct rendered *said = &rendering->said[number];
    scoped_string char *read = NULL, *text = NULL;
    struct renderer_order order = {.text = data, .length = strlen(data)};
    bool asks_time = false;
    size_t length = 0;
    int code = 0;

    if (rendering->request->again != NULL && json_is_true(json_object_get(template, "once"))) {
        if (before != NULL)
            *said = *before;
        return 0;
    }
    if (*source != '\0')
        code = read_beneath(rendering, place_of(rendering, template, "source_shared"), source,
                            &read, &order.length, err);
    if (code != 0)
        return err_wrap(err, "the source \"%.60s\"", source);
    if (read != NULL)
        order.text = read;
    code = say(rendering, template, &order, &text, &length, &asks_time, said->digest, err);
    said->mode = (uint8_t)json_integer_value(json_object_get(template, "change"));
    said->number = (uint8_t)json_integer_value(json_object_get(template, "number"));
    bool same = before != NULL && memcmp(before->digest, said->digest, sizeof(said->digest)) == 0;
    if (code == 0 && !(same && asks_time && is_there(rendering, template)))
        code = write_file(rendering, template, text, length, err);
    if (code == 0 && json_is_true(json_object_get(template, "env")))
        code = add_variables(rendering, text, err);
    if (code == 0 && before != NULL && !same) {
        uint64_t splay_ms = (uint64_t)json_integer_value(json_object_get(template, "splay"));
        if (splay_ms > rendering->request->again->splay_ms)
            rendering->request->again->splay_ms = splay_ms;
    }
    return code == 0 ? 0 : err_wrap(err, "%.60s", destination);
}

/* One that lacks an answer keeps no other from asking for its own. */
static int render_all(struct rendering *rendering, struct err *err)
{
    const json_t *templates = json_object_get(rendering->order, "templates"), *template;
    size_t count = json_array_size(templates), i;
    struct err lacking = {0};
    int code = 0;

    if (count == 0)
        return 0;
    rendering->said = calloc(count, sizeof(*rendering->said));
    check(rendering->said != NULL);
    json_array_foreach(templates, i, template)
    {
        if (code == 0)
            code = render(rendering, template, i, err);
        if (code == ERR_AGAIN) {
            lacking = *err;
            code = 0;
        }
    }
    if (code == 0 && lacking.code != 0) {
        *err = lacking;
        code = err->code;
    }
    if (code == 0 &&
        results_set(rendering->request->results, TASK_HOOK_TEMPLATE, RESULT_DATA, RENDERED_KEY,
                    rendering->said, (uint32_t)(count * sizeof(*rendering->said))) != 0)
        code = err_set(err, ERR_LIMIT, "too many or too long variables of templates");
    free(rendering->said);
    return code;
}

int hooks_render(const struct hook_request *request, struct err *err)
{
    json_t *order = json_loads(request->order, 0, NULL);
    struct rendering rendering = {
        .request = request, .order = order, .owner = {.uid = geteuid(), .gid = getegid()}};
    scoped_fd int root = -1, task = -1, shared = -1;
    int code = hooks_open_root(request, &root, err);

    check(order != NULL);
    if (code == 0)
        code = hooks_directory_open(root, request->task, request->task, &task, err);
    if (code == 0)
        code = hooks_directory_open(root, "alloc", "alloc", &shared, err);
    if (code == 0 && request->privileged && *request->user != '\0')
        code = host_user_find(request->user, &rendering.owner, err);
    rendering.place = task;
    rendering.shared = shared;
    rendering.renderer = (struct renderer){.program = request->parser,
                                           .names = json_object_get(order, "names"),
                                           .read = read_file,
                                           .ask = ask_others,
                                           .ctx = &rendering};
    if (code == 0)
        code = render_all(&rendering, err);
    renderer_end(&rendering.renderer);
    json_decref(order);
    return code;
}
