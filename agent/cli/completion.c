/*
 * cairn completion: a shell script made from the table of verbs, so that it is never out of date.
 *
 * Ids are asked of the agent when they are wanted, for a moment, and of one that does not answer
 * there are none.  The script takes them for text alone: who names a job does not name a command.
 */
#include "agent/cli/cli.h"

#include <string.h>

enum { ASKS_MS = 1000 };

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

/* What the first argument of a group's verbs is an id of, as searches call it; and NODE. */
static const char *const kinds[][2] = {
    {"alloc", " allocs"},
    {"deployment", " deployment"},
    {"eval", " evals"},
    {"job", " jobs"},
    {"node", " nodes"},
    {"plugin", " plugins"},
    {"volume", " volumes host_volumes"},
};

static void print_ids_of(const struct cli_verb *verb)
{
    char name[CLI_NAME_SIZE];

    for (size_t i = 0; verb->arguments != NULL && i < COUNT_OF(kinds); i++) {
        if (!text_equal(verb->group, kinds[i][0]) || (!text_starts_with(verb->arguments, "ID") &&
                                                      !text_starts_with(verb->arguments, "[ID]")))
            continue;
        cli_verb_name(verb, name);
        (void)printf("    \"%s\") kinds=\"%s%s\" ;;\n", name, kinds[i][1],
                     strstr(verb->arguments, " NODE") != NULL ? " nodes" : "");
    }
}

static void print_bash(const struct cli *cli)
{
    (void)fputs("# bash completion for cairn; made by: cairn completion bash\n"
                "_cairn() {\n"
                "  local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} words= kinds= id\n"
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
    (void)fputs("    esac ;;\n    esac\n"
                "  else\n"
                "    case \"$verb ${COMP_WORDS[2]}\" in\n",
                stdout);
    for (size_t i = 0; i < cli->verbs_count; i++)
        print_ids_of(cli->verbs[i]);
    (void)fputs("    esac\n  fi\n"
                "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
                "  [ -z \"$kinds\" ] || while IFS= read -r id; do\n"
                "    COMPREPLY+=(\"$(printf %q \"$id\")\")\n"
                "  done < <(cairn completion ids \"${word//\\\\/}\" $kinds 2>/dev/null)\n"
                "}\n"
                "complete -o default -F _cairn cairn\n",
                stdout);
}

/* Of everything that is of one of the kinds named. */
static int print_ids(struct cli *cli)
{
    char path[CLI_URL_SIZE];
    json_t *body = json_pack("{s:s, s:s}", "Prefix", cli_argument(cli, 1), "Context", "all");
    json_t *answer, *id;
    size_t n;

    if (body == NULL)
        return cli_fail(CLI_USAGE, "what an id begins with is UTF-8");
    cli->patience_ms = ASKS_MS;
    int status = cli_put(cli, cli_path(cli, path, "/v1/search"), body, &answer);
    json_decref(body);
    if (status != 0)
        return status;
    for (size_t i = 2; cli_argument(cli, i) != NULL; i++) {
        const json_t *matches = json_object_get(answer, "Matches");

        json_array_foreach(json_object_get(matches, cli_argument(cli, i)), n, id)(void)
            puts(json_is_string(id) ? json_string_value(id) : "");
    }
    json_decref(answer);
    return CLI_OK;
}

static int run_completion(struct cli *cli)
{
    if (text_equal(cli_argument(cli, 0), "ids") && cli->arguments_count >= 3)
        return print_ids(cli);
    if (!text_equal(cli_argument(cli, 0), "bash"))
        return cli_fail(CLI_USAGE, "there is a completion for bash, not for \"%.60s\"",
                        cli_argument(cli, 0));
    print_bash(cli);
    return CLI_OK;
}

const struct cli_verb cli_completion = {
    .group = "",
    .name = "completion",
    .arguments = "bash | ids BEGIN KIND...",
    .min = 1,
    .max = 8,
    .summary = "Print a script that completes commands, flags and ids in a shell",
    .help = "Ids are asked of the agent that NOMAD_ADDR names, which has a second to answer.\n"
            "\n"
            "    $ source <(cairn completion bash)",
    .run = run_completion,
};
