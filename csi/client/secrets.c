/*
 * Secrets: kept in memory of their own that is wiped before it is given back.
 *
 * What a volume is mounted with may be secret, too ("password=..."), and plugins like to repeat it
 * when a mount fails.  It is hidden where it stands as a word: "ro" is no secret inside of "error".
 *
 * What is left of a text shows what is not in it: one without a secret of a letter or two shows
 * that secret to whoever compares a few of them.  So nothing is shown of any text beside such a
 * one.
 *
 * Invariant: nothing here prints, and no other room can read a value again.
 */
#include "csi/client/part.h"

#include "base/list.h"

#include <ctype.h>
#include <string.h>

enum { SECRET_MIN = 3 }; /* bytes that can be hidden in a text */

struct csi_secrets {
    struct csi_pair *items; /* keys and values are owned */
    size_t count, size;
    size_t bytes;
    struct {
        char **items; /* owned */
        size_t count, size;
    } words; /* to be hidden, and never sent */
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
    for (size_t i = 0; i < secrets->words.count; i++)
        wipe(secrets->words.items[i]);
    free(secrets->words.items);
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

static void add_word(struct csi_secrets *secrets, const char *word, size_t length)
{
    if (length == 0)
        return;
    char *copy = strndup(word, length);
    check(copy != NULL);
    *list_more(&secrets->words) = copy;
}

/* FLAG is one mount option, or several with commas between them: each is hidden, and its value
 * alone. */
static void add_flag(struct csi_secrets *secrets, const char *flag)
{
    for (const char *part = flag;; part++) {
        size_t length = strcspn(part, ",");
        const char *value = memchr(part, '=', length);

        add_word(secrets, part, length);
        if (value != NULL)
            add_word(secrets, value + 1, (size_t)(part + length - value) - 1);
        part += length;
        if (*part == '\0')
            return;
    }
}

/* More than one map may hold, perhaps: nothing of this is sent. */
static void add_values(struct csi_secrets *secrets, const struct csi_secrets *from)
{
    for (size_t i = 0; i < csi_secrets_count(from); i++)
        *list_more(secrets) =
            (struct csi_pair){copy_text(from->items[i].key), copy_text(from->items[i].value)};
}

static void add_flags(struct csi_secrets *secrets, const char *const *flags, size_t count)
{
    for (size_t i = 0; i < count; i++)
        add_flag(secrets, flags[i]);
}

struct csi_secrets *csi_secrets_of(const struct csi_request *request)
{
    const struct csi_hidden *hidden = &request->hidden;
    struct csi_secrets *secrets = csi_secrets_new();

    add_values(secrets, request->secrets);
    add_values(secrets, hidden->secrets);
    for (size_t i = 0; i < request->capabilities_count; i++)
        add_flags(secrets, request->capabilities[i].flags, request->capabilities[i].flags_count);
    add_flags(secrets, hidden->flags, hidden->flags_count);
    return secrets;
}

static bool is_of_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* True if WORD of LENGTH, which is at AT in TEXT, is no part of a longer one there. */
static bool stands_alone(const char *text, const char *at, const char *word, size_t length)
{
    bool begins = at == text || !is_of_word(at[-1]) || !is_of_word(word[0]);

    return begins && (!is_of_word(at[length]) || !is_of_word(word[length - 1]));
}

/* The length of the longest secret at AT in TEXT, 0: none. */
static size_t secret_at(const struct csi_secrets *secrets, const char *text, const char *at)
{
    size_t longest = 0;

    for (size_t i = 0; i < secrets->count; i++) {
        size_t length = strlen(secrets->items[i].value);

        if (length > longest && strncmp(at, secrets->items[i].value, length) == 0)
            longest = length;
    }
    for (size_t i = 0; i < secrets->words.count; i++) {
        const char *word = secrets->words.items[i];
        size_t length = strlen(word);

        if (length > longest && strncmp(at, word, length) == 0 &&
            stands_alone(text, at, word, length))
            longest = length;
    }
    return longest;
}

/* A value that whatever surrounds it gives away. */
static bool has_short_one(const struct csi_secrets *secrets)
{
    for (size_t i = 0; i < secrets->count; i++) {
        size_t length = strlen(secrets->items[i].value);

        if (length > 0 && length < SECRET_MIN)
            return true;
    }
    return false;
}

void csi_secrets_hide(const struct csi_secrets *secrets, const char *text, char *to, size_t size)
{
    size_t used = 0;

    if (text[0] != '\0' && has_short_one(secrets)) {
        (void)text_copy(to, size,
                        "(hidden: a secret of the volume is too short to be blanked out)");
        return;
    }
    for (const char *at = text; *at != '\0';) {
        size_t length = secret_at(secrets, text, at), put = length > 0 ? 3 : 1;

        if (used + put >= size)
            break;
        memcpy(to + used, length > 0 ? "***" : at, put);
        used += put;
        at += length > 0 ? length : 1;
    }
    to[used] = '\0';
    text_whole(to);
}
