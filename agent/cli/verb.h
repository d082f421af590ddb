/*
 * A verb of the command line: a struct with its help and its flags beside its code; main.c lists
 * all of them.
 */
#ifndef CAIRN_AGENT_CLI_VERB_H
#define CAIRN_AGENT_CLI_VERB_H

#include "base/base.h"

#include <stdint.h>

/* Exit statuses; documented in cairn.1. */
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,      /* it could not be done */
    CLI_UNHEALTHY = 2,   /* job run: an alloc failed */
    CLI_USAGE = 3,       /* wrong arguments */
    CLI_UNREACHABLE = 4, /* no agent answers */
    CLI_CHANGES = 5,     /* job plan: allocs would be placed or stopped */
};

enum cli_flag_kind { FLAG_SWITCH, FLAG_TEXT, FLAG_NUMBER };

struct cli_flag {
    const char *name; /* without dashes; NULL ends a list */
    enum cli_flag_kind kind;
    const char *value; /* what follows it, for the help: "DIR" */
    const char *help;
};

struct cli;

struct cli_verb {
    const char *group; /* "job", or "" for a verb that stands alone */
    const char *name;
    const char *arguments;        /* for the help: "[ID]" */
    uint8_t min, max;             /* how many arguments */
    bool is_local;                /* does not talk with an agent: no -address and so on */
    bool takes_command;           /* what stands behind the first argument is no flag */
    bool takes_moments;           /* -5m is an argument: no flag begins with a digit */
    const char *summary;          /* one line */
    const char *help;             /* paragraphs and examples */
    const struct cli_flag *flags; /* its own, or NULL */
    int (*run)(struct cli *cli);
};

/* Runs what the command line says; the process's exit status. */
int cli_main(const struct cli_verb *const *verbs, size_t verbs_count, int argc, char **argv);

extern const struct cli_verb cli_agent, cli_version, cli_completion, cli_monitor, cli_system_gc,
    cli_status;
extern const struct cli_verb cli_job_run, cli_job_stop, cli_job_status, cli_job_validate,
    cli_job_plan, cli_job_inspect, cli_job_history, cli_job_revert, cli_job_tag, cli_job_promote,
    cli_job_scale, cli_job_dispatch, cli_job_periodic, cli_job_scaling_events, cli_job_eval,
    cli_job_start, cli_job_restart, cli_job_action;
extern const struct cli_verb cli_eval_list, cli_eval_status;
extern const struct cli_verb cli_acl_bootstrap, cli_acl_policy, cli_acl_token;
extern const struct cli_verb cli_scaling_policy;
extern const struct cli_verb cli_service_list, cli_service_info;
extern const struct cli_verb cli_deployment_list, cli_deployment_status, cli_deployment_promote,
    cli_deployment_pause, cli_deployment_resume, cli_deployment_fail;
extern const struct cli_verb cli_alloc_status, cli_alloc_logs, cli_alloc_restart, cli_alloc_signal,
    cli_alloc_stop, cli_alloc_fs, cli_alloc_exec, cli_alloc_checks;
extern const struct cli_verb cli_node_status, cli_node_eligibility, cli_node_drain, cli_node_meta,
    cli_node_config;
extern const struct cli_verb cli_operator_metrics;
extern const struct cli_verb cli_plugin_status;
extern const struct cli_verb cli_volume_status, cli_volume_init, cli_volume_register,
    cli_volume_create, cli_volume_detach, cli_volume_deregister, cli_volume_delete,
    cli_volume_snapshot;
extern const struct cli_verb cli_sim;
extern const struct cli_verb cli_fsm_list, cli_fsm_show, cli_fsm_dot, cli_fsm_mermaid;
extern const struct cli_verb cli_journal_list, cli_journal_show, cli_journal_log, cli_journal_at,
    cli_journal_diff, cli_journal_verify, cli_journal_timeline, cli_journal_restore,
    cli_journal_stats, cli_journal_export, cli_journal_import, cli_journal_compact,
    cli_journal_salvage, cli_journal_quarantine;

#endif
