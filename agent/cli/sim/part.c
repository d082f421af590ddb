/* What the parts of `cairn sim` share: reading a story, printing a script, words of flags. */
#include "agent/cli/sim/sim.h"

#include "io/host.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STORY_BYTES_MAX = 256 * 1024 };

const char *const cli_sim_away_flags[SIM_AWAY_COUNT] = {
    [SIM_AWAY_NOTHING] = "nothing",
    [SIM_AWAY_EXITS] = "exits",
    [SIM_AWAY_REBOOT] = "reboot",
    [SIM_AWAY_DRAWN] = "drawn",
};

void cli_sim_print_to(void *file, const char *text)
{
    (void)fputs(text, file);
}

int cli_sim_read_story(const char *name, struct sim_script *ret_script)
{
    const char *text = sim_story_text(name);
    char *bytes = NULL;
    size_t length = 0;
    struct err err = {0};

    if (text == NULL) {
        if (strchr(name, '/') == NULL && access(name, R_OK) != 0)
            return cli_fail(CLI_FAILED,
                            "there is no story and no file \"%.200s\"; cairn sim -list names the "
                            "stories",
                            name);
        if (file_read(name, STORY_BYTES_MAX, &bytes, &length, &err) < 0)
            return cli_fail(CLI_FAILED, "%s", err.text);
        text = bytes;
    }
    int code = sim_script_read(text, ret_script, &err);
    free(bytes);
    return code < 0 ? cli_fail(CLI_FAILED, "%.200s: %s", name, err.text) : 0;
}

void cli_sim_shrink_and_print(struct sim *sim, struct sim_script *script, struct sim_result *result)
{
    sim_shrink(sim, script, result);
    (void)printf("# %s\n", result->text);
    sim_script_print(script, cli_sim_print_to, stdout);
}
