/*
 * The process of one plugin: launched, found again, ended.  Inside the room only.
 *
 * It outlives the daemon, and the next one takes it over.  Nothing of the daemon is connected with
 * it, so that it never writes to somebody who is gone:
 *
 *   <directory>/             0700
 *     process                who it is: record.c; locked while it is being made
 *     out                    its standard output, whose first line says where it answers
 *     log                    its standard error
 *     sockets/               where it makes its own, and whatever it starts
 *
 * Work is named by a generation.  Launching under one that is launched already finds that; what is
 * found is the process that the record names, of this boot and this start time, with the program
 * and the configuration that it was launched with, and no other is ever signalled.
 *
 * What a plugin for a driver starts are tasks, which do not end with it: they and their sockets are
 * left as they are, whatever becomes of the process, and so is what was noted of it.
 *
 * One thing is done at a time; what is begun ends with DONE, at once or later, exactly once.
 */
#ifndef CAIRN_PLUGINS_PROCESS_PROCESS_H
#define CAIRN_PLUGINS_PROCESS_PROCESS_H

#include "io/host.h"
#include "io/loop.h"
#include "io/proc.h"

struct process;

enum { PROCESS_SOCKET_MAX = 107 };

/* How it ended; CODE is 128 + signal where a signal ended it. */
struct process_end {
    bool known; /* it was our child */
    int code, signal;
    const char *said; /* the last line on its standard error, "": none; borrowed */
};

struct process_config {
    struct loop *loop;
    const char *name;             /* of the plugin, for the log */
    const char *directory;        /* absolute; its parent is there */
    const char *program;          /* absolute */
    const char *const *arguments; /* NULL-terminated, without the program's name */
    uint64_t digest;              /* of all that it is launched with */
    enum cgroup_mode cgroup_mode;
    const char *cgroup;
    /* It has ended, and nobody had asked for it. */
    void (*on_exit)(void *ctx, const struct process_end *end);
    void *ctx;
};

/* ERR is NULL if it went well. */
typedef void process_done(void *ctx, const struct err *err);

/* Copies all of CONFIG.  NULL with ERR_LIMIT if the directory is too long for sockets in it. */
struct process *process_new(const struct process_config *config, struct err *err);

/* The process goes on; nobody is told any more. */
void process_free(struct process *process);

/* Runs when DONE comes, and listens.  Not recoverable: what was launched is no plugin. */
void process_launch(struct process *process, uint32_t generation, process_done *done, void *ctx);

/* The same of one that was launched before; ERR_GONE: it does not run, or is another. */
void process_recover(struct process *process, uint32_t generation, process_done *done, void *ctx);

/* Asks it to end, and ends it if it does not; with all that it has started, but for tasks. */
void process_end(struct process *process, process_done *done, void *ctx);

/* Of one that runs: where it answers; "": nowhere. */
const char *process_socket(const struct process *process);
const struct proc_identity *process_identity(const struct process *process);

/* What is kept of it, for as long as it is known. */
enum process_mark {
    PROCESS_IS_CONFIGURED = 1, /* it has its configuration, which it is given once in its life */
    PROCESS_LEAVES_TASKS = 2,  /* what it starts goes on when it ends, and is the next one's */
};
bool process_is(const struct process *process, enum process_mark mark);
void process_note(struct process *process, enum process_mark mark);

#endif
