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
    } names[] = {
        {"FOO", "foo"}, {"EMPTY", ""}, {"attr.kernel.name", "linux"}, {"node.region", "eu"}};

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

#define SERVICE(alloc, name, number, tags)                                                         \
    "{\"ID\": \"_nomad-task-" alloc "-group-g-" name "-http\", \"ServiceName\": \"" name           \
    "\", \"Namespace\": \"default\", \"NodeID\": \"n\", \"Datacenter\": \"dc1\", \"JobID\": "      \
    "\"j\", "                                                                                      \
    "\"AllocID\": \"" alloc "\", \"Tags\": [" tags "], \"Address\": \"10.0.0." number              \
    "\", \"Port\": 2000" number "}"

static const char registered[] = "[" SERVICE("b", "web", "2", "\"z\", \"a\"") "," SERVICE(
    "a", "web", "1", "\"a\", \"b\"") "," SERVICE("c", "web", "3", "") "," SERVICE("d", "db", "4",
                                                                                  "\"main\"") "]";

static const char names[] = "[{\"ServiceName\": \"web\", \"Tags\": [\"z\", \"a\", \"b\", \"a\"]},"
                            "{\"ServiceName\": \"db\", \"Tags\": [\"main\"]}]";

/* What is registered, in no order. */
static const json_t *services(void *ctx, const struct spec_question *question, bool needed,
                              struct err *err)
{
    static json_t *answers; /* kept until the end */
    json_t *all = json_loads(question->kind == QUESTION_SERVICES ? names : registered, 0, NULL);
    json_t *answer = json_array(), *service;
    size_t i;

    (void)ctx;
    (void)err;
    assert_false(needed);
    assert_string_equal(question->namespace, "");
    if (answers == NULL)
        answers = json_array();
    json_array_foreach(all, i, service)
    {
        const char *name = json_string_value(json_object_get(service, "ServiceName"));

        if (question->kind == QUESTION_SERVICES || text_equal(name, question->name))
            assert_int_equal(json_array_append(answer, service), 0);
    }
    json_decref(all);
    assert_int_equal(json_array_append_new(answers, answer), 0);
    return answer;
}

static const json_t *no_services(void *ctx, const struct spec_question *question, bool needed,
                                 struct err *err)
{
    (void)ctx;
    (void)question;
    (void)needed;
    (void)err_set(err, ERR_REFUSED, "nobody knows");
    return NULL;
}

/* The text that TEMPLATE renders, or the error; free it. */
static char *render(const char *text, bool strict)
{
    const struct template_world world = {.find = find,
                                         .read = read_file,
                                         .ask = services,
                                         .now_unix_ns = 1700000000000000000,
                                         .strict = strict};
    struct template *template;
    struct err err = {0};
    char *made = NULL;
    size_t length;

    if (template_parse(text, strlen(text), "", "", true, &template, &err) != 0)
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
    /* Services: the ids are in order, tags too, and the choice is that of Nomad 2.0.5. */
    {"{{ range nomadServices }}{{ .Name }}{{ .Tags }} {{ end }}", "db[main] web[a b z] "},
    {"{{ range nomadServices \"@eu\" }}{{ .Name }}{{ end }}", "dbweb"},
    {"{{ range nomadService \"web\" }}{{ .Address }}:{{ .Port }}{{ .Tags }} {{ end }}",
     "10.0.0.1:20001[a b] 10.0.0.2:20002[a z] 10.0.0.3:20003[] "},
    {"{{ with nomadService \"db@eu\" }}{{ with index . 0 }}{{ .ID }} {{ .Name }} {{ .Node }} "
     "{{ .Datacenter }} {{ .JobID }} {{ .AllocID }}{{ end }}{{ end }}",
     "_nomad-task-d-group-g-db-http db n dc1 j d"},
    {"{{ range nomadService \"b.web\" }}{{ .AllocID }}{{ end }}", "a"},
    {"{{ range nomadService \"none\" }}x{{ else }}none{{ end }}", "none"},
    {"{{ range nomadService \"web\" }}{{ if .Tags | contains \"z\" }}{{ .Tags | join \",\" }}"
     "{{ end }}{{ end }}",
     "a,z"},
    {"{{ range nomadService 2 \"k1\" \"web\" }}{{ .AllocID }}{{ end }}", "ab"},
    {"{{ range nomadService 9 \"k2\" \"web\" }}{{ .AllocID }}{{ end }}", "bca"},
    {"{{ range nomadService 1 \"alloc\" \"web\" }}{{ .AllocID }}{{ end }}", "c"},
    {"{{ range nomadService 2 \"k3\" \"z.web@eu\" }}{{ .AllocID }}{{ end }}", "b"},
    {"{{ range nomadService 0 \"k\" \"web\" }}x{{ end }}", ""},
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
    {"{{ \"\\u00e9\\x41\\101\\U0001F600\\xc3\\xa9\" }}", "éAA😀é"},
    {"{{ range 3 }}{{ . }}{{ end }}{{ range $i := 2 }}[{{ $i }}]{{ end }}"
     "{{ range -1 }}x{{ else }}none{{ end }}",
     "012[0][1]none"},
    /* As fmt prints it, by which these and some hundred others were compared. */
    {"{{ printf \"%05d|%+d|% d|%-5d|%*d|%.3d|%.0d|\" -42 42 42 7 5 42 7 0 }}",
     "-0042|+42| 42|7    |   42|007||"},
    {"{{ printf \"%x|%X|%#x|%o|%O|%b|%#b|%08b\" -255 255 255 8 8 5 5 5 }}",
     "-ff|FF|0xff|10|0o10|101|0b101|00000101"},
    {"{{ printf \"%d\" -9223372036854775808 }}", "-9223372036854775808"},
    {"{{ printf \"%08.2f|%+.1f|%e|%g|%.3g|%v|%.2v|%G\" -2.345 2.55 1234.5 1234567.0 1234.5 1e21 "
     "3.14159 1e-7 }}",
     "-0002.35|+2.5|1.234500e+03|1.234567e+06|1.23e+03|1e+21|3.1|1E-07"},
    {"{{ printf \"%.3s|%5.2s|%5s|%-4s|%05s|%.2q\" \"abcdef\" \"abc\" \"äö\" \"é\" \"ab\" \"abc\" "
     "}}",
     "abc|   ab|   äö|é   |000ab|\"ab\""},
    {"{{ printf \"%q|%#v|%x|%X|% x|%.1x\" \"\\a\\t\\\"é\" \"a\" \"hi\" \"hi\" \"hi\" \"hi\" }}",
     "\"\\a\\t\\\"é\"|\"a\"|6869|6869|68 69|68"},
    {"{{ printf \"%[2]*[1]s|\" \"a\" 3 }}", "  a|"},
    {"{{ printf \"%[2]s %[1]s\" \"a\" \"b\" }}", "b a"},
    {"{{ printf \"%v %s %5t|%5%\" (parseJSON `[1,\"a\",null]`) (parseJSON `[\"a\",\"b\"]`) true }}",
     "[1 a <nil>] [a b]  true|%"},
    {"{{ print 1 2 \"a\" }}{{ println 1 \"b\" }}", "1 2a1 b\n"},
    {"{{ 5 | subtract 2 }} {{ 7 | divide 2 }} {{ modulo 4 7 }} {{ multiply 2 1.5 }} {{ maximum 1 "
     "2 }}",
     "3 3 3 3 2"},
    {"{{ parseInt \"12\" | add 1 }} {{ parseBool \"true\" }} {{ parseFloat \"1.5\" }}",
     "13 true 1.5"},
    {"{{ parseJSON `{\"b\": [1, \"x\"], \"a\": null}` | toJSON }}", "{\"a\":null,\"b\":[1,\"x\"]}"},
    {"{{ parseJSON `{\"b\": [1, \"x\"], \"n\": null}` }}", "map[b:[1 x] n:<nil>]"},
    {"{{ parseJSON `{\"a\": \"<&\", \"b\": [], \"c\": [0.1, 1e21, -0]}` | toJSON }}",
     "{\"a\":\"\\u003c\\u0026\",\"b\":[],\"c\":[0.1,1e+21,-0]}"},
    {"{{ parseJSON `{\"a\": \"<\", \"b\": {\"c\": [1]}}` | toUnescapedJSONPretty }}",
     "{\n  \"a\": \"<\",\n  \"b\": {\n    \"c\": [\n      1\n    ]\n  }\n}"},
    {"{{ toUnescapedJSON \"<\\a\\n\" }}", "\"<\\u0007\\n\""},
    /* As consul-template says it, by which these were compared. */
    {"{{ toTitle \"don't 1x a.b a_b éa ß x-y\" }}", "Don't 1X A.b A_b Éa Ss X-Y"},
    {"{{ toUpper \"é\" }}{{ toLower \"É\" }}{{ trim \"é\" \"éxé\" }}", "Ééx"},
    {"{{ range split \"\" \" aé \" }}[{{ . }}]{{ end }}{{ range split \",\" \",a,\" }}[{{ . }}]{{ "
     "end }}",
     "[a][é][][a][]"},
    {"{{ replaceAll \"\" \"-\" \"aé\" }}", "-a-é-"},
    {"{{ \"a\\n\\nb\\n\" | indent 1 }}|{{ indent 2 \"\" }}", " a\n\n b\n|"},
    {"{{ regexReplaceAll \"(a)(?P<n>b)?\" \"<$1${n}$$$3$0>\" \"abxa\" }}", "<ab$ab>x<a$a>"},
    {"{{ regexReplaceAll \"x*\" \"-\" \"éxb\" }}{{ regexReplaceAll \"a\" \"$1x\" \"ba\" }}",
     "-é-b-b"},
    {"{{ $l := parseJSON `[\"a\", 1]` }}{{ $b := parseJSON `[\"a\", \"b\"]` }}"
     "{{ containsAll $b $l }} {{ containsAny $b $l }} {{ containsNone $b $l }} "
     "{{ containsNotAll $b $l }} {{ in $l 1 }} {{ in $l 1.0 }}",
     "false true false true false true"},
    {"{{ base64URLEncode \"~~~?\" }} {{ base64Encode \"~~~?\" }} {{ base64URLDecode \"fn5-Pw==\" "
     "}}",
     "fn5-Pw== fn5+Pw== ~~~?"},
    {"{{ hmacSHA256Hex \"msg\" \"key\" }}",
     "2d93cbc1be167bcb1637a4a23cbff01a7878f0c50ee833954ea5221bb1b8c628"},
    {"{{ timestamp \"Monday, 02-Jan-06 15:04:05 MST\" }}", "Tuesday, 14-Nov-23 22:13:20 UTC"},
    {"{{ timestamp \"_2 2 01 1 002 __2 2006_2006 3:4:5pm PM .000 ,999 Z07:00 -0700 Janet\" }}",
     "14 14 11 11 318 318 2023_2023 10:13:20pm PM .000  Z +0000 Janet"},
    {"{{ timestamp \"unix\" | parseInt | add 1 }}", "1700000001"},
    {"{{ parseJSON `{\"a/b/c\": 1, \"a/d\": {\"x\": 2}, \"a/d/y\": 3, \"e/\": 4}` | explodeMap | "
     "toJSON }}",
     "{\"a\":{\"b\":{\"c\":1},\"d\":{\"x\":2,\"y\":3}},\"e\":{}}"},
    {"{{ $m := parseJSON `{\"a\": {\"x\": 1}, \"a/y\": 2}` }}{{ explodeMap $m | toJSON }}{{ $m.a | "
     "toJSON }}",
     "{\"a\":{\"x\":1,\"y\":2}}{\"x\":1}"},
    {"{{ $a := parseJSON `{\"m\": {\"x\": 1, \"e\": 0}, \"s\": \"\", \"t\": 1}` }}"
     "{{ $b := parseJSON `{\"m\": {\"x\": 2, \"e\": 3}, \"s\": \"z\", \"t\": null, \"u\": []}` }}"
     "{{ mergeMap $a $b | toJSON }}{{ mergeMapWithOverride $a $b | toJSON }}{{ $a.m.x }}",
     "{\"m\":{\"e\":3,\"x\":1},\"s\":\"z\",\"t\":1,\"u\":[]}"
     "{\"m\":{\"e\":3,\"x\":2},\"s\":\"z\",\"t\":null,\"u\":[]}1"},
    {"{{ splitToMap \",\" \"=\" \" a=1,b,c=d=e, \" | toJSON }}", "{\"a\":\"1\",\"c\":\"d=e\"}"},
    {"{{ parseBool \"T\" }}{{ parseBool \"False\" }}{{ parseBool \"\" }}", "truefalsefalse"},
    {"{{ define \"t\" }}<{{ . }}>{{ end }}{{ executeTemplate \"t\" \"x\" | toUpper }}", "<X>"},
    {"{{ html \"a<'b\" }} {{ urlquery \"a b/é\" }} {{ slice \"abcd\" 1 3 }}"
     "{{ slice (split \",\" \"a,b\") 1 }}",
     "a&lt;&#39;b a+b%2F%C3%A9 bc[b]"},
    /* YAML, of version 1.1. */
    {"{{ parseYAML \"a: &x {b: [1, 0x10, 1.5, yes, ~, '5', 2001-01-02]}\\nc: {<<: *x, d: e}\" | "
     "toJSON }}",
     "{\"a\":{\"b\":[1,16,1.5,true,null,\"5\",\"2001-01-02\"]},"
     "\"c\":{\"b\":[1,16,1.5,true,null,\"5\",\"2001-01-02\"],\"d\":\"e\"}}"},
    {"{{ parseYAML \"\" }}{{ parseYAML \"# x\" }}{{ parseYAML \"a\\n---\\nb: [\" }}{{ parseYAML "
     "\"!!float 5\" }}",
     "map[]<no value>a5"},
    {"{{ parseYAML \"- !!binary aGk=\\n- !!str 5\\n- |\\n  x\\n- !foo y\" }}", "[hi 5 x\n y]"},
    {"{{ parseJSON `{\"b10\": \"yes\", \"b9\": [1, [null], {}], \"m\": {\"k\": \"x\\ny\"}, \"t\": "
     "\"1:30:59\", \"n\": 1e6, \"s\": \"a: b\", \"d\": \"2001-01-02\"}` | toYAML }}",
     "b9:\n- 1\n- - null\n- {}\nb10: \"yes\"\nd: \"2001-01-02\"\nm:\n  k: |-\n    x\n    y\n"
     "\"n\": 1e+06\ns: 'a: b'\nt: \"1:30:59\""},
    /* What is declared, as Go sees it. */
    {"{{ if false }}{{ $x = 1 }}{{ end }}{{ if false }}{{ $y := 1 }}{{ else }}a{{ end }}", "a"},
    {"{{ with $x := 1 }}{{ $x }}{{ end }}{{ range loop 3 }}{{ if eq . 1 }}{{ break }}{{ end }}{{ . "
     "}}{{ end }}",
     "10"},
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
    {"{{ range true }}{{ end }}", "range can't iterate"},
    {"{{ range \"ab\" }}{{ end }}", "range can't iterate"},
    {"{{ range $i, $e := 5 }}{{ end }}", "range over a number has one variable"},
    {"{{ \"\\x0\" }}", "unknown escape \\x"},
    {"{{ \"\\x00\" }}", "unknown escape \\x"},
    {"{{ \"\\ud800\" }}", "unknown escape \\u"},
    {"{{ \"\\400\" }}", "unknown escape \\4"},
    {"{{ \"\\8\" }}", "unknown escape \\8"},
    {"{{ \"\\u00e", "unknown escape \\u"},
    {"{{ \"\\xff\" }}", "a constant is no UTF-8"},
    {"{{ printf \"%d\" \"a\" }}", "do not fit"},
    {"{{ printf \"%s\" 5 }}", "do not fit"},
    {"{{ printf \"%s %s\" \"a\" }}", "do not fit"},
    {"{{ printf \"%s\" \"a\" \"b\" }}", "do not fit"},
    {"{{ printf \"%[3]s\" \"a\" \"b\" }}", "do not fit"},
    {"{{ printf \"%1001d\" 1 }}", "do not fit"},
    {"{{ printf \"%99999999999999999999d\" 1 }}", "do not fit"},
    {"{{ printf \"%.61f\" 1.0 }}", "do not fit"},
    {"{{ printf \"%*d\" \"a\" 1 }}", "do not fit"},
    {"{{ printf \"%z\" 1 }}", "do not fit"},
    {"{{ printf \"%\" }}", "do not fit"},
    {"{{ printf \"%[\" 1 }}", "do not fit"},
    {"{{ printf \"%5v\" (parseJSON `[1]`) }}", "do not fit"},
    {"{{ parseJSON \"{\" }}", "invalid JSON"},
    {"{{ index (split \",\" \"a\") 3 }}", "index out of range"},
    {"{{ regexReplaceAll \"(\" \"\" \"\" }}", "regexReplaceAll: "},
    {"{{ containsAll \"a\" \"ab\" }}", "a list is needed"},
    {"{{ base64URLDecode \"a+==\" }}", "no base64"},
    {"{{ base64Decode \"aG k=\" }}", "no base64"},
    {"{{ parseJSON `{\"a\": 1, \"a/b\": 2}` | explodeMap }}", "not a map: \"a/b\" already has"},
    {"{{ mergeMap (parseJSON `{}`) 1 }}", "maps are needed"},
    {"{{ slice \"abc\" 2 1 }}", "the end is before the begin"},
    {"{{ slice \"abc\" 4 }}", "index out of range"},
    {"{{ executeTemplate \"t\" }}", "template \"t\" not defined"},
    {"{{ parseYAML \"a: [\" }}", "parseYAML: did not find"},
    {"{{ parseYAML \"a: b: c\" }}", "mapping values are not allowed in this context"},
    {"{{ parseYAML \"x: 1\\n80: y\" }}", "a key that is no text (put it in quotes) at line 2"},
    {"{{ parseYAML \"*x\" }}", "an unknown anchor"},
    {"{{ parseYAML \"&x [*x]\" }}", "contains itself"},
    {"{{ parseYAML \"<<: 5\" }}", "something is merged that is no map"},
    {"{{ parseYAML \"!!int x\" }}", "not what its tag says"},
    {"{{ parseYAML \".inf\" }}", "not finite"},
    {"{{ parseYAML \"18446744073709551615\" }}", "too large"},
    {"{{ parseYAML \"!!binary x\" }}", "no base64"},
    {"{{ nomadService \"web@us\" }}", "nomadService: no path to region \"us\""},
    {"{{ nomadServices \"@us\" }}", "nomadServices: no path to region \"us\""},
    {"{{ nomadServices \"web\" }}", "nomadServices: invalid format: \"web\""},
    {"{{ nomadService \"\" }}", "nomadService: invalid format: \"\""},
    {"{{ nomadService \"a b\" }}", "nomadService: invalid format: \"a b\""},
    {"{{ nomadService \".web\" }}", "invalid format: \".web\""},
    {"{{ nomadService \"web@\" }}", "invalid format: \"web@\""},
    {"{{ nomadService \"a@b@c\" }}", "invalid format: \"a@b@c\""},
    {"{{ nomadService 1 }}", "nomadService: "},
    {"{{ nomadService 1 \"web\" }}", "expected arguments <service> or <count> <key> <service>"},
    {"{{ nomadService \"1\" \"k\" \"web\" }}", "expected integer for <count> argument"},
    {"{{ nomadService 1 \"\" \"web\" }}", "choose parameter must be in form"},
    {"{{ nomadService -1 \"k\" \"web\" }}", "choose parameter must be in form"},
    {"{{ range loop 9999 }}{{ range nomadService 9 \"k\" \"web\" }}{{ end }}{{ end }}",
     "more than 1000000 steps"},
    {"{{ (index (nomadService \"none\") 0).Port }}", "index"},
    /* What is not here says so by name. */
    {"{{ service \"web\" }}", "function \"service\" needs Consul, which this node has not"},
    {"{{ services }}", "function \"services\" needs Consul, which this node has not"},
    {"{{ nomadVar \"a\" }}", "function \"nomadVar\" needs a server, which this node has not"},
    {"{{ nomadVarListSafe }}", "function \"nomadVarListSafe\" needs a server"},
    {"{{ toTOML 1 }}", "function \"toTOML\" is not supported: use toJSON or toYAML"},
    {"{{ scratch }}", "function \"scratch\" is not supported"},
    {"{{ sprig_upper \"a\" }}", "function \"sprig_upper\" is not supported: those of sprig"},
    {"{{ byTag 1 }}", "function \"byTag\" needs Consul, which this node has not"},
    {"{{ plugin \"x\" }}", "it runs programs on the host"},
    /* Bounds. */
    {"{{ parseYAML \"a: &a [x,x,x,x,x,x,x,x,x,x]\\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\\nc: &c "
     "[*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\\ne: &e "
     "[*d,*d,*d,*d,*d,*d,"
     "*d,*d,*d,*d]\\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\" }}",
     "more than 1000000 steps"},
    {"{{ $x := \"aaaa\" }}{{ range loop 18 }}{{ $x = print $x $x }}{{ end }}"
     "{{ range loop 9999 }}{{ $y := sha256Hex $x }}{{ end }}",
     "more than 1000000 steps"},
    {"{{ $x := \"[\" }}{{ range loop 7 }}{{ $x = print $x $x }}{{ end }}{{ parseYAML $x }}",
     "nested too deep"},
    {"{{ $x := \"a/\" }}{{ range loop 7 }}{{ $x = print $x $x }}{{ end }}"
     "{{ parseJSON (printf `{%q: 1}` (print $x \"b\")) | explodeMap }}",
     "explodeMap: nested more than 63 deep"},
    {"{{ $x := \"aaaaaaaaaaaaaaaa\" }}{{ range loop 10 }}{{ $x = print $x $x }}{{ end }}"
     "{{ regexReplaceAll \"a\" $x $x }}",
     "longer than 1048576 bytes"},
    {"{{ $x := \"11111111111\" }}{{ range loop 16 }}{{ $x = print $x $x }}{{ end }}"
     "{{ timestamp $x }}",
     "longer than 1048576 bytes"},
    {"{{ $x := \"<<<<<<<<<<<<<<<<\" }}{{ range loop 15 }}{{ $x = print $x $x }}{{ end }}{{ toJSON "
     "$x }}",
     "longer than 1048576 bytes"},
    {"{{ $x := \"\\a\\a\\a\\a\\a\\a\\a\\a\" }}{{ range loop 16 }}{{ $x = print $x $x }}{{ end }}{{ "
     "toYAML $x }}",
     "longer than 1048576 bytes"},
    {"{{ define \"t\" }}{{ template \"t\" }}{{ end }}{{ template \"t\" }}", "deep"},
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

/* What can never work is refused before anything runs: in Go's words. */
static const struct {
    const char *text, *error;
} unread[] = {
    {"\n\n{{ $x }}", "template: line 3: undefined variable \"$x\""},
    {"{{ if false }}{{ $x }}{{ end }}", "template: line 1: undefined variable \"$x\""},
    {"{{ if true }}{{ $x := 1 }}{{ end }}{{ $x }}", "undefined variable \"$x\""},
    {"{{ range $i, $v := loop 2 }}{{ end }}{{ $i }}", "undefined variable \"$i\""},
    {"{{ $x := 1 }}{{ define \"t\" }}{{ $x }}{{ end }}", "undefined variable \"$x\""},
    {"{{ $x := 1 }}{{ block \"t\" $x }}{{ $x }}{{ end }}", "undefined variable \"$x\""},
    {"{{ print ($x) }}", "undefined variable \"$x\""},
    {"a\n{{ break }}", "template: line 2: {{break}} outside {{range}}"},
    {"{{ if false }}{{ continue }}{{ end }}", "template: line 1: {{continue}} outside {{range}}"},
    {"{{ range loop 2 }}{{ end }}{{ break }}", "{{break}} outside {{range}}"},
    {"{{ range loop 2 }}{{ else }}{{ break }}{{ end }}", "{{break}} outside {{range}}"},
    {"{{ range loop 2 }}{{ block \"t\" . }}{{ break }}{{ end }}{{ end }}",
     "{{break}} outside {{range}}"},
    {"{{ define \"t\" }}{{ continue }}{{ end }}", "{{continue}} outside {{range}}"},
};

static void test_what_can_never_work_is_not_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(unread); i++) {
        struct template *template = NULL;
        struct err err = {0};
        int code =
            template_parse(unread[i].text, strlen(unread[i].text), "", "", true, &template, &err);

        if (code != ERR_INVALID || strstr(err.text, unread[i].error) == NULL)
            fail_msg("%s is read, or says \"%s\", not \"%s\"", unread[i].text, err.text,
                     unread[i].error);
    }
}

static void test_why_nobody_tells_of_services_is_told(void **state)
{
    static const char text[] = "{{ nomadServices }}";
    const struct template_world world = {.find = find, .read = read_file, .ask = no_services};
    struct template *template = NULL;
    struct err err = {0};
    char *made = NULL;
    size_t length;

    (void)state;
    assert_int_equal(template_parse(text, strlen(text), "", "", true, &template, &err), 0);
    assert_int_equal(template_render(template, &world, &made, &length, &err), ERR_REFUSED);
    assert_string_equal(err.text, "template: line 1: nomadServices: nobody knows");
    template_free(template);
}

static void test_variables_have_a_bound(void **state)
{
    char *many = calloc(1, 600 * 13 + 1);

    (void)state;
    for (int i = 0; i < 600; i++)
        memcpy(many + 13 * i, "{{ $a := 1 }}", 13);
    char *made = render(many, false);
    assert_non_null(strstr(made, "more than 512 variables"));
    free(made);
    free(many);
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
    const struct template_world world = {.find = find, .read = read_file, .ask = services};
    struct template *template;
    struct err err = {0};
    size_t length;
    char *made;

    (void)state;
    assert_int_equal(template_parse("{{ [[ 1 ]]", 10, "[[", "]]", true, &template, &err), 0);
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
        cmocka_unit_test(test_what_can_never_work_is_not_read),
        cmocka_unit_test(test_why_nobody_tells_of_services_is_told),
        cmocka_unit_test(test_variables_have_a_bound),
        cmocka_unit_test(test_missing_keys_are_errors_where_they_shall_be),
        cmocka_unit_test(test_nesting_has_a_bound),
        cmocka_unit_test(test_delimiters_are_those_that_were_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
