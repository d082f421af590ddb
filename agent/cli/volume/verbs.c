/*
 * cairn volume: volumes of storage plugins, and of the host (host.c).
 *
 * Files are read here, not by the agent, so that mistakes are shown with the file's own lines.  The
 * words are those of nomad v2.0.5 command/volume_*.go.
 */
#include "agent/cli/volume/volume.h"

#include "io/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- status --- */

static const struct cli_flag status_flags[] = {
    {"type", FLAG_TEXT, "TYPE", "only those of type csi, or host"},
    {"short", FLAG_SWITCH, NULL, "without capabilities and allocs, and without asking its plugin"},
    {"verbose", FLAG_SWITCH, NULL, "whole ids; with the list, what plugins themselves know"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static void print_mount_options(struct cli_table *table, const json_t *volume)
{
    const json_t *options = json_object_get(volume, "MountOptions");
    const char *type = cli_value(options, "FSType");
    bool flags = json_array_size(json_object_get(options, "MountFlags")) > 0;
    const char *text = type[0] == '\0' ? "" : cli_format("fs_type: %s ", type);

    cli_row(table, "Mount Options", flags ? cli_format("%sflags: [REDACTED]", text) : text);
}

/* From where it can be reached, as its plugin says. */
static void print_topologies(const struct cli *cli, const json_t *volume)
{
    const json_t *list = json_object_get(volume, "Topologies"), *topology;
    struct cli_table table = {0};
    size_t at;

    if (json_array_size(list) == 0)
        return;
    cli_heading(cli, "Topologies");
    cli_row(&table, "Topology", "Segments");
    json_array_foreach(list, at, topology)
    {
        cli_row(&table, cli_format("%02zu", at), cli_segments(topology));
    }
    cli_table_print(&table, stdout);
}

/* Whoever has it still, and why, which Nomad's tables leave out. */
static void print_failures(const struct cli *cli, const json_t *volume)
{
    json_t *failures = json_object_get(volume, "CairnFailures"), *failure;
    struct cli_table table = {0};
    const char *alloc;

    if (json_object_size(failures) == 0)
        return;
    cli_heading(cli, "Not Let Go Yet");
    cli_row(&table, "Allocation", "Last Failure");
    json_object_foreach(failures, alloc, failure)
    {
        cli_row(&table, cli_short(cli, alloc), json_string_value(failure));
    }
    cli_table_print(&table, stdout);
}

static void print_usage(struct cli_table *table, const json_t *usage, bool bytes)
{
    static const char *const names[] = {"Used", "Total", "Available"};
    const char *texts[COUNT_OF(names)];

    if (usage == NULL)
        return;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        texts[i] = bytes ? cli_bytes((uint64_t)json_integer_value(json_object_get(usage, names[i])))
                         : cli_value(usage, names[i]);
    cli_row(table, bytes ? "Used" : "Inodes Used",
            cli_format("%s of %s, %s available", texts[0], texts[1], texts[2]));
}

/* How full it is and how it is, as its plugin says: nothing if nobody has mounted it. */
static void print_stats(struct cli_table *table, const json_t *volume)
{
    const json_t *stats = json_object_get(volume, "CairnStats");
    const json_t *abnormal = json_object_get(stats, "IsAbnormal");
    const char *status = cli_value(stats, "Status");

    print_usage(table, json_object_get(stats, "Bytes"), true);
    print_usage(table, json_object_get(stats, "Inodes"), false);
    if (abnormal != NULL)
        cli_row(table, "Condition",
                cli_format("%s%s%s%s", json_is_true(abnormal) ? "Abnormal" : "OK",
                           status[0] == '\0' ? "" : " (", status, status[0] == '\0' ? "" : ")"));
    if (cli_value(stats, "Error")[0] != '\0')
        cli_row(table, "Used", cli_format("not known: %s", cli_value(stats, "Error")));
}

static void print_volume(const struct cli *cli, const json_t *volume)
{
    static const struct {
        const char *title, *name;
    } rows[] = {
        {"ID", "ID"},
        {"Name", "Name"},
        {"Namespace", "Namespace"},
        {"External ID", "ExternalID"},
        {"Plugin ID", "PluginID"},
        {"Provider", "Provider"},
        {"Version", "ProviderVersion"},
        {"Capacity", NULL},
        {"Schedulable", "Schedulable"},
        {"Controllers Healthy", "ControllersHealthy"},
        {"Controllers Expected", "ControllersExpected"},
        {"Nodes Healthy", "NodesHealthy"},
        {"Nodes Expected", "NodesExpected"},
        {"Access Mode", "AccessMode"},
        {"Attachment Mode", "AttachmentMode"},
    };
    struct cli_table table = {0};
    uint64_t bytes = (uint64_t)json_integer_value(json_object_get(volume, "Capacity"));

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        cli_row(&table, rows[i].title,
                rows[i].name == NULL ? cli_bytes(bytes) : cli_value(volume, rows[i].name));
    print_mount_options(&table, volume);
    print_stats(&table, volume);
    if (!text_equal(cli_value(volume, "CairnState"), "ready"))
        cli_row(&table, "State", cli_value(volume, "CairnState"));
    if (cli_value(volume, "CairnFailure")[0] != '\0')
        cli_row(&table, "Last Failure", cli_value(volume, "CairnFailure"));
    cli_table_print_pairs(&table, stdout);
    if (cli_switch(cli, "short"))
        return;
    print_topologies(cli, volume);
    volume_print_use(cli, volume);
    print_failures(cli, volume);
}

static int show_one(struct cli *cli)
{
    json_t *entry;
    int status = volume_find(cli, cli_argument(cli, 0), &entry);

    if (status != 0)
        return status;
    status = volume_show(
        cli, cli_switch(cli, "short") ? "/v1/volume/csi/%s" : "/v1/volume/csi/%s?stats=true", entry,
        print_volume);
    json_decref(entry);
    return status;
}

/* RET_HERE: some task is PLUGIN, or is to be. */
static int ask_whether_it_is_here(struct cli *cli, const char *plugin, bool *ret_here)
{
    char path[CLI_URL_SIZE];
    json_t *list, *entry;
    size_t at;
    int status =
        cli_get(cli, cli_path(cli, path, "/v1/plugins?type=csi&prefix=%s", plugin), &list, NULL);

    if (status != 0)
        return status;
    *ret_here = false;
    json_array_foreach(list, at, entry) *ret_here |= text_equal(cli_value(entry, "ID"), plugin);
    json_decref(list);
    return CLI_OK;
}

/* RET_LISTS: PLUGIN can say which volumes there are. */
static int ask_whether_it_lists(struct cli *cli, const char *plugin, bool *ret_lists)
{
    char path[CLI_URL_SIZE];
    json_t *answer, *controller;
    const char *node;
    int status = cli_get(cli, cli_path(cli, path, "/v1/plugin/csi/%s", plugin), &answer, NULL);

    if (status != 0)
        return status;
    *ret_lists = false;
    json_object_foreach(json_object_get(answer, "Controllers"), node, controller)
    {
        const json_t *info = json_object_get(controller, "ControllerInfo");

        *ret_lists = *ret_lists || json_is_true(json_object_get(info, "SupportsListVolumes"));
    }
    json_decref(answer);
    return CLI_OK;
}

/* What a plugin says that there is, registered or not. */
static int print_external(struct cli *cli, const char *plugin)
{
    char path[CLI_URL_SIZE];
    struct cli_table table = {0};
    json_t *answer, *entry, *node;
    size_t at, n;
    bool here = false, lists = false;

    cli_heading(cli, cli_format("Known to plugin %s", plugin));
    int status = ask_whether_it_is_here(cli, plugin, &here);
    if (status == 0 && here)
        status = ask_whether_it_lists(cli, plugin, &lists);
    if (status == 0 && !lists)
        (void)puts(here ? "It lists none" : "It is not here");
    if (status != 0 || !lists)
        return status;
    status = cli_get(cli, cli_path(cli, path, "/v1/volumes/external?plugin_id=%s", plugin), &answer,
                     NULL);
    if (status != 0)
        return status;
    cli_row(&table, "External ID", "Condition", "Nodes");
    json_array_foreach(json_object_get(answer, "Volumes"), at, entry)
    {
        char nodes[256] = "";

        json_array_foreach(json_object_get(entry, "PublishedExternalNodeIDs"), n, node)
        {
            (void)text_append(nodes, sizeof(nodes), n > 0 ? "," : ""); /* a cut list is enough */
            (void)text_append(nodes, sizeof(nodes), json_string_value(node));
        }
        cli_row(&table, cli_value(entry, "ExternalID"),
                json_is_true(json_object_get(entry, "IsAbnormal"))
                    ? cli_format("Abnormal (%s)", cli_value(entry, "Status"))
                    : "OK",
                nodes);
    }
    cli_table_print(&table, stdout);
    json_decref(answer);
    return CLI_OK;
}

static int show_all(struct cli *cli)
{
    char path[CLI_URL_SIZE];
    json_t *list, *entry;
    size_t at;
    int status = cli_get(cli, cli_path(cli, path, "/v1/volumes?type=csi"), &list, NULL);

    if (status != 0)
        return status;
    if (cli->json)
        cli_print_json(list);
    else {
        cli_title(cli, "Container Storage Interface");
        if (json_array_size(list) == 0)
            (void)puts("No CSI volumes");
        else
            volume_print_list(list);
    }
    /* Each plugin that volumes are of, once. */
    json_array_foreach(list, at, entry)
    {
        const char *plugin = cli_value(entry, "PluginID");
        size_t before = 0;

        while (!text_equal(cli_value(json_array_get(list, before), "PluginID"), plugin))
            before++;
        if (!cli->json && cli_switch(cli, "verbose") && before == at && status == 0 &&
            json_is_true(json_object_get(entry, "ControllerRequired")))
            status = print_external(cli, plugin);
    }
    json_decref(list);
    return status;
}

static int run_status(struct cli *cli)
{
    const char *type = cli_text(cli, "type", ""), *prefix = cli_argument(cli, 0);
    json_t *entry = NULL;
    int status = 0;

    if (type[0] != '\0' && !text_equal(type, "csi") && !text_equal(type, "host"))
        return cli_fail(CLI_USAGE, "there are volumes of type csi and of type host");
    bool host = !text_equal(type, "csi"), csi = !text_equal(type, "host");
    if (prefix != NULL && host)
        status = volume_find_host(cli, prefix, &entry);
    if (entry != NULL) {
        status = volume_show_host(cli, entry);
        json_decref(entry);
        return status;
    }
    if (prefix != NULL && status == 0)
        return csi ? show_one(cli)
                   : cli_fail(CLI_FAILED, "no host volume has a name or id that begins with \"%s\"",
                              prefix);
    if (status == 0 && host && !(cli->json && csi)) {
        status = volume_list_host(cli);
        if (csi)
            (void)putchar('\n');
    }
    return status == 0 && csi ? show_all(cli) : status;
}

const struct cli_verb cli_volume_status = {
    .group = "volume",
    .name = "status",
    .arguments = "[ID]",
    .max = 1,
    .summary = "List volumes, or show one and who has it",
    .help =
        "  Those of the node's configuration are shown by `cairn node status -self\n"
        "  -verbose`. With -json and without -type the list is that of type csi.  The plugin of\n"
        "  one that is mounted is asked how full it is, unless with -short.\n"
        "\n"
        "    $ cairn volume status\n"
        "    $ cairn volume status -type host\n"
        "    $ cairn volume status database",
    .flags = status_flags,
    .run = run_status,
};

/* --- init --- */

static const struct cli_flag init_flags[] = {
    {"json", FLAG_SWITCH, NULL, "write JSON"},
    {"type", FLAG_TEXT, "TYPE", "of a volume of type csi, the default, or host"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static int run_init(struct cli *cli)
{
    bool json = cli_switch(cli, "json");
    const char *name = cli_argument(cli, 0),
               *text = json ? volume_example_json : volume_example_hcl;
    const char *type = cli_text(cli, "type", "csi");

    if (!text_equal(type, "csi") && !text_equal(type, "host"))
        return cli_fail(CLI_USAGE, "there are volumes of type csi and of type host");
    if (text_equal(type, "host") && json)
        return cli_fail(CLI_USAGE, "the example of a host volume is HCL");
    if (text_equal(type, "host"))
        text = volume_example_host_hcl;

    if (name == NULL)
        name = json ? "volume.json" : "volume.hcl";
    /* Whoever fills it in may write secrets into it. */
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return cli_fail(CLI_FAILED, "cannot make %s: %s", name, strerror(errno));
    FILE *to = fdopen(fd, "w");
    check(to != NULL);
    bool failed = fputs(text, to) == EOF;
    if (fclose(to) != 0 || failed)
        return cli_fail(CLI_FAILED, "cannot write %s", name);
    (void)printf("Example volume specification written to %s\n", name);
    return CLI_OK;
}

const struct cli_verb cli_volume_init = {
    .group = "volume",
    .name = "init",
    .arguments = "[FILE]",
    .max = 1,
    .is_local = true,
    .summary = "Write an example of a volume's file",
    .help = "    $ cairn volume init\n"
            "    $ cairn volume init -type host data.hcl\n"
            "    $ cairn volume init -json disk.json",
    .flags = init_flags,
    .run = run_init,
};

/* --- register, create --- */

static int read_volume(const struct cli *cli, json_t **ret_volume, bool *ret_is_host)
{
    char *error = malloc(HCL_ERROR_SIZE), *text;
    const char *name;
    size_t length;

    check(error != NULL);
    int status = cli_read_input(cli, 0, &name, &text, &length);
    if (status == 0) {
        if (volume_read(name, text, length, ret_volume, ret_is_host, error) != 0)
            status = cli_fail(CLI_FAILED, "%s", error);
        explicit_bzero(text, length); /* of secrets there are no more copies than need be */
        free(text);
    }
    free(error);
    return status;
}

static int send_volume(struct cli *cli, bool creates)
{
    char path[CLI_URL_SIZE];
    json_t *volume, *answer;
    bool is_host;
    int status = read_volume(cli, &volume, &is_host);

    if (status != 0)
        return status;
    if (cli_value(volume, "Namespace")[0] == '\0')
        check(json_object_set_new(volume, "Namespace", json_string(cli->namespace)) == 0);
    if (is_host) {
        status = volume_send_host(cli, volume, creates);
        json_decref(volume);
        return status;
    }
    json_t *body = json_pack("{s:[O]}", "Volumes", volume);
    check(body != NULL);
    const char *id = cli_value(volume, "ID");
    if (id[0] == '\0')
        status = cli_fail(CLI_FAILED, "the volume has no id");
    else
        status = cli_put(cli,
                         creates ? cli_path(cli, path, "/v1/volume/csi/%s/create", id)
                                 : cli_path(cli, path, "/v1/volume/csi/%s", id),
                         body, &answer);
    if (status == CLI_FAILED && id[0] != '\0') {
        cli->namespace = cli_value(volume, "Namespace");
        volume_say_doubt(cli, id);
    }
    json_decref(body);
    json_decref(volume);
    if (status != 0)
        return status;
    const json_t *made = json_array_get(json_object_get(answer, "Volumes"), 0);
    if (cli_value(answer, "Warnings")[0] != '\0')
        (void)printf("Volume Warnings:\n%s\n\n", cli_value(answer, "Warnings"));
    if (creates)
        (void)printf("Created external volume %s with ID %s\n", cli_value(made, "ExternalID"),
                     cli_value(made, "ID"));
    else
        (void)printf("Volume \"%s\" registered\n", cli_value(made, "ID"));
    json_decref(answer);
    return CLI_OK;
}

static int run_register(struct cli *cli)
{
    return send_volume(cli, false);
}

const struct cli_verb cli_volume_register = {
    .group = "volume",
    .name = "register",
    .arguments = "FILE",
    .min = 1,
    .max = 1,
    .summary = "Make a volume known to jobs that is there already, or change it",
    .help = "  The file names the volume as its storage does (external_id). Its secrets are\n"
            "  kept where no command shows them. Registering it again changes what may be\n"
            "  changed. A volume of type host is named by its node and the path that it has\n"
            "  there (node_id, host_path).\n"
            "\n"
            "    $ cairn volume register volume.hcl",
    .run = run_register,
};

static int run_create(struct cli *cli)
{
    return send_volume(cli, true);
}

const struct cli_verb cli_volume_create = {
    .group = "volume",
    .name = "create",
    .arguments = "FILE",
    .min = 1,
    .max = 1,
    .summary = "Have a plugin make a volume, and register it",
    .help = "  `cairn volume init` writes an example of a file. If it is not known what came of\n"
            "  it, the plugin is asked again until it is; `cairn volume status` shows the state.\n"
            "  Creating a volume that is there changes it: with a larger capacity_min it grows.\n"
            "  One of type host that is there is named by its id.\n"
            "\n"
            "    $ cairn volume create volume.hcl",
    .run = run_create,
};

/* --- deregister, delete, detach --- */

static const struct cli_flag deregister_flags[] = {
    {"force", FLAG_SWITCH, NULL, "though allocs that have ended still hold it"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

/* DELETE on the volume that the first argument names, a part of FORMAT before MORE; RET_ID is its
 * whole id. */
static int act(struct cli *cli, const char *format, const char *more, char ret_id[CLI_URL_SIZE])
{
    json_t *entry;
    int status = volume_find(cli, cli_argument(cli, 0), &entry);

    if (status != 0)
        return status;
    (void)text_copy(ret_id, CLI_URL_SIZE, cli_value(entry, "ID")); /* ids are shorter */
    status = volume_act(cli, entry, format, more);
    if (status == CLI_FAILED)
        volume_say_doubt(cli, ret_id);
    json_decref(entry);
    return status;
}

static int run_deregister(struct cli *cli)
{
    char id[CLI_URL_SIZE];
    int status =
        act(cli, "/v1/volume/csi/%s?force=%s", cli_switch(cli, "force") ? "true" : "false", id);

    if (status == 0)
        (void)printf("Successfully deregistered volume \"%s\"!\n", id);
    return status;
}

const struct cli_verb cli_volume_deregister = {
    .group = "volume",
    .name = "deregister",
    .arguments = "ID",
    .min = 1,
    .max = 1,
    .summary = "Forget a volume that nobody has; its storage keeps it",
    .help = "    $ cairn volume deregister database",
    .flags = deregister_flags,
    .run = run_deregister,
};

static const struct cli_flag delete_flags[] = {
    {"type", FLAG_TEXT, "TYPE", "of the volume: csi, the default, or host"},
    {"secret", FLAG_TEXT, "KEY=VALUE", "for the plugin, over those of the volume; repeatable"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static int run_delete(struct cli *cli)
{
    char id[CLI_URL_SIZE];
    const char *type = cli_text(cli, "type", "csi");

    if (text_equal(type, "host"))
        return volume_delete_host(cli, cli_argument(cli, 0));
    if (!text_equal(type, "csi"))
        return cli_fail(CLI_USAGE, "there are volumes of type csi and of type host");
    int status = volume_add_secrets(cli);

    if (status == 0)
        status = act(cli, "/v1/volume/csi/%s/delete", "", id);
    if (status == 0)
        (void)printf("Successfully deleted volume \"%s\"!\n", id);
    return status;
}

const struct cli_verb cli_volume_delete = {
    .group = "volume",
    .name = "delete",
    .arguments = "ID",
    .min = 1,
    .max = 1,
    .summary = "Have its plugin delete a volume, with all that is on it",
    .help = "    $ cairn volume delete database\n"
            "    $ cairn volume delete -type host data",
    .flags = delete_flags,
    .run = run_delete,
};

static int run_detach(struct cli *cli)
{
    char path[CLI_URL_SIZE], id[CLI_URL_SIZE];
    json_t *nodes;
    int status = cli_get(cli, cli_path(cli, path, "/v1/nodes?prefix=%s", cli_argument(cli, 1)),
                         &nodes, NULL);

    if (status != 0)
        return status;
    if (json_array_size(nodes) == 1)
        status = act(cli, "/v1/volume/csi/%s/detach?node=%s",
                     cli_value(json_array_get(nodes, 0), "ID"), id);
    else
        status = cli_fail(CLI_FAILED,
                          "no node has an id that begins with \"%s\"; `cairn node "
                          "status` shows it",
                          cli_argument(cli, 1));
    json_decref(nodes);
    if (status == 0)
        (void)printf("Volume \"%s\" is not attached any more\n", id);
    return status;
}

const struct cli_verb cli_volume_detach = {
    .group = "volume",
    .name = "detach",
    .arguments = "ID NODE",
    .min = 2,
    .max = 2,
    .summary = "Have a storage plugin take a volume off the node that nobody has there",
    .help = "  That happens by itself when the last alloc has let go.\n"
            "\n"
            "    $ cairn volume detach database 3f2a91c4",
    .run = run_detach,
};
