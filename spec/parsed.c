/*
 * Answers of the parser beside the daemon: writing them there, reading them here.
 *
 * An answer is one byte, whether the text was what it should be, and then the value, or a sentence.
 * A value is a tag and what belongs to it: numbers are eight bytes, texts and names have their
 * length before them, arrays and objects their count, all lowest byte first.
 */
#include "spec/parsed.h"

#include "base/list.h"
#include "base/text.h"
#include "spec/job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_VALUE = 'v', ANSWER_REFUSAL = 'r' };

/* --- writing --- */

struct answer {
    uint8_t *bytes;
    size_t length, size;
    size_t values;
};

static void put(struct answer *answer, const void *bytes, size_t length)
{
    answer->bytes = list_room(answer->bytes, &answer->size, answer->length + length, 1);
    memcpy(answer->bytes + answer->length, bytes, length);
    answer->length += length;
}

static void put_tag(struct answer *answer, char tag)
{
    put(answer, &tag, 1);
}

static void put_number(struct answer *answer, uint64_t number, unsigned bytes)
{
    uint8_t to[8];

    for (unsigned i = 0; i < bytes; i++)
        to[i] = (uint8_t)(number >> (8 * i));
    put(answer, to, bytes);
}

static void put_text(struct answer *answer, const char *text, size_t length)
{
    put_number(answer, length, 4); /* no text is longer than what it was read from */
    put(answer, text, length);
}

static bool put_value(struct answer *answer, const json_t *value, int depth);

static bool put_members(struct answer *answer, json_t *value, int depth)
{
    const char *name;
    size_t length, i;
    json_t *member;

    put_number(answer, json_is_object(value) ? json_object_size(value) : json_array_size(value), 4);
    json_array_foreach(value, i, member)
    {
        if (!put_value(answer, member, depth + 1))
            return false;
    }
    json_object_keylen_foreach(value, name, length, member)
    {
        put_text(answer, name, length);
        if (!put_value(answer, member, depth + 1))
            return false;
    }
    return true;
}

static uint64_t bits_of(double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof(bits));
    return bits;
}

/* False: there is more of it than an answer holds. */
static bool put_value(struct answer *answer, const json_t *value, int depth)
{
    if (depth > PARSED_NESTING_MAX || ++answer->values > PARSED_VALUES_MAX ||
        answer->length > PARSED_BYTES_MAX)
        return false;
    switch (json_typeof(value)) {
    case JSON_NULL:
        put_tag(answer, 'n');
        break;
    case JSON_TRUE:
        put_tag(answer, 't');
        break;
    case JSON_FALSE:
        put_tag(answer, 'f');
        break;
    case JSON_INTEGER:
        put_tag(answer, 'i');
        put_number(answer, (uint64_t)json_integer_value(value), 8);
        break;
    case JSON_REAL:
        put_tag(answer, 'd');
        put_number(answer, bits_of(json_real_value(value)), 8);
        break;
    case JSON_STRING:
        put_tag(answer, 's');
        put_text(answer, json_string_value(value), json_string_length(value));
        break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        put_tag(answer, json_is_array(value) ? 'a' : 'o');
        return put_members(answer, (json_t *)(uintptr_t)value, depth);
    }
    return true;
}

static void refuse(struct answer *answer, const char *text)
{
    answer->length = 0;
    put_tag(answer, ANSWER_REFUSAL);
    check(strlen(text) <= PARSED_REFUSAL_MAX);
    put(answer, text, strlen(text));
}

static void answer_value(struct answer *answer, const json_t *value)
{
    put_tag(answer, ANSWER_VALUE);
    if (!put_value(answer, value, 1) || answer->length > PARSED_BYTES_MAX)
        refuse(answer, "Failed to decode body: it is nested too deep, or has too many values");
}

/* --- what is asked for --- */

json_t *parse_object(const char *bytes, size_t length, struct err *err)
{
    json_error_t error;

    if (length == 0) {
        (void)err_set(err, ERR_INVALID, "Request body is empty"); /* told by what is returned */
        return NULL;
    }
    json_t *body = json_loadb(bytes, length, 0, &error);
    if (body == NULL) {
        (void)err_set(err, ERR_INVALID, "Failed to decode body: line %d, column %d: %s", error.line,
                      error.column, error.text);
    } else if (!json_is_object(body)) {
        json_decref(body);
        body = NULL;
        (void)err_set(err, ERR_INVALID, "Failed to decode body: it is no JSON object");
    }
    return body;
}

static void answer_source(struct answer *answer, const struct jobspec_source *source)
{
    enum { TEXT_SIZE = JOBSPEC_PROBLEMS_MAX * HCL_ERROR_SIZE };
    struct jobspec_problems *problems = calloc(1, sizeof(*problems));
    char *said = malloc(TEXT_SIZE);
    json_t *job = NULL;

    check(problems != NULL && said != NULL);
    if (jobspec_parse(source, &job, problems) == 0) {
        answer_value(answer, job);
    } else {
        jobspec_problems_text(problems, said, TEXT_SIZE);
        refuse(answer, said);
    }
    json_decref(job);
    free(said);
    free(problems);
}

static void answer_job(struct answer *answer, const json_t *body)
{
    const json_t *text = json_object_get(body, "JobHCL");
    const json_t *given = json_object_get(body, "Variables"); /* as a file of values has them */
    struct jobspec_values *values = jobspec_values_new();
    char told[HCL_ERROR_SIZE];

    if (!json_is_string(text))
        refuse(answer, "Job spec is empty");
    else if (given != NULL && !json_is_null(given) && !json_is_string(given))
        refuse(answer, "Variables must be the text of a file of values");
    else if (json_is_string(given) &&
             jobspec_read_values("variables.hcl", json_string_value(given),
                                 json_string_length(given), values, told) < 0)
        refuse(answer, told);
    else
        answer_source(answer, &(struct jobspec_source){.name = "input.hcl",
                                                       .text = json_string_value(text),
                                                       .length = json_string_length(text),
                                                       .inputs = values->items,
                                                       .inputs_count = values->count});
    jobspec_values_free(values);
}

uint8_t *parse_answer(enum parse_kind kind, const char *text, size_t length, size_t *ret_length)
{
    struct answer answer = {0};
    struct err err = {0};
    json_t *body = parse_object(text, length, &err);

    if (body == NULL) {
        refuse(&answer, err.text);
    } else if (kind == PARSE_JOB) {
        answer_job(&answer, body);
    } else {
        jobspec_note_templates(body);
        answer_value(&answer, body);
    }
    json_decref(body);
    *ret_length = answer.length;
    return answer.bytes;
}

/* --- reading --- */

struct reading {
    const uint8_t *at, *end;
    size_t values;
};

static size_t left_in(const struct reading *reading)
{
    return (size_t)(reading->end - reading->at);
}

static bool take_number(struct reading *reading, unsigned bytes, uint64_t *ret_number)
{
    *ret_number = 0;
    if (left_in(reading) < bytes)
        return false;
    for (unsigned i = 0; i < bytes; i++)
        *ret_number |= (uint64_t)*reading->at++ << (8 * i);
    return true;
}

static bool take_text(struct reading *reading, const char **ret_text, size_t *ret_length)
{
    uint64_t length;

    if (!take_number(reading, 4, &length) || length > left_in(reading))
        return false;
    *ret_text = (const char *)reading->at;
    *ret_length = (size_t)length;
    reading->at += length;
    return true;
}

static json_t *take_value(struct reading *reading, int depth);

/* Each of them has at least a byte: no more are expected than there is room for. */
static json_t *take_array(struct reading *reading, int depth)
{
    json_t *array = json_array();
    uint64_t count;
    bool good = take_number(reading, 4, &count);

    check(array != NULL);
    for (uint64_t i = 0; good && i < count; i++)
        good = json_array_append_new(array, take_value(reading, depth + 1)) == 0;
    if (good)
        return array;
    json_decref(array);
    return NULL;
}

/* A name comes once, and has no NUL in it. */
static json_t *take_object(struct reading *reading, int depth)
{
    json_t *object = json_object();
    uint64_t count;
    bool good = take_number(reading, 4, &count);

    check(object != NULL);
    for (uint64_t i = 0; good && i < count; i++) {
        const char *name;
        size_t length;

        good = take_text(reading, &name, &length) && memchr(name, '\0', length) == NULL &&
               json_object_getn(object, name, length) == NULL &&
               json_object_setn_new(object, name, length, take_value(reading, depth + 1)) == 0;
    }
    if (good)
        return object;
    json_decref(object);
    return NULL;
}

static json_t *take_plain(struct reading *reading, char tag)
{
    uint64_t number;
    const char *text;
    double real;
    size_t length;

    if (tag == 's')
        return take_text(reading, &text, &length) ? json_stringn(text, length) : NULL;
    if (!take_number(reading, 8, &number))
        return NULL;
    if (tag == 'i')
        return json_integer((json_int_t)number);
    memcpy(&real, &number, sizeof(real));
    return isfinite(real) ? json_real(real) : NULL;
}

/* NULL: it is none.  jansson looks at the UTF-8 of texts and names, and takes no NULL. */
static json_t *take_value(struct reading *reading, int depth)
{
    if (left_in(reading) == 0 || depth > PARSED_NESTING_MAX ||
        ++reading->values > PARSED_VALUES_MAX)
        return NULL;
    char tag = (char)*reading->at++;

    switch (tag) {
    case 'n':
        return json_null();
    case 't':
        return json_true();
    case 'f':
        return json_false();
    case 'i':
    case 'd':
    case 's':
        return take_plain(reading, tag);
    case 'a':
        return take_array(reading, depth);
    case 'o':
        return take_object(reading, depth);
    default:
        return NULL;
    }
}

static int take_refusal(const struct reading *reading, char **ret_refusal, struct err *err)
{
    size_t length = left_in(reading);
    char *text = strndup((const char *)reading->at, length);

    check(text != NULL);
    if (length == 0 || length > PARSED_REFUSAL_MAX || strlen(text) != length ||
        !text_is_utf8(text, length)) {
        free(text);
        return err_set(err, ERR_CORRUPT, "the parser gave no reason that can be shown");
    }
    *ret_refusal = text;
    return err_set(err, ERR_INVALID, "the text is not what it should be");
}

int parsed_read(const uint8_t *answer, size_t length, json_t **ret_value, char **ret_refusal,
                struct err *err)
{
    struct reading reading = {.at = length > 1 ? answer + 1 : NULL,
                              .end = length > 1 ? answer + length : NULL};

    *ret_value = NULL;
    *ret_refusal = NULL;
    if (length > 1 && length <= PARSED_BYTES_MAX && answer[0] == ANSWER_REFUSAL)
        return take_refusal(&reading, ret_refusal, err);
    if (length > 1 && length <= PARSED_BYTES_MAX && answer[0] == ANSWER_VALUE)
        *ret_value = take_value(&reading, 1);
    if (*ret_value != NULL && left_in(&reading) == 0)
        return 0;
    json_decref(*ret_value);
    *ret_value = NULL;
    return err_set(err, ERR_CORRUPT, "the parser did not answer as it should");
}
