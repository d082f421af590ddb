/* Inside spec/template/functions/ only: what YAML's words mean, for reading and for writing. */
#ifndef CAIRN_SPEC_TEMPLATE_FUNCTIONS_YAML_H
#define CAIRN_SPEC_TEMPLATE_FUNCTIONS_YAML_H

#include "spec/template/functions/part.h"

enum yaml_meaning {
    YAML_IS_TEXT,
    YAML_IS_NULL,
    YAML_IS_BOOL,
    YAML_IS_WHOLE,
    YAML_IS_REAL,
    YAML_IS_TIME,   /* which is read as text, too */
    YAML_IS_STRANGE /* a number that is too large, or not finite */
};

/* What TEXT means where it is not in quotes; RET_VALUE (a new reference) of all but texts, times
 * and what is strange. */
enum yaml_meaning yaml_resolve(const char *text, json_t **ret_value);

/* toYAML. */
json_t *yaml_write(const struct call *call);

#endif
