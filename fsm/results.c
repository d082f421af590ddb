/* Packed entries: hook, kind, key length, 0, value length (u32), key bytes, value bytes. */
#include "fsm/results.h"

#include <string.h>

enum { HEAD_BYTES = 8 };

static uint32_t value_length_at(const uint8_t *entry)
{
    uint32_t length;

    memcpy(&length, entry + 4, sizeof(length));
    return length;
}

static uint32_t entry_bytes(const uint8_t *entry)
{
    return HEAD_BYTES + entry[2] + value_length_at(entry);
}

/* Bytes of a whole well-formed entry at AT, 0 if there is none. */
static uint32_t entry_at(const uint8_t *bytes, uint32_t used, uint32_t at)
{
    if (at > used || used - at < HEAD_BYTES)
        return 0;
    const uint8_t *entry = bytes + at;
    uint32_t value = value_length_at(entry);
    if (entry[1] >= RESULT_KIND_COUNT || entry[3] != 0 || value > RESULT_VALUE_MAX ||
        used - at - HEAD_BYTES < entry[2] + value)
        return 0;
    return entry_bytes(entry);
}

static int compare(const uint8_t *entry, uint8_t hook, uint8_t kind, const char *key,
                   size_t key_length)
{
    if (entry[0] != hook)
        return entry[0] < hook ? -1 : 1;
    if (entry[1] != kind)
        return entry[1] < kind ? -1 : 1;
    size_t shorter = entry[2] < key_length ? entry[2] : key_length;
    int order = memcmp(entry + HEAD_BYTES, key, shorter);
    if (order != 0)
        return order;
    return entry[2] == key_length ? 0 : entry[2] < key_length ? -1 : 1;
}

static void cut(struct results *results, uint32_t at, uint32_t count)
{
    check(at <= results->used);
    check(count <= results->used - at);
    memmove(results->bytes + at, results->bytes + at + count, results->used - at - count);
    results->used -= count;
    memset(results->bytes + results->used, 0, count); /* equal results are equal bytes */
}

int results_set(struct results *results, uint8_t hook, enum result_kind kind, const char *key,
                const void *value, uint32_t length)
{
    check(results->used <= results->size);
    check((unsigned)kind < RESULT_KIND_COUNT);

    size_t key_length = strlen(key);
    if (key_length > RESULT_KEY_MAX || length > RESULT_VALUE_MAX)
        return ERR_LIMIT;

    uint32_t at = 0, need = HEAD_BYTES + (uint32_t)key_length + length, old = 0;
    while (at < results->used) {
        int order = compare(results->bytes + at, hook, (uint8_t)kind, key, key_length);
        if (order == 0)
            old = entry_bytes(results->bytes + at);
        if (order >= 0)
            break;
        at += entry_bytes(results->bytes + at);
    }
    if (results->used - old + need > results->size)
        return ERR_LIMIT;

    if (old > 0)
        cut(results, at, old);
    uint8_t *entry = results->bytes + at;
    memmove(entry + need, entry, results->used - at);
    results->used += need;
    entry[0] = hook;
    entry[1] = (uint8_t)kind;
    entry[2] = (uint8_t)key_length;
    entry[3] = 0;
    memcpy(entry + 4, &length, sizeof(length));
    memcpy(entry + HEAD_BYTES, key, key_length);
    if (length > 0)
        memcpy(entry + HEAD_BYTES + key_length, value, length);
    check(results->used <= results->size);
    check(entry_bytes(entry) == need);
    return 0;
}

void results_clear(struct results *results, uint8_t hook)
{
    check(results->used <= results->size);
    for (uint32_t at = 0; at < results->used;) {
        uint32_t bytes = entry_bytes(results->bytes + at);
        if (results->bytes[at] == hook)
            cut(results, at, bytes);
        else
            at += bytes;
    }
}

int results_take(struct results *results, uint8_t hook, const uint8_t *from, uint32_t length)
{
    struct result result;

    results_clear(results, hook);
    for (uint32_t at = 0; results_next(from, length, &at, &result);) {
        int code = results_set(results, hook, (enum result_kind)result.kind, result.key,
                               result.value, result.value_length);
        if (code < 0) {
            results_clear(results, hook);
            return code;
        }
    }
    return 0;
}

bool results_have_room(const struct results *results, uint8_t hook, uint32_t bytes)
{
    uint32_t others = 0;

    check(results->used <= results->size);
    for (uint32_t at = 0; at < results->used; at += entry_bytes(results->bytes + at)) {
        if (results->bytes[at] != hook)
            others += entry_bytes(results->bytes + at);
    }
    return bytes <= results->size - others;
}

bool results_next(const uint8_t *bytes, uint32_t used, uint32_t *at, struct result *ret_result)
{
    uint32_t length = entry_at(bytes, used, *at);

    if (length == 0)
        return false;
    const uint8_t *entry = bytes + *at;
    ret_result->hook = entry[0];
    ret_result->kind = entry[1];
    memcpy(ret_result->key, entry + HEAD_BYTES, entry[2]);
    ret_result->key[entry[2]] = '\0';
    ret_result->value = (const char *)entry + HEAD_BYTES + entry[2];
    ret_result->value_length = value_length_at(entry);
    *at += length;
    check(*at <= used);
    return true;
}

bool results_valid(const uint8_t *bytes, uint32_t used)
{
    uint32_t at = 0, previous = 0;

    while (at < used) {
        uint32_t length = entry_at(bytes, used, at);
        if (length == 0)
            return false;
        const uint8_t *entry = bytes + at;
        if (memchr(entry + HEAD_BYTES, 0, entry[2]) != NULL)
            return false;
        if (at > 0 && compare(bytes + previous, entry[0], entry[1],
                              (const char *)entry + HEAD_BYTES, entry[2]) >= 0)
            return false;
        previous = at;
        at += length;
    }
    return true;
}
