/* Things that end with their block: descriptors, strings, streams. */
#ifndef CAIRN_IO_SCOPE_H
#define CAIRN_IO_SCOPE_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void scope_close_fd(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* read side, or on the way out of a failure: nothing to tell */
}

static inline void scope_free_string(char **text)
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
#define scoped_string __attribute__((cleanup(scope_free_string)))
#define scoped_file __attribute__((cleanup(scope_close_file)))

/* Moves the descriptor out of a scoped local. */
static inline int take_fd(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

#endif
