/*
 * What allocs were asked to be: specifications from the journal, decoded, and a cache of them.
 *
 * Hooks and drivers ask for the same few again and again while an alloc is set up; an idle daemon
 * keeps none.
 */
#include "agent/part.h"

#include "spec/job.h"

#include <stdlib.h>
#include <uthash.h>

enum { SPECS_CACHED_MAX = 2048 };

struct cached {
    char alloc[UUID_TEXT_SIZE];
    struct alloc_spec *spec;
    UT_hash_handle hh;
};

int daemon_alloc_spec(struct daemon *daemon, const char *alloc, struct alloc_spec **ret_spec,
                      struct err *err)
{
    char key[JOURNAL_KEY_SIZE], *text;
    size_t length;

    if (!text_format(key, sizeof(key), "alloc/%s", alloc))
        return err_set(err, ERR_INVALID, "not an alloc id");
    int code = journal_spec_read(daemon->journal, key, &text, &length, err);
    if (code < 0)
        return code;
    code = jobspec_decode_alloc(text, length, ret_spec, err);
    free(text);
    return code;
}

const struct alloc_spec *daemon_cached_spec(struct daemon *daemon, const char *alloc,
                                            struct err *err)
{
    struct cached *cached;

    HASH_FIND_STR(daemon->specs, alloc, cached);
    if (cached != NULL)
        return cached->spec;
    struct alloc_spec *spec;
    if (daemon_alloc_spec(daemon, alloc, &spec, err) < 0)
        return NULL;
    if (HASH_COUNT(daemon->specs) >= SPECS_CACHED_MAX) {
        struct cached *oldest = daemon->specs;
        HASH_DEL(daemon->specs, oldest);
        alloc_spec_free(oldest->spec);
        free(oldest);
    }
    cached = calloc(1, sizeof(*cached));
    check(cached != NULL);
    (void)text_copy(cached->alloc, sizeof(cached->alloc), alloc); /* it was found by this id */
    cached->spec = spec;
    HASH_ADD_STR(daemon->specs, alloc, cached);
    return spec;
}

void daemon_forget_specs(struct daemon *daemon)
{
    struct cached *cached, *next;

    HASH_ITER(hh, daemon->specs, cached, next)
    {
        HASH_DEL(daemon->specs, cached);
        alloc_spec_free(cached->spec);
        free(cached);
    }
}
