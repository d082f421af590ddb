/* A line of cron, or the file of a time zone: what is behind the first byte says which. */
#include "test/fuzz.h"

#include "spec/cron.h"

#include <stdlib.h>
#include <string.h>

static void ask(const struct cron *cron, const struct zone *zone)
{
    int64_t at = 1700000000;

    for (int i = 0; i < 8 && at != CRON_NEVER; i++) {
        int64_t next = cron_next(cron, zone, at);

        check(next > at);
        at = next;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cron cron;
    struct zone *zone;
    char *text = malloc(size + 1);

    check(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    if (size > 0 && data[0] == 'T') {
        if (zone_parse(data, size, &zone, NULL) == 0) {
            check(cron_parse("30 */3 * * *", &cron, NULL) == 0);
            ask(&cron, zone);
            zone_free(zone);
        }
    } else if (cron_parse(text, &cron, NULL) == 0) {
        ask(&cron, NULL);
    }
    free(text);
    return 0;
}
