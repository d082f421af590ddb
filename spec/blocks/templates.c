/*
 * The template blocks of a task: what is not given, and what is wrong.
 *
 * Follows nomad v2.0.5 api/tasks.go Template and nomad/structs/structs.go Template.Validate.  The
 * text of a template is read when a job is registered, so that what it cannot ask for is refused
 * then: by whoever reads the job's file, or the parser beside the daemon (jobspec_note_templates).
 */
#include "spec/blocks/blocks.h"

#include "spec/json.h"
#include "spec/names.h"
#include "spec/template.h"

#include <stdlib.h>
#include <string.h>

static const json_int_t SPLAY_NS = 5000000000;  /* api/tasks.go Template.Canonicalize */
static const json_int_t SCRIPT_NS = 5000000000; /* ChangeScript.Canonicalize */

static void set_missing(json_t *object, const char *field, json_t *value)
{
    if (json_object_get(object, field) == NULL)
        check(json_object_set(object, field, value) == 0);
    json_decref(value);
}

static void default_template(json_t *template)
{
    static const struct {
        const char *field, *text;
    } texts[] = {
        {"SourcePath", ""},  {"DestPath", ""},     {"EmbeddedTmpl", ""},      {"Perms", "0644"},
        {"LeftDelim", "{{"}, {"RightDelim", "}}"}, {"ChangeMode", "restart"}, {"ChangeSignal", ""},
    };

    for (size_t i = 0; i < COUNT_OF(texts); i++)
        set_missing(template, texts[i].field, json_string(texts[i].text));
    set_missing(template, "Envvars", json_false());
    set_missing(template, "ErrMissingKey", json_false());
    set_missing(template, "Once", json_false());
    set_missing(template, "Splay", json_integer(SPLAY_NS));
    json_t *script = json_object_get(template, "ChangeScript");
    if (json_is_object(script)) {
        set_missing(script, "Command", json_string(""));
        set_missing(script, "Args", json_array());
        set_missing(script, "Timeout", json_integer(SCRIPT_NS));
        set_missing(script, "FailOnError", json_false());
    }
}

void jobspec_default_templates(json_t *task)
{
    json_t *template;
    size_t i;

    json_array_foreach(jobspec_list(task, "Templates"), i, template) default_template(template);
}

bool spec_mode(const char *text, uint32_t *ret_mode)
{
    char *end;
    unsigned long mode = strtoul(text, &end, 8);

    if (*text < '0' || *text > '7' || *end != '\0' || mode > 0777)
        return false;
    *ret_mode = (uint32_t)mode;
    return true;
}

static void check_path(struct jobspec_work *work, const json_t *template, const char *field,
                       const char *what)
{
    const char *path = text_of(template, field);

    if (strlen(path) >= SPEC_PLACE_SIZE)
        jobspec_complain(work, template, field, NULL,
                         "the %s of a template is longer than %d bytes", what, SPEC_PLACE_SIZE - 1);
    else if (spec_leaves_alloc(path))
        jobspec_complain(
            work, template, field,
            "write a path in the task's directory, as in \"local/file\", or \"../alloc/file\"",
            "the %s of a template escapes the directory of the alloc: \"%.80s\"", what, path);
}

static int read_text(const json_t *template, struct err *err)
{
    const char *data = text_of(template, "EmbeddedTmpl");
    struct template *read;
    int code = template_parse(data, strlen(data), text_of(template, "LeftDelim"),
                              text_of(template, "RightDelim"), true, &read, err);

    if (code == 0)
        template_free(read);
    return code;
}

static void check_text(struct jobspec_work *work, const json_t *template)
{
    struct err err = {0};

    if (read_text(template, &err) != 0)
        jobspec_complain(work, template, "EmbeddedTmpl", NULL, "%s", err.text);
}

static void note_task(const json_t *group, const json_t *task, json_t *notes)
{
    char note[HCL_ERROR_SIZE];
    const json_t *template;
    struct err err = {0};
    size_t i;

    json_array_foreach(jobspec_list(task, "Templates"), i, template)
    {
        if (json_array_size(notes) >= JOBSPEC_PROBLEMS_MAX || read_text(template, &err) == 0)
            continue;
        (void)text_format(note, sizeof(note), "group \"%.100s\", task \"%.100s\": %s",
                          text_of(group, "Name"), text_of(task, "Name"), err.text);
        text_whole(note); /* names that are cut are enough */
        json_t *value = json_string(note);
        check(json_array_append_new(notes, value != NULL ? value : json_string(err.text)) == 0);
    }
}

void jobspec_read_templates(const json_t *job, json_t *notes)
{
    const json_t *group, *task;
    size_t i, j;

    json_array_foreach(jobspec_list(job, "TaskGroups"), i, group)
    {
        json_array_foreach(jobspec_list(group, "Tasks"), j, task) note_task(group, task, notes);
    }
}

bool spec_change(const char *text, enum spec_change *ret_change)
{
    static const struct jobspec_word modes[] = {{"", SPEC_CHANGE_RESTART},
                                                {"restart", SPEC_CHANGE_RESTART},
                                                {"noop", SPEC_CHANGE_NOOP},
                                                {"script", SPEC_CHANGE_SCRIPT},
                                                {"signal", SPEC_CHANGE_SIGNAL}};
    int change;

    if (!jobspec_word_value(modes, COUNT_OF(modes), text, &change))
        return false;
    *ret_change = (enum spec_change)change;
    return true;
}

static void check_script(struct jobspec_work *work, const json_t *template)
{
    const json_t *script = json_object_get(template, "ChangeScript");

    if (!json_is_object(script))
        jobspec_complain(work, template, "ChangeScript",
                         "write change_script { command = \"/bin/...\" }",
                         "must specify change script configuration value when change mode is "
                         "script");
    else if (*text_of(script, "Command") == '\0')
        jobspec_complain(work, template, "ChangeScript", NULL,
                         "must specify script path value when change mode is script");
    else if (strlen(text_of(script, "Command")) >= SPEC_PLACE_SIZE)
        jobspec_complain(work, template, "ChangeScript", NULL,
                         "the command of a change script is longer than %d bytes",
                         SPEC_PLACE_SIZE - 1);
    else if (json_array_size(json_object_get(script, "Args")) >= SPEC_SCRIPT_ARGUMENTS_MAX)
        jobspec_complain(work, template, "ChangeScript", NULL,
                         "a change script has at most %d arguments", SPEC_SCRIPT_ARGUMENTS_MAX - 1);
}

static void check_change(struct jobspec_work *work, const json_t *template)
{
    const char *mode = text_of(template, "ChangeMode"), *signal = text_of(template, "ChangeSignal");
    enum spec_change change;

    if (!spec_change(mode, &change)) {
        jobspec_complain(work, template, "ChangeMode", NULL,
                         "Invalid change mode \"%.40s\". Must be one of the following: noop, "
                         "signal, script, restart",
                         mode);
        return;
    }
    if (change == SPEC_CHANGE_SCRIPT)
        check_script(work, template);
    if (change == SPEC_CHANGE_SIGNAL && *signal == '\0')
        jobspec_complain(work, template, "ChangeSignal", "for example \"SIGHUP\"",
                         "Must specify signal value when change mode is signal");
    else if (change == SPEC_CHANGE_SIGNAL && !spec_is_signal(signal))
        jobspec_complain(work, template, "ChangeSignal", "for example \"SIGHUP\"",
                         "unknown signal \"%.40s\"", signal);
    if (change == SPEC_CHANGE_SIGNAL && json_is_true(json_object_get(template, "Envvars")))
        jobspec_complain(work, template, "ChangeMode", NULL,
                         "cannot use signals with env var templates");
}

static json_int_t length_of(const json_t *wait, const char *field)
{
    return json_integer_value(json_object_get(wait, field));
}

static void check_wait(struct jobspec_work *work, const json_t *template)
{
    const json_t *wait = json_object_get(template, "Wait");

    if (json_is_object(wait) && json_object_get(wait, "Max") != NULL &&
        length_of(wait, "Min") > length_of(wait, "Max"))
        jobspec_complain(work, template, "Wait", NULL, "wait min is greater than wait max");
}

static bool is_missing(const struct jobspec_work *work, const json_t *template, const char *field)
{
    return *text_of(template, field) == '\0' && !jobspec_was_told(work, template, field);
}

static void check_template(struct jobspec_work *work, const json_t *template)
{
    uint32_t mode;

    if (is_missing(work, template, "SourcePath") && *text_of(template, "EmbeddedTmpl") == '\0' &&
        !jobspec_was_given(work, template, "EmbeddedTmpl"))
        jobspec_complain(work, template, "", "write data = \"...\"",
                         "Must specify a source path or have an embedded template");
    if (*text_of(template, "SourcePath") != '\0' && *text_of(template, "EmbeddedTmpl") != '\0')
        jobspec_complain(work, template, "SourcePath", NULL,
                         "a template has a source or data, and not both");
    if (is_missing(work, template, "DestPath"))
        jobspec_complain(work, template, "", "write destination = \"local/file\"",
                         "Must specify a destination for the template");
    check_path(work, template, "DestPath", "destination");
    check_path(work, template, "SourcePath", "source");
    if (!spec_mode(text_of(template, "Perms"), &mode))
        jobspec_complain(work, template, "Perms", "as in \"0644\", at most \"0777\"",
                         "Failed to parse \"%.40s\" as octal", text_of(template, "Perms"));
    check_change(work, template);
    check_wait(work, template);
    if (work->reads_templates)
        check_text(work, template);
}

void jobspec_check_templates(struct jobspec_work *work, const json_t *task)
{
    const json_t *templates = jobspec_list(task, "Templates"), *template, *other;
    size_t i, j, scripts = 0;

    if (json_array_size(templates) > SPEC_TEMPLATES_MAX) {
        jobspec_complain(work, task, "Templates", NULL, "%zu templates, there may be %d",
                         json_array_size(templates), SPEC_TEMPLATES_MAX);
        return;
    }
    json_array_foreach(templates, i, template)
    {
        check_template(work, template);
        scripts += text_equal(text_of(template, "ChangeMode"), "script");
        json_array_foreach(templates, j, other)
        {
            if (j < i && *text_of(other, "DestPath") != '\0' &&
                text_equal(text_of(template, "DestPath"), text_of(other, "DestPath")))
                jobspec_complain(work, template, "DestPath", NULL,
                                 "two templates have the destination \"%.80s\"",
                                 text_of(other, "DestPath"));
        }
    }
    if (scripts > SPEC_SCRIPTS_MAX)
        jobspec_complain(work, task, "Templates", NULL,
                         "%zu templates with a change script, there may be %d", scripts,
                         SPEC_SCRIPTS_MAX);
}
