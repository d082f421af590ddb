/*
 * Flags and arguments: sorting the words of a command line, what was given for a flag, help.
 *
 * Flags are written -name, --name, -name=value or -name value, before, between or behind the
 * arguments.  What is not understood is an error with a suggestion, never ignored.
 */
#include "agent/cli/cli.h"

#include "spec/hcl.h"

#include <stdlib.h>
#include <string.h>

const struct cli_flag cli_common_flags[] = {
    {"address", FLAG_TEXT, "URL",
     "the agent's address, https:// too, or unix:///PATH; also NOMAD_ADDR or CAIRN_ADDR; default "
     "http://127.0.0.1:4646"},
    {"token", FLAG_TEXT, "SECRET",
     "the secret of a token; better NOMAD_TOKEN, which ps does not show"},
    {"ca-cert", FLAG_TEXT, "FILE", "of https: whom to believe, in PEM; also NOMAD_CACERT"},
    {"ca-path", FLAG_TEXT, "DIR", "a directory of such; also NOMAD_CAPATH"},
    {"client-cert", FLAG_TEXT, "FILE", "our certificate; also NOMAD_CLIENT_CERT"},
    {"client-key", FLAG_TEXT, "FILE", "and its key; also NOMAD_CLIENT_KEY"},
    {"tls-skip-verify", FLAG_SWITCH, NULL, "believe whoever answers; also NOMAD_SKIP_VERIFY"},
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
        flag = find_in(cli_common_flags, name, length);
    return flag != NULL ? flag : find_in(help_flags, name, length);
}

static size_t collect_names(const struct cli_flag *flags, const char **names, size_t count)
{
    for (; flags != NULL && flags->name != NULL; flags++)
        names[count++] = flags->name;
    return count;
}

void cli_verb_name(const struct cli_verb *verb, char to[CLI_NAME_SIZE])
{
    (void)text_format(to, CLI_NAME_SIZE, "%s%s%s", verb->group, verb->group[0] != '\0' ? " " : "",
                      verb->name); /* names are short */
}

static int fail_unknown(const struct cli *cli, const char *name, struct err *err)
{
    const char *names[CLI_FLAGS_MAX + COUNT_OF(cli_common_flags)];
    char verb[CLI_NAME_SIZE];
    size_t count = collect_names(cli->verb->flags, names, 0);

    if (!cli->verb->is_local)
        count = collect_names(cli_common_flags, names, count);
    const char *closest = hcl_closest(name, names, count);
    cli_verb_name(cli->verb, verb);
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

static bool is_flag(const struct cli_verb *verb, const char *word)
{
    bool digit = word[0] == '-' && word[1] >= '0' && word[1] <= '9';

    return word[0] == '-' && word[1] != '\0' && !(digit && verb->takes_moments);
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
        else if (!flags_ended && is_flag(cli->verb, argv[at]))
            code = parse_flag(cli, argv, &at, argc, err);
        else
            cli->arguments[cli->arguments_count++] = argv[at];
        flags_ended |= cli->verb->takes_command && cli->arguments_count > 0;
    }
    if (code != 0)
        return code;
    char verb[CLI_NAME_SIZE];
    cli_verb_name(cli->verb, verb);
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

const char *cli_given(const struct cli *cli, const char *name)
{
    const char *text = NULL;

    for (size_t i = 0; i < cli->values_count; i++) {
        if (text_equal(cli->values[i].flag->name, name))
            text = cli->values[i].text;
    }
    return text;
}

bool cli_is_on(const struct cli *cli, const char *name)
{
    const char *text = cli_given(cli, name);

    return text != NULL && text_equal(text, "true");
}

static const char *find_value(const struct cli *cli, const char *name)
{
    check(find_flag(cli->verb, name, strlen(name)) != NULL);
    return cli_given(cli, name);
}

bool cli_switch(const struct cli *cli, const char *name)
{
    check(find_flag(cli->verb, name, strlen(name)) != NULL);
    return cli_is_on(cli, name);
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

bool cli_is_asked_for(const struct cli *cli, const char *name, const char *value)
{
    const char *text;
    size_t i;

    for (i = 0; (text = cli_text_again(cli, name, i)) != NULL; i++) {
        if (text_equal(text, value))
            return true;
    }
    return i == 0;
}

const char *cli_argument(const struct cli *cli, size_t at)
{
    return at < cli->arguments_count ? cli->arguments[at] : NULL;
}

/* --- help --- */

/* The help of a flag may have more lines than one. */
static void print_flags(const struct cli_flag *flags, FILE *to)
{
    for (; flags->name != NULL; flags++) {
        const char *text = flags->help, *end;
        char left[48];

        (void)text_format(left, sizeof(left), "-%s%s%s", flags->name,
                          flags->value != NULL ? " " : "",
                          flags->value != NULL ? flags->value : ""); /* names are short */
        for (; (end = strchr(text, '\n')) != NULL; text = end + 1) {
            (void)fprintf(to, "  %-22s  %.*s\n", left, (int)(end - text), text);
            left[0] = '\0';
        }
        (void)fprintf(to, "  %-22s  %s\n", left, text);
    }
}

void cli_print_help(const struct cli_verb *verb, FILE *to)
{
    char name[CLI_NAME_SIZE];

    cli_verb_name(verb, name);
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
        print_flags(cli_common_flags, to);
    }
}
