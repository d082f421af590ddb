/* Whether what was downloaded is what was meant: md5, sha1, sha256 or sha512 of all of it. */
#include "hooks/fetch/fetch.h"

#include <errno.h>
#include <nettle/nettle-meta.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { BLOCK_BYTES = 256 * 1024, DIGEST_MAX = 64, CONTEXT_MAX = 512 };

static const struct nettle_hash *find_hash(const char *checksum, const char **ret_digits)
{
    static const struct {
        const char *prefix;
        const struct nettle_hash *hash;
    } hashes[] = {
        {"md5:", &nettle_md5},
        {"sha1:", &nettle_sha1},
        {"sha256:", &nettle_sha256},
        {"sha512:", &nettle_sha512},
    };

    for (size_t i = 0; i < COUNT_OF(hashes); i++) {
        if (text_starts_with(checksum, hashes[i].prefix)) {
            *ret_digits = checksum + strlen(hashes[i].prefix);
            return hashes[i].hash;
        }
    }
    return NULL;
}

static int add_all(int fd, const struct nettle_hash *hash, void *context, struct err *err)
{
    static uint8_t block[BLOCK_BYTES];
    off_t at = 0;

    for (;;) {
        ssize_t got = pread(fd, block, sizeof(block), at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_os(err, ERR_IO, errno, "cannot read what was downloaded");
        if (got == 0)
            return 0;
        hash->update(context, (size_t)got, block);
        at += got;
    }
}

int fetch_check_sum(const struct fetch *fetch, const char *checksum, struct err *err)
{
    _Alignas(16) uint8_t context[CONTEXT_MAX];
    uint8_t digest[DIGEST_MAX];
    char digits[2 * DIGEST_MAX + 1];
    const char *expected = "";
    const struct nettle_hash *hash = find_hash(checksum, &expected);

    if (hash == NULL)
        return err_set(err, ERR_INVALID, "unsupported checksum: %.40s", checksum);
    check(hash->context_size <= sizeof(context) && hash->digest_size <= sizeof(digest));
    hash->init(context);
    int code = add_all(fetch->data, hash, context, err);
    if (code != 0)
        return code;
    hash->digest(context, hash->digest_size, digest);
    for (size_t i = 0; i < hash->digest_size; i++)
        (void)text_format(digits + 2 * i, 3, "%02x", digest[i]);
    if (strcasecmp(digits, expected) != 0)
        return err_set(err, ERR_CORRUPT, "Checksums did not match. Expected: %.64s Got: %.64s",
                       expected, digits);
    return 0;
}
