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
    enum wanted_order order;
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

/* Whose end comes before its begin: one that made room for it, or whose place it takes, which may
 * be on another node.  If there are more awaiting.c knows of them. */
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
    if (!uuid_is_valid(served->previous_id))
        return "";
    return core_alloc(life_core(nomad->config.life), served->previous_id) == NULL
               ? served->previous_id
               : still_here(nomad, served->previous_id);
}

/* Whose ephemeral disk it takes over: one that is sticky stays on its node. */
static const char *disk_of(const struct nomad *nomad, const struct placing *placing)
{
    const struct alloc_spec *spec = placing->spec;
    const char *previous = placing->served.previous_id;
    bool is_here =
        uuid_is_valid(previous) && core_alloc(life_core(nomad->config.life), previous) != NULL;

    return uuid_is_valid(previous) && (spec->disk_migrate || (spec->disk_sticky && is_here))
               ? previous
               : "";
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

/* What a server may want of this node at once is bounded as what a user may is. */
static int check_bounds(const struct nomad *nomad, const struct placing *placing, struct err *err)
{
    const struct core *core = life_core(nomad->config.life);
    size_t members = core_count(core, MACHINE_TASK) + core_count(core, MACHINE_VOLUME) +
                     nomad->posted.members + placing->spec->tasks_count +
                     placing->spec->volumes_count;

    if (core_count(core, MACHINE_ALLOC) + nomad->posted.allocs >= NODE_ALLOCS_MAX)
        return err_set(err, ERR_LIMIT,
                       "this node has %d allocs, ended ones with them: no more are kept",
                       NODE_ALLOCS_MAX);
    if (members > NODE_MEMBERS_MAX)
        return err_set(
            err, ERR_LIMIT,
            "this node has tasks and volumes enough, those of ended allocs with them: %d are kept",
            NODE_MEMBERS_MAX);
    return 0;
}

static void note_posted(struct nomad *nomad, const struct placing *placing)
{
    nomad->posted.allocs++;
    nomad->posted.members += placing->spec->tasks_count + placing->spec->volumes_count;
    nomad->posted.bytes += placing->length;
}

static void assign(struct nomad *nomad, struct placing *placing)
{
    note_posted(nomad, placing);
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

/* In the turn that makes it one of this version, so that it is said once. */
static void reconnect(struct nomad *nomad, const struct placing *placing)
{
    struct machine_id id = machine_id_make(MACHINE_ALLOC, placing->mine->id);

    say(&nomad->config.say, SAY_INFO, "server",
        "an alloc of which the servers had not heard is known again alloc=%s", placing->mine->id);
    placing->mine->told = 0; /* what they have heard before they have forgotten */
    core_tell(life_core(nomad->config.life), &id, AE_RECONNECTED, NULL);
}

static void stop(struct nomad *nomad, const struct placing *placing)
{
    struct machine_id id = machine_id_make(MACHINE_ALLOC, placing->mine->id);
    struct request request = {.at_once = placing->served.no_shutdown_delay};

    (void)text_copy(request.text, sizeof(request.text),
                    placing->served.desired_description); /* may be cut */
    core_tell(life_core(nomad->config.life), &id, AE_STOP, &request);
}

void place_refuse(struct nomad *nomad, const char *alloc, const struct err *err)
{
    struct mine *mine = mine_add(nomad, alloc);

    say(&nomad->config.say, SAY_WARN, "server", "an alloc cannot run here alloc=%s error=%s",
        mine->id, text_value(err->text));
    free(mine->refused);
    mine->refused = strdup(err->text);
    check(mine->refused != NULL);
    mine->refused_unix_ns = life_unix_ns(nomad->config.life);
    status_dirty(nomad, mine, STATUS_URGENT);
}

static bool reads(enum wanted_order order)
{
    return order == WANTED_ASSIGN || order == WANTED_UPDATE || order == WANTED_RECONNECT;
}

/* Events that are posted to the machines of PLACING. */
static size_t events_of(const struct placing *placing)
{
    if (!reads(placing->order))
        return 1;
    if (placing->spec == NULL)
        return 0;
    size_t more = placing->order == WANTED_RECONNECT ? 2 : 1;
    return more + placing->spec->tasks_count + placing->spec->volumes_count;
}

static void carry_out(struct nomad *nomad, struct placing *placing, struct err *err)
{
    switch (placing->order) {
    case WANTED_ASSIGN:
        if (placing->spec != NULL && check_bounds(nomad, placing, err) == 0)
            assign(nomad, placing);
        else
            place_refuse(nomad, placing->mine->id, err);
        break;
    case WANTED_UPDATE:
    case WANTED_RECONNECT:
        if (placing->spec != NULL && placing->order == WANTED_RECONNECT)
            reconnect(nomad, placing);
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

/* --- what an alloc runs by --- */

/* The plugin of the volume NAME: of one that is here what it was placed with, of a new one what was
 * found out; NULL: nothing was yet. */
static const char *plugin_known(const struct nomad *nomad, const struct placing *placing,
                                const json_t *plugins, const char *name)
{
    const struct volume *volume =
        core_volume(life_core(nomad->config.life), placing->mine->id, name);

    return volume != NULL ? volume->define.plugin
                          : json_string_value(json_object_get(plugins, name));
}

/* Reads JSON with what is known of its plugins; without a spec ERR says why. */
static void read_with(const struct nomad *nomad, const json_t *json, struct placing *placing,
                      const struct spec_pairs *plugins, struct err *err)
{
    const struct served_node node = {.datacenter = nomad->config.datacenter, .plugins = *plugins};

    placing->spec = NULL;
    placing->text = NULL;
    (void)served_alloc_read(json, &node, &placing->served, &placing->text, &placing->length,
                            &placing->spec, err);
}

/* Which volumes it has is known when it was read; then it is read again with their plugins. */
static void read_alloc(const struct nomad *nomad, const json_t *json, struct placing *placing,
                       const json_t *plugins, struct err *err)
{
    struct spec_pair items[SPEC_VOLUMES_MAX];
    struct spec_pairs pairs = {.items = items};

    read_with(nomad, json, placing, &(struct spec_pairs){.count = 0}, err);
    for (size_t i = 0; placing->spec != NULL && i < placing->spec->volumes_count; i++) {
        const struct spec_volume *volume = &placing->spec->volumes[i];
        const char *plugin = plugin_known(nomad, placing, plugins, volume->name);

        if (volume->type != VOLUME_CSI || plugin == NULL)
            continue;
        items[pairs.count++] = (struct spec_pair){volume->name, plugin};
    }
    if (pairs.count == 0)
        return;
    struct alloc_spec *before = placing->spec; /* has the names */
    free(placing->text);
    read_with(nomad, json, placing, &pairs, err);
    alloc_spec_free(before);
}

/* True if a volume of the new alloc has no plugin yet. */
static bool lacks(const struct placing *placing, struct lacking *ret_lacking)
{
    const struct alloc_spec *spec = placing->order == WANTED_ASSIGN ? placing->spec : NULL;

    for (size_t i = 0; spec != NULL && i < spec->volumes_count; i++) {
        const struct spec_volume *volume = &spec->volumes[i];

        if (volume->type != VOLUME_CSI || volume->plugin[0] != '\0')
            continue;
        (void)text_copy(ret_lacking->name, sizeof(ret_lacking->name), volume->name); /* they fit */
        (void)text_copy(ret_lacking->namespace, sizeof(ret_lacking->namespace), spec->namespace);
        (void)text_copy(ret_lacking->volume, sizeof(ret_lacking->volume), volume->source);
        return true;
    }
    return false;
}

static enum place_outcome place(struct nomad *nomad, const json_t *json, struct placing *placing,
                                const json_t *plugins, struct lacking *ret_lacking)
{
    const struct served_alloc *served = &placing->served;
    struct core *core = life_core(nomad->config.life);
    struct err err = {0};

    placing->mine = mine_add(nomad, served->id);
    placing->order = policy_wanted(core_alloc(core, served->id), placing->mine->index,
                                   &(struct wanted){.run = served->desired == SERVED_RUN,
                                                    .over = served->client_terminal,
                                                    .unknown = served->client_unknown,
                                                    .index = served->modify_index});
    if (reads(placing->order))
        read_alloc(nomad, json, placing, plugins, &err);
    bool is_lacking = lacks(placing, ret_lacking);
    if (!is_lacking && (core_room(core) <= events_of(placing) ||
                        nomad->posted.bytes + placing->length > TURN_SPECS_BYTES_MAX))
        return PLACE_NO_ROOM;
    if (!is_lacking)
        carry_out(nomad, placing, &err);
    placing->mine->index = served->modify_index;
    return is_lacking ? PLACE_LACKS : PLACE_DONE;
}

enum place_outcome place_alloc(struct nomad *nomad, const json_t *json, const json_t *plugins,
                               struct lacking *ret_lacking)
{
    struct placing placing = {.mine = NULL};
    struct err err;

    if (served_alloc_peek(json, &placing.served, &err) != 0 || !uuid_is_valid(placing.served.id)) {
        say(&nomad->config.say, SAY_ERROR, "server", "a server sends what is no alloc error=%s",
            text_value(err.text));
        return PLACE_DONE;
    }
    enum place_outcome outcome = place(nomad, json, &placing, plugins, ret_lacking);
    alloc_spec_free(placing.spec);
    free(placing.text);
    return outcome;
}
