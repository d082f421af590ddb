/* Ids in the form 8-4-4-4-12, as Nomad writes them. */
#ifndef CAIRN_BASE_UUID_H
#define CAIRN_BASE_UUID_H

#include <stdbool.h>
#include <stdint.h>

enum { UUID_TEXT_SIZE = 37 };

/* Writes a version-4 id made of two random numbers. */
void uuid_format(char to[UUID_TEXT_SIZE], uint64_t high, uint64_t low);

/* True if TEXT has the form of an id (lower-case or upper-case digits). */
bool uuid_is_valid(const char *text);

#endif
