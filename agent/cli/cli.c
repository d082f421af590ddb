/* The command line: finding the verb that it names, and running it. */
#include "agent/cli/cli.h"

#include "spec/hcl.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The verbs of GROUP, or all of them. */
static void print_verbs(const struct cli *cli, const char *group, FILE *to)
{
    (void)fprintf(to, "Usage: cairn %s [FLAGS] [ARGUMENTS]\n\n", group != NULL ? group : "COMMAND");
    for (size_t i = 0; i < cli->verbs_count; i++) {
        char name[CLI_NAME_SIZE];

        if (group != NULL && !text_equal(cli->verbs[i]->group, group))
            continue;
        cli_verb_name(cli->verbs[i], name);
        (void)fprintf(to, "  %-18s  %s\n", name, cli->verbs[i]->summary);
    }
    (void)fputs("\nAll about one of them: cairn COMMAND -h\n", to);
}

/* --- finding the verb --- */

static bool is_help(const char *word)
{
    return text_equal(word, "-h") || text_equal(word, "-help") || text_equal(word, "--help") ||
           text_equal(word, "help");
}

static bool is_group(const struct cli *cli, const char *word)
{
    for (size_t i = 0; i < cli->verbs_count; i++) {
        if (word[0] != '\0' && text_equal(cli->verbs[i]->group, word))
            return true;
    }
    return false;
}

static const struct cli_verb *find_verb(const struct cli *cli, const char *group, const char *name)
{
    for (size_t i = 0; i < cli->verbs_count; i++) {
        if (text_equal(cli->verbs[i]->group, group) && text_equal(cli->verbs[i]->name, name))
            return cli->verbs[i];
    }
    return NULL;
}

static int fail_no_verb(const struct cli *cli, const char *group, const char *word)
{
    const char *why = cli_missing(group, word), *space = group[0] != '\0' ? " " : "";
    size_t count = 0;

    if (why != NULL)
        return cli_fail(CLI_USAGE, "\"%s%s%s\" is Nomad's, and not cairn's: %s", group, space, word,
                        why);
    const char **names = calloc(cli->verbs_count + 1, sizeof(*names));
    check(names != NULL);
    for (size_t i = 0; i < cli->verbs_count; i++) {
        const struct cli_verb *verb = cli->verbs[i];

        if (text_equal(verb->group, group))
            names[count++] = verb->name;
        else if (group[0] == '\0')
            names[count++] = verb->group;
    }
    const char *closest = hcl_closest(word, names, count);
    free(names);
    if (closest != NULL)
        return cli_fail(CLI_USAGE, "there is no command \"%s%s%.60s\"; did you mean: cairn %s%s%s",
                        group, space, word, group, space, closest);
    return cli_fail(CLI_USAGE, "there is no command \"%s%s%.60s\"; cairn -h lists all of them",
                    group, space, word);
}

static const char *environment(const char *first, const char *second, const char *otherwise)
{
    const char *text = getenv(first);

    if (text == NULL || text[0] == '\0')
        text = second != NULL ? getenv(second) : NULL;
    return text == NULL || text[0] == '\0' ? otherwise : text;
}

/* As Nomad's: a switch of the environment is on by any of Go's words for that. */
static void read_trust(struct cli *cli)
{
    static const char *const yes[] = {"1", "t", "T", "TRUE", "true", "True"};
    const char *skip = environment("NOMAD_SKIP_VERIFY", NULL, "");

    cli->trust = (struct http_trust){
        .ca_file = cli_text(cli, "ca-cert", environment("NOMAD_CACERT", NULL, NULL)),
        .ca_path = cli_text(cli, "ca-path", environment("NOMAD_CAPATH", NULL, NULL)),
        .cert_file = cli_text(cli, "client-cert", environment("NOMAD_CLIENT_CERT", NULL, NULL)),
        .key_file = cli_text(cli, "client-key", environment("NOMAD_CLIENT_KEY", NULL, NULL)),
        .insecure = cli_switch(cli, "tls-skip-verify"),
    };
    for (size_t i = 0; i < COUNT_OF(yes); i++)
        cli->trust.insecure |= text_equal(skip, yes[i]);
}

static int run_verb(struct cli *cli, int argc, char **argv)
{
    struct err err = {0};

    if (cli_parse(cli, argc, argv, &err) != 0)
        return cli_fail(CLI_USAGE, "%s", err.text);
    if (cli_switch(cli, "h") || cli_switch(cli, "help")) {
        cli_print_help(cli->verb, stdout);
        return CLI_OK;
    }
    if (!cli->verb->is_local) {
        cli->address = cli_text(cli, "address",
                                environment("CAIRN_ADDR", "NOMAD_ADDR", "http://127.0.0.1:4646"));
        cli->namespace =
            cli_text(cli, "namespace", environment("NOMAD_NAMESPACE", NULL, "default"));
        const char *token = cli_text(cli, "token", environment("NOMAD_TOKEN", NULL, ""));
        if (token[0] != '\0') /* a cut one is none */
            (void)text_format(cli->token, sizeof(cli->token), "X-Nomad-Token: %s", token);
        read_trust(cli);
        cli->json = cli_switch(cli, "json");
        cli->color = !cli_switch(cli, "no-color") && isatty(STDOUT_FILENO) == 1 &&
                     getenv("NO_COLOR") == NULL;
    }
    return cli->verb->run(cli);
}

int cli_main(const struct cli_verb *const *verbs, size_t verbs_count, int argc, char **argv)
{
    struct cli cli = {.verbs = verbs, .verbs_count = verbs_count};
    const char *group = "";
    int at = 1, status;

    if (argc < 2 || is_help(argv[1])) {
        print_verbs(&cli, NULL, argc < 2 ? stderr : stdout);
        return argc < 2 ? CLI_USAGE : CLI_OK;
    }
    if (text_equal(argv[1], "-version") || text_equal(argv[1], "--version"))
        argv[1] += strspn(argv[1], "-");
    if (is_group(&cli, argv[at]))
        group = argv[at++];
    if (group[0] != '\0' && (at == argc || is_help(argv[at]))) {
        print_verbs(&cli, group, at == argc ? stderr : stdout);
        return at == argc ? CLI_USAGE : CLI_OK;
    }
    cli.verb = find_verb(&cli, group, argv[at]);
    if (cli.verb == NULL)
        return fail_no_verb(&cli, group, argv[at]);
    status = run_verb(&cli, argc - at - 1, argv + at + 1);
    cli_close(&cli);
    free(cli.arguments);
    /* What could not be written has not been said (a full disk; a closed pipe ends us before). */
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == CLI_OK)
        status = cli_fail(CLI_FAILED, "cannot write to standard output");
    return status;
}
