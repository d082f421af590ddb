/* A fast 64-bit digest for our own records.  Not for secrets, not against adversaries. */
#ifndef CAIRN_BASE_HASH_H
#define CAIRN_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Digest of LENGTH bytes, started from SEED.  The same on every machine and compiler of one byte
 * order; part of the journal format, so its result may never change. */
uint64_t hash_bytes(uint64_t seed, const void *bytes, size_t length);

/* Mixes one number into a digest. */
uint64_t hash_u64(uint64_t seed, uint64_t value);

#endif
