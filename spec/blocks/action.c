/*
 * The action blocks of a task: what is wrong with them.
 *
 * Follows nomad v2.0.5 nomad/structs/actions.go.  Whoever runs one names it, so that two of the
 * same name are refused, where Nomad runs the first.
 */
#include "spec/blocks/blocks.h"
#include "spec/json.h"
#include "spec/names.h"

#include <string.h>

/* Characters and not bytes are counted there. */
static bool is_name(const char *name)
{
    return name[0] != '\0' && strlen(name) < SPEC_ACTION_NAME_SIZE &&
           strpbrk(name, " \t\n\f\r") == NULL;
}

static bool is_there_before(const json_t *actions, size_t at, const char *name)
{
    for (size_t i = 0; i < at; i++) {
        if (text_equal(text_of(json_array_get(actions, i), "Name"), name))
            return true;
    }
    return false;
}

void jobspec_check_actions(struct jobspec_work *work, const json_t *task)
{
    const json_t *actions = jobspec_list(task, "Actions"), *action;
    size_t i;

    if (json_array_size(actions) > SPEC_ACTIONS_MAX) {
        jobspec_complain(work, task, "Actions", NULL, "%zu actions, there may be %d",
                         json_array_size(actions), SPEC_ACTIONS_MAX);
        return;
    }
    json_array_foreach(actions, i, action)
    {
        const char *name = text_of(action, "Name"), *command = text_of(action, "Command");

        if (!is_name(name))
            jobspec_complain(work, action, "", "up to 128 bytes, and no spaces",
                             "\"%.140s\" is no name of an action", name);
        else if (is_there_before(actions, i, name))
            jobspec_complain(work, action, "", NULL, "there is more than one action \"%.128s\"",
                             name);
        if (json_array_size(jobspec_list(action, "Args")) >= SPEC_SCRIPT_ARGUMENTS_MAX)
            jobspec_complain(work, action, "Args", NULL, "an action has at most %d arguments",
                             SPEC_SCRIPT_ARGUMENTS_MAX - 1);
        if (command[0] == '\0' || strlen(command) >= SPEC_PLACE_SIZE)
            jobspec_complain(work, action, "Command", "write command = \"/bin/...\"",
                             "the command of action \"%.128s\" must have 1 to %d bytes", name,
                             SPEC_PLACE_SIZE - 1);
    }
}
