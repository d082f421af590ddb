/* Ids of machines: whose they are is written in them, so that no machine points at another. */
#include "fsm/fsm.h"

#include <string.h>

struct machine_id machine_id_make(enum machine_kind kind, const char *text)
{
    struct machine_id id = {.kind = (uint8_t)kind};

    check((unsigned)kind < MACHINE_KIND_COUNT);
    bool whole = text_copy(id.text, sizeof(id.text), text);
    check(whole); /* sizes of ids are bounded where they enter */
    return id;
}

struct machine_id machine_id_join(enum machine_kind kind, const char *alloc, const char *name)
{
    struct machine_id id = {.kind = (uint8_t)kind};

    check(kind == MACHINE_TASK || kind == MACHINE_VOLUME || kind == MACHINE_PLUGIN);
    bool whole = text_copy(id.text, sizeof(id.text), alloc);
    whole = text_append(id.text, sizeof(id.text), "/") && whole;
    whole = text_append(id.text, sizeof(id.text), name) && whole;
    check(whole);
    return id;
}

struct machine_id machine_id_owner(const struct machine_id *id)
{
    struct machine_id owner = {.kind = MACHINE_ALLOC};
    const char *slash = strchr(id->text, '/');

    check(id->kind != MACHINE_ALLOC); /* it belongs to nobody */
    check(slash != NULL);
    memcpy(owner.text, id->text, (size_t)(slash - id->text));
    return owner;
}

const char *machine_id_name(const struct machine_id *id)
{
    const char *slash = strchr(id->text, '/');

    check(slash != NULL);
    return slash + 1;
}

bool machine_id_equal(const struct machine_id *a, const struct machine_id *b)
{
    return a->kind == b->kind && text_equal(a->text, b->text);
}

int machine_id_order(const struct machine_id *a, const struct machine_id *b)
{
    return a->kind != b->kind ? a->kind - b->kind : strcmp(a->text, b->text);
}

unsigned machine_id_hash(const struct machine_id *id)
{
    return (unsigned)hash_bytes(id->kind, id->text, strlen(id->text));
}
