/*
 * Which allocs of a job go on when it is changed, and how they learn of it.
 *
 * An alloc is compared by what it runs by itself, whichever version of its job that is from, with
 * what one would run by that was placed now (spec/alloc/update.c).  Who goes on does so as it is,
 * with its ports, its cores and its disk, and takes the newer version in the commit that stores it;
 * another alloc takes the place of who does not.
 */
#include "server/alone/part.h"

#include "spec/job.h"

#include <stdlib.h>

/* A group that is wanted. */
struct compared {
    const char *name;
    json_t *essence; /* NULL: nothing of it is changed */
};

void classify_begin(struct gathering *gathering)
{
    const json_t *list = json_object_get(gathering->wanted, "TaskGroups"), *group;
    size_t g;

    gathering->compared = calloc(json_array_size(list) + 1, sizeof(*gathering->compared));
    check(gathering->compared != NULL);
    json_array_foreach(list, g, group)
    {
        const char *name = json_string_value(json_object_get(group, "Name"));
        gathering->compared[gathering->compared_count++] = (struct compared){
            name, gathering->changed ? jobspec_essence(gathering->wanted, name) : NULL};
    }
}

void classify_end(struct gathering *gathering)
{
    for (size_t g = 0; g < gathering->compared_count; g++)
        json_decref(gathering->compared[g].essence);
    free(gathering->compared);
}

static const struct compared *find(const struct gathering *gathering, const char *group)
{
    for (size_t g = 0; g < gathering->compared_count; g++) {
        if (text_equal(gathering->compared[g].name, group))
            return &gathering->compared[g];
    }
    return NULL;
}

/* What ALLOC runs by, as text that the caller frees, or NULL. */
static char *stored_text(const struct alone *alone, const char *alloc, size_t *ret_length)
{
    char key[JOURNAL_KEY_SIZE], *text;

    if (!text_format(key, sizeof(key), "alloc/%s", alloc) ||
        life_read_spec(alone->config.life, key, &text, ret_length, NULL) < 0)
        return NULL;
    return text;
}

/* False, too, if nobody can say any more what it runs by: the next one will be whole. */
bool classify_goes_on(const struct gathering *gathering, const char *alloc, const char *group)
{
    const struct compared *compared = find(gathering, group);
    size_t length = 0;

    if (compared == NULL || !gathering->changed)
        return compared != NULL;
    char *text = stored_text(gathering->alone, alloc, &length);
    json_t *essence = text == NULL ? NULL : jobspec_alloc_essence(text, length);
    bool same = essence != NULL && json_equal(essence, compared->essence);

    json_decref(essence);
    free(text);
    return same;
}

/* What is placed by the commit that is to come runs by the job as it is. */
bool classify_goes_on_posted(const struct gathering *gathering, const char *group)
{
    const struct compared *compared = find(gathering, group);

    return compared != NULL &&
           (!gathering->changed ||
            jobspec_group_equal(gathering->job->public.job, gathering->wanted, group));
}

static int update_one(struct alone *alone, const struct job *job, const char *alloc,
                      const char *group, const char *eval_id, struct err *err)
{
    struct core *core = life_core(alone->config.life);
    const char *deployment_id = rollout_id(job, jobspec_group(job->json, group));
    struct jobspec_update update = {
        .eval_id = eval_id,
        .deployment_id = deployment_id,
        .modify_index = life_next_index(alone->config.life),
    };
    char key[JOURNAL_KEY_SIZE], *before = stored_text(alone, alloc, &update.length), *text;
    struct alloc_spec *spec;
    size_t length;

    update.text = before == NULL ? "" : before;
    int code = jobspec_update_alloc(job->json, &update, &text, &length, &spec, err);
    free(before);
    if (code < 0)
        return err_wrap(err, "alloc %s", alloc);
    code = alone_take_spec(alone, length, err);
    if (code == 0) {
        (void)text_format(key, sizeof(key), "alloc/%s", alloc); /* fits */
        core_spec(core, key, text, length);
        update_alloc(core, &alone->config.plans, spec,
                     deployment_id == NULL ? 0 : rollout_began_unix_ns(job));
    }
    free(text);
    alloc_spec_free(spec);
    return code;
}

bool classify_is_updated(const struct gathering *gathering, size_t a)
{
    const struct reconcile_alloc *alloc = &gathering->allocs[a];

    return gathering->changed && alloc->live && alloc->current && !alloc->stop &&
           a < gathering->stored_count;
}

int alone_update(struct alone *alone, const struct gathering *gathering,
                 struct alone_evaluation *evaluation, struct err *err)
{
    const struct core *core = life_core(alone->config.life);
    size_t events = 0;
    int code;

    for (size_t a = 0; a < gathering->count; a++) {
        const struct alloc *record = core_alloc(core, gathering->ids[a].text);
        if (classify_is_updated(gathering, a) && record != NULL)
            events += 1 + record->assign.members_count;
    }
    code = life_check_turn(alone->config.life, events, err);
    for (size_t a = 0; a < gathering->count && code == 0; a++) {
        if (!classify_is_updated(gathering, a))
            continue;
        code = update_one(alone, gathering->job, gathering->ids[a].text, gathering->allocs[a].group,
                          evaluation->id, err);
        evaluation->updated++;
    }
    return code;
}
