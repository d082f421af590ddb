/* Wall clocks, in nanoseconds since 1970.  What somebody else wrote down may be any number: a
 * difference or sum that does not fit is the largest or least that does. */
#ifndef CAIRN_BASE_WALL_H
#define CAIRN_BASE_WALL_H

#include <stdint.h>

/* How much later UNIX_NS is than SINCE_UNIX_NS. */
int64_t wall_since(int64_t since_unix_ns, int64_t unix_ns);

int64_t wall_add(int64_t unix_ns, int64_t ns);

#endif
