/* Asking the inspector in a test: a directory of its own, what it printed, forged journals. */
#ifndef CAIRN_TEST_INSPECT_INSPECTING_H
#define CAIRN_TEST_INSPECT_INSPECTING_H

#include "test/core/small_node.h"

#include "inspect/inspect.h"
#include "io/host.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { WORDS_MAX = 16 };

struct inspecting {
    char path[128];       /* the directory */
    char journal[160];    /* where the story's journal is */
    char *out, *complain; /* printed and said by the last question, a line each; owned */
};

static inline int inspecting_make(void **state)
{
    struct inspecting *inspecting = calloc(1, sizeof(*inspecting));
    bool shared = access("/dev/shm", W_OK) == 0; /* in memory: each journal syncs */
    char made[32];

    assert_non_null(inspecting);
    (void)text_copy(made, sizeof(made),
                    shared ? "/dev/shm/cairn-test-XXXXXX" : "/tmp/cairn-test-XXXXXX");
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
    int code = tree_remove(AT_FDCWD, inspecting->path, &err);

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

/* --- asking --- */

struct question {
    char *words[WORDS_MAX + 1]; /* as the command line has them, NULL behind the last */
    struct inspect_options options;
    FILE *complain;
    struct err err;
};

static inline bool has_word(const struct question *question, const char *flag)
{
    for (size_t i = 0; question->words[i] != NULL; i++) {
        if (text_equal(question->words[i], flag))
            return true;
    }
    return false;
}

static inline const char *word_behind(const struct question *question, const char *flag)
{
    for (size_t i = 0; question->words[i] != NULL; i++) {
        if (text_equal(question->words[i], flag))
            return question->words[i + 1];
    }
    return NULL;
}

static inline int64_t duration_behind(const struct question *question, const char *flag,
                                      int64_t otherwise)
{
    const char *word = word_behind(question, flag);
    int64_t ns = otherwise;

    assert_true(word == NULL || text_to_duration_ns(word, &ns));
    return ns;
}

static inline uint64_t number_behind(const struct question *question, const char *flag)
{
    const char *word = word_behind(question, flag);
    uint64_t number = 0;

    assert_true(word == NULL || text_to_u64(word, &number));
    return number;
}

static inline void inspecting_say(void *ctx, const char *text)
{
    struct question *question = ctx;

    (void)fprintf(question->complain, "%s\n", text);
}

static inline void read_options(struct question *question)
{
    const char *name = word_behind(question, "-kind");
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
    question->options.say = inspecting_say;
    question->options.say_ctx = question;
    question->options.now_unix_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    question->options.json = has_word(question, "-json");
    question->options.reveal = has_word(question, "-reveal");
    question->options.all = has_word(question, "-all");
    question->options.follow = has_word(question, "-f");
    question->options.alloc = word_behind(question, "-alloc");
    question->options.state = word_behind(question, "-state");
    question->options.event = word_behind(question, "-event");
    question->options.since = word_behind(question, "-since");
    question->options.until = word_behind(question, "-until");
    for (unsigned kind = 0; name != NULL && kind < MACHINE_KIND_COUNT; kind++) {
        if (text_equal(machine_kind_name((enum machine_kind)kind), name))
            question->options.kinds = 1u << kind;
    }
    assert_true(name == NULL || question->options.kinds != 0);
}

static inline int ask(struct question *question, struct inspect *inspect)
{
    const char *verb = question->words[0], *first = question->words[1];
    struct err *err = &question->err;
    struct inspect_verdict verdict;

    if (text_equal(verb, "list"))
        return inspect_list(inspect, duration_behind(question, "-age", 0), err);
    if (text_equal(verb, "show"))
        return inspect_show(inspect, first, err);
    if (text_equal(verb, "log"))
        return inspect_log(inspect, number_behind(question, "-n"), err);
    if (text_equal(verb, "at"))
        return inspect_at(inspect, first, err);
    if (text_equal(verb, "diff"))
        return inspect_diff(inspect, first, question->words[2], err);
    if (text_equal(verb, "stats"))
        return inspect_stats(inspect, err);
    if (text_equal(verb, "compact"))
        return inspect_compact(inspect, first, err);
    if (text_equal(verb, "export"))
        return inspect_export(inspect, word_behind(question, "-out"), has_word(question, "-redact"),
                              err);
    if (text_equal(verb, "quarantine"))
        return inspect_quarantine(inspect, number_behind(question, "show"), err);
    if (text_equal(verb, "timeline")) {
        struct inspect_drawing drawing = {
            .html = word_behind(question, "-html"),
            .columns = (int64_t)number_behind(question, "-width"),
        };
        return inspect_timeline(inspect, &drawing, err);
    }
    if (text_equal(verb, "restore")) {
        struct inspect_restart restart = {
            .rebooted = has_word(question, "-rebooted"),
            .servers = has_word(question, "-servers"),
            .away_ns = duration_behind(question, "-after", -1),
        };
        return inspect_restore(inspect, &restart, err);
    }
    assert_string_equal(verb, "verify");
    int code = inspect_findings(inspect, &verdict, err);
    return code == 0 && verdict.bad > 0 ? ERR_CORRUPT : code;
}

static inline int ask_journal(struct question *question)
{
    const char *path = word_behind(question, "-dir");
    struct inspect *inspect;
    uint64_t entries;

    if (text_equal(question->words[0], "import"))
        return inspect_import(question->words[1], question->words[2], &entries, &question->err);
    if (has_word(question, "drop"))
        return inspect_quarantine_drop(path, number_behind(question, "drop"), &question->err);
    int code = inspect_open(path, &question->options, &inspect, &question->err);
    if (code < 0)
        return code;
    code = ask(question, inspect);
    if (code == 0 && inspect_damaged(inspect) > 0)
        code = ERR_CORRUPT;
    inspect_close(inspect);
    return code;
}

/* Asks what LINE says ("list -kind task", words as people type them for `cairn journal`); @ in it
 * is the test's directory.  0, or 1 when it fails, something is damaged or verify finds it wrong.
 */
static inline int run(struct inspecting *inspecting, const char *line)
{
    char words[1024] = "", *rest = words;
    struct question question = {.words = {NULL}};
    size_t size, count = 0;

    for (const char *at = line; *at != '\0'; at++) {
        char one[2] = {*at, '\0'};
        assert_true(text_append(words, sizeof(words), *at == '@' ? inspecting->path : one));
    }
    for (char *word = strsep(&rest, " "); word != NULL; word = strsep(&rest, " ")) {
        assert_true(count < WORDS_MAX);
        question.words[count++] = word;
    }
    free(inspecting->out);
    free(inspecting->complain);
    question.options.out = open_memstream(&inspecting->out, &size);
    question.complain = open_memstream(&inspecting->complain, &size);
    assert_non_null(question.options.out);
    assert_non_null(question.complain);
    read_options(&question);
    int code = ask_journal(&question);
    if (question.err.text[0] != '\0')
        inspecting_say(&question, question.err.text);
    assert_int_equal(fclose(question.options.out), 0);
    assert_int_equal(fclose(question.complain), 0);
    return code < 0 ? 1 : 0;
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
