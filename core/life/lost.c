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

/* A member of a lost alloc whose record is lost, too; names are bounded when they are decoded. */
static void add_lost(struct alloc_assign *assign, const struct alloc_member *lost)
{
    for (uint32_t i = 0; i < assign->members_count; i++) {
        if (assign->members[i].kind == lost->kind &&
            text_equal(assign->members[i].name, lost->name))
            return;
    }
    if (assign->members_count < ALLOC_MEMBERS_MAX)
        assign->members[assign->members_count++] = *lost;
}

static void add_lost_task(struct alloc_assign *assign, const struct task_spec *task)
{
    struct alloc_member member = {
        .kind = MEMBER_TASK,
        .lifecycle = (uint8_t)task->lifecycle,
        .sidecar = task->sidecar,
        .leader = task->leader,
    };

    (void)text_copy(member.name, sizeof(member.name), task->name);
    add_lost(assign, &member);
}

static void add_lost_claim(struct alloc_assign *assign, const struct spec_volume *volume)
{
    struct alloc_member member = {.kind = MEMBER_VOLUME};

    (void)text_copy(member.name, sizeof(member.name), volume->name);
    if (volume->type == VOLUME_CSI)
        add_lost(assign, &member);
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
    for (size_t i = 0; i < spec->volumes_count; i++)
        add_lost_claim(assign, &spec->volumes[i]);
    alloc_spec_free(spec);
}

/* The specification of ALLOC as text that the caller frees, or NULL. */
static char *read_text(const struct store *store, const char *alloc, size_t *ret_length)
{
    char key[JOURNAL_KEY_SIZE], *text;
    struct err err;

    if (!text_format(key, sizeof(key), "alloc/%s", alloc) ||
        store->spec_read(store->ctx, key, &text, ret_length, &err) < 0)
        return NULL;
    return text;
}

void lost_alloc(const struct store *store, const char *alloc, struct alloc_assign *assign)
{
    size_t length;
    char *text = read_text(store, alloc, &length);

    if (text != NULL)
        lost_alloc_text(text, length, assign);
    free(text);
}

struct volume_define define_of_volume(const struct alloc_spec *spec,
                                      const struct spec_volume *volume)
{
    struct volume_define define = {
        .read_only = volume->read_only,
        .access_mode = (uint8_t)volume->access,
        .attachment_mode = (uint8_t)volume->attachment,
    };

    check(volume->type == VOLUME_CSI);
    /* All of them were bounded when the specification was decoded. */
    (void)text_copy(define.plugin, sizeof(define.plugin), volume->plugin);
    (void)text_copy(define.namespace, sizeof(define.namespace), spec->namespace);
    (void)text_copy(define.volume, sizeof(define.volume), volume->source);
    return define;
}

bool lost_claim(const struct store *store, const char *alloc, const char *name,
                struct volume_define *ret_define)
{
    struct alloc_spec *spec = NULL;
    size_t length;
    char *text = read_text(store, alloc, &length);
    struct err err;
    bool found = false;

    if (text != NULL)
        (void)jobspec_decode_alloc(text, length, &spec, &err); /* NULL: it is lost, too */
    for (size_t i = 0; spec != NULL && i < spec->volumes_count && !found; i++) {
        found = spec->volumes[i].type == VOLUME_CSI && text_equal(spec->volumes[i].name, name);
        if (found)
            *ret_define = define_of_volume(spec, &spec->volumes[i]);
    }
    alloc_spec_free(spec);
    free(text);
    return found;
}
