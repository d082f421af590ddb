#include "hooks/render/asks.h"

#include "base/list.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

enum { SHOWN_MAX = 3, SHOWN_SIZE = 96 };

struct ask {
    struct spec_question question;
    json_t *read;       /* the question as it was asked; owned */
    char *namespace;    /* that it is about */
    char *key;          /* the same as text */
    bool needed;        /* nothing is no answer */
    void *wish;         /* for its answer; NULL: not yet */
    char *text;         /* the answer that renderings are given, NULL: none is known; owned */
    bool used, missing; /* by the last rendering */
};

/* --- who asks --- */

json_t *asks_asker(const struct hook_run *asked)
{
    json_t *asker = json_pack("{s:s, s:s, s:s, s:s, s:s}", "namespace", asked->alloc->namespace,
                              "job", asked->alloc->job_id, "group", asked->alloc->group, "task",
                              asked->task->name, "token", asked->task->identity.token);

    check(asker != NULL); /* names are UTF-8 */
    return asker;
}

static const char *text_in(const json_t *object, const char *field)
{
    const char *text = json_string_value(json_object_get(object, field));

    check(text != NULL); /* we have made it */
    return text;
}

/* The answer is another one now, which is copied; NULL: there is none. */
static void set_text(struct ask *ask, const char *text)
{
    if (ask->text != NULL)
        explicit_bzero(ask->text, strlen(ask->text)); /* it may be a secret */
    free(ask->text);
    ask->text = text == NULL ? NULL : strdup(text);
    check(text == NULL || ask->text != NULL);
}

static void free_ask(struct asks *asks, struct ask *ask, bool forgets)
{
    if (ask->wish != NULL && forgets)
        asks->facts->forget(asks->facts->ctx, ask->wish);
    set_text(ask, NULL);
    json_decref(ask->read);
    free(ask->namespace);
    free(ask->key);
    free(ask);
}

static void free_memory(struct asks *asks)
{
    json_decref(asks->order);
    free(asks->list.items);
    free(asks->alloc);
    free(asks->task);
    free(asks);
}

/* Out of the list; the memory is freed now, or when no rendering needs it any more. */
static void end(struct asks *asks, bool forgets)
{
    DL_DELETE(asks->hooks->asks, asks);
    asks->ended = true;
    asks->news = NULL;
    for (size_t i = 0; i < asks->list.count && forgets; i++) {
        struct ask *ask = asks->list.items[i];

        if (ask->wish != NULL)
            asks->facts->forget(asks->facts->ctx, ask->wish);
        ask->wish = NULL;
    }
    if (!asks->busy)
        asks_settle(asks);
}

static struct asks *find(struct hooks *hooks, const char *alloc, const char *task)
{
    struct asks *asks;

    DL_FOREACH(hooks->asks, asks)
    {
        if (text_equal(asks->alloc, alloc) && text_equal(asks->task, task))
            return asks;
    }
    return NULL;
}

struct asks *asks_open(struct hooks *hooks, const char *alloc, const char *task,
                       const json_t *asker, void (*news)(void *ctx), void *ctx)
{
    struct asks *asks = find(hooks, alloc, task);

    if (asks == NULL) {
        asks = calloc(1, sizeof(*asks));
        check(asks != NULL);
        asks->hooks = hooks;
        asks->facts = hooks->facts;
        asks->alloc = strdup(alloc);
        asks->task = strdup(task);
        check(asks->alloc != NULL && asks->task != NULL);
        DL_APPEND(hooks->asks, asks);
    }
    json_decref(asks->order);
    asks->order = json_deep_copy(asker);
    check(asks->order != NULL);
    asks->asker = (struct spec_asker){.namespace = text_in(asks->order, "namespace"),
                                      .job = text_in(asks->order, "job"),
                                      .group = text_in(asks->order, "group"),
                                      .task = text_in(asks->order, "task"),
                                      .token = text_in(asks->order, "token")};
    asks->news = news;
    asks->ctx = ctx;
    return asks;
}

void asks_close(struct asks *asks)
{
    asks->news = NULL;
}

void asks_end(struct hooks *hooks, const char *alloc, const char *task)
{
    struct asks *asks = find(hooks, alloc, task);

    if (asks != NULL)
        end(asks, true);
}

void asks_free(struct hooks *hooks)
{
    while (hooks->asks != NULL)
        end(hooks->asks, false);
}

/* --- a rendering --- */

static bool is_nothing(const char *text)
{
    return text_equal(text, "null") || text_equal(text, "[]");
}

/* What is known of it that answers it; NULL: nothing, and why. */
static const char *known(const struct asks *asks, const struct ask *ask, struct err *err)
{
    const struct hooks_facts *facts = asks->facts;
    const char *text = ask->wish == NULL ? NULL : facts->known(facts->ctx, ask->wish, err);

    return text == NULL || (ask->needed && is_nothing(text)) ? NULL : text;
}

/* What is needed and not there any more is as it was, as in Nomad. */
void asks_begin(struct asks *asks)
{
    struct err err = {0};

    check(!asks->busy);
    asks->busy = true;
    for (size_t i = 0; i < asks->list.count; i++) {
        struct ask *ask = asks->list.items[i];
        const char *text = known(asks, ask, &err);

        ask->used = ask->missing = false;
        if (text != NULL && (ask->text == NULL || !text_equal(ask->text, text)))
            set_text(ask, text);
    }
}

static int kind_of(const char *text)
{
    static const char *const kinds[] = {
#define X(name, word) word,
        SPEC_QUESTIONS(X)
#undef X
    };
    int kind = 0;

    while (kind < (int)QUESTION_KINDS && !text_equal(kinds[kind], text))
        kind++;
    return kind;
}

/* NULL: KEY is no question that a renderer asks. */
static struct ask *read_question(struct asks *asks, const char *key)
{
    json_t *read = json_loads(key, JSON_REJECT_DUPLICATES, NULL);
    const char *kind = json_string_value(json_object_get(read, "kind"));
    const char *namespace = json_string_value(json_object_get(read, "namespace"));
    const char *name = json_string_value(json_object_get(read, "name"));

    if (kind == NULL || namespace == NULL || name == NULL || kind_of(kind) == (int)QUESTION_KINDS ||
        strlen(name) >= QUESTION_NAME_SIZE || strlen(namespace) >= QUESTION_NAMESPACE_SIZE) {
        json_decref(read);
        return NULL;
    }
    struct ask *ask = calloc(1, sizeof(*ask));
    check(ask != NULL);
    ask->read = read;
    ask->needed = json_is_true(json_object_get(read, "needed"));
    ask->key = strdup(key);
    ask->namespace = strdup(*namespace == '\0' ? asks->asker.namespace : namespace);
    check(ask->key != NULL && ask->namespace != NULL);
    ask->question = (struct spec_question){
        .kind = (enum spec_question_kind)kind_of(kind),
        .namespace = ask->namespace,
        .name = name,
        .asker = &asks->asker,
    };
    return ask;
}

static struct ask *find_ask(const struct asks *asks, const char *key)
{
    for (size_t i = 0; i < asks->list.count; i++) {
        if (text_equal(asks->list.items[i]->key, key))
            return asks->list.items[i];
    }
    return NULL;
}

int asks_answer(struct asks *asks, const char *question, const char **ret_text, struct err *err)
{
    struct ask *ask = find_ask(asks, question);

    if (asks->facts == NULL)
        return err_set(err, ERR_REFUSED, "nobody knows that here");
    if (ask == NULL && asks->list.count == ASKS_MAX)
        return err_set(err, ERR_LIMIT, "the templates of the task ask for more than %d things",
                       ASKS_MAX);
    if (ask == NULL) {
        ask = read_question(asks, question);
        if (ask == NULL)
            return err_set(err, ERR_CORRUPT, "it is no question");
        *list_more(&asks->list) = ask;
    }
    ask->used = true;
    ask->missing = ask->text == NULL;
    *ret_text = ask->text;
    return ask->missing ? err_set(err, ERR_AGAIN, "it is not known yet") : 0;
}

static void on_news(void *ctx)
{
    struct asks *asks = ctx;

    if (asks->news != NULL)
        asks->news(asks->ctx);
}

void asks_settle(struct asks *asks)
{
    const struct hooks_facts *facts = asks->facts;
    size_t kept = 0;

    asks->busy = false;
    for (size_t i = 0; i < asks->list.count; i++) {
        struct ask *ask = asks->list.items[i];

        if (asks->ended || !ask->used) {
            free_ask(asks, ask, !asks->ended);
            continue;
        }
        if (ask->wish == NULL)
            ask->wish = facts->want(facts->ctx, &ask->question, on_news, asks);
        asks->list.items[kept++] = ask;
    }
    asks->list.count = kept;
    if (asks->ended)
        free_memory(asks);
}

/* --- what it lacks --- */

static void show(const struct ask *ask, char to[SHOWN_SIZE])
{
    const struct spec_question *question = &ask->question;
    const char *what = ask->question.kind == QUESTION_VARIABLES ? "list"
                       : ask->needed                            ? "block"
                                                                : "get";

    if (question->kind == QUESTION_SERVICES)
        (void)text_copy(to, SHOWN_SIZE, "nomad.services"); /* it fits */
    else if (question->kind == QUESTION_SERVICE)
        (void)text_format(to, SHOWN_SIZE, "nomad.service(%s)", question->name); /* or is cut */
    else
        (void)text_format(to, SHOWN_SIZE, "nomad.var.%s(%s@%s.global)", what, question->name,
                          question->namespace); /* likewise */
}

enum asks_state asks_state(const struct asks *asks, struct err *err)
{
    enum asks_state state = ASKS_COMPLETE;

    for (size_t i = 0; i < asks->list.count; i++) {
        const struct ask *ask = asks->list.items[i];
        struct err why = {0};

        if (!ask->used || !ask->missing)
            continue;
        if (known(asks, ask, &why) != NULL)
            return ASKS_READY;
        if (state == ASKS_COMPLETE)
            state = ASKS_LACKING;
        if (why.code != 0 && !why.recoverable) {
            char shown[SHOWN_SIZE];

            state = ASKS_IN_VAIN;
            *err = why;
            show(ask, shown);
            (void)err_wrap(err, "%s", shown); /* its code */
        }
    }
    return state;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

void asks_missing(const struct asks *asks, char *to, size_t size)
{
    char(*shown)[SHOWN_SIZE] = calloc(asks->list.count + 1, SHOWN_SIZE);
    char more[32];
    size_t count = 0;

    check(shown != NULL);
    for (size_t i = 0; i < asks->list.count; i++) {
        if (asks->list.items[i]->used && asks->list.items[i]->missing)
            show(asks->list.items[i], shown[count++]);
    }
    qsort(shown, count, SHOWN_SIZE, by_text);
    (void)text_copy(to, size, "Missing: "); /* what follows may be cut */
    for (size_t i = 0; i < count && i < SHOWN_MAX; i++) {
        (void)text_append(to, size, i == 0 ? "" : ", ");
        (void)text_append(to, size, shown[i]);
    }
    (void)text_format(more, sizeof(more), ", and %zu more", count - SHOWN_MAX); /* it fits */
    if (count > SHOWN_MAX)
        (void)text_append(to, size, more);
    text_whole(to);
    free(shown);
}
