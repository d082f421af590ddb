/* cairn: which verbs there are. */
#include "agent/cli/verb.h"

static const struct cli_verb *const verbs[] = {
    /* clang-format off */
    &cli_agent,
    &cli_job_run,
    &cli_job_stop,
    &cli_job_status,
    &cli_job_validate,
    &cli_job_plan,
    &cli_job_inspect,
    &cli_job_history,
    &cli_job_revert,
    &cli_job_promote,
    &cli_deployment_list,
    &cli_deployment_status,
    &cli_deployment_promote,
    &cli_deployment_pause,
    &cli_deployment_resume,
    &cli_deployment_fail,
    &cli_alloc_status,
    &cli_alloc_logs,
    &cli_alloc_restart,
    &cli_alloc_signal,
    &cli_alloc_stop,
    &cli_alloc_fs,
    &cli_node_status,
    &cli_plugin_status,
    &cli_status,
    &cli_system_gc,
    &cli_monitor,
    &cli_fsm_list,
    &cli_fsm_show,
    &cli_fsm_dot,
    &cli_fsm_mermaid,
    &cli_journal_list,
    &cli_journal_show,
    &cli_journal_log,
    &cli_journal_at,
    &cli_journal_diff,
    &cli_journal_verify,
    &cli_journal_timeline,
    &cli_journal_restore,
    &cli_journal_stats,
    &cli_journal_export,
    &cli_journal_import,
    &cli_journal_salvage,
    &cli_journal_compact,
    &cli_journal_quarantine,
    &cli_sim,
    &cli_completion,
    &cli_version,
    /* clang-format on */
};

int main(int argc, char **argv)
{
    return cli_main(verbs, COUNT_OF(verbs), argc, argv);
}
