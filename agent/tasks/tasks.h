/*
 * The Task API: a socket in the secrets of each task that runs, on a node that has servers, by
 * which it asks them, known by the token that it shows.
 *
 * Nothing of it is stored: who has a socket follows from the machines (policy_has_task_api).  After
 * a restart of the daemon there are new ones in the same place, and who was connected asks again.
 * Each request is authenticated by the servers before anything is looked for; who may do what is
 * theirs to decide, too.  Follows nomad v2.0.6 client/allocrunner/taskrunner/api_hook.go and
 * command/agent/http.go.
 */
#ifndef CAIRN_AGENT_TASKS_TASKS_H
#define CAIRN_AGENT_TASKS_TASKS_H

#include "agent/api/api.h"
#include "journal/journal.h"

struct task_api;

enum {
    TASK_DOORS_MAX = 4096, /* sockets, each a descriptor */
};

/* PARTS, which have servers, and API are borrowed. */
int task_api_new(struct parts *parts, struct api *api, struct task_api **ret_tasks,
                 struct err *err);

/* After those who call the servers: nobody is answered any more. */
void task_api_free(struct task_api *tasks);

/* EVENT was committed, and its effects were not performed yet. */
void task_api_note(struct task_api *tasks, const struct journal_event *event);

#endif
