/*
 * Who may have the disk of an alloc that goes on with another one, on another node: whoever shows
 * the token that servers make for that node alone, of the alloc and of the secret of this one.  No
 * other token will do.  Follows nomad v2.0.6 nomad/structs CompareMigrateToken.
 */
#include "agent/api/part.h"

#include "base/blake2b.h"

#include <nettle/base64.h>
#include <nettle/memops.h>
#include <string.h>

bool api_is_migrating(const struct api_request *request, const char *token)
{
    const char *secret = request->api->parts->node.identity.secret;
    struct base64_encode_ctx encoding;
    uint8_t digest[BLAKE2B_SIZE];
    char expected[BASE64_ENCODE_RAW_LENGTH(BLAKE2B_SIZE)];

    if (token == NULL || strlen(token) != sizeof(expected))
        return false;
    blake2b(secret, strlen(secret), request->argument, strlen(request->argument), digest);
    base64url_encode_init(&encoding);
    size_t length = base64_encode_update(&encoding, expected, sizeof(digest), digest);
    length += base64_encode_final(&encoding, expected + length);
    check(length == sizeof(expected));
    bool is_it = memeql_sec(expected, token, sizeof(expected)) != 0;
    explicit_bzero(expected, sizeof(expected));
    return is_it;
}
