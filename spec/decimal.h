/* Decimal numbers as YAML writes them: for job files and for templates, whose readers differ in all
 * but this. */
#ifndef CAIRN_SPEC_DECIMAL_H
#define CAIRN_SPEC_DECIMAL_H

#include <stdbool.h>

/* True if TEXT is a sign, digits, a point among, before or behind them, and an exponent: all of it,
 * and only digits need be there. */
bool decimal_is(const char *text);

#endif
