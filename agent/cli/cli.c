/*
 * The command line: finding the verb, sorting flags and arguments, help.
 *
 * Flags are written -name, --name, -name=value or -name value, before, between or behind the
 * arguments.  What is not understood is an error with a suggestion, never ignored.
 */
#include "agent/cli/cli.h"

#include "io/loop.h"
#include "spec/hcl.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of every verb that talks with an agent. */
static const struct cli_flag common_flags[] = {
    {"address", FLAG_TEXT, "URL",
     "the agent's address; also NOMAD_ADDR or CAIRN_ADDR; default http://127.0.0.1:4646"},
    {"namespace", FLAG_TEXT, "NAME", "also NOMAD_NAMESPACE; default \"default\", * is all"},
    {"json", FLAG_SWITCH, NULL, "print what the API answered, as JSON"},
    {"no-color", FLAG_SWITCH, NULL, "no bold headings"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static const struct cli_flag help_flags[] = {
    {"h", FLAG_SWITCH, NULL, NULL},
    {"help", FLAG_SWITCH, NULL, NULL},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

int cli_fail(enum cli_exit status, const char *format, ...)
{
    va_list arguments;

    (void)fflush(stdout); /* so that both come in their order */
    (void)fputs("cairn: ", stderr);
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fputc('\n', stderr);
    return (int)status;
}

const char *cli_closest(const char *word, const char *const *names, size_t count)
{
    return hcl_closest(word, names, count);
}

/* --- flags --- */

static const struct cli_flag *find_in(const struct cli_flag *flags, const char *name, size_t length)
{
    for (; flags != NULL && flags->name != NULL; flags++) {
        if (strlen(flags->name) == length && strncmp(flags->name, name, length) == 0)
            return flags;
    }
    return NULL;
}

static const struct cli_flag *find_flag(const struct cli_verb *verb, const char *name,
                                        size_t length)
{
    const struct cli_flag *flag = find_in(verb->flags, name, length);

    if (flag == NULL && !verb->is_local)
        flag = find_in(common_flags, name, length);
    return flag != NULL ? flag : find_in(help_flags, name, length);
}

static size_t collect_names(const struct cli_flag *flags, const char **names, size_t count)
{
    for (; flags != NULL && flags->name != NULL; flags++)
        names[count++] = flags->name;
    return count;
}

static void name_verb(const struct cli_verb *verb, char to[64])
{
    (void)text_format(to, 64, "%s%s%s", verb->group, verb->group[0] != '\0' ? " " : "",
                      verb->name); /* names are short */
}

static int fail_unknown(const struct cli *cli, const char *name, struct err *err)
{
    const char *names[CLI_FLAGS_MAX + COUNT_OF(common_flags)];
    char verb[64];
    size_t count = collect_names(cli->verb->flags, names, 0);

    if (!cli->verb->is_local)
        count = collect_names(common_flags, names, count);
    const char *closest = cli_closest(name, names, count);
    name_verb(cli->verb, verb);
    return err_set(err, ERR_INVALID, "%s has no flag -%.60s%s%s%s; see: cairn %s -h", verb, name,
                   closest != NULL ? "; did you mean -" : "", closest != NULL ? closest : "",
                   closest != NULL ? "?" : "", verb);
}

static int add_value(struct cli *cli, const struct cli_flag *flag, const char *text,
                     struct err *err)
{
    int64_t number;

    if (flag->kind == FLAG_SWITCH && !text_equal(text, "true") && !text_equal(text, "false"))
        return err_set(err, ERR_INVALID, "-%s is true or false, not \"%.60s\"", flag->name, text);
    if (flag->kind == FLAG_NUMBER && !text_to_i64(text, &number))
        return err_set(err, ERR_INVALID, "-%s takes a number, not \"%.60s\"", flag->name, text);
    if (cli->values_count == CLI_FLAGS_MAX)
        return err_set(err, ERR_INVALID, "more than %d flags", CLI_FLAGS_MAX);
    cli->values[cli->values_count++] = (struct cli_value){flag, text};
    return 0;
}

/* One flag, ARGV[*AT], and perhaps its value in the next word. */
static int parse_flag(struct cli *cli, char **argv, int *at, int argc, struct err *err)
{
    const char *name = argv[*at] + (argv[*at][1] == '-' ? 2 : 1);
    size_t length = strcspn(name, "=");
    const struct cli_flag *flag = find_flag(cli->verb, name, length);

    if (flag == NULL)
        return fail_unknown(cli, name, err);
    if (name[length] == '=')
        return add_value(cli, flag, name + length + 1, err);
    if (flag->kind == FLAG_SWITCH)
        return add_value(cli, flag, "true", err);
    if (*at + 1 == argc)
        return err_set(err, ERR_INVALID, "-%s needs a value: -%s %s", flag->name, flag->name,
                       flag->value);
    return add_value(cli, flag, argv[++*at], err);
}

int cli_parse(struct cli *cli, int argc, char **argv, struct err *err)
{
    bool flags_ended = false;
    int code = 0;

    cli->arguments = calloc((size_t)argc + 1, sizeof(*cli->arguments));
    check(cli->arguments != NULL);
    for (int at = 0; at < argc && code == 0; at++) {
        if (!flags_ended && text_equal(argv[at], "--"))
            flags_ended = true;
        else if (!flags_ended && argv[at][0] == '-' && argv[at][1] != '\0')
            code = parse_flag(cli, argv, &at, argc, err);
        else
            cli->arguments[cli->arguments_count++] = argv[at];
    }
    if (code != 0)
        return code;
    char verb[64];
    name_verb(cli->verb, verb);
    if (cli_switch(cli, "h") || cli_switch(cli, "help"))
        return 0;
    if (cli->arguments_count < cli->verb->min)
        return err_set(err, ERR_INVALID, "usage: cairn %s %s; see: cairn %s -h", verb,
                       cli->verb->arguments, verb);
    if (cli->arguments_count > cli->verb->max)
        return err_set(err, ERR_INVALID, "%s does not take \"%.60s\"; see: cairn %s -h", verb,
                       cli->arguments[cli->verb->max], verb);
    return 0;
}

/* The last value of NAME, which the verb must know. */
static const char *find_value(const struct cli *cli, const char *name)
{
    const char *text = NULL;

    check(find_flag(cli->verb, name, strlen(name)) != NULL);
    for (size_t i = 0; i < cli->values_count; i++) {
        if (text_equal(cli->values[i].flag->name, name))
            text = cli->values[i].text;
    }
    return text;
}

bool cli_switch(const struct cli *cli, const char *name)
{
    const char *text = find_value(cli, name);

    return text != NULL && text_equal(text, "true");
}

const char *cli_text(const struct cli *cli, const char *name, const char *otherwise)
{
    const char *text = find_value(cli, name);

    return text != NULL ? text : otherwise;
}

int cli_number(const struct cli *cli, const char *name, int64_t *ret_value)
{
    const char *text = find_value(cli, name);

    if (text != NULL && (!text_to_i64(text, ret_value) || *ret_value < 0))
        return cli_fail(CLI_USAGE, "-%s takes a number that is not negative, not \"%.60s\"", name,
                        text);
    return 0;
}

const char *cli_text_again(const struct cli *cli, const char *name, size_t count)
{
    for (size_t i = 0; i < cli->values_count; i++) {
        if (text_equal(cli->values[i].flag->name, name) && count-- == 0)
            return cli->values[i].text;
    }
    return NULL;
}

const char *cli_argument(const struct cli *cli, size_t at)
{
    return at < cli->arguments_count ? cli->arguments[at] : NULL;
}

/* --- help --- */

static void print_flags(const struct cli_flag *flags, FILE *to)
{
    for (; flags->name != NULL; flags++) {
        char left[48];

        (void)text_format(left, sizeof(left), "-%s%s%s", flags->name,
                          flags->value != NULL ? " " : "",
                          flags->value != NULL ? flags->value : ""); /* names are short */
        (void)fprintf(to, "  %-22s  %s\n", left, flags->help);
    }
}

void cli_print_help(const struct cli *cli, const struct cli_verb *verb, FILE *to)
{
    char name[64];
    (void)cli;

    name_verb(verb, name);
    (void)fprintf(to, "Usage: cairn %s%s%s%s\n\n  %s.\n", name,
                  verb->flags != NULL || !verb->is_local ? " [FLAGS]" : "",
                  verb->arguments[0] != '\0' ? " " : "", verb->arguments, verb->summary);
    if (verb->help[0] != '\0')
        (void)fprintf(to, "\n%s\n", verb->help);
    if (verb->flags != NULL && verb->flags->name != NULL) {
        (void)fputs("\nFlags:\n", to);
        print_flags(verb->flags, to);
    }
    if (!verb->is_local) {
        (void)fputs("\nCommon flags:\n", to);
        print_flags(common_flags, to);
    }
}

/* The verbs of GROUP, or all of them. */
static void print_verbs(const struct cli *cli, const char *group, FILE *to)
{
    (void)fprintf(to, "Usage: cairn %s [FLAGS] [ARGUMENTS]\n\n", group != NULL ? group : "COMMAND");
    for (size_t i = 0; i < cli->verbs_count; i++) {
        char name[64];

        if (group != NULL && !text_equal(cli->verbs[i]->group, group))
            continue;
        name_verb(cli->verbs[i], name);
        (void)fprintf(to, "  %-16s  %s\n", name, cli->verbs[i]->summary);
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
    const char **names = calloc(cli->verbs_count + 1, sizeof(*names));
    size_t count = 0;

    check(names != NULL);
    for (size_t i = 0; i < cli->verbs_count; i++) {
        const struct cli_verb *verb = cli->verbs[i];

        if (text_equal(verb->group, group))
            names[count++] = verb->name;
        else if (group[0] == '\0')
            names[count++] = verb->group;
    }
    const char *closest = cli_closest(word, names, count), *space = group[0] != '\0' ? " " : "";
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

static int run_verb(struct cli *cli, int argc, char **argv)
{
    struct err err = {0};

    if (cli->verb->run_raw != NULL)
        return cli->verb->run_raw(argc + 1, argv - 1);
    if (cli_parse(cli, argc, argv, &err) != 0)
        return cli_fail(CLI_USAGE, "%s", err.text);
    if (cli_switch(cli, "h") || cli_switch(cli, "help")) {
        cli_print_help(cli, cli->verb, stdout);
        return CLI_OK;
    }
    if (!cli->verb->is_local) {
        cli->address = cli_text(cli, "address",
                                environment("CAIRN_ADDR", "NOMAD_ADDR", "http://127.0.0.1:4646"));
        cli->namespace =
            cli_text(cli, "namespace", environment("NOMAD_NAMESPACE", NULL, "default"));
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
    if (fflush(stdout) != 0 && status == CLI_OK)
        status = cli_fail(CLI_FAILED, "cannot write to standard output");
    return status;
}
