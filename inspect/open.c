/* Opening a journal for inspection. */
#include "inspect/part.h"

#include <stdlib.h>

static int open_journal(struct inspect *inspect, const char *path, struct err *err)
{
    char place[JOURNAL_PATH_SIZE];
    int code = journal_locate(path, place, err);

    if (code == 0)
        code = journal_open(place, JOURNAL_READ, &inspect->journal, err);
    if (code == 0 && !inspect->options.follow)
        code = journal_freeze(inspect->journal, err);
    if (code == 0)
        code = inspect_ends(inspect, err);
    return code;
}

int inspect_open(const char *path, const struct inspect_options *options,
                 struct inspect **ret_inspect, struct err *err)
{
    struct inspect *inspect = calloc(1, sizeof(*inspect));

    check(inspect != NULL);
    check(options->out != NULL);
    inspect->options = *options;
    int code = open_journal(inspect, path, err);
    if (code < 0)
        inspect_close(inspect);
    else
        *ret_inspect = inspect;
    return code;
}

void inspect_close(struct inspect *inspect)
{
    if (inspect == NULL)
        return;
    journal_close(inspect->journal);
    free(inspect);
}

uint64_t inspect_damaged(const struct inspect *inspect)
{
    return inspect->damaged;
}
