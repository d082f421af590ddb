/*
 * Inside spec only: the blocks of a job, of its groups and of its tasks, each in a file that has
 * its name: what is filled in where nothing is given, before it is checked; what is wrong with it;
 * and what others have to know of such a block.
 */
#ifndef CAIRN_SPEC_BLOCKS_H
#define CAIRN_SPEC_BLOCKS_H

#include "spec/schema/work.h"

/* The network blocks of a group or of a task's resources: what is not given, and what is wrong. */
void jobspec_default_networks(const struct jobspec_work *work, json_t *object);
void jobspec_check_networks(struct jobspec_work *work, const json_t *group);

/* The volumes of a group and the mounts of its tasks, in the same way. */
void jobspec_default_volumes(json_t *group);
void jobspec_default_mounts(json_t *task);
void jobspec_check_volumes(struct jobspec_work *work, const json_t *job, const json_t *group);
void jobspec_check_mounts(struct jobspec_work *work, const json_t *group, const json_t *task);

/* --- update blocks (rollout.c) --- */

void jobspec_check_update(struct jobspec_work *work, const json_t *update);

/* How long tasks of GROUP, a service's, may take to end. */
void jobspec_check_kill_timeouts(struct jobspec_work *work, const json_t *group);

/* The count of a group, and its scaling block, in the same way. */
void jobspec_default_scaling(json_t *group);
void jobspec_check_scaling(struct jobspec_work *work, const json_t *group);

/* The services of JOB's GROUP and of its tasks, in the same way. */
void jobspec_default_services(const json_t *job, json_t *group);
void jobspec_check_services(struct jobspec_work *work, const json_t *group);
void jobspec_check_task_services(struct jobspec_work *work, const json_t *group,
                                 const json_t *task);
bool spec_address_mode(const char *text, enum spec_address_mode *ret_mode);
bool spec_check_type(const char *text, enum spec_check_type *ret_type);

/* How services of GROUP, which have their names, take part in the mesh of Consul (connect.c): their
 * sidecars, with ports, before those get their defaults; and what is wrong. */
void jobspec_default_connect(const struct jobspec_work *work, json_t *group);
void jobspec_check_connect(struct jobspec_work *work, const json_t *group);

/* The csi_plugin blocks of tasks, in the same way. */
void jobspec_default_csi_plugin(json_t *task);
void jobspec_check_csi_plugins(struct jobspec_work *work, const json_t *group);

/* The action blocks of tasks (action.c). */
void jobspec_check_actions(struct jobspec_work *work, const json_t *task);

/* The artifact blocks of tasks, in the same way. */
void jobspec_default_artifacts(json_t *task);
void jobspec_check_artifacts(struct jobspec_work *work, const json_t *task);
bool spec_artifact_mode(const char *text, enum spec_artifact_mode *ret_mode);

/* The template blocks of tasks, in the same way. */
void jobspec_default_templates(json_t *task);
void jobspec_check_templates(struct jobspec_work *work, const json_t *task);

/* Adds to NOTES what is wrong with the texts of JOB's templates. */
void jobspec_read_templates(const json_t *job, json_t *notes);
bool spec_mode(const char *text, uint32_t *ret_mode);             /* "0644", at most 0777 */
bool spec_change(const char *text, enum spec_change *ret_change); /* "": restart */

/* The parameterized block of a job, in the same way; and the dispatch_payload block of a task. */
void jobspec_default_dispatch(json_t *job);
void jobspec_check_dispatch(struct jobspec_work *work, const json_t *job);
void jobspec_check_payload_file(struct jobspec_work *work, const json_t *task);
const char *spec_payload_fault(const char *file); /* NULL: it is one */

/* Why FILE is no path of a file beneath a directory; ESCAPES: if it leads out of it. */
const char *spec_file_fault(const char *file, const char *escapes);

/* The periodic block of a job, in the same way. */
void jobspec_default_periodic(json_t *job);
void jobspec_check_periodic(struct jobspec_work *work, const json_t *job);

/* --- what an alloc says beside its job --- */

/* Which ports ALLOC was given, and which cores. */
void jobspec_add_ports(json_t *alloc, const struct spec_ports *ports);

void jobspec_add_cores(json_t *alloc, const struct spec_cores *cores);

/* Whose the volumes of storage plugins are. */
void jobspec_add_plugins(json_t *alloc, const struct spec_pairs *plugins);

/* --- devices (devices.c) --- */

/* Complains of what a task says of devices. */
void jobspec_check_devices(struct jobspec_work *work, const json_t *resources);

/* What a task was given, LIST of its AllocatedResources, as a text of its own (free); "" if there
 * is none, NULL if it is damaged. */
char *jobspec_devices_text(const json_t *list);

/* What tasks of ALLOC were given: by task, as in a placement; NULL: none. */
void jobspec_add_devices(json_t *alloc, const json_t *devices);

/* As jobspec_add_devices, of all tasks of GIVEN that have any. */
void jobspec_add_given_devices(json_t *alloc, const json_t *given);

#endif
