/*
 * The 40 invariants: how the simulator looks at each, or what does instead.
 *
 * A report names an invariant by its number; `cairn sim -list` prints this table.
 */
#include "sim/sim.h"

/* clang-format off */
static const struct sim_invariant invariants[] = {
    {"Every live process of ours belongs to one unfinished task",
     "after each turn once the sweep is over, plugins too, and when all is gone", NULL},
    {"At most one payload of a task lives, over all incarnations",
     "when a payload begins to run", NULL},
    {"A durable intent comes before every child",
     "when a start is performed: the intent is in the journal", NULL},
    {"No process is known by its pid alone",
     "after each turn: the identity of what is shown running; foreign processes at old pids", NULL},
    {"After a reboot no pid, mount or socket of before is believed",
     "after each turn: the boot of what is shown running; mounts are gone with a reboot", NULL},
    {"The daemon's death is not seen by payloads, shims and loggers",
     NULL, "real processes: test/live/restore/test_survival.py, test/live/crash/crash.py"},
    {"The death of a shim leads to an empty cgroup before any decision",
     "when an end is told, and when a task decides whether it starts again", NULL},
    {"Each end of a payload is reported once, with its true code",
     "before each commit and after each turn: what is reported against what happened", NULL},
    {"Waiting and multi-step states go on after a crash",
     "each stored machine is restored once; in the healed world everything wanted is reached, and "
     "no group goes on that has to end; predecessors are waited for", NULL},
    {"Terminal states absorb",
     "before each commit and with each effect: no hook, no start after the end; what has ended by "
     "itself is not begun again unasked", NULL},
    {"The decision to start sees the newest desired state",
     "before each commit: no start in the batch that was told to end; no effect that was "
     "superseded; tasks run in the order of their lifecycle", NULL},
    {"Nothing is started before this incarnation knows what is desired",
     "when a start is performed with a server", NULL},
    {"Desired state never goes back",
     "before each commit: indexes of allocs; stale and partial answers", NULL},
    {"A command is durable when it is acknowledged, or refused",
     "when a request is answered, when the daemon dies, and in the healed world; restarts that "
     "were acknowledged are done", NULL},
    {"One event, one transaction; no change, no commit",
     "each commit is stepped again from the journal, memory is compared with it at each death",
     NULL},
    {"Intent, effect, outcome; each durable before the next",
     "with each effect: the record it follows from is the stored one", NULL},
    {"One bad record costs one alloc",
     "after each restore: all records that can be read are there, the damaged alloc ends clean",
     NULL},
    {"A commit that fails performs nothing",
     "after each failed commit", NULL},
    {"Deletion is final",
     "before each commit: no record of what was removed; nothing is left at the end", NULL},
    {"A restored object equals a fresh one",
     "one replay of the journal from its base, byte for byte, by the code that restores; what the "
     "log loses is in its bases, and it stays bounded", NULL},
    {"One daemon for each data directory",
     NULL, "real processes: test/live/restore/test_journal_lost.py, test/journal/test_journal.c"},
    {"Results of hooks that a later start needs are durable or made again",
     "when a start is performed: all hooks ran, their results are there and the same as at first; "
     "a disk that goes on with the next alloc is neither left behind nor deleted before",
     NULL},
    {"Restore does not touch a payload that runs",
     "with each effect that ends a payload: somebody wanted it", NULL},
    {"Every teardown runs until it has succeeded",
     "when a task or an alloc has ended: all of its last hooks ran, and its poststop tasks; when "
     "all is to be gone: directories, mounts, records", NULL},
    {"An alloc that cannot be restored is stopped, failed and clean",
     "in the healed world: damaged allocs are terminal or gone, nothing of them lives", NULL},
    {"A claim is released after the last process and the unmount, once",
     "with each effect of a volume, and when all is gone", NULL},
    {"Nothing is unstaged that is used or may be",
     "with each unstage: the journal's users, and the plugin's own view", NULL},
    {"After an uncertain call the state is uncertain",
     "when all is gone: nothing is left staged by a call that timed out and took effect", NULL},
    {"At most one node call for each volume",
     "with each effect of a volume", NULL},
    {"No directory is deleted under a mount or a live payload",
     "when the directory is deleted", NULL},
    {"A payload starts only with its mounts verified",
     "when a payload begins to run", NULL},
    {"Plugins restore before their users, and are replaced when they are gone",
     "before each commit: the order of restore; in the healed world: plugins are ready", NULL},
    {"Namespaces, rules and leases belong to live allocs",
     "when a payload begins to run: its alloc's network is there; when that is removed: nothing of "
     "it lives; when an alloc has ended, and when all is gone: none is left", NULL},
    {"Catalogue entries equal the services of live allocs",
     NULL, "there are no services yet; job files that ask for one are refused"},
    {"No call blocks or lacks a deadline; no machine waits for another",
     "calls that hang are ended by their limit, those that fail are made again after a pause; in "
     "the healed world nothing is under way",
     NULL},
    {"Counters and deadlines go on over restarts, on a clock that counts sleep",
     "node time, against the time that has passed; attempts and delays of each task, against a "
     "count of the simulator's own; deadlines are fixed when they begin", NULL},
    {"After many restarts there is as much as after one",
     "when all is gone: no shim's directory is left", NULL},
    {"Registration and heartbeat depend on nothing else",
     NULL, "there is no connection to servers yet"},
    {"Each status change is sent until it is acknowledged, none goes back",
     "when statuses are sent, and before each commit; the outcome of an alloc is that of its "
     "tasks; in the healed world: all are acknowledged, and the server knows what is", NULL},
    {"An orderly stop is bounded, and equals a crash for the next start",
     "TERM is a step of worlds and is followed by the same restore; the bound is tested with a "
     "real daemon", NULL},
};
/* clang-format on */

const struct sim_invariant *sim_invariant(unsigned number)
{
    check(number >= 1);
    check(number <= COUNT_OF(invariants));
    return &invariants[number - 1];
}
