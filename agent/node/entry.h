/* What the daemon keeps in the journal's meta as one JSON text, from one life to the next. */
#ifndef CAIRN_AGENT_NODE_ENTRY_H
#define CAIRN_AGENT_NODE_ENTRY_H

#include "core/core.h"
#include "core/say.h"
#include "core/store.h"

#include <jansson.h>

/* Reads what STORE holds under NAME, before a life begins: a new reference, or NULL if there is
 * nothing, or on failure.  What is damaged, or not as IS_WHOLE has it, is put into quarantine, with
 * a warning that it is begun anew: then there is nothing. */
int entry_read(const struct store *store, const struct say *log, const char *name,
               bool (*is_whole)(const json_t *json), int64_t now_unix_ns, json_t **ret_json,
               struct err *err);

/* JSON goes into the next commit. */
void entry_write(struct core *core, const char *name, const json_t *json);

#endif
