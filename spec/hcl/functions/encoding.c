/* Functions that encode, digest or make ids. */
#include "spec/hcl/number.h"

#include <nettle/base64.h>
#include <nettle/md5.h>
#include <nettle/nettle-meta.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* --- JSON, base64, URLs --- */

static void put_json(struct hcl_buffer *to, json_t *value);

/* What Go escapes besides, so that JSON can stand in HTML. */
static void put_json_text(struct hcl_buffer *to, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY);

    check(text != NULL);
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '<' || *at == '>' || *at == '&')
            hcl_buffer_add(to, *at == '<' ? "\\u003c" : *at == '>' ? "\\u003e" : "\\u0026", 6);
        else if (strncmp(at, "\xe2\x80\xa8", 3) == 0 || strncmp(at, "\xe2\x80\xa9", 3) == 0) {
            hcl_buffer_add(to, at[2] == '\xa8' ? "\\u2028" : "\\u2029", 6);
            at += 2;
        } else
            hcl_buffer_add(to, at, 1);
    }
    free(text);
}

static void put_json_object(struct hcl_buffer *to, const json_t *value)
{
    size_t count;
    const char **keys = hcl_sorted_keys(value, &count);

    for (size_t i = 0; i < count; i++) {
        json_t *key = json_string(keys[i]);

        hcl_buffer_add(to, i == 0 ? "{" : ",", 1);
        put_json_text(to, key);
        json_decref(key);
        hcl_buffer_add(to, ":", 1);
        put_json(to, json_object_get(value, keys[i]));
    }
    hcl_buffer_add(to, count == 0 ? "{}" : "}", count == 0 ? 2 : 1);
    free(keys);
}

/* As deep as the value, which hcl_charge_value has bounded. */
static void put_json(struct hcl_buffer *to, json_t *value)
{
    json_t *item;
    size_t i;

    if (json_is_array(value)) {
        hcl_buffer_add(to, "[", 1);
        json_array_foreach(value, i, item)
        {
            hcl_buffer_add(to, ",", i > 0);
            put_json(to, item);
        }
        hcl_buffer_add(to, "]", 1);
    } else if (hcl_is_object(value)) {
        put_json_object(to, value);
    } else if (hcl_is_number(value)) {
        json_t *text = hcl_number_text(value);

        hcl_buffer_add(to, json_string_value(text), json_string_length(text));
        json_decref(text);
    } else {
        put_json_text(to, value);
    }
}

char *hcl_json(json_t *value)
{
    struct hcl_buffer buffer = {0};

    put_json(&buffer, value);
    char *text = strdup(buffer.full || buffer.bytes == NULL ? "" : buffer.bytes);
    check(text != NULL);
    hcl_buffer_free(&buffer);
    return text;
}

static json_t *run_jsonencode(const struct hcl_call *call)
{
    struct hcl_buffer buffer = {0};

    put_json(&buffer, call->arguments[0]);
    return hcl_call_text(call, &buffer);
}

/* The end of the number at AT, which follows JSON's grammar; AT if it does not. */
static const char *number_end(const char *at)
{
    const char *end = at + (*at == '-');
    size_t digits = strspn(end, "0123456789");

    if (digits == 0 || (*end == '0' && digits > 1))
        return at;
    end += digits;
    if (*end == '.' && strspn(end + 1, "0123456789") > 0)
        end += 1 + strspn(end + 1, "0123456789");
    if (*end == 'e' || *end == 'E') {
        size_t sign = end[1] == '-' || end[1] == '+' ? 1 : 0;

        digits = strspn(end + 1 + sign, "0123456789");
        end += digits > 0 ? 1 + sign + digits : 0;
    }
    return strchr(",]} \t\r\n", *end) != NULL ? end : at; /* also the text's end */
}

/* TEXT with each number that the parser would take apart in the shape that numbers have as values,
 * on the same line. */
static bool keep_numbers(const char *text, struct hcl_buffer *to)
{
    bool quoted = false;

    while (*text != '\0') {
        const char *end =
            quoted || !(*text == '-' || (*text >= '0' && *text <= '9')) ? text : number_end(text);
        if (end > text) {
            char *number = strndup(text, (size_t)(end - text)), *kept;

            check(number != NULL);
            json_t *value = hcl_number_parse(number);
            free(number);
            if (value == NULL)
                return false;
            kept = json_dumps(value, JSON_ENCODE_ANY);
            check(kept != NULL);
            hcl_buffer_add(to, kept, strlen(kept));
            free(kept);
            json_decref(value);
            text = end;
            continue;
        }
        if (*text == '"')
            quoted = !quoted;
        hcl_buffer_add(to, text, 1);
        if (quoted && *text == '\\' && text[1] != '\0')
            hcl_buffer_add(to, ++text, 1);
        text++;
    }
    return true;
}

static json_t *run_jsondecode(const struct hcl_call *call)
{
    struct hcl_buffer buffer = {0};
    json_t *keep, *value = NULL;
    json_error_t error = {.text = "a number is too large", .line = 1};

    if (!hcl_argument_text(call, 0, &keep))
        return NULL;
    if (keep_numbers(json_string_value(keep), &buffer) && !buffer.full)
        value = json_loadb(buffer.bytes == NULL ? "" : buffer.bytes, buffer.length,
                           JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
    hcl_buffer_free(&buffer);
    json_decref(keep);
    return value != NULL ? value
                         : hcl_call_failed(call, "cannot read this JSON: %s at line %d", error.text,
                                           error.line);
}

static json_t *run_base64encode(const struct hcl_call *call)
{
    json_t *keep;

    if (!hcl_argument_text(call, 0, &keep))
        return NULL;
    size_t length = json_string_length(keep);
    char *encoded = malloc(BASE64_ENCODE_RAW_LENGTH(length) + 1);
    check(encoded != NULL);
    base64_encode_raw(encoded, length, (const uint8_t *)json_string_value(keep));
    json_t *value = json_stringn(encoded, BASE64_ENCODE_RAW_LENGTH(length));
    free(encoded);
    json_decref(keep);
    return value;
}

static json_t *run_base64decode(const struct hcl_call *call)
{
    json_t *keep, *value = NULL;

    if (!hcl_argument_text(call, 0, &keep))
        return NULL;
    const char *text = json_string_value(keep);
    size_t length = json_string_length(keep), written = BASE64_DECODE_LENGTH(length);
    uint8_t *decoded = malloc(written + 1);
    struct base64_decode_ctx context;
    check(decoded != NULL);
    base64_decode_init(&context);
    bool good = strpbrk(text, " \t\v\f") == NULL && /* of blanks only ends of lines are taken */
                base64_decode_update(&context, &written, decoded, length, text) == 1 &&
                base64_decode_final(&context) == 1;
    if (good && text_is_utf8((const char *)decoded, written))
        value = hcl_text((const char *)decoded, written);
    else
        (void)hcl_call_failed(call,
                              !good ? "needs base64" : "decodes text only, and this is not UTF-8");
    free(decoded);
    json_decref(keep);
    return value;
}

static json_t *run_urlencode(const struct hcl_call *call)
{
    static const char hex[] = "0123456789ABCDEF";
    struct hcl_buffer buffer = {0};
    json_t *keep;

    if (!hcl_argument_text(call, 0, &keep))
        return NULL;
    for (const char *at = json_string_value(keep); *at != '\0'; at++) {
        unsigned char byte = (unsigned char)*at;
        bool plain = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
                     (byte >= 'A' && byte <= 'Z') || strchr("-_.~", byte) != NULL;
        char escaped[3] = {'%', hex[byte >> 4], hex[byte & 15]};

        if (plain)
            hcl_buffer_add(&buffer, at, 1);
        else if (byte == ' ')
            hcl_buffer_add(&buffer, "+", 1);
        else
            hcl_buffer_add(&buffer, escaped, sizeof(escaped));
    }
    json_decref(keep);
    json_t *value = hcl_buffer_take(&buffer);
    return value != NULL ? value : hcl_call_failed(call, "makes a text that is too long");
}

/* --- digests, ids --- */

static json_t *digest(const struct hcl_call *call, const struct nettle_hash *kind)
{
    union {
        struct md5_ctx md5;
        struct sha1_ctx sha1;
        struct sha256_ctx sha256;
        struct sha512_ctx sha512;
    } context;
    uint8_t bytes[SHA512_DIGEST_SIZE];
    char text[2 * SHA512_DIGEST_SIZE];
    json_t *keep;

    check(kind->context_size <= sizeof(context) && kind->digest_size <= sizeof(bytes));
    if (!hcl_argument_text(call, 0, &keep))
        return NULL;
    kind->init(&context);
    kind->update(&context, json_string_length(keep), (const uint8_t *)json_string_value(keep));
    kind->digest(&context, kind->digest_size, bytes);
    json_decref(keep);
    for (unsigned i = 0; i < kind->digest_size; i++) {
        text[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
    return json_stringn(text, 2 * (size_t)kind->digest_size);
}

static json_t *run_md5(const struct hcl_call *call)
{
    return digest(call, &nettle_md5);
}

static json_t *run_sha1(const struct hcl_call *call)
{
    return digest(call, &nettle_sha1);
}

static json_t *run_sha256(const struct hcl_call *call)
{
    return digest(call, &nettle_sha256);
}

static json_t *run_sha512(const struct hcl_call *call)
{
    return digest(call, &nettle_sha512);
}

static json_t *run_uuidv4(const struct hcl_call *call)
{
    char text[UUID_TEXT_SIZE];
    uint64_t random[2];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return hcl_call_failed(call, "gets no random bytes from the kernel");
    uuid_format(text, random[0], random[1]);
    return json_string(text);
}

/* The sixteen bytes of TEXT, which is a UUID. */
static void uuid_bytes(uint8_t to[16], const char *text)
{
    unsigned digits = 0;

    memset(to, 0, 16);
    for (; *text != '\0'; text++) {
        if (*text == '-')
            continue;
        unsigned digit =
            *text <= '9' ? (unsigned)(*text - '0') : ((unsigned)*text | 32u) - 'a' + 10;
        to[digits / 2] = (uint8_t)((unsigned)to[digits / 2] << 4 | digit);
        digits++;
    }
}

/* uuidv5("dns", "example.org"): an id that the name has in its namespace (RFC 4122, 4.3). */
static json_t *run_uuidv5(const struct hcl_call *call)
{
    static const struct {
        const char *name, *uuid;
    } known[] = {
        {"dns", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"},
        {"url", "6ba7b811-9dad-11d1-80b4-00c04fd430c8"},
        {"oid", "6ba7b812-9dad-11d1-80b4-00c04fd430c8"},
        {"x500", "6ba7b814-9dad-11d1-80b4-00c04fd430c8"},
    };
    uint8_t bytes[SHA1_DIGEST_SIZE];
    char text[UUID_TEXT_SIZE];
    struct hcl_texts texts;
    struct sha1_ctx context;
    uint64_t halves[2] = {0};

    if (!hcl_texts_read(call, &texts, 2))
        return NULL;
    const char *space = texts.text[0];
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        if (text_equal(known[i].name, texts.text[0]))
            space = known[i].uuid;
    }
    if (!uuid_is_valid(space)) {
        (void)hcl_call_failed(call,
                              "needs \"dns\", \"url\", \"oid\", \"x500\" or a UUID for the "
                              "namespace, but got \"%.60s\"",
                              space);
        hcl_texts_drop(&texts);
        return NULL;
    }
    uuid_bytes(bytes, space);
    sha1_init(&context);
    sha1_update(&context, 16, bytes);
    sha1_update(&context, texts.length[1], (const uint8_t *)texts.text[1]);
    sha1_digest(&context, sizeof(bytes), bytes);
    for (int i = 0; i < 16; i++)
        halves[i / 8] = halves[i / 8] << 8 | bytes[i];
    uuid_format(text, halves[0], halves[1]);
    text[14] = '5'; /* the version */
    hcl_texts_drop(&texts);
    return json_string(text);
}

const struct hcl_function_row hcl_encoding_functions[] = {
    {"base64decode", 1, 1, run_base64decode},
    {"base64encode", 1, 1, run_base64encode},
    {"jsondecode", 1, 1, run_jsondecode},
    {"jsonencode", 1, 1, run_jsonencode},
    {"md5", 1, 1, run_md5},
    {"sha1", 1, 1, run_sha1},
    {"sha256", 1, 1, run_sha256},
    {"sha512", 1, 1, run_sha512},
    {"urlencode", 1, 1, run_urlencode},
    {"uuidv4", 0, 0, run_uuidv4},
    {"uuidv5", 2, 2, run_uuidv5},
    {NULL, 0, 0, NULL},
};
