/* `quarantine`: what could not be read and was put aside. */
#include "inspect/part.h"

#include <inttypes.h>

struct aside {
    struct inspect *inspect;
    uint64_t number; /* to be shown; 0: list all */
    uint64_t count;
};

static void put_text(FILE *to, const char *text)
{
    char line[ERR_TEXT_SIZE + JOURNAL_KEY_SIZE];

    (void)text_copy(line, sizeof(line), text); /* the longer of the two fits */
    text_clean(line);
    (void)fputs(line, to);
}

static void put_item(struct inspect *inspect, const struct journal_quarantined *item)
{
    char when[TIME_TEXT_SIZE];

    time_print(item->unix_ns, when);
    if (inspect_flag(inspect, FLAG_JSON)) {
        (void)fprintf(inspect->out,
                      "{\"number\":%" PRIu64 ",\"time\":\"%s\",\"table\":", item->number, when);
        json_put_string(inspect->out, item->table);
        (void)fputs(",\"key\":", inspect->out);
        json_put_string(inspect->out, item->key);
        (void)fputs(",\"reason\":", inspect->out);
        json_put_string(inspect->out, item->reason);
        (void)fprintf(inspect->out, ",\"bytes\":%zu}\n", item->length);
        return;
    }
    (void)fprintf(inspect->out, "%6" PRIu64 "  %s  ", item->number, when);
    put_text(inspect->out, item->table);
    (void)fputs("  ", inspect->out);
    put_text(inspect->out, item->key);
    (void)fprintf(inspect->out, "  %zu bytes: ", item->length);
    put_text(inspect->out, item->reason);
    (void)fputc('\n', inspect->out);
}

/* Sixteen bytes on a line, as hex dumps do. */
static void put_bytes(FILE *to, const uint8_t *bytes, size_t length)
{
    for (size_t at = 0; at < length; at += 16) {
        (void)fprintf(to, "  %06zx ", at);
        for (size_t i = at; i < at + 16; i++) {
            if (i < length)
                (void)fprintf(to, " %02x", bytes[i]);
            else
                (void)fputs("   ", to);
        }
        (void)fputs("  ", to);
        for (size_t i = at; i < at + 16 && i < length; i++)
            (void)fputc(bytes[i] >= 0x20 && bytes[i] < 0x7F ? bytes[i] : '.', to);
        (void)fputc('\n', to);
    }
}

static bool take_item(void *ctx, const struct journal_quarantined *item)
{
    struct aside *aside = ctx;

    if (aside->number != 0 && item->number != aside->number)
        return true;
    aside->count++;
    put_item(aside->inspect, item);
    if (aside->number == 0 || inspect_flag(aside->inspect, FLAG_JSON))
        return aside->number == 0;
    if (inspect_flag(aside->inspect, FLAG_REVEAL))
        put_bytes(aside->inspect->out, item->bytes, item->length);
    else
        (void)fputs("  its bytes may hold secrets; see -reveal\n", aside->inspect->out);
    return false;
}

static int show(struct inspect *inspect, uint64_t number, struct err *err)
{
    struct aside aside = {.inspect = inspect, .number = number};
    int code = inspect_open(inspect, JOURNAL_READ, err);

    if (code == 0)
        code = journal_each_quarantined(inspect->journal, take_item, &aside, err);
    if (code < 0)
        return code;
    if (aside.count == 0 && number != 0)
        return err_set(err, ERR_GONE, "no entry %" PRIu64 " in quarantine", number);
    if (aside.count == 0 && !inspect_flag(inspect, FLAG_JSON))
        (void)fputs("nothing in quarantine\n", inspect->out);
    return 0;
}

static int drop(struct inspect *inspect, uint64_t number, struct err *err)
{
    int code = inspect_open(inspect, JOURNAL_WRITE, err);

    if (code == 0)
        code = journal_quarantine_drop(inspect->journal, number, err);
    if (code == ERR_GONE && inspect->journal != NULL)
        return err_set(err, ERR_GONE, "no entry %" PRIu64 " in quarantine", number);
    if (code == 0 && !inspect_flag(inspect, FLAG_JSON))
        (void)fprintf(inspect->out, "entry %" PRIu64 " is gone\n", number);
    return code;
}

int inspect_quarantine(struct inspect *inspect)
{
    const char *verb = inspect->args[0];
    bool list = text_equal(verb, "list");
    struct err err = {0};
    uint64_t number = 0;
    int code;

    if (!list && !text_equal(verb, "show") && !text_equal(verb, "drop"))
        return inspect_usage(inspect, "quarantine: \"%s\" is none of list, show, drop", verb);
    if (list != (inspect->args_count == 1) ||
        (!list && (!text_to_u64(inspect->args[1], &number) || number == 0)))
        return inspect_usage(inspect, "usage: cairn journal quarantine list|show N|drop N");
    if (text_equal(verb, "drop"))
        code = drop(inspect, number, &err);
    else
        code = show(inspect, number, &err);
    return code < 0 ? inspect_fail(inspect, &err) : STATUS_OK;
}
