/* BLAKE2b, after RFC 7693; the names are those of its text. */
#include "base/blake2b.h"

#include "base/check.h"

#include <stdbool.h>
#include <string.h>

enum { BLOCK_BYTES = 128, WORDS = 16, ROUNDS = 12, PERMUTATIONS = 10 };

static const uint64_t iv[8] = {
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

static const uint8_t sigma[PERMUTATIONS][WORDS] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

static uint64_t turned(uint64_t word, unsigned bits)
{
    return word >> bits | word << (64 - bits);
}

static void mix(uint64_t v[WORDS], const uint8_t at[4], uint64_t x, uint64_t y)
{
    uint64_t *a = &v[at[0]], *b = &v[at[1]], *c = &v[at[2]], *d = &v[at[3]];

    *a += *b + x;
    *d = turned(*d ^ *a, 32);
    *c += *d;
    *b = turned(*b ^ *c, 24);
    *a += *b + y;
    *d = turned(*d ^ *a, 16);
    *c += *d;
    *b = turned(*b ^ *c, 63);
}

/* TOTAL bytes with this block, of which there are fewer than 2^64. */
static void compress(uint64_t h[8], const uint8_t block[BLOCK_BYTES], uint64_t total, bool last)
{
    static const uint8_t columns[8][4] = {{0, 4, 8, 12},  {1, 5, 9, 13},  {2, 6, 10, 14},
                                          {3, 7, 11, 15}, {0, 5, 10, 15}, {1, 6, 11, 12},
                                          {2, 7, 8, 13},  {3, 4, 9, 14}};
    uint64_t v[WORDS], m[WORDS] = {0};

    for (unsigned i = 0; i < BLOCK_BYTES; i++)
        m[i / 8] |= (uint64_t)block[i] << 8 * (i % 8);
    memcpy(v, h, 8 * sizeof(*v));
    memcpy(v + 8, iv, sizeof(iv));
    v[12] ^= total;
    v[14] = last ? ~v[14] : v[14];
    for (unsigned round = 0; round < ROUNDS; round++) {
        const uint8_t *s = sigma[round % PERMUTATIONS];
        for (unsigned i = 0; i < 8; i++)
            mix(v, columns[i], m[s[2 * i]], m[s[2 * i + 1]]);
    }
    for (unsigned i = 0; i < 8; i++)
        h[i] ^= v[i] ^ v[i + 8];
}

void blake2b(const void *key, size_t key_length, const void *bytes, size_t length,
             uint8_t ret_digest[BLAKE2B_SIZE])
{
    uint8_t block[BLOCK_BYTES] = {0};
    const uint8_t *from = bytes;
    uint64_t h[8], total = 0;

    check(key_length <= BLAKE2B_KEY_MAX);
    memcpy(h, iv, sizeof(h));
    h[0] ^= 0x01010000 ^ (uint64_t)key_length << 8 ^ BLAKE2B_SIZE;
    if (key_length > 0) { /* a block of its own, which is the last if there is nothing else */
        memcpy(block, key, key_length);
        total = BLOCK_BYTES;
        compress(h, block, total, length == 0);
    }
    for (bool more = length > 0 || key_length == 0; more; more = length > 0) {
        size_t part = length < BLOCK_BYTES ? length : BLOCK_BYTES;

        memset(block, 0, sizeof(block));
        if (part > 0)
            memcpy(block, from, part);
        from += part;
        length -= part;
        total += part;
        compress(h, block, total, length == 0);
    }
    for (unsigned i = 0; i < BLAKE2B_SIZE; i++)
        ret_digest[i] = (uint8_t)(h[i / 8] >> 8 * (i % 8));
}
