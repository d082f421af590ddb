/* Inside hooks/disk/ only: what is done with a disk that is here. */
#ifndef CAIRN_HOOKS_DISK_DISK_H
#define CAIRN_HOOKS_DISK_DISK_H

#include "hooks/part.h"

/* What there is of the disks of the allocs that REQUEST names becomes that of its own, whose
 * directory ROOT is. */
int disk_take_over(const struct hook_request *request, int root, struct err *err);

/* The same of the directory FROM, which is as that of an alloc. */
int disk_move(const struct hook_request *request, int from, int to, struct err *err);

#endif
