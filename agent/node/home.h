/*
 * Where a node is: which directory on which disk holds its journal, and that no other does.
 *
 * What a node runs is found by its mark, so two agents with one mark would end each other's tasks.
 * A data directory that was copied must not be taken for the node itself.  Kept beside the journal
 * is a file, `home`, that names its own inode and birth, and those of its directory: a copy has
 * others, a directory that was renamed has the same, and the number of the device, which a boot may
 * change, is not asked for.  While an agent runs it holds a lock by its mark.
 */
#ifndef CAIRN_AGENT_NODE_HOME_H
#define CAIRN_AGENT_NODE_HOME_H

#include "agent/config/config.h"
#include "agent/node/node.h"

struct home {
    char lock_path[PATH_SIZE];
    int lock_fd;   /* -1: not locked */
    bool is_copy;  /* that takes over */
    bool is_known; /* last time, too, it was in this very directory */
};

/* Looks at the state directory, before anything in it is opened.  ERR_REFUSED for one that is a
 * copy, or was moved from another disk, or restored, unless the configuration says what it is to
 * be: with take_over the node goes on here; with new_node what was copied is put aside, and the
 * directory is as good as empty. */
int home_open(struct home *home, const struct config *config, struct err *err);

/* Takes the lock by the node's mark.  ERR_REFUSED while an agent with this mark runs elsewhere;
 * where there is no place for a lock it is said, and that is all. */
int home_take(struct home *home, const struct config *config, const struct node *node,
              struct err *err);

/* Writes down that the node is here, once nothing speaks against it any more. */
void home_note(const struct home *home, const struct config *config);

/* Lets the lock go. */
void home_close(struct home *home);

#endif
