#include "agent/services/facts.h"

#include "agent/parts.h"
#include "agent/services/catalogue.h"
#include "server/nomad/nomad.h"
#include "spec/json.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

/* nomad v2.0.6 client/config DefaultTemplateConfig. */
enum {
    SETTLE_MS = 5000,
    SETTLE_MS_MAX = 4 * 60 * 1000,
    ALONE_SETTLE_MS = 100,
    ALONE_SETTLE_MS_MAX = 1000,
};

/* On a node without servers. */
struct wish {
    struct facts *facts;
    const struct spec_question *question;
    void (*news)(void *ctx);
    void *ctx;
    char *text; /* the answer, until it changes; owned; NULL: not asked for since */
    struct wish *prev, *next;
};

struct facts {
    struct parts *parts;
    struct hooks_facts for_hooks;
    struct wish *wishes;
};

/* --- of servers --- */

static void *want_of_servers(void *ctx, const struct spec_question *question,
                             void (*news)(void *news_ctx), void *news_ctx)
{
    const struct facts *facts = ctx;

    return nomad_want(facts->parts->nomad, question, news, news_ctx);
}

static const char *known_of_servers(void *ctx, const void *wish, struct err *err)
{
    (void)ctx;
    return nomad_known(wish, err);
}

static void forget_of_servers(void *ctx, void *wish)
{
    (void)ctx;
    nomad_unwant(wish);
}

/* --- of what is offered here --- */

static void *want(void *ctx, const struct spec_question *question, void (*news)(void *news_ctx),
                  void *news_ctx)
{
    struct facts *facts = ctx;
    struct wish *wish = calloc(1, sizeof(*wish));

    check(wish != NULL);
    *wish = (struct wish){.facts = facts, .question = question, .news = news, .ctx = news_ctx};
    DL_APPEND(facts->wishes, wish);
    return wish;
}

/* Those of LIST that have the name. */
static json_t *services_of(const json_t *list, const char *name)
{
    json_t *made = json_array(), *service;
    size_t i;

    json_array_foreach(list, i, service)
    {
        if (text_equal(text_of(service, "ServiceName"), name))
            check(json_array_append(made, service) == 0);
    }
    return made;
}

/* The names of LIST, which is by names, with the tags of all that have one. */
static json_t *names_of(const json_t *list)
{
    json_t *made = json_array(), *service, *tags = NULL;
    const char *last = NULL;
    size_t i;

    json_array_foreach(list, i, service)
    {
        const char *name = text_of(service, "ServiceName");

        if (last == NULL || !text_equal(name, last)) {
            tags = json_array();
            check(json_array_append_new(
                      made, json_pack("{s:s, s:o}", "ServiceName", name, "Tags", tags)) == 0);
        }
        check(json_array_extend(tags, json_object_get(service, "Tags")) == 0);
        last = name;
    }
    return made;
}

static const char *known(void *ctx, const void *wanted, struct err *err)
{
    struct facts *facts = ctx;
    struct wish *wish = (struct wish *)(uintptr_t)wanted; /* to keep its text */
    const struct spec_question *question = wish->question;

    if (question->kind != QUESTION_SERVICE && question->kind != QUESTION_SERVICES) {
        (void)err_set(err, ERR_REFUSED, "it needs a server, which this node has not");
        return NULL;
    }
    if (wish->text != NULL)
        return wish->text;
    json_t *list = catalogue_list(facts->parts->catalogue, question->namespace);
    json_t *answer =
        question->kind == QUESTION_SERVICE ? services_of(list, question->name) : names_of(list);
    wish->text = json_dumps(answer, JSON_COMPACT);
    check(wish->text != NULL);
    json_decref(answer);
    json_decref(list);
    return wish->text;
}

static void forget(void *ctx, void *wanted)
{
    struct facts *facts = ctx;
    struct wish *wish = wanted;

    DL_DELETE(facts->wishes, wish);
    free(wish->text);
    free(wish);
}

void facts_offered(void *ctx, const char *namespace)
{
    const struct facts *facts = ctx;
    struct wish *wish;

    DL_FOREACH(facts->wishes, wish)
    {
        if (!text_equal(wish->question->namespace, namespace))
            continue;
        free(wish->text);
        wish->text = NULL;
        wish->news(wish->ctx);
    }
}

/* --- birth and end --- */

struct facts *facts_new(struct parts *parts)
{
    struct facts *facts = calloc(1, sizeof(*facts));
    bool alone = !config_has_servers(parts->config);

    check(facts != NULL);
    facts->parts = parts;
    facts->for_hooks = (struct hooks_facts){
        .ctx = facts,
        .alone = alone,
        .settle_ms = alone ? ALONE_SETTLE_MS : SETTLE_MS,
        .settle_max_ms = alone ? ALONE_SETTLE_MS_MAX : SETTLE_MS_MAX,
        .want = alone ? want : want_of_servers,
        .known = alone ? known : known_of_servers,
        .forget = alone ? forget : forget_of_servers,
    };
    return facts;
}

void facts_free(struct facts *facts)
{
    while (facts != NULL && facts->wishes != NULL)
        forget(facts, facts->wishes);
    free(facts);
}

const struct hooks_facts *facts_for_hooks(const struct facts *facts)
{
    return &facts->for_hooks;
}
