/*
 * cairn job dispatch: runs a parameterized job once, with a payload and values of meta.
 *
 * Follows nomad v2.0.5 command/job_dispatch.go.
 */
#include "agent/cli/cli.h"

#include "spec/job.h"

#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_flag dispatch_flags[] = {
    {"meta", FLAG_TEXT, "KEY=VALUE", "a value of meta that the job asks for; may be repeated"},
    {"idempotency-token", FLAG_TEXT, "TOKEN", "at most one job is made of all with this token"},
    {"id-prefix-template", FLAG_TEXT, "TEXT", "what the id of the new job begins with, behind ID"},
    {"priority", FLAG_NUMBER, "N", "of the new job, 1 to 100"},
    {"detach", FLAG_SWITCH, NULL, "do not wait for the allocs to run"},
    {"verbose", FLAG_SWITCH, NULL, "whole ids"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static int add_meta(const struct cli *cli, json_t *body)
{
    json_t *meta = json_object();
    const char *text;

    check(json_object_set_new(body, "Meta", meta) == 0);
    for (size_t i = 0; (text = cli_text_again(cli, "meta", i)) != NULL; i++) {
        const char *value = strchr(text, '=');
        char key[256];

        if (value == NULL || value == text ||
            !text_format(key, sizeof(key), "%.*s", (int)(value - text), text))
            return cli_fail(CLI_USAGE, "-meta is KEY=VALUE, not \"%s\"", text);
        if (json_object_set_new(meta, key, json_string(value + 1)) != 0)
            return cli_fail(CLI_USAGE, "-meta %s is no UTF-8", key);
    }
    return 0;
}

static int add_payload(const struct cli *cli, json_t *body)
{
    const char *name;
    char *bytes, *text;
    size_t length;
    int status = cli_argument(cli, 1) == NULL ? 0 : cli_read_input(cli, 1, &name, &bytes, &length);

    if (status != 0 || cli_argument(cli, 1) == NULL)
        return status;
    if (length > SPEC_PAYLOAD_BYTES_MAX) {
        free(bytes);
        return cli_fail(CLI_FAILED, "%s has %zu bytes, of at most %d", name, length,
                        SPEC_PAYLOAD_BYTES_MAX);
    }
    text = calloc(1, BASE64_ENCODE_RAW_LENGTH(length) + 1);
    check(text != NULL);
    base64_encode_raw(text, length, (const uint8_t *)bytes);
    check(json_object_set_new(body, "Payload", json_string(text)) == 0);
    free(text);
    free(bytes);
    return 0;
}

static int make_body(const struct cli *cli, json_t *body)
{
    const char *prefix = cli_given(cli, "id-prefix-template");
    int64_t priority = 0;
    int status = cli_number(cli, "priority", &priority);

    if (status == 0)
        status = add_meta(cli, body);
    if (status == 0)
        status = add_payload(cli, body);
    if (status != 0)
        return status;
    if (prefix != NULL && json_object_set_new(body, "IdPrefixTemplate", json_string(prefix)) != 0)
        return cli_fail(CLI_USAGE, "-id-prefix-template is no UTF-8");
    check(json_object_set_new(body, "Priority", json_integer(priority)) == 0);
    return 0;
}

/* Tells what was made, and waits for it. */
static int tell(struct cli *cli, const json_t *answer)
{
    const char *id = cli_value(answer, "DispatchedJobID"),
               *evaluation = cli_value(answer, "EvalID");
    struct cli_table table = {0};

    if (cli->json) {
        cli_print_json(answer);
        return CLI_OK;
    }
    cli_row(&table, "Dispatched Job ID", id);
    if (*evaluation != '\0')
        cli_row(&table, "Evaluation ID", cli_short(cli, evaluation));
    cli_table_print_pairs(&table, stdout);
    if (*evaluation == '\0' || cli_switch(cli, "detach"))
        return CLI_OK; /* of a token that is known nothing is new */
    (void)putchar('\n');
    (void)fflush(stdout); /* what follows may take a while */
    return cli_follow(cli, evaluation, id, cli->namespace, false);
}

static int run_dispatch(struct cli *cli)
{
    char path[CLI_URL_SIZE];
    const char *token = cli_given(cli, "idempotency-token");
    json_t *job, *answer, *body = json_object();
    int status = make_body(cli, body);

    if (status == 0)
        status = cli_find_job(cli, cli_argument(cli, 0), &job);
    if (status != 0) {
        json_decref(body);
        return status;
    }
    cli->namespace = cli_namespace_of(cli, job);
    status = cli_put(cli,
                     cli_path(cli, path, "/v1/job/%s/dispatch?idempotency_token=%s",
                              cli_value(job, "ID"), token == NULL ? "" : token),
                     body, &answer);
    if (status == 0) {
        status = tell(cli, answer);
        json_decref(answer);
    }
    json_decref(body);
    json_decref(job);
    return status;
}

const struct cli_verb cli_job_dispatch = {
    .group = "job",
    .name = "dispatch",
    .arguments = "ID [FILE]",
    .min = 1,
    .max = 2,
    .summary = "Run a parameterized job once, with a payload and values of meta",
    .help = "  FILE is the payload, - reads standard input; tasks find it in the file that their\n"
            "  dispatch_payload block names. Waits as `job run` does.\n\n"
            "    $ cairn job dispatch -meta user=ann resize photo.png\n"
            "    $ echo 42 | cairn job dispatch -detach -idempotency-token order-7 resize -",
    .flags = dispatch_flags,
    .run = run_dispatch,
};
