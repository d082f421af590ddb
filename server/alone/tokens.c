/* Jobs that were dispatched with a token, by that: who dispatches again gets the same one. */
#include "server/alone/part.h"

#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

enum { TOKEN_KEY_SIZE = SPEC_NAMESPACE_SIZE + 2 * SPEC_NAME_SIZE };

static struct job *find(const struct alone *alone, const char *key)
{
    struct job *job;

    HASH_FIND(by_token, alone->dispatched, key, strlen(key), job);
    return job;
}

void job_forget_token(struct alone *alone, struct job *job)
{
    if (job->token == NULL)
        return;
    HASH_DELETE(by_token, alone->dispatched, job);
    free(job->token);
    job->token = NULL;
}

void job_note_token(struct alone *alone, struct job *job)
{
    const char *token = json_string_value(json_object_get(job->json, "DispatchIdempotencyToken"));
    const char *parent = json_string_value(json_object_get(job->json, "ParentID"));
    char key[TOKEN_KEY_SIZE];

    job_forget_token(alone, job);
    if (token == NULL || parent == NULL || !jobspec_is_dispatched(job->json))
        return;
    if (!text_format(key, sizeof(key), "%s/%s\n%s", job->namespace, parent, token) ||
        find(alone, key) != NULL)
        return; /* what was stored is damaged: nothing is made with one that is longer, or twice */
    job->token = strdup(key);
    check(job->token != NULL);
    HASH_ADD_KEYPTR(by_token, alone->dispatched, job->token, strlen(job->token), job);
}

const struct job *job_by_token(const struct alone *alone, const char *namespace, const char *parent,
                               const char *token)
{
    char key[TOKEN_KEY_SIZE];

    return text_format(key, sizeof(key), "%s/%s\n%s", namespace, parent, token) ? find(alone, key)
                                                                                : NULL;
}
