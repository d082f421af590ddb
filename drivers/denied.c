/*
 * What a node keeps from its tasks: users of the host, variables of the environment.
 *
 * Follows nomad v2.0.5 drivers/shared/validators and drivers/rawexec/driver.go: ids are numbers and
 * ranges, both ends included, and of variables * is any text.
 */
#include "drivers/part.h"

#include "fsm/policy.h"

#include <string.h>
#include <unistd.h>

enum { PART_SIZE = 128 };

/* The next part of *LIST, between commas, without the spaces around it; false: there is none. */
static bool next_part(const char **list, char to[PART_SIZE])
{
    const char *at = *list;

    if (*at == '\0')
        return false;
    size_t length = strcspn(at, ",");
    *list = at + length + (at[length] == ',');
    while (length > 0 && *at == ' ') {
        at++;
        length--;
    }
    while (length > 0 && at[length - 1] == ' ')
        length--;
    if (length >= PART_SIZE)
        length = PART_SIZE - 1; /* no number, and no variable's name */
    memcpy(to, at, length);
    to[length] = '\0';
    return true;
}

/* --- users --- */

/* "7" or "7-9". */
static bool read_range(char *part, uint64_t *ret_low, uint64_t *ret_high)
{
    char *dash = strchr(part, '-');

    if (dash != NULL)
        *dash = '\0';
    if (!text_to_u64(part, ret_low) || !text_to_u64(dash == NULL ? part : dash + 1, ret_high))
        return false;
    return *ret_low <= *ret_high && *ret_high <= UINT32_MAX;
}

const char *driver_ids_fault(const char *ranges)
{
    uint64_t low, high;
    char part[PART_SIZE];

    while (next_part(&ranges, part)) {
        if (!read_range(part, &low, &high))
            return "must be ids and ranges of them, as in \"0,100-199\"";
    }
    return NULL;
}

static bool has_id(const char *ranges, uint32_t id)
{
    uint64_t low, high;
    char part[PART_SIZE];

    while (ranges != NULL && next_part(&ranges, part)) {
        if (read_range(part, &low, &high) && id >= low && id <= high)
            return true;
    }
    return false;
}

int denied_check(const struct drivers_denied *denied, uint32_t uid, const uint32_t *groups,
                 size_t groups_count, struct err *err)
{
    if (denied == NULL)
        return 0;
    if (has_id(denied->uids, uid))
        return err_set(err, ERR_REFUSED, "running as uid %u is disallowed", uid);
    for (size_t i = 0; i < groups_count; i++) {
        if (has_id(denied->gids, groups[i]))
            return err_set(err, ERR_REFUSED, "running as gid %u is disallowed", groups[i]);
    }
    return 0;
}

int denied_check_own(const struct drivers_denied *denied, struct err *err)
{
    gid_t groups[LAUNCH_GROUPS_MAX];
    int count = getgroups(LAUNCH_GROUPS_MAX - 1, groups);

    count = count < 0 ? 0 : count;
    groups[count] = getegid();
    return denied_check(denied, geteuid(), groups, (size_t)count + 1, err);
}

/* --- variables --- */

bool denied_variable(const struct command *command, const char *name)
{
    const char *list = command->node_denied_env;
    char pattern[PART_SIZE];

    for (size_t i = 0; i < command->denied_env.count; i++) {
        if (policy_matches(command->denied_env.items[i], name))
            return true;
    }
    while (list != NULL && next_part(&list, pattern)) {
        if (policy_matches(pattern, name))
            return true;
    }
    return false;
}
