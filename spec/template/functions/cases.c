/* Functions of templates that change the case of letters, as Go does, by libunistring. */
#include "spec/template/functions/part.h"

#include <stdlib.h>
#include <string.h>
#include <unicase.h>
#include <unictype.h>
#include <unistr.h>
#include <uniwbrk.h>

size_t character_size(const char *at)
{
    int size = u8_strmblen((const uint8_t *)at);

    return size > 0 ? (size_t)size : 1;
}

/* Each character by itself, as strings.ToUpper. */
static json_t *run_case(const struct call *call)
{
    const char *text = call_text(call, 0);
    bool upper = text_equal(call->name, "toUpper");
    struct growing made = {0};
    ucs4_t character;
    char bytes[8];

    for (; *text != '\0'; text += character_size(text)) {
        (void)u8_strmbtouc(&character, (const uint8_t *)text); /* it is UTF-8 */
        character = upper ? uc_toupper(character) : uc_tolower(character);
        int size = u8_uctomb((uint8_t *)bytes, character, sizeof(bytes));
        growing_add(&made, bytes, size > 0 ? (size_t)size : 0);
    }
    return call_give_grown(call, &made);
}

static bool is_cased(ucs4_t character)
{
    return uc_is_property_cased(character);
}

/* True if a word goes on behind it, if there is more of the word; RET_ONCE: of several no more. */
static bool is_within_words(ucs4_t character, bool *ret_once)
{
    int kind = uc_wordbreak_property(character);

    *ret_once = kind == WBP_MIDLETTER || kind == WBP_MIDNUMLET || kind == WBP_SQ;
    return *ret_once || kind == WBP_ALETTER || kind == WBP_NUMERIC || kind == WBP_EXTENDNUMLET ||
           kind == WBP_EXTEND || kind == WBP_FORMAT || kind == WBP_HL || kind == WBP_ZWJ;
}

/* The first letter of each word, and no other, as x/text/cases.Title without lowering. */
static json_t *run_to_title(const struct call *call)
{
    const char *text = call_text(call, 0);
    bool in_word = false, was_once = false;
    struct growing made = {0};

    if (!call_charge(call, strlen(text)))
        return NULL;
    for (size_t size; *text != '\0'; text += size) {
        ucs4_t character;
        uint8_t titled[64];
        size_t length = sizeof(titled);
        bool once;

        size = character_size(text);
        (void)u8_strmbtouc(&character, (const uint8_t *)text); /* it is UTF-8 */
        bool within = is_within_words(character, &once);
        in_word = in_word && !(was_once && once);
        was_once = once;
        if (is_cased(character) && !in_word) {
            check(u8_totitle((const uint8_t *)text, size, "", NULL, titled, &length) == titled);
            growing_add(&made, (const char *)titled, length);
            in_word = true;
            continue;
        }
        growing_add(&made, text, size);
        in_word = in_word && (within || is_cased(character));
    }
    return call_give_grown(call, &made);
}

const struct function template_cases_functions[] = {
    {"toLower", 1, 1, run_case},
    {"toTitle", 1, 1, run_to_title},
    {"toUpper", 1, 1, run_case},
    {NULL, 0, 0, NULL},
};
