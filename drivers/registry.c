/* The drivers there are. */
#include "drivers/external/external.h"

#include "spec/names.h"

static const struct driver *const all_drivers[] = {&docker_driver, &exec_driver, &java_driver,
                                                   &mock_driver, &raw_exec_driver};

_Static_assert(COUNT_OF(all_drivers) <= DRIVERS_MAX, "they do not fit");

bool driver_is_own(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(all_drivers); i++) {
        if (text_equal(all_drivers[i]->kind.name, name))
            return true;
    }
    return false;
}

const struct driver *driver_at(const struct drivers *drivers, size_t i)
{
    size_t own = COUNT_OF(all_drivers);

    if (i < own)
        return all_drivers[i];
    return drivers != NULL && i - own < drivers->external_count
               ? &drivers->external[i - own]->driver
               : NULL;
}

const struct driver *driver_named(const struct drivers *drivers, const char *name)
{
    const struct driver *driver;

    for (size_t i = 0; (driver = driver_at(drivers, i)) != NULL; i++) {
        if (text_equal(driver->kind.name, name))
            return driver;
    }
    return NULL;
}

const struct spec_driver *driver_kind(const struct drivers *drivers, const char *name)
{
    const struct driver *driver = driver_named(drivers, name);

    return driver == NULL ? NULL : &driver->kind;
}

int driver_check_signals(const struct spec_driver *kind, struct err *err)
{
    if (kind == NULL || kind->signals)
        return 0;
    return err_set(err, ERR_UNSUPPORTED, "task driver \"%s\" does not support signals", kind->name);
}

int driver_check_commands(const struct spec_driver *kind, struct err *err)
{
    if (kind == NULL || kind->runs_commands)
        return 0;
    return err_set(err, ERR_UNSUPPORTED,
                   "task driver \"%s\" does not support commands in its tasks", kind->name);
}

/* What becomes of a task when its template has changed. */
static int check_change(const struct spec_driver *kind, const struct task_spec *task,
                        const struct spec_template *template, struct err *err)
{
    if (template->change == SPEC_CHANGE_SIGNAL && !kind->signals)
        return err_set(err, ERR_INVALID,
                       "task driver \"%s\" for \"%s\" does not support signals: use another "
                       "change_mode",
                       kind->name, task->name);
    if (template->change == SPEC_CHANGE_SCRIPT && !kind->runs_commands)
        return err_set(err, ERR_INVALID,
                       "task driver \"%s\" for \"%s\" does not support commands in its tasks: use "
                       "another change_mode",
                       kind->name, task->name);
    return 0;
}

int driver_check_kind(const struct spec_driver *kind, const struct alloc_spec *alloc,
                      const struct task_spec *task, struct err *err)
{
    int code = 0;

    if (task->volume_mounts_count > 0 && !kind->mounts)
        return err_set(err, ERR_INVALID, "task driver \"%s\" for \"%s\" does not support %s",
                       kind->name, task->name,
                       spec_mounts_claim(alloc, task)
                           ? "CSI: use one that can mount, as exec"
                           : "host volumes: remove its volume_mount, the task sees the host's own "
                             "files");
    if (spec_has_namespace(alloc) && !kind->enters_network)
        return err_set(err, ERR_INVALID, "%s: task \"%s\" does not support \"%s\" networking mode",
                       kind->name, task->name, alloc->network_mode);
    for (size_t i = 0; i < task->templates_count && code == 0; i++)
        code = check_change(kind, task, &task->templates[i], err);
    return code;
}

/* The alloc claims volumes of storage plugins, and no task of it can see them; what nobody can use
 * is not claimed, as with Nomad. */
static bool claims_in_vain(const struct drivers *drivers, const struct alloc_spec *alloc)
{
    bool claims = false;

    for (size_t i = 0; i < alloc->volumes_count; i++)
        claims |= alloc->volumes[i].type == VOLUME_CSI;
    for (size_t i = 0; claims && i < alloc->tasks_count; i++) {
        const struct spec_driver *kind = driver_kind(drivers, alloc->tasks[i].driver);
        claims = kind == NULL || !kind->mounts;
    }
    return claims;
}

int driver_validate(const struct drivers *drivers, const struct alloc_spec *alloc,
                    const struct task_spec *task, struct err *err)
{
    const struct driver *driver = driver_named(drivers, task->driver);

    if (driver == NULL)
        return err_set(err, ERR_INVALID, "unknown driver \"%s\"", task->driver);
    if (task->kill_signal[0] != '\0' && proc_signal_number(task->kill_signal) == 0)
        return err_set(err, ERR_INVALID, "unknown kill_signal \"%s\"", task->kill_signal);
    int code = driver_check_kind(&driver->kind, alloc, task, err);
    if (code == 0 && claims_in_vain(drivers, alloc))
        code =
            err_set(err, ERR_INVALID,
                    "task driver \"%s\" for \"%s\" does not support CSI, and no task of the group "
                    "has one that does: use one that can mount, as exec, or remove its volumes",
                    task->driver, task->name);
    if (code != 0 || driver->way == WAY_PLUGIN) /* whose schema is asked when variables are known */
        return code;
    return command_check(driver, task, err);
}
