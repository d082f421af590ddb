/*
 * The URL that a check asks for: its path is a reference, resolved as Go's net/url does it on a
 * host that has no path of its own.
 *
 * A reference to another host is refused: what a check says is said of its service.
 */
#include "hooks/services/part.h"

#include <string.h>

/* A reference, cut into what is sent of it. */
struct reference {
    char *path;        /* without dots */
    const char *query; /* with its "?", "": none */
};

static int refuse(struct err *err, const char *why)
{
    return err_set(err, ERR_INVALID, "its path %s", why);
}

/* A scheme or a host. */
static bool names_host(const char *text)
{
    size_t length = strcspn(text, ":/?#");

    return text[length] == ':' || text_starts_with(text, "//");
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* With an escape for what is not PLAIN, unless it is one; TO has room for three bytes of each. */
static bool escape(const char *from, size_t length, const char *plain, char *to)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)from[i];

        if (c < ' ' || c == 0x7f)
            return false;
        bool is_plain = c < 0x80 && strchr(plain, c) != NULL;
        if (c == '%' && !is_plain) {
            if (i + 2 >= length || !is_hex(from[i + 1]) || !is_hex(from[i + 2]))
                return false;
            is_plain = true;
        }
        if (is_plain)
            *to++ = (char)c;
        else {
            (void)text_format(to, 4, "%%%02X", c); /* fits, with its NUL */
            to += 3;
        }
    }
    *to = '\0';
    return true;
}

/* Takes the last part of what has been written up to END; where that is then. */
static char *go_up(char *begin, char *end)
{
    while (end > begin && end[-1] != '/')
        end--;
    return end > begin ? end - 1 : begin;
}

/* The parts of PATH behind each other, each with its slash before it, "." and ".." done away with;
 * TO has room for one byte more. */
static void resolve(const char *path, char *to)
{
    char *end = to;
    bool is_directory = false;

    for (path += *path == '/'; *path != '\0';) {
        size_t length = strcspn(path, "/");
        bool up = length == 2 && memcmp(path, "..", 2) == 0;

        is_directory = up || (length == 1 && *path == '.');
        if (up)
            end = go_up(to, end);
        if (!is_directory) {
            *end++ = '/';
            memcpy(end, path, length);
            end += length;
        }
        path += length;
        if (*path == '/' && *++path == '\0')
            is_directory = true;
    }
    if (is_directory || end == to)
        *end++ = '/';
    *end = '\0';
}

static const char plain_in_path[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                    "-._~!$&'()*+,;=:@/[]";
static const char plain_in_query[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    "-._~!$&'()*+,;=:@/[]?%\\^`{|}\"<>";

static int split(struct arena *arena, const char *text, struct reference *ret_reference,
                 struct err *err)
{
    size_t path_length = strcspn(text, "?#"), length = strcspn(text, "#");
    char *escaped = arena_new(arena, 3 * path_length + 4);
    char *query = arena_new(arena, 3 * (length - path_length) + 4);

    if (names_host(text))
        return refuse(err, "leads to another host");
    if (!escape(text, path_length, plain_in_path, escaped))
        return refuse(err, "has an escape or a control character that no URL has");
    ret_reference->path = arena_new(arena, strlen(escaped) + 3);
    if (path_length > 0)
        resolve(escaped, ret_reference->path);
    if (!escape(text + path_length, length - path_length, plain_in_query, query))
        return refuse(err, "has an escape or a control character that no URL has");
    ret_reference->query = query;
    return 0;
}

int services_url(struct arena *arena, const char *protocol, const char *authority, const char *path,
                 char **ret_url, struct err *err)
{
    struct reference reference = {0};
    int code = split(arena, path, &reference, err);

    if (code != 0)
        return code;
    size_t size = strlen(protocol) + sizeof("://") + strlen(authority) + strlen(reference.path) +
                  strlen(reference.query);
    *ret_url = arena_new(arena, size);
    (void)text_format(*ret_url, size, "%s://%s%s%s", protocol, authority, reference.path,
                      reference.query); /* made to fit */
    return 0;
}
