/*
 * What is read of JSON in more rooms than one.
 */
#ifndef CAIRN_SPEC_JSON_H
#define CAIRN_SPEC_JSON_H

#include <jansson.h>

/* The text of FIELD, borrowed from OBJECT; "" if there is none. */
static inline const char *text_of(const json_t *object, const char *field)
{
    const char *text = json_string_value(json_object_get(object, field));

    return text == NULL ? "" : text;
}

#endif
