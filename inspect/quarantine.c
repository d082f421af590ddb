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

    inspect_print_time(item->unix_ns, when);
    if (inspect->options.json) {
        (void)fprintf(inspect->options.out,
                      "{\"number\":%" PRIu64 ",\"time\":\"%s\",\"table\":", item->number, when);
        inspect_json_string(inspect->options.out, item->table);
        (void)fputs(",\"key\":", inspect->options.out);
        inspect_json_string(inspect->options.out, item->key);
        (void)fputs(",\"reason\":", inspect->options.out);
        inspect_json_string(inspect->options.out, item->reason);
        (void)fprintf(inspect->options.out, ",\"bytes\":%zu}\n", item->length);
        return;
    }
    (void)fprintf(inspect->options.out, "%6" PRIu64 "  %s  ", item->number, when);
    put_text(inspect->options.out, item->table);
    (void)fputs("  ", inspect->options.out);
    put_text(inspect->options.out, item->key);
    (void)fprintf(inspect->options.out, "  %zu bytes: ", item->length);
    put_text(inspect->options.out, item->reason);
    (void)fputc('\n', inspect->options.out);
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
    if (aside->number == 0 || aside->inspect->options.json)
        return aside->number == 0;
    if (aside->inspect->options.reveal && !text_starts_with(item->key, "secret/"))
        put_bytes(aside->inspect->options.out, item->bytes, item->length);
    else if (aside->inspect->options.reveal)
        (void)fputs("  its bytes are secrets, which are never shown\n",
                    aside->inspect->options.out);
    else
        (void)fputs("  its bytes may hold secrets; see -reveal\n", aside->inspect->options.out);
    return false;
}

static int no_entry(uint64_t number, struct err *err)
{
    return err_set(err, ERR_GONE, "no entry %" PRIu64 " in quarantine", number);
}

int inspect_quarantine(struct inspect *inspect, uint64_t number, struct err *err)
{
    struct aside aside = {.inspect = inspect, .number = number};
    int code = journal_each_quarantined(inspect->journal, take_item, &aside, err);

    if (code < 0)
        return code;
    if (aside.count == 0 && number != 0)
        return no_entry(number, err);
    if (aside.count == 0 && !inspect->options.json)
        (void)fputs("nothing in quarantine\n", inspect->options.out);
    return 0;
}

int inspect_quarantine_drop(const char *path, uint64_t number, struct err *err)
{
    char place[JOURNAL_PATH_SIZE];
    struct journal *journal;
    int code = journal_locate(path, place, err);

    if (code == 0)
        code = journal_open(place, JOURNAL_WRITE, &journal, err);
    if (code < 0)
        return code;
    code = journal_quarantine_drop(journal, number, err);
    journal_close(journal);
    return code == ERR_GONE ? no_entry(number, err) : code;
}
