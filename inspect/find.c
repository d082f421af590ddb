/* Which machines are meant: all that the options let through, or the one that a name is the begin
 * of. */
#include "inspect/part.h"

#include <string.h>

bool inspect_wants(const struct inspect *inspect, const struct machine_id *id)
{
    const struct inspect_options *options = &inspect->options;

    if (options->kinds != 0 && (options->kinds >> id->kind & 1u) == 0)
        return false;
    if (options->alloc == NULL)
        return true;
    return text_starts_with(id->text, options->alloc) &&
           (id->kind == MACHINE_ALLOC || strchr(id->text, '/') != NULL);
}

/* --- naming one machine --- */

struct naming {
    struct inspect *inspect;
    const char *text;
    struct machine_id found, other;
    uint32_t matches;
    bool exact;
};

static bool is_named(const char *id, const char *text)
{
    const char *slash = strchr(text, '/'), *id_slash = strchr(id, '/');

    if (slash == NULL)
        return text_starts_with(id, text);
    /* "<begin of the alloc>/<begin of the name>" */
    return id_slash != NULL && strncmp(id, text, (size_t)(slash - text)) == 0 &&
           text_starts_with(id_slash + 1, slash + 1);
}

static void note_match(struct naming *naming, const struct machine_id *id)
{
    bool exact = text_equal(id->text, naming->text);
    bool has_slash = strchr(naming->text, '/') != NULL;

    unsigned kinds = naming->inspect->options.kinds;

    if (kinds != 0 && (kinds >> id->kind & 1u) == 0)
        return;
    if (!exact && (naming->exact || !is_named(id->text, naming->text)))
        return;
    /* A bare prefix of an alloc's id means the alloc, not its tasks. */
    bool is_part = strchr(id->text, '/') != NULL && id->kind != MACHINE_PLUGIN;
    if (!exact && !has_slash && kinds == 0 && is_part)
        return;
    if (machine_id_equal(id, &naming->found))
        return;
    if (exact && !naming->exact) {
        naming->exact = true;
        naming->matches = 0;
    }
    naming->other = naming->found;
    naming->found = *id;
    naming->matches++;
}

static bool match_record(void *ctx, const struct machine_id *id, const struct machine *record)
{
    (void)record;
    note_match(ctx, id);
    return true;
}

static bool match_event(void *ctx, const struct journal_event *event)
{
    struct naming *naming = ctx;

    note_match(naming, &event->id);
    return naming->matches < 2;
}

int inspect_find(struct inspect *inspect, const char *text, struct machine_id *ret_id,
                 struct err *err)
{
    struct naming naming = {.inspect = inspect, .text = text};
    char one[ID_TEXT_SIZE], two[ID_TEXT_SIZE];
    int code = 0;

    for (int kind = MACHINE_KIND_COUNT - 1; kind >= 0 && code == 0; kind--)
        code = journal_each_record(inspect->journal, (enum machine_kind)kind, match_record,
                                   inspect_ignore, &naming, err);
    if (code == 0 && naming.matches == 0) /* gone, but its history may still be there */
        code = journal_each_event(inspect->journal, inspect->first.sequence, match_event,
                                  inspect_ignore, &naming, err);
    if (code < 0)
        return code;
    if (naming.matches == 0)
        return err_set(err, ERR_GONE, "no machine \"%s\" in this journal; see: cairn journal list",
                       text);
    if (naming.matches > 1) {
        (void)text_copy(one, sizeof(one), naming.other.text); /* same size */
        (void)text_copy(two, sizeof(two), naming.found.text);
        return err_set(err, ERR_INVALID, "\"%s\" is the begin of %s %s and of %s %s%s%s", text,
                       machine_kind_name((enum machine_kind)naming.other.kind), one,
                       machine_kind_name((enum machine_kind)naming.found.kind), two,
                       naming.matches > 2 ? " and others" : "",
                       naming.other.kind != naming.found.kind ? "; -kind says of which" : "");
    }
    *ret_id = naming.found;
    return 0;
}
