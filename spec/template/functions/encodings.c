/* Functions of templates that write values as text, and read them: JSON, base64, digests. */
#include "spec/template/functions/part.h"

#include <nettle/base64.h>
#include <nettle/md5.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_DEEP = 64 };

/* Numbers are Go's float64. */
static json_t *as_go(json_t *value)
{
    const char *key;
    json_t *item;
    size_t i;

    if (json_is_integer(value))
        return json_real((double)json_integer_value(value));
    json_object_foreach(value, key, item) check(json_object_set_new(value, key, as_go(item)) == 0);
    json_array_foreach(value, i, item) check(json_array_set_new(value, i, as_go(item)) == 0);
    return json_incref(value);
}

static bool is_deep(const json_t *value, int depth)
{
    const char *key;
    json_t *item;
    size_t i;

    if (depth == 0)
        return true;
    json_object_foreach((json_t *)value, key, item)
    {
        if (is_deep(item, depth - 1))
            return true;
    }
    json_array_foreach(value, i, item)
    {
        if (is_deep(item, depth - 1))
            return true;
    }
    return false;
}

static json_t *run_parse_json(const struct call *call)
{
    const char *text = call_text(call, 0);
    json_error_t error;

    if (!template_charge(call->evaluating, strlen(text) / 16))
        return NULL;
    if (*text == '\0')
        return json_object();
    json_t *value = json_loads(text, JSON_DECODE_ANY, &error);
    if (value == NULL && error.text[0] == '\0') /* there are words for all that can be wrong */
        return template_fail(call->evaluating, ERR_LIMIT, "%s: it takes too much memory",
                             call->name);
    if (value == NULL || is_deep(value, JSON_DEEP)) {
        json_decref(value);
        return call_refuse(call, "invalid JSON");
    }
    json_t *made = as_go(value);
    json_decref(value);
    return made;
}

/* Whole numbers have no point in JSON that Go writes. */
static json_t *as_json(const json_t *value)
{
    double real = json_real_value(value);
    const char *key;
    json_t *item, *made;
    size_t i;

    if (json_is_real(value) && real >= -1e15 && real <= 1e15 && real == (double)(json_int_t)real)
        return json_integer((json_int_t)real);
    if (json_is_object(value)) {
        made = json_object();
        json_object_foreach((json_t *)value, key, item)
            check(json_object_set_new(made, key, as_json(item)) == 0);
        return made;
    }
    if (json_is_array(value)) {
        made = json_array();
        json_array_foreach(value, i, item) check(json_array_append_new(made, as_json(item)) == 0);
        return made;
    }
    return json_incref((json_t *)value);
}

static json_t *run_to_json(const struct call *call)
{
    bool pretty = text_equal(call->name, "toJSONPretty");
    json_t *value = as_json(call->arguments[0]);
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_SORT_KEYS |
                                       (pretty ? JSON_INDENT(2) : JSON_COMPACT));

    json_decref(value);
    check(text != NULL);
    json_t *made = call_give_text(call, text);
    free(text);
    return made;
}

static json_t *run_base64_encode(const struct call *call)
{
    const char *text = call_text(call, 0);
    size_t length = strlen(text);
    char *made = malloc(BASE64_ENCODE_RAW_LENGTH(length) + 1);

    check(made != NULL);
    base64_encode_raw(made, length, (const uint8_t *)text);
    json_t *value = call_give(call, made, BASE64_ENCODE_RAW_LENGTH(length));
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
    base64_decode_init(&context);
    bool good = base64_decode_update(&context, &written, made, length, text) == 1 &&
                base64_decode_final(&context) == 1;
    json_t *value =
        good ? call_give(call, (const char *)made, written) : call_refuse(call, "no base64");
    free(made);
    return value;
}

static json_t *run_digest(const struct call *call)
{
    const char *text = call_text(call, 0);
    const uint8_t *bytes = (const uint8_t *)text;
    uint8_t digest[SHA512_DIGEST_SIZE];
    char digits[2 * sizeof(digest) + 1] = "";
    size_t size = SHA256_DIGEST_SIZE, length = strlen(text);

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
    for (size_t i = 0; i < size; i++)
        (void)text_format(digits + 2 * i, 3, "%02x", digest[i]); /* fits */
    return call_give_text(call, digits);
}

const struct function template_encodings_functions[] = {
    {"base64Decode", 1, 1, run_base64_decode},
    {"base64Encode", 1, 1, run_base64_encode},
    {"md5sum", 1, 1, run_digest},
    {"parseJSON", 1, 1, run_parse_json},
    {"sha1Hex", 1, 1, run_digest},
    {"sha256Hex", 1, 1, run_digest},
    {"toJSON", 1, 1, run_to_json},
    {"toJSONPretty", 1, 1, run_to_json},
    {NULL, 0, 0, NULL},
};
