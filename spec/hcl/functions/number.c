/*
 * Functions on numbers, conversions, and format(), whose verbs follow cty's FormatFunc:
 * %v %s %q %d %f %e %g %x %X %o %b %t %% with flags, width, precision and argument numbers.
 */
#include "spec/hcl/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static json_t *number_result(const struct hcl_call *call, double value)
{
    json_t *number = hcl_number(value);

    return number != NULL ? number : hcl_call_failed(call, "has no finite result here");
}

static bool take_number(const struct hcl_call *call, size_t i, json_t **ret_number)
{
    *ret_number = hcl_convert(call->arguments[i], HCL_NUMBER);
    if (*ret_number == NULL)
        (void)hcl_call_failed(call, "needs a number as argument %zu, but got %s", i + 1,
                              hcl_type_text(call->arguments[i]));
    return *ret_number != NULL;
}

static json_t *run_abs(const struct hcl_call *call)
{
    json_t *number, *zero = json_integer(0), *result = NULL;

    if (take_number(call, 0, &number)) {
        result = hcl_number_compare(number, zero) >= 0
                     ? json_incref(number)
                     : hcl_number_combine(OP_SUBTRACT, zero, number);
        json_decref(number);
    }
    json_decref(zero);
    return result;
}

static json_t *run_rounded(const struct hcl_call *call, bool up)
{
    json_t *number;

    if (!take_number(call, 0, &number))
        return NULL;
    json_t *result = hcl_number_round(number, up);
    json_decref(number);
    return result;
}

static json_t *run_ceil(const struct hcl_call *call)
{
    return run_rounded(call, true);
}

static json_t *run_floor(const struct hcl_call *call)
{
    return run_rounded(call, false);
}

static json_t *run_log(const struct hcl_call *call)
{
    double number, base;

    if (!hcl_argument_number(call, 0, &number) || !hcl_argument_number(call, 1, &base))
        return NULL;
    return number_result(call, log(number) / log(base));
}

static json_t *run_pow(const struct hcl_call *call)
{
    double number, power;

    if (!hcl_argument_number(call, 0, &number) || !hcl_argument_number(call, 1, &power))
        return NULL;
    return number_result(call, pow(number, power));
}

static json_t *run_signum(const struct hcl_call *call)
{
    double number;

    return hcl_argument_number(call, 0, &number) ? json_integer((number > 0) - (number < 0)) : NULL;
}

/* The largest (SIGN 1) or smallest (SIGN -1) argument. */
static json_t *extreme(const struct hcl_call *call, int sign)
{
    json_t *best = NULL, *number;

    for (size_t i = 0; i < call->count; i++) {
        if (!take_number(call, i, &number)) {
            json_decref(best);
            return NULL;
        }
        if (best == NULL || hcl_number_compare(number, best) * sign > 0) {
            json_decref(best);
            best = number;
        } else {
            json_decref(number);
        }
    }
    return best;
}

static json_t *run_max(const struct hcl_call *call)
{
    return extreme(call, 1);
}

static json_t *run_min(const struct hcl_call *call)
{
    return extreme(call, -1);
}

static json_t *run_sum(const struct hcl_call *call)
{
    json_t *total = json_integer(0), *item;
    size_t i;

    if (!hcl_argument_list(call, 0))
        return NULL;
    json_array_foreach(call->arguments[0], i, item)
    {
        json_t *number = hcl_convert(item, HCL_NUMBER);

        if (number == NULL) {
            json_decref(total);
            return hcl_call_failed(call, "adds numbers, but element %zu is %s", i,
                                   hcl_type_text(item));
        }
        json_t *more = hcl_number_combine(OP_ADD, total, number);
        json_decref(number);
        json_decref(total);
        total = more;
        if (total == NULL)
            return hcl_call_failed(call, "has no finite result here");
    }
    return total;
}

/* parseint("ff", 16): no prefix, no space. */
static json_t *run_parseint(const struct hcl_call *call)
{
    json_t *keep;
    int64_t base;

    if (!hcl_argument_integer(call, 1, &base))
        return NULL;
    if (base < 2 || base > 36)
        return hcl_call_failed(call, "takes a base from 2 to 36");
    if (!hcl_argument_text(call, 0, &keep))
        return NULL;
    json_t *value = hcl_number_from_base(json_string_value(keep), (unsigned)base);
    if (value == NULL)
        (void)hcl_call_failed(call, "cannot read \"%.40s\" in base %lld", json_string_value(keep),
                              (long long)base);
    json_decref(keep);
    return value;
}

/* --- conversions --- */

static json_t *convert_argument(const struct hcl_call *call, enum hcl_type type, const char *wanted)
{
    if (json_is_null(call->arguments[0]))
        return json_null();
    json_t *value = hcl_convert(call->arguments[0], type);
    return value != NULL ? value
                         : hcl_call_failed(call, "cannot make %s of %s", wanted,
                                           hcl_type_text(call->arguments[0]));
}

static json_t *run_tostring(const struct hcl_call *call)
{
    return convert_argument(call, HCL_STRING, "a string");
}

static json_t *run_tonumber(const struct hcl_call *call)
{
    return convert_argument(call, HCL_NUMBER, "a number");
}

static json_t *run_tobool(const struct hcl_call *call)
{
    return convert_argument(call, HCL_BOOL, "a bool");
}

/* --- format --- */

/* One verb: %[n]-+ 0#width.precision v */
struct verb {
    bool left, plus, space, zero, hash;
    int width, precision; /* -1: not given */
    int64_t argument;     /* from 1; 0: the next one */
    char letter;
};

enum { WIDTH_MAX = 1024, PRECISION_MAX = 64 };

static bool read_count(const char **at, int max, int *ret_count)
{
    int count = 0;

    for (; **at >= '0' && **at <= '9'; (*at)++) {
        count = count * 10 + (**at - '0');
        if (count > max)
            return false;
    }
    *ret_count = count;
    return true;
}

static bool read_verb(const char **at, struct verb *ret_verb)
{
    struct verb verb = {.width = -1, .precision = -1};
    int count;

    for (;; (*at)++) {
        if (**at == '-')
            verb.left = true;
        else if (**at == '+')
            verb.plus = true;
        else if (**at == ' ')
            verb.space = true;
        else if (**at == '0')
            verb.zero = true;
        else if (**at == '#')
            verb.hash = true;
        else
            break;
    }
    if (**at >= '0' && **at <= '9' && !read_count(at, WIDTH_MAX, &verb.width))
        return false;
    if (**at == '.') {
        (*at)++;
        if (!read_count(at, PRECISION_MAX, &verb.precision))
            return false;
    }
    if (**at == '[') {
        (*at)++;
        if (!read_count(at, 1000, &count) || count == 0 || **at != ']')
            return false;
        verb.argument = count;
        (*at)++;
    }
    verb.letter = **at;
    if (verb.letter == '\0')
        return false;
    (*at)++;
    *ret_verb = verb;
    return true;
}

static void pad(struct hcl_buffer *buffer, const struct verb *verb, const char *text)
{
    size_t length = strlen(text), characters = 0, sign = 0;
    size_t width = verb->width < 0 ? 0 : (size_t)verb->width;

    for (size_t i = 0; i < length; i++)
        characters += ((unsigned char)text[i] & 0xC0u) != 0x80u;
    size_t missing = width > characters ? width - characters : 0;
    bool zeros = verb->zero && !verb->left && strchr("dfegxXobv", verb->letter) != NULL;
    if (zeros && (*text == '-' || *text == '+')) {
        hcl_buffer_add(buffer, text, 1);
        sign = 1;
    }
    for (size_t i = 0; i < missing && !verb->left; i++)
        hcl_buffer_add(buffer, zeros ? "0" : " ", 1);
    hcl_buffer_add(buffer, text + sign, length - sign);
    for (size_t i = 0; i < missing && verb->left; i++)
        hcl_buffer_add(buffer, " ", 1);
}

/* NUMBER as VERB wants it, without its sign; NULL if it wants a whole one. */
static char *number_text(const json_t *number, const struct verb *verb)
{
    unsigned base = verb->letter == 'd'   ? 10
                    : verb->letter == 'o' ? 8
                    : verb->letter == 'b' ? 2
                                          : 16;

    if (verb->letter == 'v')
        return hcl_number_format(number, 'g', verb->precision);
    if (strchr("dxXob", verb->letter) == NULL)
        return hcl_number_format(
            number, verb->letter,
            verb->precision >= 0 || strchr("gG", verb->letter) != NULL ? verb->precision : 6);
    if (!hcl_number_is_whole(number))
        return NULL;
    char *text = hcl_number_in_base(number, base);
    for (char *at = text; verb->letter == 'X' && *at != '\0'; at++)
        *at = *at >= 'a' && *at <= 'f' ? (char)(*at - 'a' + 'A') : *at;
    return text;
}

static bool format_number(const struct hcl_call *call, struct hcl_buffer *buffer,
                          const struct verb *verb, size_t i)
{
    const char *sign = verb->plus ? "+" : verb->space ? " " : "";
    json_t *number;

    if (!take_number(call, i, &number))
        return false;
    char *text = number_text(number, verb);
    json_decref(number);
    if (text == NULL) {
        (void)hcl_call_failed(call, "needs a whole number as argument %zu, but got %s", i + 1,
                              hcl_type_text(call->arguments[i]));
        return false;
    }
    size_t size = strlen(text) + 2;
    char *whole = malloc(size);
    check(whole != NULL);
    (void)text_format(whole, size, "%s%s", *text == '-' ? "" : sign, text); /* it fits */
    pad(buffer, verb, whole);
    free(whole);
    free(text);
    return true;
}

/* %v, %s, %q: text as it is, or as JSON. */
static bool format_text(const struct hcl_call *call, struct hcl_buffer *buffer,
                        const struct verb *verb, size_t i)
{
    json_t *value = call->arguments[i], *text = hcl_convert(value, HCL_STRING);
    char *dumped = NULL;

    if (verb->letter == 'q' && text != NULL)
        dumped = hcl_json(text);
    else if (verb->letter == 'v' && (text == NULL || (verb->hash && json_is_string(value))))
        dumped = hcl_json(value);
    if (text == NULL && dumped == NULL) {
        (void)hcl_call_failed(call, "needs a string for %%%c as argument %zu, but got %s",
                              verb->letter, i + 1, hcl_type_text(value));
        return false;
    }
    char *cut = strdup(dumped != NULL ? dumped : json_string_value(text));
    check(cut != NULL);
    if (verb->precision >= 0) {
        char *at = cut;

        for (int n = 0; n < verb->precision && *at != '\0'; n++) {
            at++;
            while (((unsigned char)*at & 0xC0u) == 0x80u)
                at++;
        }
        *at = '\0';
    }
    pad(buffer, verb, cut);
    free(cut);
    free(dumped);
    json_decref(text);
    return true;
}

static bool format_bool(const struct hcl_call *call, struct hcl_buffer *buffer,
                        const struct verb *verb, size_t i)
{
    json_t *value = hcl_convert(call->arguments[i], HCL_BOOL);

    if (value == NULL) {
        (void)hcl_call_failed(call, "needs a bool for %%t as argument %zu", i + 1);
        return false;
    }
    pad(buffer, verb, json_is_true(value) ? "true" : "false");
    json_decref(value);
    return true;
}

static bool format_one(const struct hcl_call *call, struct hcl_buffer *buffer,
                       const struct verb *verb, size_t i)
{
    if (i >= call->count) {
        (void)hcl_call_failed(call, "has no argument for %%%c", verb->letter);
        return false;
    }
    if (strchr("dxXobfeEgG", verb->letter) != NULL ||
        (verb->letter == 'v' && hcl_is_number(call->arguments[i])))
        return format_number(call, buffer, verb, i);
    if (strchr("vsq", verb->letter) != NULL)
        return format_text(call, buffer, verb, i);
    if (verb->letter == 't')
        return format_bool(call, buffer, verb, i);
    (void)hcl_call_failed(call, "does not know the verb %%%c",
                          (unsigned char)verb->letter < 0x80u ? verb->letter : '?');
    return false;
}

static json_t *run_format(const struct hcl_call *call)
{
    struct hcl_buffer buffer = {0};
    json_t *keep, *value = NULL;
    size_t next = 1, used = 1;
    bool valid = true;

    if (!hcl_argument_text(call, 0, &keep))
        return NULL;
    for (const char *at = json_string_value(keep); *at != '\0' && valid && !buffer.full;) {
        struct verb verb;

        if (at[0] != '%' || at[1] == '%') {
            hcl_buffer_add(&buffer, at, 1);
            at += at[0] == '%' ? 2 : 1;
            continue;
        }
        at++;
        if (!read_verb(&at, &verb)) {
            (void)hcl_call_failed(call, "cannot read a verb in its format");
            valid = false;
            break;
        }
        size_t i = verb.argument > 0 ? (size_t)verb.argument : next;
        valid = format_one(call, &buffer, &verb, i);
        next = i + 1;
        used = next > used ? next : used;
    }
    if (valid && used < call->count) {
        (void)hcl_call_failed(call, "got %zu arguments that its format does not use",
                              call->count - used);
        valid = false;
    }
    json_decref(keep);
    if (valid) {
        value = hcl_buffer_take(&buffer);
        if (value == NULL)
            (void)hcl_call_failed(call, "makes a text that is too long");
    }
    hcl_buffer_free(&buffer);
    return value;
}

/* formatlist(format, ...): lists go in step, other arguments repeat. */
static json_t *run_formatlist(const struct hcl_call *call)
{
    size_t length = SIZE_MAX;

    for (size_t i = 1; i < call->count; i++) {
        if (!json_is_array(call->arguments[i]))
            continue;
        size_t size = json_array_size(call->arguments[i]);
        if (length != SIZE_MAX && size != length)
            return hcl_call_failed(call, "needs lists of one length, but got %zu and %zu", length,
                                   size);
        length = size;
    }
    if (length == SIZE_MAX)
        length = 1;
    json_t **arguments = calloc(call->count, sizeof(*arguments)), *result = json_array();
    check(arguments != NULL);
    for (size_t n = 0; n < length && result != NULL; n++) {
        for (size_t i = 0; i < call->count; i++)
            arguments[i] = i > 0 && json_is_array(call->arguments[i])
                               ? json_array_get(call->arguments[i], n)
                               : call->arguments[i];
        struct hcl_call one = *call;
        one.arguments = arguments;
        json_t *text = run_format(&one);
        if (text != NULL &&
            hcl_charge(call->context, call->place, 1 + call->count + json_string_length(text) / 16,
                       call->error) != 0) {
            json_decref(text);
            text = NULL;
        }
        if (text == NULL) {
            json_decref(result);
            result = NULL;
        } else
            check(json_array_append_new(result, text) == 0);
    }
    free(arguments);
    return result;
}

const struct hcl_function_row hcl_number_functions[] = {
    {"abs", 1, 1, run_abs},
    {"ceil", 1, 1, run_ceil},
    {"floor", 1, 1, run_floor},
    {"format", 1, SIZE_MAX, run_format},
    {"formatlist", 1, SIZE_MAX, run_formatlist},
    {"log", 2, 2, run_log},
    {"max", 1, SIZE_MAX, run_max},
    {"min", 1, SIZE_MAX, run_min},
    {"parseint", 2, 2, run_parseint},
    {"pow", 2, 2, run_pow},
    {"signum", 1, 1, run_signum},
    {"sum", 1, 1, run_sum},
    {"tobool", 1, 1, run_tobool},
    {"tonumber", 1, 1, run_tonumber},
    {"tostring", 1, 1, run_tostring},
    {NULL, 0, 0, NULL},
};
