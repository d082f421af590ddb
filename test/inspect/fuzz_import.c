/* An export from outside: refused with a sentence, or a journal that can be verified and listed. */
#include "test/fuzz.h"

#include "inspect/inspect.h"
#include "io/host.h"

#include <fcntl.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *out;
    struct inspect_verdict verdict;
    struct inspect *inspect;
    struct err err = {0};
    char from[512], to[512];
    uint64_t entries;

    if (out == NULL)
        out = fopen("/dev/null", "w");
    check(out != NULL);
    fuzz_write(fuzz_path(from, "export"), data, size);
    if (inspect_import(from, fuzz_path(to, "imported"), &entries, &err) != 0) {
        check(err.text[0] != '\0' && access(to, F_OK) != 0);
        return 0;
    }
    struct inspect_options options = {.out = out, .now_unix_ns = 1};
    check(inspect_open(to, &options, &inspect, &err) == 0);
    const struct inspect_restart restart = {.away_ns = 1};
    (void)inspect_list(inspect, 0, &err); /* says what it finds */
    (void)inspect_findings(inspect, &verdict, &err);
    (void)inspect_restore(inspect, &restart, &err); /* the life itself, which may quarantine */
    inspect_close(inspect);
    check(tree_remove(AT_FDCWD, to, &err) == 0);
    return 0;
}
