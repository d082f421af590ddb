/* Templates of one task, rendered for the daemon, which opens the files that they read. */
#include "spec/parser/part.h"

#include "base/text.h"
#include "spec/json.h"
#include "spec/rendering.h"
#include "spec/template.h"

#include <stdlib.h>
#include <string.h>

struct message {
    char kind;
    char *bytes; /* owned, with a NUL behind it */
    size_t length;
};

static void read_all(void *to, size_t length)
{
    uint8_t *at = to;

    while (length > 0) {
        size_t got = parser_read(at, length);

        if (got == 0)
            parser_end(0); /* nobody asks any more */
        at += got;
        length -= got;
    }
}

static struct message await(void)
{
    uint8_t head[RENDERING_HEAD_SIZE];
    struct message message;

    read_all(head, sizeof(head));
    message.kind = rendering_head_read(head, &message.length);
    check(message.length <= RENDERING_NAMES_MAX);
    message.bytes = malloc(message.length + 1);
    check(message.bytes != NULL);
    read_all(message.bytes, message.length);
    message.bytes[message.length] = '\0';
    return message;
}

static void say(char kind, const void *bytes, size_t length)
{
    uint8_t head[RENDERING_HEAD_SIZE];

    rendering_head(head, kind, length);
    if (!parser_write(head, sizeof(head)) || !parser_write(bytes, length))
        parser_end(0); /* nobody listens any more */
}

static const char *find_name(void *ctx, const char *name, size_t length)
{
    return json_string_value(json_object_getn(ctx, name, length));
}

static int read_file(void *ctx, const char *path, char **ret_text, size_t *ret_length,
                     struct err *err)
{
    (void)ctx;
    say(RENDER_ASKS, path, strlen(path));
    struct message message = await();
    if (message.kind == RENDER_FILE) {
        *ret_text = message.bytes;
        *ret_length = message.length;
        return 0;
    }
    int code = rendering_failure_read((const uint8_t *)message.bytes, message.length, err);
    free(message.bytes);
    return code;
}

static json_t *ask_daemon(const char *question, struct err *err)
{
    json_t *answer = NULL;

    say(RENDER_ASKS_OTHERS, question, strlen(question));
    struct message message = await();
    if (message.kind == RENDER_ANSWER) {
        answer = json_loadb(message.bytes, message.length, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
        if (answer == NULL) /* a name in it has a NUL byte */
            (void)err_set(err, ERR_INVALID, "what others tell of it cannot be read");
    } else {
        (void)rendering_failure_read((const uint8_t *)message.bytes, message.length, err);
    }
    free(message.bytes);
    return answer;
}

/* The same of all templates of a task: each question is asked until it is answered, once. */
static const json_t *ask_others(void *ctx, const struct spec_question *question, bool needed,
                                struct err *err)
{
    static const char *const kinds[] = {
#define X(name, text) text,
        SPEC_QUESTIONS(X)
#undef X
    };
    static json_t *answers;
    json_t *asked = json_pack("{s:s, s:s, s:s, s:b}", "kind", kinds[question->kind], "namespace",
                              question->namespace, "name", question->name, "needed", needed);
    char *text = json_dumps(asked, JSON_COMPACT);

    (void)ctx;
    check(text != NULL); /* all of it is UTF-8 */
    json_decref(asked);
    if (answers == NULL)
        answers = json_object();
    json_t *answer = json_object_get(answers, text);
    if (answer == NULL) {
        answer = ask_daemon(text, err);
        check(answer == NULL || json_object_set_new(answers, text, answer) == 0);
    }
    free(text);
    return answer;
}

static void render(json_t *names, const json_t *how, const struct message *text)
{
    uint8_t failure[RENDERING_FAILURE_SIZE];
    struct template *template;
    struct err err = {0};
    bool asks_time = false;
    char *made;
    size_t length;
    const struct template_world world = {
        .ctx = names,
        .find = find_name,
        .read = read_file,
        .ask = ask_others,
        .now_unix_ns = json_integer_value(json_object_get(how, "now")),
        .asks_time = &asks_time,
        .strict = json_is_true(json_object_get(how, "strict")),
    };

    int code =
        template_parse(text->bytes, text->length, text_of(how, "left"), text_of(how, "right"),
                       json_is_true(json_object_get(how, "alone")), &template, &err);
    if (code == 0) {
        code = template_render(template, &world, &made, &length, &err);
        template_free(template);
    }
    if (code != 0) {
        say(RENDER_FAILED, failure, rendering_failure(failure, &err));
        return;
    }
    say(asks_time ? RENDER_SAYS_NOW : RENDER_SAYS, made, length);
    free(made);
}

_Noreturn void parser_render(void)
{
    json_t *names = NULL, *how = NULL;

    for (;;) {
        struct message message = await();

        if (message.kind == RENDER_TEXT) {
            render(names, how, &message);
        } else {
            json_t **to = message.kind == RENDER_NAMES ? &names : &how;
            json_decref(*to);
            *to = json_loadb(message.bytes, message.length, JSON_ALLOW_NUL, NULL);
            check(*to != NULL);
        }
        free(message.bytes);
    }
}
