/*
 * What templates ask the servers: variables, and services that are registered anywhere.
 *
 * All who may be told the same are told by one question: of services those that have an identity,
 * of variables those that are the same task of the same job, since that is what policies are made
 * for.  It is asked with the token of the first of them, or as this node by who has none, as on
 * servers before 1.4.  Once answered it is asked again by one that waits until something has
 * changed.  While no server answers, what was told last stays; what they refuse is asked for again,
 * later and later, and after a while nobody shall wait for it any more.
 *
 * Nothing of it is stored: who comes back asks anew.  Follows consul-template v0.42 watch/view.go,
 * with the times of nomad v2.0.6 client/config DefaultTemplateConfig.
 */
#include "server/nomad/part.h"

#include "spec/question.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

enum {
    FACTS_MAX = 1024,         /* different questions */
    FACT_BYTES_MAX = 4 << 20, /* of one answer */
    FACTS_BYTES_MAX = 64 << 20,
    ASKED_MAX = 32,          /* questions that wait at once; one call in eight of a connection */
    CROWDED_BLOCK_MS = 5000, /* for which one waits when there are more */
    AT_LEAST_MS = 1000,      /* an answer that says nothing new and comes sooner was no wait */
    PAUSE_MS = 100,          /* between two that say something new */
};

struct wish {
    struct fact *fact; /* NULL: there are too many */
    const struct spec_question *question;
    void (*news)(void *ctx);
    void *ctx;
    struct wish *prev, *next; /* of one fact */
};

struct fact {
    struct nomad *nomad;
    enum spec_question_kind kind;
    char *key, *namespace, *name; /* owned */
    struct wish *wishes;          /* the first is the one who asks */
    char *text;                   /* the answer; owned, a secret; NULL: there was none */
    struct err trouble;           /* why the last question was not answered */
    uint64_t index;               /* of the last answer */
    uint64_t at_ms;               /* node time of the next question; 0: none is wanted now */
    uint64_t asked_at_ms;
    uint32_t tries;           /* one behind the other that were in vain */
    uint32_t refusals;        /* of these, likewise */
    bool asked;               /* an answer is waited for */
    bool unheard;             /* the last question was not heard: it is asked when servers are */
    struct fact *prev, *next; /* the one that was asked last is the last */
    UT_hash_handle hh;        /* by key, but for those that nobody wants any more */
};

/* --- which there are --- */

static void set_text(struct fact *fact, char *text)
{
    struct nomad *nomad = fact->nomad;

    if (fact->text != NULL) {
        nomad->facts_bytes -= strlen(fact->text);
        explicit_bzero(fact->text, strlen(fact->text));
        free(fact->text);
    }
    fact->text = text;
    nomad->facts_bytes += text == NULL ? 0 : strlen(text);
}

static void forget(struct fact *fact)
{
    set_text(fact, NULL);
    DL_DELETE(fact->nomad->facts, fact);
    free(fact->key);
    free(fact->namespace);
    free(fact->name);
    free(fact);
}

void facts_end(struct nomad *nomad)
{
    HASH_CLEAR(hh, nomad->facts_by);
    while (nomad->facts != NULL) {
        struct fact *fact = nomad->facts;

        while (fact->wishes != NULL) {
            struct wish *wish = fact->wishes;

            DL_DELETE(fact->wishes, wish);
            free(wish);
        }
        forget(fact);
    }
}

/* What all have in common whom one answer serves. */
static char *key_of(const struct spec_question *question)
{
    const struct spec_asker *asker = question->asker;
    bool of_task = question->kind == QUESTION_VARIABLE || question->kind == QUESTION_VARIABLES;
    json_t *key = of_task ? json_pack("[i, s, s, s, s, s, s, b]", question->kind,
                                      question->namespace, question->name, asker->namespace,
                                      asker->job, asker->group, asker->task, *asker->token != '\0')
                          : json_pack("[i, s, s, b]", question->kind, question->namespace,
                                      question->name, *asker->token != '\0');
    char *text = json_dumps(key, JSON_COMPACT);

    check(text != NULL); /* all of it is UTF-8 */
    json_decref(key);
    return text;
}

static char *copy_of(const char *text)
{
    char *copy = strdup(text);

    check(copy != NULL);
    return copy;
}

/* KEY is moved.  NULL: there are too many. */
static struct fact *add(struct nomad *nomad, const struct spec_question *question, char *key)
{
    if (HASH_COUNT(nomad->facts_by) >= FACTS_MAX) {
        free(key);
        return NULL;
    }
    struct fact *fact = calloc(1, sizeof(*fact));
    check(fact != NULL);
    fact->nomad = nomad;
    fact->kind = question->kind;
    fact->key = key;
    fact->namespace = copy_of(question->namespace);
    fact->name = copy_of(question->name);
    fact->at_ms = nomad_now_ms(nomad);
    DL_APPEND(nomad->facts, fact);
    HASH_ADD_KEYPTR(hh, nomad->facts_by, fact->key, strlen(fact->key), fact);
    return fact;
}

void *nomad_want(struct nomad *nomad, const struct spec_question *question, void (*news)(void *ctx),
                 void *ctx)
{
    struct wish *wish = calloc(1, sizeof(*wish));
    char *key = key_of(question);
    struct fact *fact;

    check(wish != NULL);
    HASH_FIND_STR(nomad->facts_by, key, fact);
    if (fact != NULL)
        free(key);
    else
        fact = add(nomad, question, key);
    *wish = (struct wish){.fact = fact, .question = question, .news = news, .ctx = ctx};
    if (fact != NULL)
        DL_APPEND(fact->wishes, wish);
    if (nomad->started)
        nomad->heard(nomad); /* it is to be asked */
    return wish;
}

const char *nomad_known(const void *wanted, struct err *err)
{
    const struct wish *wish = wanted;

    if (wish->fact == NULL) {
        (void)err_set(err, ERR_LIMIT, "templates of this node ask for more than %d things",
                      FACTS_MAX); /* to be handed on */
        return NULL;
    }
    if (wish->fact->text == NULL)
        *err = wish->fact->trouble;
    return wish->fact->text;
}

void nomad_unwant(void *wanted)
{
    struct wish *wish = wanted;
    struct fact *fact = wish->fact;

    if (fact != NULL)
        DL_DELETE(fact->wishes, wish);
    free(wish);
    if (fact == NULL || fact->wishes != NULL)
        return;
    HASH_DEL(fact->nomad->facts_by, fact);
    fact->at_ms = 0;
    if (!fact->asked)
        forget(fact);
}

/* --- answers --- */

static void ask_in(struct fact *fact, uint64_t wait_ms)
{
    fact->at_ms = nomad_now_ms(fact->nomad) + wait_ms;
}

static void tell(const struct fact *fact)
{
    struct wish *wish, *next;

    DL_FOREACH_SAFE(fact->wishes, wish, next)
    {
        wish->news(wish->ctx);
    }
}

/* The services of the namespace that was asked for, all of a list, or a variable. */
static json_t *wanted_of(const struct fact *fact, const json_t *reply)
{
    static const char *const fields[] = {
        [QUESTION_SERVICES] = "Services",
        [QUESTION_SERVICE] = "Services",
        [QUESTION_VARIABLE] = "Data",
        [QUESTION_VARIABLES] = "Data",
    };
    json_t *found = json_object_get(reply, fields[fact->kind]);

    if (fact->kind == QUESTION_SERVICES)
        found = json_object_get(json_array_get(found, 0), "Services");
    if (fact->kind == QUESTION_VARIABLE)
        return json_is_object(found) ? found : json_null();
    return json_is_array(found) ? found : NULL;
}

/* True if it is another one than before. */
static bool take(struct fact *fact, const json_t *answer)
{
    char *text =
        answer == NULL ? copy_of("[]") : json_dumps(answer, JSON_COMPACT | JSON_ENCODE_ANY);
    size_t length;

    check(text != NULL);
    length = strlen(text);
    fact->trouble = (struct err){0};
    if (fact->text != NULL && text_equal(fact->text, text)) {
        explicit_bzero(text, length);
        free(text);
        return false;
    }
    set_text(fact, NULL);
    if (length <= FACT_BYTES_MAX && length <= FACTS_BYTES_MAX - fact->nomad->facts_bytes) {
        set_text(fact, text);
        return true;
    }
    explicit_bzero(text, length);
    free(text);
    (void)err_set(&fact->trouble, ERR_LIMIT, "the servers tell too much of it"); /* for others */
    return true;
}

static void told(struct fact *fact, const json_t *reply)
{
    uint64_t index = (uint64_t)json_integer_value(json_object_get(reply, "Index"));
    uint64_t took_ms = nomad_now_ms(fact->nomad) - fact->asked_at_ms;

    fact->tries = fact->refusals = 0;
    if (index < fact->index) { /* of a server that lags, or of others: all is asked again */
        fact->index = 0;
        ask_in(fact, AT_LEAST_MS);
        return;
    }
    fact->index = index;
    bool is_new = take(fact, wanted_of(fact, reply));
    ask_in(fact, is_new || took_ms >= AT_LEAST_MS ? PAUSE_MS : AT_LEAST_MS);
    if (is_new)
        tell(fact);
}

/* A list of what may not be listed is one of nothing, as in Nomad. */
static void not_told(struct fact *fact, const struct err *err)
{
    uint64_t draw = fact->nomad->config.random(fact->nomad->config.ctx);
    bool lists = fact->kind == QUESTION_VARIABLES && policy_is_denied(err->code, err->text);
    bool was_in_vain = fact->trouble.code != 0 && !fact->trouble.recoverable;

    fact->unheard = policy_may_answer_later(err->code, err->text);
    fact->tries++;
    fact->refusals = fact->unheard ? 0 : fact->refusals + 1;
    ask_in(fact, policy_fact_again_ms(fact->tries, draw));
    fact->index = 0;
    if (lists) {
        if (take(fact, NULL))
            tell(fact);
        return;
    }
    fact->trouble = *err;
    fact->trouble.recoverable = fact->unheard || !policy_fact_is_refused(fact->refusals);
    if (!fact->trouble.recoverable && !was_in_vain)
        tell(fact);
}

static void answered(void *ctx, const json_t *reply, const struct err *err)
{
    struct fact *fact = ctx;

    fact->asked = false;
    if (fact->wishes == NULL)
        forget(fact);
    else if (reply != NULL)
        told(fact, reply);
    else
        not_told(fact, err);
}

/* --- questions --- */

static void ask(struct fact *fact, uint64_t block_ms)
{
    static const struct {
        const char *method, *field;
    } rows[] = {
        [QUESTION_SERVICES] = {"ServiceRegistration.List", NULL},
        [QUESTION_SERVICE] = {"ServiceRegistration.GetService", "ServiceName"},
        [QUESTION_VARIABLE] = {"Variables.Read", "Path"},
        [QUESTION_VARIABLES] = {"Variables.List", "Prefix"},
    };
    struct nomad *nomad = fact->nomad;
    const char *token = fact->wishes->question->asker->token;
    json_t *args = json_pack("{s:s, s:I, s:I, s:b}", "Namespace", fact->namespace, "MinQueryIndex",
                             (json_int_t)fact->index, "MaxQueryTime",
                             (json_int_t)block_ms * 1000000, "AllowStale", 1);

    check(args != NULL);
    if (rows[fact->kind].field != NULL)
        check(json_object_set_new(args, rows[fact->kind].field, json_string(fact->name)) == 0);
    fact->at_ms = 0;
    fact->asked = true;
    fact->unheard = false;
    fact->asked_at_ms = nomad_now_ms(nomad);
    DL_DELETE(nomad->facts, fact); /* behind all others, who may have waited for longer */
    DL_APPEND(nomad->facts, fact);
    nomad_ask(nomad, rows[fact->kind].method, args, *token == '\0' ? nomad->config.secret : token,
              block_ms + block_ms / 16, answered, fact);
}

/* Servers that do not know this node know none of its tasks. */
static bool may_ask(const struct nomad *nomad, size_t *ret_asked, size_t *ret_count)
{
    const struct fact *fact;

    *ret_asked = *ret_count = 0;
    DL_FOREACH(nomad->facts, fact)
    {
        *ret_asked += fact->asked;
        *ret_count += fact->asked || fact->at_ms != 0;
    }
    return nomad->registered && nomad->synced && *ret_asked < ASKED_MAX;
}

void facts_wake(struct nomad *nomad)
{
    size_t asked, count, left;
    struct fact *fact = nomad->facts, *next;
    bool may = may_ask(nomad, &asked, &count);

    for (left = count; may && fact != NULL && left > 0; fact = next) {
        next = fact->next;
        left -= fact->asked || fact->at_ms != 0;
        if (fact->at_ms == 0 || fact->at_ms > nomad_now_ms(nomad) || asked >= ASKED_MAX)
            continue;
        asked++;
        ask(fact, count > ASKED_MAX ? CROWDED_BLOCK_MS : NOMAD_BLOCK_MS);
    }
}

uint64_t facts_at_ms(const struct nomad *nomad)
{
    const struct fact *fact;
    size_t asked, count;
    uint64_t at_ms = 0;

    if (!may_ask(nomad, &asked, &count))
        return 0;
    DL_FOREACH(nomad->facts, fact)
    {
        if (fact->at_ms != 0 && (at_ms == 0 || fact->at_ms < at_ms))
            at_ms = fact->at_ms;
    }
    return at_ms;
}

void facts_heard(struct nomad *nomad)
{
    struct fact *fact;

    DL_FOREACH(nomad->facts, fact)
    {
        if (fact->unheard && !fact->asked)
            ask_in(fact, 0);
    }
}
