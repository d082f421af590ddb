#include "hooks/services/wire.h"

#include "base/base.h"

#include <string.h>

enum { AT_SUCCESS = WIRE_NUMBER, AT_CODE, CODE_MAX = 999 };

void wire_number(uint8_t to[WIRE_NUMBER], uint64_t number)
{
    for (unsigned i = 0; i < WIRE_NUMBER; i++)
        to[i] = (uint8_t)(number >> (8 * i));
}

uint64_t wire_number_read(const uint8_t from[WIRE_NUMBER])
{
    uint64_t number = 0;

    for (unsigned i = 0; i < WIRE_NUMBER; i++)
        number |= (uint64_t)from[i] << (8 * i);
    return number;
}

size_t wire_answer(uint8_t to[WIRE_ANSWER_MAX], const struct wire_answer *answer)
{
    char output[WIRE_OUTPUT_MAX + 1];

    (void)text_copy(output, sizeof(output), answer->output); /* cut is enough */
    size_t length = strlen(output);
    wire_number(to, answer->number);
    to[AT_SUCCESS] = answer->success;
    to[AT_CODE] = (uint8_t)answer->code;
    to[AT_CODE + 1] = (uint8_t)(answer->code >> 8);
    memcpy(to + WIRE_ANSWER_HEAD, output, length);
    return WIRE_ANSWER_HEAD + length;
}

bool wire_answer_read(char *from, size_t length, struct wire_answer *ret_answer)
{
    const uint8_t *bytes = (const uint8_t *)from;

    if (length < WIRE_ANSWER_HEAD || length > WIRE_ANSWER_MAX)
        return false;
    *ret_answer = (struct wire_answer){
        .number = wire_number_read(bytes),
        .success = bytes[AT_SUCCESS] != 0,
        .code = (uint16_t)(bytes[AT_CODE] | bytes[AT_CODE + 1] << 8),
        .output = from + WIRE_ANSWER_HEAD,
    };
    from[length] = '\0';
    return bytes[AT_SUCCESS] <= 1 && ret_answer->code <= CODE_MAX &&
           text_is_utf8(ret_answer->output, length - WIRE_ANSWER_HEAD);
}
