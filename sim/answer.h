/* What calls are answered with, in the seeded worlds and in the search alike.  Private to sim/. */
#ifndef CAIRN_SIM_ANSWER_H
#define CAIRN_SIM_ANSWER_H

#include "fsm/fsm.h"

/* TEXT is a constant that fits. */
struct failure sim_failed(int code, bool recoverable, const char *text);

/* The event that ends the call which EFFECT of a volume, plugin or task has made; CODE 0: it has
 * succeeded.  Of calls by which a volume is looked for, MOUNTED says what was found. */
uint8_t sim_volume_answer(uint8_t effect, int code, bool mounted);
uint8_t sim_plugin_answer(uint8_t effect, int code);
uint8_t sim_driver_failure(uint8_t effect);

#endif
