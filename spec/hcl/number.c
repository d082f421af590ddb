/*
 * Exact numbers, on MPFR's floats of NUMBER_BITS bits, rounded to even.
 *
 * Text is made as Go makes it (math/big ftoa.go): the exact decimal expansion, which a binary float
 * always has, rounded to as few digits as read back to the same float.
 */
#include "spec/hcl/number.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpfr.h>

/* No text of a file has such a character. */
#define MARK "\x01number"

enum {
    /* Digits that always read back: NUMBER_BITS * log10(2), and some. */
    DIGITS_ENOUGH = 157,
    /* All digits of any number in range: of m * 5^n, where m has NUMBER_BITS and n is at most
     * NUMBER_EXPONENT_MAX + NUMBER_BITS. */
    DIGITS_ALL = (NUMBER_BITS + (NUMBER_EXPONENT_MAX + NUMBER_BITS) * 7 / 3) * 4 / 13 + 1,
    TEXT_EXPONENT_MAX = 100000,
};

struct big {
    mpfr_t number; /* owned; finite, and zero has no sign */
};

static struct big big_new(void)
{
    struct big big;

    mpfr_init2(big.number, NUMBER_BITS); /* MPFR aborts for lack of memory */
    return big;
}

static struct big big_of(int64_t whole)
{
    struct big big = big_new();

    (void)mpfr_set_sj(big.number, whole, MPFR_RNDN); /* exact */
    return big;
}

static void big_free(struct big *big)
{
    mpfr_clear(big->number);
}

static bool is_in_range(const struct big *big)
{
    mpfr_exp_t top = mpfr_zero_p(big->number) ? 0 : mpfr_get_exp(big->number);

    return top <= NUMBER_EXPONENT_MAX && top >= -NUMBER_EXPONENT_MAX;
}

/* --- decimals --- */

/* 0.DIGITS * 10^POINT; no digits are zero. */
struct digits {
    char *text; /* owned */
    size_t count;
    int point;
    bool negative;
};

static void drop_zeros(struct digits *digits)
{
    while (digits->count > 0 && digits->text[digits->count - 1] == '0')
        digits->count--;
    digits->text[digits->count] = '\0';
}

/* COUNT of them, to even; DIGITS_ALL is all. */
static struct digits expand(const struct big *big, size_t count)
{
    struct digits digits = {.negative = mpfr_sgn(big->number) < 0};
    mpfr_exp_t point;
    char *text = mpfr_get_str(NULL, &point, 10, count, big->number, MPFR_RNDN);

    check(text != NULL);
    digits.text = strdup(text + digits.negative);
    check(digits.text != NULL);
    digits.count = strlen(digits.text);
    digits.point = (int)point; /* in range */
    drop_zeros(&digits);
    mpfr_free_str(text);
    return digits;
}

/* To COUNT digits, to even. */
static void round_digits(struct digits *digits, int count)
{
    if (count < 0)
        digits->count = 0;
    if (count < 0 || (size_t)count >= digits->count)
        return;
    size_t at = (size_t)count;
    char next = digits->text[at];
    bool tie = next == '5' && at + 1 == digits->count;
    bool up = next > '5' || (next == '5' && !tie) ||
              (tie && at > 0 && (digits->text[at - 1] - '0') % 2 == 1);

    digits->count = at;
    while (up && at > 0 && digits->text[at - 1] == '9')
        at--;
    if (up && at == 0) { /* there is room for one digit: one was cut off */
        digits->text[0] = '1';
        digits->count = 1;
        digits->point++;
    } else if (up) {
        digits->text[at - 1]++;
        digits->count = at;
    }
    drop_zeros(digits);
}

/* --- text to number --- */

static bool read_exponent(const char **at, int *ret_exponent)
{
    int64_t exponent;

    if (**at == '\0')
        return true;
    if (**at != 'e' && **at != 'E')
        return false;
    const char *number = *at + 1 + ((*at)[1] == '+');
    if (*number < '0' && *number != '-')
        return false;
    if (!text_to_i64(number, &exponent) || exponent > TEXT_EXPONENT_MAX ||
        exponent < -TEXT_EXPONENT_MAX)
        return false;
    *ret_exponent = (int)exponent;
    return true;
}

static bool is_number(const char *text)
{
    static const char digits[] = "0123456789";
    const char *at = text + (*text == '-' || *text == '+');
    size_t before = strspn(at, digits), behind = 0;
    int exponent = 0;

    at += before;
    if (*at == '.') {
        behind = strspn(++at, digits);
        at += behind;
    }
    /* Far beyond the range; what is near it is seen when it is made. */
    return before + behind > 0 && before + behind < TEXT_EXPONENT_MAX &&
           read_exponent(&at, &exponent) && exponent < 2 * NUMBER_EXPONENT_MAX &&
           exponent > -2 * NUMBER_EXPONENT_MAX;
}

/* False if TEXT is no number of ours. */
static bool read_big(const char *text, struct big *ret_big)
{
    if (!is_number(text))
        return false;

    struct big big = big_new();
    (void)mpfr_strtofr(big.number, text, NULL, 10, MPFR_RNDN);
    if (mpfr_zero_p(big.number))
        mpfr_set_zero(big.number, 1);
    if (!is_in_range(&big)) {
        big_free(&big);
        return false;
    }
    *ret_big = big;
    return true;
}

/* --- values --- */

static const char *marked_text(const json_t *value)
{
    return json_object_size(value) == 1 ? json_string_value(json_object_get(value, MARK)) : NULL;
}

static bool take(const json_t *value, struct big *ret_big)
{
    const char *text;

    if (json_is_integer(value)) {
        *ret_big = big_of(json_integer_value(value));
        return true;
    }
    if (json_is_real(value)) { /* of a JSON that came from outside: what its writer saw */
        char shortest[40];

        for (int precision = 15; precision <= 17; precision++) {
            (void)snprintf(shortest, sizeof(shortest), "%.*g", precision, json_real_value(value));
            if (strtod(shortest, NULL) == json_real_value(value))
                break;
        }
        return read_big(shortest, ret_big);
    }
    text = marked_text(value);
    return text != NULL && read_big(text, ret_big);
}

/* VALUE, which is a number. */
static struct big must_take(const json_t *value)
{
    struct big big;
    bool taken = take(value, &big);

    check(taken);
    return big;
}

bool hcl_is_number(const json_t *value)
{
    struct big big;

    if (json_is_integer(value))
        return true;
    if (marked_text(value) == NULL && !json_is_real(value))
        return false;
    if (!take(value, &big))
        return false;
    big_free(&big);
    return true;
}

bool hcl_is_object(const json_t *value)
{
    return json_is_object(value) && !hcl_is_number(value);
}

/* DIGITS without an exponent, with BEHIND the point. */
static char *plain_text(const struct digits *digits, size_t behind)
{
    size_t before = digits->point > 0 ? (size_t)digits->point : 1, length = 0;
    char *text = malloc(before + behind + 3);

    check(text != NULL);
    if (digits->negative)
        text[length++] = '-';
    for (int i = 0; i < (int)(before + behind); i++) {
        int at = digits->point > 0 ? i : i - 1 + digits->point;

        if (i == (int)before)
            text[length++] = '.';
        text[length++] = at >= 0 && (size_t)at < digits->count ? digits->text[at] : '0';
    }
    text[length] = '\0';
    return text;
}

static size_t digits_behind(const struct digits *digits)
{
    return (int)digits->count > digits->point ? digits->count - (size_t)digits->point : 0;
}

/* True if COUNT digits of BIG read back as BIG. */
static bool is_enough(const struct big *big, size_t count)
{
    struct big read = big_new();
    mpfr_exp_t point;
    char *digits = mpfr_get_str(NULL, &point, 10, count, big->number, MPFR_RNDN), text[256];

    check(digits != NULL);
    (void)text_format(text, sizeof(text), "%se%ld", digits, (long)point - (long)count); /* short */
    (void)mpfr_strtofr(read.number, text, NULL, 10, MPFR_RNDN);
    bool same = mpfr_equal_p(read.number, big->number) != 0;
    mpfr_free_str(digits);
    big_free(&read);
    return same;
}

/* The fewest digits that read back as BIG. */
static struct digits shorten(const struct big *big)
{
    size_t low = 1, high = DIGITS_ENOUGH;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (is_enough(big, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return expand(big, high);
}

static char *shortest_text(const struct big *big)
{
    struct digits digits = shorten(big);
    char *text = plain_text(&digits, digits_behind(&digits));

    free(digits.text);
    return text;
}

/* BIG (moved) as a value, NULL if it is out of range. */
static json_t *value_of(struct big *big)
{
    json_t *value = NULL;

    if (is_in_range(big)) {
        char *text = shortest_text(big);
        int64_t whole;

        value = text_to_i64(text, &whole) ? json_integer(whole) : json_pack("{s:s}", MARK, text);
        check(value != NULL);
        free(text);
    }
    big_free(big);
    return value;
}

json_t *hcl_number_parse(const char *text)
{
    int64_t whole;
    struct big big;

    if (text_to_i64(text, &whole))
        return json_integer(whole);
    return read_big(text, &big) ? value_of(&big) : NULL;
}

json_t *hcl_number_text(const json_t *value)
{
    if (json_is_integer(value))
        return json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
    struct big big = must_take(value);
    char *text = shortest_text(&big);
    json_t *result = json_string(text);

    free(text);
    big_free(&big);
    return result;
}

json_t *hcl_number(double value)
{
    json_t *real = json_real(value); /* NULL: not finite */
    struct big big;
    json_t *number = real != NULL && take(real, &big) ? value_of(&big) : NULL;

    json_decref(real);
    return number;
}

double hcl_number_of(const json_t *value)
{
    struct big big = must_take(value);
    double number = mpfr_get_d(big.number, MPFR_RNDN);

    big_free(&big);
    return number;
}

bool hcl_number_is_zero(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) == 0;
}

bool hcl_number_is_whole(const json_t *value)
{
    if (json_is_integer(value))
        return true;
    struct big big = must_take(value);
    bool whole = mpfr_integer_p(big.number) != 0;

    big_free(&big);
    return whole;
}

/* --- operators --- */

/* LEFT - trunc(LEFT / RIGHT) * RIGHT into LEFT, as cty has it. */
static void modulo(mpfr_t left, mpfr_t right)
{
    struct big times = big_new();

    (void)mpfr_div(times.number, left, right, MPFR_RNDN);
    (void)mpfr_trunc(times.number, times.number);
    (void)mpfr_mul(times.number, times.number, right, MPFR_RNDN);
    (void)mpfr_sub(left, left, times.number, MPFR_RNDN);
    big_free(&times);
}

/* LEFT OP RIGHT into LEFT. */
static void combine(enum hcl_operator op, mpfr_t left, mpfr_t right)
{
    switch ((int)op) {
    case OP_ADD:
        (void)mpfr_add(left, left, right, MPFR_RNDN);
        break;
    case OP_SUBTRACT:
        (void)mpfr_sub(left, left, right, MPFR_RNDN);
        break;
    case OP_MULTIPLY:
        (void)mpfr_mul(left, left, right, MPFR_RNDN);
        break;
    case OP_DIVIDE:
        check(!mpfr_zero_p(right));
        (void)mpfr_div(left, left, right, MPFR_RNDN);
        break;
    default:
        if (!mpfr_zero_p(right))
            modulo(left, right);
        break;
    }
    if (mpfr_zero_p(left))
        mpfr_set_zero(left, 1);
}

json_t *hcl_number_combine(enum hcl_operator op, const json_t *left, const json_t *right)
{
    int64_t whole;

    if (json_is_integer(left) && json_is_integer(right) &&
        ((op == OP_ADD &&
          !__builtin_add_overflow(json_integer_value(left), json_integer_value(right), &whole)) ||
         (op == OP_SUBTRACT &&
          !__builtin_sub_overflow(json_integer_value(left), json_integer_value(right), &whole)) ||
         (op == OP_MULTIPLY &&
          !__builtin_mul_overflow(json_integer_value(left), json_integer_value(right), &whole))))
        return json_integer(whole);
    struct big a = must_take(left), b = must_take(right);
    combine(op, a.number, b.number);
    big_free(&b);
    return value_of(&a);
}

int hcl_number_compare(const json_t *left, const json_t *right)
{
    if (json_is_integer(left) && json_is_integer(right))
        return (json_integer_value(left) > json_integer_value(right)) -
               (json_integer_value(left) < json_integer_value(right));
    struct big a = must_take(left), b = must_take(right);
    int order = mpfr_cmp(a.number, b.number);

    big_free(&a);
    big_free(&b);
    return order < 0 ? -1 : order > 0;
}

json_t *hcl_number_round(const json_t *value, bool up)
{
    struct big big = must_take(value);

    (void)(up ? mpfr_ceil(big.number, big.number) : mpfr_floor(big.number, big.number));
    if (mpfr_zero_p(big.number))
        mpfr_set_zero(big.number, 1);
    json_t *result = value_of(&big);
    check(result != NULL); /* it was whole, or is small */
    return result;
}

/* --- bases --- */

char *hcl_number_in_base(const json_t *value, unsigned base)
{
    struct big big = must_take(value);
    mpz_t whole;

    check(mpfr_integer_p(big.number) != 0);
    mpz_init(whole);
    (void)mpfr_get_z(whole, big.number, MPFR_RNDN); /* exact */
    char *text = malloc(mpz_sizeinbase(whole, (int)base) + 2);
    check(text != NULL);
    (void)mpz_get_str(text, (int)base, whole); /* TEXT */
    mpz_clear(whole);
    big_free(&big);
    return text;
}

json_t *hcl_number_from_base(const char *text, unsigned base)
{
    const char *at = text + (*text == '-' || *text == '+');
    size_t length = strlen(at);
    mpz_t whole;

    for (size_t i = 0; i < length; i++) { /* GMP takes blanks, too */
        if (!isalnum((unsigned char)at[i]))
            return NULL;
    }
    if (length == 0 || length > NUMBER_EXPONENT_MAX)
        return NULL;
    if (mpz_init_set_str(whole, at, (int)base) != 0) {
        mpz_clear(whole);
        return NULL;
    }
    struct big big = big_new();
    if (*text == '-')
        mpz_neg(whole, whole);
    (void)mpfr_set_z(big.number, whole, MPFR_RNDN);
    mpz_clear(whole);
    return value_of(&big);
}

/* --- format --- */

/* D.DDDe+XX with PRECISION digits behind the point. */
static char *exponent_text(const struct digits *digits, int precision, char letter)
{
    size_t size = (size_t)precision + 20, length = 0;
    char *text = malloc(size), exponent[16];

    check(text != NULL);
    if (digits->negative)
        text[length++] = '-';
    for (size_t i = 0; i <= (size_t)precision; i++) {
        if (i == 1)
            text[length++] = '.';
        text[length++] = i < digits->count ? digits->text[i] : '0';
    }
    int power_of_ten = digits->count == 0 ? 0 : digits->point - 1;
    (void)text_format(exponent, sizeof(exponent), "%c%c%02d", letter, power_of_ten < 0 ? '-' : '+',
                      power_of_ten < 0 ? -power_of_ten : power_of_ten);
    (void)text_copy(text + length, size - length, exponent); /* it fits */
    return text;
}

char *hcl_number_format(const json_t *value, char letter, int precision)
{
    struct big big = must_take(value);
    bool shortest = precision < 0, general = letter == 'g' || letter == 'G';
    struct digits digits = shortest ? shorten(&big) : expand(&big, DIGITS_ALL);
    char *text;

    if (!shortest && general)
        round_digits(&digits, precision == 0 ? 1 : precision);
    else if (!shortest)
        round_digits(&digits, letter == 'f' ? digits.point + precision : 1 + precision);
    int exponent = digits.point - 1, limit = shortest ? 6 : precision == 0 ? 1 : precision;
    if (general && !shortest && (int)digits.count < limit && (int)digits.count >= digits.point)
        limit = (int)digits.count;
    if (letter == 'f')
        text = plain_text(&digits, shortest ? digits_behind(&digits) : (size_t)precision);
    else if (general && exponent >= -4 && exponent < limit)
        text = plain_text(&digits, digits_behind(&digits));
    else
        text = exponent_text(
            &digits, general || shortest ? (int)digits.count - 1 + (digits.count == 0) : precision,
            letter == 'G' || letter == 'E' ? 'E' : 'e');
    free(digits.text);
    big_free(&big);
    return text;
}
