/*
 * Identities of tasks: tokens that servers sign, by which whoever has one is known to them.
 *
 * The default one is signed when the alloc is placed and comes with it (SignedIdentities); it does
 * not expire.  Here only those are kept that their tasks see, in the text by which the alloc runs:
 * so a token is durable with what it is for, is never older or newer than that, and goes with it.
 * The journal is its owner's only, and whoever prints what is in it hides them
 * (inspect_redact).  Follows nomad v2.0.6 nomad/structs/workload_id.go and
 * client/allocrunner/taskrunner/identity_hook.go.
 */
#include "spec/job/decoding.h"
#include "spec/json.h"

#include <string.h>

enum { TOKEN_SIZE = 16 * 1024 };

static const char default_file[] = "secrets/nomad_token";

static bool is_seen(const json_t *identity)
{
    return json_is_true(json_object_get(identity, "Env")) ||
           json_is_true(json_object_get(identity, "File"));
}

json_t *jobspec_prepare_identity(const json_t *identity)
{
    static const char *const fields[] = {"Env", "File", "Filepath"};
    json_t *seen = is_seen(identity) ? json_object() : NULL;

    for (size_t i = 0; seen != NULL && i < COUNT_OF(fields); i++) {
        json_t *value = json_object_get(identity, fields[i]);

        if (value != NULL)
            check(json_object_set(seen, fields[i], value) == 0);
    }
    return seen;
}

/* As Nomad has it, a path with a "/" before it is beneath the task's directory, too. */
static const char *file_of(const json_t *identity)
{
    const char *file = text_of(identity, "Filepath");

    file += strspn(file, "/");
    return *file == '\0' ? default_file : file;
}

static const char *fault_of(const char *file)
{
    return spec_file_fault(file, "leads out of the directory of the task");
}

void jobspec_check_identity(struct jobspec_work *work, const json_t *task)
{
    const json_t *identity = json_object_get(task, "Identity");
    const char *fault = fault_of(file_of(identity));

    if (identity != NULL && fault != NULL)
        jobspec_complain(work, identity, "Filepath", NULL, "the file of the identity %s", fault);
}

/* --- tokens --- */

/* What a header of HTTP and a variable can carry as it is. */
static bool is_token(const char *token)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                   "0123456789-_.";
    size_t length = strspn(token, alphabet);

    return length > 0 && length < TOKEN_SIZE && token[length] == '\0';
}

int jobspec_put_identities(json_t *alloc, const json_t *group, const json_t *sent, struct err *err)
{
    const json_t *signed_ones = json_object_get(sent, "SignedIdentities"), *task;
    size_t i;

    json_array_foreach(jobspec_list(group, "Tasks"), i, task)
    {
        const char *name = text_of(task, "Name"), *token = text_of(signed_ones, name);

        if (!is_seen(json_object_get(task, "Identity")))
            continue;
        if (!is_token(token))
            return err_set(err, ERR_CORRUPT,
                           "the server sent no identity of the task \"%.60s\", which asks for it",
                           name);
        check(json_object_set(jobspec_member(alloc, "SignedIdentities", json_object), name,
                              json_object_get(signed_ones, name)) == 0);
    }
    return 0;
}

void decode_identities(struct decoding *decoding, const json_t *alloc, const json_t *group,
                       struct alloc_spec *spec)
{
    const json_t *tokens = json_object_get(alloc, "SignedIdentities");
    const json_t *tasks = json_object_get(group, "Tasks");

    for (size_t i = 0; i < spec->tasks_count; i++) {
        const json_t *from = json_array_get(tasks, i), *block = json_object_get(from, "Identity");
        struct spec_identity *to = &spec->tasks[i].identity;

        *to = (struct spec_identity){.token = "", .file = ""};
        if (!is_seen(block))
            continue;
        to->token = decoding_text(decoding, tokens, spec->tasks[i].name, TOKEN_SIZE);
        to->env = decoding_bool(decoding, block, "Env");
        if (decoding_bool(decoding, block, "File"))
            to->file = arena_text(&decoding->holder->arena, file_of(block));
        if (!is_token(to->token))
            decoding_damaged(decoding, "SignedIdentities", "a token");
        if (*to->file != '\0' && fault_of(to->file) != NULL)
            decoding_damaged(decoding, "Filepath", "a file of the task");
    }
}
