/* Allocs as servers send them, of any version and with any mistake: what is read can be read again,
 * and what is refused is refused in a sentence. */
#include "test/fuzz.h"

#include "spec/job.h"
#include "spec/served.h"

/* What was written of ALLOC goes on as what would be written of it now. */
static void check_text(const char *text, size_t length)
{
    struct alloc_spec *again;
    struct err err;

    check(jobspec_decode_alloc(text, length, &again, &err) == 0);
    alloc_spec_free(again);
    check(served_alloc_in_place(text, length, text, length));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct served_node node = {.datacenter = "dc1"};
    json_t *alloc = json_loadb((const char *)data, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    struct err err = {0};
    struct served_alloc served;
    struct alloc_spec *spec;
    size_t length;
    char *text;

    if (alloc == NULL)
        return 0;
    if (served_alloc_read(alloc, &node, &served, &text, &length, &spec, &err) == 0) {
        check(text_equal(spec->id, served.id));
        alloc_spec_free(spec);
        check_text(text, length);
        free(text);
    } else {
        check(err.text[0] != '\0');
        check(err.code != 0);
    }
    json_decref(alloc);
    return 0;
}
