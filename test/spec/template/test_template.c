/* Templates: what each means, and what is refused, with the line. */
#include "spec/template.h"

#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *find(void *ctx, const char *name, size_t length)
{
    static const struct {
        const char *name, *value;
    } names[] = {{"FOO", "foo"}, {"EMPTY", ""}, {"attr.kernel.name", "linux"}};

    (void)ctx;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (strlen(names[i].name) == length && memcmp(names[i].name, name, length) == 0)
            return names[i].value;
    }
    return NULL;
}

static int read_file(void *ctx, const char *path, char **ret_text, size_t *ret_length,
                     struct err *err)
{
    (void)ctx;
    if (text_equal(path, "local/bytes")) {
        *ret_text = memcpy(calloc(1, 8), "a\0b", 4);
        *ret_length = 3;
        return 0;
    }
    if (!text_equal(path, "local/list"))
        return err_set(err, ERR_GONE, "cannot open it");
    *ret_text = strdup("[{\"n\": 1, \"t\": \"a\"}, {\"n\": 2.5}]");
    *ret_length = strlen(*ret_text);
    return 0;
}

/* The text that TEMPLATE renders, or the error; free it. */
static char *render(const char *text, bool strict)
{
    const struct template_world world = {
        .find = find, .read = read_file, .now_unix_ns = 1700000000000000000, .strict = strict};
    struct template *template;
    struct err err = {0};
    char *made = NULL;
    size_t length;

    if (template_parse(text, strlen(text), "", "", &template, &err) != 0)
        return strdup(err.text);
    if (template_render(template, &world, &made, &length, &err) != 0)
        made = strdup(err.text);
    template_free(template);
    return made;
}

static const struct {
    const char *text, *made;
} rows[] = {
    {"", ""},
    {"plain } text {", "plain } text {"},
    {"a {{- \" b \" -}} c", "a b c"},
    {"a\n{{- /* gone */ -}}\n b", "ab"},
    {"{{ \"q\\t\\\"\" }}{{ `r\\n` }}", "q\t\"r\\n"},
    {"{{ 1 }} {{ -2 }} {{ 0x10 }} {{ 1.5 }} {{ true }} {{ 1000000.0 }} {{ 0.1 }}",
     "1 -2 16 1.5 true 1e+06 0.1"},
    /* Pipelines and variables. */
    {"{{ \"x\" | printf \"%s-%s\" \"y\" }}", "y-x"},
    {"{{ $a := 1 }}{{ $a }}{{ $a = add 2 $a }}{{ $a }}", "13"},
    {"{{ $a := 1 }}{{ if true }}{{ $a := 2 }}{{ $a }}{{ $a = 3 }}{{ end }}{{ $a }}", "21"},
    {"{{ (parseJSON `{\"a\": {\"b\": \"c\"}}`).a.b }}", "c"},
    {"{{ with parseJSON `{\"a\": 1}` }}{{ .a }}{{ $.a }}{{ end }}", "1<no value>"},
    /* Branches. */
    {"{{ if env \"FOO\" }}y{{ else }}n{{ end }}{{ if env \"NONE\" }}y{{ else }}n{{ end }}", "yn"},
    {"{{ if eq 1 2 }}a{{ else if eq 2 2 }}b{{ else }}c{{ end }}", "b"},
    {"{{ with env \"EMPTY\" }}{{ . }}{{ else with env \"FOO\" }}{{ . }}!{{ end }}", "foo!"},
    {"{{ range loop 3 }}{{ . }},{{ end }}{{ range split \",\" \"\" }}x{{ else }}none{{ end }}",
     "0,1,2,none"},
    {"{{ range $i, $v := split \",\" \"a,b\" }}{{ $i }}{{ $v }}{{ end }}", "0a1b"},
    {"{{ range $k, $v := parseJSON `{\"b\": 2, \"a\": 1}` }}{{ $k }}={{ $v }};{{ end }}",
     "a=1;b=2;"},
    {"{{ range loop 1 9 }}{{ if gt . 3 }}{{ break }}{{ end }}{{ if eq . 2 }}{{ continue }}"
     "{{ end }}{{ . }}{{ end }}",
     "13"},
    {"{{ define \"t\" }}<{{ . }}>{{ end }}{{ template \"t\" 1 }}{{ template \"t\" }}",
     "<1><<no value>>"},
    {"{{ $a := 1 }}{{ define \"t\" }}{{ $ }}{{ end }}{{ template \"t\" 5 }}", "5"},
    {"{{ block \"b\" 7 }}[{{ . }}]{{ end }}", "[7]"},
    /* Logic: no more is looked at than must be. */
    {"{{ and 1 0 2 }}{{ or 0 \"x\" }}{{ not 1 }}", "0xfalse"},
    {"{{ or true (mustEnv \"NONE\") }}", "true"},
    {"{{ eq 1 2 1 }} {{ ne \"a\" \"b\" }} {{ lt 1 1.5 }} {{ le \"b\" \"a\" }} {{ ge 2 2 }}",
     "true true true false true"},
    {"{{ len \"abc\" }}{{ len (split \",\" \"a,b\") }}{{ index (split \",\" \"a,b\") 1 }}", "32b"},
    /* What is outside. */
    {"{{ env \"FOO\" }}{{ env \"NONE\" }}{{ envOrDefault \"EMPTY\" \"d\" }}{{ env "
     "\"attr.kernel.name\" }}",
     "foodlinux"},
    {"{{ range file \"local/list\" | parseJSON }}{{ .n }}{{ .t }} {{ end }}", "1a 2.5<no value> "},
    {"{{ timestamp }} {{ timestamp \"unix\" }}", "2023-11-14T22:13:20Z 1700000000"},
    /* Texts. */
    {"{{ toUpper \"aB\" }}{{ toLower \"aB\" }}{{ trimSpace \" x \" }}", "ABabx"},
    {"{{ replaceAll \"a\" \"bb\" \"aca\" }}{{ \"a.b.\" | split \".\" | join \"-\" }}", "bbcbba-b-"},
    {"{{ trimPrefix \"a\" \"ab\" }}{{ trimSuffix \"b\" \"ab\" }}{{ trim \"x\" \"xax\" }}", "baa"},
    {"{{ \"a\\nb\" | indent 2 }}", "  a\n  b"},
    {"{{ regexMatch \"^f.o$\" \"foo\" }}{{ contains \"o\" \"foo\" }}{{ in \"foo\" \"x\" }}",
     "truetruefalse"},
    {"{{ base64Encode \"hi\" }}{{ base64Decode \"aGk=\" }}", "aGk=hi"},
    {"{{ sha256Hex \"\" }}", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"{{ md5sum \"a\" }}", "0cc175b9c0f1b6a831c399e269772661"},
    {"{{ printf \"%03d|%-3s|%.2f|%v|%q|%x|%%\" 7 \"a\" 1.0 true \"b\" 255 }}",
     "007|a  |1.00|true|\"b\"|ff|%"},
    {"{{ print 1 2 \"a\" }}{{ println 1 \"b\" }}", "1 2a1 b\n"},
    {"{{ 5 | subtract 2 }} {{ 7 | divide 2 }} {{ modulo 4 7 }} {{ multiply 2 1.5 }} {{ maximum 1 "
     "2 }}",
     "3 3 3 3 2"},
    {"{{ parseInt \"12\" | add 1 }} {{ parseBool \"true\" }} {{ parseFloat \"1.5\" }}",
     "13 true 1.5"},
    {"{{ parseJSON `{\"b\": [1, \"x\"], \"a\": null}` | toJSON }}", "{\"a\":null,\"b\":[1,\"x\"]}"},
    {"{{ parseJSON `{\"b\": [1, \"x\"]}` }}", "map[b:[1 x]]"},
};

static void test_each_means_what_it_means(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char *made = render(rows[i].text, false);

        if (strcmp(made, rows[i].made) != 0)
            fail_msg("%s renders \"%s\", not \"%s\"", rows[i].text, made, rows[i].made);
        free(made);
    }
}

static const struct {
    const char *text, *error;
} refused[] = {
    {"a\n{{ key \"x\" }}", "line 2: function \"key\" needs Consul, which this node has not"},
    {"{{ with secret \"x\" }}{{ end }}",
     "function \"secret\" needs Vault, which this node has not"},
    {"{{ nomadVar \"x\" }}", "needs a server"},
    {"{{ nothing }}", "line 1: function \"nothing\" not defined"},
    {"{{ if true }}x", "\"end\" is missing"},
    {"x{{ end }}", "without a begin"},
    {"{{ \"x }}", "a string is not closed"},
    {"{{ 1", "an action is not closed"},
    {"{{ }}", "a value is missing"},
    {"{{ 1 | }}", "a value is missing"},
    {"{{ (1 }}", "a parenthesis is not closed"},
    {"{{ 1x }}", "bad number \"1x\""},
    {"{{ /* x }}", "a comment is not closed"},
    {"\n\n{{ $x }}", "line 3: undefined variable \"$x\""},
    {"{{ 1 2 }}", "a value that is no function has arguments"},
    {"{{ \"a\".b }}", "can't evaluate field b"},
    {"{{ toUpper 1 }}", "toUpper: wrong type of argument"},
    {"{{ toUpper }}", "toUpper takes 1 argument, not 0"},
    {"{{ mustEnv \"NONE\" }}", "mustEnv: \"NONE\" is not set"},
    {"{{ file \"/etc/passwd\" }}", "file \"/etc/passwd\": cannot open it"},
    {"{{ file \"local/bytes\" }}", "a text has a NUL byte"},
    {"{{ base64Decode \"YQBi\" }}", "a text has a NUL byte"},
    {"{{ template \"t\" }}", "template \"t\" not defined"},
    {"{{ divide 0 1 }}", "division by zero"},
    {"{{ lt 1 \"a\" }}", "incompatible types"},
    {"{{ range 5 }}{{ end }}", "range can't iterate"},
    {"{{ printf \"%d\" \"a\" }}", "do not fit"},
    {"{{ parseJSON \"{\" }}", "invalid JSON"},
    {"{{ index (split \",\" \"a\") 3 }}", "index out of range"},
    /* Bounds. */
    {"{{ define \"t\" }}{{ template \"t\" }}{{ end }}{{ template \"t\" }}", "deep"},
    {"{{ $a := 1 }}{{ define \"t\" }}{{ $a }}{{ end }}{{ template \"t\" }}", "undefined variable"},
    {"{{ range loop 100000000 }}{{ end }}", "more than 1000000 steps"},
    {"{{ $x := \"0123456789abcdef\" }}{{ range loop 40 }}{{ $x = print $x $x }}{{ end }}",
     "longer than 1048576 bytes"},
    {"{{ $x := print (loop 9999) }}{{ range loop 999 }}{{ $x }}{{ end }}",
     "renders more than 1048576 bytes"},
};

static void test_what_makes_no_sense_is_told_with_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        char *made = render(refused[i].text, false);

        if (strstr(made, refused[i].error) == NULL || !text_starts_with(made, "template: line "))
            fail_msg("%s says \"%s\", not \"%s\"", refused[i].text, made, refused[i].error);
        free(made);
    }
}

static void test_missing_keys_are_errors_where_they_shall_be(void **state)
{
    static const char text[] = "{{ with parseJSON `{\"a\": 1}` }}{{ .a }}{{ .b }}{{ end }}";
    char *made = render(text, false), *strict = render(text, true);

    (void)state;
    assert_string_equal(made, "1<no value>");
    assert_string_equal(strict, "template: line 1: map has no entry for key \"b\"");
    free(made);
    free(strict);
}

static void test_nesting_has_a_bound(void **state)
{
    char *deep = calloc(1, 100001);

    (void)state;
    memcpy(deep, "{{ ", 3);
    memset(deep + 3, '(', 90000);
    char *made = render(deep, false);
    assert_non_null(strstr(made, "deep"));
    free(made);
    deep[0] = '\0';
    for (int i = 0; i < 5000; i++)
        memcpy(deep + 13 * i, "{{ if true }}", 14);
    made = render(deep, false);
    assert_non_null(strstr(made, "deep"));
    free(made);
    free(deep);
}

static void test_delimiters_are_those_that_were_asked_for(void **state)
{
    const struct template_world world = {.find = find, .read = read_file};
    struct template *template;
    struct err err = {0};
    size_t length;
    char *made;

    (void)state;
    assert_int_equal(template_parse("{{ [[ 1 ]]", 10, "[[", "]]", &template, &err), 0);
    assert_int_equal(template_render(template, &world, &made, &length, &err), 0);
    assert_string_equal(made, "{{ 1");
    free(made);
    template_free(template);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_means_what_it_means),
        cmocka_unit_test(test_what_makes_no_sense_is_told_with_its_line),
        cmocka_unit_test(test_missing_keys_are_errors_where_they_shall_be),
        cmocka_unit_test(test_nesting_has_a_bound),
        cmocka_unit_test(test_delimiters_are_those_that_were_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
