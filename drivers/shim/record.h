/*
 * What daemon and shim tell each other by file: the launch record, and the task's file.
 *
 * The launch record is in memory only (a memfd that the shim inherits), for the environment may
 * hold secrets; it is gone when the payload runs.  The task's file is the one that is locked: its
 * lock says that there is somebody who can answer for the key, its content what became of it.  It
 * has one block of fixed size, written whole before a payload can exist, so that the later records
 * need no space on the disk and no other file; a file system is slowest at making files.
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
#include "fsm/limits.h"
#include "io/proc.h"

#include <stdint.h>

/* The socket's name in the directory of all shims, from the digest of the key: the address of a
 * socket has room for little more. */
#define TASK_SOCKET_FORMAT "%016llx.sock"

enum {
    TASK_SOCKET_SIZE = 24,
    TASK_FILE_SIZE = 4096,   /* 0: no payload can have existed yet */
    TASK_STARTED_AT = 512,   /* struct started_record */
    TASK_EXIT_AT = 2048,     /* struct exit_record */
    TASK_RECORD_SIZE = 1536, /* what a record of any version may take */

    LAUNCH_SIZE_MAX = 4 * 1024 * 1024, /* more than an exec takes */
    LAUNCH_GROUPS_MAX = 256,           /* supplementary groups of a user */
};

enum record_magic {
    RECORD_MAGIC_LAUNCH = 0x4c524e43,    /* "CNRL" */
    RECORD_MAGIC_STARTED = 0x53524e43,   /* "CNRS" */
    RECORD_MAGIC_EXIT = 0x45524e43,      /* "CNRE" */
    RECORD_MAGIC_CONTAINER = 0x44524e43, /* "CNRD": of a container of an Engine (docker/docker.h) */
    RECORD_MAGIC_EXTERNAL = 0x50524e43,  /* "CNRP": of a task of a plugin (external/external.h) */
    RECORD_MAGIC_IMAGE = 0x49524e43,     /* "CNRI": of an image of an Engine (docker/images.c) */
    RECORD_MAGIC_MOCK = 0x4d524e43,      /* "CNRM": of a task that has no shim (mock/mock.c) */
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
    uint16_t protocol_oldest, protocol_newest; /* that it can be spoken with; 0: it did not say */
    uint32_t zero;
};

enum exit_kind {
    EXIT_ENDED = 1,       /* the payload ran and ended */
    EXIT_NOT_STARTED = 2, /* it could not be started; nothing runs */
    EXIT_UNKNOWN = 3,     /* it ran and ended, the message says why nobody knows how */
};

/* Written last, when every other descriptor is closed (I-8). */
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
    uint32_t with_host; /* 1: everybody had been told to end before it did, the shim too */
};

/* Fills the head of a record of LENGTH bytes. */
void record_seal(void *record, uint32_t magic, size_t length);

/* True if BYTES begin with a whole and undamaged record of this kind. */
bool record_is_sound(const void *bytes, size_t length, uint32_t magic);

/* Marks the task's file as begun and takes the space for all that is to come. */
int task_file_begin(int fd, struct err *err);

/* Writes a sealed record to its place.  DURABLE: it is on the disk when this returns; otherwise it
 * survives the death of any process, not of the machine. */
int task_file_put(int fd, off_t at, const void *record, bool durable, struct err *err);

/* Reads the record at AT into TO of SIZE bytes, zeros behind it; ERR_GONE if there is no whole and
 * undamaged one. */
int task_file_get(int fd, off_t at, uint32_t magic, void *to, size_t size, struct err *err);

/* True, and the record of its start, if the task's file has that and no record of its end. */
bool task_file_runs(int fd, struct started_record *ret_started);

/* Reads the exit record of the task's file; its text has an end, whoever wrote it. */
int exit_record_get(int fd, struct exit_record *to, struct err *err);

/* The same from BYTES that begin with one; false if it is not whole and undamaged. */
bool exit_record_take(const void *bytes, size_t length, struct exit_record *to);

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
    LAUNCH_TASK_DIR = 9,       /* text: working directory, below the alloc's */
    LAUNCH_LOG_DIR = 10,       /* text: below the alloc's */
    LAUNCH_LOG_NAME = 11,      /* text: <name>.stdout.<n>; missing: output goes nowhere */
    LAUNCH_LOG_FILES_MAX = 12, /* number */
    LAUNCH_LOG_BYTES_MAX = 13, /* number: of one file */
    LAUNCH_USER_ID = 14,       /* number; missing: the daemon's user */
    LAUNCH_GROUP_ID = 15,      /* number */
    LAUNCH_USER_GROUP = 16,    /* number, many: supplementary groups */
    LAUNCH_USER_NAME = 17,     /* text, for messages */
    LAUNCH_ALLOC_DIR = 18,     /* text: payloads change what is below it, and not its own name */
    LAUNCH_ISOLATION = 19,     /* number: enum launch_isolation, added up */
    LAUNCH_BIND = 20,          /* struct launch_bind, many, none below a later one */
    LAUNCH_BOUNDING = 21,      /* number: capabilities that it can ever have, a bit for each */
    LAUNCH_AMBIENT = 22,       /* number: those of them that it has, whatever its user */
    LAUNCH_WORK_DIR = 23,      /* text: where it starts, as it sees it; missing: its directory */
    LAUNCH_MEMORY_MAX = 24,    /* number: bytes */
    LAUNCH_MEMORY_LOW = 25,    /* number: bytes */
    LAUNCH_CPU_SHARES = 26,    /* number */
    LAUNCH_OOM_SCORE_ADJ = 27, /* number */
    LAUNCH_CPUS = 28,          /* text: "0-2,7", the processors that it may use */
    LAUNCH_NETWORK = 29,       /* text: path of the network namespace; missing: the daemon's */
    LAUNCH_HOSTNAME = 30,      /* text: its own; missing: the daemon's */
    LAUNCH_SHARE = 31,         /* text: a cgroup whose processors it has, if it can be entered */
    LAUNCH_TERMINAL = 32,      /* number: not 0: of a session (session.h) with one */
    LAUNCH_CPU_WEIGHT = 33,    /* number: the shares as v2 has them */
    LAUNCH_OPTIONAL = 0x8000,
};

enum launch_isolation {
    LAUNCH_OWN_ROOT = 1, /* its directory is its root, and nothing else of the host's files is */
    LAUNCH_OWN_PIDS = 2,
    LAUNCH_OWN_IPC = 4,
};

/* Something of the host's that appears in the payload's root.  Two texts follow the flags, each
 * with its NUL: the path on the host, and the one inside. */
enum launch_bind_flags {
    LAUNCH_BIND_READ_ONLY = 1,
    LAUNCH_BIND_IF_THERE = 2, /* what is not on the host is not inside, and that is fine */
    LAUNCH_BIND_IN_ALLOC = 4, /* the first path lies in the alloc's directory, which payloads
                                 change: beneath it, without links */
    LAUNCH_BIND_MOUNT = 8,    /* asked for by the task: made when all else is there, and with what
                                 is mounted in it later as one of the next two says, or private */
    LAUNCH_BIND_HOST_TO_TASK = 16,
    LAUNCH_BIND_BIDIRECTIONAL = 32,
    LAUNCH_BIND_FOLLOW = 64,    /* where it is to be may be a link, which is followed in the root */
    LAUNCH_BIND_IS_MOUNT = 128, /* a mount of the host's: not the place for it when that is gone */
    LAUNCH_BIND_DEVICES = 256,  /* devices in it are to be used */
};

struct launch_bind {
    uint32_t flags;
    const char *host, *inside;
};

enum { LAUNCH_BINDS_MAX = 512, LAUNCH_MOUNTS_MAX = SPEC_MOUNTS_MAX /* of those */ };

/* Reads a bind from the bytes of its field; false if it is none. */
bool launch_bind_take(const char *bytes, uint32_t length, struct launch_bind *ret_bind);

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
