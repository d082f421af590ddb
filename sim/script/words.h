/* The words of the text form, shared by its reader (read.c) and its printer (print.c). */
#ifndef CAIRN_SIM_SCRIPT_WORDS_H
#define CAIRN_SIM_SCRIPT_WORDS_H

#include "fsm/alloc.h"
#include "fsm/task.h"
#include "sim/script/script.h"

enum { SIM_LINE_BYTES = 256 };

/* What an action is about. */
enum sim_takes {
    TAKES_NONE,
    TAKES_ALLOC,
    TAKES_TASK,
    TAKES_CLAIM,
    TAKES_PLUGIN,
    TAKES_RECORD, /* any machine */
    TAKES_JOB,    /* whom.kind is MACHINE_KIND_COUNT, member the job */
};
enum sim_takes sim_action_takes(unsigned action);

/* What a fact says about whom. */
enum sim_detail {
    DETAIL_NONE,
    DETAIL_STATE,
    DETAIL_EFFECT,
    DETAIL_EVENT,
    DETAIL_STATUS,
    DETAIL_NOTE
};

struct sim_fact_word {
    const char *word;
    enum sim_takes takes;
    enum sim_detail detail;
};
extern const struct sim_fact_word sim_fact_words[SIM_FACT_COUNT];

struct sim_question_word {
    const char *word;
    enum sim_takes takes;
};
extern const struct sim_question_word sim_question_words[SIM_QUESTION_COUNT];

extern const char *const sim_relation_words[SIM_AT_LEAST + 1];
extern const char *const sim_status_words[CLIENT_FAILED + 1];
extern const char *const sim_health_words[HEALTH_COUNT];
extern const char *const sim_note_words[TASK_EVENT_TYPE_COUNT]; /* of task events */
extern const char *const sim_server_words[SIM_SERVER_COUNT];
extern const char *const sim_moment_words[SIM_THEN + 1];
extern const char *const sim_lifecycle_words[LIFECYCLE_POSTSTOP + 1];
extern const char *const sim_mode_words[2];

/* A story as sim/SConscript makes them from sim/stories/. */
struct sim_story {
    const char *name, *about, *covers, *text;
};
extern const struct sim_story sim_stories[]; /* ends with a name that is NULL */

/* A part of a line. */
void sim_print(fsm_print *print, void *ctx, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* What a step does, "stop a". */
void sim_step_what(const struct sim_script *script, const struct sim_step *step, char *to,
                   size_t size);
/* One line of a script. */
void sim_step_print(const struct sim_script *script, const struct sim_step *step, fsm_print *print,
                    void *ctx);
void sim_fate_print(const struct sim_script *script, const struct sim_fate *fate, fsm_print *print,
                    void *ctx);
void sim_expect_print(const struct sim_script *script, const struct sim_expect *expect,
                      fsm_print *print, void *ctx);

/* True if a call that EFFECT of a machine of KIND makes can meet FAULT. */
bool sim_can_meet(uint8_t kind, uint8_t effect, unsigned fault);

/* The lines in which the parts of a script were read. */
struct sim_lines {
    int allocs[SIM_ALLOCS_MAX], tasks[SIM_ALLOCS_MAX][SIM_TASKS_MAX];
    int jobs[SIM_JOBS_MAX], steps[SIM_STEPS_MAX], expects[SIM_EXPECTS_MAX];
};

/* --- sound.c: a script as a whole --- */

/* ERR_INVALID: two lines contradict each other, or what the rest of the script says. */
int sim_script_sound(const struct sim_script *script, const struct sim_lines *lines,
                     struct err *err);

/* A script that nothing has been said about. */
struct sim_script sim_script_default(void);

#endif
