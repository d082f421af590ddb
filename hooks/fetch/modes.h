/* What the daemon knows of cairn-fetch, whatever it is started for: descriptors and exit codes. */
#ifndef CAIRN_HOOKS_FETCH_MODES_H
#define CAIRN_HOOKS_FETCH_MODES_H

/* To get artifacts and disks: "cairn-fetch UID GID". */
enum { FETCH_ORDER = 3, FETCH_PLACE = 4, FETCH_REPORT = 5, FETCH_SHARED = 6 };

/* To pack a disk: "cairn-fetch snapshot DIRECTORY ALLOC TASK...". */
#define FETCH_SNAPSHOT "snapshot"
enum { FETCH_PACKED = 3 };

enum {
    FETCH_EXIT_USAGE = 2,
    FETCH_EXIT_GONE = 3, /* there is nothing to be packed */
};

/* The file that tells of a snapshot that it is not whole, as Nomad's clients know it: its name by
 * the alloc, and its time, of the last day of November 1999. */
#define FETCH_SNAPSHOT_ERROR "NOMAD-%s-ERROR.log"
enum { FETCH_SNAPSHOT_ERROR_TIME = 943920000 };

#endif
