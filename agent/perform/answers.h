/* What storage plugins answer, as a control plane is told of it (server/control.h). */
#ifndef CAIRN_AGENT_PERFORM_ANSWERS_H
#define CAIRN_AGENT_PERFORM_ANSWERS_H

#include "csi/csi.h"

#include <jansson.h>

/* New references. */
json_t *answers_format(enum csi_call call, const struct csi_answer *answer);
json_t *answers_map(const struct csi_map *map);

#endif
