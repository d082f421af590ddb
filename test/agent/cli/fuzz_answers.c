/*
 * Whatever an agent answers to a command line: the first byte says to which, each piece of the
 * input is the answer to one call of it.  Behind the last nobody answers any more.
 *
 * Nothing of it is shown that a terminal would take for a command.
 */
#include "test/fuzz.h"

#include "agent/cli/cli.h"

static struct fuzz_input answers;

/* --- an agent --- */

/* The answer to one call; the two bytes before it are the status of HTTP and the index. */
static void fake_run(struct loop *loop);
static struct http_request *fake_start(struct loop *loop, const struct http_call *call,
                                       struct err *err);
static bool fake_header(const struct http_reply *reply, const char *name, char *to, size_t size);

#define http_start fake_start
#define loop_run fake_run
#define http_reply_header fake_header
#include "agent/cli/call.c"
#undef http_start
#undef loop_run
#undef http_reply_header

static struct http_call asked;
static char index_text[24];

static struct http_request *fake_start(struct loop *loop, const struct http_call *http,
                                       struct err *err)
{
    (void)loop;
    (void)err;
    check(text_is_utf8(http->url, strlen(http->url)));
    asked = *http;
    return (struct http_request *)&asked;
}

static bool fake_header(const struct http_reply *reply, const char *name, char *to, size_t size)
{
    (void)reply;
    check(text_equal(name, "X-Nomad-Index"));
    return index_text[0] != '\0' && text_copy(to, size, index_text);
}

static void fake_run(struct loop *loop)
{
    static const int statuses[] = {200, 200, 200, 200, 200, 204, 404, 500};
    struct http_reply reply = {.error = {.code = ERR_AGAIN}};
    const uint8_t *bytes;
    size_t length;

    (void)loop;
    if (fuzz_piece(&answers, &bytes, &length) && length > 1) {
        reply = (struct http_reply){.status = statuses[bytes[0] % COUNT_OF(statuses)],
                                    .body = (const char *)bytes + 2,
                                    .body_length = length - 2};
        (void)text_format(index_text, sizeof(index_text), "%u", bytes[1]); /* it fits */
        if (asked.on_data != NULL && reply.status == 200) {
            (void)asked.on_data(asked.ctx, reply.body, reply.body_length);
            reply.body_length = 0;
        }
    }
    asked.cb(asked.ctx, &reply);
}

/* --- command lines --- */

/* Lines of it are lines. */
static void check_shown(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        check(*at >= 0x20u || *at == '\n');
        check(*at != 0x7Fu && (at[0] != 0xC2u || at[1] < 0x80u || at[1] >= 0xA0u));
    }
}

static const struct typed {
    const struct cli_verb *verb;
    const char *line;
} lines[] = {
    {&cli_job_status, "job status"},
    {&cli_job_status, "job status -verbose x"},
    {&cli_job_history, "job history -p x"},
    {&cli_job_revert, "job revert -detach x 0"},
    {&cli_job_promote, "job promote x"},
    {&cli_job_scale, "job scale x g 3"},
    {&cli_job_stop, "job stop -yes x"},
    {&cli_job_start, "job start x"},
    {&cli_job_eval, "job eval x"},
    {&cli_job_dispatch, "job dispatch x"},
    {&cli_job_periodic, "job periodic force x"},
    {&cli_job_scaling_events, "job scaling-events -verbose x"},
    {&cli_job_restart, "job restart -yes -on-error=fail x"},
    {&cli_eval_list, "eval list"},
    {&cli_eval_status, "eval status x"},
    {&cli_deployment_list, "deployment list"},
    {&cli_deployment_status, "deployment status -verbose x"},
    {&cli_deployment_promote, "deployment promote x"},
    {&cli_deployment_fail, "deployment fail x"},
    {&cli_scaling_policy, "scaling policy list"},
    {&cli_scaling_policy, "scaling policy info x"},
    {&cli_acl_bootstrap, "acl bootstrap"},
    {&cli_acl_policy, "acl policy list"},
    {&cli_acl_policy, "acl policy info x"},
    {&cli_acl_token, "acl token list"},
    {&cli_acl_token, "acl token info x"},
    {&cli_alloc_status, "alloc status -verbose -stats x"},
    {&cli_alloc_status, "alloc status -short x"},
    {&cli_alloc_restart, "alloc restart x"},
    {&cli_alloc_signal, "alloc signal x"},
    {&cli_alloc_stop, "alloc stop x"},
    {&cli_alloc_fs, "alloc fs x /"},
    {&cli_alloc_fs, "alloc fs -stat -H x /a"},
    {&cli_node_status, "node status -verbose"},
    {&cli_node_status, "node status -verbose -stats -self"},
    {&cli_node_status, "node status x"},
    {&cli_node_eligibility, "node eligibility -disable -self"},
    {&cli_node_drain, "node drain -enable -yes -self"},
    {&cli_node_drain, "node drain -monitor -self"},
    {&cli_plugin_status, "plugin status"},
    {&cli_plugin_status, "plugin status -verbose x"},
    {&cli_volume_status, "volume status"},
    {&cli_volume_status, "volume status -verbose -type csi x"},
    {&cli_volume_status, "volume status -verbose -type host x"},
    {&cli_volume_snapshot, "volume snapshot list -plugin x"},
    {&cli_volume_detach, "volume detach x y"},
    {&cli_volume_delete, "volume delete x"},
    {&cli_volume_deregister, "volume deregister x"},
    {&cli_status, "status x"},
    {&cli_node_meta, "node meta read"},
};

/* They pass on what they get. */
static const struct typed raw_lines[] = {
    {&cli_job_status, "job status -json x"},
    {&cli_job_inspect, "job inspect x"},
    {&cli_alloc_logs, "alloc logs -tail -n 3 x"},
    {&cli_alloc_fs, "alloc fs x /a"},
    {&cli_operator_metrics, "operator metrics -pretty"},
    {&cli_monitor, "monitor"},
};

int LLVMFuzzerInitialize(int *arguments_count, char ***arguments)
{
    (void)arguments_count;
    (void)arguments;
    check(freopen("/dev/null", "r", stdin) != NULL);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char words[256] = "cairn ", *argv[24], *rest = words, *shown = NULL, *complained = NULL;
    size_t shown_length = 0, complained_length = 0;
    int argc = 0;

    if (size == 0)
        return 0;
    const size_t which = data[0] % (COUNT_OF(lines) + COUNT_OF(raw_lines));
    bool is_raw = which >= COUNT_OF(lines);
    const struct typed *typed = is_raw ? &raw_lines[which - COUNT_OF(lines)] : &lines[which];
    answers = (struct fuzz_input){data + 1, size - 1};
    index_text[0] = '\0';
    check(text_append(words, sizeof(words), typed->line));
    for (char *word = strsep(&rest, " "); word != NULL; word = strsep(&rest, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    FILE *out = stdout, *complain = stderr;
    stdout = open_memstream(&shown, &shown_length);
    stderr = open_memstream(&complained, &complained_length);
    check(stdout != NULL && stderr != NULL);
    int status = cli_main(&typed->verb, 1, argc, argv);
    check(fclose(stdout) == 0 && fclose(stderr) == 0);
    stdout = out;
    stderr = complain;
    if (!is_raw)
        check_shown(shown);
    check_shown(complained);
    check(status == CLI_OK || shown_length + complained_length > 0);
    free(shown);
    free(complained);
    return 0;
}
