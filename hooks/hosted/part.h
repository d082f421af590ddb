/* Inside hooks/hosted/: what its files share.  All of it runs on the pool. */
#ifndef CAIRN_HOOKS_HOSTED_PART_H
#define CAIRN_HOOKS_HOSTED_PART_H

#include "hooks/hosted/hosted.h"
#include "io/host.h"

enum { HOSTED_TEXT_SIZE = 512, HOSTED_PLUGINS_MAX = 64 };

/* What is asked, with texts of its own. */
struct hosted_request {
    const char *plugin_dir, *volumes_dir, *node_id, *node_pool;
    int cancel_fd; /* readable: a program that runs is ended; owned, -1: it is none */
    struct hosted_ask ask;
};

struct hosted_result {
    struct hosted_answer answer; /* path and text are those below */
    char path[PATH_SIZE];
    char text[HOSTED_TEXT_SIZE];
};

/* Ends RESULT as a failure of which is known whether anything came of it: the text is cut. */
__attribute__((format(printf, 4, 5))) void hosted_fail(struct hosted_result *result, int code,
                                                       bool is_known, const char *format, ...);

/* The one inside (mkdir.c). */
void hosted_mkdir(const struct hosted_request *request, struct hosted_result *result);

/* A program (program.c). */
void hosted_program(const struct hosted_request *request, struct hosted_result *result);

/* True if NAME can be that of a plugin, and there is such a program in DIRECTORY: its PATH. */
bool hosted_find(const char *directory, const char *name, char path[PATH_SIZE]);

/* The version that the program NAME tells, into TO; false: it is none of ours, or CANCEL_FD is
 * readable. */
bool hosted_version(const char *directory, const char *name, int cancel_fd,
                    char to[PLUGIN_NAME_SIZE]);

#endif
