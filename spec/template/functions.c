/*
 * The functions that templates have: Go's own, and those of consul-template (and so of Nomad) that
 * need no more than the environment, a file, the time and their arguments.
 */
#include "spec/template/tree.h"

#include "spec/regex.h"

#include <nettle/base64.h>
#include <nettle/md5.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ANY = ARGUMENTS_MAX + 1, TIME_SIZE = 64, JSON_DEEP = 64 };

static json_t *refuse(const struct call *call, const char *why)
{
    return template_fail(call->evaluating, ERR_INVALID, "%s: %s", call->name, why);
}

/* The argument AT as a text, "" and an error if it is none. */
static const char *text_at(const struct call *call, size_t at)
{
    const char *text = json_string_value(call->arguments[at]);

    if (text == NULL)
        (void)refuse(call, "wrong type of argument: a string is needed");
    return text == NULL ? "" : text;
}

static json_t *give(const struct call *call, const char *text, size_t length)
{
    return call->evaluating->code == 0 ? template_text(call->evaluating, text, length) : NULL;
}

static json_t *give_text(const struct call *call, const char *text)
{
    return give(call, text, strlen(text));
}

/* A text that grows, bounded as each is. */
struct growing {
    char *text;
    size_t length, size;
    bool full;
};

static void add(struct growing *to, const char *text, size_t length)
{
    to->full = to->full || length > TEMPLATE_BYTES_MAX - to->length;
    if (to->full)
        return;
    if (to->length + length + 1 > to->size) {
        to->size = 2 * (to->length + length + 1);
        to->text = realloc(to->text, to->size);
        check(to->text != NULL);
    }
    memcpy(to->text + to->length, text, length);
    to->length += length;
}

static json_t *give_grown(const struct call *call, struct growing *grown)
{
    json_t *value = grown->full
                        ? template_fail(call->evaluating, ERR_LIMIT, "%s: longer than %d bytes",
                                        call->name, TEMPLATE_BYTES_MAX)
                        : give(call, grown->length == 0 ? "" : grown->text, grown->length);

    free(grown->text);
    return value;
}

/* --- environment, files, time --- */

static json_t *run_env(const struct call *call)
{
    const char *name = text_at(call, 0);
    const struct template_world *world = call->evaluating->world;
    const char *value = world->find(world->ctx, name, strlen(name));

    if (value == NULL && text_equal(call->name, "mustEnv"))
        return template_fail(call->evaluating, ERR_INVALID, "mustEnv: \"%.60s\" is not set", name);
    if ((value == NULL || *value == '\0') && text_equal(call->name, "envOrDefault"))
        return json_incref(call->arguments[1]);
    return give_text(call, value == NULL ? "" : value);
}

static json_t *run_file(const struct call *call)
{
    const struct template_world *world = call->evaluating->world;
    const char *path = text_at(call, 0);
    struct err err = {0};
    size_t length = 0;
    char *text = NULL;

    if (call->evaluating->code != 0)
        return NULL;
    int code = world->read(world->ctx, path, &text, &length, &err);
    if (code != 0)
        return template_fail(call->evaluating, code, "file \"%.60s\": %.120s", path, err.text);
    json_t *value = give(call, text, length);
    free(text);
    return value;
}

/* Go's layouts are many; two are told apart. */
static json_t *run_timestamp(const struct call *call)
{
    time_t now = (time_t)(call->evaluating->world->now_unix_ns / 1000000000);
    char text[TIME_SIZE];
    struct tm parts;

    if (call->evaluating->world->asks_time != NULL)
        *call->evaluating->world->asks_time = true;
    if (call->count == 1 && text_equal(text_at(call, 0), "unix"))
        return json_integer((json_int_t)now);
    if (call->count == 1)
        return refuse(call, "only \"unix\" is known of its layouts");
    check(gmtime_r(&now, &parts) != NULL);
    check(strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts) > 0);
    return give_text(call, text);
}

/* --- texts --- */

static json_t *run_case(const struct call *call)
{
    const char *text = text_at(call, 0);
    bool upper = text_equal(call->name, "toUpper");
    struct growing made = {0};

    for (; *text != '\0'; text++) {
        char c = *text;

        if (upper && c >= 'a' && c <= 'z')
            c = (char)(c - 'a' + 'A');
        if (!upper && c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        add(&made, &c, 1);
    }
    return give_grown(call, &made);
}

static json_t *run_trim_space(const struct call *call)
{
    static const char spaces[] = " \t\n\v\f\r";
    const char *text = text_at(call, 0);

    text += strspn(text, spaces);
    size_t length = strlen(text);
    while (length > 0 && strchr(spaces, text[length - 1]) != NULL)
        length--;
    return give(call, text, length);
}

static json_t *run_trim(const struct call *call)
{
    const char *set = text_at(call, 0), *text = text_at(call, 1);

    text += strspn(text, set);
    size_t length = strlen(text);
    while (length > 0 && strchr(set, text[length - 1]) != NULL)
        length--;
    return give(call, text, length);
}

static json_t *run_trim_end(const struct call *call)
{
    const char *end = text_at(call, 0), *text = text_at(call, 1);
    bool prefix = text_equal(call->name, "trimPrefix");

    if (prefix && text_starts_with(text, end))
        return give_text(call, text + strlen(end));
    if (!prefix && text_ends_with(text, end))
        return give(call, text, strlen(text) - strlen(end));
    return json_incref(call->arguments[1]);
}

static json_t *run_split(const struct call *call)
{
    const char *separator = text_at(call, 0), *text = text_at(call, 1);
    size_t length = strlen(separator);
    json_t *list = json_array();

    /* As consul-template: of nothing there is nothing. */
    while (call->evaluating->code == 0 && *text != '\0') {
        const char *end = length == 0 ? text + 1 : strstr(text, separator);
        json_t *part = give(call, text, end == NULL ? strlen(text) : (size_t)(end - text));

        if (part != NULL)
            check(json_array_append_new(list, part) == 0);
        if (end != NULL && length > 0 && end[length] == '\0') /* it ends with one */
            check(json_array_append_new(list, json_string("")) == 0);
        text = end == NULL ? "" : end + length;
    }
    if (call->evaluating->code == 0)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *run_join(const struct call *call)
{
    const char *separator = text_at(call, 0);
    struct growing made = {0};
    json_t *item;
    size_t i;

    if (!json_is_array(call->arguments[1]))
        return refuse(call, "wrong type of argument: a list is needed");
    json_array_foreach(call->arguments[1], i, item)
    {
        char *text = template_print(item);

        if (i > 0)
            add(&made, separator, strlen(separator));
        add(&made, text, strlen(text));
        free(text);
    }
    return give_grown(call, &made);
}

static json_t *run_replace(const struct call *call)
{
    const char *from = text_at(call, 0), *to = text_at(call, 1), *text = text_at(call, 2);
    size_t length = strlen(from);
    struct growing made = {0};

    if (length == 0)
        return json_incref(call->arguments[2]);
    for (const char *at; (at = strstr(text, from)) != NULL && !made.full; text = at + length) {
        add(&made, text, (size_t)(at - text));
        add(&made, to, strlen(to));
    }
    add(&made, text, strlen(text));
    return give_grown(call, &made);
}

static json_t *run_indent(const struct call *call)
{
    json_int_t spaces = json_integer_value(call->arguments[0]);
    const char *text = text_at(call, 1);
    struct growing made = {0};

    if (!json_is_integer(call->arguments[0]) || spaces < 0 || spaces > 1000)
        return refuse(call, "indent value must be a number from 0 to 1000");
    for (;;) {
        size_t length = strcspn(text, "\n");

        for (json_int_t i = 0; i < spaces; i++)
            add(&made, " ", 1);
        add(&made, text, length);
        if (text[length] == '\0')
            break;
        add(&made, "\n", 1);
        text += length + 1;
    }
    return give_grown(call, &made);
}

/* True if LIST has VALUE, or the text the part. */
static json_t *run_in(const struct call *call)
{
    bool turned = text_equal(call->name, "contains");
    const json_t *list = call->arguments[turned ? 1 : 0], *value = call->arguments[turned ? 0 : 1];
    json_t *item;
    size_t i;

    if (json_is_string(list) && json_is_string(value))
        return json_boolean(strstr(json_string_value(list), json_string_value(value)) != NULL);
    json_array_foreach(list, i, item)
    {
        if (json_equal(item, value))
            return json_true();
    }
    return json_false();
}

/* --- regular expressions --- */

static struct regex *regex_of(const struct call *call, const char *pattern)
{
    struct err err = {0};
    struct regex *regex = regex_new(pattern, strlen(pattern), &err);

    if (regex == NULL)
        (void)refuse(call, err.text);
    return regex;
}

static json_t *run_regex_match(const struct call *call)
{
    const char *pattern = text_at(call, 0), *text = text_at(call, 1);
    struct regex_span spans[REGEX_GROUPS_MAX + 1];
    struct regex *regex = regex_of(call, pattern);
    struct err err = {0};

    if (regex == NULL)
        return NULL;
    int found = regex_find(regex, text, strlen(text), 0, spans, &err);
    (void)template_charge(call->evaluating, (size_t)(regex_steps(regex) / 16)); /* it tells */
    regex_free(regex);
    return found < 0 ? refuse(call, err.text) : json_boolean(found == 1);
}

/* --- JSON, encodings, digests --- */

/* Numbers are Go's float64. */
static json_t *as_go(json_t *value)
{
    const char *key;
    json_t *item;
    size_t i;

    if (json_is_integer(value))
        return json_real((double)json_integer_value(value));
    json_object_foreach(value, key, item) check(json_object_set_new(value, key, as_go(item)) == 0);
    json_array_foreach(value, i, item) check(json_array_set_new(value, i, as_go(item)) == 0);
    return json_incref(value);
}

static bool is_deep(const json_t *value, int depth)
{
    const char *key;
    json_t *item;
    size_t i;

    if (depth == 0)
        return true;
    json_object_foreach((json_t *)value, key, item)
    {
        if (is_deep(item, depth - 1))
            return true;
    }
    json_array_foreach(value, i, item)
    {
        if (is_deep(item, depth - 1))
            return true;
    }
    return false;
}

static json_t *run_parse_json(const struct call *call)
{
    const char *text = text_at(call, 0);

    if (!template_charge(call->evaluating, strlen(text) / 16))
        return NULL;
    if (*text == '\0')
        return json_object();
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    if (value == NULL || is_deep(value, JSON_DEEP)) {
        json_decref(value);
        return refuse(call, "invalid JSON");
    }
    json_t *made = as_go(value);
    json_decref(value);
    return made;
}

/* Whole numbers have no point in JSON that Go writes. */
static json_t *as_json(const json_t *value)
{
    double real = json_real_value(value);
    const char *key;
    json_t *item, *made;
    size_t i;

    if (json_is_real(value) && real >= -1e15 && real <= 1e15 && real == (double)(json_int_t)real)
        return json_integer((json_int_t)real);
    if (json_is_object(value)) {
        made = json_object();
        json_object_foreach((json_t *)value, key, item)
            check(json_object_set_new(made, key, as_json(item)) == 0);
        return made;
    }
    if (json_is_array(value)) {
        made = json_array();
        json_array_foreach(value, i, item) check(json_array_append_new(made, as_json(item)) == 0);
        return made;
    }
    return json_incref((json_t *)value);
}

static json_t *run_to_json(const struct call *call)
{
    bool pretty = text_equal(call->name, "toJSONPretty");
    json_t *value = as_json(call->arguments[0]);
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_SORT_KEYS |
                                       (pretty ? JSON_INDENT(2) : JSON_COMPACT));

    json_decref(value);
    check(text != NULL);
    json_t *made = give_text(call, text);
    free(text);
    return made;
}

static json_t *run_base64_encode(const struct call *call)
{
    const char *text = text_at(call, 0);
    size_t length = strlen(text);
    char *made = malloc(BASE64_ENCODE_RAW_LENGTH(length) + 1);

    check(made != NULL);
    base64_encode_raw(made, length, (const uint8_t *)text);
    json_t *value = give(call, made, BASE64_ENCODE_RAW_LENGTH(length));
    free(made);
    return value;
}

static json_t *run_base64_decode(const struct call *call)
{
    const char *text = text_at(call, 0);
    size_t length = strlen(text), written = BASE64_DECODE_LENGTH(length);
    uint8_t *made = malloc(written + 1);
    struct base64_decode_ctx context;

    check(made != NULL);
    base64_decode_init(&context);
    bool good = base64_decode_update(&context, &written, made, length, text) == 1 &&
                base64_decode_final(&context) == 1;
    json_t *value = good ? give(call, (const char *)made, written) : refuse(call, "no base64");
    free(made);
    return value;
}

static json_t *run_digest(const struct call *call)
{
    const char *text = text_at(call, 0);
    const uint8_t *bytes = (const uint8_t *)text;
    uint8_t digest[SHA512_DIGEST_SIZE];
    char digits[2 * sizeof(digest) + 1] = "";
    size_t size = SHA256_DIGEST_SIZE, length = strlen(text);

    if (text_equal(call->name, "md5sum")) {
        struct md5_ctx context;

        size = MD5_DIGEST_SIZE;
        md5_init(&context);
        md5_update(&context, length, bytes);
        md5_digest(&context, size, digest);
    } else if (text_equal(call->name, "sha1Hex")) {
        struct sha1_ctx context;

        size = SHA1_DIGEST_SIZE;
        sha1_init(&context);
        sha1_update(&context, length, bytes);
        sha1_digest(&context, size, digest);
    } else {
        struct sha256_ctx context;

        sha256_init(&context);
        sha256_update(&context, length, bytes);
        sha256_digest(&context, size, digest);
    }
    for (size_t i = 0; i < size; i++)
        (void)text_format(digits + 2 * i, 3, "%02x", digest[i]); /* fits */
    return give_text(call, digits);
}

/* --- numbers --- */

static json_t *run_parse_number(const struct call *call)
{
    const char *text = text_at(call, 0);
    char *end;
    int64_t whole;

    if (text_equal(call->name, "parseBool")) {
        bool yes = text_equal(text, "true") || text_equal(text, "1");

        return yes || text_equal(text, "false") || text_equal(text, "0") || *text == '\0'
                   ? json_boolean(yes)
                   : refuse(call, "no bool");
    }
    if (text_equal(call->name, "parseFloat")) {
        double real = strtod(text, &end);
        json_t *value = *end == '\0' ? json_real(real) : NULL;

        return value != NULL ? value : refuse(call, "no number");
    }
    if (*text == '\0')
        return json_integer(0);
    if (!text_to_i64(text, &whole) || (text_equal(call->name, "parseUint") && whole < 0))
        return refuse(call, "no whole number");
    return json_integer(whole);
}

static json_t *calculate_whole(const struct call *call, json_int_t b, json_int_t a)
{
    json_int_t result = 0;
    char what = call->name[0];
    bool over = false;

    if ((what == 'd' || call->name[1] == 'o') && (b == 0 || (b == -1 && a == INT64_MIN)))
        return refuse(call, "division by zero");
    if (what == 'a')
        over = __builtin_add_overflow(a, b, &result);
    else if (what == 's')
        over = __builtin_sub_overflow(a, b, &result);
    else if (what == 'd')
        result = a / b;
    else if (call->name[1] == 'u')
        over = __builtin_mul_overflow(a, b, &result);
    else if (call->name[1] == 'o')
        result = a % b;
    else
        result = (call->name[1] == 'a') == (a > b) ? a : b;
    return over ? refuse(call, "the number is too large") : json_integer(result);
}

/* The first argument is the second of the operation: {{ 5 | subtract 2 }} is 3. */
static json_t *run_calculate(const struct call *call)
{
    const json_t *b = call->arguments[0], *a = call->arguments[1];
    double x = json_number_value(a), y = json_number_value(b), result;
    char what = call->name[0];

    if (!json_is_number(a) || !json_is_number(b))
        return refuse(call, "wrong type of argument: numbers are needed");
    if (json_is_integer(a) && json_is_integer(b))
        return calculate_whole(call, json_integer_value(b), json_integer_value(a));
    if (call->name[1] == 'o')
        return refuse(call, "whole numbers are needed");
    result = what == 'a'            ? x + y
             : what == 's'          ? x - y
             : what == 'd'          ? x / y
             : call->name[1] == 'u' ? x * y
             : call->name[1] == 'a' ? (x > y ? x : y)
                                    : (x < y ? x : y);
    json_t *value = json_real(result);
    return value != NULL ? value : refuse(call, "no number comes of it");
}

static json_t *run_loop(const struct call *call)
{
    json_int_t first = call->count == 2 ? json_integer_value(call->arguments[0]) : 0;
    json_int_t last = json_integer_value(call->arguments[call->count - 1]);
    json_t *list = json_array();

    for (json_int_t i = first; i < last && template_charge(call->evaluating, 1); i++)
        check(json_array_append_new(list, json_integer(i)) == 0);
    return list;
}

/* --- comparing --- */

static bool is_equal(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    return json_equal(a, b);
}

static json_t *run_equal(const struct call *call)
{
    bool equal = false;

    for (size_t i = 1; i < call->count; i++)
        equal = equal || is_equal(call->arguments[0], call->arguments[i]);
    return json_boolean(equal != text_equal(call->name, "ne"));
}

static json_t *run_compare(const struct call *call)
{
    const json_t *a = call->arguments[0], *b = call->arguments[1];
    double x = json_number_value(a), y = json_number_value(b);
    bool less, same;

    if (json_is_string(a) && json_is_string(b)) {
        int order = strcmp(json_string_value(a), json_string_value(b));

        less = order < 0;
        same = order == 0;
    } else if (json_is_number(a) && json_is_number(b)) {
        less = x < y;
        same = x == y;
    } else {
        return refuse(call, "incompatible types for comparison");
    }
    bool or_same = call->name[1] == 'e', is_less = call->name[0] == 'l';
    return json_boolean((or_same && same) || (!same && less == is_less));
}

static json_t *run_and_or(const struct call *call)
{
    return json_incref(call->arguments[call->count - 1]); /* none before it decided */
}

static json_t *run_not(const struct call *call)
{
    return json_boolean(!template_truth(call->arguments[0]));
}

/* --- lists and maps --- */

static json_t *run_len(const struct call *call)
{
    const json_t *value = call->arguments[0];

    if (json_is_string(value))
        return json_integer((json_int_t)json_string_length(value));
    if (json_is_array(value))
        return json_integer((json_int_t)json_array_size(value));
    if (json_is_object(value))
        return json_integer((json_int_t)json_object_size(value));
    return refuse(call, "this has no length");
}

static json_t *run_index(const struct call *call)
{
    json_t *value = call->arguments[0];

    for (size_t i = 1; i < call->count && value != NULL; i++) {
        const json_t *key = call->arguments[i];

        if (json_is_array(value) && json_is_integer(key) && json_integer_value(key) >= 0)
            value = json_array_get(value, (size_t)json_integer_value(key));
        else if (json_is_object(value) && json_is_string(key))
            value = json_object_get(value, json_string_value(key));
        else
            return refuse(call, "cannot index this");
        if (value == NULL && json_is_integer(key))
            return refuse(call, "index out of range");
        if (value == NULL && call->evaluating->world->strict)
            return refuse(call, "map has no such entry");
    }
    return value == NULL ? json_null() : json_incref(value);
}

/* --- printing --- */

/* Go puts spaces between what are no texts (print), or between all (println). */
static json_t *run_print(const struct call *call)
{
    bool lines = text_equal(call->name, "println");
    struct growing made = {0};

    for (size_t i = 0; i < call->count; i++) {
        char *text = template_print(call->arguments[i]);

        if (i > 0 && (lines || (!json_is_string(call->arguments[i - 1]) &&
                                !json_is_string(call->arguments[i]))))
            add(&made, " ", 1);
        add(&made, text, strlen(text));
        free(text);
    }
    if (lines)
        add(&made, "\n", 1);
    return give_grown(call, &made);
}

static void add_padded(struct growing *to, const char *text, long width, bool left, bool zero)
{
    long missing = width - (long)strlen(text);

    for (long i = 0; i < missing && !left; i++)
        add(to, zero ? "0" : " ", 1);
    add(to, text, strlen(text));
    for (long i = 0; i < missing && left; i++)
        add(to, " ", 1);
}

/* One verb of a format at AT (behind the %), with its argument; where it ends, NULL: no such. */
static const char *add_verb(const struct call *call, const char *at, const json_t *argument,
                            struct growing *made)
{
    bool left = false, zero = false;
    long width = 0, precision = -1;
    char number[400], *text = template_print(argument);
    char *end = (char *)at;

    for (; *at == '-' || *at == '0'; at++) {
        left = left || *at == '-';
        zero = zero || *at == '0';
    }
    width = *at >= '1' && *at <= '9' ? strtol(at, &end, 10) : 0;
    at = width > 0 ? end : at;
    if (*at == '.') {
        precision = strtol(at + 1, &end, 10);
        at = end;
    }
    bool good = width <= 1000 && precision <= 60;
    const char *shown = text;
    if (*at == 'd' && json_is_integer(argument)) {
        shown = text;
    } else if (*at == 'x' && json_is_integer(argument)) {
        (void)snprintf(number, sizeof(number), "%llx",
                       (unsigned long long)json_integer_value(argument));
        shown = number;
    } else if (*at == 'f' && json_is_number(argument)) {
        (void)snprintf(number, sizeof(number), "%.*f", precision < 0 ? 6 : (int)precision,
                       json_number_value(argument));
        shown = number;
    } else if (*at == 'q' && json_is_string(argument)) {
        free(text);
        text = json_dumps(argument, JSON_ENCODE_ANY);
        check(text != NULL);
        shown = text;
    } else {
        good = good && (*at == 'v' || (*at == 's' && json_is_string(argument)) ||
                        (*at == 't' && json_is_boolean(argument)));
    }
    if (good)
        add_padded(made, shown, width, left, zero && !left);
    free(text);
    (void)call;
    return good ? at + 1 : NULL;
}

static json_t *run_printf(const struct call *call)
{
    const char *at = text_at(call, 0);
    struct growing made = {0};
    size_t used = 1;

    while (at != NULL && *at != '\0') {
        size_t length = strcspn(at, "%");

        add(&made, at, length);
        at += length;
        if (*at == '\0')
            break;
        if (at[1] == '%') {
            add(&made, "%", 1);
            at += 2;
        } else {
            at = used < call->count ? add_verb(call, at + 1, call->arguments[used++], &made) : NULL;
        }
    }
    json_t *value = give_grown(call, &made);
    if (at != NULL && used == call->count)
        return value;
    json_decref(value);
    return refuse(call, "its format and its arguments do not fit");
}

/* --- the table --- */

static const struct function functions[] = {
    {"add", 2, 2, run_calculate},
    {"and", 1, ANY, run_and_or},
    {"base64Decode", 1, 1, run_base64_decode},
    {"base64Encode", 1, 1, run_base64_encode},
    {"contains", 2, 2, run_in},
    {"divide", 2, 2, run_calculate},
    {"env", 1, 1, run_env},
    {"envOrDefault", 2, 2, run_env},
    {"eq", 2, ANY, run_equal},
    {"file", 1, 1, run_file},
    {"ge", 2, 2, run_compare},
    {"gt", 2, 2, run_compare},
    {"in", 2, 2, run_in},
    {"indent", 2, 2, run_indent},
    {"index", 2, ANY, run_index},
    {"join", 2, 2, run_join},
    {"le", 2, 2, run_compare},
    {"len", 1, 1, run_len},
    {"loop", 1, 2, run_loop},
    {"lt", 2, 2, run_compare},
    {"maximum", 2, 2, run_calculate},
    {"md5sum", 1, 1, run_digest},
    {"minimum", 2, 2, run_calculate},
    {"modulo", 2, 2, run_calculate},
    {"multiply", 2, 2, run_calculate},
    {"mustEnv", 1, 1, run_env},
    {"ne", 2, 2, run_equal},
    {"not", 1, 1, run_not},
    {"or", 1, ANY, run_and_or},
    {"parseBool", 1, 1, run_parse_number},
    {"parseFloat", 1, 1, run_parse_number},
    {"parseInt", 1, 1, run_parse_number},
    {"parseJSON", 1, 1, run_parse_json},
    {"parseUint", 1, 1, run_parse_number},
    {"print", 0, ANY, run_print},
    {"printf", 1, ANY, run_printf},
    {"println", 0, ANY, run_print},
    {"regexMatch", 2, 2, run_regex_match},
    {"replaceAll", 3, 3, run_replace},
    {"sha1Hex", 1, 1, run_digest},
    {"sha256Hex", 1, 1, run_digest},
    {"split", 2, 2, run_split},
    {"subtract", 2, 2, run_calculate},
    {"timestamp", 0, 1, run_timestamp},
    {"toJSON", 1, 1, run_to_json},
    {"toJSONPretty", 1, 1, run_to_json},
    {"toLower", 1, 1, run_case},
    {"toUpper", 1, 1, run_case},
    {"trim", 2, 2, run_trim},
    {"trimPrefix", 2, 2, run_trim_end},
    {"trimSpace", 1, 1, run_trim_space},
    {"trimSuffix", 2, 2, run_trim_end},
};

static const struct {
    const char *name, *needs;
} elsewhere[] = {
    {"caLeaf", "Consul"},
    {"caRoots", "Consul"},
    {"connect", "Consul"},
    {"datacenters", "Consul"},
    {"key", "Consul"},
    {"keyExists", "Consul"},
    {"keyExistsGet", "Consul"},
    {"keyOrDefault", "Consul"},
    {"ls", "Consul"},
    {"node", "Consul"},
    {"nodes", "Consul"},
    {"nomadService", "a server"},
    {"nomadServices", "a server"},
    {"nomadVar", "a server"},
    {"nomadVarExists", "a server"},
    {"nomadVarList", "a server"},
    {"nomadVarListSafe", "a server"},
    {"partitions", "Consul"},
    {"peerings", "Consul"},
    {"pkiCert", "Vault"},
    {"safeLs", "Consul"},
    {"safeTree", "Consul"},
    {"secret", "Vault"},
    {"secrets", "Vault"},
    {"service", "Consul"},
    {"services", "Consul"},
    {"tree", "Consul"},
};

const struct function *function_find(const char *name, const char **ret_needs)
{
    *ret_needs = NULL;
    for (size_t i = 0; i < COUNT_OF(functions); i++) {
        if (text_equal(functions[i].name, name))
            return &functions[i];
    }
    for (size_t i = 0; i < COUNT_OF(elsewhere); i++) {
        if (text_equal(elsewhere[i].name, name))
            *ret_needs = elsewhere[i].needs;
    }
    return NULL;
}
