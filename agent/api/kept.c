/*
 * Answers that are given again while nothing changes.
 *
 * Who watches a node asks for the same again and again, and what follows from what is committed is
 * right until the next commit, or until the control plane has decided something.  A few are kept,
 * none of them long: memory is for what runs.
 */
#include "agent/api/part.h"

#include "server/alone/alone.h"

#include <stdlib.h>
#include <string.h>

enum { KEPT = 16, KEPT_BYTES_MAX = 32 << 10, KEY_SIZE = 256 };

/* Until when an answer is right: both are the same. */
struct moment {
    uint64_t sequence, revision;
};

struct answer {
    char key[KEY_SIZE]; /* "": there is none yet */
    struct moment moment;
    char *bytes; /* owned */
    size_t length;
};

struct api_kept {
    struct answer items[KEPT];
    size_t next; /* makes room for another */
};

static struct moment moment_of(const struct api *api)
{
    return (struct moment){.sequence = core_figures(api->parts->core).sequence,
                           .revision = alone_revision(api->parts->alone)};
}

/* What REQUEST asks for; false if its answer is not kept.  Names of what there is have no line
 * breaks: it is nothing else's. */
static bool key_of(const struct api_request *request, char key[KEY_SIZE])
{
    return !api_wants_pretty(request->exchange) &&
           text_format(key, KEY_SIZE, "%s\n%s\n%s", request->route->path, request->namespace,
                       request->argument);
}

static struct answer *find(const struct api *api, const char *key)
{
    for (size_t i = 0; api->kept != NULL && i < KEPT; i++) {
        if (text_equal(api->kept->items[i].key, key))
            return &api->kept->items[i];
    }
    return NULL;
}

bool api_reply_kept(struct api_request *request)
{
    struct moment now = moment_of(request->api);
    char key[KEY_SIZE];
    const struct answer *kept = key_of(request, key) ? find(request->api, key) : NULL;

    if (kept == NULL || kept->moment.sequence != now.sequence ||
        kept->moment.revision != now.revision)
        return false;
    api_reply_bytes(request, kept->bytes, kept->length);
    return true;
}

static void keep(struct api *api, const char *key, const struct writer *body)
{
    struct answer *answer = find(api, key);

    if (api->kept == NULL)
        api->kept = calloc(1, sizeof(*api->kept));
    check(api->kept != NULL);
    if (answer == NULL) {
        answer = &api->kept->items[api->kept->next];
        api->kept->next = (api->kept->next + 1) % KEPT;
    }
    char *bytes = realloc(answer->bytes, body->used);
    check(bytes != NULL);
    memcpy(bytes, body->bytes, body->used);
    (void)text_copy(answer->key, sizeof(answer->key), key); /* of that size */
    answer->moment = moment_of(api);
    answer->bytes = bytes;
    answer->length = body->used;
}

void api_reply_and_keep(struct api_request *request, struct writer *body)
{
    char key[KEY_SIZE];

    if (body->used > 0 && body->used <= KEPT_BYTES_MAX && key_of(request, key))
        keep(request->api, key, body);
    api_reply_written(request, body);
}

void api_kept_close(struct api *api)
{
    for (size_t i = 0; api->kept != NULL && i < KEPT; i++)
        free(api->kept->items[i].bytes);
    free(api->kept);
    api->kept = NULL;
}
