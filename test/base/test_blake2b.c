/* BLAKE2b with a key, of bytes 0, 1, 2, ..., as other programs have it (Python's hashlib). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/blake2b.h"

static void test_it_is_as_others_have_it(void **state)
{
    static const struct {
        size_t key_length, length;
        const char *digest;
    } cases[] = {
        {0, 0,
         "786a02f742015903c6c6fd852552d272912f4740e15847618a86e217f71f5419"
         "d25e1031afee585313896444934eb04b903a685b1448b755d56f701afe9be2ce"},
        {0, 3,
         "40a374727302d9a4769c17b5f409ff32f58aa24ff122d7603e4fda1509e919d4"
         "107a52c57570a6d94e50967aea573b11f86f473f537565c66f7039830a85d186"},
        {0, 128,
         "2319e3789c47e2daa5fe807f61bec2a1a6537fa03f19ff32e87eecbfd64b7e0e"
         "8ccff439ac333b040f19b0c4ddd11a61e24ac1fe0f10a039806c5dcc0da3d115"},
        {0, 129,
         "f59711d44a031d5f97a9413c065d1e614c417ede998590325f49bad2fd444d3e"
         "4418be19aec4e11449ac1a57207898bc57d76a1bcf3566292c20c683a5c4648f"},
        {36, 0,
         "06105be9c5007ee46d6864ae96bea8fb07b8056518afc2dd6a97f5fb31350621"
         "3aed91fcd088ed27c28402b2d9e0c752bae572d09fc8e96c9f3b111023e523a4"},
        {36, 36,
         "799669d9129d50d168b8e8bf57d5bbd4771e41ffdec5e654c0760edbf5dae25e"
         "66e0c11efcb5281090eb4c8ca0f3b23e233b96b588335b8190e443c0f4490d40"},
        {64, 128,
         "72065ee4dd91c2d8509fa1fc28a37c7fc9fa7d5b3f8ad3d0d7a25626b57b1b44"
         "788d4caf806290425f9890a3a2a35a905ab4b37acfd0da6e4517b2525c9651e4"},
        {64, 255,
         "142709d62e28fcccd0af97fad0f8465b971e82201dc51070faa0372aa43e9248"
         "4be1c1e73ba10906d5d1853db6a4106e0a7bf9800d373d6dee2d46d62ef2a461"},
    };
    uint8_t bytes[256], digest[BLAKE2B_SIZE];
    (void)state;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)i;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[2 * BLAKE2B_SIZE + 1];

        blake2b(bytes, cases[i].key_length, bytes, cases[i].length, digest);
        for (size_t j = 0; j < sizeof(digest); j++)
            assert_true(text_format(text + 2 * j, 3, "%02x", digest[j]));
        assert_string_equal(text, cases[i].digest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_as_others_have_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
