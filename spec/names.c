/* See spec/names.h. */
#include "spec/names.h"

#include "base/base.h"

#include <string.h>

_Static_assert((int)SPEC_NAME_MAX == 95 && (int)SPEC_NAMESPACE_MAX == 95 &&
                   (int)SPEC_PORT_LABEL_SIZE == 80,
               "the messages say so");

/* What no name may be. */
static const char *fault_of_any(const char *text)
{
    if (*text == '\0')
        return "must not be empty";
    if (strlen(text) > SPEC_NAME_MAX)
        return "is too long, it may have 95 bytes";
    for (const char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20u || *at == 0x7f)
            return "must not contain control characters";
    }
    return NULL;
}

/* True if a part of TEXT between slashes is "." or "..". */
static bool has_dots(const char *text)
{
    for (;;) {
        size_t length = strcspn(text, "/");

        if ((length == 1 || length == 2) && strspn(text, ".") >= length)
            return true;
        if (text[length] == '\0')
            return false;
        text += length + 1;
    }
}

const char *spec_job_id_fault(const char *text)
{
    const char *fault = fault_of_any(text);

    if (fault != NULL)
        return fault;
    if (strchr(text, ' ') != NULL)
        return "must not contain spaces";
    return has_dots(text) ? "must not be or have a part \".\" or \"..\"" : NULL;
}

const char *spec_group_name_fault(const char *text)
{
    return fault_of_any(text);
}

const char *spec_task_name_fault(const char *text)
{
    const char *fault = fault_of_any(text);

    if (fault != NULL)
        return fault;
    if (strpbrk(text, "/\\") != NULL)
        return "must not contain slashes";
    if (*text == '.')
        return "must not begin with a dot";
    if (text_equal(text, "alloc"))
        return "must not be \"alloc\": that is the directory all tasks share";
    return NULL;
}

bool spec_leaves_alloc(const char *path)
{
    size_t depth = 1;

    while (*path != '\0') {
        size_t part = strcspn(path, "/");

        if (part == 2 && memcmp(path, "..", 2) == 0) {
            if (depth == 0)
                return true;
            depth--;
        } else if (part > 0 && !(part == 1 && *path == '.')) {
            depth++;
        }
        path += part + (path[part] == '/');
    }
    return false;
}

const char *spec_namespace_fault(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";

    if (*text == '\0')
        return "must not be empty";
    if (strspn(text, allowed) != strlen(text))
        return "may contain letters, digits and dashes only";
    return strlen(text) > SPEC_NAMESPACE_MAX ? "is too long, it may have 95 bytes" : NULL;
}

bool spec_job_type(const char *name, enum spec_job_type *ret_type)
{
    static const char *const names[] = {
        [JOB_SERVICE] = "service",
        [JOB_BATCH] = "batch",
        [JOB_SYSTEM] = "system",
        [JOB_SYSBATCH] = "sysbatch",
    };

    for (unsigned i = 0; name != NULL && i < COUNT_OF(names); i++) {
        if (!text_equal(name, names[i]))
            continue;
        *ret_type = (enum spec_job_type)i;
        return true;
    }
    return false;
}

const char *spec_port_label_fault(const char *text)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

    if (*text == '\0')
        return "must not be empty";
    if (strspn(text, allowed) != strlen(text))
        return "may contain letters, digits, \"_\", \"-\" and \".\" only";
    return strlen(text) >= SPEC_PORT_LABEL_SIZE ? "is too long, it may have 79 bytes" : NULL;
}

const char *spec_volume_name_fault(const char *text)
{
    if (*text == '\0')
        return "must not be empty";
    if (strpbrk(text, "/\n\t") != NULL)
        return "must not contain slashes, tabs or line ends";
    return strlen(text) >= SPEC_NAME_SIZE ? "is too long, it may have 95 bytes" : NULL;
}

const char *spec_volume_id_fault(const char *text)
{
    if (*text == '\0')
        return "must not be empty";
    if (text_equal(text, ".") || text_equal(text, ".."))
        return "must not be \".\" or \"..\"";
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '/' || (unsigned char)*at < ' ' || *at == 127)
            return "must not contain slashes or control characters";
    }
    return strlen(text) >= SPEC_SOURCE_SIZE ? "is too long, it may have 111 bytes" : NULL;
}

/* As Nomad calls them; it has no name for the modes that came with CSI 1.5. */
static const char *const accesses[CSI_ACCESS_COUNT] = {
    [CSI_SINGLE_NODE_WRITER] = "single-node-writer",
    [CSI_SINGLE_NODE_READER] = "single-node-reader-only",
    [CSI_MULTI_NODE_READER] = "multi-node-reader-only",
    [CSI_MULTI_NODE_SINGLE_WRITER] = "multi-node-single-writer",
    [CSI_MULTI_NODE_MULTI_WRITER] = "multi-node-multi-writer",
};

static const char *const attachments[CSI_ATTACHMENT_COUNT] = {
    [CSI_FILE_SYSTEM] = "file-system",
    [CSI_BLOCK_DEVICE] = "block-device",
};

static bool find_name(const char *const *names, unsigned count, const char *name, unsigned *ret_at)
{
    for (unsigned i = 0; name != NULL && i < count; i++) {
        if (names[i] == NULL || !text_equal(names[i], name))
            continue;
        *ret_at = i;
        return true;
    }
    return false;
}

bool spec_access(const char *name, enum csi_access *ret_access)
{
    unsigned at;

    if (!find_name(accesses, CSI_ACCESS_COUNT, name, &at))
        return false;
    *ret_access = (enum csi_access)at;
    return true;
}

bool spec_attachment(const char *name, enum csi_attachment *ret_attachment)
{
    unsigned at;

    if (!find_name(attachments, CSI_ATTACHMENT_COUNT, name, &at))
        return false;
    *ret_attachment = (enum csi_attachment)at;
    return true;
}

const char *spec_access_name(enum csi_access access)
{
    check((unsigned)access < CSI_ACCESS_COUNT);
    return accesses[access] == NULL ? "" : accesses[access];
}

const char *spec_attachment_name(enum csi_attachment attachment)
{
    check((unsigned)attachment < CSI_ATTACHMENT_COUNT);
    return attachments[attachment] == NULL ? "" : attachments[attachment];
}

bool spec_mounts_claim(const struct alloc_spec *alloc, const struct task_spec *task)
{
    for (size_t m = 0; m < task->volume_mounts_count; m++) {
        for (size_t v = 0; v < alloc->volumes_count; v++) {
            if (alloc->volumes[v].type == VOLUME_CSI &&
                text_equal(alloc->volumes[v].name, task->volume_mounts[m].volume))
                return true;
        }
    }
    return false;
}

static const char *const propagations[] = {
    [PROPAGATION_PRIVATE] = "private",
    [PROPAGATION_HOST_TO_TASK] = "host-to-task",
    [PROPAGATION_BIDIRECTIONAL] = "bidirectional",
};

bool spec_propagation(const char *name, enum spec_propagation *ret_propagation)
{
    for (unsigned i = 0; i < COUNT_OF(propagations); i++) {
        bool is_default = i == PROPAGATION_PRIVATE && (name == NULL || *name == '\0');

        if (!is_default && (name == NULL || !text_equal(name, propagations[i])))
            continue;
        *ret_propagation = (enum spec_propagation)i;
        return true;
    }
    return false;
}

const char *spec_propagation_name(enum spec_propagation propagation)
{
    return propagations[propagation];
}

/* What is mounted there would take from a task what it is promised. */
static const char *place_fault(const char *path)
{
    static const char *const own[] = {"/", "/alloc", "/alloc/logs", "/local", "/secrets", "/dev"};
    static const char *const kernels[] = {"/proc", "/sys"};

    for (size_t i = 0; i < COUNT_OF(own); i++) {
        if (text_equal(path, own[i]))
            return "is a directory that every task has";
    }
    for (size_t i = 0; i < COUNT_OF(kernels); i++) {
        size_t length = strlen(kernels[i]);

        if (text_starts_with(path, kernels[i]) && (path[length] == '\0' || path[length] == '/'))
            return "is of the kernel's file systems";
    }
    return NULL;
}

const char *spec_place(const char *text, char to[SPEC_PLACE_SIZE])
{
    size_t used = 0;

    if (*text == '\0')
        return "is no path";
    while (*text != '\0') {
        text += strspn(text, "/");
        size_t length = strcspn(text, "/");

        if (length == 0 || (length == 1 && text[0] == '.')) {
            text += length;
            continue;
        }
        if (length == 2 && text[0] == '.' && text[1] == '.')
            return "leads out of where it begins";
        if (used + 1 + length >= SPEC_PLACE_SIZE)
            return "is too long, it may have 255 bytes";
        to[used++] = '/';
        memcpy(to + used, text, length);
        used += length;
        text += length;
    }
    (void)text_copy(to + used, SPEC_PLACE_SIZE - used, used == 0 ? "/" : ""); /* fits */
    return place_fault(to);
}

const char *spec_network_mode_fault(const char *mode)
{
    static const char *const modes[] = {"", "host", "bridge", "none"};
    static const char cni[] = "cni/";

    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        if (text_equal(mode, modes[i]))
            return NULL;
    }
    if (!text_starts_with(mode, cni))
        return "is \"host\", \"bridge\", \"none\" or \"cni/NAME\"";
    mode += strlen(cni);
    if (*mode == '\0' || strpbrk(mode, "/\n") != NULL)
        return "is \"cni/\" with the name of a network of the node behind it";
    return strlen(mode) >= SPEC_PORT_LABEL_SIZE ? "is too long" : NULL;
}

enum { HOSTNAME_LABEL_MAX = 63 };

const char *spec_hostname_fault(const char *hostname)
{
    static const char characters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";

    if (strlen(hostname) > SPEC_HOSTNAME_MAX)
        return "is too long, it may have 64 bytes";
    for (;;) {
        size_t length = strspn(hostname, characters);

        if ((hostname[length] != '\0' && hostname[length] != '.') || length == 0 ||
            length > HOSTNAME_LABEL_MAX || hostname[0] == '-' || hostname[length - 1] == '-')
            return "is letters, digits and \"-\", 63 at most between two points, and neither "
                   "begins nor ends with \"-\"";
        if (hostname[length] == '\0')
            return NULL;
        hostname += length + 1;
    }
}

const char *spec_service_name_fault(const char *name)
{
    if (strchr(name, '.') != NULL || strlen(name) >= SPEC_SERVICE_NAME_SIZE ||
        spec_hostname_fault(name) != NULL)
        return "is letters, digits and \"-\", 63 at most, and neither begins nor ends with \"-\"";
    return NULL;
}

void spec_alloc_name(char to[SPEC_ALLOC_NAME_SIZE], const char *job_id, const char *group,
                     uint32_t index)
{
    check(text_format(to, SPEC_ALLOC_NAME_SIZE, "%s.%s[%u]", job_id, group, index));
}

bool spec_is_signal(const char *text)
{
    const char *plain = text_starts_with(text, "SIG") ? text + 3 : text;
    uint64_t number;

    if (text_to_u64(text, &number))
        return number >= 1 && number <= 31;
    for (int i = 1; i < 32; i++) {
        if (text_equal(sigabbrev_np(i), plain))
            return true;
    }
    return false;
}

const char *spec_identity_name_fault(const char *name)
{
    size_t length = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                 "0123456789-_");

    return length > 0 && length < SPEC_IDENTITY_NAME_SIZE && name[length] == '\0'
               ? NULL
               : "is letters, digits, \"-\" and \"_\", 128 at most";
}

bool spec_is_token(const char *text)
{
    size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                 "0123456789-_.");

    return length > 0 && length < SPEC_TOKEN_SIZE && text[length] == '\0';
}
