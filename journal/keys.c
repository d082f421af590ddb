/* Keys and sealed values (part.h). */
#include "journal/part.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

struct key key_of_number(uint64_t number)
{
    struct key key = {.length = sizeof(number)};
    uint64_t big = htobe64(number);

    memcpy(key.bytes, &big, sizeof(big));
    return key;
}

struct key key_of_machine(const struct machine_id *id)
{
    struct key key;
    size_t length = strnlen(id->text, sizeof(id->text));

    check(id->kind < MACHINE_KIND_COUNT);
    check(length > 0);
    check(length < sizeof(id->text));
    key.bytes[0] = id->kind;
    memcpy(key.bytes + 1, id->text, length);
    key.length = length + 1;
    return key;
}

struct key key_of_text(const char *text)
{
    struct key key;
    size_t length = strnlen(text, JOURNAL_KEY_SIZE);

    check(length > 0);
    check(length < JOURNAL_KEY_SIZE); /* bounded where it enters */
    memcpy(key.bytes, text, length);
    key.length = length;
    return key;
}

struct store_bytes key_bytes(const struct key *key)
{
    return (struct store_bytes){.bytes = key->bytes, .length = key->length};
}

bool key_to_number(struct store_bytes bytes, uint64_t *ret_number)
{
    uint64_t big;

    if (bytes.length != sizeof(big))
        return false;
    memcpy(&big, bytes.bytes, sizeof(big));
    *ret_number = be64toh(big);
    return true;
}

bool key_to_text(struct store_bytes bytes, char *to, size_t size)
{
    if (bytes.length == 0 || bytes.length >= size || !text_is_utf8(bytes.bytes, bytes.length))
        return false;
    memset(to, 0, size);
    memcpy(to, bytes.bytes, bytes.length);
    return true;
}

bool key_to_machine(struct store_bytes bytes, struct machine_id *ret_id)
{
    const uint8_t *at = bytes.bytes;
    struct machine_id id;

    if (bytes.length < 2 || at[0] >= MACHINE_KIND_COUNT)
        return false;
    id.kind = at[0];
    if (!key_to_text((struct store_bytes){.bytes = at + 1, .length = bytes.length - 1}, id.text,
                     sizeof(id.text)))
        return false;
    *ret_id = id;
    return true;
}

static void print_raw(struct store_bytes bytes, char *to, size_t size)
{
    const uint8_t *at = bytes.bytes;
    char digits[3];

    check(size > sizeof("raw:"));
    text_copy(to, size, "raw:");
    for (size_t i = 0; i < bytes.length; i++) {
        text_format(digits, sizeof(digits), "%02x", at[i]);
        text_append(to, size, digits); /* a longer one is cut, and found by walking */
    }
}

void key_print(enum store_table table, struct store_bytes bytes, char *to, size_t size)
{
    struct machine_id id;
    uint64_t number;

    switch (table) {
    case STORE_LOG:
    case STORE_QUARANTINE:
        if (key_to_number(bytes, &number)) {
            text_format(to, size, "%llu", (unsigned long long)number);
            return;
        }
        break;
    case STORE_STATE:
    case STORE_BASE:
        if (key_to_machine(bytes, &id)) {
            check(size >= JOURNAL_KEY_SIZE);
            journal_key_of_id(&id, to);
            return;
        }
        break;
    case STORE_SPEC:
    case STORE_META:
        if (key_to_text(bytes, to, size))
            return;
        break;
    case STORE_TABLE_COUNT:
        break;
    }
    print_raw(bytes, to, size);
}

void journal_key_of_id(const struct machine_id *id, char ret_key[JOURNAL_KEY_SIZE])
{
    (void)text_format(ret_key, JOURNAL_KEY_SIZE, "%s/%s",
                      machine_kind_name((enum machine_kind)id->kind), id->text); /* fits */
}

bool journal_id_of_key(const char *key, struct machine_id *ret_id)
{
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
        const char *name = machine_kind_name((enum machine_kind)kind);
        struct machine_id id = {.kind = (uint8_t)kind};
        size_t length = strlen(name);

        if (strncmp(key, name, length) != 0 || key[length] != '/' || key[length + 1] == '\0')
            continue;
        if (!text_copy(id.text, sizeof(id.text), key + length + 1))
            return false;
        *ret_id = id;
        return true;
    }
    return false;
}

uint64_t key_seal(enum store_table table, struct store_bytes key)
{
    return hash_bytes((uint64_t)table + 1, key.bytes, key.length);
}

int value_put(struct store_txn *txn, enum store_table table, const struct key *key,
              const void *bytes, size_t length, struct err *err)
{
    uint64_t digest = codec_check(bytes, length, key_seal(table, key_bytes(key)));
    void *to;

    check(implies(length > 0, bytes != NULL));
    check(table != STORE_LOG && table != STORE_STATE && table != STORE_BASE); /* codec.cc's */
    int code = store_reserve(txn, table, key_bytes(key), length + sizeof(digest), &to, err);
    if (code < 0)
        return code;
    memcpy(to, &digest, sizeof(digest));
    if (length > 0)
        memcpy((uint8_t *)to + sizeof(digest), bytes, length);
    return 0;
}

bool value_open(enum store_table table, struct store_bytes key, struct store_bytes value,
                struct store_bytes *ret_bytes)
{
    uint64_t digest;

    if (value.length < sizeof(digest))
        return false;
    memcpy(&digest, value.bytes, sizeof(digest));
    struct store_bytes bytes = {.bytes = (const uint8_t *)value.bytes + sizeof(digest),
                                .length = value.length - sizeof(digest)};
    if (digest != codec_check(bytes.bytes, bytes.length, key_seal(table, key)))
        return false;
    check(bytes.length + sizeof(digest) == value.length);
    *ret_bytes = bytes;
    return true;
}
