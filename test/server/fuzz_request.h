/* Fuzz targets whose input is a few requests: each a piece, whose first byte says which. */
#ifndef CAIRN_TEST_SERVER_FUZZ_REQUEST_H
#define CAIRN_TEST_SERVER_FUZZ_REQUEST_H

#include "test/fuzz.h"

#include <jansson.h>

enum { FUZZ_REQUESTS_MAX = 16 };

/* The next of them, the caller's; its JSON is NULL if it is none.  False at the end. */
static inline bool fuzz_request(struct fuzz_input *input, uint8_t *ret_which, json_t **ret_json)
{
    const uint8_t *bytes;
    size_t length;

    while (fuzz_piece(input, &bytes, &length)) {
        if (length == 0)
            continue;
        *ret_which = bytes[0];
        *ret_json = json_loadb((const char *)bytes + 1, length - 1, JSON_REJECT_DUPLICATES, NULL);
        return true;
    }
    return false;
}

#endif
