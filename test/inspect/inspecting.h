/* Running `cairn journal` in a test: a directory of its own, what it printed, forged journals. */
#ifndef CAIRN_TEST_INSPECT_INSPECTING_H
#define CAIRN_TEST_INSPECT_INSPECTING_H

#include "test/core/small_node.h"

#include "inspect/inspect.h"
#include "io/host.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { WORDS_MAX = 16 };

struct inspecting {
    char path[128];    /* the directory */
    char journal[160]; /* where the story's journal is */
    char *out, *complain;
};

static inline int inspecting_make(void **state)
{
    struct inspecting *inspecting = calloc(1, sizeof(*inspecting));
    char made[] = "/tmp/cairn-test-XXXXXX";

    assert_non_null(inspecting);
    assert_non_null(mkdtemp(made));
    (void)text_copy(inspecting->path, sizeof(inspecting->path), made);
    (void)text_format(inspecting->journal, sizeof(inspecting->journal), "%s/journal", made);
    *state = inspecting;
    return 0;
}

static inline int inspecting_remove(void **state)
{
    struct inspecting *inspecting = *state;
    struct err err = {0};
    int code = tree_remove(inspecting->path, &err);

    free(inspecting->out);
    free(inspecting->complain);
    free(inspecting);
    return code;
}

/* With the journal of small_story. */
static inline int inspecting_make_story(void **state)
{
    struct inspecting *inspecting;
    struct small_node node;

    (void)inspecting_make(state);
    inspecting = *state;
    small_open(&node, inspecting->journal);
    small_story(&node);
    small_close(&node);
    return 0;
}

/* Runs LINE ("list -kind task"); @ in it is the test's directory.  The exit status. */
static inline int run(struct inspecting *inspecting, const char *line)
{
    char words[1024] = "", *argv[WORDS_MAX + 1], *rest = words;
    size_t size;
    int argc = 0;

    for (const char *at = line; *at != '\0'; at++) {
        char one[2] = {*at, '\0'};
        assert_true(text_append(words, sizeof(words), *at == '@' ? inspecting->path : one));
    }
    for (char *word = strsep(&rest, " "); word != NULL; word = strsep(&rest, " ")) {
        assert_true(argc < WORDS_MAX);
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    free(inspecting->out);
    free(inspecting->complain);
    FILE *out = open_memstream(&inspecting->out, &size);
    FILE *complain = open_memstream(&inspecting->complain, &size);
    assert_non_null(out);
    assert_non_null(complain);
    int status = inspect_run(argc, argv, out, complain);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(fclose(complain), 0);
    return status;
}

static inline void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" is not in:\n%s", part, text);
}

static inline void assert_lacks(const char *text, const char *part)
{
    if (strstr(text, part) != NULL)
        fail_msg("\"%s\" is in:\n%s", part, text);
}

/* The line of TEXT that has PART, without its end; borrowed until the next call. */
static inline const char *line_with(const char *text, const char *part)
{
    static char line[4096];
    const char *at = strstr(text, part);

    if (at == NULL)
        fail_msg("\"%s\" is not in:\n%s", part, text);
    while (at > text && at[-1] != '\n')
        at--;
    (void)text_format(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
    return line;
}

static inline size_t count_lines(const char *text)
{
    size_t count = 0;

    for (; *text != '\0'; text++)
        count += *text == '\n';
    return count;
}

/* The whole file, owned by the caller.  Not inline: gcc 12 then warns of a pointer that dangles
 * where none does. */
static __attribute__((noinline, unused)) char *read_text(const char *path)
{
    struct err err = {0};
    char *bytes;
    size_t length;

    if (file_read(path, 64 << 20, &bytes, &length, &err) < 0)
        fail_msg("%s", err.text);
    return bytes;
}

/* --- forging: export, change a line, import --- */

/* Changes one line of an export; false drops it. */
typedef bool forge_line(json_t *line, void *ctx);

/* Makes the journal @/forged from that of the story. */
static inline void forge(struct inspecting *inspecting, forge_line *change, void *ctx)
{
    char path[192], *rest;

    assert_int_equal(run(inspecting, "export -dir @/journal -out @/whole"), 0);
    (void)text_format(path, sizeof(path), "%s/whole", inspecting->path);
    char *text = rest = read_text(path);
    (void)text_format(path, sizeof(path), "%s/changed", inspecting->path);
    FILE *to = fopen(path, "we");
    assert_non_null(to);
    for (char *line = strsep(&rest, "\n"); line != NULL && *line != '\0';
         line = strsep(&rest, "\n")) {
        json_t *json = json_loads(line, 0, NULL);
        assert_non_null(json);
        if (change(json, ctx)) {
            char *dumped = json_dumps(json, JSON_COMPACT);
            (void)fprintf(to, "%s\n", dumped);
            free(dumped);
        }
        json_decref(json);
    }
    assert_int_equal(fclose(to), 0);
    free(text);
    if (run(inspecting, "import @/changed @/forged") != 0)
        fail_msg("%s", inspecting->complain);
}

static inline bool line_is(const json_t *line, const char *table)
{
    const char *name = json_string_value(json_object_get(line, "table"));

    return name != NULL && text_equal(name, table);
}

static inline json_t *entry_of(const json_t *line)
{
    return json_object_get(line, "entry");
}

static inline const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text == NULL ? "" : text;
}

#endif
