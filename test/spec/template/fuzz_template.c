/* A template of a job's author: it renders, or says why not, within its bounds. */
#include "test/fuzz.h"

#include "spec/template.h"

static const char *find(void *ctx, const char *name, size_t length)
{
    (void)ctx;
    return length == 3 && memcmp(name, "FOO", 3) == 0 ? "foo" : NULL;
}

static int read_file(void *ctx, const char *path, char **ret_text, size_t *ret_length,
                     struct err *err)
{
    (void)ctx;
    if (strlen(path) > 4)
        return err_set(err, ERR_GONE, "none");
    *ret_text = strdup("{\"a\": [1, {\"b\": null}]}");
    *ret_length = strlen(*ret_text);
    return 0;
}

static const json_t *ask(void *ctx, const struct spec_question *question, bool needed,
                         struct err *err)
{
    static json_t *list, *variable, *odd;

    (void)ctx;
    if (list == NULL) {
        list = json_loads("[{\"ID\": \"i\", \"ServiceName\": \"web\", \"Tags\": [\"a\", 1, \"b\"]},"
                          "{\"ServiceName\": \"web\", \"Port\": 80, \"Path\": \"v\"}, {}, 7]",
                          0, NULL);
        variable = json_loads("{\"Path\": \"v\", \"CreateTime\": 1700000000123000000, \"Items\": "
                              "{\"a\": \"x\", \"Keys\": \"\", \"b\": \"x\"}}",
                              0, NULL);
        odd = json_loads("{\"Items\": {\"a\": {\"$bytes\": \"/w==\"}}}", 0, NULL);
    }
    check(list != NULL && variable != NULL && odd != NULL && err->code == 0);
    check(strlen(question->name) < QUESTION_NAME_SIZE);
    check(strlen(question->namespace) < QUESTION_NAMESPACE_SIZE);
    if (needed && strlen(question->name) == 1) {
        (void)err_set(err, ERR_AGAIN, "later");
        return NULL;
    }
    if (question->kind == QUESTION_VARIABLE)
        return strlen(question->name) == 2 ? odd : variable;
    return list;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct template_world world = {
        .find = find, .read = read_file, .ask = ask, .now_unix_ns = 1, .strict = size % 2 == 0};
    struct template *template;
    struct err err = {0};
    char *text;
    size_t length;

    if (template_parse((const char *)data, size, "", "", size % 3 == 0, &template, &err) != 0) {
        check(text_starts_with(err.text, "template: "));
        return 0;
    }
    if (template_render(template, &world, &text, &length, &err) == 0) {
        check(length <= TEMPLATE_BYTES_MAX);
        check(text[length] == '\0');
        free(text);
    } else {
        check(text_starts_with(err.text, "template: "));
    }
    template_free(template);
    return 0;
}
