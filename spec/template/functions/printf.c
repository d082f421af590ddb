/*
 * printf of templates: Go's fmt.Sprintf (go 1.25 fmt/format.go), for what values of templates are.
 *
 * A verb that its argument is not made for, which Go prints as "%!d(string=a)", is refused, as are
 * arguments that are missing or left over.
 */
#include "spec/template/functions/part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH_MAX = 1000,
    DIGITS_MAX = 60,   /* that a precision asks of a number */
    NUMBER_SIZE = 400, /* what the largest is with so many */
};

/* What stands between "%" and its letter. */
struct verb {
    bool minus, plus, sharp, space, zero;
    long width, precision; /* -1: none */
    const char *letter;
};

struct printing {
    const struct call *call;
    size_t next; /* argument */
    bool chosen; /* by its number: then not all need be printed */
    struct growing made;
};

/* --- reading --- */

static const json_t *take(struct printing *printing)
{
    const struct call *call = printing->call;

    return printing->next < call->count ? call->arguments[printing->next++] : NULL;
}

/* `[2]` at *AT: the second argument is next.  False if it is none. */
static bool choose(struct printing *printing, const char **at)
{
    char *end;

    if (**at != '[')
        return true;
    long number = strtol(*at + 1, &end, 10);
    if (*end != ']' || end == *at + 1 || number < 1 ||
        (size_t)number >= printing->call->count) /* the format is the first */
        return false;
    printing->next = (size_t)number;
    printing->chosen = true;
    *at = end + 1;
    return true;
}

/* Digits, or the "*" that an argument is the number for; -1 if there are none.  False if it is not
 * between -MAX and MAX. */
static bool read_number(struct printing *printing, const char **at, long max, long *ret_number)
{
    char *end;

    *ret_number = -1;
    if (!choose(printing, at))
        return false;
    if (**at == '*') {
        const json_t *argument = take(printing);

        (*at)++;
        *ret_number = (long)json_integer_value(argument);
        return json_is_integer(argument) && *ret_number <= max && *ret_number >= -max;
    }
    if (**at < '0' || **at > '9')
        return true;
    *ret_number = strtol(*at, &end, 10);
    *at = end;
    return *ret_number <= max;
}

/* What follows a "%" at AT; false if that is no verb. */
static bool read_verb(struct printing *printing, const char *at, struct verb *ret_verb)
{
    struct verb verb = {.precision = -1};
    bool *flag;

    do {
        flag = *at == '-'   ? &verb.minus
               : *at == '+' ? &verb.plus
               : *at == '#' ? &verb.sharp
               : *at == ' ' ? &verb.space
               : *at == '0' ? &verb.zero
                            : NULL;
        if (flag != NULL) {
            *flag = true;
            at++;
        }
    } while (flag != NULL);
    if (!read_number(printing, &at, WIDTH_MAX, &verb.width))
        return false;
    if (verb.width < -1) { /* of an argument */
        verb.minus = true;
        verb.width = -verb.width;
    }
    if (*at == '.') {
        at++;
        if (!read_number(printing, &at, WIDTH_MAX, &verb.precision))
            return false;
        if (verb.precision < 0)
            verb.precision = 0;
    }
    verb.zero = verb.zero && !verb.minus;
    verb.letter = at;
    *ret_verb = verb;
    return choose(printing, &ret_verb->letter) && *ret_verb->letter != '\0';
}

/* --- texts --- */

static void add(struct printing *printing, const char *text, size_t length)
{
    growing_add(&printing->made, text, length);
}

static void add_many(struct printing *printing, char what, long count)
{
    for (; count > 0; count--)
        add(printing, &what, 1);
}

static size_t characters(const char *text)
{
    size_t count = 0;

    for (; *text != '\0'; text += character_size(text))
        count++;
    return count;
}

static void add_padded(struct printing *printing, const struct verb *verb, const char *text)
{
    long missing = verb->width - (long)characters(text);

    add_many(printing, verb->zero ? '0' : ' ', verb->minus ? 0 : missing);
    add(printing, text, strlen(text));
    add_many(printing, ' ', verb->minus ? missing : 0);
}

/* Cut behind as many characters as VERB has for its precision; the caller's. */
static char *cut(const char *text, const struct verb *verb)
{
    const char *end = text;

    for (long i = 0; *end != '\0' && (verb->precision < 0 || i < verb->precision); i++)
        end += character_size(end);
    char *copy = strndup(text, (size_t)(end - text));
    check(copy != NULL);
    return copy;
}

/* As a constant of Go, which has other escapes than JSON. */
static void quote(struct growing *to, const char *text)
{
    static const char controls[] = "\a\b\f\n\r\t\v\\\"", names[] = "abfnrtv\\\"";
    char escape[8];

    growing_add(to, "\"", 1);
    while (*text != '\0') {
        const char *known = strchr(controls, *text);
        size_t size = character_size(text);

        if (known != NULL)
            growing_add(to, escape,
                        (size_t)snprintf(escape, sizeof(escape), "\\%c", names[known - controls]));
        else if ((unsigned char)*text < ' ' || *text == 0x7f)
            growing_add(to, escape,
                        (size_t)snprintf(escape, sizeof(escape), "\\x%02x", (unsigned char)*text));
        else
            growing_add(to, text, size);
        text += size;
    }
    growing_add(to, "\"", 1);
    growing_add(to, "", 1);
}

static void hex(struct growing *to, const char *text, const struct verb *verb)
{
    size_t length = strlen(text);
    char byte[8];

    if (verb->precision >= 0 && (size_t)verb->precision < length)
        length = (size_t)verb->precision;
    for (size_t i = 0; i < length; i++) {
        bool apart = verb->space && i > 0, marked = verb->sharp && (verb->space || i == 0);
        const char *mark = !marked ? "" : *verb->letter == 'X' ? "0X" : "0x";

        growing_add(to, byte,
                    (size_t)snprintf(byte, sizeof(byte),
                                     *verb->letter == 'X' ? "%s%s%02X" : "%s%s%02x",
                                     apart ? " " : "", mark, (unsigned char)text[i]));
    }
    growing_add(to, "", 1);
}

static bool print_text(struct printing *printing, const struct verb *verb, const char *text)
{
    struct growing made = {0};

    if (*verb->letter == '\0' || strchr("svqxX", *verb->letter) == NULL ||
        (*verb->letter == 'q' && (verb->plus || verb->sharp))) /* other quotes */
        return false;
    if (*verb->letter == 'x' || *verb->letter == 'X') {
        hex(&made, text, verb);
    } else {
        char *shown = cut(text, verb);

        if (*verb->letter == 'q' || (*verb->letter == 'v' && verb->sharp))
            quote(&made, shown);
        else
            growing_add(&made, shown, strlen(shown) + 1);
        free(shown);
    }
    if (made.text != NULL && !made.full)
        add_padded(printing, verb, made.text);
    free(made.text);
    return true;
}

/* --- numbers --- */

/* SIGN, PREFIX, and the digits of an integer behind as many zeros as VERB asks for. */
static void add_digits(struct printing *printing, const struct verb *verb, const char *sign,
                       const char *prefix, const char *digits)
{
    long least = verb->precision >= 0 ? verb->precision
                 : verb->zero         ? verb->width - (long)strlen(sign)
                                      : 0;

    if (verb->precision == 0 && text_equal(digits, "0"))
        sign = prefix = digits = "";
    long zeros = least - (long)strlen(digits);
    long missing = verb->width - (zeros > 0 ? zeros : 0) -
                   (long)(strlen(sign) + strlen(prefix) + strlen(digits));

    add_many(printing, ' ', verb->minus ? 0 : missing);
    add(printing, sign, strlen(sign));
    add(printing, prefix, strlen(prefix));
    add_many(printing, '0', zeros);
    add(printing, digits, strlen(digits));
    add_many(printing, ' ', verb->minus ? missing : 0);
}

static const char *sign_of(const struct verb *verb, bool negative)
{
    bool plus = verb->plus && *verb->letter != 'v'; /* of which it tells more, if there is more */

    return negative ? "-" : plus ? "+" : verb->space ? " " : "";
}

static bool print_integer(struct printing *printing, const struct verb *verb, json_int_t value)
{
    char digits[80], *at = digits + sizeof(digits) - 1;
    unsigned long long left = value < 0 ? 0 - (unsigned long long)value : (unsigned long long)value;
    char letter = *verb->letter;
    unsigned base = letter == 'd' || letter == 'v'   ? 10
                    : letter == 'b'                  ? 2
                    : letter == 'o' || letter == 'O' ? 8
                    : letter == 'x' || letter == 'X' ? 16
                                                     : 0;
    const char *prefix = letter == 'O'                   ? "0o"
                         : !verb->sharp || letter == 'v' ? ""
                         : letter == 'b'                 ? "0b"
                         : letter == 'o'                 ? "0"
                         : letter == 'x'                 ? "0x"
                         : letter == 'X'                 ? "0X"
                                                         : "";

    if (base == 0 || verb->precision > DIGITS_MAX)
        return false;
    *at = '\0';
    do
        *--at = (letter == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[left % base];
    while ((left /= base) > 0);
    add_digits(printing, verb, sign_of(verb, value < 0), prefix, at);
    return true;
}

static void write_float(char text[NUMBER_SIZE], char letter, int precision, double value)
{
    switch (letter) {
    case 'e':
        (void)snprintf(text, NUMBER_SIZE, "%.*e", precision, value);
        break;
    case 'E':
        (void)snprintf(text, NUMBER_SIZE, "%.*E", precision, value);
        break;
    case 'f':
    case 'F':
        (void)snprintf(text, NUMBER_SIZE, "%.*f", precision, value);
        break;
    case 'G':
        (void)snprintf(text, NUMBER_SIZE, "%.*G", precision, value);
        break;
    default:
        (void)snprintf(text, NUMBER_SIZE, "%.*g", precision, value);
    }
}

static bool print_float(struct printing *printing, const struct verb *verb, const json_t *argument)
{
    double value = json_real_value(argument);
    char text[NUMBER_SIZE];
    bool general = *verb->letter == 'g' || *verb->letter == 'G' || *verb->letter == 'v';
    struct verb plain = *verb;

    if (*verb->letter == '\0' || strchr("eEfFgGv", *verb->letter) == NULL || verb->sharp ||
        verb->precision > DIGITS_MAX)
        return false;
    if (general && verb->precision < 0) { /* as few digits as tell it from others */
        char *shortest = template_print(argument);

        (void)text_copy(text, sizeof(text), shortest[0] == '-' ? shortest + 1 : shortest);
        free(shortest);
        for (char *at = text; *verb->letter == 'G' && *at != '\0'; at++)
            *at = *at == 'e' ? 'E' : *at;
    } else {
        write_float(text, *verb->letter, verb->precision < 0 ? 6 : (int)verb->precision,
                    value < 0 ? -value : value);
    }
    const char *sign = sign_of(verb, value < 0);
    if (verb->zero && *sign != '\0') { /* in front of the zeros */
        add(printing, sign, 1);
        plain.width--;
        sign = "";
    }
    char whole[NUMBER_SIZE + 2];
    (void)snprintf(whole, sizeof(whole), "%s%s", sign, text);
    add_padded(printing, &plain, whole);
    return true;
}

/* --- the whole --- */

static bool is_all_texts(const json_t *value)
{
    const char *key;
    json_t *item;
    size_t i;

    json_object_foreach((json_t *)value, key, item)
    {
        if (!is_all_texts(item))
            return false;
    }
    json_array_foreach(value, i, item)
    {
        if (!is_all_texts(item))
            return false;
    }
    return json_is_string(value) || json_is_object(value) || json_is_array(value);
}

/* Lists and maps, whose width Go gives to each of their values, and what is no number and no text.
 */
static bool print_other(struct printing *printing, const struct verb *verb, const json_t *argument)
{
    bool many = json_is_object(argument) || json_is_array(argument);
    bool fits = *verb->letter == 'v' || (*verb->letter == 't' && json_is_boolean(argument)) ||
                (*verb->letter == 's' && many && is_all_texts(argument));

    if (verb->sharp || !fits || (many && (verb->width >= 0 || verb->precision >= 0)))
        return false;
    char *text = template_print(argument);
    add_padded(printing, verb, text);
    free(text);
    return true;
}

/* The verb behind a "%" at AT; where it ends, NULL: it is none, or not for its argument. */
static const char *print_verb(struct printing *printing, const char *at)
{
    struct verb verb;

    if (!read_verb(printing, at, &verb))
        return NULL;
    if (*verb.letter == '%') {
        add(printing, "%", 1);
        return verb.letter + 1;
    }
    const json_t *argument = take(printing);
    bool fits =
        argument != NULL &&
        (json_is_string(argument)    ? print_text(printing, &verb, json_string_value(argument))
         : json_is_integer(argument) ? print_integer(printing, &verb, json_integer_value(argument))
         : json_is_real(argument)    ? print_float(printing, &verb, argument)
                                     : print_other(printing, &verb, argument));
    return fits ? verb.letter + 1 : NULL;
}

json_t *template_printf(const struct call *call)
{
    const char *at = call_text(call, 0);
    struct printing printing = {.call = call, .next = 1};

    while (at != NULL && *at != '\0') {
        size_t length = strcspn(at, "%");

        add(&printing, at, length);
        at += length;
        if (*at == '%')
            at = print_verb(&printing, at + 1);
    }
    json_t *value = call_give_grown(call, &printing.made);
    if (at != NULL && (printing.next == call->count || printing.chosen))
        return value;
    json_decref(value);
    return call_refuse(call, "its format and its arguments do not fit");
}
