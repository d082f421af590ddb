/* Whatever a renderer may say, to a daemon that asks it for two templates. */
#include "test/fuzz.h"

#include "io/helper.h"

static struct fuzz_input said;
static unsigned running;

static int fake_start(const char *program, const char *name, const char *argument,
                      uint64_t until_ms, struct helper *ret_helper, struct err *err)
{
    (void)program;
    (void)argument;
    (void)err;
    running++;
    *ret_helper =
        (struct helper){.name = name, .pid = -1, .pidfd = -1, .socket = -1, .until_ms = until_ms};
    return 0;
}

static bool fake_send(const struct helper *helper, const void *bytes, size_t length)
{
    check(helper->pid == -1 && (bytes != NULL || length == 0));
    return running == 1;
}

/* In portions, as a socket has it. */
static size_t fake_receive(const struct helper *helper, void *to, size_t length)
{
    size_t portion = said.left < 7 ? said.left : 7;

    check(helper->pid == -1);
    if (portion > length)
        portion = length;
    if (portion > 0)
        memcpy(to, said.at, portion);
    said.at += portion;
    said.left -= portion;
    return portion;
}

static int fake_end(struct helper *helper, bool awaits, struct err *err)
{
    (void)awaits;
    check(helper->pid == -1 && running == 1);
    running--;
    return err_set(err, ERR_IO, "it has ended");
}

#define helper_start fake_start
#define helper_send fake_send
#define helper_receive fake_receive
#define helper_end fake_end
#include "hooks/render/renderer.c"

static int read_file(void *ctx, const char *path, char **ret_text, size_t *ret_length,
                     struct err *err)
{
    check(ctx == &said && path != NULL);
    if (path[0] != '/')
        return err_set(err, ERR_REFUSED, "it is not in the directory of the task");
    *ret_text = strdup(path);
    *ret_length = strlen(path);
    return 0;
}

static int answer_others(void *ctx, const char *question, const char **ret_text, struct err *err)
{
    check(ctx == &said && question != NULL);
    if (said.left % 3 == 2)
        return err_set(err, ERR_AGAIN, "it is not known yet");
    if (said.left % 3 == 1)
        return err_set(err, ERR_CORRUPT, "it is no question");
    *ret_text = "[]";
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct renderer_order order = {.text = "x", .length = 1, .left = "{{", .right = "}}"};
    json_t *names = json_object();
    struct renderer renderer = {
        .program = "/none", .names = names, .read = read_file, .ask = answer_others, .ctx = &said};
    struct err err = {0};
    bool asks_time = false;
    size_t length;
    char *text;

    said = (struct fuzz_input){data, size};
    for (int i = 0; i < 2; i++) {
        if (renderer_say(&renderer, &order, &text, &length, &asks_time, &err) == 0) {
            check(length <= TEMPLATE_BYTES_MAX && text[length] == '\0');
            free(text);
        } else {
            check(err.code < 0 && text_is_utf8(err.text, strlen(err.text)));
        }
    }
    renderer_end(&renderer);
    check(running == 0);
    json_decref(names);
    return 0;
}
