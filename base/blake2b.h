/* BLAKE2b of 64 bytes with a key (RFC 7693), as servers make tokens of their nodes' secrets; the
 * cryptographic library that is linked, nettle, has none. */
#ifndef CAIRN_BASE_BLAKE2B_H
#define CAIRN_BASE_BLAKE2B_H

#include <stddef.h>
#include <stdint.h>

enum { BLAKE2B_SIZE = 64, BLAKE2B_KEY_MAX = 64 };

/* KEY_LENGTH is at most BLAKE2B_KEY_MAX, 0: no key. */
void blake2b(const void *key, size_t key_length, const void *bytes, size_t length,
             uint8_t ret_digest[BLAKE2B_SIZE]);

#endif
