#include "hooks/network/resolv.h"

#include "io/host.h"
#include "io/scope.h"

#include <string.h>

enum { RESOLV_BYTES_MAX = 64 * 1024 };

struct text {
    char bytes[RESOLV_BYTES_MAX];
    bool fits;
};

static void add(struct text *text, const char *part)
{
    text->fits = text_append(text->bytes, sizeof(text->bytes), part) && text->fits;
}

/* The lines of the host's file HOST whose first word is WORD; of more than one the last where only
 * that counts. */
static void add_lines_of(struct text *text, char *host, const char *word, bool all)
{
    const char *last = NULL;
    char *rest = host, *line;

    while ((line = strsep(&rest, "\n")) != NULL) {
        size_t length = strlen(word);

        line += strspn(line, " \t");
        if (strncmp(line, word, length) == 0 && (line[length] == ' ' || line[length] == '\t')) {
            if (all) {
                add(text, line);
                add(text, "\n");
            }
            last = line;
        }
        if (rest != NULL)
            rest[-1] = '\n'; /* as it was, for the next word */
    }
    if (all || last == NULL)
        return;
    size_t length = strcspn(last, "\n");
    char kept[1024];
    if (text_format(kept, sizeof(kept), "%.*s\n", (int)length, last))
        add(text, kept);
}

/* Each of VALUES behind WORD: on a line of its own, or all on one. */
static void add_values(struct text *text, const char *word, const json_t *values, bool each)
{
    json_t *value;
    size_t i;

    json_array_foreach((json_t *)(uintptr_t)values, i, value)
    {
        const char *said = json_string_value(value);

        if (said == NULL || strpbrk(said, "\n\r") != NULL)
            continue; /* it would be another line */
        add(text, each || i == 0 ? word : "");
        add(text, " ");
        add(text, said);
        add(text, each ? "\n" : "");
    }
    add(text, each ? "" : "\n");
}

int resolv_write(const char *path, const json_t *dns, struct err *err)
{
    static const struct {
        const char *word, *field;
        bool each;
    } parts[] = {{"search", "Searches", false},
                 {"nameserver", "Servers", true},
                 {"options", "Options", false}};
    scoped_string char *host = NULL;
    size_t length;
    struct text *text = calloc(1, sizeof(*text));

    check(text != NULL);
    text->fits = true;
    if (file_read("/etc/resolv.conf", RESOLV_BYTES_MAX, &host, &length, NULL) != 0)
        host = NULL; /* then the host says nothing */
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        const json_t *values = json_object_get(dns, parts[i].field);

        if (json_array_size(values) > 0)
            add_values(text, parts[i].word, values, parts[i].each);
        else if (host != NULL)
            add_lines_of(text, host, parts[i].word, parts[i].each);
    }
    int code = text->fits ? file_write_durable(path, text->bytes, strlen(text->bytes), 0644, err)
                          : err_set(err, ERR_LIMIT, "a resolv.conf of more than %d bytes",
                                    RESOLV_BYTES_MAX);
    free(text);
    return code;
}
