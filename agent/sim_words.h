/* The words of the text form, shared by its reader (sim_read.c) and its printer (sim_script.c). */
#ifndef CAIRN_AGENT_SIM_WORDS_H
#define CAIRN_AGENT_SIM_WORDS_H

#include "agent/sim_script.h"

enum { SIM_LINE_BYTES = 256 };

/* What an action is about. */
enum sim_takes {
    TAKES_NONE,
    TAKES_ALLOC,
    TAKES_TASK,
    TAKES_CLAIM,
    TAKES_PLUGIN,
    TAKES_RECORD, /* any machine */
};
enum sim_takes sim_action_takes(unsigned action);

extern const char *const sim_server_words[SIM_SERVER_COUNT];
extern const char *const sim_moment_words[SIM_THEN + 1];
extern const char *const sim_lifecycle_words[LIFECYCLE_POSTSTOP + 1];
extern const char *const sim_cut_words[3];
extern const char *const sim_mode_words[2];

/* A script that nothing has been said about. */
struct sim_script sim_script_default(void);

#endif
