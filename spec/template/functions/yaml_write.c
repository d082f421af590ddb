/* toYAML: by libyaml's emitter, in the styles of gopkg.in/yaml.v2 (v2.4.0 encode.go, sorter.go). */
#include "spec/template/functions/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <unictype.h>
#include <unistr.h>
#include <yaml.h>

/* --- the order of keys: numbers within them count as numbers --- */

static bool is_letter(ucs4_t character)
{
    return uc_is_general_category(character, UC_LETTER);
}

static bool is_digit(ucs4_t character)
{
    return uc_is_general_category(character, UC_DECIMAL_DIGIT_NUMBER);
}

static ucs4_t character_at(const char *at)
{
    ucs4_t character = 0;

    (void)u8_strmbtouc(&character, (const uint8_t *)at); /* it is UTF-8 */
    return character;
}

/* A number at AT, behind NUMBER; how many digits it has. */
static size_t take_digits(const char *at, int64_t *number)
{
    size_t count = 0;

    for (ucs4_t c; *at != '\0' && is_digit(c = character_at(at)); at += character_size(at)) {
        *number = (int64_t)((uint64_t)*number * 10 + (uint64_t)((int64_t)c - '0')); /* as there */
        count++;
    }
    return count;
}

/* True if the digits that end at AT are not all zero. */
static bool is_in_number(const char *text, const char *at)
{
    while (at > text) {
        for (at--; at > text && ((unsigned char)*at & 0xC0u) == 0x80u; at--)
            ;
        if (!is_digit(character_at(at)))
            return false;
        if (*at != '0')
            return true;
    }
    return false;
}

static int compare_different(const char *begin, const char *left, const char *right)
{
    ucs4_t a = character_at(left), b = character_at(right);
    int64_t a_number = 0, b_number = 0;

    if (is_letter(a) != is_letter(b))
        return is_letter(b) ? -1 : 1;
    if (is_letter(a))
        return a < b ? -1 : 1;
    if ((a == '0' || b == '0') && is_in_number(begin, left))
        a_number = b_number = 1;
    size_t a_digits = take_digits(left, &a_number), b_digits = take_digits(right, &b_number);
    if (a_number != b_number)
        return a_number < b_number ? -1 : 1;
    if (a_digits != b_digits)
        return a_digits < b_digits ? -1 : 1;
    return a < b ? -1 : 1;
}

static int compare_keys(const void *a, const void *b)
{
    const char *begin = *(const char *const *)a, *left = begin, *right = *(const char *const *)b;

    while (*left != '\0' && *right != '\0' && character_at(left) == character_at(right)) {
        left += character_size(left);
        right += character_size(right);
    }
    if (*left == '\0' || *right == '\0')
        return (*left != '\0') - (*right != '\0');
    return compare_different(begin, left, right);
}

/* --- values --- */

static void emit(yaml_emitter_t *emitter, yaml_event_t *event)
{
    (void)yaml_emitter_emit(emitter, event); /* what fails is that the text is full */
}

static void put_scalar(yaml_emitter_t *emitter, const char *text, yaml_scalar_style_t style)
{
    yaml_event_t event;

    check(yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text,
                                       (int)strlen(text), 1, 1, style));
    emit(emitter, &event);
}

/* Hours, minutes and seconds, or so: numbers for other readers. */
static bool is_of_base_60(const char *text)
{
    static const char digits[] = "0123456789", low[] = "012345";
    const char *at = text + (*text == '+' || *text == '-');
    size_t parts = 0;

    if (*at < '0' || *at > '9')
        return false;
    at += 1 + strspn(at + 1, "0123456789_");
    for (; *at == ':'; parts++) {
        at++;
        if (strspn(at, digits) >= 2 && strchr(low, *at) != NULL)
            at += 2;
        else if (strspn(at, digits) >= 1)
            at++;
        else
            return false;
    }
    if (parts > 0 && *at == '.')
        at += 1 + strspn(at + 1, "0123456789_");
    return parts > 0 && *at == '\0';
}

static void put_text(yaml_emitter_t *emitter, const char *text)
{
    json_t *value;
    bool plain = yaml_resolve(text, &value) == YAML_IS_TEXT && !is_of_base_60(text);

    json_decref(value);
    put_scalar(emitter, text,
               strchr(text, '\n') != NULL ? YAML_LITERAL_SCALAR_STYLE
               : plain                    ? YAML_PLAIN_SCALAR_STYLE
                                          : YAML_DOUBLE_QUOTED_SCALAR_STYLE);
}

static void put_value(yaml_emitter_t *emitter, const json_t *value);

static void put_map(yaml_emitter_t *emitter, const json_t *map)
{
    yaml_event_t event;
    size_t count;
    const char **keys = value_keys(map, &count);

    qsort(keys, count, sizeof(*keys), compare_keys);
    check(yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE));
    emit(emitter, &event);
    for (size_t i = 0; i < count; i++) {
        put_text(emitter, keys[i]);
        put_value(emitter, json_object_get(map, keys[i]));
    }
    free(keys);
    check(yaml_mapping_end_event_initialize(&event));
    emit(emitter, &event);
}

static void put_list(yaml_emitter_t *emitter, const json_t *list)
{
    yaml_event_t event;

    check(yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_SEQUENCE_STYLE));
    emit(emitter, &event);
    for (size_t i = 0; i < json_array_size(list); i++)
        put_value(emitter, json_array_get(list, i));
    check(yaml_sequence_end_event_initialize(&event));
    emit(emitter, &event);
}

static void put_value(yaml_emitter_t *emitter, const json_t *value)
{
    char *text;

    if (json_is_object(value)) {
        put_map(emitter, value);
    } else if (json_is_array(value)) {
        put_list(emitter, value);
    } else if (json_is_string(value)) {
        put_text(emitter, json_string_value(value));
    } else {
        text = json_is_null(value) ? strdup("null") : template_print(value);
        check(text != NULL);
        put_scalar(emitter, text, YAML_PLAIN_SCALAR_STYLE);
        free(text);
    }
}

static int keep(void *ctx, unsigned char *bytes, size_t size)
{
    struct growing *to = ctx;

    growing_add(to, (const char *)bytes, size);
    return !to->full;
}

json_t *yaml_write(const struct call *call)
{
    struct growing made = {0};
    yaml_emitter_t emitter;
    yaml_event_t event;

    check(yaml_emitter_initialize(&emitter));
    yaml_emitter_set_output(&emitter, keep, &made);
    yaml_emitter_set_unicode(&emitter, 1);
    check(yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
    emit(&emitter, &event);
    check(yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1));
    emit(&emitter, &event);
    put_value(&emitter, call->arguments[0]);
    check(yaml_document_end_event_initialize(&event, 1));
    emit(&emitter, &event);
    emitter.open_ended = 0; /* as there: no "..." ends what ends in empty lines */
    check(yaml_stream_end_event_initialize(&event));
    emit(&emitter, &event);
    bool failed = emitter.error != YAML_NO_ERROR && !made.full;
    yaml_emitter_delete(&emitter);
    if (failed) {
        free(made.text);
        return call_refuse(call, "this cannot be written");
    }
    (void)call_charge(call, 8 * made.length); /* it tells */
    if (made.full)
        return call_give_grown(call, &made);
    growing_add(&made, "\n", 2); /* and what ends it */
    const char *text = made.text, *end;
    text_trim_space(&text, &end); /* without what is around it */
    json_t *value = call_give(call, text, (size_t)(end - text));
    free(made.text);
    return value;
}
