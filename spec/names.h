/*
 * What a job, a group, a task and a namespace may be called, and what an alloc is: the only place
 * that says so.
 *
 * Follows nomad v1.1.2 nomad/structs/structs.go (Validate), and is stricter in what Nomad leaves
 * open: names are shown in terminals and logs, so they have no control characters; records hold
 * them, so they have at most SPEC_NAME_MAX bytes; and a task's becomes a part of paths and of the
 * names of cgroups.
 */
#ifndef CAIRN_SPEC_NAMES_H
#define CAIRN_SPEC_NAMES_H

#include "spec/spec.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SPEC_NAME_MAX = SPEC_NAME_SIZE - 1, /* bytes of a job's id, a group's and a task's name */
    SPEC_NAMESPACE_MAX = SPEC_NAMESPACE_SIZE - 1,
};

/* Each: NULL if TEXT is good, else why not, to be read after the name of the thing: "must not be
 * empty".  TEXT is UTF-8, as all that came through JSON or HCL. */

/* Slashes are fine, as in the ids of children ("job/periodic-1600000000"), but for parts "." and
 * ".." between them: an address with those names another place. */
const char *spec_job_id_fault(const char *text);

/* Slashes are fine: a group's name is part of no path. */
const char *spec_group_name_fault(const char *text);

/* One part of a path that is not hidden, and not "alloc", the directory that all tasks share. */
const char *spec_task_name_fault(const char *text);

/* True if PATH, from the directory of a task on, leads out of its alloc; what is interpolated in it
 * is taken for a name. */
bool spec_leaves_alloc(const char *path);

/* Letters, digits and dashes.  There is no slash in it, so that a job's key in the journal,
 * "job/<namespace>/<id>", says where its id begins. */
const char *spec_namespace_fault(const char *text);

/* The type of a job that is called NAME (may be NULL); false: none is. */
bool spec_job_type(const char *name, enum spec_job_type *ret_type);

/* Letters, digits, "_", "-" and ".": the label of a port is a part of the names of variables. */
const char *spec_port_label_fault(const char *text);

/* The name of a volume of the node's configuration. */
const char *spec_volume_name_fault(const char *text);

/* The id of a volume of a storage plugin: one part of a path, on this node. */
const char *spec_volume_id_fault(const char *text);

/* How such a one is used (names may be NULL); false: nothing is called NAME. */
bool spec_access(const char *name, enum csi_access *ret_access);
bool spec_attachment(const char *name, enum csi_attachment *ret_attachment);
const char *spec_access_name(enum csi_access access); /* "" for none that has a name */
const char *spec_attachment_name(enum csi_attachment attachment);

/* True if TASK of ALLOC mounts a volume of a storage plugin. */
bool spec_mounts_claim(const struct alloc_spec *alloc, const struct task_spec *task);

/* How mounts spread (may be NULL: as if not given); false: nothing is called NAME. */
bool spec_propagation(const char *name, enum spec_propagation *ret_propagation);
const char *spec_propagation_name(enum spec_propagation propagation);

/* The place TEXT of a task's root as a plain path: absolute, without "." and needless slashes.
 * NULL, or why nothing can be mounted there, to be read after the path. */
enum { SPEC_PLACE_SIZE = 256 };
const char *spec_place(const char *text, char to[SPEC_PLACE_SIZE]);

/* "node", "controller" or "monolith"; false: TEXT is none of them. */
bool spec_plugin_type(const char *text, enum plugin_type *ret_type);

/* NULL: ID can be that of a storage plugin; or why not, to be read after "the id". */
const char *spec_plugin_fault(const char *id);

/* COUNT processors in order as the kernel lists them, "0-2,7"; "" for none. */
enum { CORES_TEXT_SIZE = 4096 };
void spec_cores_text(const uint16_t *ids, size_t count, char to[CORES_TEXT_SIZE]);

/* The mode of a group's network: "", "host", "bridge", "none" or "cni/NAME". */
const char *spec_network_mode_fault(const char *mode);

/* The name that a network of its own gives its tasks: of RFC 1123, as long as the kernel takes. */
enum { SPEC_HOSTNAME_MAX = 64, SPEC_HOSTNAME_TEXT_SIZE = 256 /* with variables in it */ };
const char *spec_hostname_fault(const char *hostname);

/* The name of a service: a label of DNS (RFC 1123). */
const char *spec_service_name_fault(const char *name);

/* What an alloc is called: "job.group[index]". */
enum { SPEC_ALLOC_NAME_SIZE = 2 * SPEC_NAME_SIZE + 16 };
void spec_alloc_name(char to[SPEC_ALLOC_NAME_SIZE], const char *job_id, const char *group,
                     uint32_t index);

/* "SIGHUP", "HUP" or a number. */
bool spec_is_signal(const char *text);

/* The name of an identity of a task: a part of the names of files and variables. */
const char *spec_identity_name_fault(const char *name);

/* What a header of HTTP and a variable can carry as it is. */
bool spec_is_token(const char *text);

#endif
