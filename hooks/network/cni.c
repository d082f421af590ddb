#include "hooks/network/cni.h"

#include "io/host.h"
#include "io/program.h"
#include "io/scope.h"
#include "spec/json.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define INTERFACE "eth0"
#define ADMIN_CHAIN "NOMAD-ADMIN"
#define PROGRAMS "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

enum {
    PLUGIN_LIMIT_MS = 30000,
    PLUGINS_MAX = 16, /* in one list */
    FILES_MAX = 256,  /* of configurations */
    FILE_BYTES_MAX = 256 * 1024,
    NETWORK_NAME_SIZE = 128,
};

/* --- lists --- */

static json_t *packed(json_t *json)
{
    check(json != NULL);
    return json;
}

/* Nomad's own: client/allocrunner/cni/bridge.go. */
static json_t *bridge_list(const struct hooks_network *config)
{
    json_t *ranges = packed(json_pack("[[{s:s}]]", "subnet", config->bridge_subnet));
    json_t *routes = packed(json_pack("[{s:s}]", "dst", "0.0.0.0/0"));

    if (config->bridge_subnet_ipv6[0] != '\0') {
        check(json_array_append_new(
                  ranges, packed(json_pack("[{s:s}]", "subnet", config->bridge_subnet_ipv6))) == 0);
        check(json_array_append_new(routes, packed(json_pack("{s:s}", "dst", "::/0"))) == 0);
    }
    return packed(
        json_pack("{s:s, s:s, s:[{s:s}, {s:s, s:s, s:b, s:b, s:b, s:b, s:{s:s, s:o, s:o, s:s}},"
                  " {s:s, s:s, s:s}, {s:s, s:{s:b}, s:b}]}",
                  "cniVersion", "0.4.0", "name", "nomad", "plugins", "type", "loopback", "type",
                  "bridge", "bridge", config->bridge_name, "ipMasq", 1, "isGateway", 1,
                  "forceAddress", 1, "hairpinMode", config->bridge_hairpin, "ipam", "type",
                  "host-local", "ranges", ranges, "routes", routes, "dataDir", "/var/run/cni",
                  "type", "firewall", "backend", "iptables", "iptablesAdminChainName", ADMIN_CHAIN,
                  "type", "portmap", "capabilities", "portMappings", 1, "snat", 1));
}

/* A name that may be part of a program's path. */
static bool is_plain(const char *name)
{
    return name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL &&
           strlen(name) < NETWORK_NAME_SIZE;
}

static bool is_list(const json_t *list)
{
    const json_t *plugins = json_object_get(list, "plugins"), *plugin;
    size_t i;

    if (!is_plain(text_of(list, "name")) || json_array_size(plugins) == 0 ||
        json_array_size(plugins) > PLUGINS_MAX)
        return false;
    json_array_foreach(plugins, i, plugin)
    {
        if (!is_plain(text_of(plugin, "type")))
            return false;
    }
    return true;
}

/* The list in the file PATH; one plugin's configuration alone is a list of one.  NULL: it is none.
 */
static json_t *read_list(const char *path)
{
    json_t *json = NULL;
    char *bytes;
    size_t length;

    if (file_read(path, FILE_BYTES_MAX, &bytes, &length, NULL) != 0)
        return NULL;
    json = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, NULL);
    free(bytes);
    if (json != NULL && !text_ends_with(path, ".conflist") && json_is_object(json)) {
        json_t *list =
            packed(json_pack("{s:s, s:s, s:[O]}", "cniVersion", text_of(json, "cniVersion"), "name",
                             text_of(json, "name"), "plugins", json));
        json_decref(json);
        json = list;
    }
    if (is_list(json))
        return json;
    json_decref(json);
    return NULL;
}

struct files {
    char **items;
    size_t count, size;
};

static int add_file(void *ctx, const char *name, unsigned char type)
{
    struct files *files = ctx;

    (void)type; /* links are followed */
    if (!text_ends_with(name, ".conf") && !text_ends_with(name, ".conflist") &&
        !text_ends_with(name, ".json"))
        return 0;
    *list_more(files) = strdup(name);
    check(files->items[files->count - 1] != NULL);
    return files->count == FILES_MAX;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Hands the lists of DIRECTORY to CB, by the names of their files, until it returns false. */
static void each_list(const char *directory, bool (*cb)(void *ctx, json_t *list), void *ctx)
{
    scoped_fd int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct files files = {0};
    char path[PATH_SIZE];
    bool more = fd >= 0 && directory_each(fd, add_file, &files) >= 0;

    if (files.count > 0)
        qsort(files.items, files.count, sizeof(*files.items), by_name);
    for (size_t i = 0; i < files.count; i++) {
        json_t *list =
            more && path_join(path, directory, files.items[i]) == 0 ? read_list(path) : NULL;

        if (list != NULL)
            more = cb(ctx, list);
        json_decref(list);
        free(files.items[i]);
    }
    free(files.items);
}

struct finding {
    const char *name;
    json_t *list; /* a reference; NULL: not found yet */
};

/* The first one that has the name, as in Nomad, which takes it in small letters. */
static bool is_found(void *ctx, json_t *list)
{
    struct finding *finding = ctx;

    if (strcasecmp(text_of(list, "name"), finding->name) == 0)
        finding->list = json_incref(list);
    return finding->list == NULL;
}

static json_t *find_list(const char *directory, const char *name)
{
    struct finding finding = {.name = name};

    each_list(directory, is_found, &finding);
    return finding.list;
}

static bool add_mode(void *ctx, json_t *list)
{
    json_t *modes = ctx, *mode;
    char text[sizeof("cni/") + NETWORK_NAME_SIZE];
    size_t i;

    (void)text_format(text, sizeof(text), "cni/%s", text_of(list, "name")); /* it is plain */
    json_array_foreach(modes, i, mode)
    {
        if (strcasecmp(json_string_value(mode), text) == 0)
            return true; /* another file comes first */
    }
    check(json_array_append_new(modes, json_string(text)) == 0);
    return true;
}

json_t *cni_modes(const struct hooks_network *config)
{
    json_t *modes = json_array();

    check(modes != NULL);
    each_list(config->cni_config_dir, add_mode, modes);
    return modes;
}

int cni_list(const struct hooks_network *config, const char *mode, json_t **ret_list,
             struct err *err)
{
    bool own = text_equal(mode, "bridge");
    json_t *list =
        own ? bridge_list(config) : find_list(config->cni_config_dir, mode + strlen("cni/"));

    if (list == NULL)
        return err_set(err, ERR_GONE, "no file in %s (client.cni_config_dir) has a network \"%s\"",
                       config->cni_config_dir, mode + strlen("cni/"));
    *ret_list = list;
    return 0;
}

/* --- one plugin --- */

/* What PLUGIN reads: its own configuration with what libcni adds to it. */
static char *input_of(const struct cni_call *call, const json_t *plugin, const json_t *previous)
{
    json_t *input = json_copy((json_t *)(uintptr_t)plugin); /* shallow: its parts are not changed */

    check(input != NULL);
    check(json_object_set_new(input, "name", json_string(text_of(call->list, "name"))) == 0);
    check(json_object_set_new(input, "cniVersion",
                              json_string(text_of(call->list, "cniVersion"))) == 0);
    if (previous != NULL)
        check(json_object_set(input, "prevResult", (json_t *)(uintptr_t)previous) == 0);
    if (json_is_true(json_object_get(json_object_get(plugin, "capabilities"), "portMappings")))
        check(json_object_set_new(input, "runtimeConfig",
                                  json_pack("{s:O}", "portMappings", call->ports)) == 0);
    char *text = json_dumps(input, JSON_COMPACT);
    check(text != NULL);
    json_decref(input);
    return text;
}

static char *variable(const char *name, const char *value)
{
    size_t size = strlen(name) + strlen(value) + 2;
    char *text = malloc(size);

    check(text != NULL);
    (void)text_format(text, size, "%s=%s", name, value); /* made to fit */
    return text;
}

static int start(const struct cni_call *call, const char *command, const char *type,
                 const char *input, struct program_answer *ret_answer, struct err *err)
{
    char program[PATH_SIZE];
    char *environment[] = {
        variable("CNI_COMMAND", command),   variable("CNI_CONTAINERID", call->container),
        variable("CNI_NETNS", call->netns), variable("CNI_ARGS", call->args),
        variable("CNI_IFNAME", INTERFACE),  variable("CNI_PATH", call->config->cni_path),
        variable("PATH", PROGRAMS),         NULL,
    };
    struct program_call run = {
        .program = program,
        .environment = environment,
        .input = input,
        .lock_fd = call->lock_fd,
        .cancel_fd = -1,
        .limit_ms = PLUGIN_LIMIT_MS,
    };
    int code =
        program_find(call->config->cni_path, type, program)
            ? program_run(&run, ret_answer, err)
            : err_set(err, ERR_GONE,
                      "not in %s: install containernetworking-plugins or set client.cni_path",
                      call->config->cni_path);

    for (size_t i = 0; environment[i] != NULL; i++)
        free(environment[i]);
    return code;
}

/* What a plugin says that it could not do. */
static int tell_failure(const struct program_answer *answer, const json_t *said, struct err *err)
{
    const char *message = text_of(said, "msg"), *details = text_of(said, "details");

    if (*message == '\0' && answer->complaint[0] != '\0')
        message = answer->complaint;
    int code = *message == '\0'
                   ? err_set(err, ERR_IO, "it ended with status %d", answer->status)
                   : err_set(err, ERR_IO, "%s%s%s", message, *details != '\0' ? ": " : "", details);
    text_clean(err->text);
    return code;
}

/* Runs PLUGIN; RET_RESULT, if it is not NULL, is what it has made: a new reference. */
static int run(const struct cni_call *call, const char *command, const json_t *plugin,
               const json_t *previous, json_t **ret_result, struct err *err)
{
    const char *type = text_of(plugin, "type");
    scoped_string char *input = input_of(call, plugin, previous);
    struct program_answer answer = {0};
    int code = start(call, command, type, input, &answer, err);
    json_t *said = code == 0 ? json_loads(answer.output, 0, NULL) : NULL;

    if (code == 0 && answer.status != 0)
        code = tell_failure(&answer, said, err);
    else if (code == 0 && ret_result != NULL && !json_is_object(said))
        code = err_set(err, ERR_CORRUPT, "what it answers is no result");
    program_close(&answer);
    if (code != 0) {
        json_decref(said);
        err->recoverable = true; /* plugins, disks and rules are mended */
        return err_wrap(err, "CNI plugin \"%.40s\" (%s)", type, command);
    }
    if (ret_result != NULL)
        *ret_result = json_incref(said);
    json_decref(said);
    return 0;
}

/* --- all of them --- */

int cni_add(const struct cni_call *call, json_t **ret_result, struct err *err)
{
    const json_t *plugins = json_object_get(call->list, "plugins");
    json_t *made = NULL;
    int code =
        is_list(call->list) ? 0 : err_set(err, ERR_CORRUPT, "the list of plugins is damaged");

    for (size_t i = 0; code == 0 && i < json_array_size(plugins); i++) {
        json_t *result = NULL;

        code = run(call, "ADD", json_array_get(plugins, i), made, &result, err);
        if (code == 0) {
            json_decref(made);
            made = result;
            code = call->made(call->ctx, made, err);
        }
    }
    if (code != 0) {
        json_decref(made);
        return code;
    }
    *ret_result = made;
    return 0;
}

/* As libcni: a list may forbid it, and older protocols do not know it. */
static bool can_check(const json_t *list)
{
    static const char *const older[] = {"", "0.1.0", "0.2.0", "0.3.0", "0.3.1"};

    for (size_t i = 0; i < COUNT_OF(older); i++) {
        if (text_equal(text_of(list, "cniVersion"), older[i]))
            return false;
    }
    return !json_is_true(json_object_get(list, "disableCheck"));
}

int cni_check(const struct cni_call *call, const json_t *result, struct err *err)
{
    const json_t *plugins = json_object_get(call->list, "plugins");
    bool asks = is_list(call->list) && can_check(call->list);
    int code = 0;

    for (size_t i = 0; asks && code == 0 && i < json_array_size(plugins); i++) {
        code = run(call, "CHECK", json_array_get(plugins, i), result, NULL, err);
        if (code != ERR_IO)
            code = 0; /* who could not be asked has not said no */
    }
    return code;
}

/* --- filters --- */

/* Runs PROGRAM with the ARGUMENTS up to NULL; its status, or ERR_*.  RET_OUTPUT, if it is not NULL,
 * is what it says, owned by the caller. */
static int filter(const char *program, const char *const *arguments, int lock_fd, char **ret_output,
                  struct err *err)
{
    char *argv[20] = {(char *)(uintptr_t)program, (char[]){"-w"}, (char[]){"5"}};
    char *environment[] = {(char[]){"PATH=" PROGRAMS}, NULL};
    struct program_answer answer = {0};
    char path[PATH_SIZE];
    size_t count = 3;

    if (!program_find(PROGRAMS, program, path))
        return err_set(err, ERR_GONE, "there is no %s: install iptables", program);
    for (; *arguments != NULL; arguments++) {
        check(count < COUNT_OF(argv) - 1);
        argv[count++] = (char *)(uintptr_t)*arguments;
    }
    struct program_call call = {
        .program = path,
        .argv = argv,
        .environment = environment,
        .input = "",
        .lock_fd = lock_fd,
        .cancel_fd = -1,
        .limit_ms = PLUGIN_LIMIT_MS,
    };
    int code = program_run(&call, &answer, err);
    if (code != 0)
        return err_wrap(err, "%s", program);
    if (answer.status != 0)
        (void)err_set(err, ERR_IO, "%s: %s", program, answer.complaint); /* if somebody minds */
    if (ret_output != NULL) {
        *ret_output = answer.output;
        answer.output = NULL;
    }
    program_close(&answer);
    return answer.status;
}

static int admit(const struct hooks_network *config, const char *program, const char *subnet,
                 int lock_fd, struct err *err)
{
    const char *const chain[] = {"-N", ADMIN_CHAIN, NULL};
    const char *rule[] = {"-C", ADMIN_CHAIN, "-o", config->bridge_name, "-d", subnet,
                          "-j", "ACCEPT",    NULL};
    int there = filter(program, rule, lock_fd, NULL, err);

    if (there > 0)
        there =
            filter(program, chain, lock_fd, NULL, err) < 0 ? err->code : 1; /* it may be there */
    if (there <= 0)
        return there;
    rule[0] = "-A";
    int status = filter(program, rule, lock_fd, NULL, err);
    return status > 0 ? err->code : status;
}

int cni_admit(const struct hooks_network *config, int lock_fd, struct err *err)
{
    int code = admit(config, "iptables", config->bridge_subnet, lock_fd, err);

    if (code == 0 && config->bridge_subnet_ipv6[0] != '\0')
        code = admit(config, "ip6tables", config->bridge_subnet_ipv6, lock_fd, err);
    if (code != 0)
        err->recoverable = true;
    return code;
}

/* The LENGTH bytes behind WORD in LINE into TO; false: there is none, or it is too long. */
static bool take_word(const char *line, const char *word, char *to, size_t size)
{
    const char *at = strstr(line, word);

    return at != NULL &&
           text_format(to, size, "%.*s", (int)strcspn(at + strlen(word), " \n"), at + strlen(word));
}

/* Removes the rule of LINE, as iptables lists it, and its chain. */
static int drop_rule(const struct cni_call *call, const char *program, const char *line,
                     struct err *err)
{
    char source[ADDRESS_SIZE + 8], chain[64], comment[256];
    const char *const rule[] = {"-t",      "nat",       "-D",    "POSTROUTING", "-s",  source, "-m",
                                "comment", "--comment", comment, "-j",          chain, NULL};
    const char *const flush[] = {"-t", "nat", "-F", chain, NULL};
    const char *const drop[] = {"-t", "nat", "-X", chain, NULL};
    const char *const *const commands[] = {rule, flush, drop};
    int status = 0;

    if (!take_word(line, " -s ", source, sizeof(source)) ||
        !take_word(line, " -j ", chain, sizeof(chain)) || !text_starts_with(chain, "CNI-") ||
        !text_format(comment, sizeof(comment), "name: \"%s\" id: \"%s\"",
                     text_of(call->list, "name"), call->container))
        return 0; /* nobody's that we know */
    for (size_t i = 0; i < COUNT_OF(commands) && status == 0; i++)
        status = filter(program, commands[i], call->lock_fd, NULL, err);
    return status > 0 ? err->code : status;
}

/* Where the namespace is gone, the bridge plugin does not know what it has let through, and leaves
 * it (nomad v2.0.5 forceCleanup). */
static int drop_rules(const struct cni_call *call, const char *program, struct err *err)
{
    static const char *const list[] = {"-t", "nat", "-S", "POSTROUTING", NULL};
    scoped_string char *said = NULL;
    char own[UUID_TEXT_SIZE + 16];
    int code = filter(program, list, call->lock_fd, &said, err);
    char *rest = said, *line;

    check(text_format(own, sizeof(own), "id: \\\"%s\\\"", call->container));
    code = code > 0 ? err->code : code;
    while (code == 0 && (line = strsep(&rest, "\n")) != NULL) {
        if (strstr(line, own) != NULL)
            code = drop_rule(call, program, line, err);
    }
    return code;
}

static bool has_masquerade(const struct cni_call *call)
{
    const json_t *plugin;
    size_t i;

    json_array_foreach(json_object_get(call->list, "plugins"), i, plugin)
    {
        if (json_is_true(json_object_get(plugin, "ipMasq")))
            return true;
    }
    return false;
}

int cni_remove(const struct cni_call *call, const json_t *result, struct err *err)
{
    const json_t *plugins = json_object_get(call->list, "plugins");
    int code =
        is_list(call->list) ? 0 : err_set(err, ERR_CORRUPT, "the list of plugins is damaged");

    for (size_t i = json_array_size(plugins); code == 0 && i > 0; i--)
        code = run(call, "DEL", json_array_get(plugins, i - 1), result, NULL, err);
    if (code != 0 || *call->netns != '\0' || !has_masquerade(call))
        return code;
    code = drop_rules(call, "iptables", err);
    return code == 0 && call->config->bridge_subnet_ipv6[0] != '\0'
               ? drop_rules(call, "ip6tables", err)
               : code;
}

/* --- what was made --- */

/* The address of IP, without its network's length; false: it is none. */
static bool take_address(const json_t *ip, char to[ADDRESS_SIZE])
{
    char text[ADDRESS_SIZE + 8];
    struct in6_addr ignored;

    if (!text_copy(text, sizeof(text), text_of(ip, "address")))
        return false;
    text[strcspn(text, "/")] = '\0';
    return text_copy(to, ADDRESS_SIZE, text) &&
           (inet_pton(AF_INET, to, &ignored) == 1 || inet_pton(AF_INET6, to, &ignored) == 1);
}

/* The interface of IP: one that RESULT lists, or the one that was asked for. */
static const char *interface_of(const json_t *result, const json_t *ip, bool *ret_is_inside)
{
    const json_t *number = json_object_get(ip, "interface");
    const json_t *interface = !json_is_integer(number)
                                  ? NULL
                                  : json_array_get(json_object_get(result, "interfaces"),
                                                   (size_t)json_integer_value(number));

    *ret_is_inside = interface == NULL || *text_of(interface, "sandbox") != '\0';
    return interface == NULL ? INTERFACE : text_of(interface, "name");
}

struct found {
    char name[64], four[ADDRESS_SIZE], six[ADDRESS_SIZE];
};

/* The addresses of the first interface by name that has one; INSIDE: of those in the namespace. */
static struct found find_addresses(const json_t *result, bool inside)
{
    struct found found = {.name = ""};
    char address[ADDRESS_SIZE];
    const json_t *ip;
    size_t i;

    json_array_foreach(json_object_get(result, "ips"), i, ip)
    {
        bool is_inside;
        const char *name = interface_of(result, ip, &is_inside);
        bool six = strchr(text_of(ip, "address"), ':') != NULL;

        if ((inside && !is_inside) || strlen(name) >= sizeof(found.name) ||
            !take_address(ip, address))
            continue;
        int order = found.name[0] == '\0' ? -1 : strcmp(name, found.name);
        if (order > 0)
            continue;
        if (order < 0) {
            found = (struct found){.name = ""};
            (void)text_copy(found.name, sizeof(found.name), name); /* it fits */
        }
        char *to = six ? found.six : found.four;
        if (*to == '\0')
            (void)text_copy(to, ADDRESS_SIZE, address); /* of that size */
    }
    return found;
}

static json_t *texts_or_empty(const json_t *list)
{
    json_t *texts = json_array(), *text;
    size_t i;

    json_array_foreach((json_t *)(uintptr_t)list, i, text)
    {
        if (json_is_string(text))
            check(json_array_append(texts, text) == 0);
    }
    return texts;
}

json_t *cni_status(const json_t *result, struct err *err)
{
    const json_t *dns = json_object_get(result, "dns");
    const json_t *servers = json_object_get(dns, "nameservers");
    struct found found = find_addresses(result, true);

    if (found.name[0] == '\0')
        found = find_addresses(result, false);
    if (found.name[0] == '\0') {
        (void)err_set(err, ERR_CORRUPT, "the plugins made no interface with an address");
        return NULL;
    }
    json_t *status = packed(json_pack("{s:s, s:s, s:s, s:n}", "InterfaceName", found.name,
                                      "Address", found.four[0] != '\0' ? found.four : found.six,
                                      "AddressIPv6", found.six, "DNS"));
    if (json_array_size(servers) > 0)
        check(json_object_set_new(
                  status, "DNS",
                  json_pack("{s:o, s:o, s:o}", "Servers", texts_or_empty(servers), "Searches",
                            texts_or_empty(json_object_get(dns, "search")), "Options",
                            texts_or_empty(json_object_get(dns, "options")))) == 0);
    return status;
}
