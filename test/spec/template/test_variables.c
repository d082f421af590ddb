/* Variables of servers in templates: what they are asked for, and what they look like. */
#include "base/base.h"
#include "spec/template.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What the servers have, and what was asked for. */
static json_t *known;
static char asked[1024];
static unsigned times_asked;

static const char *find(void *ctx, const char *name, size_t length)
{
    (void)ctx;
    return length == 11 && memcmp(name, "node.region", length) == 0 ? "eu" : NULL;
}

static int no_file(void *ctx, const char *path, char **ret_text, size_t *ret_length,
                   struct err *err)
{
    (void)ctx;
    (void)path;
    (void)ret_text;
    (void)ret_length;
    return err_set(err, ERR_GONE, "there is none");
}

static const json_t *ask(void *ctx, const struct spec_question *question, bool needed,
                         struct err *err)
{
    static const char *const kinds[] = {"services", "service", "variable", "variables"};
    char key[700];

    (void)ctx;
    assert_true(text_format(key, sizeof(key), "%s %s@%s%s", kinds[question->kind], question->name,
                            question->namespace, needed ? "!" : ""));
    assert_true(text_append(asked, sizeof(asked), *asked == '\0' ? "" : ", "));
    assert_true(text_append(asked, sizeof(asked), key));
    times_asked++;
    const json_t *answer = json_object_get(known, key);
    if (answer == NULL)
        (void)err_set(err, ERR_AGAIN, "not yet");
    return answer;
}

/* The text that TEMPLATE renders, or the error; free it. */
static char *render(const char *text, bool strict, int *ret_code)
{
    const struct template_world world = {
        .find = find, .read = no_file, .ask = ask, .strict = strict};
    struct template *template;
    struct err err = {0};
    char *made = NULL;
    size_t length;

    asked[0] = '\0';
    *ret_code = template_parse(text, strlen(text), "", "", false, &template, &err);
    if (*ret_code != 0)
        return strdup(err.text);
    *ret_code = template_render(template, &world, &made, &length, &err);
    template_free(template);
    return *ret_code == 0 ? made : strdup(err.text);
}

#define TIMES                                                                                      \
    "\"CreateIndex\": 7, \"ModifyIndex\": 9, \"CreateTime\": 1665770712341000000, "                \
    "\"ModifyTime\": "                                                                             \
    "1665770713000000000"

static int open_servers(void **state)
{
    (void)state;
    known = json_loads(
        "{\"variable a/b@!\": {\"Namespace\": \"default\", \"Path\": \"a/b\", " TIMES
        ", \"Items\": {\"user\": \"me\", \"pass\": \"x y\", \"Keys\": \"k\"}},"
        " \"variable a/b@\": {\"Namespace\": \"default\", \"Path\": \"a/b\", \"Items\": {\"u\": "
        "\"\"}},"
        " \"variable none@\": null,"
        " \"variable a@other!\": {\"Namespace\": \"other\", \"Path\": \"a\", \"Items\": {\"n\": "
        "\"1\"}},"
        " \"variable odd@!\": {\"Path\": \"odd\", \"Items\": {\"n\": {\"$bytes\": \"/w==\"}}},"
        " \"variables a@\": [{\"Namespace\": \"default\", \"Path\": \"a/b\", " TIMES "},"
        " {\"Namespace\": \"default\", \"Path\": \"a/c\", \"ModifyIndex\": 4}],"
        " \"variables a@!\": [{\"Namespace\": \"default\", \"Path\": \"a/b\", " TIMES "}],"
        " \"variables @\": [], \"variables @*\": [{\"Namespace\": \"n\", \"Path\": \"p\"}]}",
        0, NULL);
    assert_non_null(known);
    return 0;
}

static int close_servers(void **state)
{
    (void)state;
    json_decref(known);
    return 0;
}

/* As consul-template v0.42 in a client of Nomad renders them. */
static const struct {
    const char *text, *made;
} rows[] = {
    {"{{ with nomadVar \"a/b\" }}{{ .user }}:{{ .pass }}{{ end }}", "me:x y"},
    {"{{ (nomadVar \"a/b\").user.Value }} {{ (nomadVar \"a/b\").user.Key }}", "me user"},
    {"{{ range $k, $v := nomadVar \"a/b\" }}{{ $k }}={{ $v }} {{ end }}",
     "Keys=k pass=x y user=me "},
    {"{{ range nomadVar \"a/b\" }}{{ .Key }}={{ .Value }};{{ end }}", "Keys=k;pass=x y;user=me;"},
    {"{{ (nomadVar \"a/b\").Keys }}{{ (nomadVar \"a/b\").Values }}", "[Keys pass user][k x y me]"},
    {"{{ range (nomadVar \"a/b\").Tuples }}{{ .K }}={{ .V }};{{ end }}",
     "Keys=k;pass=x y;user=me;"},
    {"{{ with nomadVar \"a/b\" }}{{ .Parent.Path }}@{{ .Parent.Namespace }} {{ .Parent.ModifyIndex "
     "}}"
     "{{ end }}",
     "a/b@default 9"},
    {"{{ with nomadVar \"a/b\" }}{{ .user.Parent.Items.pass }} {{ .user.Metadata.CreateIndex }}{{ "
     "end }}",
     "x y 7"},
    {"{{ with nomadVar \"a/b\" }}{{ .Metadata }} {{ .Metadata.CreateTime }} {{ .Parent.ModifyTime "
     "}}"
     "{{ end }}",
     "a/b 2022-10-14 18:05:12.341 +0000 UTC 2022-10-14 18:05:13 +0000 UTC"},
    {"{{ (nomadVar \"a/b\").ItemsMap | toJSON }}",
     "{\"Keys\":\"k\",\"pass\":\"x y\",\"user\":\"me\"}"},
    {"{{ nomadVar \"a/b\" | toJSON }}", "{\"Keys\":\"k\",\"pass\":\"x y\",\"user\":\"me\"}"},
    {"{{ $i := nomadVar \"a/b\" }}{{ with $i }}{{ $i.user }}{{ index . \"pass\" }}{{ len . }}{{ "
     "end }}",
     "mex y3"},
    {"{{ nomadVar \" /a/b/ \" | len }}{{ (nomadVar \"a@other\").n }}{{ (nomadVar \"a@other.eu\").n "
     "}}",
     "311"},
    {"{{ nomadVar \"\" | len }}{{ nomadVarExists \"\" }}", "0false"},
    {"{{ with nomadVar \"a/b\" }}{{ .missing }}{{ end }}", "<no value>"},
    {"{{ nomadVarExists \"a/b\" }} {{ nomadVarExists \"none\" }}", "true false"},
    {"{{ if nomadVarExists \"none\" }}{{ with nomadVar \"none\" }}x{{ end }}{{ else }}no{{ end }}",
     "no"},
    {"{{ range nomadVarList \"a\" }}{{ . }} {{ .Path }} {{ .Namespace }} {{ .ModifyIndex }};{{ end "
     "}}",
     "a/b a/b default 9;a/c a/c default 4;"},
    {"{{ range nomadVarListSafe \"/a\" }}{{ .CreateTime }}{{ end }}",
     "2022-10-14 18:05:12.341 +0000 UTC"},
    {"{{ range nomadVarList }}x{{ else }}none{{ end }}{{ nomadVarList \"//\" | len }}", "none0"},
    {"{{ range nomadVarList \"@*\" }}{{ .Namespace }}/{{ .Path }}{{ end }}", "n/p"},
};

static void test_variables_are_what_they_are_in_nomads_templates(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int code;
        char *made = render(rows[i].text, false, &code);

        if (code != 0 || !text_equal(made, rows[i].made))
            fail_msg("%s renders \"%s\", not \"%s\"", rows[i].text, made, rows[i].made);
        free(made);
    }
}

static const struct {
    const char *text, *error;
} refused[] = {
    {"{{ nomadVar \"@n\" }}", "nomadVar: invalid format: \"@n\""},
    {"{{ nomadVar \"/\" }}", "nomadVar: invalid format"},
    {"{{ nomadVar \"a@\" }}", "nomadVar: invalid format"},
    {"{{ nomadVar \"a@*\" }}", "nomadVar: invalid format"},
    {"{{ nomadVar \"a@n m\" }}", "nomadVar: invalid format"},
    {"{{ nomadVar \"a@n.us\" }}", "nomadVar: no path to region \"us\""},
    {"{{ nomadVarExists \"a@b@c\" }}", "nomadVarExists: invalid format"},
    {"{{ nomadVarList \"a@n.\" }}", "nomadVarList: invalid format"},
    {"{{ nomadVar 1 }}", "nomadVar: wrong type of argument"},
    {"{{ nomadVar }}", "nomadVar takes 1 argument"},
    {"{{ nomadVarList \"a\" \"b\" }}", "nomadVarList takes at most 1 argument"},
    {"{{ nomadVar \"odd\" }}", "nomadVar: an item of the variable is no UTF-8"},
    {"{{ (nomadVar \"a/b\").user.Nothing }}", "can't evaluate field Nothing"},
};

static void test_what_names_no_variable_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        int code;
        char *made = render(refused[i].text, false, &code);

        if (code != ERR_INVALID || strstr(made, refused[i].error) == NULL)
            fail_msg("%s says \"%s\", not \"%s\"", refused[i].text, made, refused[i].error);
        free(made);
    }
}

static void assert_lacks(const char *text, const char *questions)
{
    int code;
    char *made = render(text, true, &code);

    if (code != ERR_AGAIN || !text_equal(asked, questions))
        fail_msg("%s asks for \"%s\": %s", text, asked, made);
    free(made);
}

/* Also where what is rendered without it makes no sense. */
static void test_what_is_not_known_keeps_a_template_from_being_rendered(void **state)
{
    (void)state;
    assert_lacks("{{ with nomadVar \"x\" }}{{ .a }}{{ end }}{{ nomadService \"web\" }}",
                 "variable x@!, service web@");
    assert_lacks("{{ (nomadVar \"x\").a }}", "variable x@!");
    assert_lacks("{{ nomadVarListSafe }}{{ nomadVarExists \"y\" }}", "variables @!, variable y@");
    assert_lacks("{{ nomadServices }}", "services @");
}

static void test_keys_that_are_missing_are_errors_where_they_shall_be(void **state)
{
    int code;
    char *made = render("{{ (nomadVar \"a/b\").nothing }}", true, &code);

    (void)state;
    assert_int_equal(code, ERR_INVALID);
    assert_string_equal(made, "template: line 1: map has no entry for key \"nothing\"");
    free(made);
}

/* What a template says of its trouble goes to logs and events. */
static void test_no_error_shows_what_an_item_holds(void **state)
{
    static const char *const texts[] = {
        "{{ mustEnv (nomadVar \"a/b\").pass }}",
        "{{ file (nomadVar \"a/b\").pass }}",
        "{{ nomadService (nomadVar \"a/b\").pass }}",
        "{{ executeTemplate (nomadVar \"a/b\").pass }}",
        ("{{ nomadVar (nomadVar \"a/b\").pass }}{{ nomadVar (print (nomadVar \"a/b\").pass \"@\") "
         "}}"),
        "{{ parseInt (nomadVar \"a/b\").pass }}",
        "{{ parseJSON (nomadVar \"a/b\").pass }}",
        "{{ parseYAML (print \"*\" (nomadVar \"a/b\").pass) }}",
        "{{ range (nomadVar \"a/b\").Values }}{{ mustEnv . }}{{ end }}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        int code;
        char *made = render(texts[i], false, &code);

        if (code == 0 || strstr(made, "x y") != NULL || strstr(made, "\"k\"") != NULL)
            fail_msg("%s says \"%s\"", texts[i], made);
        free(made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variables_are_what_they_are_in_nomads_templates),
        cmocka_unit_test(test_what_names_no_variable_is_refused),
        cmocka_unit_test(test_what_is_not_known_keeps_a_template_from_being_rendered),
        cmocka_unit_test(test_keys_that_are_missing_are_errors_where_they_shall_be),
        cmocka_unit_test(test_no_error_shows_what_an_item_holds),
    };

    return cmocka_run_group_tests(tests, open_servers, close_servers);
}
