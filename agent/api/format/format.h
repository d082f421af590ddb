/*
 * Records as Nomad's JSON.  Pure: everything that is said comes in with the call.
 *
 * Field names, their order of magnitude and their emptiness follow nomad v1.1.2, package api.  What
 * this node does not have (preemption) is empty in the way Nomad shows it empty.
 */
#ifndef CAIRN_AGENT_API_FORMAT_FORMAT_H
#define CAIRN_AGENT_API_FORMAT_FORMAT_H

#include "agent/api/format/values.h"
#include "agent/api/format/write.h"
#include "agent/node/node.h"
#include "drivers/drivers.h"
#include "io/host.h"
#include "server/alone/alone.h"

#include <jansson.h>

/* --- tasks --- */

void api_format_event(struct writer *to, const struct task_event *event);
void api_format_task_state(struct writer *to, const char *name, const struct task *task);

/* --- jobs as they are --- */

/* A job and what a server adds to it. */
struct api_job_view {
    const struct alone_job *job;
    const char *status;
    int64_t launch_unix_ns; /* the next one by time, 0: there is none */
};

/* NAME as put_object has it. */
void api_put_job(struct writer *to, const char *name, const struct api_job_view *view);

/* The same as a tree. */
json_t *api_format_job(const struct api_job_view *view);

/* --- allocs --- */

struct api_alloc_view {
    const char *id;
    const struct alloc *alloc;
    const struct task *const *tasks; /* of each member; NULL for volumes and what is lost */
    const struct alloc_spec *spec;   /* NULL: lost, or not needed */
    const struct api_job_view *job;  /* as it was when the alloc was placed; NULL: from spec */
    const char *job_type, *eval_id;
    const char *previous_id, *next_id; /* whose place it took, and who took its; or "" */
    const char *follow_up_id;          /* the evaluation that makes another, or "" */
    const char *waits;                 /* for what, before its tasks can start; "": for nothing */
    bool canary;                       /* it has yet to be promoted */
    const char *node_id, *node_name, *datacenter, *pool;
    uint64_t create_index, update_index; /* of its newest version, 0: it has one only */
    bool task_states, resources;         /* of a list's entry */
};

/* An entry of a list. */
void api_format_alloc_stub(struct writer *to, const struct api_alloc_view *view);

/* What servers are told of it. */
void api_format_alloc_status(struct writer *to, const struct api_alloc_view *view);

/* All of it. */
void api_format_alloc(struct writer *to, const struct api_alloc_view *view);

/* --- jobs and evaluations --- */

struct api_job_counts {
    const char *group; /* of the job's JSON */
    uint32_t starting, running, complete, failed, queued;
};

/* What was dispatched of it. */
struct api_job_children {
    uint32_t pending, running, dead;
};

/* A job of which only one alloc's spec is left. */
json_t *api_format_spec_job(const struct alloc_spec *spec);

/* Entry of a list, with the job's META or not.  COUNTS has one entry for each of the job's GROUPS,
 * in their order. */
void api_format_job_stub(struct writer *to, const struct alone_job *job, const char *status,
                         const struct api_job_counts *counts, size_t groups,
                         struct api_job_children children, bool meta);

/* NAME as put_object has it. */
void api_format_summary(struct writer *to, const char *name, const struct alone_job *job,
                        const struct api_job_counts *counts, size_t groups,
                        struct api_job_children children);

json_t *api_format_evaluation(const struct alone_evaluation *evaluation, int64_t priority,
                              const struct constraint_node *node);

/* What of each group could not be placed on NODE (`failed` of an evaluation): FailedTGAllocs. */
json_t *api_format_failed(const json_t *failed, const struct constraint_node *node);

/* --- the node --- */

struct api_node_view {
    const struct node *node;
    const struct config *config;
    const char *http_address;
    const char *description; /* why it is degraded, or "" */
    const struct driver_info *drivers;
    size_t drivers_count;
    const json_t *events;         /* as agent/node/health.h has them; NULL: none */
    const json_t *standing;       /* as alone_standing has it; NULL: nothing was said */
    struct storage *host_volumes; /* NULL: none */
    json_t *node_plugins, *controller_plugins; /* by their ids; borrowed, NULL: none */
    json_t *devices;                           /* that it has, borrowed */
    json_t *programs; /* plugins that are programs of their own, by their names; borrowed */
    int64_t since_unix_ns;
    uint64_t index;
};

/* "eligible" or "ineligible", of what alone_standing has (NULL: nothing was said). */
const char *api_eligibility(const json_t *standing);

/* An entry of a list, and what it has besides; WHOLE is all of the node. */
enum api_node_part { API_NODE_RESOURCES = 1, API_NODE_OS = 2, API_NODE_WHOLE = 4 };
json_t *api_format_node_stub(const struct api_node_view *view, unsigned parts);

/* An event of agent/node/health.h as one of Nomad's: a new reference. */
json_t *api_format_node_event(const json_t *event);
json_t *api_format_node(const struct api_node_view *view);

json_t *api_format_host_stats(const struct host_stats *stats, const struct host_facts *facts,
                              const char *device, json_t *device_stats, int64_t unix_ns);

/* Usage of one task; sums are made by adding what follows to it. */
struct api_usage {
    struct cgroup_stats stats;
    double cpu_percent;
    int64_t unix_ns;
};
void api_usage_add(struct api_usage *sum, const struct api_usage *part);
json_t *api_format_usage(const struct api_usage *usage, uint32_t cpu_mhz);

/* --- files --- */

/* MODE as Go's FileMode prints it: "-rw-r--r--", "drwxr-xr-x", "dtrwxrwxrwx". */
enum { API_MODE_SIZE = 16 };
void api_mode(char to[API_MODE_SIZE], uint32_t mode);

#endif
