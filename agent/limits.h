/* What bounds of different rooms come to together. */
#ifndef CAIRN_AGENT_LIMITS_H
#define CAIRN_AGENT_LIMITS_H

#include <stdbool.h>
#include <stddef.h>

/* The descriptors that a daemon with so many payloads needs. */
size_t limits_files(size_t payloads, bool tls);

#endif
