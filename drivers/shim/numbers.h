/* The numbered files of one output stream, of the shim's tasks and of those that have none. */
#ifndef CAIRN_DRIVERS_SHIM_NUMBERS_H
#define CAIRN_DRIVERS_SHIM_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

/* Goes through the files of DIRECTORY_FD, open for reading or below 0, whose name is PREFIX and a
 * number.  Deletes those below DELETE_BELOW; RET_NEWEST is the highest number seen; false if there
 * is no file. */
bool numbers_scan(int directory_fd, const char *prefix, uint64_t delete_below,
                  uint64_t *ret_newest);

#endif
