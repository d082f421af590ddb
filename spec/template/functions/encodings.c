/* Functions of templates that write texts by other means: base64, digests. */
#include "spec/template/functions/part.h"

#include <nettle/base64.h>
#include <nettle/hmac.h>
#include <nettle/md5.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

/* Of a URL, where there are other characters for two. */
static bool is_for_url(const struct call *call)
{
    return text_starts_with(call->name, "base64URL");
}

static json_t *run_base64_encode(const struct call *call)
{
    const char *text = call_text(call, 0);
    size_t length = strlen(text), size = BASE64_ENCODE_RAW_LENGTH(length);
    char *made = malloc(size + 1);

    check(made != NULL);
    base64_encode_raw(made, length, (const uint8_t *)text);
    for (size_t i = 0; i < size && is_for_url(call); i++)
        made[i] = (char)(made[i] == '+' ? '-' : made[i] == '/' ? '_' : made[i]);
    json_t *value = call_give(call, made, size);
    free(made);
    return value;
}

static json_t *run_base64_decode(const struct call *call)
{
    const char *text = call_text(call, 0);
    size_t length = strlen(text), written = BASE64_DECODE_LENGTH(length);
    uint8_t *made = malloc(written + 1);
    struct base64_decode_ctx context;

    check(made != NULL);
    if (is_for_url(call))
        base64url_decode_init(&context);
    else
        base64_decode_init(&context);
    bool good = strpbrk(text, " \t\v\f") == NULL && /* lines end within it, no more */
                base64_decode_update(&context, &written, made, length, text) == 1 &&
                base64_decode_final(&context) == 1;
    json_t *value =
        good ? call_give(call, (const char *)made, written) : call_refuse(call, "no base64");
    free(made);
    return value;
}

static json_t *give_digest(const struct call *call, const uint8_t *digest, size_t size)
{
    char digits[2 * SHA512_DIGEST_SIZE + 1] = "";

    for (size_t i = 0; i < size; i++)
        (void)text_format(digits + 2 * i, 3, "%02x", digest[i]); /* fits */
    return call_give_text(call, digits);
}

static json_t *run_digest(const struct call *call)
{
    const char *text = call_text(call, 0);
    const uint8_t *bytes = (const uint8_t *)text;
    uint8_t digest[SHA512_DIGEST_SIZE];
    size_t size = SHA256_DIGEST_SIZE, length = strlen(text);

    if (!call_charge(call, length))
        return NULL;
    if (text_equal(call->name, "md5sum")) {
        struct md5_ctx context;

        size = MD5_DIGEST_SIZE;
        md5_init(&context);
        md5_update(&context, length, bytes);
        md5_digest(&context, size, digest);
    } else if (text_equal(call->name, "sha1Hex")) {
        struct sha1_ctx context;

        size = SHA1_DIGEST_SIZE;
        sha1_init(&context);
        sha1_update(&context, length, bytes);
        sha1_digest(&context, size, digest);
    } else {
        struct sha256_ctx context;

        sha256_init(&context);
        sha256_update(&context, length, bytes);
        sha256_digest(&context, size, digest);
    }
    return give_digest(call, digest, size);
}

/* Of a text, with a key. */
static json_t *run_hmac(const struct call *call)
{
    const char *text = call_text(call, 0), *key = call_text(call, 1);
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct hmac_sha256_ctx context;

    if (!call_charge(call, strlen(text) + strlen(key)))
        return NULL;
    hmac_sha256_set_key(&context, strlen(key), (const uint8_t *)key);
    hmac_sha256_update(&context, strlen(text), (const uint8_t *)text);
    hmac_sha256_digest(&context, sizeof(digest), digest);
    return give_digest(call, digest, sizeof(digest));
}

const struct function template_encodings_functions[] = {
    {"base64Decode", 1, 1, run_base64_decode},
    {"base64Encode", 1, 1, run_base64_encode},
    {"base64URLDecode", 1, 1, run_base64_decode},
    {"base64URLEncode", 1, 1, run_base64_encode},
    {"hmacSHA256Hex", 2, 2, run_hmac},
    {"md5sum", 1, 1, run_digest},
    {"sha1Hex", 1, 1, run_digest},
    {"sha256Hex", 1, 1, run_digest},
    {NULL, 0, 0, NULL},
};
