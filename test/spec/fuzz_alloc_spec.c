/* The text of an alloc, as the journal keeps it. */
#include "test/fuzz.h"

#include "spec/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct alloc_spec *spec;
    struct err err;

    if (jobspec_decode_alloc((const char *)data, size, &spec, &err) == 0)
        alloc_spec_free(spec);
    else
        check(err.code == ERR_CORRUPT);
    return 0;
}
