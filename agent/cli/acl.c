/* cairn acl ...: policies and tokens.  Follows nomad v2.0.5 command/acl_*.go. */
#include "agent/cli/cli.h"

#include <stdlib.h>
#include <string.h>

/* --- as they are shown --- */

static const char *or_none(const char *text, const char *none)
{
    return text[0] == '\0' ? none : text;
}

/* The names of TOKEN's policies, with commas between. */
static const char *names_of(const json_t *token)
{
    const json_t *name;
    char text[2048] = "";
    size_t at;

    json_array_foreach(json_object_get(token, "Policies"), at, name)
    {
        (void)text_append(text, sizeof(text), at > 0 ? "," : ""); /* a cut list is enough */
        (void)text_append(text, sizeof(text), json_string_value(name));
    }
    return cli_format("%s", or_none(text, "n/a"));
}

static void print_token(const struct cli *cli, const json_t *token)
{
    struct cli_table facts = {0};

    if (cli->json) {
        cli_print_json(token);
        return;
    }
    cli_row(&facts, "Accessor ID", cli_value(token, "AccessorID"));
    cli_row(&facts, "Secret ID",
            or_none(cli_value(token, "SecretID"), "(told once, when it was made)"));
    cli_row(&facts, "Name", cli_value(token, "Name"));
    cli_row(&facts, "Type", cli_value(token, "Type"));
    cli_row(&facts, "Create Time", cli_value(token, "CreateTime"));
    cli_row(&facts, "Expiry Time", cli_value(token, "ExpirationTime"));
    cli_row(&facts, "Create Index", cli_value(token, "CreateIndex"));
    cli_row(&facts, "Modify Index", cli_value(token, "ModifyIndex"));
    cli_row(&facts, "Policies", names_of(token));
    cli_table_print_pairs(&facts, stdout);
}

static int print_and_drop(struct cli *cli, int status, json_t *token)
{
    if (status != 0)
        return status;
    print_token(cli, token);
    json_decref(token);
    return CLI_OK;
}

/* LIST, printed by ROW below HEADING, or that there is NOTHING. */
static int print_list(struct cli *cli, const char *path, const char *nothing,
                      void (*head)(struct cli_table *table),
                      void (*row)(struct cli_table *table, const json_t *item))
{
    struct cli_table table = {0};
    json_t *list;
    const json_t *item;
    size_t at;

    int status = cli_get(cli, path, &list, NULL);
    if (status != 0)
        return status;
    if (cli->json) {
        cli_print_json(list);
    } else if (json_array_size(list) == 0) {
        (void)puts(nothing);
    } else {
        head(&table);
        json_array_foreach(list, at, item) row(&table, item);
        cli_table_print(&table, stdout);
    }
    json_decref(list);
    return CLI_OK;
}

static int delete_at(struct cli *cli, const char *path, const char *said)
{
    struct cli_reply reply;
    int status = cli_call(cli, "DELETE", path, NULL, &reply);

    if (status != 0)
        return status;
    free(reply.body);
    (void)puts(said);
    return CLI_OK;
}

/* --- the first token --- */

static int run_bootstrap(struct cli *cli)
{
    json_t *body = NULL, *token = NULL;

    if (cli_argument(cli, 0) != NULL) {
        const char *name;
        size_t length;
        char *text;
        int status = cli_read_input(cli, 0, &name, &text, &length);

        if (status != 0)
            return status;
        text[strcspn(text, " \r\n")] = '\0';
        body = json_pack("{s:s}", "BootstrapSecret", text);
        explicit_bzero(text, length);
        free(text);
        if (body == NULL)
            return cli_fail(CLI_USAGE, "%s holds no UUID", name);
    }
    int status = cli_put(cli, "/v1/acl/bootstrap", body, &token);
    json_decref(body);
    return print_and_drop(cli, status, token);
}

const struct cli_verb cli_acl_bootstrap = {
    .group = "acl",
    .name = "bootstrap",
    .arguments = "[FILE]",
    .max = 1,
    .summary = "Make the first token, which may do everything",
    .help = "  The agent has to ask for tokens (acl { enabled = true } in its configuration).\n"
            "  The first token is made once; its secret may be brought along in FILE (- is\n"
            "  standard input): a UUID that nobody can guess.  Who has lost it and owns the data\n"
            "  directory makes an empty file acl-bootstrap-reset there, and asks again.\n\n"
            "    $ cairn acl bootstrap\n"
            "    $ export NOMAD_TOKEN=...",
    .run = run_bootstrap,
};

/* --- policies --- */

static void policy_head(struct cli_table *table)
{
    cli_row(table, "Name", "Description");
}

static void policy_row(struct cli_table *table, const json_t *policy)
{
    cli_row(table, cli_value(policy, "Name"), cli_value(policy, "Description"));
}

static int apply_policy(struct cli *cli, const char *name)
{
    char path[CLI_URL_SIZE], *text;
    const char *file;
    size_t length;
    json_t *answer;

    cli->arguments++; /* what is read is the next one */
    cli->arguments++;
    int status = cli_read_input(cli, 0, &file, &text, &length);
    cli->arguments -= 2;
    if (status != 0)
        return status;
    json_t *body = json_pack("{s:s, s:s, s:s}", "Name", name, "Description",
                             cli_text(cli, "description", ""), "Rules", text);
    free(text);
    if (body == NULL)
        return cli_fail(CLI_USAGE, "%s is not UTF-8 text", file);
    status = cli_put(cli, cli_path(cli, path, "/v1/acl/policy/%s", name), body, &answer);
    json_decref(body);
    if (status != 0)
        return status;
    json_decref(answer);
    (void)printf("Successfully wrote \"%s\" ACL policy!\n", name);
    return CLI_OK;
}

static int show_policy(struct cli *cli, const char *name)
{
    char path[CLI_URL_SIZE];
    struct cli_table facts = {0};
    json_t *policy;

    int status = cli_get(cli, cli_path(cli, path, "/v1/acl/policy/%s", name), &policy, NULL);
    if (status != 0)
        return status;
    if (cli->json) {
        cli_print_json(policy);
    } else {
        cli_row(&facts, "Name", cli_value(policy, "Name"));
        cli_row(&facts, "Description", cli_value(policy, "Description"));
        cli_row(&facts, "CreateIndex", cli_value(policy, "CreateIndex"));
        cli_row(&facts, "ModifyIndex", cli_value(policy, "ModifyIndex"));
        cli_table_print_pairs(&facts, stdout);
        (void)printf("\nRules\n\n%s\n", cli_value(policy, "Rules"));
    }
    json_decref(policy);
    return CLI_OK;
}

static int run_policy(struct cli *cli)
{
    const char *what = cli_argument(cli, 0), *name = cli_argument(cli, 1);
    char path[CLI_URL_SIZE];

    if (text_equal(what, "list") && name == NULL)
        return print_list(cli, "/v1/acl/policies", "No policies found", policy_head, policy_row);
    if (text_equal(what, "apply") && cli_argument(cli, 2) != NULL)
        return apply_policy(cli, name);
    if (text_equal(what, "info") && name != NULL && cli_argument(cli, 2) == NULL)
        return show_policy(cli, name);
    if (text_equal(what, "delete") && name != NULL && cli_argument(cli, 2) == NULL)
        return delete_at(cli, cli_path(cli, path, "/v1/acl/policy/%s", name),
                         cli_format("Successfully deleted %s policy!", name));
    return cli_fail(CLI_USAGE, "write acl policy list, apply NAME FILE, info NAME or delete NAME");
}

static const struct cli_flag policy_flags[] = {
    {"description", FLAG_TEXT, "TEXT", "apply: what it is for"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

const struct cli_verb cli_acl_policy = {
    .group = "acl",
    .name = "policy",
    .arguments = "list | apply NAME FILE | info NAME | delete NAME",
    .min = 1,
    .max = 3,
    .summary = "List, write, show and delete policies",
    .help = "  A policy is a text of rules, in HCL or JSON, as Nomad has them.  That of the name\n"
            "  \"anonymous\" is for everybody who shows no token.\n\n"
            "    $ cat readers.hcl\n"
            "    namespace \"default\" {\n"
            "      policy = \"read\"\n"
            "    }\n"
            "    $ cairn acl policy apply readers readers.hcl",
    .flags = policy_flags,
    .run = run_policy,
};

/* --- tokens --- */

static void token_head(struct cli_table *table)
{
    cli_row(table, "Name", "Type", "Policies", "Accessor ID", "Expired");
}

static void token_row(struct cli_table *table, const json_t *token)
{
    cli_row(table, cli_value(token, "Name"), cli_value(token, "Type"), names_of(token),
            cli_value(token, "AccessorID"), "false");
}

/* Policies, as they were given with -policy. */
static json_t *given_policies(const struct cli *cli)
{
    json_t *names = json_array();
    const char *name;

    for (size_t i = 0; (name = cli_text_again(cli, "policy", i)) != NULL; i++)
        check(json_array_append_new(names, json_string(name)) == 0);
    return names;
}

static int create_token(struct cli *cli)
{
    const char *ttl = cli_text(cli, "ttl", NULL);
    json_t *token = NULL;
    json_t *body = json_pack("{s:s, s:s, s:o}", "Name", cli_text(cli, "name", ""), "Type",
                             cli_text(cli, "type", "client"), "Policies", given_policies(cli));

    if (body == NULL)
        return cli_fail(CLI_USAGE, "a name is UTF-8 text");
    if (ttl != NULL)
        check(json_object_set_new(body, "ExpirationTTL", json_string(ttl)) == 0);
    int status = cli_put(cli, "/v1/acl/token", body, &token);
    json_decref(body);
    return print_and_drop(cli, status, token);
}

static int update_token(struct cli *cli, const char *accessor)
{
    const char *name = cli_text(cli, "name", NULL);
    char path[CLI_URL_SIZE];
    json_t *token, *changed = NULL;

    (void)cli_path(cli, path, "/v1/acl/token/%s", accessor);
    int status = cli_get(cli, path, &token, NULL);
    if (status != 0)
        return status;
    json_t *policies = given_policies(cli);
    if (json_array_size(policies) > 0)
        check(json_object_set(token, "Policies", policies) == 0);
    if (name != NULL)
        check(json_object_set_new(token, "Name", json_string(name)) == 0);
    for (size_t i = 0; i < 2; i++) /* what cannot change is not said again */
        (void)json_object_del(token, i == 0 ? "ExpirationTime" : "ExpirationTTL");
    status = cli_put(cli, path, token, &changed);
    json_decref(policies);
    json_decref(token);
    return print_and_drop(cli, status, changed);
}

static int run_token(struct cli *cli)
{
    const char *what = cli_argument(cli, 0), *accessor = cli_argument(cli, 1);
    char path[CLI_URL_SIZE];
    json_t *token = NULL;

    if (text_equal(what, "list") && accessor == NULL)
        return print_list(cli, "/v1/acl/tokens", "No tokens found", token_head, token_row);
    if (text_equal(what, "create") && accessor == NULL)
        return create_token(cli);
    bool self = text_equal(what, "self") && accessor == NULL;
    if (self || accessor != NULL)
        (void)cli_path(cli, path, "/v1/acl/token/%s", self ? what : accessor);
    if (self || (text_equal(what, "info") && accessor != NULL)) {
        int status = cli_get(cli, path, &token, NULL);
        return print_and_drop(cli, status, token);
    }
    if (text_equal(what, "update") && accessor != NULL)
        return update_token(cli, accessor);
    if (text_equal(what, "delete") && accessor != NULL)
        return delete_at(cli, path, cli_format("Token %s successfully deleted", accessor));
    return cli_fail(CLI_USAGE, "write acl token list, create or self, or info, update or delete "
                               "with an ACCESSOR ID");
}

static const struct cli_flag token_flags[] = {
    {"name", FLAG_TEXT, "NAME", "create, update: what people call it"},
    {"type", FLAG_TEXT, "TYPE", "create: client (the default), or management"},
    {"policy", FLAG_TEXT, "NAME", "create, update: one of its policies; may be given often"},
    {"ttl", FLAG_TEXT, "DURATION", "create: it ends after this, 1m to 24h; default never"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

const struct cli_verb cli_acl_token = {
    .group = "acl",
    .name = "token",
    .arguments = "list | create | self | info ACCESSOR | update ACCESSOR | delete ACCESSOR",
    .min = 1,
    .max = 2,
    .summary = "Make, list, show, change and delete tokens",
    .help = "  A token's secret is printed once, when it is made: nothing keeps it.  Tokens are\n"
            "  spoken of by their accessor ids.\n\n"
            "    $ cairn acl token create -name ci -policy deployers -ttl 8h\n"
            "    $ NOMAD_TOKEN=... cairn job run web.hcl",
    .flags = token_flags,
    .run = run_token,
};
