/*
 * What is known of each driver: looked at when the room opens, and again and again from then on.
 *
 * One that is there and not well is looked at sooner than others, then less and less often.  The
 * timer that looks is the room's and ends with it, so nothing is tried on the way out.
 */
#include "drivers/part.h"

#include "io/log.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_EVERY_MS = 30000, LOOK_AGAIN_MS = 500, PROBE_AFTER_MS = 500 };

/* --- looking --- */

const char *manager_denial(const struct drivers_config *config, const char *name)
{
    const char *allowed = config->allowlist, *denied = config->denylist;

    if (denied != NULL && text_lists(denied, name))
        return "not allowed by driver.denylist";
    if (allowed != NULL && allowed[strspn(allowed, " ,")] != '\0' && !text_lists(allowed, name))
        return "not allowed by driver.allowlist";
    return NULL;
}

/* What payloads of DRIVER are started with is there, or why not. */
static bool can_supervise(const struct drivers *drivers, char ret_why[ERR_TEXT_SIZE])
{
    char shims[CGROUP_NAME_SIZE];
    struct err err = {0};

    if (access(drivers->shim_path, X_OK) != 0) {
        (void)text_format(ret_why, ERR_TEXT_SIZE, "%s: %s", drivers->shim_path,
                          strerror(errno)); /* may be cut */
        return false;
    }
    shims_cgroup(drivers, shims);
    if (cgroup_create(drivers->config.cgroup_mode, shims, &err) == 0)
        return true;
    (void)text_copy(ret_why, ERR_TEXT_SIZE, err.text);
    return false;
}

const struct driver_probed *manager_probed(const struct drivers *drivers,
                                           const struct driver *driver)
{
    size_t i = 0;

    while (driver_at(drivers, i) != driver)
        i++;
    return &drivers->probed[i];
}

static void take_probed(const struct driver_probed *probed, struct driver_info *info)
{
    info->detected = probed->found;
    if (!probed->found)
        (void)text_copy(info->description, sizeof(info->description),
                        probed->done ? probed->why : "not known yet"); /* fits */
    else if (probed->ill)
        (void)text_copy(info->description, sizeof(info->description), probed->why); /* fits */
    info->attributes_count = probed->attributes_count;
    memcpy(info->attributes, probed->attributes, sizeof(info->attributes));
}

bool manager_look(const struct drivers *drivers, const struct driver *driver,
                  struct driver_info *ret_info)
{
    const char *denied = manager_denial(&drivers->config, driver->kind.name);
    struct driver_info info = {.name = driver->kind.name};

    if (denied != NULL)
        (void)text_copy(info.description, sizeof(info.description), denied); /* fits */
    else if (driver->way == WAY_PLUGIN)
        table_tell(drivers, driver, &info);
    else
        info.detected = driver->look(drivers, info.description);
    if (driver->way == WAY_PLUGIN) {
        info.asked = true;
        *ret_info = info;
        return info.detected;
    }
    bool may_be = info.detected && driver->probe != NULL && !manager_probed(drivers, driver)->done;
    if (info.detected && driver->probe != NULL)
        take_probed(manager_probed(drivers, driver), &info);
    bool is_ill = driver->probe != NULL && manager_probed(drivers, driver)->ill;
    info.healthy = info.detected && !is_ill &&
                   (driver->way != WAY_SHIM || can_supervise(drivers, info.description));
    info.asked = !may_be;
    if (info.healthy)
        (void)text_copy(info.description, sizeof(info.description), "Healthy");
    *ret_info = info;
    return info.detected || may_be;
}

/* --- what is told --- */

static const char *health_of(const struct driver_info *info)
{
    return info->healthy ? "healthy" : info->detected ? "unhealthy" : "undetected";
}

static void tell_all(const struct drivers *drivers)
{
    char text[LOG_LINE_SIZE / 2] = "";

    for (size_t i = 0; i < drivers->infos_count; i++) {
        const struct driver_info *info = &drivers->infos[i];
        char one[ERR_TEXT_SIZE + 64];

        (void)text_format(one, sizeof(one), "%s%s=%s%s%s%s", i == 0 ? "" : " ", info->name,
                          health_of(info), info->healthy ? "" : " (",
                          info->healthy ? "" : info->description,
                          info->healthy ? "" : ")"); /* a line may be cut */
        (void)text_append(text, sizeof(text), one);
    }
    log_info("drivers", "%s", text);
}

static void tell_change(const struct driver_info *info)
{
    if (info->healthy)
        log_info("drivers", "driver is healthy driver=%s", info->name);
    else
        log_warn("drivers", "driver is %s, what asks for it waits driver=%s reason=%s",
                 health_of(info), info->name, log_value(info->description));
}

/* --- again and again --- */

static void look_at_all(struct drivers *drivers);

static bool is_same(const struct driver_info *a, const struct driver_info *b)
{
    bool same = a->attributes_count == b->attributes_count;

    for (size_t i = 0; same && i < a->attributes_count; i++)
        same = text_equal(a->attributes[i].value, b->attributes[i].value);
    return same && a->detected == b->detected && a->healthy == b->healthy &&
           text_equal(a->description, b->description) && (a->more == NULL) == (b->more == NULL) &&
           (a->more == NULL || json_equal(a->more, b->more));
}

/* True if there is something else to say of driver I. */
static bool look_at(struct drivers *drivers, size_t i)
{
    struct driver_info *known = &drivers->infos[i], info;

    (void)manager_look(drivers, driver_at(drivers, i), &info); /* the info says it */
    info.since_unix_ns = known->since_unix_ns;
    if (known->name != NULL && is_same(known, &info))
        return false;
    info.since_unix_ns = loop_now_unix_ns();
    json_decref((json_t *)(uintptr_t)known->more);
    *known = info;
    known->more = json_incref((json_t *)(uintptr_t)info.more);
    return true;
}

static void on_time(struct io_timer *timer)
{
    drivers_look_again(timer->ctx);
}

/* The sooner the shorter something has been amiss, and when it is known that something will be. */
static void arm(struct drivers *drivers)
{
    const struct drivers_mock *mock = &drivers->config.mock;
    uint64_t now_ms = loop_now_ms(), at_ms = now_ms + LOOK_EVERY_MS;
    uint64_t ends_ms = drivers->opened_ms + mock->shutdown_after_ms;
    bool amiss = false;

    for (size_t i = 0; i < drivers->infos_count; i++)
        amiss |= drivers->infos[i].detected && !drivers->infos[i].healthy;
    if (!amiss)
        drivers->wait_ms = 0;
    else if (drivers->wait_ms == 0)
        drivers->wait_ms = LOOK_AGAIN_MS;
    else if (drivers->wait_ms < LOOK_EVERY_MS / 2)
        drivers->wait_ms *= 2;
    if (amiss)
        at_ms = now_ms + drivers->wait_ms;
    if (mock->enabled && mock->shuts_down && ends_ms > now_ms && ends_ms < at_ms)
        at_ms = ends_ms;
    io_timer_start(drivers->config.loop, &drivers->look, at_ms, on_time, drivers);
}

/* --- what has to be asked --- */

struct probe {
    struct io_work work;
    struct drivers_config config; /* what it borrows outlives the loop */
    struct drivers *drivers;      /* NULL: nobody waits for it any more */
    struct probe *next;
    size_t driver;
    void (*probe)(const struct drivers_config *config, struct driver_probed *ret_probed);
    struct driver_probed found;
};

static void on_pool(struct io_work *work)
{
    struct probe *probe = work->ctx;

    probe->probe(&probe->config, &probe->found);
}

/* Who has to be asked each time was there, and is there still if he does not answer. */
static void take_found(struct driver_probed *known, const struct driver *driver,
                       const struct driver_probed *found)
{
    if (driver->is_current == NULL && known->found && !found->found) {
        known->ill = true;
        (void)text_copy(known->why, sizeof(known->why), found->why); /* of the same size */
    } else {
        *known = *found;
    }
}

static void on_probed(struct io_work *work)
{
    struct probe *probe = work->ctx, **at;
    struct drivers *drivers = probe->drivers;

    if (drivers != NULL) {
        at = &drivers->probes;
        while (*at != probe)
            at = &(*at)->next;
        *at = probe->next;
        take_found(&drivers->probed[probe->driver], driver_at(drivers, probe->driver),
                   &probe->found);
        look_at_all(drivers);
    }
    free(probe);
}

/* Asks all that have to be asked, and are not asked now. */
static void probe_all(struct drivers *drivers)
{
    char why[ERR_TEXT_SIZE];

    if (drivers->probes != NULL)
        return;
    for (size_t i = 0; i < drivers->infos_count; i++) {
        const struct driver *driver = driver_at(drivers, i);

        bool is_current = driver->probe == NULL ||
                          (driver->is_current != NULL && driver->is_current(&drivers->probed[i]));
        if (is_current || manager_denial(&drivers->config, driver->kind.name) != NULL ||
            !driver->look(drivers, why))
            continue;
        struct probe *probe = calloc(1, sizeof(*probe));
        check(probe != NULL);
        probe->drivers = drivers;
        probe->config = drivers->config;
        probe->driver = i;
        probe->probe = driver->probe;
        probe->next = drivers->probes;
        drivers->probes = probe;
        io_work_submit(drivers->config.loop, &probe->work, on_pool, on_probed, probe);
    }
}

/* What goes on may end: its run is freed then, and no other. */
void drivers_plugin_changed(struct drivers *drivers, const char *name)
{
    look_at_all(drivers);
    for (size_t i = 0; i < drivers->buckets_count; i++) {
        for (struct run *run = drivers->buckets[i], *next; run != NULL; run = next) {
            next = run->next;
            if (run->phase == RUN_EXTERNAL)
                external_plugin_changed(run, name);
        }
    }
}

void manager_close(struct drivers *drivers)
{
    io_timer_stop(&drivers->look);
    for (size_t i = 0; i < drivers->infos_count; i++)
        json_decref((json_t *)(uintptr_t)drivers->infos[i].more);
    for (struct probe *probe = drivers->probes; probe != NULL; probe = probe->next)
        probe->drivers = NULL;
}

void drivers_look_again(struct drivers *drivers)
{
    probe_all(drivers);
    look_at_all(drivers);
}

static void look_at_all(struct drivers *drivers)
{
    bool changed = false;

    table_look(drivers);
    while (driver_at(drivers, drivers->infos_count) != NULL) /* of a plugin that is new */
        drivers->infos[drivers->infos_count++] = (struct driver_info){.name = NULL};
    for (size_t i = 0; i < drivers->infos_count; i++) {
        if (!look_at(drivers, i))
            continue;
        if (drivers->told)
            tell_change(&drivers->infos[i]);
        changed = true;
    }
    if (!drivers->told && drivers->probes == NULL)
        tell_all(drivers);
    drivers->told |= drivers->probes == NULL;
    arm(drivers);
    if (changed && drivers->config.on_change != NULL)
        drivers->config.on_change(drivers->config.ctx);
}

void manager_open(struct drivers *drivers)
{
    while (driver_at(drivers, drivers->infos_count) != NULL)
        (void)look_at(drivers, drivers->infos_count++); /* all of it is new */
    if (drivers->found.count > 0) { /* who is asked is a program: what runs is taken up first */
        io_timer_start(drivers->config.loop, &drivers->look, loop_now_ms() + PROBE_AFTER_MS,
                       on_time, drivers);
        return;
    }
    probe_all(drivers);
    if (drivers->probes == NULL)
        tell_all(drivers);
    drivers->told = drivers->probes == NULL;
    arm(drivers);
}

size_t drivers_list(const struct drivers *drivers, struct driver_info *ret_infos, size_t max)
{
    size_t count = drivers->infos_count < max ? drivers->infos_count : max;

    memcpy(ret_infos, drivers->infos, count * sizeof(*ret_infos));
    return count;
}

bool driver_is_healthy(const struct drivers *drivers, const char *name)
{
    for (size_t i = 0; i < drivers->infos_count; i++) {
        if (text_equal(drivers->infos[i].name, name))
            return drivers->infos[i].healthy;
    }
    return false;
}
