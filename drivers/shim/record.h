/*
 * What daemon and shim leave for each other on disk: `launch`, `started`, `exit`.
 *
 * Every record starts with the same head; its digest covers all that follows, so that a torn or
 * half-written one is recognised and counts as none.  Fields are only ever appended: a reader takes
 * what it knows of a longer record, and sees zeros for what a shorter one lacks.  Numbers are in
 * the machine's own order, since a record never leaves it.  Linked into the static shim: base and
 * system calls only, no allocation.
 */
#ifndef CAIRN_DRIVERS_SHIM_RECORD_H
#define CAIRN_DRIVERS_SHIM_RECORD_H

#include "base/base.h"
#include "io/proc.h"

#include <stdint.h>

/* The names in a shim's directory. */
#define RECORD_LOCK "lock"
#define RECORD_LAUNCH "launch"
#define RECORD_SOCKET "sock"
#define RECORD_STARTED "started"
#define RECORD_EXIT "exit"
#define RECORD_TEMPORARY ".new" /* put behind a name while the file is being written */

enum {
    RECORD_SIZE_MAX = 4096,            /* started and exit, of any version */
    LAUNCH_SIZE_MAX = 4 * 1024 * 1024, /* more than an exec takes */
    LAUNCH_GROUPS_MAX = 256,           /* supplementary groups of a user */
};

enum record_magic {
    RECORD_MAGIC_LAUNCH = 0x4c524e43,  /* "CNRL" */
    RECORD_MAGIC_STARTED = 0x53524e43, /* "CNRS" */
    RECORD_MAGIC_EXIT = 0x45524e43,    /* "CNRE" */
};

struct record_head {
    uint32_t magic;
    uint32_t version; /* of the writer */
    uint32_t length;  /* of the whole record, head included */
    uint32_t zero;
    uint64_t digest; /* of everything behind the head */
};

/* Written once the payload runs. */
struct started_record {
    struct record_head head;
    int32_t shim_pid, payload_pid;
    uint64_t shim_ticks, payload_ticks;
    int64_t started_unix_ns;
    uint64_t key_digest;
    char boot_id[40];
};

enum exit_kind {
    EXIT_ENDED = 1,       /* the payload ran and ended */
    EXIT_NOT_STARTED = 2, /* it could not be started; nothing runs */
};

/* Written last, when every descriptor is closed (I-8). */
struct exit_record {
    struct record_head head;
    uint32_t kind;
    int32_t code, signal;
    uint32_t oom_killed;
    int64_t finished_unix_ns;
    uint64_t log_bytes_lost;
    int32_t error_code, error_os; /* kind NOT_STARTED: as in struct err */
    uint32_t error_recoverable;
    char message[ERR_TEXT_SIZE];
    uint32_t zero;
};

/* Fills the head of a record of LENGTH bytes. */
void record_seal(void *record, uint32_t magic, size_t length);

/* True if BYTES begin with a whole and undamaged record of this kind. */
bool record_is_sound(const void *bytes, size_t length, uint32_t magic);

/* Replaces NAME in DIRECTORY_FD by a sealed record, through a temporary name.  DURABLE: it is on
 * the disk when this returns; otherwise it survives the death of any process, not of the machine.
 */
int record_write(int directory_fd, const char *name, const void *record, bool durable,
                 struct err *err);

/* Makes room for a record of LENGTH bytes under the temporary name, so that writing it later needs
 * no space on the disk. */
int record_reserve(int directory_fd, const char *name, size_t length, struct err *err);

/* Reads NAME into TO of SIZE bytes, zeros behind it.  ERR_GONE if there is none, ERR_CORRUPT if it
 * is damaged. */
int record_read(int directory_fd, const char *name, uint32_t magic, void *to, size_t size,
                struct err *err);

/* --- launch: a record whose body is a list of fields --- */

/* Tags with LAUNCH_OPTIONAL may be skipped by a shim that does not know them. */
enum launch_tag {
    LAUNCH_KEY = 1,            /* text, for people */
    LAUNCH_KEY_DIGEST = 2,     /* number: what proves a shim to its daemon */
    LAUNCH_CGROUP_MODE = 3,    /* number: enum cgroup_mode */
    LAUNCH_CGROUP = 4,         /* text: the payload's; missing: a process group only */
    LAUNCH_SHIM_CGROUP = 5,    /* text: where the shim itself belongs */
    LAUNCH_COMMAND = 6,        /* text: still to be looked up */
    LAUNCH_ARGUMENT = 7,       /* text, many: those behind the command */
    LAUNCH_ENVIRONMENT = 8,    /* text, many: "KEY=value"; may be secret */
    LAUNCH_TASK_DIR = 9,       /* text: working directory */
    LAUNCH_LOG_DIR = 10,       /* text */
    LAUNCH_LOG_NAME = 11,      /* text: <name>.stdout.<n>; missing: output goes nowhere */
    LAUNCH_LOG_FILES_MAX = 12, /* number */
    LAUNCH_LOG_BYTES_MAX = 13, /* number: of one file */
    LAUNCH_USER_ID = 14,       /* number; missing: the daemon's user */
    LAUNCH_GROUP_ID = 15,      /* number */
    LAUNCH_USER_GROUP = 16,    /* number, many: supplementary groups */
    LAUNCH_USER_NAME = 17,     /* text, for messages */
    LAUNCH_OPTIONAL = 0x8000,
};

struct launch_field {
    uint16_t tag;
    uint16_t zero;
    uint32_t length; /* of what follows: 8 for numbers, text with its NUL */
};

/* Steps through the body of a launch record.  *AT is the offset of the next field, the body's start
 * first.  1 and the field's bytes (borrowed), 0 at the end, ERR_CORRUPT. */
int launch_next(const void *record, size_t *at, uint16_t *ret_tag, const char **ret_bytes,
                uint32_t *ret_length);

#endif
