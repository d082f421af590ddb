/* What a parser that was got hold of may answer: nothing but a value within bounds comes of it, and
 * what was read is written and read again as the same. */
#include "test/fuzz.h"

#include "spec/parsed.h"

static void write_again(const json_t *value)
{
    json_t *object = json_pack("{s:O}", "v", (json_t *)(uintptr_t)value), *again = NULL;
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17)), *refusal = NULL;
    struct err err = {0};
    size_t length;

    check(object != NULL && text != NULL);
    uint8_t *answer = parse_answer(PARSE_OBJECT, text, strlen(text), &length);
    int code = parsed_read(answer, length, &again, &refusal, &err);
    /* What comes around it makes it deeper, and may be too much. */
    check(code == 0 ? json_equal(again, object) : code == ERR_INVALID && refusal != NULL);
    free(answer);
    free(refusal);
    free(text);
    json_decref(again);
    json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = {0};
    json_t *value;
    char *refusal;
    int code = parsed_read(data, size, &value, &refusal, &err);

    check((code == 0) == (value != NULL) && (code == ERR_INVALID) == (refusal != NULL));
    check(code == 0 || code == ERR_INVALID || code == ERR_CORRUPT);
    if (value != NULL)
        write_again(value);
    json_decref(value);
    free(refusal);
    return 0;
}
