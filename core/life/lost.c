#include "core/lost.h"

#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

/* Noted during the walk, adopted after it. */
struct bereft {
    const struct core *core;
    char (*items)[UUID_TEXT_SIZE];
    size_t count, size;
};

static bool note_bereft(void *ctx, const char *key, const void *bytes, size_t length)
{
    struct bereft *bereft = ctx;
    struct machine_id id = {.kind = MACHINE_ALLOC};

    (void)bytes; /* read when it is adopted */
    (void)length;
    if (!text_copy(id.text, sizeof(id.text), key + strlen("alloc/")) || !machine_id_is_sound(&id) ||
        core_find(bereft->core, &id) != NULL)
        return true;
    (void)text_copy(*list_more(bereft), UUID_TEXT_SIZE, id.text); /* fits: its id is sound */
    return true;
}

int lost_adopt(const struct store *store, struct core *core, struct err *err)
{
    struct bereft bereft = {.core = core};
    int code = store->each_spec(store->ctx, "alloc/", note_bereft, &bereft, err);

    for (size_t i = 0; i < bereft.count; i++)
        core_adopt(core, bereft.items[i]);
    free(bereft.items);
    return code;
}

/* A task of a lost alloc whose record is lost, too. */
static void add_lost_task(struct alloc_assign *assign, const struct task_spec *task)
{
    for (uint32_t i = 0; i < assign->members_count; i++) {
        if (text_equal(assign->members[i].name, task->name))
            return;
    }
    if (assign->members_count == ALLOC_MEMBERS_MAX)
        return;
    struct alloc_member *member = &assign->members[assign->members_count++];
    *member = (struct alloc_member){
        .kind = MEMBER_TASK,
        .lifecycle = (uint8_t)task->lifecycle,
        .sidecar = task->sidecar,
        .leader = task->leader,
    };
    (void)text_copy(member->name, sizeof(member->name), task->name); /* bounded when decoded */
}

void lost_alloc_text(const char *text, size_t length, struct alloc_assign *assign)
{
    struct alloc_spec *spec;
    struct err err;

    if (jobspec_decode_alloc(text, length, &spec, &err) < 0)
        return;
    (void)text_copy(assign->namespace, sizeof(assign->namespace), spec->namespace);
    (void)text_copy(assign->job_id, sizeof(assign->job_id),
                    spec->job_id); /* bounded when decoded */
    (void)text_copy(assign->group, sizeof(assign->group), spec->group);
    assign->index = spec->index;
    assign->job_version = spec->job_version;
    assign->create_unix_ns = spec->create_time_unix_ns;
    for (size_t i = 0; i < spec->tasks_count; i++)
        add_lost_task(assign, &spec->tasks[i]);
    alloc_spec_free(spec);
}

void lost_alloc(const struct store *store, const char *alloc, struct alloc_assign *assign)
{
    char key[JOURNAL_KEY_SIZE], *text;
    struct err err;
    size_t length;

    if (!text_format(key, sizeof(key), "alloc/%s", alloc) ||
        store->spec_read(store->ctx, key, &text, &length, &err) < 0)
        return;
    lost_alloc_text(text, length, assign);
    free(text);
}
