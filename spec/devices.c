#include "spec/devices.h"

#include "spec/constraint.h"
#include "spec/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_SIZE = 1024, NUMBER_SIZE = 64 };

/* --- units --- */

enum unit_base { BASE_NONE, BASE_BYTE, BASE_BYTE_RATE, BASE_HERTZ, BASE_WATT };

static const struct unit {
    const char *name;
    enum unit_base base;
    double times;
} units[] = {
    {"KiB", BASE_BYTE, 0x1p10},
    {"MiB", BASE_BYTE, 0x1p20},
    {"GiB", BASE_BYTE, 0x1p30},
    {"TiB", BASE_BYTE, 0x1p40},
    {"PiB", BASE_BYTE, 0x1p50},
    {"EiB", BASE_BYTE, 0x1p60},
    {"kB", BASE_BYTE, 1e3},
    {"KB", BASE_BYTE, 1e3},
    {"MB", BASE_BYTE, 1e6},
    {"GB", BASE_BYTE, 1e9},
    {"TB", BASE_BYTE, 1e12},
    {"PB", BASE_BYTE, 1e15},
    {"EB", BASE_BYTE, 1e18},
    {"KiB/s", BASE_BYTE_RATE, 0x1p10},
    {"MiB/s", BASE_BYTE_RATE, 0x1p20},
    {"GiB/s", BASE_BYTE_RATE, 0x1p30},
    {"TiB/s", BASE_BYTE_RATE, 0x1p40},
    {"PiB/s", BASE_BYTE_RATE, 0x1p50},
    {"EiB/s", BASE_BYTE_RATE, 0x1p60},
    {"kB/s", BASE_BYTE_RATE, 1e3},
    {"KB/s", BASE_BYTE_RATE, 1e3},
    {"MB/s", BASE_BYTE_RATE, 1e6},
    {"GB/s", BASE_BYTE_RATE, 1e9},
    {"TB/s", BASE_BYTE_RATE, 1e12},
    {"PB/s", BASE_BYTE_RATE, 1e15},
    {"EB/s", BASE_BYTE_RATE, 1e18},
    {"MHz", BASE_HERTZ, 1e6},
    {"GHz", BASE_HERTZ, 1e9},
    {"mW", BASE_WATT, 1e-3},
    {"W", BASE_WATT, 1},
    {"kW", BASE_WATT, 1e3},
    {"MW", BASE_WATT, 1e6},
    {"GW", BASE_WATT, 1e9},
};

static const struct unit *find_unit(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (text_equal(units[i].name, name))
            return &units[i];
    }
    return NULL;
}

bool device_unit_is_known(const char *unit)
{
    return unit[0] == '\0' || find_unit(unit) != NULL;
}

/* --- values --- */

enum kind { KIND_NOTHING, KIND_TEXT, KIND_BOOL, KIND_WHOLE, KIND_FLOAT };

struct value {
    enum kind kind;
    const char *text; /* borrowed */
    bool truth;
    int64_t whole;
    double number; /* also of a whole one */
    const struct unit *unit;
};

static bool read_float(const char *text, double *ret_number)
{
    char *end;

    if (text[0] == '\0' || strpbrk(text, " \t\n\v\f\r(") != NULL)
        return false;
    errno = 0;
    *ret_number = strtod(text, &end);
    return *end == '\0' && errno == 0;
}

/* The longest unit that TEXT ends with, if it ends with a letter. */
static const struct unit *unit_behind(const char *text)
{
    const struct unit *found = NULL;

    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (text_ends_with(text, units[i].name) &&
            (found == NULL || strlen(units[i].name) > strlen(found->name)))
            found = &units[i];
    }
    return found;
}

/* What a job writes: a number, with a unit or without, a truth, or a text. */
static struct value parse(const char *text)
{
    const struct unit *unit = unit_behind(text);
    struct value value = {.kind = KIND_TEXT, .text = text};
    char number[NUMBER_SIZE];
    size_t length = strlen(text) - (unit == NULL ? 0 : strlen(unit->name));

    while (unit != NULL && length > 0 && text[length - 1] == ' ')
        length--;
    if (length < sizeof(number)) {
        (void)text_format(number, sizeof(number), "%.*s", (int)length, text); /* fits */
        if (text_to_i64(number, &value.whole)) {
            value.kind = KIND_WHOLE;
            value.number = (double)value.whole;
        } else if (read_float(number, &value.number)) {
            value.kind = KIND_FLOAT;
        }
    }
    if (value.kind != KIND_TEXT)
        value.unit = unit;
    else if (text_equal(text, "true") || text_equal(text, "false"))
        value = (struct value){.kind = KIND_BOOL, .text = text, .truth = text[0] == 't'};
    return value;
}

static struct value read_attribute(const json_t *attribute)
{
    const json_t *part = json_object_get(attribute, "String");
    struct value value = {.kind = KIND_NOTHING};

    if (json_is_string(part))
        return (struct value){.kind = KIND_TEXT, .text = json_string_value(part)};
    part = json_object_get(attribute, "Bool");
    if (json_is_boolean(part))
        return (struct value){.kind = KIND_BOOL, .truth = json_is_true(part)};
    value.unit = find_unit(text_of(attribute, "Unit"));
    part = json_object_get(attribute, "Int");
    if (json_is_integer(part)) {
        value.kind = KIND_WHOLE;
        value.whole = json_integer_value(part);
        value.number = (double)value.whole;
    }
    part = json_object_get(attribute, "Float");
    if (json_is_number(part)) {
        value.kind = KIND_FLOAT;
        value.number = json_number_value(part);
    }
    return value;
}

/* -1, 0, 1 to RET_ORDER; false: the two cannot be compared. */
static bool compare(const struct value *a, const struct value *b, int *ret_order)
{
    bool numbers = a->kind >= KIND_WHOLE && b->kind >= KIND_WHOLE;

    if ((a->unit == NULL) != (b->unit == NULL) ||
        (a->unit != NULL && a->unit->base != b->unit->base) || (!numbers && a->kind != b->kind) ||
        a->kind == KIND_NOTHING)
        return false;
    if (a->kind == KIND_TEXT) {
        int order = strcmp(a->text, b->text);

        *ret_order = order < 0 ? -1 : order > 0;
    } else if (a->kind == KIND_BOOL) {
        *ret_order = a->truth != b->truth;
    } else if (a->kind == KIND_WHOLE && b->kind == KIND_WHOLE && a->unit == b->unit) {
        *ret_order = a->whole < b->whole ? -1 : a->whole > b->whole;
    } else {
        double left = a->number * (a->unit == NULL ? 1 : a->unit->times);
        double right = b->number * (b->unit == NULL ? 1 : b->unit->times);

        if (isnan(left) || isnan(right))
            return false;
        *ret_order = left < right ? -1 : left > right;
    }
    return true;
}

/* --- constraints --- */

static const char ids_target[] = "${device.ids}", attribute_target[] = "${device.attr.";

/* What TARGET is of GROUP; which instances it has is asked of each of them. */
static struct value resolve(const json_t *group, const char *target)
{
    static const struct {
        const char *target, *field;
    } fields[] = {
        {"${device.model}", "Name"}, {"${device.vendor}", "Vendor"}, {"${device.type}", "Type"}};
    char name[KEY_SIZE];

    if (!text_starts_with(target, "${"))
        return parse(target);
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        if (text_equal(target, fields[i].target))
            return (struct value){.kind = KIND_TEXT, .text = text_of(group, fields[i].field)};
    }
    if (!text_starts_with(target, attribute_target) ||
        !text_copy(name, sizeof(name), target + sizeof(attribute_target) - 1) || name[0] == '\0')
        return (struct value){.kind = KIND_NOTHING};
    name[strlen(name) - 1] = '\0'; /* the brace */
    return read_attribute(json_object_get(json_object_get(group, "Attributes"), name));
}

/* Of two texts, by the rules of all constraints. */
static bool texts_hold(const char *operand, const struct value *left, const struct value *right)
{
    static const struct constraint_node nobody = {
        .id = "", .name = "", .datacenter = "", .class = ""};
    json_t *constraint;

    if (left->kind != KIND_TEXT || right->text == NULL)
        return false;
    constraint = json_pack("{s:s, s:s, s:s}", "LTarget", left->text, "Operand", operand, "RTarget",
                           right->text);
    bool holds = constraint != NULL && constraint_holds(&nobody, constraint);
    json_decref(constraint);
    return holds;
}

/* Of an instance it is asked whether the other side, a list as a rule, says its ID. */
static bool holds(const json_t *group, const char *id, const json_t *constraint)
{
    const char *operand = text_of(constraint, "Operand"), *written = text_of(constraint, "RTarget");
    const char *target = text_of(constraint, "LTarget");
    struct value left =
        resolve(group, id != NULL && text_equal(target, ids_target) ? written : target);
    struct value right =
        id != NULL ? (struct value){.kind = KIND_TEXT, .text = id} : resolve(group, written);
    bool has_left = left.kind != KIND_NOTHING, has_right = right.kind != KIND_NOTHING;
    int order;

    if (text_equal(operand, "is_set") || text_equal(operand, "is_not_set"))
        return has_left == text_equal(operand, "is_set");
    if (text_equal(operand, "!=") || text_equal(operand, "not"))
        return has_left && has_right ? compare(&left, &right, &order) && order != 0
                                     : has_left != has_right;
    if (!has_left || !has_right)
        return false;
    bool orders =
        operand[0] == '<' || operand[0] == '>' || operand[0] == '=' || text_equal(operand, "is");
    if (!orders) { /* what looks like a number is a text to these: a version, a pattern */
        right.text = right.text == NULL && !text_starts_with(written, "${") ? written : right.text;
        return texts_hold(operand, &left, &right);
    }
    if (!compare(&left, &right, &order))
        return false;
    return text_equal(operand, "<")    ? order < 0
           : text_equal(operand, "<=") ? order <= 0
           : text_equal(operand, ">")  ? order > 0
           : text_equal(operand, ">=") ? order >= 0
                                       : order == 0;
}

static bool is_about_ids(const json_t *constraint)
{
    return text_equal(text_of(constraint, "LTarget"), ids_target) ||
           text_equal(text_of(constraint, "RTarget"), ids_target);
}

/* Those that are about one instance, or those about all of a group. */
static bool all_hold(const json_t *request, const json_t *group, const char *id)
{
    const json_t *constraint;
    size_t i;

    json_array_foreach(json_object_get(request, "Constraints"), i, constraint)
    {
        if (is_about_ids(constraint) == (id != NULL) && !holds(group, id, constraint))
            return false;
    }
    return true;
}

/* --- what is asked for --- */

static int check_target(const char *target, struct err *err)
{
    static const char *const whole[] = {"${device.ids}", "${device.model}", "${device.vendor}",
                                        "${device.type}"};

    if (!text_starts_with(target, "${"))
        return 0;
    for (size_t i = 0; i < COUNT_OF(whole); i++) {
        if (text_equal(whole[i], target))
            return 0;
    }
    if (text_starts_with(target, attribute_target) && text_ends_with(target, "}"))
        return 0;
    return err_set(err, ERR_INVALID,
                   "a device has no \"%.60s\": there are ${device.attr.NAME}, ${device.ids}, "
                   "${device.model}, ${device.type} and ${device.vendor}",
                   target);
}

/* By the rules of other constraints, but for what they can be about. */
static int check_one(const json_t *constraint, struct err *err)
{
    const char *left = text_of(constraint, "LTarget"), *right = text_of(constraint, "RTarget");
    json_t *plain;

    if (left[0] == '\0')
        return err_set(err, ERR_INVALID,
                       "a constraint needs an attribute, for example ${device.attr.memory}");
    int code = check_target(left, err);
    if (code == 0)
        code = check_target(right, err);
    if (code != 0)
        return code;
    plain = json_pack("{s:s, s:s, s:s}", "LTarget", "text", "Operand",
                      text_of(constraint, "Operand"), "RTarget", right);
    check(plain != NULL);
    code = constraint_check(plain, true, err);
    json_decref(plain);
    return code;
}

int device_check(const json_t *request, struct err *err)
{
    const char *name = text_of(request, "Name");
    const json_t *list, *item;
    static const char *const lists[] = {"Constraints", "Affinities"};
    size_t i;

    if (name[0] == '\0')
        return err_set(err, ERR_INVALID,
                       "a device is named by its type, vendor/type, or vendor/type/name");
    if (json_integer_value(json_object_get(request, "Count")) < 1)
        return err_set(err, ERR_INVALID, "device \"%.100s\": count must be 1 or more", name);
    for (size_t l = 0; l < COUNT_OF(lists); l++) {
        list = json_object_get(request, lists[l]);
        json_array_foreach(list, i, item)
        {
            int code = check_one(item, err);

            if (code == 0 && l == 1 && json_integer_value(json_object_get(item, "Weight")) == 0)
                code = err_set(err, ERR_INVALID, "an affinity weighs from -100 to 100, and not 0");
            if (code != 0)
                return err_wrap(err, "device \"%.100s\"", name);
        }
    }
    return 0;
}

/* True if GROUP is what NAME calls: a type, vendor/type, or vendor/type/name. */
static bool is_called(const json_t *group, const char *name)
{
    char copy[KEY_SIZE], *at = copy, *parts[3] = {NULL};
    size_t count = 0;

    if (!text_copy(copy, sizeof(copy), name))
        return false;
    while (count < 2 && at != NULL && strchr(at, '/') != NULL)
        parts[count++] = strsep(&at, "/");
    parts[count++] = at;
    const char *vendor = count > 1 ? parts[0] : "", *type = count > 1 ? parts[1] : parts[0];
    const char *model = count > 2 ? parts[2] : "";
    return (vendor[0] == '\0' || text_equal(vendor, text_of(group, "Vendor"))) &&
           (type[0] == '\0' || text_equal(type, text_of(group, "Type"))) &&
           (model[0] == '\0' || text_equal(model, text_of(group, "Name")));
}

/* --- what is given --- */

/* No part of it has a newline. */
static void key_of(const json_t *group, const char *id, char to[KEY_SIZE])
{
    (void)text_format(to, KEY_SIZE, "%s\n%s\n%s\n%s", text_of(group, "Vendor"),
                      text_of(group, "Type"), text_of(group, "Name"), id); /* they are short */
}

void devices_hold(json_t *held, const json_t *given, const char *alloc)
{
    char key[KEY_SIZE];
    const json_t *id;
    size_t i;

    json_array_foreach(json_object_get(given, "DeviceIDs"), i, id)
    {
        key_of(given, json_string_value(id), key);
        check(json_object_set_new(held, key, json_string(alloc)) == 0);
    }
}

/* What the affinities of REQUEST say of GROUP, from -1 to 1. */
static double score_of(const json_t *request, const json_t *group)
{
    const json_t *affinity;
    double score = 0, whole = 0;
    size_t i;

    json_array_foreach(json_object_get(request, "Affinities"), i, affinity)
    {
        double weight = (double)json_integer_value(json_object_get(affinity, "Weight"));

        whole += fabs(weight);
        if (holds(group, NULL, affinity))
            score += weight;
    }
    return whole > 0 ? score / whole : 0;
}

/* What was found on the way, for whoever gets nothing. */
struct search {
    size_t matching, free, unwell;
    const char *holder; /* of one, borrowed from who holds what */
};

/* COUNT free instances of GROUP: a new reference, or NULL. */
static json_t *free_of(const json_t *group, const json_t *request, const json_t *held, size_t count,
                       struct search *search)
{
    json_t *ids = json_array();
    const json_t *instance;
    char key[KEY_SIZE];
    size_t i;

    json_array_foreach(json_object_get(group, "Instances"), i, instance)
    {
        const char *id = text_of(instance, "ID");

        if (!all_hold(request, group, id))
            continue;
        search->matching++;
        key_of(group, id, key);
        const char *holder = json_string_value(json_object_get(held, key));
        if (holder != NULL) {
            search->holder = holder;
        } else if (!json_is_true(json_object_get(instance, "Healthy"))) {
            search->unwell++;
        } else {
            search->free++;
            if (json_array_size(ids) < count)
                check(json_array_append_new(ids, json_string(id)) == 0);
        }
    }
    if (json_array_size(ids) == count)
        return ids;
    json_decref(ids);
    return NULL;
}

/* Nomad says no more than that there are none. */
static void tell_why(const json_t *request, const struct search *search, char to[DEVICES_WHY_SIZE])
{
    long long count = (long long)json_integer_value(json_object_get(request, "Count"));
    char held[64] = "", unwell[48] = "";

    if (search->matching == 0) {
        (void)text_format(to, DEVICES_WHY_SIZE, "no devices match request \"%.80s\"",
                          text_of(request, "Name")); /* fits */
        return;
    }
    if (search->holder != NULL)
        (void)text_format(held, sizeof(held), ", alloc %.8s has one of %zu", search->holder,
                          search->matching - search->free - search->unwell); /* fits */
    if (search->unwell > 0)
        (void)text_format(unwell, sizeof(unwell), ", %zu not healthy", search->unwell); /* fits */
    (void)text_format(to, DEVICES_WHY_SIZE, "\"%.60s\": %lld asked for, %zu free%s%s",
                      text_of(request, "Name"), count, search->free, held, unwell); /* fits */
}

json_t *devices_pick(const json_t *devices, const json_t *request, const json_t *held,
                     char ret_why[DEVICES_WHY_SIZE])
{
    json_int_t count = json_integer_value(json_object_get(request, "Count"));
    struct search search = {.matching = 0};
    const json_t *group, *best = NULL;
    json_t *best_ids = NULL;
    double best_score = 0;
    size_t i;

    json_array_foreach(devices, i, group)
    {
        if (!is_called(group, text_of(request, "Name")) || !all_hold(request, group, NULL))
            continue;
        json_t *ids = free_of(group, request, held, count < 0 ? 0 : (size_t)count, &search);
        double score = score_of(request, group);

        if (ids == NULL || (best != NULL && score <= best_score)) {
            json_decref(ids);
            continue;
        }
        json_decref(best_ids);
        best = group;
        best_ids = ids;
        best_score = score;
    }
    if (best == NULL) {
        tell_why(request, &search, ret_why);
        return NULL;
    }
    json_t *given =
        json_pack("{s:s, s:s, s:s, s:o}", "Vendor", text_of(best, "Vendor"), "Type",
                  text_of(best, "Type"), "Name", text_of(best, "Name"), "DeviceIDs", best_ids);
    check(given != NULL);
    return given;
}
