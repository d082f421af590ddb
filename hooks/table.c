/*
 * The hooks, by their numbers, and which of them a spec needs.  Those of an alloc run in that
 * order, those of a task in that of TASK_HOOKS_IN_ORDER.
 *
 * A row names the hook, when it is needed, and its step for each phase.  A phase that has no step
 * is not in the mask that the machines count by, so nothing is run for nothing.  That the rows are
 * the lists ALLOC_HOOKS and TASK_HOOKS, in their order, is checked by the compiler below.
 */
#include "hooks/part.h"

static bool always(const struct hook_subject *subject)
{
    (void)subject;
    return true;
}

static bool takes_disk(const struct hook_subject *subject)
{
    return subject->takes_disk;
}

static bool checks_user(const struct hook_subject *subject)
{
    return subject->driver != NULL && subject->driver->checks_user;
}

static bool has_volumes(const struct hook_subject *subject)
{
    return subject->alloc->volumes_count > 0;
}

static bool keeps_logs(const struct hook_subject *subject)
{
    return !subject->task->logs.disabled;
}

static bool is_plugin(const struct hook_subject *subject)
{
    return subject->task->csi_plugin != NULL;
}

static bool has_artifacts(const struct hook_subject *subject)
{
    return subject->task->artifacts_count > 0;
}

static bool has_devices(const struct hook_subject *subject)
{
    return subject->task->devices_json != NULL;
}

static bool has_identities(const struct hook_subject *subject)
{
    return subject->task->identities_count > 0;
}

static bool has_consul_token(const struct hook_subject *subject)
{
    return subject->task->has_consul_token;
}

static bool has_consul_tokens(const struct hook_subject *subject)
{
    const struct alloc_spec *alloc = subject->alloc;
    bool has = false;

    for (size_t i = 0; i < alloc->services_count; i++)
        has |= alloc->services[i].identity[0] != '\0';
    for (size_t i = 0; i < alloc->tasks_count; i++)
        has |= alloc->tasks[i].has_consul_token;
    return has;
}

static bool is_in_mesh(const struct hook_subject *subject)
{
    return subject->task->connect != CONNECT_NOTHING;
}

static bool is_proxy(const struct hook_subject *subject)
{
    return subject->task->connect == CONNECT_PROXY;
}

static bool is_native(const struct hook_subject *subject)
{
    return subject->task->connect == CONNECT_NATIVE;
}

static bool has_templates(const struct hook_subject *subject)
{
    return subject->task->templates_count > 0;
}

static bool has_network(const struct hook_subject *subject)
{
    return spec_has_namespace(subject->alloc) || subject->alloc->has_dns;
}

static bool has_services(const struct hook_subject *subject)
{
    return subject->alloc->services_count > 0;
}

#define LOOP(phase, function) [PHASE_##phase] = {HOOK_ON_LOOP, function, NULL, NULL, NULL}
#define POOL(phase, function) [PHASE_##phase] = {HOOK_ON_POOL, function, NULL, NULL, NULL}
#define LINE(phase, function) [PHASE_##phase] = {HOOK_IN_LINE, function, NULL, NULL, NULL}
#define ASKING(phase, function, begin, ask)                                                        \
    [PHASE_##phase] = {HOOK_BY_ASKING, function, begin, ask, NULL}
/* The same with something to do on the loop before it. */
#define POOL_BEGUN(phase, function, begin)                                                         \
    [PHASE_##phase] = {HOOK_ON_POOL, function, begin, NULL, NULL}
#define LOOP_BEGUN(phase, function, begin)                                                         \
    [PHASE_##phase] = {HOOK_ON_LOOP, function, begin, NULL, NULL}
#define PROCESS(phase, function, begin, ask, finish)                                               \
    [PHASE_##phase] = {HOOK_BY_PROCESS, function, begin, ask, finish}
#define LINE_BEGUN(phase, function, begin)                                                         \
    [PHASE_##phase] = {HOOK_IN_LINE, function, begin, NULL, NULL}

/* clang-format off */
/*    hook       needed when   steps */
#define ALLOC_ROWS(ROW)                                                                            \
    ROW(ALLOC_DIR, always,      POOL(PRERUN,   hooks_alloc_dir_build),                             \
                                POOL(DESTROY,  hooks_alloc_dir_destroy))                           \
    ROW(MIGRATE_DISK, takes_disk,                                                                  \
        PROCESS(PRERUN, hooks_disk_prepare, hooks_disk_begin, hooks_disk_ask, hooks_disk_finish))  \
    ROW(NETWORK,   has_network, LINE_BEGUN(PRERUN, hooks_network_make, hooks_network_begin),       \
                                LINE(POSTRUN,  hooks_network_remove))                              \
    ROW(SERVICES,  has_services, LOOP(PRERUN,  hooks_services_validate))                           \
    ROW(CONSUL, has_consul_tokens, ASKING(PRERUN, NULL, hooks_login_begin, hooks_login_ask),       \
                                ASKING(POSTRUN, NULL, NULL, hooks_logout_ask))

#define TASK_ROWS(ROW)                                                                             \
    ROW(VALIDATE,  checks_user, LOOP(PRESTART, hooks_validate))                                    \
    ROW(TASK_DIR,  always,                                                                         \
                                POOL_BEGUN(PRESTART, hooks_task_dir_build, hooks_task_dir_begin),  \
                                POOL(STOP,     hooks_task_dir_strip))                              \
    ROW(LOGS,      keeps_logs,  POOL(PRESTART, hooks_logs_prepare))                                \
    ROW(VOLUMES,   has_volumes, LOOP(PRESTART, hooks_volumes))                                     \
    ROW(NETWORK,   has_network, LINE_BEGUN(PRESTART, hooks_network_join, hooks_network_begin))     \
    ROW(CSI_PLUGIN, is_plugin,                                                                     \
        POOL_BEGUN(PRESTART, hooks_csi_plugin_prepare, hooks_csi_plugin_begin),                    \
        LOOP(POSTSTART, hooks_csi_plugin_started),                                                 \
        LOOP(EXITED, hooks_csi_plugin_ended),                                                      \
        POOL_BEGUN(STOP, hooks_csi_plugin_remove, hooks_csi_plugin_removed))                       \
    ROW(ARTIFACTS, has_artifacts,                                                                  \
        PROCESS(PRESTART, hooks_artifacts_prepare, hooks_artifacts_begin, NULL, NULL))             \
    ROW(TEMPLATE,  has_templates,                                                                  \
        ASKING(PRESTART, NULL, hooks_render_begin, hooks_render_ask),                              \
        LOOP_BEGUN(POSTSTART, hooks_watch, hooks_render_begin),                                    \
        LOOP(STOP, hooks_watch_end))                                                               \
    ROW(DEVICES,   has_devices,                                                                    \
        ASKING(PRESTART, NULL, hooks_devices_begin, hooks_devices_ask))                            \
    ROW(IDENTITY,  has_identities,                                                                 \
        ASKING(PRESTART, hooks_identities_write, hooks_identities_begin, hooks_identities_ask),    \
        LOOP_BEGUN(POSTSTART, hooks_renew, hooks_identities_begin))                                \
    ROW(SI_TOKEN,  is_in_mesh,                                                                     \
        ASKING(PRESTART, NULL, hooks_si_token_begin, hooks_si_token_ask))                          \
    ROW(ENVOY_VERSION, is_proxy, LOOP(PRESTART,  hooks_envoy_version))                             \
    ROW(ENVOY_BOOTSTRAP, is_proxy,                                                                 \
        ASKING(PRESTART, NULL, hooks_bootstrap_begin, hooks_bootstrap_ask))                        \
    ROW(CONNECT_NATIVE, is_native,                                                                 \
        POOL_BEGUN(PRESTART, hooks_native, hooks_native_begin))                                    \
    ROW(CONSUL, has_consul_token,                                                                  \
        POOL_BEGUN(PRESTART, hooks_consul_token_write, hooks_consul_token_begin))
/* clang-format on */

#define ROW(name, needs, ...) {needs, {__VA_ARGS__}},
static const struct hook_row alloc_rows[] = {ALLOC_ROWS(ROW)};
static const struct hook_row task_rows[] = {TASK_ROWS(ROW)};
#undef ROW

/* The place of each row, to be compared with that of its name in the machines' lists. */
#define ROW(name, ...) PLACE_ALLOC_##name,
enum { ALLOC_ROWS(ROW) PLACE_ALLOC_COUNT };
#undef ROW
#define ROW(name, ...) PLACE_TASK_##name,
enum { TASK_ROWS(ROW) PLACE_TASK_COUNT };
#undef ROW
#define X(name, text)                                                                              \
    _Static_assert((int)PLACE_ALLOC_##name == (int)ALLOC_HOOK_##name, "row out of order: " text);
ALLOC_HOOKS(X)
#undef X
#define X(name, text)                                                                              \
    _Static_assert((int)PLACE_TASK_##name == (int)TASK_HOOK_##name, "row out of order: " text);
TASK_HOOKS(X)
#undef X
_Static_assert((int)PLACE_ALLOC_COUNT == (int)ALLOC_HOOK_COUNT, "a row too many");
_Static_assert((int)PLACE_TASK_COUNT == (int)TASK_HOOK_COUNT, "a row too many");

const struct hook_row *hooks_row(bool task, unsigned hook)
{
    check(hook < (task ? COUNT_OF(task_rows) : COUNT_OF(alloc_rows)));
    return task ? &task_rows[hook] : &alloc_rows[hook];
}

/* The bits of the hooks that have something to do in PHASE. */
static uint32_t mask_of(const struct hook_subject *subject, enum hook_phase phase)
{
    bool task = subject->task != NULL;
    unsigned count = task ? (unsigned)TASK_HOOK_COUNT : (unsigned)ALLOC_HOOK_COUNT;
    uint32_t mask = 0;

    for (unsigned hook = 0; hook < count; hook++) {
        const struct hook_row *row = hooks_row(task, hook);
        if (row->steps[phase].where != HOOK_ABSENT && row->needs(subject))
            mask |= 1u << hook;
    }
    return mask;
}

void hooks_plan_alloc(const struct alloc_spec *alloc, struct alloc_assign *assign)
{
    struct hook_subject subject = {.alloc = alloc, .takes_disk = assign->disk_from[0] != '\0'};

    assign->hooks_prerun = mask_of(&subject, PHASE_PRERUN);
    assign->hooks_prekill = mask_of(&subject, PHASE_PREKILL);
    assign->hooks_postrun = mask_of(&subject, PHASE_POSTRUN);
    assign->hooks_destroy = mask_of(&subject, PHASE_DESTROY);
}

void hooks_plan_task(const struct alloc_spec *alloc, const struct task_spec *task,
                     const struct spec_driver *driver, struct task_define *define)
{
    struct hook_subject subject = {.alloc = alloc, .task = task, .driver = driver};

    check(task != NULL);
    define->hooks_prestart = mask_of(&subject, PHASE_PRESTART);
    define->hooks_poststart = mask_of(&subject, PHASE_POSTSTART);
    define->hooks_prekill = mask_of(&subject, PHASE_PREKILL);
    define->hooks_exited = mask_of(&subject, PHASE_EXITED);
    define->hooks_stop = mask_of(&subject, PHASE_STOP);
}
