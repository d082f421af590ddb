/* Interpolation as a table: Nomad's plain one, and HCL's templates in a driver's config. */
#include "hooks/env/expand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Ordered by name, as an environment is. */
static struct spec_pair variables[] = {
    {"BAD", "\xff"},        {"EMPTY", ""},       {"FOO", "foo"},
    {"QUOTE", "a\"b\\c\n"}, {"WHICH", "FOO"},    {"a.b", "dotted"},
    {"a.b.c", "deeper"},    {"odd name", "odd"}, {"x-y", "dash"},
};
static struct spec_pair attributes[] = {
    {"driver.qemu", "1"}, {"driver.qemu.version", "7.2"}, {"kernel.name", "linux"}};
static struct spec_pair meta[] = {{"rack", "r7"}};

static const struct hooks_node node = {
    .id = "id-1",
    .name = "stone",
    .datacenter = "dc1",
    .region = "global",
    .pool = "stones",
    .attributes = {attributes, COUNT_OF(attributes)},
    .meta = {meta, COUNT_OF(meta)},
};
static const struct hooks_env env = {.pairs = {variables, COUNT_OF(variables)}};
static const struct hooks_names names = {&node, &env};

/* --- plain --- */

static const struct {
    const char *text, *expected;
} plain[] = {
    /* What is unknown, or no name, stays. */
    {"", ""},
    {"${}", "${}"},
    {"${NONE}", "${NONE}"},
    {"${FOO", "${FOO"},
    {"$FOO", "$FOO"},
    {"${odd name}", "${odd name}"},
    {"${ FOO }", "${ FOO }"},
    {"${env[\"FOO\"]}", "${env[\"FOO\"]}"},
    {"${attr.none}", "${attr.none}"},
    {"${attr.}", "${attr.}"},
    {"%{FOO}", "%{FOO}"},
    /* What is known goes in. */
    {"${FOO}", "foo"},
    {"a${FOO}b${FOO}c", "afoobfooc"},
    {"${EMPTY}", ""},
    {"${x-y} ${a.b} ${a.b.c}", "dash dotted deeper"},
    {"${node.unique.id} ${node.unique.name}", "id-1 stone"},
    {"${node.datacenter} ${node.region} [${node.class}]", "dc1 global []"},
    {"${node.pool}", "stones"},
    {"${attr.kernel.name} ${meta.rack}", "linux r7"},
    /* No escape: the dollar stays and so does what was put in. */
    {"$${FOO}", "$foo"},
    /* Not nested, but found again behind what is no name. */
    {"${${WHICH}}", "${FOO}"},
    {"${a${FOO}", "${afoo"},
    {"${NONE}${FOO}", "${NONE}foo"},
};

static void test_plain_interpolation_is_that_of_nomad(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(plain); i++) {
        struct arena arena = {0};
        struct err err = {0};
        const char *made = NULL;

        assert_int_equal(hooks_expand_plain(&names, &arena, plain[i].text, 100, &made, &err), 0);
        assert_string_equal(made, plain[i].expected);
        arena_free(&arena);
    }
}

static void test_plain_interpolation_stops_at_its_bound(void **state)
{
    struct arena arena = {0};
    struct err err = {0};
    const char *made = NULL;

    (void)state;
    assert_int_equal(hooks_expand_plain(&names, &arena, "12345${FOO}", 7, &made, &err), ERR_LIMIT);
    assert_int_equal(hooks_expand_plain(&names, &arena, "${FOO}12345", 7, &made, &err), ERR_LIMIT);
    assert_null(made);
    assert_null(strstr(err.text, "12345"));
    assert_int_equal(hooks_expand_plain(&names, &arena, "${FOO}1234", 7, &made, &err), 0);
    assert_string_equal(made, "foo1234");
    arena_free(&arena);
}

/* --- config --- */

/* The text of a string as it is in JSON; what it becomes, or what is said of it. */
static const struct {
    const char *text, *expected, *message;
} config[] = {
    /* What is unknown is an error. */
    {"${NONE}", NULL, "args[0]: Unknown variable: There is no variable named \"NONE\"."},
    {"${none.at.all}", NULL, "There is no variable named \"none\"."},
    {"${attr.none}", NULL,
     "Unsupported attribute: This object does not have an attribute named "
     "\"none\"."},
    {"${node.unique.none}", NULL, "an attribute named \"unique.none\"."},
    {"${env[\\\"NONE\\\"]}", NULL,
     "Missing map element: This map does not have an element with "
     "the key \"NONE\"."},
    {"${env[NONE]}", NULL, "There is no variable named \"NONE\"."},
    {"${odd name}", NULL, "Invalid expression at 1:7"},
    /* Objects are no text. */
    {"${node}", NULL, "\"node\" is an object"},
    {"${env}", NULL, "\"env\" is an object"},
    {"${attr.driver}", NULL, "\"attr.driver\" is an object"},
    {"${a}", NULL, "\"a\" is an object"},
    /* What is not understood is an error, too. */
    {"${", NULL, "Invalid expression"},
    {"a ${FOO", NULL, "Invalid expression at 1:3"},
    {"a\\n ${}", NULL, "Invalid expression at 2:4"},
    {"${FOO BAR}", NULL, "Invalid expression"},
    {"${FOO.}", NULL, "Invalid expression"},
    {"${env[\\\"FOO\\\"}", NULL, "Invalid expression"},
    {"${env[0]}", NULL, "an element with the key \"0\""},
    {"${env[\\\"FOO]}", NULL, "Invalid expression"},
    {"${env[\\\"\\\\q\\\"]}", NULL, "Invalid expression"},
    {"%{ if FOO }x%{ endif }", NULL, "Invalid expression at 1:7"},
    {"%{ FOO }", NULL, "Invalid expression"},
    {"${FOO[0]}", NULL, "There is no variable named \"FOO\""},
    {"${[FOO]}", NULL, "Invalid expression"},
    {"${{a = FOO}}", NULL, "Invalid expression"},
    {"${null}", NULL, "Invalid expression"},
    {"${upper(NONE)}", NULL, "There is no variable named \"NONE\"."},
    {"${var.FOO}", NULL, "There is no variable named \"var\"."},
    {"${for[FOO]}", NULL, "There is no variable named \"for\"."},
    /* What would be another value at each start, or read a file, is no function here. */
    {"${uuidv4()}", NULL, "Invalid expression"},
    {"${file(\\\"/etc/hostname\\\")}", NULL, "Invalid expression"},
    {"${try(NONE, FOO)}", NULL, "Invalid expression"},
    {"${none(FOO)}", NULL, "Invalid expression"},
    {"\\u0024{NONE}", NULL, "There is no variable named \"NONE\"."},
    {"${FOO}\\u0000", NULL, "a NUL character"},
    {"${BAD}", NULL, "not UTF-8"},
    /* What is known goes in. */
    {"${FOO}", "foo", NULL},
    {"a ${FOO} b ${FOO}", "a foo b foo", NULL},
    {"${ FOO }${\\nFOO\\t}", "foofoo", NULL},
    {"${EMPTY}", "", NULL},
    {"${x-y}", "dash", NULL},
    {"${a.b}", "dotted", NULL},
    {"${a . b}", "dotted", NULL},
    {"${a.b.c}", "deeper", NULL},
    {"${node.unique.id} ${node.datacenter} [${node.class}]", "id-1 dc1 []", NULL},
    {"${attr.kernel.name} ${node.attr.kernel.name}", "linux linux", NULL},
    {"${attr.driver.qemu} ${attr.driver.qemu.version}", "1 7.2", NULL},
    {"${meta.rack} ${node.meta.rack} ${meta[\\\"rack\\\"]}", "r7 r7 r7", NULL},
    {"${env[\\\"odd name\\\"]} ${env[\\\"a.b\\\"]} ${env.FOO}", "odd dotted foo", NULL},
    {"${env[WHICH]}", "foo", NULL},
    {"${attr[\\\"driver\\\"].qemu.version} ${attr[lower(\\\"KERNEL\\\")].name}", "7.2 linux", NULL},
    /* Braces in braces. */
    {"${env[\\\"${WHICH}\\\"]}", "foo", NULL},
    {"${env[\\\"F${\\\"OO\\\"}\\\"]}}", "foo}", NULL},
    {"${\\\"a}b\\\"}", "a}b", NULL},
    {"${\\\"say \\\\\\\"hi\\\\\\\"\\\"}", "say \\\"hi\\\"", NULL},
    /* Expressions and directives, always as text. */
    {"${upper(FOO)} ${strlen(FOO)}", "FOO 3", NULL},
    {"${1 + 1}", "2", NULL},
    {"${FOO == \\\"foo\\\" ? a.b : EMPTY}", "dotted", NULL},
    {"%{ if FOO == \\\"foo\\\" }x%{ else }y%{ endif }", "x", NULL},
    {"%{ for a in [FOO, \\\"bar\\\"] }<${a}>%{ endfor }", "<foo><bar>", NULL},
    {"${join(FOO)}", NULL, "Invalid expression"},
    {"a ${~ FOO ~} b", "afoob", NULL},
    /* Escapes, and what looks like one. */
    {"$${FOO}", "${FOO}", NULL},
    {"%%{FOO}", "%{FOO}", NULL},
    {"$$${FOO}", "$${FOO}", NULL},
    {"$${FOO} ${FOO}", "${FOO} foo", NULL},
    {"$FOO $ $$ % 100% {} ${FOO}", "$FOO $ $$ % 100% {} foo", NULL},
    /* What goes in is not looked at again, and is quoted for JSON. */
    {"${QUOTE}", "a\\\"b\\\\c\\n", NULL},
};

static void test_config_interpolation_is_that_of_nomad(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(config); i++) {
        struct arena arena = {0};
        struct err err = {0};
        char json[512], expected[512];
        const char *made = NULL;

        (void)snprintf(json, sizeof(json), "{\"args\":[\"%s\"]}", config[i].text);
        int code = hooks_expand_config(&names, &arena, json, &made, &err);
        if (config[i].expected != NULL) {
            (void)snprintf(expected, sizeof(expected), "{\"args\":[\"%s\"]}", config[i].expected);
            if (code != 0)
                print_error("%s: %s\n", config[i].text, err.text);
            assert_int_equal(code, 0);
            assert_string_equal(made, expected);
        } else {
            assert_int_equal(code, ERR_INVALID);
            assert_false(err.recoverable);
            if (strstr(err.text, config[i].message) == NULL)
                print_error("%s: %s\n", config[i].text, err.text);
            assert_non_null(strstr(err.text, config[i].message));
            assert_true(text_starts_with(err.text, "failed to parse config: args[0]: "));
        }
        arena_free(&arena);
    }
}

static int expand(const char *json, char *ret_json, size_t size, struct err *err)
{
    struct arena arena = {0};
    const char *made = NULL;
    int code = hooks_expand_config(&names, &arena, json, &made, err);

    if (code == 0)
        assert_true(text_copy(ret_json, size, made));
    arena_free(&arena);
    return code;
}

static void test_config_keeps_what_is_no_text(void **state)
{
    char made[512];
    struct err err = {0};

    (void)state;
    assert_int_equal(expand("{\"t\": \"${FOO}\", \"n\": 9007199254740993, \"r\": 0.1, \"b\": true, "
                            "\"z\": null, \"l\": [1, [\"${FOO}\"], {}], \"o\": {\"k\": -1}}",
                            made, sizeof(made), &err),
                     0);
    assert_string_equal(made, "{\"t\":\"foo\",\"n\":9007199254740993,\"r\":0.10000000000000001,"
                              "\"b\":true,\"z\":null,\"l\":[1,[\"foo\"],{}],\"o\":{\"k\":-1}}");
}

/* A config without a template is passed on as it was written. */
static void test_config_without_templates_is_untouched(void **state)
{
    char made[512];
    struct err err = {0};

    (void)state;
    assert_int_equal(expand("{ \"a\" : 1.50 }", made, sizeof(made), &err), 0);
    assert_string_equal(made, "{ \"a\" : 1.50 }");
    assert_int_equal(expand("", made, sizeof(made), &err), 0);
    assert_string_equal(made, "");
}

/* HCL: keys of objects are templates, names of the config's own blocks are not. */
static void test_config_keys_are_templates_below_the_top(void **state)
{
    char made[512];
    struct err err = {0};

    (void)state;
    assert_int_equal(expand("{\"${FOO}\": {\"${FOO}\": \"${FOO}\"}}", made, sizeof(made), &err), 0);
    assert_string_equal(made, "{\"${FOO}\":{\"foo\":\"foo\"}}");
    assert_int_equal(expand("{\"o\": {\"foo\": 1, \"${FOO}\": 2}}", made, sizeof(made), &err),
                     ERR_INVALID);
    assert_non_null(strstr(err.text, "o.${FOO}: Duplicate object attribute"));
}

static void test_config_message_tells_where(void **state)
{
    char made[512];
    struct err err = {0};

    (void)state;
    assert_int_equal(
        expand("{\"mount\": [{}, {\"source\": \"hunter2 ${NONE}\"}]}", made, sizeof(made), &err),
        ERR_INVALID);
    assert_string_equal(err.text, "failed to parse config: mount[1].source: Unknown variable: "
                                  "There is no variable named \"NONE\".");
}

/* What a password can be part of is in no message. */
static void test_config_messages_keep_secrets(void **state)
{
    static const char *const texts[] = {
        "hunter2 ${NONE}",         "hunter2 ${",           "${\\\"hunter2\\\" + 1}",
        "${f(\\\"hunter2\\\")}",   "%{hunter2}",           "${env[\\\"hunter2",
        "${\\\"hunter2\\\\q\\\"}", "hunter2\\u0000${FOO}", "hunter2 ${BAD}",
    };
    char json[512], made[512];
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        (void)snprintf(json, sizeof(json), "{\"args\":[\"%s\"]}", texts[i]);
        assert_int_equal(expand(json, made, sizeof(made), &err), ERR_INVALID);
        assert_null(strstr(err.text, "hunter2"));
    }
    assert_int_equal(expand("{\"a\": \"${FOO}\" hunter2", made, sizeof(made), &err), ERR_INVALID);
    assert_null(strstr(err.text, "hunter2"));
    assert_int_equal(expand("[\"${FOO}\"]", made, sizeof(made), &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "not a JSON object"));
}

/* Writes HEAD, COUNT times BODY, and TAIL into TO. */
static void repeat(char *to, const char *head, const char *body, size_t count, const char *tail)
{
    to = stpcpy(to, head);
    for (size_t i = 0; i < count; i++)
        to = stpcpy(to, body);
    (void)stpcpy(to, tail);
}

static void test_config_that_grows_without_end_is_refused(void **state)
{
    enum { TIMES = 50000 };
    char *json = malloc(TIMES * 8 + 64), made[8];
    struct spec_pair long_one[] = {{"FOO", "longer than its name is, by far"}};
    const struct hooks_env long_env = {.pairs = {long_one, 1}};
    const struct hooks_names long_names = {&node, &long_env};
    struct arena arena = {0};
    const char *grown = NULL;
    struct err err = {0};

    (void)state;
    assert_non_null(json);
    repeat(json, "{\"a\":\"", "${FOO}", TIMES, "\"}");
    assert_int_equal(hooks_expand_config(&long_names, &arena, json, &grown, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "Too long"));

    /* All strings together count. */
    repeat(json, "{\"a\":[\"\"", ",\"${FOO}\"", TIMES / 2, "]}");
    assert_int_equal(hooks_expand_config(&long_names, &arena, json, &grown, &err), 0);
    arena_free(&arena);
    repeat(json, "{\"a\":[\"\"", ",\"${FOO}${FOO}${FOO}\"", TIMES / 4, "]}");
    assert_int_equal(hooks_expand_config(&long_names, &arena, json, &grown, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "Too long"));
    arena_free(&arena);

    /* Names in names, and indexes of indexes. */
    repeat(json, "{\"a\":\"${", "env[", 100, "FOO");
    repeat(json + strlen(json), "", "]", 100, "}\"}");
    assert_int_equal(expand(json, made, sizeof(made), &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "too deep"));
    repeat(json, "{\"a\":\"${env", "[FOO]", TIMES, "}\"}");
    assert_int_equal(expand(json, made, sizeof(made), &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "too deep"));

    /* Work that makes no text. */
    repeat(json, "{\"a\":\"%{ for a in [", "1,", 2000, "] }%{ for b in [");
    repeat(json + strlen(json), "", "1,", 2000, "] }%{ endfor }%{ endfor }\"}");
    assert_int_equal(expand(json, made, sizeof(made), &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "takes too much to evaluate"));

    repeat(json, "{\"a\":", "[", 64, "\"${FOO}\"");
    repeat(json + strlen(json), "", "]", 64, "}");
    assert_int_equal(expand(json, made, sizeof(made), &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "Too deep"));
    free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_interpolation_is_that_of_nomad),
        cmocka_unit_test(test_plain_interpolation_stops_at_its_bound),
        cmocka_unit_test(test_config_interpolation_is_that_of_nomad),
        cmocka_unit_test(test_config_keeps_what_is_no_text),
        cmocka_unit_test(test_config_without_templates_is_untouched),
        cmocka_unit_test(test_config_keys_are_templates_below_the_top),
        cmocka_unit_test(test_config_message_tells_where),
        cmocka_unit_test(test_config_messages_keep_secrets),
        cmocka_unit_test(test_config_that_grows_without_end_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
