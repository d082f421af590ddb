/* What a plugin is configured with: values, by the schema that it gives, as the bytes it takes. */
#ifndef CAIRN_PLUGINS_PROTOCOL_SCHEMA_H
#define CAIRN_PLUGINS_PROTOCOL_SCHEMA_H

#include "base/base.h"

#include <jansson.h>
#include <stddef.h>

enum { SCHEMA_BYTES_MAX = 64 << 10, SCHEMA_CONFIG_BYTES_MAX = 1 << 20 };

/* CONFIG (an object as HCL's blocks have it; NULL: nothing was said), by SPEC (the bytes of an
 * hclspec.Spec), as msgpack: owned by the caller (free).  ERR_INVALID: it does not fit the schema,
 * or the schema is none; ERR_CORRUPT, ERR_LIMIT.  No text of an error quotes a value. */
int schema_encode(const void *spec, size_t spec_length, const json_t *config, char **ret_bytes,
                  size_t *ret_length, struct err *err);

#endif
