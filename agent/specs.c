#include "agent/specs.h"

#include "journal/journal.h"
#include "spec/job.h"

#include <stdlib.h>
#include <uthash.h>

enum { SPECS_CACHED_MAX = 2048 };

struct cached {
    char alloc[UUID_TEXT_SIZE];
    struct alloc_spec *spec;
    UT_hash_handle hh;
};

struct specs {
    struct journal *journal;
    struct cached *cached;
};

struct specs *specs_new(struct journal *journal)
{
    struct specs *specs = calloc(1, sizeof(*specs));

    check(specs != NULL);
    specs->journal = journal;
    return specs;
}

void specs_free(struct specs *specs)
{
    if (specs == NULL)
        return;
    specs_forget(specs);
    free(specs);
}

int specs_read(struct specs *specs, const char *alloc, struct alloc_spec **ret_spec,
               struct err *err)
{
    char key[JOURNAL_KEY_SIZE], *text;
    size_t length;

    if (!text_format(key, sizeof(key), "alloc/%s", alloc))
        return err_set(err, ERR_INVALID, "not an alloc id");
    int code = journal_spec_read(specs->journal, key, &text, &length, err);
    if (code < 0)
        return code;
    code = jobspec_decode_alloc(text, length, ret_spec, err);
    free(text);
    return code;
}

const struct alloc_spec *specs_find(struct specs *specs, const char *alloc, struct err *err)
{
    struct cached *cached;

    HASH_FIND_STR(specs->cached, alloc, cached);
    if (cached != NULL)
        return cached->spec;
    struct alloc_spec *spec;
    if (specs_read(specs, alloc, &spec, err) < 0)
        return NULL;
    if (HASH_COUNT(specs->cached) >= SPECS_CACHED_MAX) {
        struct cached *oldest = specs->cached;
        HASH_DEL(specs->cached, oldest);
        alloc_spec_free(oldest->spec);
        free(oldest);
    }
    cached = calloc(1, sizeof(*cached));
    check(cached != NULL);
    (void)text_copy(cached->alloc, sizeof(cached->alloc), alloc); /* it was found by this id */
    cached->spec = spec;
    HASH_ADD_STR(specs->cached, alloc, cached);
    return spec;
}

void specs_forget(struct specs *specs)
{
    struct cached *cached, *next;

    HASH_ITER(hh, specs->cached, cached, next)
    {
        HASH_DEL(specs->cached, cached);
        alloc_spec_free(cached->spec);
        free(cached);
    }
}
