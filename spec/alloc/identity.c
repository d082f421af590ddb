/*
 * Identities of tasks: tokens that servers sign, by which whoever has one is known to them.
 *
 * The default one is signed when the alloc is placed and comes with it (SignedIdentities); it does
 * not expire.  Here only those are kept that their tasks see, or by whose templates servers may be
 * asked, in the text by which the alloc runs: so a token is durable with what it is for, is never
 * older or newer than that, and goes with it.
 * The journal is its owner's only, and whoever prints what is in it hides them
 * (inspect_redact).  Of those that have a name there is only what a task is to have: whose they are
 * and for how long is signed where the whole job is known.  Follows nomad v2.0.6
 * nomad/structs/workload_id.go and client/allocrunner/taskrunner/identity_hook.go.
 */
#include "spec/alloc/decoding.h"
#include "spec/json.h"
#include "spec/names.h"

#include <string.h>

enum { SIGNAL_SIZE = 32 };

static const char default_file[] = "secrets/nomad_token";

static bool change_of(const json_t *identity, enum spec_change *ret_change)
{
    const char *mode = text_of(identity, "ChangeMode");

    *ret_change = SPEC_CHANGE_NOOP;
    return *mode == '\0' || (spec_change(mode, ret_change) && *ret_change != SPEC_CHANGE_SCRIPT);
}

static bool is_seen(const json_t *identity)
{
    return json_is_true(json_object_get(identity, "Env")) ||
           json_is_true(json_object_get(identity, "File"));
}

/* The default one has no name here, and never changes. */
json_t *jobspec_prepare_identity(const json_t *identity, bool named)
{
    static const char *const fields[] = {"Env",  "File",       "Filepath", /* of each */
                                         "Name", "ChangeMode", "ChangeSignal", "TTL"};
    size_t count = named ? COUNT_OF(fields) : 3;
    enum spec_change change;
    bool matters =
        is_seen(identity) || (named && change_of(identity, &change) && change != SPEC_CHANGE_NOOP);
    json_t *seen = matters ? json_object() : NULL;

    for (size_t i = 0; seen != NULL && i < count; i++) {
        json_t *value = json_object_get(identity, fields[i]);

        if (value != NULL)
            check(json_object_set(seen, fields[i], value) == 0);
    }
    return seen;
}

/* As Nomad has it, a path with a "/" before it is beneath the task's directory, too.  TO is for
 * that of one that has a name. */
enum { FILE_SIZE = SPEC_IDENTITY_NAME_SIZE + 32 };
static const char *file_of(const json_t *identity, char to[FILE_SIZE])
{
    const char *file = text_of(identity, "Filepath"), *name = text_of(identity, "Name");

    file += strspn(file, "/");
    if (*file != '\0')
        return file;
    if (*name == '\0')
        return default_file;
    (void)text_format(to, FILE_SIZE, "secrets/nomad_%s.jwt", name); /* it fits, if it is one */
    return to;
}

static const char *fault_of(const char *file)
{
    return spec_file_fault(file, "leads out of the directory of the task");
}

static void check_file(struct jobspec_work *work, const json_t *identity)
{
    char room[FILE_SIZE];
    const char *fault = fault_of(file_of(identity, room));

    if (identity != NULL && fault != NULL)
        jobspec_complain(work, identity, "Filepath", NULL, "the file of the identity %s", fault);
}

static void check_named(struct jobspec_work *work, const json_t *identity)
{
    const char *name = text_of(identity, "Name"), *signal = text_of(identity, "ChangeSignal");
    const char *fault = spec_identity_name_fault(name);
    enum spec_change change;

    if (fault != NULL) {
        jobspec_complain(work, identity, "Name", NULL, "the name of an identity %s: \"%.40s\"",
                         fault, name);
        return;
    }
    if (!change_of(identity, &change))
        jobspec_complain(work, identity, "ChangeMode", NULL,
                         "the identity \"%.40s\": invalid change_mode: \"%.40s\"", name,
                         text_of(identity, "ChangeMode"));
    else if (change == SPEC_CHANGE_SIGNAL && !spec_is_signal(signal))
        jobspec_complain(work, identity, "ChangeSignal", NULL,
                         "the identity \"%.40s\": unknown signal \"%.40s\"", name, signal);
    check_file(work, identity);
}

void jobspec_check_identities(struct jobspec_work *work, const json_t *task)
{
    const json_t *named = jobspec_list(task, "Identities"), *identity, *other;
    size_t i, j;

    check_file(work, json_object_get(task, "Identity"));
    if (json_array_size(named) > SPEC_IDENTITIES_MAX) {
        jobspec_complain(work, task, "Identities", NULL, "%zu identities, there may be %d",
                         json_array_size(named), SPEC_IDENTITIES_MAX);
        return;
    }
    json_array_foreach(named, i, identity)
    {
        check_named(work, identity);
        json_array_foreach(named, j, other)
        {
            if (j < i && text_equal(text_of(identity, "Name"), text_of(other, "Name")))
                jobspec_complain(work, identity, "Name", NULL,
                                 "two identities have the name \"%.40s\"", text_of(other, "Name"));
        }
    }
}

/* --- tokens --- */

/* True if templates of TASK may ask servers as it; what one from a file says is not known yet. */
static bool has_questions(const json_t *task)
{
    const json_t *template;
    size_t i;

    json_array_foreach(json_object_get(task, "Templates"), i, template)
    {
        const char *text = text_of(template, "EmbeddedTmpl");

        if (*text_of(template, "SourcePath") != '\0' || strstr(text, "nomadVar") != NULL ||
            strstr(text, "nomadService") != NULL)
            return true;
    }
    return false;
}

int jobspec_put_identities(json_t *alloc, const json_t *group, const json_t *sent, struct err *err)
{
    const json_t *signed_ones = json_object_get(sent, "SignedIdentities"), *task;
    size_t i;

    json_array_foreach(jobspec_list(group, "Tasks"), i, task)
    {
        const char *name = text_of(task, "Name"), *token = text_of(signed_ones, name);
        bool is_needed = is_seen(json_object_get(task, "Identity"));

        if (!is_needed && !(has_questions(task) && spec_is_token(token)))
            continue; /* servers before 1.4 have none */
        if (!spec_is_token(token))
            return err_set(err, ERR_CORRUPT,
                           "the server sent no identity of the task \"%.60s\", which asks for it",
                           name);
        check(json_object_set(jobspec_member(alloc, "SignedIdentities", json_object), name,
                              json_object_get(signed_ones, name)) == 0);
    }
    return 0;
}

static void decode_named(struct decoding *decoding, const json_t *from, struct task_spec *task)
{
    const json_t *list = json_object_get(from, "Identities"), *block;
    size_t count = json_array_size(list), i;
    char room[FILE_SIZE];

    if (count > SPEC_IDENTITIES_MAX || (list != NULL && !json_is_array(list))) {
        decoding_damaged(decoding, "Identities", "a list of identities");
        return;
    }
    if (count == 0)
        return;
    task->identities = arena_new(&decoding->holder->arena, count * sizeof(*task->identities));
    task->identities_count = count;
    json_array_foreach(list, i, block)
    {
        struct spec_named_identity *to = &task->identities[i];

        to->name = decoding_name(decoding, block, "Name", spec_identity_name_fault);
        to->env = decoding_bool(decoding, block, "Env");
        to->file = "";
        if (decoding_bool(decoding, block, "File"))
            to->file = arena_text(&decoding->holder->arena, file_of(block, room));
        to->signal = decoding_text(decoding, block, "ChangeSignal", SIGNAL_SIZE);
        to->ttl_ms = decoding_ms(decoding, block, "TTL");
        if (!change_of(block, &to->change))
            decoding_damaged(decoding, "ChangeMode", "a mode of a change");
        if (*to->file != '\0' && fault_of(to->file) != NULL)
            decoding_damaged(decoding, "Filepath", "a file of the task");
    }
}

void decode_identities(struct decoding *decoding, const json_t *alloc, const json_t *group,
                       struct alloc_spec *spec)
{
    const json_t *tokens = json_object_get(alloc, "SignedIdentities");
    const json_t *tasks = json_object_get(group, "Tasks");
    char room[FILE_SIZE];

    for (size_t i = 0; i < spec->tasks_count; i++) {
        const json_t *from = json_array_get(tasks, i), *block = json_object_get(from, "Identity");
        struct spec_identity *to = &spec->tasks[i].identity;

        *to = (struct spec_identity){.token = "", .file = ""};
        decode_named(decoding, from, &spec->tasks[i]);
        spec->tasks[i].has_consul_token = decoding_bool(decoding, from, "ConsulIdentity");
        if (is_seen(block) || has_questions(from))
            to->token = decoding_text(decoding, tokens, spec->tasks[i].name, SPEC_TOKEN_SIZE);
        if (!is_seen(block))
            continue;
        to->env = decoding_bool(decoding, block, "Env");
        if (decoding_bool(decoding, block, "File"))
            to->file = arena_text(&decoding->holder->arena, file_of(block, room));
        if (!spec_is_token(to->token))
            decoding_damaged(decoding, "SignedIdentities", "a token");
        if (*to->file != '\0' && fault_of(to->file) != NULL)
            decoding_damaged(decoding, "Filepath", "a file of the task");
    }
}
