/*
 * What the servers want of one alloc, done here.
 *
 * What an alloc is to run by is stored with the events that begin it, as of those of the
 * stand-alone control plane.  One that cannot run here is told as failed, with all that is in its
 * way, and is not known to the machines.
 */
#include "server/nomad/part.h"

#include "spec/job.h"
#include "spec/served.h"

#include <string.h>

struct placing {
    struct served_alloc served;
    struct mine *mine;
    struct alloc_spec *spec;
    char *text;
    size_t length;
};

uint64_t place_index(const struct nomad *nomad, const char *alloc)
{
    char key[JOURNAL_KEY_SIZE], *text;
    struct alloc_spec *spec = NULL;
    uint64_t index = 0;
    size_t length;

    if (!text_format(key, sizeof(key), "alloc/%s", alloc) ||
        life_read_spec(nomad->config.life, key, &text, &length, NULL) < 0)
        return 0;
    if (jobspec_decode_alloc(text, length, &spec, NULL) == 0)
        index = spec->modify_index != 0 ? spec->modify_index : spec->create_index;
    alloc_spec_free(spec);
    free(text);
    return index;
}

/* The alloc of this node that ID names and that has not ended yet, or "". */
static const char *still_here(const struct nomad *nomad, const char *id)
{
    const struct alloc *alloc =
        uuid_is_valid(id) ? core_alloc(life_core(nomad->config.life), id) : NULL;

    return alloc != NULL && alloc->ended_unix_ns == 0 ? id : "";
}

/* Whose end comes before its begin: the one that made room for it, or whose place it takes. */
static const char *awaited_of(const struct nomad *nomad, const struct served_alloc *served)
{
    const json_t *preempted;
    size_t i;

    json_array_foreach(served->preempted, i, preempted)
    {
        const char *id = still_here(nomad, json_string_value(preempted));
        if (id[0] != '\0')
            return id;
    }
    return still_here(nomad, served->previous_id);
}

/* Whose ephemeral disk it takes over. */
static const char *disk_of(const struct nomad *nomad, const struct placing *placing)
{
    const struct core *core = life_core(nomad->config.life);
    const char *previous = placing->served.previous_id;

    if (!placing->spec->disk_sticky && !placing->spec->disk_migrate)
        return "";
    return uuid_is_valid(previous) && core_alloc(core, previous) != NULL ? previous : "";
}

static void store(struct nomad *nomad, struct placing *placing)
{
    char key[JOURNAL_KEY_SIZE];

    (void)text_format(key, sizeof(key), "alloc/%s", placing->mine->id); /* fits */
    core_spec(life_core(nomad->config.life), key, placing->text, placing->length);
}

static void note_contact(struct nomad *nomad, struct placing *placing)
{
    bool minds = placing->spec->stop_after_ms != 0;

    nomad->contacted += minds;
    nomad->contacted -= placing->mine->minds_contact;
    placing->mine->minds_contact = minds;
}

static void assign(struct nomad *nomad, struct placing *placing)
{
    store(nomad, placing);
    assign_alloc(life_core(nomad->config.life), &nomad->config.plans, placing->spec,
                 awaited_of(nomad, &placing->served), disk_of(nomad, placing));
    note_contact(nomad, placing);
    if (nomad->config.placed != NULL)
        nomad->config.placed(nomad->config.ctx, placing->spec);
    else
        alloc_spec_free(placing->spec);
    placing->spec = NULL;
}

static void update(struct nomad *nomad, struct placing *placing)
{
    const struct core *core = life_core(nomad->config.life);
    const struct alloc *alloc = core_alloc(core, placing->mine->id);
    bool is_same_deployment = alloc->assign.job_version == placing->spec->job_version;

    store(nomad, placing);
    update_alloc(life_core(nomad->config.life), &nomad->config.plans, placing->spec,
                 is_same_deployment ? alloc->assign.deployed_unix_ns
                                    : life_unix_ns(nomad->config.life));
    note_contact(nomad, placing);
}

static void stop(struct nomad *nomad, const struct placing *placing)
{
    struct machine_id id = machine_id_make(MACHINE_ALLOC, placing->mine->id);
    struct request request = {.at_once = placing->served.no_shutdown_delay};

    (void)text_copy(request.text, sizeof(request.text),
                    placing->served.desired_description); /* may be cut */
    core_tell(life_core(nomad->config.life), &id, AE_STOP, &request);
}

static void refuse(struct nomad *nomad, struct mine *mine, const struct err *err)
{
    say(&nomad->config.say, SAY_WARN, "server", "an alloc cannot run here alloc=%s error=%s",
        mine->id, text_value(err->text));
    free(mine->refused);
    mine->refused = strdup(err->text);
    check(mine->refused != NULL);
    mine->refused_unix_ns = life_unix_ns(nomad->config.life);
    status_dirty(nomad, mine, STATUS_URGENT);
}

/* Events that ORDER posts to the machines of PLACING. */
static size_t events_of(enum wanted_order order, const struct placing *placing)
{
    if (order != WANTED_ASSIGN && order != WANTED_UPDATE)
        return 1;
    return placing->spec == NULL ? 0
                                 : 1 + placing->spec->tasks_count + placing->spec->volumes_count;
}

static void carry_out(struct nomad *nomad, struct placing *placing, enum wanted_order order,
                      const struct err *err)
{
    switch (order) {
    case WANTED_ASSIGN:
        if (placing->spec != NULL)
            assign(nomad, placing);
        else
            refuse(nomad, placing->mine, err);
        break;
    case WANTED_UPDATE:
        if (placing->spec != NULL)
            update(nomad, placing);
        else
            say(&nomad->config.say, SAY_WARN, "server",
                "an alloc goes on as it is: its new version cannot run here alloc=%s error=%s",
                placing->mine->id, text_value(err->text));
        break;
    case WANTED_STOP:
        stop(nomad, placing);
        break;
    case WANTED_GO_ON:
    case WANTED_IGNORED:
        break;
    }
}

static bool place(struct nomad *nomad, const json_t *json, struct placing *placing)
{
    const struct served_node node = {.datacenter = nomad->config.datacenter};
    const struct served_alloc *served = &placing->served;
    struct core *core = life_core(nomad->config.life);
    struct err err = {0};

    placing->mine = mine_add(nomad, served->id);
    enum wanted_order order = policy_wanted(core_alloc(core, served->id), placing->mine->index,
                                            &(struct wanted){.run = served->desired == SERVED_RUN,
                                                             .over = served->client_terminal,
                                                             .index = served->modify_index});
    if (order == WANTED_ASSIGN || order == WANTED_UPDATE)
        (void)served_alloc_read(json, &node, &placing->served, &placing->text, &placing->length,
                                &placing->spec, &err); /* without a spec ERR says why */
    if (core_room(core) <= events_of(order, placing))
        return false;
    carry_out(nomad, placing, order, &err);
    placing->mine->index = served->modify_index;
    return true;
}

/* What is older than what was listed is of a server that lags: it is as good as missing. */
static bool is_older(const struct nomad *nomad, const struct served_alloc *served)
{
    const json_t *listed = json_object_get(json_object_get(nomad->listing, "Allocs"), served->id);

    return listed == NULL || served->modify_index < (uint64_t)json_integer_value(listed);
}

bool place_alloc(struct nomad *nomad, const json_t *json)
{
    struct placing placing = {.mine = NULL};
    struct err err;

    if (served_alloc_peek(json, &placing.served, &err) != 0 || !uuid_is_valid(placing.served.id)) {
        say(&nomad->config.say, SAY_ERROR, "server", "a server sends what is no alloc error=%s",
            text_value(err.text));
        return true;
    }
    bool placed = is_older(nomad, &placing.served) || place(nomad, json, &placing);
    alloc_spec_free(placing.spec);
    free(placing.text);
    return placed;
}
