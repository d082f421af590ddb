/*
 * Writing down what a shim is to start.
 *
 * The record never touches a disk: it is a memfd that the shim inherits, since the environment may
 * hold secrets, and it is gone with the last of the two that has it.  It need not survive anything.
 * The intent to start is in the journal before we are called; if daemon or machine die before the
 * payload exists, the start is performed again and the record made anew.
 */
#include "drivers/part.h"
#include "spec/names.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

enum {
    PLAN_FIRST_BYTES = 2048,
    SHARES_OF_A_CORE = 1024,
    SHARES_MIN = 2, /* of the kernel */
    SHARES_MAX = 262144,
};

static void add(struct plan *plan, uint16_t tag, const void *bytes, size_t length)
{
    struct launch_field field = {.tag = tag, .length = (uint32_t)length};
    size_t needed = plan->length + sizeof(field) + length;

    if (plan->failed || length > LAUNCH_SIZE_MAX || needed > LAUNCH_SIZE_MAX) {
        plan->failed = true;
        return;
    }
    plan->bytes = list_room(plan->bytes, &plan->capacity, needed, sizeof(*plan->bytes));
    memcpy(plan->bytes + plan->length, &field, sizeof(field));
    memcpy(plan->bytes + plan->length + sizeof(field), bytes, length);
    plan->length = needed;
}

static void add_text(struct plan *plan, uint16_t tag, const char *text)
{
    add(plan, tag, text, strlen(text) + 1);
}

static void add_number(struct plan *plan, uint16_t tag, uint64_t value)
{
    add(plan, tag, &value, sizeof(value));
}

static void add_variable(struct plan *plan, const char *name, const char *value)
{
    size_t name_length = strlen(name), value_length = strlen(value);
    char *text = malloc(name_length + value_length + 2);

    check(text != NULL);
    memcpy(text, name, name_length);
    text[name_length] = '=';
    memcpy(text + name_length + 1, value, value_length + 1);
    add(plan, LAUNCH_ENVIRONMENT, text, name_length + value_length + 2);
    free(text);
}

/* What an isolated payload is told of its user, and not of the daemon's. */
static bool is_of_user(const char *name)
{
    return text_equal(name, "HOME") || text_equal(name, "LOGNAME") || text_equal(name, "USER");
}

static void add_environment(struct plan *plan, const struct command *command,
                            const struct spec_pairs *env)
{
    for (size_t i = 0; i < env->count; i++) {
        const char *name = env->items[i].key;

        if ((!plan->isolated || plan->user[0] == '\0' || !is_of_user(name)) &&
            !denied_variable(command, name))
            add_variable(plan, name, env->items[i].value);
    }
}

static void add_bind(struct plan *plan, uint32_t flags, const char *host, const char *inside)
{
    char bytes[sizeof(flags) + PATH_SIZE * 2];
    size_t host_length = strlen(host) + 1, inside_length = strlen(inside) + 1;

    if (host_length > PATH_SIZE || inside_length > PATH_SIZE) {
        plan->failed = true;
        return;
    }
    memcpy(bytes, &flags, sizeof(flags));
    memcpy(bytes + sizeof(flags), host, host_length);
    memcpy(bytes + sizeof(flags) + host_length, inside, inside_length);
    add(plan, LAUNCH_BIND, bytes, sizeof(flags) + host_length + inside_length);
}

/* Since 2.0.1 of Nomad a task cannot change its logs, nor those of its neighbours. */
static void add_isolation(struct plan *plan, const struct isolation *isolation)
{
    if (isolation->parts == 0)
        return;
    add_number(plan, LAUNCH_ISOLATION, isolation->parts);
    add_number(plan, LAUNCH_BOUNDING, isolation->bounding);
    add_number(plan, LAUNCH_AMBIENT, isolation->ambient);
    for (size_t i = 0; i < isolation->root->count; i++)
        add_bind(plan, LAUNCH_BIND_READ_ONLY | LAUNCH_BIND_IF_THERE, isolation->root->items[i].key,
                 isolation->root->items[i].value);
    add_bind(plan, LAUNCH_BIND_IN_ALLOC, "alloc", "/alloc");
    add_bind(plan, LAUNCH_BIND_IN_ALLOC | LAUNCH_BIND_READ_ONLY, "alloc/logs", "/alloc/logs");
}

/* Who may mount reaches every device without us.  All others have the few of their own root. */
static void add_mounts(struct plan *plan, const struct isolation *isolation,
                       const struct spec_mounts *mounts)
{
    static const uint32_t spreads[] = {
        [PROPAGATION_PRIVATE] = 0,
        [PROPAGATION_HOST_TO_TASK] = LAUNCH_BIND_HOST_TO_TASK,
        [PROPAGATION_BIDIRECTIONAL] = LAUNCH_BIND_BIDIRECTIONAL,
    };

    for (size_t i = 0; i < mounts->count; i++) {
        const struct spec_mount *mount = &mounts->items[i];

        if (mount->has_devices && (isolation->bounding & (uint64_t)1 << CAP_SYS_ADMIN) == 0)
            continue;
        add_bind(plan,
                 LAUNCH_BIND_MOUNT | spreads[mount->propagation] |
                     (mount->read_only ? LAUNCH_BIND_READ_ONLY : 0u) |
                     (mount->is_mount ? LAUNCH_BIND_IS_MOUNT : 0u) |
                     (mount->has_devices || mount->is_node ? LAUNCH_BIND_DEVICES : 0u),
                 mount->host, mount->inside);
    }
}

uint64_t plan_cpu_weight(uint64_t shares)
{
    double log = log2((double)shares);

    if (shares <= SHARES_MIN || shares >= SHARES_MAX)
        return shares <= SHARES_MIN ? 1 : 10000; /* exactly, whatever is lost by rounding */
    return (uint64_t)ceil(pow(10, (log * log + 125 * log) / 612 - 7.0 / 34));
}

static void add_limits(struct plan *plan, const struct spec_resources *resources)
{
    uint64_t asked = (uint64_t)resources->memory_mb << 20;
    bool unlimited = resources->memory_max_mb == SPEC_MEMORY_UNLIMITED;
    uint64_t most = unlimited ? 0 : (uint64_t)resources->memory_max_mb << 20;

    if (!unlimited)
        add_number(plan, LAUNCH_MEMORY_MAX, most > asked ? most : asked);
    if (unlimited || most > asked)
        add_number(plan, LAUNCH_MEMORY_LOW, asked);
    /* An alloc that was placed by an older version does not say what its cores come to. */
    uint64_t shares =
        resources->cpu_mhz > 0 ? resources->cpu_mhz : (uint64_t)resources->cores * SHARES_OF_A_CORE;
    shares = shares < SHARES_MIN ? SHARES_MIN : shares > SHARES_MAX ? SHARES_MAX : shares;
    add_number(plan, LAUNCH_CPU_SHARES, shares);
    add_number(plan, LAUNCH_CPU_WEIGHT, plan_cpu_weight(shares));
}

/* Not a bound of what a driver isolates: a core is one task's, whatever its driver. */
static void add_cores(struct plan *plan, const struct drivers *drivers,
                      const struct spec_resources *resources)
{
    char text[CORES_TEXT_SIZE], share[CGROUP_NAME_SIZE];

    if (resources->cores == 0) {
        share_cgroup(drivers, share);
        if (drivers->share.restricted && drivers->config.cgroup_mode != CGROUP_V2)
            add_text(plan, LAUNCH_SHARE, share);
        return;
    }
    spec_cores_text(resources->core_ids, resources->cores, text);
    add_text(plan, LAUNCH_CPUS, text);
}

static void add_logs(struct plan *plan, const struct driver_start *start)
{
    const struct spec_logs *logs = &start->task->logs;
    uint64_t megabytes = logs->max_file_size_mb > 0 ? logs->max_file_size_mb : LOG_FILE_MB;

    if (logs->disabled)
        return;
    add_text(plan, LAUNCH_LOG_DIR, start->log_dir);
    add_text(plan, LAUNCH_LOG_NAME, start->key.task);
    add_number(plan, LAUNCH_LOG_FILES_MAX, logs->max_files > 0 ? logs->max_files : LOG_FILES_MAX);
    add_number(plan, LAUNCH_LOG_BYTES_MAX, megabytes * 1024 * 1024);
}

static bool is_said(const char *text)
{
    return text != NULL && text[0] != '\0';
}

struct plan *plan_new(const struct drivers *drivers, const struct driver_start *start,
                      const struct command *command, struct err *err)
{
    char text[CGROUP_NAME_SIZE];
    struct record_head head = {0};
    struct plan *plan = calloc(1, sizeof(*plan));

    check(plan != NULL);
    if (!text_copy(plan->user, sizeof(plan->user), start->task->user)) {
        (void)err_set(err, ERR_LIMIT, "the name of the user is too long");
        plan_free(plan);
        return NULL;
    }
    plan->denied = command->denied;
    if (plan->user[0] == '\0' && denied_check_own(plan->denied, err) != 0) {
        plan_free(plan);
        return NULL;
    }
    plan->isolated = command->isolation.parts != 0;
    plan->bytes = malloc(PLAN_FIRST_BYTES);
    check(plan->bytes != NULL);
    plan->capacity = PLAN_FIRST_BYTES;
    memcpy(plan->bytes, &head, sizeof(head)); /* sealed when it is written */
    plan->length = sizeof(head);

    check(text_format(text, sizeof(text), "%s.%s.%u", start->key.alloc, start->key.task,
                      start->key.generation));
    add_text(plan, LAUNCH_KEY, text);
    add_number(plan, LAUNCH_KEY_DIGEST, key_digest(&start->key));
    add_number(plan, LAUNCH_CGROUP_MODE, (uint64_t)drivers->config.cgroup_mode);
    shims_cgroup(drivers, text);
    add_text(plan, LAUNCH_SHIM_CGROUP, text);
    if (command->has_cgroup) {
        key_cgroup(drivers, &start->key, start->task->resources.cores > 0, text);
        add_text(plan, LAUNCH_CGROUP, text);
    }
    add_text(plan, LAUNCH_COMMAND, command->program);
    for (size_t i = 0; i < command->arguments.count; i++)
        add_text(plan, LAUNCH_ARGUMENT, command->arguments.items[i]);
    if (command->work_dir != NULL)
        add_text(plan, LAUNCH_WORK_DIR, command->work_dir);
    if (command->oom_score_adj > 0)
        add_number(plan, LAUNCH_OOM_SCORE_ADJ, (uint64_t)command->oom_score_adj);
    add_isolation(plan, &command->isolation);
    if (is_said(start->network))
        add_text(plan, LAUNCH_NETWORK, start->network);
    if (is_said(start->resolv) && command->isolation.parts != 0)
        add_bind(plan, LAUNCH_BIND_READ_ONLY | LAUNCH_BIND_FOLLOW, start->resolv,
                 "/etc/resolv.conf");
    if (is_said(start->hosts) && command->isolation.parts != 0)
        add_bind(plan, LAUNCH_BIND_READ_ONLY | LAUNCH_BIND_FOLLOW, start->hosts, "/etc/hosts");
    if (is_said(start->hostname))
        add_text(plan, LAUNCH_HOSTNAME, start->hostname);
    if (plan->isolated)
        add_mounts(plan, &command->isolation, &start->mounts);
    if (command->has_limits)
        add_limits(plan, &start->task->resources);
    if (command->has_cgroup)
        add_cores(plan, drivers, &start->task->resources);
    add_text(plan, LAUNCH_ALLOC_DIR, start->alloc_dir);
    add_text(plan, LAUNCH_TASK_DIR, start->task_dir);
    add_logs(plan, start);
    add_environment(plan, command, &start->env);
    if (plan->failed) {
        (void)err_set(err, ERR_LIMIT, "arguments and environment are larger than %d MiB",
                      LAUNCH_SIZE_MAX / (1024 * 1024));
        plan_free(plan);
        return NULL;
    }
    return plan;
}

struct plan *plan_new_held(const struct drivers *drivers, const struct driver_start *start,
                           struct err *err)
{
    struct plan *plan = calloc(1, sizeof(*plan));

    check(plan != NULL);
    plan->mock = mock_new(drivers, start, err);
    if (plan->mock != NULL)
        return plan;
    plan_free(plan);
    return NULL;
}

struct plan *plan_new_contained(const struct drivers *drivers, const struct driver_start *start,
                                const struct command *command, struct err *err)
{
    struct plan *plan = calloc(1, sizeof(*plan));

    check(plan != NULL);
    plan->container = container_new(drivers, start, command, err);
    if (plan->container != NULL)
        return plan;
    plan_free(plan);
    return NULL;
}

struct plan *plan_new_external(const struct drivers *drivers, const struct driver_start *start,
                               struct err *err)
{
    struct plan *plan = calloc(1, sizeof(*plan));

    check(plan != NULL);
    plan->external = external_new(drivers, start, err);
    if (plan->external != NULL)
        return plan;
    plan_free(plan);
    return NULL;
}

void plan_free(struct plan *plan)
{
    if (plan == NULL)
        return;
    mock_free(plan->mock);
    container_free(plan->container);
    external_free(plan->external);
    if (plan->bytes != NULL)
        explicit_bzero(plan->bytes, plan->length); /* the environment may hold secrets */
    free(plan->bytes);
    free(plan);
}

void plan_look_up_user(struct io_work *work)
{
    struct plan *plan = work->ctx;
    gid_t groups[LAUNCH_GROUPS_MAX];

    if (host_user_find(plan->user, &plan->found, &plan->error) != 0)
        return;
    plan->groups_count = LAUNCH_GROUPS_MAX;
    if (getgrouplist(plan->user, plan->found.gid, groups, &plan->groups_count) < 0)
        (void)err_set(&plan->error, ERR_LIMIT, "user \"%s\" is in more than %d groups", plan->user,
                      LAUNCH_GROUPS_MAX);
    for (int i = 0; plan->error.code == 0 && i < plan->groups_count; i++)
        plan->groups[i] = groups[i];
    if (plan->error.code == 0)
        (void)denied_check(plan->denied, plan->found.uid, plan->groups, (size_t)plan->groups_count,
                           &plan->error); /* which says it */
}

void plan_add_user(struct plan *plan)
{
    add_text(plan, LAUNCH_USER_NAME, plan->user);
    add_number(plan, LAUNCH_USER_ID, plan->found.uid);
    add_number(plan, LAUNCH_GROUP_ID, plan->found.gid);
    for (int i = 0; i < plan->groups_count; i++)
        add_number(plan, LAUNCH_USER_GROUP, plan->groups[i]);
    if (!plan->isolated)
        return;
    add_variable(plan, "HOME", plan->found.home);
    add_variable(plan, "LOGNAME", plan->user);
    add_variable(plan, "USER", plan->user);
}

void plan_add_terminal(struct plan *plan)
{
    add_number(plan, LAUNCH_TERMINAL, 1);
}

int plan_open(struct plan *plan, int *ret_fd, struct err *err)
{
    size_t done = 0;
    int fd = memfd_create("cairn-launch", MFD_CLOEXEC | MFD_NOEXEC_SEAL);

    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("cairn-launch", MFD_CLOEXEC); /* before Linux 6.3 */
    record_seal(plan->bytes, RECORD_MAGIC_LAUNCH, plan->length);
    while (fd >= 0 && done < plan->length) {
        ssize_t put = write(fd, plan->bytes + done, plan->length - done);

        if (put < 0 && errno != EINTR)
            break;
        done += put > 0 ? (size_t)put : 0;
    }
    if (fd < 0 || done < plan->length) {
        int code = err_os(err, err_from_errno(errno), errno, "cannot write the launch record");

        err->recoverable = true;
        if (fd >= 0)
            (void)close(fd); /* half of it is worth nothing */
        return code;
    }
    *ret_fd = fd;
    return 0;
}
