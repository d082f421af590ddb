#include "core/machines/index.h"

#include "core/machines/part.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

/* --- keys of groups: a letter, then the names, each with its NUL --- */

struct key {
    char bytes[1 + PLUGIN_NAME_SIZE + SPEC_NAMESPACE_SIZE + VOLUME_NAME_SIZE];
    size_t length;
};

static struct key key_begin(char letter)
{
    return (struct key){.bytes = {letter}, .length = 1};
}

static void key_add(struct key *key, const char *name)
{
    size_t length = strlen(name) + 1;

    check(key->length + length <= sizeof(key->bytes)); /* names in records are bounded */
    memcpy(key->bytes + key->length, name, length);
    key->length += length;
}

static struct key job_key(const char *namespace, const char *job)
{
    struct key key = key_begin('j');

    key_add(&key, namespace);
    key_add(&key, job);
    return key;
}

/* What volume_is_same compares. */
static struct key volume_key(char letter, const struct volume *volume)
{
    struct key key = key_begin(letter);

    key_add(&key, volume->define.plugin);
    key_add(&key, volume->define.namespace);
    key_add(&key, volume->define.volume);
    return key;
}

static struct key plugin_key(char letter, const char *plugin)
{
    struct key key = key_begin(letter);

    key_add(&key, plugin);
    return key;
}

/* --- groups --- */

static struct group *find(const struct core *core, const struct key *key)
{
    struct group *group;

    HASH_FIND(hh, core->groups, key->bytes, key->length, group);
    return group;
}

static const struct group_member *members_of(const struct core *core, const struct key *key)
{
    const struct group *group = find(core, key);

    return group == NULL ? NULL : group->members;
}

static struct group *find_or_add(struct core *core, const struct key *key)
{
    struct group *group = find(core, key);

    if (group != NULL)
        return group;
    group = calloc(1, sizeof(*group) + key->length);
    check(group != NULL);
    memcpy(group->key, key->bytes, key->length);
    HASH_ADD_KEYPTR(hh, core->groups, group->key, key->length, group);
    return group;
}

static void join(struct core *core, struct slot *slot, int number, struct key key)
{
    struct group_member *member = &slot->groups[number], *before;

    check(member->group == NULL);
    member->slot = slot;
    member->group = find_or_add(core, &key);
    before = member->group->members == NULL ? NULL : member->group->members->prev; /* the last */
    while (before != NULL && before->slot->serial > slot->serial)
        before = before == member->group->members ? NULL : before->prev;
    if (before == NULL)
        DL_PREPEND(member->group->members, member);
    else
        DL_APPEND_ELEM(member->group->members, before, member);
}

static void leave(struct core *core, struct group_member *member)
{
    struct group *group = member->group;

    DL_DELETE(group->members, member);
    *member = (struct group_member){0};
    if (group->members != NULL)
        return;
    HASH_DEL(core->groups, group);
    free(group);
}

void index_join(struct core *core, struct slot *slot)
{
    const struct machine *record = slot_now(slot);

    check(record != NULL);
    switch ((enum machine_kind)slot->id.kind) {
    case MACHINE_ALLOC: {
        const struct alloc_assign *assign = &alloc_of(record)->assign;
        join(core, slot, PLACE_OF, job_key(assign->namespace, assign->job_id));
        return;
    }
    case MACHINE_VOLUME:
        join(core, slot, PLACE_OF, volume_key('v', volume_of(record)));
        index_note(core, slot);
        return;
    case MACHINE_PLUGIN:
        join(core, slot, PLACE_OF, plugin_key('p', plugin_of(record)->define.plugin));
        return;
    case MACHINE_TASK:
        return; /* found by its alloc's members */
    case MACHINE_KIND_COUNT:
        break;
    }
    unreachable("machine kind");
}

/* ONE claim more, or one less, of those that are so. */
static void count_claim(struct group *group, uint32_t counted, uint32_t one)
{
    group->claims.users += (counted & PEERS_USERS) != 0 ? one : 0;
    group->claims.busy += (counted & PEERS_BUSY) != 0 ? one : 0;
    group->claims.staged += (counted & PEERS_STAGED) != 0 ? one : 0;
    group->claims.debts += (counted & PEERS_DEBT) != 0 ? one : 0;
}

static void count_as(struct group_member *member, uint32_t counted)
{
    if (member->counted == counted)
        return;
    count_claim(member->group, member->counted, UINT32_MAX); /* one less */
    member->counted = counted;
    count_claim(member->group, counted, 1);
}

/* SLOT belongs, or does not any more, into the group of KEY. */
static void belong(struct core *core, struct slot *slot, int number, bool belongs, struct key key)
{
    struct group_member *member = &slot->groups[number];

    if (belongs && member->group == NULL)
        join(core, slot, number, key);
    else if (!belongs && member->group != NULL)
        leave(core, member);
}

static void leave_all(struct core *core, struct slot *slot, int from)
{
    for (int i = from; i < INDEX_GROUPS_MAX; i++) {
        if (slot->groups[i].group != NULL)
            leave(core, &slot->groups[i]);
    }
}

void index_note(struct core *core, struct slot *slot)
{
    struct group_member *member = &slot->groups[PLACE_OF];
    const struct machine *record = slot_now(slot);

    if (slot->id.kind != MACHINE_VOLUME || member->group == NULL)
        return;
    if (record == NULL) {
        count_as(member, 0);
        leave_all(core, slot, PLACE_OF + 1);
        return;
    }
    const struct volume *volume = volume_of(record);
    bool waits = volume_waits(volume);
    count_as(member, volume_add_peer(0, volume));
    belong(core, slot, PLACE_VOLUME_WAITING, waits, volume_key('w', volume));
    belong(core, slot, PLACE_VOLUME_HEIRS, volume_inherits(volume), volume_key('h', volume));
    belong(core, slot, PLACE_PLUGIN_WAITING, waits, plugin_key('u', volume->define.plugin));
}

uint32_t index_peers(const struct core *core, const struct slot *slot, const struct volume *volume)
{
    struct key key = volume_key('v', volume);
    const struct group *group = find(core, &key);
    uint32_t own = slot == NULL ? 0 : slot->groups[PLACE_OF].counted;

    if (group == NULL)
        return 0;
    uint32_t users = group->claims.users - ((own & PEERS_USERS) != 0);
    uint32_t peers = users < PEERS_USERS ? users : PEERS_USERS;
    if (group->claims.busy > ((own & PEERS_BUSY) != 0))
        peers |= PEERS_BUSY;
    if (group->claims.staged > ((own & PEERS_STAGED) != 0))
        peers |= PEERS_STAGED;
    if (group->claims.debts > ((own & PEERS_DEBT) != 0))
        peers |= PEERS_DEBT;
    return peers;
}

bool index_is_same(const struct machine *one, const struct machine *other)
{
    check(one->kind == other->kind);
    switch ((enum machine_kind)one->kind) {
    case MACHINE_ALLOC: {
        const struct alloc_assign *a = &alloc_of(one)->assign, *b = &alloc_of(other)->assign;
        return text_equal(a->namespace, b->namespace) && text_equal(a->job_id, b->job_id);
    }
    case MACHINE_VOLUME:
        return volume_is_same(volume_of(one), volume_of(other));
    case MACHINE_PLUGIN:
        return text_equal(plugin_of(one)->define.plugin, plugin_of(other)->define.plugin);
    case MACHINE_TASK:
        return true; /* in none */
    case MACHINE_KIND_COUNT:
        break;
    }
    unreachable("machine kind");
}

void index_leave(struct core *core, struct slot *slot)
{
    struct group_member *member = &slot->groups[PLACE_OF];

    if (member->group != NULL)
        count_as(member, 0);
    leave_all(core, slot, PLACE_OF);
}

const struct group_member *index_job(const struct core *core, const char *namespace,
                                     const char *job)
{
    struct key key;

    if (strlen(namespace) >= SPEC_NAMESPACE_SIZE || strlen(job) >= SPEC_NAME_SIZE)
        return NULL; /* no record can hold such a name */
    key = job_key(namespace, job);
    return members_of(core, &key);
}

const struct group_member *index_volume(const struct core *core, const struct volume *volume)
{
    struct key key = volume_key('v', volume);

    return members_of(core, &key);
}

const struct group_member *index_volume_waiting(const struct core *core,
                                                const struct volume *volume)
{
    struct key key = volume_key('w', volume);

    return members_of(core, &key);
}

const struct group_member *index_volume_heirs(const struct core *core, const struct volume *volume)
{
    struct key key = volume_key('h', volume);

    return members_of(core, &key);
}

const struct group_member *index_plugin(const struct core *core, const char *plugin)
{
    struct key key = plugin_key('p', plugin);

    return members_of(core, &key);
}

const struct group_member *index_plugin_waiting(const struct core *core, const char *plugin)
{
    struct key key = plugin_key('u', plugin);

    return members_of(core, &key);
}

/* --- deadlines: a heap, the earliest first --- */

static uint64_t due_of(const struct slot *slot)
{
    return slot->record == NULL ? 0 : slot->record->deadline_ms;
}

static void place(struct due_list *due, size_t at, uint64_t at_ms, struct slot *slot)
{
    due->items[at] = (struct due){at_ms, slot};
    slot->due_at = at;
}

static void sift_up(struct due_list *due, size_t at)
{
    struct due moving = due->items[at];

    for (; at > 0 && due->items[(at - 1) / 2].at_ms > moving.at_ms; at = (at - 1) / 2) {
        struct due above = due->items[(at - 1) / 2];
        place(due, at, above.at_ms, above.slot);
    }
    place(due, at, moving.at_ms, moving.slot);
}

static void sift_down(struct due_list *due, size_t at)
{
    struct due moving = due->items[at];

    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < due->count && due->items[child + 1].at_ms < due->items[child].at_ms)
            child++;
        if (child >= due->count || due->items[child].at_ms >= moving.at_ms)
            break;
        place(due, at, due->items[child].at_ms, due->items[child].slot);
        at = child;
    }
    place(due, at, moving.at_ms, moving.slot);
}

void index_deadline(struct core *core, struct slot *slot)
{
    struct due_list *due = &core->due;
    uint64_t at_ms = due_of(slot);

    if (slot->due_at != INDEX_NONE) {
        size_t at = slot->due_at;
        check(due->items[at].slot == slot);
        if (due->items[at].at_ms == at_ms)
            return;
        struct due last = due->items[--due->count];
        slot->due_at = INDEX_NONE;
        if (last.slot != slot) {
            place(due, at, last.at_ms, last.slot);
            sift_up(due, at);
            sift_down(due, last.slot->due_at);
        }
    }
    check(slot->due_at == INDEX_NONE);
    if (at_ms == 0)
        return;
    *list_more(due) = (struct due){at_ms, slot};
    sift_up(due, due->count - 1);
    check(due->items[slot->due_at].slot == slot);
}

static int by_serial(const void *a, const void *b)
{
    const struct slot *left = *(struct slot *const *)a, *right = *(struct slot *const *)b;

    return left->serial < right->serial ? -1 : left->serial > right->serial;
}

struct found {
    struct slot **items;
    size_t count, size;
};

/* AT and what is below it: nothing below what is not due is. */
static void collect(const struct due_list *due, size_t at, uint64_t now_ms, struct found *found)
{
    if (at >= due->count || due->items[at].at_ms > now_ms)
        return;
    *list_more(found) = due->items[at].slot;
    collect(due, 2 * at + 1, now_ms, found);
    collect(due, 2 * at + 2, now_ms, found);
}

void index_each_due(struct core *core, uint64_t now_ms, void (*cb)(struct core *, struct slot *))
{
    struct found found = {0};

    collect(&core->due, 0, now_ms, &found);
    if (found.count > 1)
        qsort(found.items, found.count, sizeof(struct slot *), by_serial);
    for (size_t i = 0; i < found.count; i++)
        cb(core, found.items[i]);
    free(found.items);
}
