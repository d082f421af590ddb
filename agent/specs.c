#include "agent/specs.h"

#include "core/core.h"
#include "fsm/limits.h"
#include "journal/journal.h"
#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>
#include <utlist.h>

enum { SPECS_DECODED_MAX = 2048 };

struct known {
    char alloc[UUID_TEXT_SIZE];
    struct alloc_stub stub;
    struct alloc_spec *spec;   /* NULL: not decoded at the moment */
    struct known *prev, *next; /* of those that are decoded, the oldest first */
    UT_hash_handle hh;
};

/* Who took whose place. */
struct link {
    char previous[UUID_TEXT_SIZE];
    struct alloc_next next;
    UT_hash_handle by_previous, by_next;
};

/* A job of whose allocs all links are known. */
struct linked {
    char job[JOURNAL_KEY_SIZE];
    UT_hash_handle hh;
};

struct specs {
    struct journal *journal;
    struct link *links;   /* by the previous alloc */
    struct link *by_next; /* the same */
    struct linked *linked;
    struct known *known; /* by alloc */
    struct known *decoded;
    size_t decoded_count;
};

struct specs *specs_new(struct journal *journal)
{
    struct specs *specs = calloc(1, sizeof(*specs));

    check(specs != NULL);
    specs->journal = journal;
    return specs;
}

/* --- links --- */

static void unlink_it(struct specs *specs, struct link *link)
{
    HASH_DELETE(by_previous, specs->links, link);
    HASH_DELETE(by_next, specs->by_next, link);
    free(link);
}

static void unlink_next(struct specs *specs, const char *alloc)
{
    struct link *link;

    HASH_FIND(by_next, specs->by_next, alloc, strlen(alloc), link);
    if (link != NULL)
        unlink_it(specs, link);
}

/* A version that was taken in place is of another evaluation than the alloc. */
static void link_next(struct specs *specs, const char *alloc, const struct alloc_stub *stub)
{
    bool tells = stub->rescheduled && stub->modify_index == 0;
    struct link *link;

    HASH_FIND(by_next, specs->by_next, alloc, strlen(alloc), link);
    if (stub->previous_id[0] == '\0' || link != NULL)
        return;
    HASH_FIND(by_previous, specs->links, stub->previous_id, strlen(stub->previous_id), link);
    if (link != NULL)
        unlink_it(specs, link); /* of one whose commit has failed */
    link = calloc(1, sizeof(*link));
    check(link != NULL);
    (void)text_copy(link->previous, sizeof(link->previous), stub->previous_id); /* all are UUIDs */
    (void)text_copy(link->next.id, sizeof(link->next.id), alloc);
    (void)text_copy(link->next.follow_up_id, sizeof(link->next.follow_up_id),
                    tells ? stub->eval_id : "");
    HASH_ADD_KEYPTR(by_previous, specs->links, link->previous, strlen(link->previous), link);
    HASH_ADD_KEYPTR(by_next, specs->by_next, link->next.id, strlen(link->next.id), link);
}

static void forget_linked(struct specs *specs)
{
    struct linked *linked, *next;

    HASH_ITER(hh, specs->linked, linked, next)
    {
        HASH_DEL(specs->linked, linked);
        free(linked);
    }
}

static bool know_stub(void *ctx, const struct machine_id *id, const struct machine *record)
{
    (void)record;
    (void)specs_stub(ctx, id->text); /* one that is lost took nobody's place */
    return true;
}

const struct alloc_next *specs_next(struct specs *specs, struct core *core, const char *alloc)
{
    const struct alloc *record = core_alloc(core, alloc);
    char job[JOURNAL_KEY_SIZE];
    struct linked *linked;
    struct link *link;

    if (record == NULL || !text_copy(job, sizeof(job), record->assign.namespace) ||
        !text_append(job, sizeof(job), "/") ||
        !text_append(job, sizeof(job), record->assign.job_id))
        return NULL;
    HASH_FIND_STR(specs->linked, job, linked);
    if (linked == NULL) {
        if (HASH_COUNT(specs->linked) == NODE_JOBS_MAX)
            forget_linked(specs); /* many are of jobs that are gone */
        linked = calloc(1, sizeof(*linked));
        check(linked != NULL);
        (void)text_copy(linked->job, sizeof(linked->job), job); /* same size */
        HASH_ADD_STR(specs->linked, job, linked);
        core_each_of_job(core, record->assign.namespace, record->assign.job_id, know_stub, specs);
    }
    HASH_FIND(by_previous, specs->links, alloc, strlen(alloc), link);
    /* The commit that places it may be to come, or have failed. */
    return link == NULL || core_alloc(core, link->next.id) == NULL ? NULL : &link->next;
}

/* --- specs --- */

static void drop_spec(struct specs *specs, struct known *known)
{
    if (known->spec == NULL)
        return;
    DL_DELETE(specs->decoded, known);
    specs->decoded_count--;
    alloc_spec_free(known->spec);
    known->spec = NULL;
}

static void drop(struct specs *specs, struct known *known)
{
    drop_spec(specs, known);
    HASH_DEL(specs->known, known);
    free(known);
}

void specs_free(struct specs *specs)
{
    struct known *known, *next;

    if (specs == NULL)
        return;
    HASH_ITER(hh, specs->known, known, next)
    drop(specs, known);
    while (specs->links != NULL)
        unlink_it(specs, specs->links);
    forget_linked(specs);
    check(specs->decoded_count == 0);
    free(specs);
}

static struct known *find(const struct specs *specs, const char *alloc)
{
    struct known *known;

    HASH_FIND_STR(specs->known, alloc, known);
    return known;
}

/* Keeps SPEC (moved) under ALLOC. */
static struct known *keep(struct specs *specs, const char *alloc, struct alloc_spec *spec)
{
    struct known *known = find(specs, alloc);

    if (specs->decoded_count == SPECS_DECODED_MAX)
        drop_spec(specs, specs->decoded);
    if (known == NULL) {
        known = calloc(1, sizeof(*known));
        check(known != NULL);
        (void)text_copy(known->alloc, sizeof(known->alloc), alloc); /* a UUID */
        (void)text_copy(known->stub.eval_id, sizeof(known->stub.eval_id), spec->eval_id);
        (void)text_copy(known->stub.job_type, sizeof(known->stub.job_type), spec->job_type);
        (void)text_copy(known->stub.previous_id, sizeof(known->stub.previous_id),
                        spec->previous_id);
        known->stub.rescheduled = spec->rescheduled_count > 0;
        known->stub.create_index = spec->create_index;
        known->stub.modify_index = spec->modify_index;
        HASH_ADD_STR(specs->known, alloc, known);
        link_next(specs, alloc, &known->stub);
    }
    check(known->spec == NULL); /* else it would not have been decoded again */
    known->spec = spec;
    DL_APPEND(specs->decoded, known);
    specs->decoded_count++;
    return known;
}

void specs_placed(struct specs *specs, struct alloc_spec *spec)
{
    (void)keep(specs, spec->id, spec);
}

void specs_renew(struct specs *specs, const char *alloc)
{
    struct known *known = find(specs, alloc);

    if (known != NULL)
        drop(specs, known);
}

void specs_drop(struct specs *specs, const char *alloc)
{
    specs_renew(specs, alloc);
    unlink_next(specs, alloc);
}

int specs_read(struct specs *specs, const char *alloc, struct alloc_spec **ret_spec,
               struct err *err)
{
    char key[JOURNAL_KEY_SIZE], *text;
    struct alloc_spec *spec;
    size_t length;

    if (!text_format(key, sizeof(key), "alloc/%s", alloc))
        return err_set(err, ERR_INVALID, "not an alloc id");
    int code = journal_spec_read(specs->journal, key, &text, &length, err);
    if (code < 0)
        return code;
    code = jobspec_decode_alloc(text, length, &spec, err);
    free(text);
    if (code == 0 && !text_equal(spec->id, alloc)) {
        /* Directories are built and cleared by that id. */
        alloc_spec_free(spec);
        code = err_set(err, ERR_CORRUPT, "the specification is another alloc's");
    }
    if (code == 0)
        *ret_spec = spec;
    return code;
}

const struct alloc_spec *specs_find(struct specs *specs, const char *alloc, struct err *err)
{
    struct known *known = find(specs, alloc);
    struct alloc_spec *spec;

    if (known != NULL && known->spec != NULL)
        return known->spec;
    if (specs_read(specs, alloc, &spec, err) < 0)
        return NULL;
    return keep(specs, alloc, spec)->spec;
}

struct alloc_stub *specs_stub(struct specs *specs, const char *alloc)
{
    struct known *known = find(specs, alloc);
    struct alloc_spec *spec;

    if (known != NULL)
        return &known->stub;
    if (specs_read(specs, alloc, &spec, NULL) < 0)
        return NULL;
    known = keep(specs, alloc, spec);
    drop_spec(specs, known); /* nobody sets it up at the moment */
    return &known->stub;
}

bool specs_hold_any(const struct specs *specs)
{
    return specs->decoded != NULL;
}

void specs_forget(struct specs *specs, const struct core *core)
{
    while (specs->decoded != NULL) {
        struct known *known = specs->decoded;

        if (core_alloc(core, known->alloc) == NULL) {
            unlink_next(specs, known->alloc);
            drop(specs, known);
            continue;
        }
        drop_spec(specs, known);
    }
}
