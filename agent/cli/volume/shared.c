/* What the verbs of volumes share: finding, showing and changing one. */
#include "agent/cli/volume/volume.h"

#include <stdlib.h>
#include <string.h>

void volume_print_list(json_t *volumes)
{
    struct cli_table table = {0};
    json_t *volume;
    size_t at;

    cli_row(&table, "ID", "Name", "Namespace", "Plugin ID", "Schedulable", "Access Mode");
    json_array_foreach(volumes, at, volume)
    {
        cli_row(&table, cli_value(volume, "ID"), cli_value(volume, "Name"),
                cli_value(volume, "Namespace"), cli_value(volume, "PluginID"),
                cli_value(volume, "Schedulable"), cli_value(volume, "AccessMode"));
    }
    cli_table_print(&table, stdout);
}

int volume_find(struct cli *cli, const char *prefix, json_t **ret_volume)
{
    char path[CLI_URL_SIZE];
    json_t *list;
    int status =
        cli_get(cli, cli_path(cli, path, "/v1/volumes?type=csi&prefix=%s", prefix), &list, NULL);

    if (status != 0)
        return status;
    json_t *found = cli_choose(list, prefix);
    if (found != NULL) {
        *ret_volume = json_incref(found);
    } else if (json_array_size(list) == 0) {
        status =
            cli_fail(CLI_FAILED,
                     "no volume of type csi has an id that begins with \"%s\" in namespace %s; "
                     "`cairn volume status` lists all, and those of type host",
                     prefix, cli->namespace);
    } else {
        status = cli_fail(CLI_FAILED,
                          "%zu volumes have an id that begins with \"%s\":", json_array_size(list),
                          prefix);
        (void)fflush(stdout);
        volume_print_list(list);
    }
    json_decref(list);
    return status;
}

void volume_say_doubt(struct cli *cli, const char *id)
{
    char path[CLI_URL_SIZE];
    json_t *list, *entry, *volume;
    size_t at;

    if (cli_get(cli, cli_path(cli, path, "/v1/volumes?type=csi&prefix=%s", id), &list, NULL) != 0)
        return;
    json_array_foreach(list, at, entry)
    {
        if (!text_equal(cli_value(entry, "ID"), id) ||
            cli_get(cli, cli_path(cli, path, "/v1/volume/csi/%s", id), &volume, NULL) != 0)
            continue;
        if (!text_equal(cli_value(volume, "CairnState"), "ready"))
            (void)fprintf(stderr,
                          "        hint: what came of it is not known, and the plugin is asked "
                          "again: `cairn volume status %s` shows it, and `cairn volume deregister "
                          "%s` gives it up\n",
                          id, id);
        json_decref(volume);
    }
    json_decref(list);
}

void volume_print_use(const struct cli *cli, const json_t *volume)
{
    struct cli_table table = {0};
    json_t *item;
    size_t at;

    cli_heading(cli, "Capabilities");
    cli_row(&table, "Access Mode", "Attachment Mode");
    json_array_foreach(json_object_get(volume, "RequestedCapabilities"), at, item)
    {
        cli_row(&table, cli_value(item, "AccessMode"), cli_value(item, "AttachmentMode"));
    }
    cli_table_print(&table, stdout);
    cli_heading(cli, "Allocations");
    cli_print_allocs(cli, json_object_get(volume, "Allocations"));
}

int volume_show(struct cli *cli, const char *format, const json_t *entry,
                void (*print)(const struct cli *cli, const json_t *volume))
{
    char path[CLI_URL_SIZE];
    json_t *volume;

    cli->namespace = cli_value(entry, "Namespace");
    int status = cli_get(cli, cli_path(cli, path, format, cli_value(entry, "ID")), &volume, NULL);
    if (status != 0)
        return status;
    if (cli->json)
        cli_print_json(volume);
    else
        print(cli, volume);
    json_decref(volume);
    return CLI_OK;
}

int volume_act(struct cli *cli, const json_t *entry, const char *format, const char *more)
{
    char path[CLI_URL_SIZE];
    struct cli_reply reply;

    cli->namespace = cli_value(entry, "Namespace");
    int status = cli_call(cli, "DELETE", cli_path(cli, path, format, cli_value(entry, "ID"), more),
                          NULL, &reply);
    if (status == 0)
        free(reply.body);
    return status;
}

int volume_add_secrets(struct cli *cli)
{
    const char *pair;

    (void)text_copy(cli->secrets, sizeof(cli->secrets), "X-Nomad-CSI-Secrets: ");
    for (size_t i = 0; (pair = cli_text_again(cli, "secret", i)) != NULL; i++) {
        if (strchr(pair, '=') == NULL || strpbrk(pair, ",\r\n") != NULL)
            return cli_fail(CLI_USAGE, "a secret is written -secret KEY=VALUE, without commas");
        if (i > 0)
            (void)text_append(cli->secrets, sizeof(cli->secrets), ",");
        if (!text_append(cli->secrets, sizeof(cli->secrets), pair))
            return cli_fail(CLI_USAGE, "the secrets are too long");
    }
    if (cli_text_again(cli, "secret", 0) == NULL)
        cli->secrets[0] = '\0';
    return 0;
}
