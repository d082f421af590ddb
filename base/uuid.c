#include "base/uuid.h"

#include "base/text.h"

#include <string.h>

void uuid_format(char to[UUID_TEXT_SIZE], uint64_t high, uint64_t low)
{
    uint64_t h = (high & ~0xF000ull) | 0x4000ull;                        /* version 4 */
    uint64_t l = (low & ~0xC000000000000000ull) | 0x8000000000000000ull; /* RFC 4122 variant */

    (void)text_format(to, UUID_TEXT_SIZE, "%08llx-%04llx-%04llx-%04llx-%012llx",
                      (unsigned long long)(h >> 32), (unsigned long long)((h >> 16) & 0xFFFF),
                      (unsigned long long)(h & 0xFFFF), (unsigned long long)(l >> 48),
                      (unsigned long long)(l & 0xFFFFFFFFFFFFull));
}

bool uuid_is_valid(const char *text)
{
    if (strlen(text) != UUID_TEXT_SIZE - 1)
        return false;
    for (int i = 0; i < UUID_TEXT_SIZE - 1; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        bool digit = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f') ||
                     (text[i] >= 'A' && text[i] <= 'F');
        if (dash ? text[i] != '-' : !digit)
            return false;
    }
    return true;
}
