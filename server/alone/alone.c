/* The stand-alone control plane: its parts, and how it begins and ends. */
#include "server/alone/part.h"

#include <stdlib.h>
#include <string.h>

/* A volume may be had that could not. */
static void volume_freed(void *ctx)
{
    struct alone *alone = ctx;

    alone->room_freed = true;
}

static void hosted_freed(void *ctx)
{
    struct alone *alone = ctx;

    alone->room_freed = true;
    if (alone->config.hosted_changed != NULL)
        alone->config.hosted_changed(alone->config.ctx);
}

static void new_id(void *ctx, char to[UUID_TEXT_SIZE])
{
    const struct alone *alone = ctx;

    alone->config.new_id(alone->config.ctx, to);
}

static bool has_host_plugin(void *ctx, const char *plugin)
{
    const struct alone *alone = ctx;

    return alone->config.has_host_plugin != NULL &&
           alone->config.has_host_plugin(alone->config.ctx, plugin);
}

static int load(void *ctx, struct err *err)
{
    struct alone *alone = ctx;
    int code = alone_load_jobs(ctx, err);

    alone_count_room(ctx);
    ports_load(ctx);
    disks_load(ctx);
    users_load(ctx);
    if (code == 0)
        code = sources_sweep(alone, err);
    if (code == 0)
        code = alone_load_standing(alone, err);
    if (code == 0)
        code = storage_load(alone->storage, err);
    if (code == 0)
        code = storage_load(alone->hosted, err);
    if (code == 0)
        code = acl_load(alone->acl, err);
    periodic_resume(ctx);
    alone_resume_tidy(ctx); /* the last incarnation may have died before it did */
    return code;
}

struct alone *alone_new(const struct alone_config *config)
{
    struct alone *alone = calloc(1, sizeof(*alone));

    check(alone != NULL);
    check(config->life != NULL);
    check(config->new_id != NULL);
    alone->config = *config;
    alone_begin_evaluations(alone);
    ports_begin(alone);
    disks_begin(alone);
    users_begin(alone);
    alone->granted = json_object();
    alone->storage = storage_new(&(struct storage_config){.life = config->life,
                                                          .say = config->say,
                                                          .controller = config->controller,
                                                          .topology = config->topology,
                                                          .controller_ctx = config->ctx,
                                                          .freed = volume_freed,
                                                          .freed_ctx = alone});
    alone->hosted = storage_new_hosted(&(struct storage_config){
        .life = config->life,
        .say = config->say,
        .controller = config->host_plugin,
        .controller_ctx = config->ctx,
        .node = &alone->config.node.known,
        .new_id = new_id,
        .has_plugin = has_host_plugin,
        .users = alone_hosted_users,
        .hosted_ctx = alone,
        .freed = hosted_freed,
        .freed_ctx = alone,
    });
    alone->acl = acl_new(&(struct acl_config){.life = config->life,
                                              .say = config->say,
                                              .ttl_min_ns = config->token_min_ns,
                                              .ttl_max_ns = config->token_max_ns});
    life_control(config->life, &(struct life_control){.ctx = alone,
                                                      .load = load,
                                                      .alloc_ended = alone_note_ended,
                                                      .alloc_gone = alone_note_gone,
                                                      .alloc_changed = alone_note_changed,
                                                      .tidy = alone_tidy,
                                                      .deadline_ms = alone_look_deadline_ms});
    return alone;
}

const struct constraint_node *alone_known(const struct alone *alone)
{
    return &alone->config.node.known;
}

struct storage *alone_storage(const struct alone *alone)
{
    return alone->storage;
}

struct storage *alone_hosted(const struct alone *alone)
{
    return alone->hosted;
}

struct acl *alone_acl(const struct alone *alone)
{
    return alone->acl;
}

void alone_plugins_changed(struct alone *alone)
{
    if (alone == NULL)
        return;
    alone_node_changed(alone);
    storage_resume(alone->storage);
}

void alone_free(struct alone *alone)
{
    struct job *job, *next;

    if (alone == NULL)
        return;
    alone_free_over(alone);
    alone_free_room(alone);
    ports_end(alone);
    disks_end(alone);
    users_end(alone);
    acl_free(alone->acl);
    storage_free(alone->storage);
    storage_free(alone->hosted);
    alone_free_standing(alone);
    free(alone->unsaved.items);
    free(alone->looks.items);
    HASH_ITER(hh, alone->jobs, job, next)
    {
        job->unsaved = job->looked_for = job->look = false; /* nobody asks any more */
        job_free(alone, job);
    }
    alone_free_evaluations(alone);
    json_decref(alone->granted);
    free(alone);
}
