#include "agent/parser.h"

#include "base/list.h"
#include "io/helper.h"
#include "io/loop.h"

#include <stdlib.h>

enum { LIMIT_MS = 5000, CHUNK = 64 << 10 };

struct answer {
    uint8_t *bytes; /* as far as it came */
    size_t length, size;
};

/* To its end, or as far as it may be. */
static void receive_all(const struct helper *parser, struct answer *answer)
{
    while (answer->length <= PARSED_BYTES_MAX) {
        answer->bytes = list_room(answer->bytes, &answer->size, answer->length + CHUNK, 1);
        size_t got =
            helper_receive(parser, answer->bytes + answer->length, answer->size - answer->length);
        if (got == 0)
            return;
        answer->length += got;
    }
}

int parser_ask(const char *program, enum parse_kind kind, const char *text, size_t length,
               json_t **ret_value, char **ret_refusal, struct err *err)
{
    const char order = (char)kind;
    struct answer answer = {0};
    struct helper parser;

    *ret_value = NULL;
    *ret_refusal = NULL;
    int code = helper_start(program, "cairn-parse", NULL, loop_now_ms() + LIMIT_MS, &parser, err);
    if (code != 0)
        return code;
    /* Who does not listen any more has ended, or will answer what cannot be read. */
    if (helper_send(&parser, &order, 1) && helper_send(&parser, text, length))
        helper_send_end(&parser);
    receive_all(&parser, &answer);
    code = helper_end(&parser, answer.length <= PARSED_BYTES_MAX, err);
    if (code == 0)
        code = parsed_read(answer.bytes, answer.length, ret_value, ret_refusal, err);
    free(answer.bytes);
    return code;
}
