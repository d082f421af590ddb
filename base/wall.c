#include "base/wall.h"

int64_t wall_since(int64_t since_unix_ns, int64_t unix_ns)
{
    int64_t ns;

    if (!__builtin_sub_overflow(unix_ns, since_unix_ns, &ns))
        return ns;
    return unix_ns > since_unix_ns ? INT64_MAX : INT64_MIN;
}

int64_t wall_add(int64_t unix_ns, int64_t ns)
{
    int64_t sum;

    if (!__builtin_add_overflow(unix_ns, ns, &sum))
        return sum;
    return ns > 0 ? INT64_MAX : INT64_MIN;
}
