/* Telling what is beside the answer: above all, what cannot be read. */
#include "inspect/part.h"

#include <stdarg.h>

void inspect_say(const struct inspect *inspect, const char *format, ...)
{
    char line[JOURNAL_KEY_SIZE + ERR_TEXT_SIZE + 64];
    va_list list;

    if (inspect->options.say == NULL)
        return;
    va_start(list, format);
    (void)vsnprintf(line, sizeof(line), format, list); /* has room for a key and an error */
    va_end(list);
    text_clean(line);
    (void)fflush(inspect->options.out); /* what was shown comes first */
    inspect->options.say(inspect->options.say_ctx, line);
}

void inspect_bad(void *ctx, const char *table, const char *key, const void *bytes, size_t length,
                 const char *reason)
{
    struct inspect *inspect = *(struct inspect **)ctx;

    (void)bytes; /* kept as they are: an export shows them */
    inspect->damaged++;
    inspect_say(inspect, "damaged, skipped: %s %s (%zu bytes): %s", table, key, length, reason);
}

void inspect_ignore(void *ctx, const char *table, const char *key, const void *bytes, size_t length,
                    const char *reason)
{
    (void)ctx; /* another walk reports it */
    (void)table;
    (void)key;
    (void)bytes;
    (void)length;
    (void)reason;
}
