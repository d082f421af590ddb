/* What is a decimal number. */
#include "spec/decimal.h"

#include <string.h>

static const char digits[] = "0123456789";

bool decimal_is(const char *text)
{
    text += *text == '+' || *text == '-';
    size_t before = strspn(text, digits);
    text += before;
    size_t behind = *text == '.' ? strspn(text + 1, digits) : 0;
    if (before == 0 && behind == 0)
        return false;
    text += *text == '.' ? behind + 1 : 0;
    if (*text == 'e' || *text == 'E') {
        text += 1 + (text[1] == '+' || text[1] == '-');
        size_t exponent = strspn(text, digits);
        if (exponent == 0)
            return false;
        text += exponent;
    }
    return *text == '\0';
}
