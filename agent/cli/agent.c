/* cairn agent, version, monitor, system gc: the agent itself. */
#include "agent/cli/cli.h"

#include "agent/built.h"
#include "agent/config/config.h"
#include "agent/process.h"
#include "agent/version.h"
#include "io/log.h"
#include "journal/journal.h"

#include <stdlib.h>
#include <string.h>

/* --- agent --- */

static const struct cli_flag agent_flags[] = {
    {"config", FLAG_TEXT, "PATH", "a file, or a directory of *.hcl and *.json; may be repeated"},
    {"data-dir", FLAG_TEXT, "DIR", "where everything is kept; required here or in a file"},
    {"alloc-dir", FLAG_TEXT, "DIR", "directories of allocs; default <data-dir>/alloc"},
    {"state-dir", FLAG_TEXT, "DIR", "journal and shims; default <data-dir>/client"},
    {"bind", FLAG_TEXT, "ADDRESS", "numeric address to listen on; default 127.0.0.1"},
    {"http-port", FLAG_NUMBER, "PORT", "default 4646; 0: any free one, which the log names"},
    {"node", FLAG_TEXT, "NAME", "the node's name; default: the host's"},
    {"region", FLAG_TEXT, "NAME", "default global"},
    {"dc", FLAG_TEXT, "NAME", "datacenter; default dc1"},
    {"node-class", FLAG_TEXT, "NAME", "for constraints of jobs"},
    {"log-level", FLAG_TEXT, "LEVEL", "ERROR, WARN, INFO, DEBUG or TRACE; default INFO"},
    {"log-file", FLAG_TEXT, "PATH", "default: standard error"},
    {"log-json", FLAG_SWITCH, NULL, "one JSON object a line"},
    {"shim", FLAG_TEXT, "PATH", "the cairn-shim program; default: beside this one"},
    {"take-over", FLAG_SWITCH, NULL, "a moved or restored directory: go on as its node"},
    {"new-node", FLAG_SWITCH, NULL, "a copied directory: put aside what it holds, be another"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

struct override {
    const char *flag;
    size_t offset, size;
};

#define OVERRIDE(flag, member)                                                                     \
    {                                                                                              \
        flag, offsetof(struct config, member), sizeof(((struct config *)NULL)->member)             \
    }

static const struct override overrides[] = {
    OVERRIDE("data-dir", data_dir),   OVERRIDE("alloc-dir", alloc_dir),
    OVERRIDE("state-dir", state_dir), OVERRIDE("bind", http_address),
    OVERRIDE("node", name),           OVERRIDE("region", region),
    OVERRIDE("dc", datacenter),       OVERRIDE("node-class", node_class),
    OVERRIDE("log-level", log_level), OVERRIDE("log-file", log_file),
    OVERRIDE("shim", shim_path),
};

/* Flags win over files. */
static int apply_flags(const struct cli *cli, struct config *config)
{
    int64_t port = config->http_port;

    for (size_t i = 0; i < COUNT_OF(overrides); i++) {
        const char *text = cli_text(cli, overrides[i].flag, NULL);

        if (text != NULL &&
            !text_copy((char *)config + overrides[i].offset, overrides[i].size, text))
            return cli_fail(CLI_USAGE, "-%s is longer than %zu bytes", overrides[i].flag,
                            overrides[i].size - 1);
    }
    if (cli_number(cli, "http-port", &port) != 0)
        return CLI_USAGE;
    if (port > UINT16_MAX)
        return cli_fail(CLI_USAGE, "-http-port %lld is no port", (long long)port);
    config->http_port = (uint16_t)port;
    config->log_json |= cli_switch(cli, "log-json");
    config->take_over = cli_switch(cli, "take-over");
    config->new_node = cli_switch(cli, "new-node");
    if (config->take_over && config->new_node)
        return cli_fail(CLI_USAGE, "-take-over and -new-node: it can be only one of them");
    return 0;
}

static int read_config(const struct cli *cli, struct config *config)
{
    struct err err = {0};
    const char *path;

    for (size_t i = 0; (path = cli_text_again(cli, "config", i)) != NULL; i++) {
        if (config_read(config, path, &err) != 0)
            return cli_fail(CLI_FAILED, "%s", err.text);
    }
    int status = apply_flags(cli, config);
    if (status == 0 && config_finish(config, &err) != 0)
        status = cli_fail(CLI_FAILED, "%s", err.text);
    return status;
}

/* Where a socket was passed the agent listens there: what it is bound to counts, not what it would
 * have been. */
static int take_service(struct service *service, struct config *config)
{
    struct err err = {0};

    if (service_open(service, &err) != 0)
        return cli_fail(CLI_FAILED, "%s", err.text);
    if (service->listen_fd >= 0) {
        (void)text_copy(config->bind_address, sizeof(config->bind_address),
                        service->address); /* as long */
        config->http_port = service->port;
    }
    return 0;
}

static int start_log(const struct config *config, const struct service *service)
{
    enum log_level level = LOG_INFO;

    (void)log_level_from_text(config->log_level,
                              &level); /* config_finish has seen that it is one */
    int number =
        log_init(level, config->log_file[0] != '\0' ? config->log_file : NULL, config->log_json);
    if (number == 0 && service->logs_to_journal && config->log_file[0] == '\0' && !config->log_json)
        (void)log_to_journald(NULL); /* else it reads our lines as they are */
    return number == 0 ? 0
                       : cli_fail(CLI_FAILED, "cannot write the log to %s: %s", config->log_file,
                                  strerror(-number));
}

static int run_agent(struct cli *cli)
{
    struct config *config = malloc(sizeof(*config)); /* it holds several paths */
    struct service service = {.notify_fd = -1, .listen_fd = -1};
    int status;

    check(config != NULL);
    config_defaults(config);
    status = read_config(cli, config);
    if (status == 0)
        status = take_service(&service, config);
    if (status == 0)
        status = start_log(config, &service);
    if (status == 0)
        status = process_run(config, &service);
    service_close(&service);
    config_free(config);
    free(config);
    return status;
}

const struct cli_verb cli_agent = {
    .group = "",
    .name = "agent",
    .arguments = "",
    .is_local = true,
    .summary = "Run the agent of this node in the foreground",
    .help = "  Without servers the node is its own control plane: submit jobs with\n"
            "  `cairn job run`. SIGTERM and SIGINT end the agent, not what it runs: the next\n"
            "  agent on the same directory finds every task again.\n\n"
            "  Start one with everything in a directory of its own:\n\n"
            "    $ cairn agent -data-dir /var/lib/cairn\n\n"
            "  With configuration files, the later one winning, and one value by flag:\n\n"
            "    $ cairn agent -config /etc/cairn.d -log-level DEBUG\n\n"
            "  A data directory that was copied, restored, or moved from another disk is not\n"
            "  taken for the node that it came from: the agent refuses to start on it, and says\n"
            "  where that node was. Renaming it on its disk is fine. Start it once with\n\n"
            "    -take-over   to go on as that node here; what still runs of it elsewhere on this\n"
            "                 machine is ended and started again, and never while its agent runs\n"
            "    -new-node    to be a node of its own with nothing to run; what was copied is put\n"
            "                 aside in <state-dir>/copied.1, with the directories of its allocs\n\n"
            "  Where the directory is the node's own, both do nothing.",
    .flags = agent_flags,
    .run = run_agent,
};

/* --- version --- */

#ifdef __clang__
#define COMPILER "compiler" /* its version says which */
#else
#define COMPILER "gcc"
#endif

static int run_version(struct cli *cli)
{
    (void)cli;
    (void)printf("cairn " CAIRN_VERSION "\n"
                 "built from " CAIRN_BUILT_FROM ", " CAIRN_BUILT_VARIANT ", " COMPILER
                 " " __VERSION__ "\n"
                 "journals of schema %d\n",
                 JOURNAL_SCHEMA);
    return CLI_OK;
}

const struct cli_verb cli_version = {
    .group = "",
    .name = "version",
    .arguments = "",
    .is_local = true,
    .summary = "Print the version, and what was built from what",
    .help = "",
    .run = run_version,
};

/* --- system gc --- */

static int run_system_gc(struct cli *cli)
{
    char path[CLI_URL_SIZE];
    json_t *answer;
    int status = cli_put(cli, cli_path(cli, path, "/v1/system/gc"), NULL, &answer);

    if (status == 0)
        json_decref(answer);
    return status;
}

const struct cli_verb cli_system_gc = {
    .group = "system",
    .name = "gc",
    .arguments = "",
    .summary = "Remove allocs that have ended, and stopped jobs without any",
    .help = "  The agent does this by itself when too many have gathered\n"
            "  (client.gc_max_allocs); this does it now.\n\n"
            "    $ cairn system gc",
    .run = run_system_gc,
};

/* --- monitor --- */

static const struct cli_flag monitor_flags[] = {
    {"log-level", FLAG_TEXT, "LEVEL", "ERROR, WARN, INFO, DEBUG or TRACE; default INFO"},
    {"log-json", FLAG_SWITCH, NULL, "one JSON object a line"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static bool print_bytes(void *ctx, const char *bytes, size_t length)
{
    (void)ctx;
    return fwrite(bytes, 1, length, stdout) == length && fflush(stdout) == 0;
}

static int run_monitor(struct cli *cli)
{
    char path[CLI_URL_SIZE];

    return cli_stream(cli,
                      cli_path(cli, path, "/v1/agent/monitor?plain=true&log_level=%s&log_json=%s",
                               cli_text(cli, "log-level", "INFO"),
                               cli_switch(cli, "log-json") ? "true" : "false"),
                      print_bytes, NULL);
}

const struct cli_verb cli_monitor = {
    .group = "",
    .name = "monitor",
    .arguments = "",
    .summary = "Follow the log of the agent",
    .help = "    $ cairn monitor -log-level DEBUG",
    .flags = monitor_flags,
    .run = run_monitor,
};
