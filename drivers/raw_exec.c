/*
 * The driver raw_exec: a program of the host, without isolation.
 *
 * Follows nomad v2.0.5 drivers/rawexec/driver.go; stops with SIGINT unless the task says otherwise.
 */
#include "drivers/part.h"

#include <stddef.h>
#include <unistd.h>

static const char own_cgroup[] = "a task is found again, and ended, by a cgroup of its own";

static const struct config_key keys[] = {
    {"command", CONFIG_TEXT, offsetof(struct command, program), NULL},
    {"args", CONFIG_TEXTS, offsetof(struct command, arguments), NULL},
    {"work_dir", CONFIG_TEXT, offsetof(struct command, work_dir), NULL},
    {"oom_score_adj", CONFIG_NUMBER, offsetof(struct command, oom_score_adj), NULL},
    {"denied_envvars", CONFIG_TEXTS, offsetof(struct command, denied_env), NULL},
    {"cgroup_v1_override", CONFIG_REFUSED, 0, own_cgroup},
    {"cgroup_v2_override", CONFIG_REFUSED, 0, own_cgroup},
};

static int check_config(const struct command *command, struct err *err)
{
    int code = config_check_program("raw_exec", command, err);

    if (code == 0 && (command->oom_score_adj < 0 || command->oom_score_adj > 1000))
        code = err_set(err, ERR_INVALID, "raw_exec: \"oom_score_adj\" must be 0 to 1000");
    return code != 0 ? code : config_check_work_dir("raw_exec", command, err);
}

static int prepare(const struct drivers *drivers, const struct driver_probed *probed,
                   struct command *command, struct err *err)
{
    (void)probed;
    (void)err;
    command->node_denied_env = drivers->config.raw_exec_denied_env;
    command->denied = &drivers->config.raw_exec_denied;
    command->has_cgroup = !drivers->config.raw_exec_no_cgroups;
    /* Who may make cgroups for us on v2 has handed down its controllers; those of v1 are root's. */
    command->has_limits =
        command->has_cgroup && (geteuid() == 0 || drivers->config.cgroup_mode == CGROUP_V2);
    return 0;
}

static bool look(const struct drivers *drivers, char ret_why[ERR_TEXT_SIZE])
{
    if (!drivers->config.raw_exec_enabled)
        (void)text_copy(ret_why, ERR_TEXT_SIZE, "disabled"); /* fits */
    return drivers->config.raw_exec_enabled;
}

const struct driver raw_exec_driver = {
    .kind = {.name = "raw_exec",
             .isolation = ISOLATION_NONE,
             .user = "",
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
