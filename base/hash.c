#include "base/hash.h"

#include <string.h>

/* Multiply-and-fold over 16 bytes at a time (the construction of wyhash and its relatives). */
static uint64_t fold(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static const uint64_t prime[4] = {0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u, 0x94d049bb133111ebu,
                                  0xd6e8feb86659fd93u};

static uint64_t read8(const unsigned char *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

/* The first LEFT bytes, at most eight, with zeros behind them.  By overlapping reads, not by a copy
 * of LEFT bytes: what has been written in pieces is slow to read as a whole. */
static uint64_t read_up_to_8(const unsigned char *at, size_t left)
{
    uint32_t low, high;

    if (left >= 8)
        return read8(at);
    if (left >= 4) {
        memcpy(&low, at, sizeof(low));
        memcpy(&high, at + left - sizeof(high), sizeof(high));
        return low | (uint64_t)high << 8 * (left - sizeof(high));
    }
    if (left == 0)
        return 0;
    return at[0] | (uint64_t)at[left / 2] << 8 * (left / 2) |
           (uint64_t)at[left - 1] << 8 * (left - 1);
}

uint64_t hash_u64(uint64_t seed, uint64_t value)
{
    return fold(seed ^ prime[0], value ^ prime[1]);
}

uint64_t hash_bytes(uint64_t seed, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    size_t left = length;
    uint64_t a = seed ^ prime[0], b = seed ^ prime[2];

    for (; left >= 32; left -= 32, at += 32) {
        a = fold(read8(at) ^ prime[1], read8(at + 8) ^ a);
        b = fold(read8(at + 16) ^ prime[3], read8(at + 24) ^ b);
    }
    uint64_t tail[4] = {0};
    for (size_t word = 0; word < 4 && left > 8 * word; word++)
        tail[word] = read_up_to_8(at + 8 * word, left - 8 * word);
    a = fold(tail[0] ^ prime[1], tail[1] ^ a);
    b = fold(tail[2] ^ prime[3], tail[3] ^ b);
    return fold(a ^ prime[2] ^ length, b ^ prime[0]);
}
