/* Inside plugins/process only. */
#ifndef CAIRN_PLUGINS_PROCESS_PART_H
#define CAIRN_PLUGINS_PROCESS_PART_H

#include "plugins/process/process.h"

#include <stddef.h>

/* --- who it is --- */

enum { RECORD_VERSION = 1 };

/* What is in the file `process`; of this machine only. */
struct record {
    uint32_t version, generation;
    uint64_t digest;
    char boot_id[BOOT_ID_SIZE];
    struct proc_identity identity;       /* written by the process itself; pid 0: it never began */
    uint8_t marks;                       /* enum process_mark */
    char socket[PROCESS_SOCKET_MAX + 1]; /* "": it has not said it */
};

/* Opens the record of DIRECTORY and locks it; ERR_AGAIN: a process is being made. */
int record_open(const char *directory, int *ret_fd, struct err *err);

/* All zero if there is none that is sound. */
void record_read(int fd, struct record *ret_record);
int record_write(int fd, const struct record *record, struct err *err);

/* --- what it says first --- */

/* Reads the line TEXT, without its end: where it answers.  ERR_INVALID, not recoverable, says what
 * is wrong with it. */
int handshake_read(const char *text, char ret_socket[PROCESS_SOCKET_MAX + 1], struct err *err);

/* --- what it says later --- */

struct log_tail {
    const char *name; /* of the plugin */
    int fd;           /* -1: not followed */
    uint64_t offset;
    struct io_change change;
    char last[256]; /* line */
};

/* Follows PATH from its end on, or from its BEGIN, and logs what comes. */
void log_tail_start(struct loop *loop, struct log_tail *tail, const char *path, bool begin);
void log_tail_read(struct log_tail *tail); /* what has come by now */
void log_tail_stop(struct log_tail *tail);

/* --- making it --- */

struct making {
    const char *directory, *program;
    const char *const *arguments;
    enum cgroup_mode cgroup_mode;
    const char *cgroup;
    bool keeps_sockets; /* those that somebody listens on */
};

/* Removes the sockets in DIRECTORY, but those that KEPT and somebody listens on. */
int sockets_clear(const char *directory, bool kept, struct err *err);

/* With RECORD_FD locked, in which the record is by now.  RET_PIDFD is the caller's. */
int make_process(const struct making *making, int record_fd, struct proc_identity *ret_identity,
                 int *ret_pidfd, struct err *err);

#endif
