/* cairn completion: a shell script made from the table of verbs, so that it is never out of date.
 */
#include "agent/cli/cli.h"

#include <string.h>

static void print_groups(const struct cli *cli)
{
    for (size_t i = 0; i < cli->verbs_count; i++) {
        const struct cli_verb *verb = cli->verbs[i];
        bool again =
            verb->group[0] != '\0' && i > 0 && text_equal(cli->verbs[i - 1]->group, verb->group);

        if (!again)
            (void)printf(" %s", verb->group[0] != '\0' ? verb->group : verb->name);
    }
}

static void print_group(const struct cli *cli, const char *group)
{
    (void)printf("    %s) words=\"", group);
    for (size_t i = 0; i < cli->verbs_count; i++) {
        if (text_equal(cli->verbs[i]->group, group))
            (void)printf(" %s", cli->verbs[i]->name);
    }
    (void)printf("\" ;;\n");
}

static void print_flags(const struct cli_flag *flags)
{
    for (; flags != NULL && flags->name != NULL; flags++)
        (void)printf(" -%s", flags->name);
}

static void print_verb_flags(const struct cli_verb *verb)
{
    char name[CLI_NAME_SIZE];

    cli_verb_name(verb, name);
    (void)printf("    \"%s\") words=\"", name);
    print_flags(verb->flags);
    if (!verb->is_local)
        print_flags(cli_common_flags);
    (void)printf(" -h\" ;;\n");
}

static void print_bash(const struct cli *cli)
{
    (void)fputs("# bash completion for cairn; made by: cairn completion bash\n"
                "_cairn() {\n"
                "  local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} words=\n"
                "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                "    words=\"",
                stdout);
    print_groups(cli);
    (void)fputs("\"\n  elif [ \"$COMP_CWORD\" -eq 2 ] && [ \"${word:0:1}\" != - ]; then\n"
                "    case $verb in\n",
                stdout);
    for (size_t i = 0; i < cli->verbs_count; i++) {
        const char *group = cli->verbs[i]->group;

        if (group[0] != '\0' && (i == 0 || !text_equal(cli->verbs[i - 1]->group, group)))
            print_group(cli, group);
    }
    (void)fputs("    esac\n  elif [ \"${word:0:1}\" = - ]; then\n"
                "    case \"$verb ${COMP_WORDS[2]}\" in\n",
                stdout);
    for (size_t i = 0; i < cli->verbs_count; i++) {
        if (cli->verbs[i]->group[0] != '\0')
            print_verb_flags(cli->verbs[i]);
    }
    (void)fputs("    *) case $verb in\n", stdout);
    for (size_t i = 0; i < cli->verbs_count; i++) {
        if (cli->verbs[i]->group[0] == '\0')
            print_verb_flags(cli->verbs[i]);
    }
    (void)fputs("    esac ;;\n    esac\n  fi\n"
                "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
                "}\n"
                "complete -o default -F _cairn cairn\n",
                stdout);
}

static int run_completion(struct cli *cli)
{
    if (!text_equal(cli_argument(cli, 0), "bash"))
        return cli_fail(CLI_USAGE, "there is a completion for bash, not for \"%.60s\"",
                        cli_argument(cli, 0));
    print_bash(cli);
    return CLI_OK;
}

const struct cli_verb cli_completion = {
    .group = "",
    .name = "completion",
    .arguments = "bash",
    .min = 1,
    .max = 1,
    .is_local = true,
    .summary = "Print a script that completes commands and flags in a shell",
    .help = "    $ source <(cairn completion bash)",
    .run = run_completion,
};
