/* A private copy of a data file in memory: for readers that may not touch the original. */
#ifndef CAIRN_JOURNAL_COPY_H
#define CAIRN_JOURNAL_COPY_H

#include "base/base.h"

/* Copies the data file in DIRECTORY into an anonymous file, as of one commit, while another process
 * may be writing.  ERR_AGAIN: it was written faster than it could be copied. */
int copy_private(const char *directory, int *ret_fd, struct err *err);

/* Where an anonymous file can be opened by name. */
void copy_path(int fd, char *to, size_t size);

#endif
