/* cairn: which verbs there are. */
#include "agent/cli.h"
#include "agent/inspect.h"

static const struct cli_verb cli_verb_journal = {
    .group = "",
    .name = "journal",
    .arguments = "VERB ...",
    .is_local = true,
    .summary = "Look into the journal of a node, without the agent",
    .run_raw = cli_journal,
};

static const struct cli_verb *const verbs[] = {
    /* clang-format off */
    &cli_agent,
    &cli_job_run,
    &cli_job_stop,
    &cli_job_status,
    &cli_job_validate,
    &cli_job_inspect,
    &cli_alloc_status,
    &cli_alloc_logs,
    &cli_alloc_restart,
    &cli_alloc_signal,
    &cli_alloc_stop,
    &cli_alloc_fs,
    &cli_node_status,
    &cli_status,
    &cli_system_gc,
    &cli_monitor,
    &cli_verb_journal,
    &cli_fsm_list,
    &cli_fsm_show,
    &cli_fsm_dot,
    &cli_fsm_mermaid,
    &cli_completion,
    &cli_version,
    /* clang-format on */
};

int main(int argc, char **argv)
{
    return cli_main(verbs, COUNT_OF(verbs), argc, argv);
}
