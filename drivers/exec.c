/*
 * The driver exec: a program with a root, processes and rights of its own.
 *
 * Follows nomad v2.0.5 drivers/exec/driver.go and drivers/shared/capabilities: the default set is
 * granted as far as the node allows it, less what the task drops; what it adds has to be allowed.
 * There, root gets nearly everything all the same, and any other user has the whole set in effect.
 * Here the set bounds what anybody in the payload can ever have, root too; a user has in effect
 * what the task adds by name.  How it is done is told in drivers/shim/isolate.c.
 */
#include "drivers/part.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <sys/capability.h>
#include <unistd.h>

static const struct config_key keys[] = {
    {"command", CONFIG_TEXT, offsetof(struct command, program), NULL},
    {"args", CONFIG_TEXTS, offsetof(struct command, arguments), NULL},
    ISOLATED_KEYS,
};

/* --- capabilities --- */

#define BIT(name) ((uint64_t)1 << CAP_##name)

const uint64_t driver_default_capabilities = BIT(AUDIT_WRITE) | BIT(CHOWN) | BIT(DAC_OVERRIDE) |
                                             BIT(FOWNER) | BIT(FSETID) | BIT(KILL) | BIT(MKNOD) |
                                             BIT(NET_BIND_SERVICE) | BIT(SETFCAP) | BIT(SETGID) |
                                             BIT(SETPCAP) | BIT(SETUID) | BIT(SYS_CHROOT);

bool driver_capability(const char *name, uint64_t *ret_set)
{
    char full[64];
    cap_value_t value;

    if (strcasecmp(name, "all") == 0) {
        *ret_set = ((uint64_t)1 << cap_max_bits()) - 1;
        return true;
    }
    bool fits = text_format(full, sizeof(full), "%s%s",
                            strncasecmp(name, "cap_", 4) == 0 ? "" : "cap_", name);
    for (char *at = full; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    if (!fits || cap_from_name(full, &value) != 0 || value >= cap_max_bits())
        return false;
    *ret_set = (uint64_t)1 << value;
    return true;
}

static int add_up(const char *driver, const char *key, const struct texts *names, uint64_t *ret_set,
                  struct err *err)
{
    *ret_set = 0;
    for (size_t i = 0; i < names->count; i++) {
        uint64_t set;

        if (!driver_capability(names->items[i], &set))
            return err_set(err, ERR_INVALID, "%s: %s: this machine knows no capability \"%s\"",
                           driver, key, names->items[i]);
        *ret_set |= set;
    }
    return 0;
}

/* The first of SET, for a message. */
static const char *name_one(uint64_t set, char to[64])
{
    cap_value_t value = 0;

    while ((set >> value & 1) == 0)
        value++;
    char *name = cap_to_name(value);
    (void)text_copy(to, 64, name == NULL ? "?" : name); /* they are short */
    (void)cap_free(name);
    return to;
}

/* --- config --- */

static int check_mode(const char *driver, const char *key, const struct command *command,
                      const char *mode, struct err *err)
{
    if (mode == NULL || text_equal(mode, "private") || text_equal(mode, "host") ||
        config_is_open(command, mode))
        return 0;
    return err_set(err, ERR_INVALID, "%s: \"%s\" must be \"private\" or \"host\", not \"%s\"",
                   driver, key, mode);
}

int isolated_check(const char *driver, const struct command *command, struct err *err)
{
    uint64_t ignored;
    int code = check_mode(driver, "pid_mode", command, command->pid_mode, err);

    if (code == 0)
        code = check_mode(driver, "ipc_mode", command, command->ipc_mode, err);
    if (code == 0)
        code = add_up(driver, "cap_add", &command->cap_add, &ignored, err);
    if (code == 0)
        code = add_up(driver, "cap_drop", &command->cap_drop, &ignored, err);
    return code != 0 ? code : config_check_work_dir(driver, command, err);
}

static int check_config(const struct command *command, struct err *err)
{
    int code = config_check_program("exec", command, err);

    return code != 0 ? code : isolated_check("exec", command, err);
}

static bool is_own(const char *mode, bool is_shared)
{
    return mode == NULL ? !is_shared : text_equal(mode, "private");
}

int isolated_prepare(const char *driver, const struct drivers_exec *exec, struct command *command,
                     struct err *err)
{
    struct isolation *isolation = &command->isolation;
    uint64_t added = 0, dropped = 0;
    char name[64];
    int code = add_up(driver, "cap_add", &command->cap_add, &added, err);

    if (code == 0)
        code = add_up(driver, "cap_drop", &command->cap_drop, &dropped, err);
    if (code != 0)
        return code;
    if ((added & ~exec->allowed_capabilities) != 0)
        return err_set(err, ERR_REFUSED,
                       "%s: this node does not allow the capability %s (allow_caps of plugin "
                       "\"%s\")",
                       driver, name_one(added & ~exec->allowed_capabilities, name), driver);
    isolation->parts = LAUNCH_OWN_ROOT |
                       (is_own(command->pid_mode, exec->shares_pids) ? LAUNCH_OWN_PIDS : 0) |
                       (is_own(command->ipc_mode, exec->shares_ipc) ? LAUNCH_OWN_IPC : 0);
    isolation->bounding =
        (driver_default_capabilities & exec->allowed_capabilities & ~dropped) | added;
    /* Who listens on port 80 is rarely root; the rest of the set would make anybody nearly that. */
    isolation->ambient = added | (isolation->bounding & BIT(NET_BIND_SERVICE));
    isolation->root = &exec->root;
    command->denied = &exec->denied;
    command->has_cgroup = true;
    command->has_limits = true;
    return 0;
}

static int prepare(const struct drivers *drivers, const struct driver_probed *probed,
                   struct command *command, struct err *err)
{
    (void)probed;
    return isolated_prepare("exec", &drivers->config.exec, command, err);
}

bool isolated_look(const struct drivers *drivers, const struct drivers_exec *exec,
                   char ret_why[ERR_TEXT_SIZE])
{
    const char *why = exec->disabled   ? "disabled"
                      : geteuid() != 0 ? "Driver must run as root"
                      : drivers->config.cgroup_mode == CGROUP_NONE
                          ? "Failed to discover cgroup mount point"
                          : NULL;

    if (why != NULL)
        (void)text_copy(ret_why, ERR_TEXT_SIZE, why); /* fits */
    return why == NULL;
}

static bool look(const struct drivers *drivers, char ret_why[ERR_TEXT_SIZE])
{
    return isolated_look(drivers, &drivers->config.exec, ret_why);
}

const struct driver exec_driver = {
    .kind = {.name = "exec",
             .isolation = ISOLATION_CHROOT,
             .checks_user = true,
             .user = "nobody",
             .mounts = true,
             .enters_network = true,
             .signals = true,
             .runs_commands = true},
    .stop_signal = "SIGINT",
    .keys = keys,
    .keys_count = COUNT_OF(keys),
    .validate = check_config,
    .prepare = prepare,
    .look = look,
};
