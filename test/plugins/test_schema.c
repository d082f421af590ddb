/*
 * Configuration by a schema: the bytes that a plugin in Go is given for it by Nomad itself, and
 * what does not fit.
 */
#include "plugins/protocol/schema.h"

#include "plugins/protocol/plugin.pb-c.h"
#include "spec/hcl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- schemas, from the inside out; what is made is freed when the test is over --- */

enum { KEPT_MAX = 4096 };

static struct {
    void *items[KEPT_MAX];
    size_t count;
} kept;

static int forget(void **state)
{
    (void)state;
    while (kept.count > 0)
        free(kept.items[--kept.count]);
    return 0;
}

static ProtobufCBinaryData text(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

static ProtobufCBinaryData pack(const Wire__Spec *spec)
{
    ProtobufCBinaryData bytes = {.len = wire__spec__get_packed_size(spec)};

    bytes.data = malloc(bytes.len + 1);
    assert_non_null(bytes.data);
    assert_true(kept.count < KEPT_MAX);
    kept.items[kept.count++] = bytes.data;
    assert_int_equal(wire__spec__pack(spec, bytes.data), bytes.len);
    return bytes;
}

static ProtobufCBinaryData attribute_spec(int kind, const char *name, const char *type,
                                          bool required)
{
    Wire__SpecAttribute attribute = WIRE__SPEC_ATTRIBUTE__INIT;
    Wire__Spec spec = WIRE__SPEC__INIT;

    attribute.name = text(name);
    attribute.type = text(type);
    attribute.required = required;
    spec.block_case = (Wire__Spec__BlockCase)kind;
    spec.attribute = &attribute; /* the same place for both kinds */
    return pack(&spec);
}

static ProtobufCBinaryData attribute(const char *type)
{
    return attribute_spec(WIRE__SPEC__BLOCK_ATTRIBUTE, "", type, false);
}

static ProtobufCBinaryData with_default(const char *name, const char *type, const char *literal)
{
    Wire__SpecLiteral value = WIRE__SPEC_LITERAL__INIT;
    Wire__SpecDefault both = WIRE__SPEC_DEFAULT__INIT;
    Wire__Spec inner = WIRE__SPEC__INIT, spec = WIRE__SPEC__INIT;

    value.value = text(literal);
    inner.block_case = WIRE__SPEC__BLOCK_LITERAL;
    inner.literal = &value;
    both.primary = attribute_spec(WIRE__SPEC__BLOCK_ATTRIBUTE, name, type, false);
    both.fallback = pack(&inner);
    spec.block_case = WIRE__SPEC__BLOCK_FALLBACK;
    spec.fallback = &both;
    return pack(&spec);
}

struct entry {
    const char *key;
    ProtobufCBinaryData value;
};

static ProtobufCBinaryData object(const struct entry *entries, size_t count)
{
    Wire__SpecObject made = WIRE__SPEC_OBJECT__INIT;
    Wire__Spec spec = WIRE__SPEC__INIT;
    Wire__Pair pairs[32], *list[32];

    assert_true(count <= 32);
    for (size_t i = 0; i < count; i++) {
        wire__pair__init(&pairs[i]);
        pairs[i].key = text(entries[i].key);
        pairs[i].value = entries[i].value;
        list[i] = &pairs[i];
    }
    made.attributes = list;
    made.n_attributes = count;
    spec.block_case = WIRE__SPEC__BLOCK_OBJECT;
    spec.object = &made;
    return pack(&spec);
}

/* A block with one text, `a`. */
static ProtobufCBinaryData block(void)
{
    Wire__SpecBlock made = WIRE__SPEC_BLOCK__INIT;
    Wire__Spec spec = WIRE__SPEC__INIT;

    made.nested = object((struct entry[]){{"a", attribute("string")}}, 1);
    spec.block_case = WIRE__SPEC__BLOCK_BLOCK_VALUE;
    spec.block_value = &made;
    return pack(&spec);
}

static ProtobufCBinaryData blocks(int kind, uint64_t most)
{
    Wire__SpecBlockList made = WIRE__SPEC_BLOCK_LIST__INIT;
    Wire__Spec spec = WIRE__SPEC__INIT;

    made.nested = object((struct entry[]){{"a", attribute("string")}}, 1);
    made.max_items = most;
    spec.block_case = (Wire__Spec__BlockCase)kind;
    spec.block_list = &made;
    return pack(&spec);
}

static ProtobufCBinaryData named_blocks(void)
{
    Wire__SpecBlockMap made = WIRE__SPEC_BLOCK_MAP__INIT;
    ProtobufCBinaryData label = text("name");
    Wire__Spec spec = WIRE__SPEC__INIT;

    made.labels = &label;
    made.n_labels = 1;
    made.nested = object((struct entry[]){{"a", attribute("string")}}, 1);
    spec.block_case = WIRE__SPEC__BLOCK_BLOCK_MAP;
    spec.block_map = &made;
    return pack(&spec);
}

static ProtobufCBinaryData everything(void)
{
    const struct entry entries[] = {
        {"any", attribute("any")},
        {"b", attribute("bool")},
        {"ba", attribute_spec(WIRE__SPEC__BLOCK_BLOCK_ATTRIBUTES, "", "string", false)},
        {"ba0", attribute_spec(WIRE__SPEC__BLOCK_BLOCK_ATTRIBUTES, "", "string", false)},
        {"big", attribute("number")},
        {"bl", blocks(WIRE__SPEC__BLOCK_BLOCK_LIST, 3)},
        {"bl0", blocks(WIRE__SPEC__BLOCK_BLOCK_LIST, 0)},
        {"blk", block()},
        {"blk2", block()},
        {"bm", named_blocks()},
        {"d", with_default("d", "number", "5")},
        {"dd", with_default("dd", "string", "\"x\"")},
        {"f", attribute("number")},
        {"l", attribute("list(string)")},
        {"lm", attribute("list(map(string))")},
        {"miss", attribute("string")},
        {"n", attribute("number")},
        {"s", attribute("string")},
    };

    return object(entries, COUNT_OF(entries));
}

/* --- encoding --- */

/* What SPEC makes of the JSON text CONFIG, in hexadecimal; or the text of the error. */
static void encode(ProtobufCBinaryData spec, const char *config, char to[2048])
{
    json_t *value = json_loads(config, 0, NULL);
    struct err err = {0};
    char *bytes = NULL;
    size_t length;

    assert_non_null(value);
    if (schema_encode(spec.data, spec.len, value, &bytes, &length, &err) != 0) {
        assert_null(bytes);
        assert_true(text_copy(to, 2048, err.text));
    } else {
        assert_true(length < 1000);
        to[0] = '\0';
        for (size_t i = 0; i < length; i++)
            (void)text_format(to + 2 * i, 2048 - 2 * i, "%02x", (unsigned char)bytes[i]);
    }
    free(bytes);
    json_decref(value);
}

/* Those bytes were taken from a host of Nomad 1.1.2, with its templates filled in. */
static void test_configuration_is_the_bytes_that_nomad_sends(void **state)
{
    char found[2048];
    (void)state;

    encode(everything(),
           "{\"any\": [\"z\", 1], \"b\": \"true\", \"ba\": [{\"x\": \"1\", \"y\": 2}],"
           " \"big\": 0.1, \"bl\": [{\"a\": \"1\"}, {\"a\": \"2\"}], \"blk\": [{\"a\": \"q\"}],"
           " \"bm\": {\"lab\": {\"a\": \"m\"}}, \"f\": 1.5, \"l\": [\"a\", 7, true],"
           " \"lm\": [{\"k\": 1}], \"n\": \"42\", \"s\": \"v-xx-${lit} Q\"}",
           found);
    assert_string_equal(
        found,
        "de0012a3616e7992a17a01a162c3a2626182a178a131a179a132a3626130c0a3626967a3302e31a2626c9281"
        "a161a13181a161a132a3626c3090a3626c6b81a161a171a4626c6b32c0a2626d81a36c616281a161a16da164"
        "05a26464a178a166cb3ff8000000000000a16c93a161a137a474727565a26c6d9181a16ba131a46d697373c0"
        "a16e2aa173ad762d78782d247b6c69747d2051");
}

static void test_numbers_that_a_double_is_not_are_texts(void **state)
{
    static const struct {
        const char *config, *bytes;
    } numbers[] = {
        {"{\"n\": 0}", "81a16e00"},
        {"{\"n\": -1}", "81a16eff"},
        {"{\"n\": 0.5}", "81a16ecb3fe0000000000000"},
        {"{\"n\": 0.3}", "81a16ea3302e33"},
        {"{\"n\": \"18446744073709551616\"}", "81a16ecb43f0000000000000"},
        {"{\"n\": \"18446744073709551617\"}", "81a16eb43138343436373434303733373039353531363137"},
    };
    char found[2048];
    (void)state;

    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        encode(object((struct entry[]){{"n", attribute("number")}}, 1), numbers[i].config, found);
        assert_string_equal(found, numbers[i].bytes);
    }
}

static void test_what_does_not_fit_is_refused_and_not_quoted(void **state)
{
    static const struct {
        const char *config, *why;
    } wrong[] = {
        {"{\"nothing\": \"secret\"}", "nothing: there is no such argument or block"},
        {"{\"n\": \"secret\"}", "n: a string does not fit"},
        {"{\"b\": 5}", "b: a number does not fit"},
        {"{\"s\": [\"secret\"]}", "s: a list does not fit"},
        {"{\"blk\": [{}, {}]}", "blk: there may be one"},
        {"{\"blk\": \"secret\"}", "blk: is a block"},
        {"{\"blk\": {\"x\": \"secret\"}}", "x: there is no such argument"},
        {"{\"bl\": [{}, {}, {}, {}]}", "bl: there are too few or too many"},
        {"{\"bm\": [{\"lab\": {}}, {\"lab\": {}}]}", "lab: there may be one"},
    };
    char found[2048];
    (void)state;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        encode(everything(), wrong[i].config, found);
        assert_non_null(strstr(found, wrong[i].why));
        assert_null(strstr(found, "secret"));
    }
    encode(object((struct entry[]){{"n", attribute_spec(WIRE__SPEC__BLOCK_ATTRIBUTE, "n", "number",
                                                        true)}},
                  1),
           "{\"n\": null}", found);
    assert_non_null(strstr(found, "n: is required"));
}

static void test_what_is_said_twice_is_in_a_set_once(void **state)
{
    char found[2048];
    (void)state;

    encode(object((struct entry[]){{"e", blocks(WIRE__SPEC__BLOCK_BLOCK_SET, 0)}}, 1),
           "{\"e\": [{\"a\": \"1\"}, {\"a\": \"1\"}], \"//\": \"a comment\"}", found);
    assert_string_equal(found, "81a1659181a161a131");
}

static void test_schema_of_a_stranger_is_bounded(void **state)
{
    static const char *const broken[] = {"\xff\xff\xff", "\x0a\x7f", "", "\x62\x00"};
    Wire__Spec spec = WIRE__SPEC__INIT;
    ProtobufCBinaryData deep = attribute("string");
    char found[2048];
    (void)state;

    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        encode(text(broken[i]), "{}", found);
        assert_non_null(strstr(found, "its "));
    }
    for (int i = 0; i < 1000; i++) { /* each is in the one around it */
        Wire__SpecDefault inner = WIRE__SPEC_DEFAULT__INIT;

        inner.primary = deep;
        inner.fallback = attribute("string");
        spec.block_case = WIRE__SPEC__BLOCK_FALLBACK;
        spec.fallback = &inner;
        deep = pack(&spec);
    }
    encode(deep, "{}", found);
    assert_non_null(strstr(found, "its schema is too deep"));
    encode(object((struct entry[]){{"n", attribute("numbers(5)")}}, 1), "{\"n\": 1}", found);
    assert_non_null(strstr(found, "n: this is not a type"));
    encode(with_default("d", "number", "file(\"/etc/shadow\")"), "{}", found);
    assert_non_null(strstr(found, "a literal of its schema is no value"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_configuration_is_the_bytes_that_nomad_sends, forget),
        cmocka_unit_test_teardown(test_numbers_that_a_double_is_not_are_texts, forget),
        cmocka_unit_test_teardown(test_what_does_not_fit_is_refused_and_not_quoted, forget),
        cmocka_unit_test_teardown(test_what_is_said_twice_is_in_a_set_once, forget),
        cmocka_unit_test_teardown(test_schema_of_a_stranger_is_bounded, forget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
