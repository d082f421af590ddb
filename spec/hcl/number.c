/*
 * Exact numbers, on the big integers of libcrypto: sign, mantissa and an exponent of two, which
 * every operation rounds to NUMBER_BITS bits.
 *
 * Text is made as Go makes it (math/big ftoa.go): the exact decimal expansion, which a binary float
 * always has, rounded to as few digits as read back to the same float.
 */
#include "spec/hcl/number.h"

#include <openssl/bn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No text of a file has such a character. */
#define MARK "\x01number"

/* Digits that always read back: NUMBER_BITS * log10(2), and some. */
enum { DIGITS_ENOUGH = 157, TEXT_EXPONENT_MAX = 100000 };

struct big {
    BIGNUM *mantissa; /* owned; its sign is the number's */
    int exponent;     /* of two */
};

/* --- libcrypto, whose calls fail for lack of memory only --- */

static BIGNUM *bn_new(void)
{
    BIGNUM *bn = BN_new();

    check(bn != NULL);
    return bn;
}

static BN_CTX *bn_context(void)
{
    BN_CTX *context = BN_CTX_new();

    check(context != NULL);
    return context;
}

static void multiply(BIGNUM *to, const BIGNUM *by)
{
    BN_CTX *context = bn_context();

    check(BN_mul(to, to, by, context) == 1);
    BN_CTX_free(context);
}

static void power(BIGNUM *to, unsigned base, int exponent)
{
    BN_CTX *context = bn_context();
    BIGNUM *root = bn_new(), *count = bn_new();

    check(BN_set_word(root, base) == 1);
    check(BN_set_word(count, (BN_ULONG)exponent) == 1);
    check(BN_exp(to, root, count, context) == 1);
    BN_free(root);
    BN_free(count);
    BN_CTX_free(context);
}

static char *decimal(const BIGNUM *bn)
{
    char *text = BN_bn2dec(bn), *copy;

    check(text != NULL);
    copy = strdup(text);
    check(copy != NULL);
    OPENSSL_free(text);
    return copy;
}

/* --- rounding --- */

static struct big big_of(int64_t whole)
{
    struct big big = {.mantissa = bn_new()};
    uint64_t size = whole < 0 ? 0 - (uint64_t)whole : (uint64_t)whole;

    check(BN_set_word(big.mantissa, size) == 1);
    BN_set_negative(big.mantissa, whole < 0);
    return big;
}

static void big_free(struct big *big)
{
    BN_free(big->mantissa);
    big->mantissa = NULL;
}

/* To NUMBER_BITS, to even; STICKY: there is something below the last bit. */
static void round_off(struct big *big, bool sticky)
{
    int excess = BN_num_bits(big->mantissa) - NUMBER_BITS;

    if (excess > 0) {
        bool half = BN_is_bit_set(big->mantissa, excess - 1) == 1, below = sticky;
        bool negative = BN_is_negative(big->mantissa) == 1;

        for (int i = 0; i < excess - 1 && !below; i++)
            below = BN_is_bit_set(big->mantissa, i) == 1;
        BN_set_negative(big->mantissa, 0);
        check(BN_rshift(big->mantissa, big->mantissa, excess) == 1);
        big->exponent += excess;
        if (half && (below || BN_is_odd(big->mantissa)))
            check(BN_add_word(big->mantissa, 1) == 1);
        BN_set_negative(big->mantissa, negative);
    }
    int zeros = 0;
    while (!BN_is_zero(big->mantissa) && BN_is_bit_set(big->mantissa, zeros) == 0)
        zeros++;
    if (zeros > 0)
        check(BN_rshift(big->mantissa, big->mantissa, zeros) == 1);
    big->exponent = BN_is_zero(big->mantissa) ? 0 : big->exponent + zeros;
}

static bool is_in_range(const struct big *big)
{
    int top = BN_num_bits(big->mantissa) + big->exponent;

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

/* All of them. */
static struct digits expand(const struct big *big)
{
    BIGNUM *whole = BN_dup(big->mantissa), *fives = bn_new();
    int behind = big->exponent < 0 ? -big->exponent : 0;
    struct digits digits = {.negative = BN_is_negative(big->mantissa) == 1};

    check(whole != NULL);
    BN_set_negative(whole, 0);
    if (big->exponent >= 0) {
        check(BN_lshift(whole, whole, big->exponent) == 1);
    } else { /* m / 2^n is m * 5^n / 10^n */
        power(fives, 5, behind);
        multiply(whole, fives);
    }
    digits.text = decimal(whole);
    digits.count = strlen(digits.text);
    digits.point = (int)digits.count - behind;
    if (BN_is_zero(whole))
        digits.point = 0;
    drop_zeros(&digits);
    BN_free(fives);
    BN_free(whole);
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

/* MANTISSA * 10^EXPONENT; MANTISSA is moved. */
static struct big from_decimal(BIGNUM *mantissa, int exponent)
{
    struct big big = {.mantissa = mantissa};
    BIGNUM *tens = bn_new();
    bool sticky = false;

    power(tens, 10, exponent < 0 ? -exponent : exponent);
    if (exponent >= 0) {
        multiply(mantissa, tens);
    } else if (!BN_is_zero(mantissa)) {
        BN_CTX *context = bn_context();
        BIGNUM *rest = bn_new();
        int shift = NUMBER_BITS + 2 + BN_num_bits(tens) - BN_num_bits(mantissa);

        shift = shift < 0 ? 0 : shift;
        check(BN_lshift(mantissa, mantissa, shift) == 1);
        check(BN_div(mantissa, rest, mantissa, tens, context) == 1);
        sticky = !BN_is_zero(rest);
        big.exponent = -shift;
        BN_free(rest);
        BN_CTX_free(context);
    }
    BN_free(tens);
    round_off(&big, sticky);
    return big;
}

/* The digits at *AT into TO, which has room for them all; how many. */
static size_t take_digits(const char **at, char *to)
{
    size_t count = strspn(*at, "0123456789");

    memcpy(to, *at, count);
    to[count] = '\0';
    *at += count;
    return count;
}

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

/* False if TEXT is no number of ours. */
static bool read_big(const char *text, struct big *ret_big)
{
    const char *at = text + (*text == '-' || *text == '+');
    char *digits = malloc(strlen(text) + 1);
    BIGNUM *mantissa = NULL;
    int exponent = 0;

    check(digits != NULL);
    size_t before = take_digits(&at, digits), behind = 0;
    if (*at == '.') {
        at++;
        behind = take_digits(&at, digits + before);
    }
    bool good =
        before + behind > 0 && before + behind < TEXT_EXPONENT_MAX && read_exponent(&at, &exponent);
    /* Far beyond the range; what is near it is seen when it is made. */
    good = good && exponent < 2 * NUMBER_EXPONENT_MAX && exponent > -2 * NUMBER_EXPONENT_MAX;
    if (good) {
        check(BN_dec2bn(&mantissa, digits) > 0);
        BN_set_negative(mantissa, *text == '-');
        *ret_big = from_decimal(mantissa, exponent - (int)behind);
        good = is_in_range(ret_big);
        if (!good)
            big_free(ret_big);
    }
    free(digits);
    return good;
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

/* True if COUNT digits of ALL read back as BIG. */
static bool is_enough(const struct big *big, const struct digits *all, int count)
{
    struct digits some = *all;
    BIGNUM *mantissa = NULL;

    some.text = strdup(all->text);
    check(some.text != NULL);
    round_digits(&some, count);
    bool same = some.count > 0 && BN_dec2bn(&mantissa, some.text) > 0;
    if (same) {
        BN_set_negative(mantissa, all->negative);
        struct big read = from_decimal(mantissa, some.point - (int)some.count);
        same = read.exponent == big->exponent && BN_cmp(read.mantissa, big->mantissa) == 0;
        big_free(&read);
    }
    free(some.text);
    return same;
}

/* The fewest digits that read back as BIG, which is rounded. */
static struct digits shorten(const struct big *big)
{
    struct digits digits = expand(big);
    int low = 1, high = DIGITS_ENOUGH;

    if ((size_t)high >= digits.count)
        high = (int)digits.count;
    while (low < high) {
        int middle = low + (high - low) / 2;

        if (is_enough(big, &digits, middle))
            high = middle;
        else
            low = middle + 1;
    }
    round_digits(&digits, high);
    return digits;
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
    char *text = shortest_text(&big);
    double number = strtod(text, NULL);

    free(text);
    big_free(&big);
    return number;
}

bool hcl_number_is_zero(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) == 0;
}

bool hcl_number_is_whole(const json_t *value)
{
    struct big big = must_take(value);
    bool whole = big.exponent >= 0;

    if (!whole) {
        round_off(&big, false);
        whole = big.exponent >= 0;
    }
    big_free(&big);
    return whole;
}

/* --- operators --- */

/* Brings both to one exponent; true if the smaller is too small to matter to the larger. */
static void align(struct big *left, struct big *right)
{
    int low = left->exponent < right->exponent ? left->exponent : right->exponent;

    /* As far apart as both ends of the range at most. */
    check(BN_lshift(left->mantissa, left->mantissa, left->exponent - low) == 1);
    check(BN_lshift(right->mantissa, right->mantissa, right->exponent - low) == 1);
    left->exponent = right->exponent = low;
}

/* LEFT / RIGHT into LEFT. */
static void divide(struct big *left, const struct big *right)
{
    BN_CTX *context = bn_context();
    BIGNUM *rest = bn_new();
    int shift = NUMBER_BITS + 2 + BN_num_bits(right->mantissa) - BN_num_bits(left->mantissa);

    shift = shift < 0 ? 0 : shift;
    check(BN_lshift(left->mantissa, left->mantissa, shift) == 1);
    check(BN_div(left->mantissa, rest, left->mantissa, right->mantissa, context) == 1);
    left->exponent = BN_is_zero(left->mantissa) ? 0 : left->exponent - shift - right->exponent;
    round_off(left, !BN_is_zero(rest));
    BN_free(rest);
    BN_CTX_free(context);
}

/* Towards zero. */
static void cut_fraction(struct big *big)
{
    bool negative = BN_is_negative(big->mantissa) == 1;

    if (big->exponent >= 0)
        return;
    BN_set_negative(big->mantissa, 0);
    check(BN_rshift(big->mantissa, big->mantissa, -big->exponent) == 1);
    big->exponent = 0;
    BN_set_negative(big->mantissa, negative && !BN_is_zero(big->mantissa));
}

static void subtract(struct big *left, struct big *right)
{
    align(left, right);
    check(BN_sub(left->mantissa, left->mantissa, right->mantissa) == 1);
    round_off(left, false);
}

/* LEFT - trunc(LEFT / RIGHT) * RIGHT into LEFT, as cty has it. */
static void modulo(struct big *left, const struct big *right)
{
    struct big times = {BN_dup(left->mantissa), left->exponent};

    check(times.mantissa != NULL);
    divide(&times, right);
    cut_fraction(&times);
    multiply(times.mantissa, right->mantissa);
    times.exponent += right->exponent;
    round_off(&times, false);
    subtract(left, &times);
    big_free(&times);
}

static void combine(enum hcl_operator op, struct big *left, struct big *right)
{
    switch ((int)op) {
    case OP_ADD:
        BN_set_negative(right->mantissa, !BN_is_negative(right->mantissa));
        subtract(left, right);
        return;
    case OP_SUBTRACT:
        subtract(left, right);
        return;
    case OP_MULTIPLY:
        multiply(left->mantissa, right->mantissa);
        left->exponent += right->exponent;
        round_off(left, false);
        return;
    case OP_DIVIDE:
        check(!BN_is_zero(right->mantissa));
        divide(left, right);
        return;
    default:
        if (!BN_is_zero(right->mantissa))
            modulo(left, right);
        return;
    }
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
    combine(op, &a, &b);
    big_free(&b);
    return value_of(&a);
}

int hcl_number_compare(const json_t *left, const json_t *right)
{
    struct big a = must_take(left), b = must_take(right);

    align(&a, &b);
    int order = BN_cmp(a.mantissa, b.mantissa);
    big_free(&a);
    big_free(&b);
    return order;
}

json_t *hcl_number_round(const json_t *value, bool up)
{
    struct big big = must_take(value), whole = {BN_dup(big.mantissa), big.exponent};
    bool negative = BN_is_negative(big.mantissa) == 1;

    check(whole.mantissa != NULL);
    cut_fraction(&whole);
    align(&big, &whole);
    bool cut = BN_cmp(big.mantissa, whole.mantissa) != 0;
    big_free(&big);
    round_off(&whole, false);
    json_t *result = value_of(&whole), *one = json_integer(1), *further = NULL;
    check(result != NULL); /* it is smaller, or was whole */
    if (cut && up != negative)
        further = hcl_number_combine(up ? OP_ADD : OP_SUBTRACT, result, one);
    json_decref(one);
    if (further == NULL)
        return result;
    json_decref(result);
    return further;
}

/* --- bases --- */

char *hcl_number_in_base(const json_t *value, unsigned base)
{
    struct big big = must_take(value);
    bool negative = BN_is_negative(big.mantissa) == 1;

    round_off(&big, false);
    check(big.exponent >= 0);
    check(BN_lshift(big.mantissa, big.mantissa, big.exponent) == 1);
    BN_set_negative(big.mantissa, 0);
    size_t size = (size_t)BN_num_bits(big.mantissa) + 3, at = size - 1;
    char *reversed = malloc(size), *text;
    check(reversed != NULL);
    reversed[at] = '\0';
    do
        reversed[--at] = "0123456789abcdefghijklmnopqrstuvwxyz"[BN_div_word(big.mantissa, base)];
    while (!BN_is_zero(big.mantissa));
    if (negative)
        reversed[--at] = '-';
    text = strdup(reversed + at);
    check(text != NULL);
    free(reversed);
    big_free(&big);
    return text;
}

json_t *hcl_number_from_base(const char *text, unsigned base)
{
    const char *at = text + (*text == '-' || *text == '+');
    struct big big = {.mantissa = bn_new()};
    bool good = *at != '\0' && strlen(at) <= NUMBER_EXPONENT_MAX;

    BN_zero(big.mantissa);
    for (; good && *at != '\0'; at++) {
        unsigned digit = *at >= '0' && *at <= '9'   ? (unsigned)(*at - '0')
                         : *at >= 'a' && *at <= 'z' ? (unsigned)(*at - 'a') + 10
                         : *at >= 'A' && *at <= 'Z' ? (unsigned)(*at - 'A') + 10
                                                    : 36;
        good = digit < base;
        check(BN_mul_word(big.mantissa, base) == 1);
        check(BN_add_word(big.mantissa, digit) == 1);
    }
    BN_set_negative(big.mantissa, *text == '-');
    if (good) {
        round_off(&big, false);
        return value_of(&big);
    }
    big_free(&big);
    return NULL;
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
    struct digits digits = shortest ? shorten(&big) : expand(&big);
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
