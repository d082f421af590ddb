/*
 * What an Engine answers: the first piece says how a container is, or what went wrong, the others
 * are its output as it comes.
 */
#include "test/fuzz.h"

#include "drivers/docker/docker.h"

static const struct driver_key key = {.alloc = "0f2a91c4-1111-4222-8333-444455556666",
                                      .task = "t",
                                      .driver = "docker",
                                      .generation = 1};

int LLVMFuzzerInitialize(int *arguments_count, char ***arguments)
{
    (void)arguments_count, (void)arguments;
    return 0;
}

static void read_answer(const uint8_t *bytes, size_t length)
{
    char *body = malloc(length + 1);
    struct container_state state;
    struct err err = {0};

    check(body != NULL);
    memcpy(body, bytes, length);
    body[length] = '\0';
    struct http_reply reply = {.status = 200, .body = body, .body_length = length};
    if (engine_read_state(&reply, "0a1b2c3d", &key, &state)) {
        check(memchr(state.id, '\0', sizeof(state.id)) != NULL && state.id[0] != '\0');
        check(memchr(state.error, '\0', sizeof(state.error)) != NULL);
        check(state.finished_unix_ns >= 0);
    }
    json_t *line = json_loadb(body, length, 0, NULL);
    struct pull_progress progress = {0};
    char text[PULL_TEXT_SIZE];
    progress_take(&progress, line);
    progress_text(&progress, length, text);
    json_decref(line);
    free(helper_header(body, "reg.example"));
    check((load_fault(body, length, &err) == 0) == (err.text[0] == '\0'));
    err = (struct err){0};
    reply.status = 500;
    check(engine_fault(&reply, &err) == ERR_IO && err.text[0] != '\0');
    for (const char *at = err.text; *at != '\0'; at++)
        check((unsigned char)*at >= ' ');
    free(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct frames frames = {0};
    const uint8_t *bytes;
    size_t length, told = 0;

    if (!fuzz_piece(&input, &bytes, &length))
        return 0;
    read_answer(bytes, length);
    while (fuzz_piece(&input, &bytes, &length)) {
        const char *next = (const char *)bytes;
        struct frame_part part;
        enum frames_found found;

        while ((found = frames_next(&frames, &next, &length, &part)) == FRAMES_PART) {
            check(part.length > 0 && part.stream < LOG_STREAMS);
            check(part.bytes >= (const char *)bytes && part.bytes + part.length == next);
            told += part.length;
        }
        check(told <= size);
        if (found == FRAMES_STRANGE)
            return 0;
        check(length == 0);
    }
    return 0;
}
