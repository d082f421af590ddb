/* cairn fsm: the lifecycles as tables and pictures, straight from what the program runs by. */
#include "agent/cli/cli.h"

#include "fsm/fsm.h"
#include "spec/hcl.h"

#include <string.h>

static void print_text(void *ctx, const char *text)
{
    (void)fputs(text, ctx);
}

/* The lifecycle that the first argument names, or NULL after saying which there are. */
static const struct fsm_def *find_definition(const struct cli *cli)
{
    const char *names[MACHINE_KIND_COUNT];
    const char *name = cli_argument(cli, 0);

    for (unsigned kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
        const struct fsm_def *def = fsm_definition((enum machine_kind)kind);

        if (text_equal(def->name, name))
            return def;
        names[kind] = def->name;
    }
    const char *closest = hcl_closest(name, names, MACHINE_KIND_COUNT);
    (void)cli_fail(CLI_USAGE, "there is no lifecycle \"%.60s\"; %s%s", name,
                   closest != NULL ? "did you mean " : "`cairn fsm list` lists them",
                   closest != NULL ? closest : ""); /* the caller returns it */
    return NULL;
}

static int run_list(struct cli *cli)
{
    struct cli_table table = {0};
    (void)cli;

    cli_row(&table, "Name", "States", "Events", "Rows", "Effects", "Guards");
    for (unsigned kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
        const struct fsm_def *def = fsm_definition((enum machine_kind)kind);

        cli_row(&table, def->name, cli_format("%u", def->states_count),
                cli_format("%u", def->events_count), cli_format("%u", def->rows_count),
                cli_format("%u", def->effects_count - 1U),
                cli_format("%u", def->guards_count - 1U));
    }
    cli_table_print(&table, stdout);
    return CLI_OK;
}

static int draw(struct cli *cli, void (*draw_it)(const struct fsm_def *, fsm_print *, void *))
{
    const struct fsm_def *def = find_definition(cli);

    if (def == NULL)
        return CLI_USAGE;
    draw_it(def, print_text, stdout);
    return CLI_OK;
}

static int run_show(struct cli *cli)
{
    return draw(cli, fsm_draw_matrix);
}

static int run_dot(struct cli *cli)
{
    return draw(cli, fsm_draw_dot);
}

static int run_mermaid(struct cli *cli)
{
    return draw(cli, fsm_draw_mermaid);
}

const struct cli_verb cli_fsm_list = {
    .group = "fsm",
    .name = "list",
    .arguments = "",
    .is_local = true,
    .summary = "List the lifecycles",
    .help = "",
    .run = run_list,
};

const struct cli_verb cli_fsm_show = {
    .group = "fsm",
    .name = "show",
    .arguments = "NAME",
    .min = 1,
    .max = 1,
    .is_local = true,
    .summary = "Print a lifecycle as a matrix of states and events",
    .help = "    $ cairn fsm show task",
    .run = run_show,
};

const struct cli_verb cli_fsm_dot = {
    .group = "fsm",
    .name = "dot",
    .arguments = "NAME",
    .min = 1,
    .max = 1,
    .is_local = true,
    .summary = "Print a lifecycle as a graph for Graphviz",
    .help = "    $ cairn fsm dot task | dot -Tsvg > task.svg",
    .run = run_dot,
};

const struct cli_verb cli_fsm_mermaid = {
    .group = "fsm",
    .name = "mermaid",
    .arguments = "NAME",
    .min = 1,
    .max = 1,
    .is_local = true,
    .summary = "Print a lifecycle as a state diagram for Mermaid",
    .help = "    $ cairn fsm mermaid alloc",
    .run = run_mermaid,
};
