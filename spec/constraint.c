/* Constraints (spec/constraint.h). */
#include "spec/constraint.h"

#include "base/base.h"
#include "spec/json.h"
#include "spec/regex.h"
#include "spec/version.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of a match, on the loop: what a node says is short, and nothing sensible needs more. */
enum { STEPS_MAX = 26000 };

enum operand {
    OPERAND_EQUAL,
    OPERAND_UNEQUAL,
    OPERAND_LESS,
    OPERAND_LESS_EQUAL,
    OPERAND_GREATER,
    OPERAND_GREATER_EQUAL,
    OPERAND_REGEX,
    OPERAND_VERSION,
    OPERAND_SEMVER,
    OPERAND_CONTAINS_ALL,
    OPERAND_CONTAINS_ANY,
    OPERAND_SET,
    OPERAND_NOT_SET,
    OPERAND_DISTINCT_HOSTS,
    OPERAND_DISTINCT_PROPERTY,
    OPERAND_UNKNOWN,
};

static enum operand operand_of(const char *text)
{
    static const struct {
        const char *text;
        enum operand operand;
    } names[] = {
        {"=", OPERAND_EQUAL},
        {"==", OPERAND_EQUAL},
        {"is", OPERAND_EQUAL},
        {"!=", OPERAND_UNEQUAL},
        {"not", OPERAND_UNEQUAL},
        {"<", OPERAND_LESS},
        {"<=", OPERAND_LESS_EQUAL},
        {">", OPERAND_GREATER},
        {">=", OPERAND_GREATER_EQUAL},
        {"regexp", OPERAND_REGEX},
        {"version", OPERAND_VERSION},
        {"semver", OPERAND_SEMVER},
        {"set_contains", OPERAND_CONTAINS_ALL},
        {"set_contains_all", OPERAND_CONTAINS_ALL},
        {"set_contains_any", OPERAND_CONTAINS_ANY},
        {"is_set", OPERAND_SET},
        {"is_not_set", OPERAND_NOT_SET},
        {"distinct_hosts", OPERAND_DISTINCT_HOSTS},
        {"distinct_property", OPERAND_DISTINCT_PROPERTY},
    };

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (text_equal(names[i].text, text))
            return names[i].operand;
    }
    return OPERAND_UNKNOWN;
}

/* --- checking --- */

/* A target is a text of its own, or something of a node that there is. */
static int check_target(const char *target, struct err *err)
{
    static const char *const whole[] = {"${node.unique.id}", "${node.unique.name}",
                                        "${node.datacenter}", "${node.class}", "${node.pool}"};

    if (target[0] == '\0')
        return err_set(err, ERR_INVALID,
                       "a constraint needs an attribute, for example "
                       "${attr.kernel.name}");
    if (target[0] != '$')
        return 0;
    if (!text_starts_with(target, "${") || !text_ends_with(target, "}"))
        return err_set(err, ERR_INVALID, "the attribute \"%.60s\" is written ${...}", target);
    for (size_t i = 0; i < COUNT_OF(whole); i++) {
        if (text_equal(whole[i], target))
            return 0;
    }
    if (text_starts_with(target, "${attr.") || text_starts_with(target, "${meta."))
        return 0;
    return err_set(err, ERR_INVALID,
                   "a constraint cannot name \"%.60s\": there are ${attr.NAME}, ${meta.NAME}, "
                   "${node.class}, ${node.datacenter}, ${node.pool}, ${node.unique.id} and "
                   "${node.unique.name}",
                   target);
}

static int check_value(enum operand operand, const char *name, const char *value, struct err *err)
{
    struct regex *regex;
    struct err why = {0};
    uint64_t count;

    switch (operand) {
    case OPERAND_REGEX:
        regex = regex_new(value, strlen(value), &why);
        regex_free(regex);
        return regex != NULL
                   ? 0
                   : err_set(err, ERR_INVALID, "this is no regular expression: %s", why.text);
    case OPERAND_VERSION:
    case OPERAND_SEMVER:
        return version_check(operand == OPERAND_SEMVER ? VERSION_SEMVER : VERSION_LOOSE, value,
                             err);
    case OPERAND_DISTINCT_PROPERTY:
        if (value[0] != '\0' && (!text_to_u64(value, &count) || count == 0))
            return err_set(err, ERR_INVALID,
                           "the value of distinct_property says how many allocs may have the same: "
                           "a whole number, 1 or more, not \"%.40s\"",
                           value);
        return 0;
    case OPERAND_SET:
    case OPERAND_NOT_SET:
        return value[0] == '\0' ? 0 : err_set(err, ERR_INVALID, "%s takes no value", name);
    case OPERAND_DISTINCT_HOSTS:
        return 0;
    case OPERAND_EQUAL:
    case OPERAND_UNEQUAL:
    case OPERAND_LESS:
    case OPERAND_LESS_EQUAL:
    case OPERAND_GREATER:
    case OPERAND_GREATER_EQUAL:
    case OPERAND_CONTAINS_ALL:
    case OPERAND_CONTAINS_ANY:
        return value[0] != '\0' ? 0 : err_set(err, ERR_INVALID, "%s needs a value", name);
    case OPERAND_UNKNOWN:
        return err_set(err, ERR_INVALID,
                       "there is no operator \"%.40s\": there are =, !=, <, <=, >, >=, regexp, "
                       "version, semver, set_contains, set_contains_any, is_set, is_not_set, "
                       "distinct_hosts and distinct_property",
                       name);
    }
    unreachable("operand");
}

int constraint_check(const json_t *constraint, bool in_task, struct err *err)
{
    const char *name = text_of(constraint, "Operand");
    enum operand operand = operand_of(name);
    int code = check_value(operand, name, text_of(constraint, "RTarget"), err);

    if (code == 0 && operand != OPERAND_DISTINCT_HOSTS)
        code = check_target(text_of(constraint, "LTarget"), err);
    if (code == 0 && in_task &&
        (operand == OPERAND_DISTINCT_HOSTS || operand == OPERAND_DISTINCT_PROPERTY))
        return err_set(err, ERR_INVALID, "%s belongs to a job or a group, not to a task", name);
    return code;
}

/* --- targets --- */

static const char *find_pair(const struct spec_pairs *pairs, const char *name, size_t length)
{
    for (size_t i = 0; pairs != NULL && i < pairs->count; i++) {
        const char *key = pairs->items[i].key;

        if (strlen(key) == length && memcmp(key, name, length) == 0)
            return pairs->items[i].value;
    }
    return NULL;
}

const char *constraint_target(const struct constraint_node *node, const char *target)
{
    static const char attribute[] = "${attr.", meta[] = "${meta.";
    size_t length = strlen(target), skip = sizeof(attribute) - 1;

    if (!text_starts_with(target, "${"))
        return target;
    if (text_equal(target, "${node.unique.id}"))
        return node->id;
    if (text_equal(target, "${node.unique.name}"))
        return node->name;
    if (text_equal(target, "${node.datacenter}"))
        return node->datacenter;
    if (text_equal(target, "${node.class}"))
        return node->class;
    if (text_equal(target, "${node.pool}"))
        return node->pool;
    length -= text_ends_with(target, "}");
    if (length < skip)
        return NULL;
    if (text_starts_with(target, attribute))
        return find_pair(node->attributes, target + skip, length - skip);
    if (text_starts_with(target, meta))
        return find_pair(node->meta, target + skip, length - skip);
    return NULL;
}

/* --- comparing --- */

/* As Go's ParseFloat, which takes no spaces around it, and digits after 0x with a power only. */
static bool read_number(const char *text, double *ret_number)
{
    bool hexadecimal = strpbrk(text, "xX") != NULL;
    char *end;

    if (text[0] == '\0' || strpbrk(text, " \t\n\v\f\r(") != NULL ||
        (hexadecimal && strpbrk(text, "pP") == NULL))
        return false;
    errno = 0;
    *ret_number = strtod(text, &end);
    bool is_large = errno == ERANGE && isinf(*ret_number);
    return *end == '\0' && !is_large;
}

/* True if LEFT OPERAND RIGHT; what is not a number (NaN) is in no order. */
static bool is_ordered(enum operand operand, const char *left, const char *right)
{
    int64_t left_whole, right_whole;
    double a, b;

    if (text_to_i64(left, &left_whole) && text_to_i64(right, &right_whole)) {
        a = left_whole < right_whole ? -1 : left_whole > right_whole; /* a double would round */
        b = 0;
    } else if (!read_number(left, &a) || !read_number(right, &b)) {
        a = strcmp(left, right);
        b = 0;
    }
    switch ((int)operand) {
    case OPERAND_LESS:
        return a < b;
    case OPERAND_LESS_EQUAL:
        return a <= b;
    case OPERAND_GREATER:
        return a > b;
    default:
        return a >= b;
    }
}

static bool matches(const char *pattern, const char *text)
{
    struct regex_span spans[REGEX_GROUPS_MAX + 1];
    struct regex *regex = regex_new(pattern, strlen(pattern), NULL);
    bool found = false;

    if (regex != NULL) {
        regex_limit(regex, STEPS_MAX);
        found = regex_find(regex, text, strlen(text), 0, spans, NULL) == 1;
    }

    regex_free(regex);
    return found;
}

/* The next of LIST, whose members commas divide, without the blanks around it. */
static bool next_member(const char **list, const char **ret_member, size_t *ret_length)
{
    static const char blank[] = " \t\n\v\f\r";
    const char *at = *list;
    size_t length;

    if (at == NULL)
        return false;
    length = strcspn(at, ",");
    *list = at[length] == ',' ? at + length + 1 : NULL;
    size_t skip = strspn(at, blank);
    skip = skip < length ? skip : length;
    at += skip;
    length -= skip;
    while (length > 0 && strchr(blank, at[length - 1]) != NULL)
        length--;
    *ret_member = at;
    *ret_length = length;
    return true;
}

static bool is_member(const char *list, const char *member, size_t length)
{
    const char *other;
    size_t other_length;

    while (next_member(&list, &other, &other_length)) {
        if (other_length == length && memcmp(other, member, length) == 0)
            return true;
    }
    return false;
}

static bool contains(const char *list, const char *wanted, bool all)
{
    const char *member;
    size_t length;

    while (next_member(&wanted, &member, &length)) {
        if (is_member(list, member, length) != all)
            return !all;
    }
    return all;
}

bool constraint_holds(const struct constraint_node *node, const json_t *constraint)
{
    const char *left = constraint_target(node, text_of(constraint, "LTarget"));
    const char *right = constraint_target(node, text_of(constraint, "RTarget"));
    bool both = left != NULL && right != NULL;
    enum operand operand = operand_of(text_of(constraint, "Operand"));

    switch (operand) {
    case OPERAND_EQUAL:
        return both && text_equal(left, right);
    case OPERAND_UNEQUAL:
        return both ? !text_equal(left, right) : left != right;
    case OPERAND_LESS:
    case OPERAND_LESS_EQUAL:
    case OPERAND_GREATER:
    case OPERAND_GREATER_EQUAL:
        return both && is_ordered(operand, left, right);
    case OPERAND_REGEX:
        return both && matches(right, left);
    case OPERAND_VERSION:
        return both && version_matches(VERSION_LOOSE, right, left);
    case OPERAND_SEMVER:
        return both && version_matches(VERSION_SEMVER, right, left);
    case OPERAND_CONTAINS_ALL:
    case OPERAND_CONTAINS_ANY:
        return both && contains(left, right, operand == OPERAND_CONTAINS_ALL);
    case OPERAND_SET:
        return left != NULL;
    case OPERAND_NOT_SET:
        return left == NULL;
    case OPERAND_DISTINCT_HOSTS:
    case OPERAND_DISTINCT_PROPERTY:
        return true;
    case OPERAND_UNKNOWN:
        return false; /* of an older version's job */
    }
    unreachable("operand");
}

bool constraint_is_version(const char *text)
{
    return version_matches(VERSION_SEMVER, ">= 0.0.0-0", text);
}

/* --- a job's --- */

static json_t *words_of(const json_t *constraint)
{
    return json_sprintf("%s %s %s", text_of(constraint, "LTarget"), text_of(constraint, "Operand"),
                        text_of(constraint, "RTarget"));
}

static json_t *unmet_of(const struct constraint_node *node, const json_t *object)
{
    json_t *constraint;
    size_t i;

    json_array_foreach(json_object_get(object, "Constraints"), i, constraint)
    {
        if (!constraint_holds(node, constraint))
            return words_of(constraint);
    }
    return NULL;
}

/* Nomad's servers add these to each group that asks for its bridge (v2.0.5
 * nomad/job_endpoint_hooks.go); here the job stays as it was written. */
static json_t *unmet_by_bridge(const struct constraint_node *node, const json_t *group)
{
    static const char *const plugins[] = {"bridge", "firewall", "host-local", "loopback",
                                          "portmap"};
    const json_t *network = json_array_get(json_object_get(group, "Networks"), 0);
    json_t *unmet = NULL;

    if (!text_equal(text_of(network, "Mode"), "bridge"))
        return NULL;
    for (size_t i = 0; i < COUNT_OF(plugins) && unmet == NULL; i++) {
        json_t *constraint = json_pack("{s:o, s:s, s:s}", "LTarget",
                                       json_sprintf("${attr.plugins.cni.version.%s}", plugins[i]),
                                       "Operand", "semver", "RTarget", ">= 0.4.0");

        check(constraint != NULL);
        if (!constraint_holds(node, constraint))
            unmet = words_of(constraint);
        json_decref(constraint);
    }
    return unmet;
}

static bool has_consul(const json_t *services)
{
    const json_t *service;
    size_t i;

    json_array_foreach(services, i, service)
    {
        if (text_equal(text_of(service, "Provider"), "consul"))
            return true;
    }
    return false;
}

/* Nomad's servers add this constraint to groups that have services of Consul. */
static json_t *unmet_by_consul(const struct constraint_node *node, const json_t *group)
{
    bool needed = has_consul(json_object_get(group, "Services"));
    json_t *task, *unmet = NULL;
    size_t i;

    json_array_foreach(json_object_get(group, "Tasks"), i, task) needed |=
        has_consul(json_object_get(task, "Services"));
    if (!needed)
        return NULL;
    json_t *constraint = json_pack("{s:s, s:s, s:s}", "LTarget", "${attr.consul.version}",
                                   "Operand", "semver", "RTarget", ">= 1.8.0");
    check(constraint != NULL);
    if (!constraint_holds(node, constraint))
        unmet = words_of(constraint);
    json_decref(constraint);
    return unmet;
}

json_t *constraint_unmet(const struct constraint_node *node, const json_t *job, const json_t *group)
{
    json_t *unmet = unmet_of(node, job), *task;
    size_t i;

    if (unmet == NULL)
        unmet = unmet_of(node, group);
    if (unmet == NULL)
        unmet = unmet_by_bridge(node, group);
    if (unmet == NULL)
        unmet = unmet_by_consul(node, group);
    json_array_foreach(unmet == NULL ? json_object_get(group, "Tasks") : NULL, i, task)
    {
        unmet = unmet_of(node, task);
        if (unmet != NULL)
            break;
    }
    return unmet;
}

/* How many allocs CONSTRAINT allows on NODE. */
static size_t allowed_by(const struct constraint_node *node, const json_t *constraint)
{
    const char *wanted = text_of(constraint, "RTarget");
    enum operand operand = operand_of(text_of(constraint, "Operand"));
    uint64_t allowed = 1;

    if (operand == OPERAND_DISTINCT_HOSTS)
        return text_equal(wanted, "false") ? SIZE_MAX : 1;
    if (operand != OPERAND_DISTINCT_PROPERTY)
        return SIZE_MAX;
    if (constraint_target(node, text_of(constraint, "LTarget")) == NULL)
        return 0;
    if (wanted[0] != '\0')
        (void)text_to_u64(wanted, &allowed); /* it was checked; else one */
    return (size_t)allowed;
}

size_t constraint_room(const struct constraint_node *node, const json_t *constraints)
{
    size_t room = SIZE_MAX, i;
    json_t *constraint;

    json_array_foreach(constraints, i, constraint)
    {
        size_t allowed = allowed_by(node, constraint);

        room = allowed < room ? allowed : room;
    }
    return room;
}

json_t *constraint_crowded(const struct constraint_node *node, const json_t *constraints,
                           size_t count)
{
    json_t *constraint;
    size_t i;

    json_array_foreach(constraints, i, constraint)
    {
        const char *target = text_of(constraint, "LTarget");

        if (count < allowed_by(node, constraint))
            continue;
        if (operand_of(text_of(constraint, "Operand")) == OPERAND_DISTINCT_HOSTS)
            return json_string("distinct_hosts");
        const char *value = constraint_target(node, target);
        if (value == NULL)
            return json_sprintf("missing property \"%s\"", target);
        json_t *why =
            json_sprintf("distinct_property: %s=%s used by %zu allocs", target, value, count);
        return why != NULL ? why : json_string("distinct_property"); /* a value that is not UTF-8 */
    }
    return NULL;
}
