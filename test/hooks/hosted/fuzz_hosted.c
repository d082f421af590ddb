/* What a program says that makes host volumes. */
#include "test/hooks/answers.h"

#include "hooks/hosted/program.c"

static void ask(const uint8_t *data, size_t size, bool deletes)
{
    const struct hosted_request request = {
        .plugin_dir = "/bin",
        .volumes_dir = "/srv",
        .node_id = "node",
        .cancel_fd = -1,
        .ask = {.deletes = deletes,
                .plugin = "true",
                .id = "id",
                .name = "disk",
                .namespace = "default",
                .path = "/srv/id",
                .parameters = "{}"},
    };
    struct hosted_result result = {.answer = {.code = 0}};

    answers = (struct fuzz_input){data, size};
    hosted_program(&request, &result);
    check(text_is_utf8(result.text, strlen(result.text)));
    check((result.answer.code == 0) == (result.text[0] == '\0'));
    if (result.answer.code == 0 && !deletes)
        check(result.path[0] == '/' && result.answer.bytes >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char version[PLUGIN_NAME_SIZE];

    ask(data, size, false);
    ask(data, size, true);
    answers = (struct fuzz_input){data, size};
    if (hosted_version("/bin", "true", -1, version))
        check(version[0] != '\0' && text_is_utf8(version, strlen(version)));
    return 0;
}
