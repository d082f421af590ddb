/* Versions of the CNI plugins of a node, as they tell them. */
#ifndef CAIRN_HOOKS_NETWORK_VERSIONS_H
#define CAIRN_HOOKS_NETWORK_VERSIONS_H

#include "spec/arena.h"
#include "spec/spec.h"

#include <stdatomic.h>

/* Each plugin in the directories of PATH (colons between) that has one, by its name; all in ARENA.
 * Runs them one after the other, and blocks; once OVER is true no other is run. */
struct spec_pairs cni_versions(const char *path, const atomic_bool *over, struct arena *arena);

#endif
