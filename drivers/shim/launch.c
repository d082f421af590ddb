/*
 * Reading the launch record.
 *
 * The record is mapped, not read: its texts are used where they lie, and unmapping it, once the
 * payload has been forked, ends the last copy of every secret outside the payload.  Only arrays of
 * pointers are built, in one anonymous mapping sized by a first pass, which also checks every
 * field.
 */
#include "drivers/shim/shim.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct counts {
    size_t arguments, variables, groups, binds, mounts;
};

static bool is_text(const char *bytes, uint32_t length)
{
    return length > 0 && memchr(bytes, '\0', length) == bytes + length - 1;
}

/* Where the launch keeps the text, or the number, of TAG; NULL if it is not a single one. */
static const char **text_of(struct launch *launch, uint16_t tag)
{
    switch (tag) {
    case LAUNCH_KEY:
        return &launch->key;
    case LAUNCH_CGROUP:
        return &launch->cgroup;
    case LAUNCH_SHIM_CGROUP:
        return &launch->shim_cgroup;
    case LAUNCH_COMMAND:
        return &launch->command;
    case LAUNCH_ALLOC_DIR:
        return &launch->alloc_dir;
    case LAUNCH_TASK_DIR:
        return &launch->task_dir;
    case LAUNCH_LOG_DIR:
        return &launch->log_dir;
    case LAUNCH_LOG_NAME:
        return &launch->log_name;
    case LAUNCH_USER_NAME:
        return &launch->user_name;
    case LAUNCH_WORK_DIR:
        return &launch->work_dir;
    case LAUNCH_CPUS:
        return &launch->limits.cpus;
    case LAUNCH_NETWORK:
        return &launch->network;
    case LAUNCH_SHARE:
        return &launch->share;
    case LAUNCH_HOSTNAME:
        return &launch->hostname;
    default:
        return NULL;
    }
}

static uint64_t *number_of(struct launch *launch, uint16_t tag)
{
    switch (tag) {
    case LAUNCH_KEY_DIGEST:
        return &launch->key_digest;
    case LAUNCH_CGROUP_MODE:
        return &launch->cgroup_mode;
    case LAUNCH_LOG_FILES_MAX:
        return &launch->log_files_max;
    case LAUNCH_LOG_BYTES_MAX:
        return &launch->log_bytes_max;
    case LAUNCH_ISOLATION:
        return &launch->isolation;
    case LAUNCH_BOUNDING:
        return &launch->bounding;
    case LAUNCH_AMBIENT:
        return &launch->ambient;
    case LAUNCH_MEMORY_MAX:
        return &launch->limits.memory_bytes_max;
    case LAUNCH_MEMORY_LOW:
        return &launch->limits.memory_bytes_low;
    case LAUNCH_CPU_SHARES:
        return &launch->limits.cpu_shares;
    case LAUNCH_CPU_WEIGHT:
        return &launch->limits.cpu_weight;
    case LAUNCH_OOM_SCORE_ADJ:
        return &launch->oom_score_adj;
    case LAUNCH_TERMINAL:
        return &launch->terminal;
    default:
        return NULL;
    }
}

static int take_field(struct launch *launch, struct counts *counts, uint16_t tag, const char *bytes,
                      uint32_t length)
{
    const char **text = text_of(launch, tag);
    uint64_t *number = number_of(launch, tag), value = 0;

    if (text != NULL || tag == LAUNCH_ARGUMENT || tag == LAUNCH_ENVIRONMENT) {
        if (!is_text(bytes, length))
            return ERR_CORRUPT;
        if (text != NULL)
            *text = bytes;
        counts->arguments += tag == LAUNCH_ARGUMENT;
        counts->variables += tag == LAUNCH_ENVIRONMENT;
        return 0;
    }
    if (tag == LAUNCH_BIND) {
        struct launch_bind bind;

        counts->binds++;
        if (!launch_bind_take(bytes, length, &bind))
            return ERR_CORRUPT;
        counts->mounts += (bind.flags & LAUNCH_BIND_MOUNT) != 0;
        return 0;
    }
    if (number == NULL && tag != LAUNCH_USER_ID && tag != LAUNCH_GROUP_ID &&
        tag != LAUNCH_USER_GROUP)
        return (tag & LAUNCH_OPTIONAL) != 0 ? 0 : ERR_UNSUPPORTED;
    if (length != sizeof(value))
        return ERR_CORRUPT;
    memcpy(&value, bytes, sizeof(value));
    if (number != NULL) {
        *number = value;
        return 0;
    }
    if (value > UINT32_MAX)
        return ERR_CORRUPT;
    if (tag == LAUNCH_USER_ID)
        launch->user_id = (uint32_t)value;
    else if (tag == LAUNCH_GROUP_ID)
        launch->group_id = (uint32_t)value;
    launch->switch_user |= tag == LAUNCH_USER_ID;
    counts->groups += tag == LAUNCH_USER_GROUP;
    return 0;
}

static int map_record(struct launch *launch, struct err *err)
{
    struct stat status;

    if (fstat(SHIM_FD_LAUNCH, &status) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot open the launch record");
    if (status.st_size < (off_t)sizeof(struct record_head) || status.st_size > LAUNCH_SIZE_MAX)
        return err_set(err, ERR_CORRUPT, "the launch record is damaged");
    launch->record_bytes = (size_t)status.st_size;
    launch->record = mmap(NULL, launch->record_bytes, PROT_READ, MAP_PRIVATE, SHIM_FD_LAUNCH, 0);
    int os = errno;
    (void)close(SHIM_FD_LAUNCH); /* the mapping stays */
    if (launch->record == MAP_FAILED) {
        launch->record = NULL;
        return err_os(err, err_from_errno(os), os, "cannot map the launch record");
    }
    if (!record_is_sound(launch->record, launch->record_bytes, RECORD_MAGIC_LAUNCH))
        return err_set(err, ERR_CORRUPT, "the launch record is damaged");
    return 0;
}

/* PATH as seen from the alloc's directory; NULL if it does not lie in it. */
static const char *in_alloc(const struct launch *launch, const char *path)
{
    size_t length = launch->alloc_dir == NULL ? 0 : strlen(launch->alloc_dir);

    if (length == 0 || path == NULL || strncmp(path, launch->alloc_dir, length) != 0 ||
        path[length] != '/')
        return NULL;
    return path + length + 1;
}

/* One mapping for binds, argv, envp, groups and the program's path, in this order. */
static int build_arrays(struct launch *launch, const struct counts *counts, struct err *err)
{
    size_t pointers = counts->arguments + 2 + counts->variables + 1;
    size_t at = sizeof(struct record_head), arguments = 1, variables = 0;
    const char *bytes;
    uint32_t length;
    uint16_t tag;

    launch->arrays_bytes = counts->binds * sizeof(struct launch_bind) + pointers * sizeof(char *) +
                           counts->groups * sizeof(uint32_t) + PATH_MAX;
    launch->arrays = mmap(NULL, launch->arrays_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (launch->arrays == MAP_FAILED) {
        launch->arrays = NULL;
        return err_os(err, err_from_errno(errno), errno, "no memory for the command line");
    }
    launch->binds = launch->arrays;
    launch->argv = (char **)(void *)(launch->binds + counts->binds);
    launch->envp = launch->argv + counts->arguments + 2;
    launch->groups = (uint32_t *)(void *)(launch->envp + counts->variables + 1);
    launch->program = (char *)(launch->groups + counts->groups);
    launch->argv[0] = (char *)(uintptr_t)launch->command;
    while (launch_next(launch->record, &at, &tag, &bytes, &length) == 1) {
        uint64_t value;

        if (tag == LAUNCH_ARGUMENT)
            launch->argv[arguments++] = (char *)(uintptr_t)bytes; /* exec writes to none */
        if (tag == LAUNCH_ENVIRONMENT)
            launch->envp[variables++] = (char *)(uintptr_t)bytes;
        if (tag == LAUNCH_BIND)
            check(launch_bind_take(bytes, length, &launch->binds[launch->binds_count++]));
        if (tag == LAUNCH_USER_GROUP) {
            memcpy(&value, bytes, sizeof(value));
            launch->groups[launch->groups_count++] = (uint32_t)value;
        }
    }
    check(arguments == counts->arguments + 1);
    check(variables == counts->variables);
    return 0;
}

int launch_open(struct launch *launch, struct err *err)
{
    struct counts counts = {0};
    size_t at = sizeof(struct record_head);
    const char *bytes;
    uint32_t length;
    uint16_t tag;

    *launch = (struct launch){0};
    int code = map_record(launch, err);
    if (code != 0)
        return code;
    while ((code = launch_next(launch->record, &at, &tag, &bytes, &length)) == 1) {
        code = take_field(launch, &counts, tag, bytes, length);
        if (code == ERR_UNSUPPORTED)
            return err_set(err, code,
                           "the launch record asks for something new (%u): "
                           "this supervisor is too old",
                           tag);
        if (code != 0)
            break;
    }
    launch->task_in_alloc = in_alloc(launch, launch->task_dir);
    launch->logs_in_alloc = in_alloc(launch, launch->log_dir);
    if (code != 0 || launch->command == NULL || launch->task_in_alloc == NULL ||
        launch->key == NULL || launch->shim_cgroup == NULL || launch->cgroup_mode > CGROUP_V1 ||
        (launch->log_name != NULL && launch->logs_in_alloc == NULL) ||
        counts.groups > LAUNCH_GROUPS_MAX || counts.binds > LAUNCH_BINDS_MAX ||
        counts.mounts > LAUNCH_MOUNTS_MAX)
        return err_set(err, ERR_CORRUPT, "the launch record is damaged");
    return build_arrays(launch, &counts, err);
}

void launch_close(struct launch *launch)
{
    if (launch->record != NULL)
        check(munmap(launch->record, launch->record_bytes) == 0);
    if (launch->arrays != NULL)
        check(munmap(launch->arrays, launch->arrays_bytes) == 0);
    *launch = (struct launch){0};
}
