/* What this node says about itself: who it is, its mark, the facts of its host. */
#include "agent/node/node.h"

#include "agent/config/pairs.h"

#include "agent/version.h"

#include "hooks/hosted/hosted.h"

#include "io/log.h"
#include "io/loop.h"
#include "io/proc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* --- the mark --- */

/* Without a usable file the id decides, which is the same as long as no journal was lost. */
static void take_mark(struct node *node, const char *state_dir)
{
    char path[PATH_SIZE], *text;
    size_t length;
    struct err err = {0};

    (void)text_copy(node->mark, sizeof(node->mark),
                    node->identity.id); /* cut to the length of a mark */
    int code = path_join(path, state_dir, "mark");
    if (code == 0 && file_read(path, 64, &text, &length, &err) == 0) {
        bool sound = length == MARK_SIZE - 1 && strspn(text, "0123456789abcdef") == MARK_SIZE - 1;
        if (sound)
            (void)text_copy(node->mark, sizeof(node->mark), text); /* fits */
        free(text);
        if (sound)
            return;
    }
    if (code == 0)
        code = file_write_durable(path, node->mark, MARK_SIZE - 1, 0600, &err);
    if (code < 0)
        log_warn("agent", "the node's mark cannot be kept beside the journal error=%s",
                 log_value(err.text));
}

/* --- facts --- */

static void add(struct spec_pairs *pairs, const char *name, const char *value)
{
    if (value != NULL && value[0] != '\0')
        pairs_set(pairs, name, value);
}

static void add_number(struct spec_pairs *pairs, const char *name, uint64_t value)
{
    char text[24];

    (void)text_format(text, sizeof(text), "%llu", (unsigned long long)value); /* fits */
    add(pairs, name, text);
}

/* Nomad shows the names that Go has for a processor and a system, not the kernel's. */
static const char *go_arch(const char *machine)
{
    static const struct {
        const char *machine, *arch;
    } names[] = {
        {"x86_64", "amd64"}, {"aarch64", "arm64"}, {"i386", "386"},    {"i486", "386"},
        {"i586", "386"},     {"i686", "386"},      {"armv6l", "arm"},  {"armv7l", "arm"},
        {"armv8l", "arm"},   {"mips64", "mips64"}, {"ppc64", "ppc64"}, {"loongarch64", "loong64"},
    };

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (text_equal(names[i].machine, machine))
            return names[i].arch;
    }
    return machine; /* ppc64le, riscv64, s390x */
}

static const char *go_system(const char *kernel_name)
{
    return text_equal(kernel_name, "Linux") ? "linux" : kernel_name;
}

/* nomad v1.1.2 client/fingerprint/signal.go */
static const char signals[] =
    "SIGABRT,SIGALRM,SIGBUS,SIGCHLD,SIGCONT,SIGFPE,SIGHUP,SIGILL,SIGINT,SIGIO,SIGIOT,SIGKILL,"
    "SIGPIPE,SIGPROF,SIGQUIT,SIGSEGV,SIGSTOP,SIGSYS,SIGTERM,SIGTRAP,SIGTSTP,SIGTTIN,SIGTTOU,SIGURG,"
    "SIGUSR1,SIGUSR2,SIGWINCH,SIGXCPU,SIGXFSZ";

static void collect_numa(struct spec_pairs *to, const struct host_facts *facts)
{
    char name[32];

    if (facts->numa_count > 0)
        add_number(to, "numa.node.count", facts->numa_count);
    for (size_t i = 0; i < facts->numa_count; i++) {
        (void)text_format(name, sizeof(name), "numa.node%u.cores",
                          facts->numa[i].number); /* fits */
        add(to, name, facts->numa[i].cores);
    }
}

static void collect_attributes(struct node *node, const struct config *config)
{
    struct spec_pairs *to = &node->known.attributes;
    const struct host_facts *facts = &node->facts;
    char text[96];

    add(to, "arch", go_arch(facts->arch));
    add(to, "cpu.arch", go_arch(facts->arch));
    add(to, "cpu.modelname", facts->cpu_model);
    add_number(to, "cpu.frequency", facts->cpu_mhz);
    add_number(to, "cpu.numcores", facts->cpu_cores);
    add_number(to, "cpu.reservablecores", core_set_count(&node->cores));
    add_number(to, "cpu.totalcompute", node->whole.cpu_mhz);
    if (node->whole.cpu_mhz > 0)
        add_number(to, "cpu.usablecompute", node->room.cpu_mhz);
    add(to, "kernel.arch", facts->arch);
    add(to, "kernel.name", go_system(facts->kernel_name));
    add(to, "kernel.version", facts->kernel_version);
    if (facts->landlock > 0 && text_format(text, sizeof(text), "v%u", facts->landlock))
        add(to, "kernel.landlock", text);
    add_number(to, "memory.totalbytes", facts->memory_bytes);
    add(to, "nomad.bridge.hairpin_mode", config->bridge_hairpin ? "true" : "false");
    add(to, "nomad.service_discovery", "true");
    add(to, "nomad.version",
        config_has_servers(config) ? CAIRN_NOMAD_CLIENT_VERSION : CAIRN_NOMAD_VERSION);
    add(to, "cairn.version", CAIRN_VERSION);
    collect_numa(to, facts);
    add(to, "os.name", facts->os_name);
    add(to, "os.version", facts->os_version);
    add(to, "os.cgroups", cgroup_mode_name(cgroup_mode()));
    if (cgroup_mode() != CGROUP_NONE)
        add(to, "os.cgroups.version", cgroup_mode() == CGROUP_V2 ? "2" : "1");
    add(to, "os.signals", signals);
    if (config->bind_address[0] != '\0' &&
        text_format(text, sizeof(text), strchr(config->bind_address, ':') ? "[%s]:%u" : "%s:%u",
                    config->bind_address, config->http_port))
        add(to, "unique.advertise.address", text);
    add(to, "unique.hostname", facts->hostname);
    add(to, "unique.network.ip-address", facts->ip_address);
    add_number(to, "unique.storage.bytestotal", facts->disk_bytes);
    add_number(to, "unique.storage.bytesfree", facts->disk_free_bytes);
    add(to, "unique.storage.volume",
        facts->disk_device[0] != '\0' ? facts->disk_device : config->alloc_dir);
    add(to, "plugins.host_volume.mkdir.version", hosted_mkdir_version);
}

void node_set_driver(struct node *node, const struct driver_info *driver)
{
    struct spec_pairs *to = &node->known.attributes;
    char name[SPEC_DRIVER_SIZE + 8];
    const char *key;
    json_t *text;

    check(text_format(name, sizeof(name), "driver.%s", driver->name));
    pairs_drop(to, name);
    if (!driver->healthy)
        return;
    add(to, name, "1");
    for (size_t i = 0; i < driver->attributes_count; i++)
        add(to, driver->attributes[i].name, driver->attributes[i].value);
    json_object_foreach((json_t *)(uintptr_t)driver->more, key, text)
        add(to, key, json_string_value(text));
}

void node_set_plugins(struct node *node, const struct spec_pairs *versions)
{
    char name[NAME_SIZE + 32];

    for (size_t i = 0; i < versions->count; i++) {
        check(text_format(name, sizeof(name), "plugins.cni.version.%s", versions->items[i].key));
        add(&node->known.attributes, name, versions->items[i].value);
    }
}

void node_set_host_plugins(struct node *node, const struct spec_pairs *versions)
{
    char name[PLUGIN_NAME_SIZE + 32];

    for (size_t i = 0; i < versions->count; i++) {
        check(text_format(name, sizeof(name), "plugins.host_volume.%s.version",
                          versions->items[i].key));
        add(&node->known.attributes, name, versions->items[i].value);
    }
}

static const char *attribute_of(const struct node *node, const char *name)
{
    const struct spec_pairs *all = &node->known.attributes;

    for (size_t i = 0; i < all->count; i++) {
        if (text_equal(all->items[i].key, name))
            return all->items[i].value;
    }
    return "";
}

bool node_set_consul(struct node *node, const struct spec_pairs *attributes)
{
    bool is_new = false;

    for (size_t i = 0; i < attributes->count; i++)
        is_new |=
            !text_equal(attribute_of(node, attributes->items[i].key), attributes->items[i].value);
    if (!is_new)
        return false;
    pairs_drop(&node->known.attributes, "consul");
    pairs_drop(&node->known.attributes, "unique.consul");
    for (size_t i = 0; i < attributes->count; i++)
        add(&node->known.attributes, attributes->items[i].key, attributes->items[i].value);
    return true;
}

/* A node that promises what is not there would start tasks only to see them fail. */
static int look_at_volumes(const struct spec_node_volumes *volumes, struct err *err)
{
    for (size_t i = 0; i < volumes->count; i++) {
        if (access(volumes->items[i].path, F_OK) != 0)
            return err_os(err, err_from_errno(errno), errno,
                          "failed to validate volume %s: cannot look at %s", volumes->items[i].name,
                          volumes->items[i].path);
    }
    return 0;
}

int node_init(struct node *node, const struct store *store, const struct say *say,
              const struct config *config, struct err *err)
{
    char boot_id[UUID_TEXT_SIZE];
    struct identity_now now = {
        .boot_id = boot_id,
        .since_boot_ms = loop_now_ms(),
        .unix_ns = loop_now_unix_ns(),
        .say = *say,
    };

    int code = proc_boot_id(boot_id, err);
    if (code < 0)
        return code;
    if (getrandom(now.random, sizeof(now.random), 0) != (ssize_t)sizeof(now.random))
        return err_set(err, ERR_IO, "no random numbers to make a node id of");
    code = identity_take(&node->identity, store, &now, err);
    if (code < 0)
        return code;
    take_mark(node, config->state_dir);
    code = host_read_facts(config->data_dir, &node->facts, err);
    if (code < 0)
        return code;
    if (config->memory_total_mb > 0)
        node->facts.memory_bytes = (uint64_t)config->memory_total_mb << 20;
    if (config->disk_total_mb > 0)
        node->facts.disk_free_bytes = (uint64_t)config->disk_total_mb << 20;
    if (config->cpu_total_compute > 0)
        node->facts.cpu_mhz = (config->cpu_total_compute + node->facts.cpu_cores - 1) /
                              node->facts.cpu_cores; /* of each core, at least its part */

    node_find_cores(node, config);
    node_find_room(node, config);
    code = look_at_volumes(&config->host_volumes, err);
    if (code < 0)
        return code;
    code = node_find_addresses(node, config, err);
    if (code < 0)
        return code;
    node->known.id = node->identity.id;
    node->known.name = config->name;
    node->known.datacenter = config->datacenter;
    node->known.region = config->region;
    node->known.class = config->node_class;
    node->known.pool = config->node_pool;
    collect_attributes(node, config);
    node->meta = (struct node_meta){.configured = &config->meta, .merged = &node->known.meta};
    return node_meta_read(&node->meta, store, say, now.unix_ns, err);
}

void node_free(struct node *node)
{
    pairs_free(&node->known.attributes);
    node_meta_free(&node->meta);
}
