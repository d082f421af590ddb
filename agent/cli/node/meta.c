/*
 * cairn node meta: the node's metadata, and what of it is set while the node runs.  Follows nomad
 * v2.0.5 command/node_meta_read.go and command/node_meta_apply.go.
 */
#include "agent/cli/cli.h"

#include <stdlib.h>
#include <string.h>

static const char *route(const struct cli *cli, char path[CLI_URL_SIZE])
{
    return cli_path(cli, path, "/v1/client/metadata?node_id=%s", cli_text(cli, "node-id", ""));
}

/* --- reading --- */

static int by_name(const void *one, const void *other)
{
    return strcmp(*(const char *const *)one, *(const char *const *)other);
}

/* By their keys; what is null was taken away. */
static void print_pairs(const json_t *pairs)
{
    size_t count = 0;
    const char **keys = calloc(json_object_size(pairs) + 1, sizeof(*keys)), *key;
    struct cli_table table = {0};
    json_t *value;

    check(keys != NULL);
    json_object_foreach((json_t *)(uintptr_t)pairs, key, value)
    {
        keys[count++] = key;
    }
    qsort(keys, count, sizeof(*keys), by_name);
    for (size_t i = 0; i < count; i++)
        cli_row(&table, keys[i],
                json_is_null(json_object_get(pairs, keys[i])) ? "<unset>"
                                                              : cli_value(pairs, keys[i]));
    cli_table_print_pairs(&table, stdout);
    free(keys);
}

static int read_meta(struct cli *cli)
{
    char path[CLI_URL_SIZE];
    json_t *answer;
    int status = cli_get(cli, route(cli, path), &answer, NULL);

    if (status != 0)
        return status;
    if (cli->json) {
        cli_print_json(answer);
    } else {
        cli_title(cli, "All Meta");
        print_pairs(json_object_get(answer, "Meta"));
        cli_heading(cli, "Dynamic Meta");
        print_pairs(json_object_get(answer, "Dynamic"));
        cli_heading(cli, "Static Meta");
        print_pairs(json_object_get(answer, "Static"));
    }
    json_decref(answer);
    return CLI_OK;
}

/* --- applying --- */

/* Of LENGTH bytes; VALUE is moved. */
static int set(json_t *meta, const char *key, size_t length, json_t *value)
{
    return json_object_setn_new(meta, key, length, value) == 0
               ? 0
               : cli_fail(CLI_USAGE, "\"%s\" is no UTF-8", key);
}

/* A key without a value is empty, and what is to be unset is, whatever it is set to. */
static int add_changes(const struct cli *cli, json_t *meta)
{
    const char *text, *end;
    int status = 0;

    for (size_t i = 1; status == 0 && (text = cli_argument(cli, i)) != NULL; i++) {
        end = strchrnul(text, '=');
        status = set(meta, text, (size_t)(end - text), json_string(*end == '=' ? end + 1 : end));
    }
    for (size_t i = 0; (text = cli_text_again(cli, "unset", i)) != NULL; i++) {
        for (; status == 0 && *text != '\0'; text = *end == ',' ? end + 1 : end) {
            end = strchrnul(text, ',');
            if (end > text)
                status = set(meta, text, (size_t)(end - text), json_null());
        }
    }
    if (status == 0 && json_object_size(meta) == 0)
        return cli_fail(CLI_USAGE, "give -unset, or at least one KEY=VALUE");
    return status;
}

static int apply_meta(struct cli *cli)
{
    char path[CLI_URL_SIZE];
    json_t *body = json_pack("{s:{}}", "Meta"), *answer;
    int status = add_changes(cli, json_object_get(body, "Meta"));

    if (status == 0)
        status = cli_put(cli, route(cli, path), body, &answer);
    json_decref(body);
    if (status != 0)
        return status;
    if (cli->json)
        cli_print_json(answer);
    json_decref(answer);
    return CLI_OK;
}

/* --- the verb --- */

static int run_meta(struct cli *cli)
{
    const char *what = cli_argument(cli, 0);

    if (text_equal(what, "apply"))
        return apply_meta(cli);
    if (text_equal(what, "read") && cli_argument(cli, 1) == NULL && !cli_given(cli, "unset"))
        return read_meta(cli);
    return cli_fail(CLI_USAGE,
                    "write node meta read, or node meta apply with KEY=VALUE, or -unset");
}

static const struct cli_flag meta_flags[] = {
    {"node-id", FLAG_TEXT, "ID", "the node's id; default: the one of the agent that answers"},
    {"unset", FLAG_TEXT, "KEY,...", "apply: take these keys away; may be given often"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

const struct cli_verb cli_node_meta = {
    .group = "node",
    .name = "meta",
    .arguments = "read | apply [KEY=VALUE...]",
    .min = 1,
    .max = UINT8_MAX,
    .summary = "Show the node's metadata, or change it while the node runs",
    .help = "  Constraints and tasks have it as ${meta.KEY}.  What is set so wins over the\n"
            "  configuration, and outlives restarts.\n\n"
            "    $ cairn node meta read\n"
            "    $ cairn node meta apply rack=r1 -unset maintenance",
    .flags = meta_flags,
    .run = run_meta,
};
