/* The allocs that the servers have given, and those that are here. */
#include "server/nomad/part.h"

struct mine *mine_find(const struct nomad *nomad, const char *id)
{
    struct mine *mine;

    HASH_FIND_STR(nomad->mine, id, mine);
    return mine;
}

struct mine *mine_add(struct nomad *nomad, const char *id)
{
    struct mine *mine = mine_find(nomad, id);

    if (mine != NULL)
        return mine;
    mine = calloc(1, sizeof(*mine));
    check(mine != NULL);
    (void)text_copy(mine->id, sizeof(mine->id), id); /* a UUID */
    HASH_ADD_STR(nomad->mine, id, mine);
    return mine;
}

void mine_drop(struct nomad *nomad, struct mine *mine)
{
    HASH_DEL(nomad->mine, mine);
    nomad->contacted -= mine->minds_contact;
    free(mine->refused);
    free(mine);
}

void mine_end(struct nomad *nomad)
{
    struct mine *mine, *next;

    HASH_ITER(hh, nomad->mine, mine, next)
    mine_drop(nomad, mine);
}
