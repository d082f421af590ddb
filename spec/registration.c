#include "spec/registration.h"

#include "base/base.h"

#include <nettle/sha2.h>
#include <string.h>

_Static_assert((int)REGISTRATION_RANK_SIZE == (int)SHA256_DIGEST_SIZE, "a rank is a digest");

static void add(struct sha256_ctx *hash, const char *text)
{
    if (text != NULL)
        sha256_update(hash, strlen(text), (const uint8_t *)text);
}

void registration_rank(const json_t *registration, const char *key,
                       uint8_t to[REGISTRATION_RANK_SIZE])
{
    static const char *const fields[] = {"AllocID", "ID", "Namespace", "Address", "ServiceName"};
    uint64_t port = (uint64_t)json_integer_value(json_object_get(registration, "Port"));
    struct sha256_ctx hash;
    uint8_t bytes[8];
    const json_t *tag;
    size_t i;

    sha256_init(&hash);
    for (i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(port >> (56 - 8 * i));
    sha256_update(&hash, sizeof(bytes), bytes);
    for (i = 0; i < COUNT_OF(fields); i++)
        add(&hash, json_string_value(json_object_get(registration, fields[i])));
    json_array_foreach(json_object_get(registration, "Tags"), i, tag)
    {
        add(&hash, json_string_value(tag));
    }
    add(&hash, key);
    sha256_digest(&hash, REGISTRATION_RANK_SIZE, to);
}
