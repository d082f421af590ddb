/* Pairs of texts that are owned by whoever has the list: attributes, meta, what a root is made of.
 */
#ifndef CAIRN_AGENT_CONFIG_PAIRS_H
#define CAIRN_AGENT_CONFIG_PAIRS_H

#include "spec/spec.h"

/* Sets KEY to a copy of VALUE, in the place of what it was if there is one. */
void pairs_set(struct spec_pairs *pairs, const char *key, const char *value);
/* Takes KEY out, and what begins with it and a dot. */
void pairs_drop(struct spec_pairs *pairs, const char *key);
void pairs_free(struct spec_pairs *pairs);

#endif
