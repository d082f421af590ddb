/*
 * A task as a plugin is told of it.
 *
 * Follows nomad v2.0.6 client/allocrunner/taskrunner/task_runner.go (buildTaskConfig).  Names of
 * the job are taken from the task's environment, which has them all.
 */
#include "drivers/external/external.h"

#include "drivers/external/task.pb-c.h"
#include "spec/arena.h"

#include <stdlib.h>
#include <string.h>

enum { CORES_BYTES = 6 /* of one in a list */ };

static ProtobufCBinaryData bytes(const char *text)
{
    return (ProtobufCBinaryData){text == NULL ? 0 : strlen(text), (uint8_t *)(uintptr_t)text};
}

static const char *variable(const struct driver_start *start, const char *name)
{
    for (size_t i = 0; i < start->env.count; i++) {
        if (text_equal(start->env.items[i].key, name))
            return start->env.items[i].value;
    }
    return "";
}

static void set_env(Task__Config *config, const struct driver_start *start, struct arena *arena)
{
    size_t count = start->env.count;
    Task__Pair *pairs = arena_new(arena, (count + 1) * sizeof(*pairs));

    config->env = arena_new(arena, (count + 1) * sizeof(*config->env));
    config->n_env = count;
    for (size_t i = 0; i < count; i++) {
        pairs[i] = (Task__Pair)TASK__PAIR__INIT;
        pairs[i].key = bytes(start->env.items[i].key);
        pairs[i].value = bytes(start->env.items[i].value);
        config->env[i] = &pairs[i];
    }
}

/* Numbers and commas between. */
static char *cores_of(const struct spec_resources *resources, struct arena *arena)
{
    size_t size = resources->cores * CORES_BYTES + 1;
    char *text = arena_new(arena, size);

    text[0] = '\0';
    for (uint32_t i = 0; i < resources->cores && resources->core_ids != NULL; i++) {
        char one[CORES_BYTES + 8];

        check(text_format(one, sizeof(one), "%s%u", i == 0 ? "" : ",", resources->core_ids[i]));
        check(text_append(text, size, one));
    }
    return text;
}

static void set_ports(Task__Resources *to, const struct driver_start *start, struct arena *arena)
{
    size_t count = start->ports.count;
    Task__Port *ports = arena_new(arena, (count + 1) * sizeof(*ports));

    to->ports = arena_new(arena, (count + 1) * sizeof(*to->ports));
    to->n_ports = count;
    for (size_t i = 0; i < count; i++) {
        const struct spec_port *from = &start->ports.items[i];

        ports[i] = (Task__Port)TASK__PORT__INIT;
        ports[i].label = bytes(from->label);
        ports[i].value = from->value;
        ports[i].to = from->to == -1 ? from->value : from->to;
        ports[i].host_ip = bytes(from->host_ip);
        to->ports[i] = &ports[i];
    }
}

/* Its cgroup, where one serves all: what the driver puts into it is ended with the task. */
static int make_cgroup(const struct drivers *drivers, const struct driver_start *start,
                       struct arena *arena, Task__Linux *to, struct err *err)
{
    bool cores = start->task->resources.cores > 0;
    char *directory = arena_new(arena, CGROUP_NAME_SIZE + 64), name[CGROUP_NAME_SIZE];

    if (drivers->config.cgroup_mode != CGROUP_V2)
        return 0;
    key_cgroup(drivers, &start->key, cores, name);
    int code = cgroup_create(CGROUP_V2, name, err);
    cgroup_directory(CGROUP_V2, name, directory, CGROUP_NAME_SIZE + 64);
    to->cpuset_cgroup = bytes(directory);
    return code;
}

static int set_resources(Task__Config *config, const struct drivers *drivers,
                         const struct driver_start *start, struct arena *arena, struct err *err)
{
    const struct spec_resources *from = &start->task->resources;
    Task__Resources *to = arena_new(arena, sizeof(*to));
    Task__Allocated *allocated = arena_new(arena, sizeof(*allocated));
    Task__Cpu *cpu = arena_new(arena, sizeof(*cpu));
    Task__Memory *memory = arena_new(arena, sizeof(*memory));
    Task__Linux *linux_ = arena_new(arena, sizeof(*linux_));
    int64_t most_mb = from->memory_max_mb > (int64_t)from->memory_mb ? from->memory_max_mb
                                                                     : (int64_t)from->memory_mb;

    *to = (Task__Resources)TASK__RESOURCES__INIT;
    *allocated = (Task__Allocated)TASK__ALLOCATED__INIT;
    *cpu = (Task__Cpu)TASK__CPU__INIT;
    *memory = (Task__Memory)TASK__MEMORY__INIT;
    *linux_ = (Task__Linux)TASK__LINUX__INIT;
    cpu->shares = from->cpu_mhz;
    memory->memory_mb = from->memory_mb;
    memory->memory_max_mb = from->memory_max_mb;
    allocated->cpu = cpu;
    allocated->memory = memory;
    linux_->cpu_shares = from->cpu_mhz;
    if (from->memory_max_mb != SPEC_MEMORY_UNLIMITED)
        linux_->memory_limit_bytes = most_mb << 20;
    if (drivers->config.node_mhz > 0)
        linux_->percent_ticks = (double)from->cpu_mhz / (double)drivers->config.node_mhz;
    linux_->cpuset_cpus = bytes(cores_of(from, arena));
    to->allocated = allocated;
    to->linux_resources = linux_;
    set_ports(to, start, arena);
    config->resources = to;
    return make_cgroup(drivers, start, arena, linux_, err);
}

static const char *propagation_of(enum spec_propagation propagation)
{
    static const char *const names[] = {[PROPAGATION_PRIVATE] = "private",
                                        [PROPAGATION_HOST_TO_TASK] = "host-to-task",
                                        [PROPAGATION_BIDIRECTIONAL] = "bidirectional"};

    return names[propagation];
}

static void set_mounts(Task__Config *config, const struct driver_start *start, struct arena *arena)
{
    size_t count = start->mounts.count;
    Task__Mount *mounts = arena_new(arena, (count + 1) * sizeof(*mounts));
    Task__Node *nodes = arena_new(arena, (count + 1) * sizeof(*nodes));

    config->mounts = arena_new(arena, (count + 1) * sizeof(*config->mounts));
    config->devices = arena_new(arena, (count + 1) * sizeof(*config->devices));
    for (size_t i = 0; i < count; i++) {
        const struct spec_mount *from = &start->mounts.items[i];

        if (from->is_node) {
            nodes[i] = (Task__Node)TASK__NODE__INIT;
            nodes[i].task_path = bytes(from->inside);
            nodes[i].host_path = bytes(from->host);
            nodes[i].permissions = bytes(from->read_only ? "r" : "rwm");
            config->devices[config->n_devices++] = &nodes[i];
            continue;
        }
        mounts[i] = (Task__Mount)TASK__MOUNT__INIT;
        mounts[i].task_path = bytes(from->inside);
        mounts[i].host_path = bytes(from->host);
        mounts[i].read_only = from->read_only;
        mounts[i].propagation = bytes(propagation_of(from->propagation));
        config->mounts[config->n_mounts++] = &mounts[i];
    }
}

/* That of its alloc, which is made; a group that has the host's says nothing. */
static void set_network(Task__Config *config, const struct driver_start *start, struct arena *arena)
{
    enum { GROUP = 1 };

    if (start->network == NULL || start->network[0] == '\0')
        return;
    Task__Network *network = arena_new(arena, sizeof(*network));
    *network = (Task__Network)TASK__NETWORK__INIT;
    network->mode = GROUP;
    network->path = bytes(start->network);
    if (start->hostname != NULL && start->hostname[0] != '\0') {
        network->hosts = arena_new(arena, sizeof(*network->hosts));
        *network->hosts = (Task__HostsConfig)TASK__HOSTS_CONFIG__INIT;
        network->hosts->hostname = bytes(start->hostname);
    }
    config->network = network;
}

/* The path of what the driver writes STREAM to. */
static ProtobufCBinaryData output_of(const struct external *external, const struct drivers *drivers,
                                     const struct driver_start *start, size_t stream,
                                     struct arena *arena)
{
    char name[OUTPUT_NAME_SIZE], *path = arena_new(arena, PATH_SIZE);

    if (external->record.log_bytes_max == 0)
        return bytes("/dev/null");
    output_name(&start->key, stream, name);
    (void)path_join(path, drivers->shim_dir, name); /* it was opened by it */
    return bytes(path);
}

int external_describe(struct external *external, const struct drivers *drivers,
                      const struct driver_start *start, struct err *err)
{
    struct arena arena = {0};
    Task__Config config = TASK__CONFIG__INIT;
    json_error_t error;

    external->config = json_loads(start->task->config_json, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(external->config))
        return err_set(err, ERR_INVALID, "config: it is no block");
    if (!text_copy(external->resolv, PATH_SIZE, start->resolv == NULL ? "" : start->resolv) ||
        !text_copy(external->hosts, PATH_SIZE, start->hosts == NULL ? "" : start->hosts))
        return err_set(err, ERR_LIMIT, "the path of a file that it is given is too long");
    config.id = bytes(external->record.id);
    config.name = bytes(start->task->name);
    config.user = bytes(start->task->user);
    config.alloc_dir = bytes(start->alloc_dir);
    config.stdout_path = output_of(external, drivers, start, 0, &arena);
    config.stderr_path = output_of(external, drivers, start, 1, &arena);
    config.alloc_id = bytes(start->key.alloc);
    config.group = bytes(variable(start, "NOMAD_GROUP_NAME"));
    config.job_name = bytes(variable(start, "NOMAD_JOB_NAME"));
    config.job_id = bytes(variable(start, "NOMAD_JOB_ID"));
    config.parent_job_id = bytes(variable(start, "NOMAD_JOB_PARENT_ID"));
    config.namespace_ = bytes(variable(start, "NOMAD_NAMESPACE"));
    config.node_name = bytes(drivers->config.node_name);
    config.node_id = bytes(drivers->config.node_id);
    set_env(&config, start, &arena);
    set_mounts(&config, start, &arena);
    set_network(&config, start, &arena);
    int code = set_resources(&config, drivers, start, &arena, err);
    if (code == 0) {
        external->task_length = protobuf_c_message_get_packed_size(&config.base);
        external->task = malloc(external->task_length + 1);
        check(external->task != NULL);
        check(protobuf_c_message_pack(&config.base, (uint8_t *)external->task) ==
              external->task_length);
    }
    arena_free(&arena);
    return code;
}
