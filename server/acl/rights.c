/* What rights allow.  Pure. */
#include "server/acl/part.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)ACL_VOLUME_DENY == (int)ACL_DENY, "one bit denies in all rules");
_Static_assert(ACL_CAPABILITIES <= 64, "they are bits");

const struct acl_rights acl_everything = {.manages = true}, acl_nothing = {.manages = false};

struct acl_rights *rights_new(void)
{
    struct acl_rights *rights = calloc(1, sizeof(*rights));

    check(rights != NULL);
    return rights;
}

void acl_rights_free(struct acl_rights *rights)
{
    if (rights == NULL)
        return;
    free(rights->namespaces.items);
    free(rights->volumes.items);
    free(rights);
}

/* --- granting --- */

void rights_grant(struct acl_rules *rules, const char *name, uint64_t granted)
{
    struct acl_rule *rule = NULL;

    for (size_t i = 0; i < rules->count && rule == NULL; i++) {
        if (text_equal(rules->items[i].name, name))
            rule = &rules->items[i];
    }
    if (rule == NULL) {
        rule = list_more(rules);
        (void)text_copy(rule->name, sizeof(rule->name), name); /* it was looked at */
        rule->granted = 0;
    }
    rule->granted |= granted;
    /* Denied is denied, whatever else grants it; the bit is that of volumes, too. */
    if ((rule->granted & ACL_BIT(ACL_DENY)) != 0)
        rule->granted = ACL_BIT(ACL_DENY);
}

void rights_grant_area(struct acl_rights *rights, enum acl_area area, enum acl_level level)
{
    if (level > rights->levels[area])
        rights->levels[area] = level;
}

void rights_add(struct acl_rights *rights, const struct acl_rights *from)
{
    for (size_t i = 0; i < from->namespaces.count; i++)
        rights_grant(&rights->namespaces, from->namespaces.items[i].name,
                     from->namespaces.items[i].granted);
    for (size_t i = 0; i < from->volumes.count; i++)
        rights_grant(&rights->volumes, from->volumes.items[i].name, from->volumes.items[i].granted);
    for (enum acl_area area = 0; area < ACL_AREAS; area++)
        rights_grant_area(rights, area, from->levels[area]);
    rights->manages |= from->manages;
}

/* --- looking --- */

/* True if PATTERN, in which * stands for anything, is NAME. */
static bool matches(const char *pattern, const char *name)
{
    const char *star = NULL, *retry = NULL;

    while (*name != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            retry = name;
        } else if (*pattern == *name) {
            pattern++;
            name++;
        } else if (star != NULL) {
            pattern = star + 1;
            name = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

/* How much of a name of LENGTH a * in PATTERN stands for: the less, the closer. */
static size_t distance(const char *pattern, size_t length)
{
    size_t own = 0;

    for (const char *at = pattern; *at != '\0'; at++)
        own += *at != '*';
    return length - own;
}

/* What is granted of NAME: by the rule that names it, else by the closest that means it. */
static uint64_t granted(const struct acl_rules *rules, const char *name)
{
    const struct acl_rule *best = NULL;
    size_t length = strlen(name), best_distance = 0;

    for (size_t i = 0; i < rules->count; i++) {
        const struct acl_rule *rule = &rules->items[i];

        if (text_equal(rule->name, name))
            return rule->granted;
        if (!matches(rule->name, name))
            continue;
        size_t here = distance(rule->name, length);
        if (best == NULL || here < best_distance) {
            best = rule;
            best_distance = here;
        }
    }
    return best == NULL ? 0 : best->granted;
}

bool acl_manages(const struct acl_rights *rights)
{
    return rights->manages;
}

bool acl_allows(const struct acl_rights *rights, const char *namespace, uint64_t capabilities)
{
    bool any = text_equal(namespace, "*");

    if (rights->manages)
        return true;
    for (size_t i = 0; any && i < rights->namespaces.count; i++) {
        if ((rights->namespaces.items[i].granted & capabilities) != 0)
            return true;
    }
    return !any && (granted(&rights->namespaces, namespace) & capabilities) != 0;
}

bool acl_sees_namespace(const struct acl_rights *rights, const char *namespace)
{
    return acl_allows(rights, namespace, ~ACL_BIT(ACL_DENY));
}

bool acl_allows_volume(const struct acl_rights *rights, const char *name, uint64_t capabilities)
{
    return rights->manages || (granted(&rights->volumes, name) & capabilities) != 0;
}

bool acl_allows_area(const struct acl_rights *rights, enum acl_area area, enum acl_level level)
{
    enum acl_level own = rights->levels[area];

    return rights->manages || (own != ACL_DENIED && own >= level);
}
