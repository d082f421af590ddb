/* Who reads the output of a task that a plugin has started: the shim's program by another name. */
#ifndef CAIRN_DRIVERS_SHIM_READER_H
#define CAIRN_DRIVERS_SHIM_READER_H

#define READER_PROGRAM "cairn-logs"

/* It inherits both pipes, open for reading and for writing, standard output first. */
enum { READER_FD_FIRST = 3, READER_STREAMS = 2 };

/* The words behind its name; the second is below the first, and the numbers are decimal. */
enum {
    READER_ALLOC_DIR = 1,
    READER_DIRECTORY,
    READER_TASK,
    READER_FILES_MAX,
    READER_BYTES_MAX,
    READER_WORDS,
};

/* By this it is told that no more is to come: it reads to the end, and ends. */
#define READER_END SIGUSR2

#endif
