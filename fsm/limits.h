/*
 * How much there may be of everything, in one place.
 *
 * Records have fixed sizes (fields.h), so names, and the members of an alloc, have bounds:
 *
 *     SPEC_TASKS_MAX + ALLOC_CLAIMS_MAX = ALLOC_MEMBERS_MAX       tasks and claims of one alloc
 *
 * Then what one node may know.  An alloc counts in every state, until its record is gone; a member
 * is a task or a claim of a volume, each a machine of its own.  Members have a bound of their own,
 * because 16,384 allocs of 64 tasks would be a million payloads:
 *
 *     NODE_ALLOCS_MAX + NODE_MEMBERS_MAX = NODE_MACHINES_MAX      (plugins are few, and configured)
 *
 * A job is bounded so that one registration is a quarter of a node at most, which commits within
 * about a second; a group's count and the tasks of a group are bounded by themselves, too, but
 * their product is not what holds: the sums over all groups are (spec/job/check.c).  What is on the
 * node, what the same turn has accepted already, and what is asked for must fit together
 * (server/alone/given/limits.c).
 *
 * From these follows the rest:
 *
 *   one turn     callers may have posted two events for each machine when it begins (all is stopped
 *                and removed, or all is replaced); who wants more is told to come again.
 *                Beside these stand completions, at most one for each lane, timers, RESTORE, and
 *                messages.  An alloc gives each member each of its few orders once and hears of
 *                each change of theirs, so the events of a turn are some for each machine: more
 *                than TURN_EVENTS_A_MACHINE means that machines feed each other, our own mistake.
 *   one commit   the specifications of a turn's new allocs, which are larger than all records.
 *   calls        a machine has one call under way on a lane, so there are at most so many of hooks
 *                and of drivers as there are machines.  Calls wait in lists of the callers' own
 *                structs, which cannot overflow: the pool (io/loop/work.h) has no bound of its own.
 *   descriptors  one for each payload (drivers/run.c), one for each connection: agent/limits.c.
 *   callers      one for each connection, times the tasks of an alloc that it may signal at once.
 *
 * What comes from outside is refused at these bounds, or waits.  A journal may hold more, written
 * by an older version or imported: nothing that reads it relies on them, what counts for each
 * machine counts for each that there is, and no more is accepted.
 * What must fit together is asserted in limits.c here and, where other rooms come in, in
 * agent/limits.c.
 */
#ifndef CAIRN_FSM_LIMITS_H
#define CAIRN_FSM_LIMITS_H

/* One alloc. */
enum {
    SPEC_TASKS_MAX = 64,   /* tasks in one group */
    ALLOC_CLAIMS_MAX = 16, /* volumes of one alloc */
    SPEC_NAME_SIZE = 96,   /* job, group and task names with their NUL */
    SPEC_NAMESPACE_SIZE = 96,
    SPEC_DRIVER_SIZE = 64,
    SPEC_PORTS_MAX = 128,             /* of a group and its tasks together */
    SPEC_PORT_LABEL_SIZE = 80,        /* with its NUL; the same for the name of a host network */
    ADDRESS_SIZE = 46,                /* an IP address as text, with its NUL */
    SPEC_VOLUMES_MAX = 32,            /* of a group */
    SPEC_MOUNTS_MAX = 64,             /* of a task */
    SPEC_TEMPLATES_MAX = 512,         /* of a task */
    SPEC_SCRIPT_ARGUMENTS_MAX = 1024, /* of such a script, the command itself included */
    SPEC_SCRIPTS_MAX = 64,            /* of its templates that run one when they change */
    SPEC_ARTIFACTS_MAX = 64,          /* of a task */
    SPEC_ACTIONS_MAX = 64,            /* likewise */
    SPEC_IDENTITIES_MAX = 16,         /* likewise: those that have a name */
    SPEC_IDENTITY_NAME_SIZE = 129,
    SPEC_TOKEN_SIZE = 16 << 10, /* of an identity, with its NUL */
    SPEC_ACTION_NAME_SIZE = 129,
    SPEC_SERVICE_IDENTITY_SIZE = 640, /* of a name of it: that of its task, and two of its texts */
    SPEC_SERVICES_MAX = 64,           /* of a group and its tasks together */
    SPEC_CHECKS_MAX = 64,             /* of all of them: bits of a word */
    SPEC_SERVICE_NAME_SIZE = 64,      /* with its NUL: a label of DNS */
    SPEC_TAGS_MAX = 64,               /* of a service, each of its two kinds */
    SPEC_SERVICE_TEXT_SIZE = 256,     /* of its name, address and port, before they are whole */
    SPEC_CHECK_NAME_SIZE = 288,       /* likewise, with room for the name of its service */
    SPEC_CHECK_HEADERS_MAX = 64,      /* of a check, each value counts */
    SPEC_CHECK_BODY_SIZE = 16 << 10,  /* with its NUL */
    SPEC_SERVICE_META_MAX = 60,       /* entries of a service of Consul, whose agent takes 64 */
    SPEC_CHECK_COMMAND_SIZE = 4096,   /* of a check that is a script */
    SPEC_CHECK_NOTES_SIZE = 4096,
    SPEC_UPSTREAMS_MAX = 64,           /* of the sidecar of a service */
    SPEC_EXPOSED_MAX = 64,             /* paths that it lets through */
    SPEC_PROXY_CONFIG_SIZE = 8 << 10,  /* of it or of one upstream, with its NUL */
    SPEC_PAYLOAD_BYTES_MAX = 16 << 10, /* of a dispatch */
    SPEC_SOURCE_URL_SIZE = 4096,       /* of an artifact */
    SPEC_SOURCE_SIZE = 112,            /* the name or id of a volume, with an alloc's index */
};

/* The longest time that anything may ask for, 100 years: as nanoseconds it still fits 63 bits, and
 * so does the sum of two. */
#define DURATION_MS_MAX (100ull * 365 * 24 * 3600 * 1000)

/* The largest number that anything is counted to, far more than any node lives to see: JSON carries
 * it, and sums of a few of them are no trouble.  What a life counts on from, its time and the
 * numbers of its log, may have come half the way: it never arrives. */
#define NUMBER_MAX (1ull << 53)
#define NUMBER_BEGIN_MAX (NUMBER_MAX / 2)

/* One node. */
enum {
    NODE_ALLOCS_MAX = 16384,
    NODE_MEMBERS_MAX = 32768,
    NODE_MACHINES_MAX = NODE_ALLOCS_MAX + NODE_MEMBERS_MAX,
    NODE_JOBS_MAX = 16384,
    NODE_JOBS_BYTES_MAX = 256 << 20,    /* of their JSON texts together */
    NODE_SOURCES_BYTES_MAX = 256 << 20, /* of what people wrote of their versions */
    NODE_VOLUMES_MAX = 8192,            /* of storage plugins, that are registered */
    NODE_HOST_VOLUMES_MAX = 1024,       /* that plugins of the host make, or that are registered */
    NODE_META_MAX = 256,                /* keys of its metadata that are set while it runs */
    NODE_META_KEY_SIZE = 256,           /* of one, with its NUL */
    NODE_META_VALUE_MAX = 4096,         /* bytes of what one is set to */
    NODE_META_BYTES_MAX = 64 << 10,     /* of all of them together, as JSON */
    NODE_CORES_MAX = 1024,              /* processors that tasks may have for themselves */
    NODE_DEVICES_MAX = 1024,            /* that a plugin may tell of, and a task ask for */
    NODE_ADDRESSES_MAX = 64,            /* that ports are given out on, in all host networks */
};

/* One job. */
enum {
    JOB_GROUPS_MAX = 100,
    JOB_COUNT_MAX = 2000,                 /* allocs of one group */
    JOB_ALLOCS_MAX = NODE_ALLOCS_MAX / 4, /* of all groups together */
    JOB_TASKS_MAX = NODE_MEMBERS_MAX / 4, /* of all these allocs together */
    JOB_CONSTRAINTS_MAX = 256,            /* its own, its groups' and their tasks' */
    JOB_SOURCE_BYTES_MAX = 1 << 20,       /* of what people wrote of one version */
    JOB_VERSIONS_BYTES_MAX = 1 << 20,     /* of what is kept of its older versions */
};

/* One turn. */
enum {
    TURN_ASKED_A_MACHINE = 2, /* events that wait, when callers want to post more */
    TURN_EVENTS_A_MACHINE = 64,
    TURN_SPECS_BYTES_MAX = 64 << 20, /* specifications of new allocs in one commit */
};

/* Who waits. */
enum {
    CALLERS_MAX = 256 * SPEC_TASKS_MAX, /* for the answer of a machine */
    WATCHERS_MAX = 128,                 /* for a change: blocking queries of the API */
};

/* What becomes of a job's allocs when they have ended; on one node a system job is a service that
 * is never rescheduled, and a sysbatch one runs once for each version. */
enum spec_job_type { JOB_SERVICE, JOB_BATCH, JOB_SYSTEM, JOB_SYSBATCH };

/* When a task runs, relative to the main tasks of its group. */
enum spec_lifecycle { LIFECYCLE_MAIN, LIFECYCLE_PRESTART, LIFECYCLE_POSTSTART, LIFECYCLE_POSTSTOP };

/* What a plugin is for. */
enum plugin_type {
    PLUGIN_DRIVER,
    PLUGIN_DEVICE,
    PLUGIN_CSI_NODE,
    PLUGIN_CSI_CONTROLLER,
    PLUGIN_CSI_MONOLITH, /* both in one process */
    PLUGIN_TYPE_COUNT,
};

#endif
