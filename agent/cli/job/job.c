/*
 * cairn job: run, validate, stop; job files are read here for the other verbs, too.
 *
 * Job files are read here, not by the agent, so that mistakes are shown with the file's own lines.
 */
#include "agent/cli/cli.h"

#include "io/host.h"
#include "io/loop.h"
#include "spec/hcl.h"
#include "spec/job.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { JOB_FILE_MAX = HCL_BYTES_MAX, READ_BYTES = 4096 };

/* --- job files --- */

static char *read_stdin(size_t *ret_length)
{
    size_t used = 0, size = 0;
    char *bytes = list_room(NULL, &size, READ_BYTES, 1);
    ssize_t length;

    while ((length = read(STDIN_FILENO, bytes + used, size - used - 1)) > 0) {
        used += (size_t)length;
        if (used > JOB_FILE_MAX)
            break;
        bytes = list_room(bytes, &size, used + READ_BYTES, 1);
    }
    bytes[used] = '\0';
    *ret_length = used;
    if (length == 0)
        return bytes;
    free(bytes);
    return NULL;
}

/* TEXT, of which a job was read, as agents keep it with that; one that is too large they do not. */
static void note_text(json_t *source, const char *text, size_t length)
{
    bool is_json = text[strspn(text, " \t\r\n")] == '{';

    if (length <= JOB_SOURCE_BYTES_MAX)
        (void)json_object_set_new(source, "Source",
                                  json_string(text)); /* what is no text is none */
    check(json_object_set_new(source, "Format", json_string(is_json ? "json" : "hcl2")) == 0);
}

/* RET_SOURCE: the text and the values that it was read with. */
static int parse_text(const struct cli *cli, const char *name, const char *text, size_t length,
                      json_t **ret_job, json_t **ret_source)
{
    struct jobspec_values *values;
    struct jobspec_problems *problems = calloc(1, sizeof(*problems));
    char directory[PATH_SIZE] = ".";

    check(problems != NULL);
    const char *slash = strrchr(name, '/');
    if (slash != NULL)
        (void)text_format(directory, sizeof(directory), "%.*s", (int)(slash - name) + 1,
                          name); /* it was opened, so it fits */
    int status = cli_read_variables(cli, &values, ret_source);
    struct jobspec_source source = {
        .name = name,
        .text = text,
        .length = length,
        .inputs = values->items,
        .inputs_count = values->count,
        .base_directory = directory,
    };
    if (status == 0 && jobspec_parse(&source, ret_job, problems) != 0) {
        char *all = malloc(sizeof(problems->items) + 64);

        check(all != NULL);
        jobspec_problems_text(problems, all, sizeof(problems->items) + 64);
        status = cli_fail(CLI_FAILED, "%s", all);
        free(all);
        json_decref(*ret_source);
    }
    if (status == 0)
        note_text(*ret_source, text, length);
    jobspec_values_free(values);
    free(problems);
    return status;
}

int cli_read_input(const struct cli *cli, size_t at, const char **ret_name, char **ret_text,
                   size_t *ret_length)
{
    const char *name = cli_argument(cli, at);
    struct err err = {0};

    *ret_name = name;
    if (text_equal(name, "-")) {
        *ret_name = "stdin";
        *ret_text = read_stdin(ret_length);
        if (*ret_text == NULL)
            return cli_fail(CLI_FAILED,
                            "cannot read a file of at most %d bytes from standard input",
                            JOB_FILE_MAX);
    } else if (file_read(name, JOB_FILE_MAX, ret_text, ret_length, &err) != 0) {
        return cli_fail(CLI_FAILED, "%s", err.text);
    }
    return 0;
}

int cli_read_job(const struct cli *cli, json_t **ret_job, json_t **ret_source)
{
    json_t *source = NULL;
    const char *name;
    size_t length;
    char *text;
    int status = cli_read_input(cli, 0, &name, &text, &length);

    if (status != 0)
        return status;
    status = parse_text(cli, name, text, length, ret_job, &source);
    free(text);
    if (status == 0 && ret_source != NULL)
        *ret_source = source;
    else if (status == 0)
        json_decref(source);
    return status;
}

/* --- run --- */

static const struct cli_flag run_flags[] = {
    {"detach", FLAG_SWITCH, NULL, "do not wait for the allocs to run"},
    {"output", FLAG_SWITCH, NULL, "print the job as JSON, submit nothing"},
    {"check-index", FLAG_NUMBER, "N", "only if the job is at this modify index; 0: only if new"},
    {"preserve-counts", FLAG_SWITCH, NULL, "groups keep the counts that they have by now"},
    {"var", FLAG_TEXT, "NAME=VALUE", "a variable of the job file; may be repeated"},
    {"var-file", FLAG_TEXT, "FILE", "variables, as name = value in HCL or JSON; may be repeated"},
    {"verbose", FLAG_SWITCH, NULL, "whole ids"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static int submit(struct cli *cli, json_t *job, json_t *source, json_t **ret_answer)
{
    char path[CLI_URL_SIZE];
    int64_t expected = -1;

    if (cli_number(cli, "check-index", &expected) != 0)
        return CLI_USAGE;
    json_t *body = json_pack("{s:O, s:O, s:b}", "Job", job, "Submission", source, "PreserveCounts",
                             cli_switch(cli, "preserve-counts"));
    check(body != NULL);
    if (expected >= 0) {
        check(json_object_set_new(body, "EnforceIndex", json_true()) == 0);
        check(json_object_set_new(body, "JobModifyIndex", json_integer(expected)) == 0);
    }
    int status = cli_put(cli, cli_path(cli, path, "/v1/jobs"), body, ret_answer);
    json_decref(body);
    return status;
}

void cli_print_warnings(const json_t *answer)
{
    const char *warnings = cli_value(answer, "Warnings");

    if (warnings[0] != '\0')
        (void)printf("Job Warnings:\n%s\n\n", warnings);
    (void)fflush(stdout); /* what follows may take a while */
}

/* Of a periodic JOB. */
static int tell_next_launch(struct cli *cli, const json_t *job)
{
    char path[CLI_URL_SIZE];
    json_t *kept;

    if (!json_is_object(json_object_get(job, "Periodic")))
        return 0;
    int status = cli_get(cli, cli_path(cli, path, "/v1/job/%s", cli_value(job, "ID")), &kept, NULL);
    if (status != 0)
        return status;
    const char *next = cli_value(kept, "NextPeriodicLaunch");
    if (*next != '\0') /* it is enabled */
        (void)printf("Approximate next launch time: %s\n", next);
    json_decref(kept);
    return 0;
}

static int run_job(struct cli *cli)
{
    json_t *job, *source, *answer = NULL;
    int status = cli_read_job(cli, &job, &source);

    if (status != 0)
        return status;
    cli->namespace = cli_namespace_of(cli, job);
    if (json_object_get(source, "Source") == NULL)
        (void)fprintf(stderr, "cairn: the file is too large to be kept with the job\n");
    if (cli_switch(cli, "output")) {
        json_t *wrapped = json_pack("{s:O}", "Job", job);

        cli_print_json(wrapped);
        json_decref(wrapped);
        json_decref(source);
        json_decref(job);
        return CLI_OK;
    }
    status = submit(cli, job, source, &answer);
    if (status == 0 && !cli->json)
        cli_print_warnings(answer);
    if (status == 0 && cli->json) {
        cli_print_json(answer);
    } else if (status == 0 && *cli_value(answer, "EvalID") == '\0') {
        (void)puts("Job registration successful"); /* others are made of it */
        status = tell_next_launch(cli, job);
    } else if (status == 0 && cli_switch(cli, "detach")) {
        (void)printf("Job registration successful\nEvaluation ID: %s\n",
                     cli_value(answer, "EvalID"));
    } else if (status == 0) {
        status = cli_follow(cli, cli_value(answer, "EvalID"), cli_value(job, "ID"), cli->namespace,
                            false);
    }
    json_decref(answer);
    json_decref(source);
    json_decref(job);
    return status;
}

const struct cli_verb cli_job_run = {
    .group = "job",
    .name = "run",
    .arguments = "FILE",
    .min = 1,
    .max = 1,
    .summary = "Submit a job, or a new version of it, and wait until it runs",
    .help = "  FILE is HCL, HCL in JSON, or the JSON that -output prints; - reads standard\n"
            "  input. Waits until each alloc runs, has ended well (batch) or has failed; the\n"
            "  exit status is 2 if one failed. An interrupt ends the waiting, not the job.\n\n"
            "    $ cairn job run web.nomad\n"
            "    $ cairn job run -detach -var image=v2 web.nomad\n"
            "    $ cairn job run -output web.nomad > web.json",
    .flags = run_flags,
    .run = run_job,
};

/* --- validate --- */

static const struct cli_flag validate_flags[] = {
    {"var", FLAG_TEXT, "NAME=VALUE", "a variable of the job file; may be repeated"},
    {"var-file", FLAG_TEXT, "FILE", "variables, as name = value in HCL or JSON; may be repeated"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static int run_validate(struct cli *cli)
{
    char path[CLI_URL_SIZE];
    json_t *job, *answer, *error;
    size_t at;
    int status = cli_read_job(cli, &job, NULL);

    if (status != 0)
        return status;
    json_t *body = json_pack("{s:o}", "Job", job);
    check(body != NULL);
    status = cli_put(cli, cli_path(cli, path, "/v1/validate/job"), body, &answer);
    json_decref(body);
    if (status != 0)
        return status;
    const json_t *errors = json_object_get(answer, "ValidationErrors");
    if (cli->json)
        cli_print_json(answer);
    json_array_foreach(errors, at, error)
    {
        status = cli_fail(CLI_FAILED, "%s", json_string_value(error));
    }
    if (status == 0 && !cli->json) {
        cli_print_warnings(answer);
        (void)puts("Job validation successful");
    }
    json_decref(answer);
    return status;
}

const struct cli_verb cli_job_validate = {
    .group = "job",
    .name = "validate",
    .arguments = "FILE",
    .min = 1,
    .max = 1,
    .summary = "Check a job file without submitting it",
    .help = "  The file is read here; the drivers of the agent look at their config blocks.\n\n"
            "    $ cairn job validate web.nomad",
    .flags = validate_flags,
    .run = run_validate,
};

/* --- stop --- */

static const struct cli_flag stop_flags[] = {
    {"purge", FLAG_SWITCH, NULL, "forget the job and its allocs once they have ended"},
    {"no-shutdown-delay", FLAG_SWITCH, NULL, "wait for no shutdown_delay, be it under way"},
    {"detach", FLAG_SWITCH, NULL, "do not wait for the allocs to end"},
    {"global", FLAG_SWITCH, NULL, "in all regions: there is one"},
    {"yes", FLAG_SWITCH, NULL, "also if only the beginning of the id was given"},
    {"verbose", FLAG_SWITCH, NULL, "whole ids"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static int deregister(struct cli *cli, const json_t *job, json_t **ret_answer)
{
    char path[CLI_URL_SIZE];
    struct cli_reply reply;

    int status =
        cli_call(cli, "DELETE",
                 cli_path(cli, path, "/v1/job/%s?purge=%s&no_shutdown_delay=%s",
                          cli_value(job, "ID"), cli_switch(cli, "purge") ? "true" : "false",
                          cli_switch(cli, "no-shutdown-delay") ? "true" : "false"),
                 NULL, &reply);
    if (status != 0)
        return status;
    *ret_answer = json_loadb(reply.body, reply.length, 0, NULL);
    free(reply.body);
    return *ret_answer != NULL ? 0 : cli_fail(CLI_FAILED, "the agent's answer is no JSON");
}

static int run_stop(struct cli *cli)
{
    json_t *job, *answer = NULL;
    int status = cli_find_job(cli, cli_argument(cli, 0), &job);

    if (status != 0)
        return status;
    cli->namespace = cli_namespace_of(cli, job);
    if (!text_equal(cli_value(job, "ID"), cli_argument(cli, 0)) && !cli_switch(cli, "yes"))
        status = cli_fail(CLI_USAGE, "did you mean job \"%s\"? Give its whole id, or -yes",
                          cli_value(job, "ID"));
    if (status == 0)
        status = deregister(cli, job, &answer);
    if (status == 0 && cli->json)
        cli_print_json(answer);
    else if (status == 0 && cli_switch(cli, "detach"))
        (void)puts(cli_value(answer, "EvalID"));
    else if (status == 0)
        status = cli_follow(cli, cli_value(answer, "EvalID"), cli_value(job, "ID"), cli->namespace,
                            true);
    json_decref(answer);
    json_decref(job);
    return status;
}

const struct cli_verb cli_job_stop = {
    .group = "job",
    .name = "stop",
    .arguments = "ID",
    .min = 1,
    .max = 1,
    .summary = "Stop a job and wait until nothing of it runs",
    .help = "    $ cairn job stop web\n"
            "    $ cairn job stop -purge -detach web",
    .flags = stop_flags,
    .run = run_stop,
};
