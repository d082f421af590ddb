/* cairn alloc fs. */
#include "agent/cli/cli.h"

#include <inttypes.h>
#include <string.h>

static const struct cli_flag fs_flags[] = {
    {"stat", FLAG_SWITCH, NULL, "show what a file is, not what is in it"},
    {"H", FLAG_SWITCH, NULL, "sizes in KiB, MiB and so on"},
    {"f", FLAG_SWITCH, NULL, "go on with what is written to the file from now on"},
    {"tail", FLAG_SWITCH, NULL, "only the end of it: 10 lines, or -n"},
    {"n", FLAG_NUMBER, "LINES", "how many lines of the end; means -tail"},
    {"c", FLAG_NUMBER, "BYTES", "how many bytes of the end; means -tail"},
    {"job", FLAG_SWITCH, NULL, "ID is a job's: of its newest alloc that runs"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static void add_info(const struct cli *cli, struct cli_table *table, const json_t *info)
{
    uint64_t size = (uint64_t)json_integer_value(json_object_get(info, "Size"));
    bool directory = json_is_true(json_object_get(info, "IsDir"));

    cli_row(table, cli_value(info, "FileMode"),
            cli_switch(cli, "H") ? cli_bytes(size) : cli_format("%" PRIu64, size),
            cli_value(info, "ModTime"),
            cli_format("%s%s", cli_value(info, "Name"), directory ? "/" : ""));
}

static int list_directory(struct cli *cli, const char *id, const char *path)
{
    char url[CLI_URL_SIZE];
    struct cli_table table = {0};
    json_t *infos, *info;
    size_t at;

    int status =
        cli_get(cli, cli_path(cli, url, "/v1/client/fs/ls/%s?path=%s", id, path), &infos, NULL);
    if (status != 0)
        return status;
    if (cli->json) {
        cli_print_json(infos);
    } else {
        cli_row(&table, "Mode", "Size", "Modified Time", "Name");
        json_array_foreach(infos, at, info)
        {
            add_info(cli, &table, info);
        }
        cli_table_print(&table, stdout);
    }
    json_decref(infos);
    return CLI_OK;
}

static bool print_bytes(void *ctx, const char *bytes, size_t length)
{
    (void)ctx;
    return fwrite(bytes, 1, length, stdout) == length;
}

static int show_path(struct cli *cli, struct cli_tail *tail, const char *id, const char *path)
{
    char url[CLI_URL_SIZE];
    struct cli_table table = {0};
    json_t *info;

    int status =
        cli_get(cli, cli_path(cli, url, "/v1/client/fs/stat/%s?path=%s", id, path), &info, NULL);
    if (status != 0)
        return status;
    bool directory = json_is_true(json_object_get(info, "IsDir"));
    if (cli_switch(cli, "stat") && cli->json) {
        cli_print_json(info);
    } else if (cli_switch(cli, "stat")) {
        cli_row(&table, "Mode", "Size", "Modified Time", "Name");
        add_info(cli, &table, info);
        cli_table_print(&table, stdout);
    } else if (directory) {
        status = list_directory(cli, id, path);
    } else if (cli_switch(cli, "f") || !tail->passing) {
        status = cli_tail_stream(cli, tail,
                                 cli_path(cli, url, "/v1/client/fs/stream/%s?path=%s", id, path));
    } else {
        status = cli_stream(cli, cli_path(cli, url, "/v1/client/fs/cat/%s?path=%s", id, path),
                            print_bytes, NULL);
    }
    json_decref(info);
    return status;
}

static int run_fs(struct cli *cli)
{
    const char *path = cli_argument(cli, 1);
    struct cli_tail tail;
    json_t *alloc;
    int status = cli_tail_read(cli, &tail);

    if (status == 0)
        status = cli_find_meant(cli, &alloc);
    if (status != 0)
        return status;
    status = show_path(cli, &tail, cli_value(alloc, "ID"), path != NULL ? path : "/");
    json_decref(alloc);
    return status;
}

const struct cli_verb cli_alloc_fs = {
    .group = "alloc",
    .name = "fs",
    .arguments = "ID [PATH]",
    .min = 1,
    .max = 2,
    .summary = "List a directory of an alloc, or print a file",
    .help = "  Paths begin at the alloc's directory. What is in a task's secrets directory is\n"
            "  listed, but never printed.\n\n"
            "    $ cairn alloc fs 3f2a91c4\n"
            "    $ cairn alloc fs 3f2a91c4 alloc/logs/web.stdout.0\n"
            "    $ cairn alloc fs -f -n 20 3f2a91c4 web/local/access.log\n"
            "    $ cairn alloc fs -stat 3f2a91c4 web/local/config",
    .flags = fs_flags,
    .run = run_fs,
};
