/*
 * Inside spec/hcl only: exact numbers.
 *
 * HCL's numbers are binary floats of 512 bits, rounded to even, as in cty (big.Float): 100 * 1.1 is
 * 110, and 0.1 + 0.2 is 0.3.  As a value a whole number that fits is a JSON integer, and any other
 * an object with one member, the shortest decimal that reads back as the same number: equal numbers
 * are equal values.  An object of a user that looks like that is that number.
 *
 * A number with an exponent beyond NUMBER_EXPONENT_MAX is none, neither read nor made.
 */
#ifndef CAIRN_SPEC_HCL_NUMBER_H
#define CAIRN_SPEC_HCL_NUMBER_H

#include "spec/hcl/tree.h"

enum {
    NUMBER_BITS = 512,
    NUMBER_EXPONENT_MAX = 4096, /* of two: about 1233 decimal digits before or behind the point */
};

/* True for both shapes. */
bool hcl_is_number(const json_t *value);
bool hcl_is_object(const json_t *value); /* and no number */

/* Decimal text, as Go's big.ParseFloat takes it; NULL if it is none, or one that is none here. */
json_t *hcl_number_parse(const char *text);

/* VALUE in plain decimals, without an exponent. */
json_t *hcl_number_text(const json_t *value);

bool hcl_number_is_zero(const json_t *value);
bool hcl_number_is_whole(const json_t *value);

/* -1, 0, 1. */
int hcl_number_compare(const json_t *left, const json_t *right);

/* LEFT OP RIGHT, where a divisor is not zero; a remainder by zero is LEFT.  NULL: too large. */
json_t *hcl_number_combine(enum hcl_operator op, const json_t *left, const json_t *right);

/* The next whole number down, or UP. */
json_t *hcl_number_round(const json_t *value, bool up);

/* A whole number in BASE from 2 to 36, small letters; and such text read.  NULL if it is none. */
char *hcl_number_in_base(const json_t *value, unsigned base);
json_t *hcl_number_from_base(const char *text, unsigned base);

/* As Go prints a big.Float with %e, %f, %g and their capitals; PRECISION -1 is its shortest. */
char *hcl_number_format(const json_t *value, char letter, int precision);

#endif
