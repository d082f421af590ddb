/* What the files of this room share: things that end with their block, and paths taken apart. */
#ifndef CAIRN_IO_HOST_SCOPE_H
#define CAIRN_IO_HOST_SCOPE_H

#include "base/base.h"
#include "io/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NAME_SIZE = 256 }; /* NAME_MAX and the NUL */

static inline void scope_close_fd(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* read side, or on the way out of a failure: nothing to tell */
}

static inline void scope_free_text(char **text)
{
    free(*text);
}

static inline void scope_close_file(FILE **file)
{
    if (*file != NULL)
        (void)fclose(*file); /* files read only */
}

/* A local that is closed or freed when its block ends; owned until taken. */
#define scoped_fd __attribute__((cleanup(scope_close_fd)))
#define scoped_text __attribute__((cleanup(scope_free_text)))
#define scoped_file __attribute__((cleanup(scope_close_file)))

/* Moves the descriptor out of a scoped local. */
static inline int take_fd(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

/* PATH as the directory it lies in ("." if it has none) and its last part, which is not empty,
 * "." or ".."; ERR_INVALID otherwise. */
int path_split(const char *path, char directory[PATH_SIZE], char name[NAME_SIZE], struct err *err);

#endif
