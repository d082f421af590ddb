/* What plugins say in words, numbers and attributes, as Nomad's API has it. */
#include "plugins/protocol/read.h"

#include "plugins/protocol/plugin.pb-c.h"
#include "spec/devices.h"

#include <math.h>
#include <string.h>

enum {
    TEXT_MAX = 1024, /* words for people */
    ATTRIBUTES_MAX = 256,
};

static void set(json_t *object, const char *field, json_t *value)
{
    check(json_object_set_new(object, field, value) == 0);
}

const char *reading_word(struct reading *from, ProtobufCBinaryData bytes, const char *what)
{
    const char *text = reading_needed(from, bytes, DEVICE_WORD_MAX, what);

    for (const char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            reading_refuse(from, ERR_INVALID, what, "has a control character");
    }
    return text;
}

json_t *reading_number(struct reading *from, double value)
{
    if (isfinite(value))
        return json_real(value);
    reading_refuse(from, ERR_INVALID, "a number", "is none");
    return json_null();
}

json_t *reading_words(ProtobufCBinaryData bytes)
{
    char text[TEXT_MAX + 1] = "";
    size_t length = bytes.len < TEXT_MAX ? bytes.len : TEXT_MAX;

    if (length > 0)
        memcpy(text, bytes.data, length);
    text[length] = '\0';
    if (!text_is_utf8(text, strlen(text)))
        text_whole(text);
    text_clean(text);
    return json_string(text_is_utf8(text, strlen(text)) ? text : "");
}

static json_t *attribute(struct reading *from, ProtobufCBinaryData bytes)
{
    const Wire__Attribute *message =
        reading_unpack(from, &wire__attribute__descriptor, bytes.data, bytes.len);
    json_t *made =
        json_pack("{s:n, s:n, s:n, s:n, s:s}", "Float", "Int", "String", "Bool", "Unit", "");
    bool counts = false;

    check(made != NULL);
    if (message == NULL)
        return made;
    switch (message->value_case) {
    case WIRE__ATTRIBUTE__VALUE_FLOAT_VALUE:
        counts = true;
        set(made, "Float", reading_number(from, message->float_value));
        break;
    case WIRE__ATTRIBUTE__VALUE_INT_VALUE:
        counts = true;
        set(made, "Int", json_integer(message->int_value));
        break;
    case WIRE__ATTRIBUTE__VALUE_STRING_VALUE:
        set(made, "String",
            json_string(reading_text(from, message->string_value, TEXT_MAX, "an attribute")));
        break;
    case WIRE__ATTRIBUTE__VALUE_BOOL_VALUE:
        set(made, "Bool", json_boolean(message->bool_value));
        break;
    case WIRE__ATTRIBUTE__VALUE__NOT_SET:
    case _WIRE__ATTRIBUTE__VALUE__CASE_IS_INT_SIZE:
        reading_refuse(from, ERR_INVALID, "an attribute", "has no value");
        break;
    }
    const char *unit = reading_text(from, message->unit, DEVICE_WORD_MAX, "a unit");
    if (unit[0] != '\0' && (!counts || !device_unit_is_known(unit)))
        reading_refuse(from, ERR_INVALID, "a unit", "is none");
    set(made, "Unit", json_string(unit));
    return made;
}

json_t *reading_attributes(struct reading *from, Wire__Pair *const *pairs, size_t count)
{
    json_t *made = json_object();

    if (!reading_may_have(from, count, ATTRIBUTES_MAX, "attributes"))
        return made;
    for (size_t i = 0; i < count && from->code == 0; i++) {
        const char *key = reading_word(from, pairs[i]->key, "an attribute's name");

        check(json_object_set_new(made, key, attribute(from, pairs[i]->value)) == 0);
    }
    return made;
}
