/* cairn volume: those of type host.  The words are those of nomad v2.0.5 command/volume_*_host.go.
 */
#include "agent/cli/volume/volume.h"

#include <stdlib.h>

static void print_list(const struct cli *cli, json_t *volumes)
{
    struct cli_table table = {0};
    bool whole = cli_switch(cli, "verbose");
    json_t *volume;
    size_t at;

    cli_row(&table, "ID", "Name", "Namespace", "Plugin ID", "Node ID", "Node Pool", "State");
    json_array_foreach(volumes, at, volume)
    {
        cli_row(&table, cli_format(whole ? "%s" : "%.8s", cli_value(volume, "ID")),
                cli_value(volume, "Name"), cli_value(volume, "Namespace"),
                cli_value(volume, "PluginID"),
                cli_format(whole ? "%s" : "%.8s", cli_value(volume, "NodeID")),
                cli_value(volume, "NodePool"), cli_value(volume, "State"));
    }
    cli_table_print(&table, stdout);
}

int volume_find_host(struct cli *cli, const char *prefix, json_t **ret_volume)
{
    char path[CLI_URL_SIZE];
    json_t *list, *entry, *found = NULL;
    size_t at, exact = 0;
    int status =
        cli_get(cli, cli_path(cli, path, "/v1/volumes?type=host&prefix=%s", prefix), &list, NULL);

    *ret_volume = NULL;
    if (status != 0)
        return status;
    json_array_foreach(list, at, entry)
    {
        bool is_exact = text_equal(cli_value(entry, "ID"), prefix) ||
                        text_equal(cli_value(entry, "Name"), prefix);

        exact += is_exact;
        if (json_array_size(list) == 1 || is_exact)
            found = entry;
    }
    if (found != NULL && exact <= 1) {
        *ret_volume = json_incref(found);
    } else if (json_array_size(list) > 0) {
        status = cli_fail(CLI_FAILED, "Prefix matched multiple host volumes");
        print_list(cli, list);
    }
    json_decref(list);
    return status;
}

static void print_volume(const struct cli *cli, const json_t *volume)
{
    static const char *const rows[][2] = {{"ID", "ID"},
                                          {"Name", "Name"},
                                          {"Namespace", "Namespace"},
                                          {"Plugin ID", "PluginID"},
                                          {"Node ID", "NodeID"},
                                          {"Node Pool", "NodePool"}};
    struct cli_table table = {0};

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        cli_row(&table, rows[i][0], cli_value(volume, rows[i][1]));
    cli_row(&table, "Capacity",
            cli_bytes((uint64_t)json_integer_value(json_object_get(volume, "CapacityBytes"))));
    cli_row(&table, "State", cli_value(volume, "State"));
    cli_row(&table, "Host Path", cli_value(volume, "HostPath"));
    if (cli_value(volume, "CairnFailure")[0] != '\0')
        cli_row(&table, "Last Failure", cli_value(volume, "CairnFailure"));
    cli_table_print_pairs(&table, stdout);
    if (cli_switch(cli, "short"))
        return;
    volume_print_use(cli, volume);
}

int volume_show_host(struct cli *cli, const json_t *entry)
{
    return volume_show(cli, "/v1/volume/host/%s", entry, print_volume);
}

int volume_list_host(struct cli *cli)
{
    char path[CLI_URL_SIZE];
    json_t *list;
    int status = cli_get(cli, cli_path(cli, path, "/v1/volumes?type=host"), &list, NULL);

    if (status != 0)
        return status;
    if (cli->json)
        cli_print_json(list);
    else {
        cli_title(cli, "Dynamic Host Volumes");
        if (json_array_size(list) == 0)
            (void)puts("No dynamic host volumes");
        else
            print_list(cli, list);
    }
    json_decref(list);
    return CLI_OK;
}

int volume_send_host(struct cli *cli, json_t *volume, bool creates)
{
    char path[CLI_URL_SIZE];
    json_t *body = json_pack("{s:O}", "Volume", volume), *answer;

    check(body != NULL);
    int status =
        cli_put(cli, cli_path(cli, path, "/v1/volume/host/%s", creates ? "create" : "register"),
                body, &answer);
    json_decref(body);
    if (status != 0)
        return status;
    const json_t *made = json_object_get(answer, "Volume");
    (void)printf("%s host volume %s with ID %s\n", creates ? "Created" : "Registered",
                 cli_value(made, "Name"), cli_value(made, "ID"));
    json_decref(answer);
    return CLI_OK;
}

int volume_delete_host(struct cli *cli, const char *prefix)
{
    json_t *entry;
    int status = volume_find_host(cli, prefix, &entry);

    if (status == 0 && entry == NULL)
        return cli_fail(CLI_FAILED, "no host volume has a name or id that begins with \"%s\"",
                        prefix);
    if (status != 0)
        return status;
    status = volume_act(cli, entry, "/v1/volume/host/%s", "");
    if (status == 0)
        (void)printf("Successfully deleted volume \"%s\"!\n", cli_value(entry, "ID"));
    json_decref(entry);
    return status;
}
