/* What the control plane of the search posts: one alloc with two tasks and a volume, one plugin. */
#include "sim/search/part.h"

#include "fsm/policy.h"

#include <string.h>

enum { KILL_MS = 5000, RESTART_DELAY_MS = 1000, DELAY_MS = 1000 };

static const char *name_of(const struct search *search, unsigned who)
{
    return machine_id_name(&search->ids[who]);
}

static struct alloc_member member_of(const struct search *search, unsigned who)
{
    bool second = who == WHO_TASK_B;
    struct alloc_member member = {.kind = who == WHO_VOLUME ? MEMBER_VOLUME : MEMBER_TASK};

    (void)text_copy(member.name, sizeof(member.name), name_of(search, who)); /* fits */
    if (who == WHO_VOLUME)
        return member;
    switch (search->asked->shape) {
    case SIM_SHAPE_MAINS:
        break;
    case SIM_SHAPE_LEADER:
        member.leader = !second;
        break;
    case SIM_SHAPE_SIDECAR:
        member.sidecar = second;
        member.lifecycle = second ? LIFECYCLE_PRESTART : LIFECYCLE_MAIN;
        break;
    case SIM_SHAPE_POSTSTOP:
    case SIM_SHAPE_HOOKS:
        member.lifecycle = second ? LIFECYCLE_POSTSTOP : LIFECYCLE_MAIN;
        break;
    case SIM_SHAPE_COUNT:
        unreachable("shape");
    }
    return member;
}

/* The first task is restarted once when it fails, the second one never. */
static struct task_define define_of(const struct search *search, unsigned who)
{
    struct alloc_member member = member_of(search, who);
    struct task_define define = {
        .restart_interval_ms = SEARCH_FAR_MS,
        .restart_delay_ms = RESTART_DELAY_MS,
        .restart_attempts = who == WHO_TASK_A,
        .kill_timeout_ms = KILL_MS,
        .hooks_prestart = 1u << TASK_HOOK_TASK_DIR,
        .lifecycle = member.lifecycle,
        .sidecar = member.sidecar,
        .leader = member.leader,
        .may_start = 1,
        .mounts = 1,
        .driver = "raw_exec",
    };

    if (search->asked->shape == SIM_SHAPE_HOOKS) {
        uint32_t both = 1u << TASK_HOOK_VALIDATE | 1u << TASK_HOOK_TASK_DIR;
        define.hooks_prestart = define.hooks_poststart = define.hooks_prekill = both;
        define.hooks_exited = define.hooks_stop = both;
        define.shutdown_delay_ms = DELAY_MS;
    }
    return define;
}

static struct volume_define claim_of(void)
{
    return (struct volume_define){
        .access_mode = 1, .plugin = "plugin", .namespace = "default", .volume = "disk"};
}

/* The members that ASSIGN lacks. */
static void add_members(const struct search *search, struct alloc_assign *assign)
{
    static const unsigned members[] = {WHO_TASK_A, WHO_TASK_B, WHO_VOLUME};

    for (size_t i = 0; i < COUNT_OF(members); i++) {
        bool there = false;
        for (uint32_t k = 0; k < assign->members_count; k++)
            there |= text_equal(assign->members[k].name, name_of(search, members[i]));
        if (!there)
            assign->members[assign->members_count++] = member_of(search, members[i]);
    }
}

union assign_place {
    struct alloc_assign assign;
    unsigned char
        room[sizeof(struct alloc_assign) + (SEARCH_TASKS + 1) * sizeof(struct alloc_member)];
};

static void assign_of(const struct search *search, union assign_place *place)
{
    struct alloc_assign *assign = &place->assign;

    memset(place, 0, sizeof(*place));
    assign->hooks_prerun = assign->hooks_destroy = 1u << ALLOC_HOOK_ALLOC_DIR;
    if (search->asked->shape == SIM_SHAPE_HOOKS) {
        assign->hooks_prekill = 1u << ALLOC_HOOK_ALLOC_DIR;
        assign->shutdown_delay_ms = DELAY_MS;
    }
    assign->may_start = 1;
    assign->batch = 1;
    add_members(search, assign);
}

/* To the alloc and its tasks. */
static void tell_version(struct search *search, uint8_t alloc_event, uint8_t task_event)
{
    union assign_place place;

    assign_of(search, &place);
    core_spec(search->core, "alloc/a", "{}", 2);
    core_tell(search->core, &search->ids[WHO_ALLOC], alloc_event, &place.assign);
    for (unsigned who = WHO_TASK_A; who <= WHO_TASK_B; who++) {
        struct task_define define = define_of(search, who);
        core_tell(search->core, &search->ids[who], task_event, &define);
    }
}

void search_update(struct search *search)
{
    core_propose(search->core, true);
    tell_version(search, AE_UPDATE, TE_UPDATE);
    core_propose(search->core, false);
}

void search_assign(struct search *search)
{
    core_propose(search->core, true);
    tell_version(search, AE_ASSIGN, TE_DEFINE);
    struct volume_define claim = claim_of();
    core_tell(search->core, &search->ids[WHO_VOLUME], VE_DEFINE, &claim);
    core_propose(search->core, false);
}

void search_define_plugin(struct search *search)
{
    struct plugin_define define = {.type = PLUGIN_CSI_NODE, .plugin = "plugin"};

    if (core_find(search->core, &search->ids[WHO_PLUGIN]) == NULL)
        core_tell(search->core, &search->ids[WHO_PLUGIN], PE_DEFINE, &define);
}

void search_known(void *ctx, const char *alloc, struct alloc_assign *assign)
{
    const struct search *search = ctx;

    (void)alloc; /* there is only one */
    if (search->world.spec)
        add_members(search, assign);
}

bool search_claim_known(void *ctx, const char *alloc, const char *name,
                        struct volume_define *ret_define)
{
    const struct search *search = ctx;

    (void)alloc; /* there is only one, with one claim */
    (void)name;
    *ret_define = claim_of();
    return search->world.spec;
}
