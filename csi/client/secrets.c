/*
 * Secrets: kept in memory of their own that is wiped before it is given back.
 *
 * Invariant: nothing here prints, and no other room can read a value again.
 */
#include "csi/client/part.h"

#include "base/list.h"

#include <string.h>

struct csi_secrets {
    struct csi_pair *items; /* keys and values are owned */
    size_t count, size;
    size_t bytes;
};

struct csi_secrets *csi_secrets_new(void)
{
    struct csi_secrets *secrets = calloc(1, sizeof(*secrets));

    check(secrets != NULL);
    return secrets;
}

static bool is_key(const char *key)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

    return key[0] != '\0' && key[strspn(key, letters)] == '\0';
}

static char *copy_text(const char *text)
{
    char *copy = strdup(text);

    check(copy != NULL);
    return copy;
}

int csi_secrets_add(struct csi_secrets *secrets, const char *key, const char *value,
                    struct err *err)
{
    size_t bytes = strlen(key) + strlen(value);

    if (!is_key(key) || !text_is_utf8(value, strlen(value)))
        return err_set(err, ERR_INVALID,
                       "the key of a secret has letters, digits, \"-\", \"_\" and \".\" only, and "
                       "its value is UTF-8");
    if (bytes > CSI_MAP_BYTES_MAX - secrets->bytes)
        return err_set(err, ERR_LIMIT, "there are more than %d bytes of secrets",
                       CSI_MAP_BYTES_MAX);
    secrets->bytes += bytes;
    *list_more(secrets) = (struct csi_pair){copy_text(key), copy_text(value)};
    return 0;
}

static void wipe(const char *text)
{
    explicit_bzero((char *)(uintptr_t)text, strlen(text)); /* ours, and not read again */
    free((char *)(uintptr_t)text);
}

void csi_secrets_free(struct csi_secrets *secrets)
{
    if (secrets == NULL)
        return;
    for (size_t i = 0; i < secrets->count; i++) {
        wipe(secrets->items[i].key);
        wipe(secrets->items[i].value);
    }
    free(secrets->items);
    free(secrets);
}

size_t csi_secrets_count(const struct csi_secrets *secrets)
{
    return secrets == NULL ? 0 : secrets->count;
}

const struct csi_pair *csi_secrets_pairs(const struct csi_secrets *secrets)
{
    return secrets == NULL ? NULL : secrets->items;
}

struct csi_secrets *csi_secrets_copy(const struct csi_secrets *secrets)
{
    if (secrets == NULL)
        return NULL;
    struct csi_secrets *copy = csi_secrets_new();
    for (size_t i = 0; i < secrets->count; i++)
        check(csi_secrets_add(copy, secrets->items[i].key, secrets->items[i].value, NULL) == 0);
    return copy;
}

/* The length of the longest value that TEXT begins with, 0: none. */
static size_t secret_at(const struct csi_secrets *secrets, const char *text)
{
    size_t longest = 0;

    for (size_t i = 0; i < csi_secrets_count(secrets); i++) {
        size_t length = strlen(secrets->items[i].value);

        if (length > longest && strncmp(text, secrets->items[i].value, length) == 0)
            longest = length;
    }
    return longest;
}

void csi_secrets_hide(const struct csi_secrets *secrets, const char *text, char *to, size_t size)
{
    size_t used = 0;

    for (const char *at = text; *at != '\0';) {
        size_t length = secret_at(secrets, at), put = length > 0 ? 3 : 1;

        if (used + put >= size)
            break;
        memcpy(to + used, length > 0 ? "***" : at, put);
        used += put;
        at += length > 0 ? length : 1;
    }
    to[used] = '\0';
    text_whole(to);
}
