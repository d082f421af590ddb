/*
 * Services of jobs: what is not given is made as Nomad makes it, what an alloc offers is read back
 * from its specification, and nothing that is damaged or too much is.
 *
 * services_output.json and services_inspect.json are what nomad v2.0.6-dev makes of services.hcl:
 * `nomad job run -output`, and `nomad job inspect` after it was registered, without the identity
 * that each task gets.
 */
#include "spec/blocks/blocks.h"
#include "spec/job.h"
#include "spec/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define JOBS "test/spec/jobs/"
#define ALLOC_ID "0f3a3e5c-5f31-4a52-9f0e-0123456789ab"

static struct jobspec_problems problems;

static json_t *read_text(const char *name, const char *text)
{
    struct jobspec_source source = {.name = name, .text = text, .length = strlen(text)};
    json_t *job = NULL;

    if (jobspec_parse(&source, &job, &problems) != 0)
        fail_msg("%s", problems.items[0]);
    return job;
}

static json_t *read_file(const char *file)
{
    char path[256], text[65536];

    (void)snprintf(path, sizeof(path), JOBS "%s", file);
    FILE *stream = fopen(path, "re");
    assert_non_null(stream);
    size_t length = fread(text, 1, sizeof(text) - 1, stream);
    assert_true(length < sizeof(text) - 1);
    assert_int_equal(fclose(stream), 0);
    text[length] = '\0';
    return read_text(file, text);
}

/* A job with what its group and its task say, which is wrong: the first problem. */
static const char *problem_of(const char *of_group, const char *of_task)
{
    static char text[65536];
    struct jobspec_source source = {.name = "job", .text = text};
    json_t *job = NULL;

    assert_true(text_format(text, sizeof(text),
                            "job \"j\" {\n group \"g\" {\n network {\n port \"p\" {}\n}\n%s\n"
                            "task \"t\" {\n driver = \"raw_exec\"\n%s\n}\n}\n}\n",
                            of_group, of_task));
    source.length = strlen(text);
    assert_int_equal(jobspec_parse(&source, &job, &problems), ERR_INVALID);
    return problems.items[0];
}

static void assert_problem(const char *of_group, const char *of_task, const char *expected)
{
    const char *problem = problem_of(of_group, of_task);

    if (strstr(problem, expected) == NULL)
        fail_msg("%s, not %s", problem, expected);
}

static json_t *group_of(const json_t *job)
{
    return json_array_get(json_object_get(job, "TaskGroups"), 0);
}

static json_t *task_of(const json_t *job)
{
    return json_array_get(json_object_get(group_of(job), "Tasks"), 0);
}

/* --- what is wrong --- */

/* So many services of the group, and as many of its task, with CHECKS in each. */
static void assert_many(size_t services, size_t checks, const char *expected)
{
    static char text[2][32768];
    const char *check_text = "check {\n type = \"tcp\"\n interval = \"1s\"\n timeout = \"1s\"\n}\n";

    for (size_t i = 0; i < 2; i++) {
        text[i][0] = '\0';
        for (size_t s = 0; s < services; s++) {
            char one[128];

            (void)snprintf(one, sizeof(one),
                           "service {\n name = \"s%zu\"\n provider = \"nomad\"\n port = \"p\"\n",
                           s);
            assert_true(text_append(text[i], sizeof(text[i]), one));
            for (size_t c = 0; c < checks; c++) {
                assert_true(text_append(text[i], sizeof(text[i]), check_text));
                if (i == 1)
                    break; /* their names would be the same */
            }
            assert_true(text_append(text[i], sizeof(text[i]), "}\n"));
        }
    }
    assert_problem(text[0], text[1], expected);
}

static void test_more_than_an_alloc_may_offer_is_refused(void **state)
{
    (void)state;
    assert_many(33, 0, "66 services of the group and its tasks, there may be 64");
    assert_many(8, 8, "72 checks of the group's services and its tasks', there may be 64");
}

static void test_more_tags_than_a_service_may_have_are_refused(void **state)
{
    char text[1024] = "service {\n provider = \"nomad\"\n canary_tags = [\"a\"";

    (void)state;
    for (int i = 0; i < SPEC_TAGS_MAX; i++)
        assert_true(text_append(text, sizeof(text), ", \"b\""));
    assert_true(text_append(text, sizeof(text), "]\n}\n"));
    assert_problem(text, "", "65 canary_tags, there may be 64");
}

#define CHECK(more)                                                                                \
    "service {\n name = \"s\"\n provider = \"nomad\"\n port = \"p\"\n check {\n type = \"http\"\n" \
    "path = \"/\"\n interval = \"1s\"\n timeout = \"1s\"\n" more "\n}\n}\n"

static void test_headers_that_are_none_or_too_many_are_refused(void **state)
{
    char text[2048] = "";

    (void)state;
    assert_problem(CHECK("header = { \"X Y\" = [\"a\"] }"), "", "\"X Y\" cannot be the header");
    assert_problem(CHECK("header = { \"X:\" = [\"a\"] }"), "", "\"X:\" cannot be the header");
    assert_problem(CHECK("header = { \"\" = [\"a\"] }"), "", "\"\" cannot be the header");
    assert_problem(CHECK("header = { X = [\"a\\n\"] }"), "", "\"X\" cannot be the header");
    assert_problem(CHECK("header = { X = \"a\" }"), "", "must be a list of strings");
    assert_true(text_append(text, sizeof(text), "header = { X = [\"a\""));
    for (int i = 0; i < SPEC_CHECK_HEADERS_MAX; i++)
        assert_true(text_append(text, sizeof(text), ", \"b\""));
    assert_true(text_append(text, sizeof(text), "] }"));
    char whole[4096];
    assert_true(text_format(whole, sizeof(whole), CHECK("%s"), text));
    assert_problem(whole, "", "65 headers, there may be 64");
}

static void test_paths_are_told_from_urls(void **state)
{
    static const struct {
        const char *path, *problem; /* "": it is fine */
    } paths[] = {
        {"", "http type must have http path"},
        {"http://a/", "must have relative http path"},
        {"mailto:a", "must have relative http path"},
        {":a", "must have valid http path"},
        {"a%2", "must have valid http path"},
        {"1:a", "must have valid http path"},
        {"/a:b?c=%zz#d", ""},
        {"/${NOMAD_META_path}/x%20y", ""},
        {"health", ""},
        {"?a=http://b", ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        json_t *value =
            json_pack("{s:s, s:[{s:s, s:[{s:s, s:s}], s:[{s:s, s:s, s:[{s:s, s:s, s:s, s:s}]}]}]}",
                      "ID", "j", "TaskGroups", "Name", "g", "Tasks", "Name", "t", "Driver",
                      "raw_exec", "Services", "Provider", "nomad", "PortLabel", "80", "Checks",
                      "Type", "http", "Path", paths[i].path, "Interval", "1s", "Timeout", "1s");
        json_t *job = NULL;

        assert_non_null(value);
        int code = jobspec_from_json("job", value, &job, &problems);
        if ((code == 0) != (paths[i].problem[0] == '\0') ||
            (code != 0 && strstr(problems.items[0], paths[i].problem) == NULL))
            fail_msg("%s: %s", paths[i].path, code == 0 ? "is taken" : problems.items[0]);
        json_decref(job);
        json_decref(value);
    }
}

static void test_texts_that_are_too_long_are_refused(void **state)
{
    char name[SPEC_SERVICE_TEXT_SIZE + 1], text[1024];

    (void)state;
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    (void)snprintf(text, sizeof(text), "service {\n provider = \"nomad\"\n name = \"%s\"\n}\n",
                   name);
    assert_problem(text, "", "its name must be one line of at most 255 bytes");
    (void)snprintf(text, sizeof(text), "service {\n provider = \"nomad\"\n address = \"%s\"\n}\n",
                   name);
    assert_problem(text, "", "its address must be one line of at most 255 bytes");
    name[64] = '\0';
    (void)snprintf(text, sizeof(text), "service {\n provider = \"nomad\"\n name = \"%s\"\n}\n",
                   name);
    assert_problem(text, "", "the name of a service is letters, digits and \"-\", 63 at most");
}

static void test_names_of_services_are_labels(void **state)
{
    static const char *const bad[] = {"", "-a", "a-", "a.b", "a_b", "a b", "\xc3\xa4"};
    static const char *const good[] = {"a", "A-1", "0"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_non_null(spec_service_name_fault(bad[i]));
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_null(spec_service_name_fault(good[i]));
}

/* --- what is made of it --- */

static bool says_nothing(const json_t *value)
{
    return value == NULL || json_is_null(value) || jobspec_is_empty(value);
}

/* All of OURS, which leaves out what is nothing, is what is THEIRS. */
static void assert_same(const char *where, const json_t *ours, const json_t *theirs)
{
    json_t *value;
    const char *key;
    size_t i;

    if (says_nothing(ours) && says_nothing(theirs))
        return;
    if (json_is_array(ours) && json_is_array(theirs)) {
        assert_int_equal(json_array_size(ours), json_array_size(theirs));
        json_array_foreach(ours, i, value) assert_same(where, value, json_array_get(theirs, i));
    } else if (json_is_object(ours) && json_is_object(theirs)) {
        json_object_foreach((json_t *)(uintptr_t)ours, key, value)
            assert_same(key, value, json_object_get(theirs, key));
        json_object_foreach((json_t *)(uintptr_t)theirs, key, value)
            assert_same(key, json_object_get(ours, key), value);
    } else if (!json_equal(ours, theirs)) {
        fail_msg("%s: %s, not %s", where,
                 ours == NULL ? "nothing" : json_dumps(ours, JSON_ENCODE_ANY),
                 json_dumps(theirs, JSON_ENCODE_ANY));
    }
}

static void test_services_are_made_whole_as_nomad_makes_them(void **state)
{
    static const char *const files[] = {"services.hcl", "services_output.json",
                                        "services_inspect.json"};
    json_t *nomads = json_load_file(JOBS "services_inspect.json", 0, NULL);
    const json_t *theirs = json_object_get(nomads, "Job");

    (void)state;
    assert_non_null(theirs);
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        json_t *job = read_file(files[i]), *again = NULL;

        assert_same("group", json_object_get(group_of(job), "Services"),
                    json_object_get(group_of(theirs), "Services"));
        assert_same("task", json_object_get(task_of(job), "Services"),
                    json_object_get(task_of(theirs), "Services"));
        assert_int_equal(jobspec_from_json("again", job, &again, &problems), 0);
        assert_true(json_equal(job, again));
        json_decref(again);
        json_decref(job);
    }
    json_decref(nomads);
}

static void test_what_only_consul_acts_on_is_warned_of(void **state)
{
    json_t *job = read_file("services.hcl");
    char *warnings = jobspec_warnings(job);

    (void)state;
    assert_string_equal(warnings,
                        "1 warning(s):\n\n* group \"web\", service \"shop-web\": meta is kept and "
                        "not acted on: it is for services of Consul");
    free(warnings);
    json_decref(job);
}

static void test_names_speak_of_what_is_known(void **state)
{
    json_t *job = read_text(
        "job",
        "job \"j\" {\n name = \"n\"\n group \"g\" {\n service {\n provider = \"nomad\"\n name "
        "= \"${BASE}-${TASK}\"\n}\n service {\n provider = \"nomad\"\n name = "
        "\"${NOMAD_META_x}-${JOB}\"\n}\n task \"t\" {\n driver = \"raw_exec\"\n service {\n "
        "provider = \"nomad\"\n name = \"${BASE}\"\n}\n}\n}\n}\n");
    const json_t *services = json_object_get(group_of(job), "Services");
    const json_t *own = json_array_get(json_object_get(task_of(job), "Services"), 0);

    (void)state;
    assert_string_equal(json_string_value(json_object_get(json_array_get(services, 0), "Name")),
                        "n-g-group-group");
    assert_string_equal(json_string_value(json_object_get(json_array_get(services, 1), "Name")),
                        "${NOMAD_META_x}-n");
    assert_string_equal(json_string_value(json_object_get(own, "Name")), "n-g-t");
    json_decref(job);
}

/* --- allocs --- */

static char *alloc_text(const json_t *job, const char *deployment_id, size_t *ret_length)
{
    struct spec_port ports[] = {
        {.label = "http", .task = "", .host_ip = "127.0.0.1", .value = 20001, .to = 8080},
        {.label = "admin", .task = "", .host_ip = "127.0.0.1", .value = 20002}};
    struct jobspec_placement placement = {.group = "web",
                                          .alloc_id = ALLOC_ID,
                                          .eval_id = "",
                                          .datacenter = "dc1",
                                          .deployment_id = deployment_id,
                                          .ports = {ports, COUNT_OF(ports)}};
    struct err err = {0};
    char *text = NULL;

    if (jobspec_alloc_json(job, &placement, &text, ret_length, &err) != 0)
        fail_msg("%s", err.text);
    return text;
}

static struct alloc_spec *decode(const char *text, size_t length)
{
    struct alloc_spec *spec = NULL;
    struct err err = {0};

    if (jobspec_decode_alloc(text, length, &spec, &err) != 0)
        fail_msg("%s", err.text);
    return spec;
}

static void test_alloc_offers_what_the_job_says(void **state)
{
    json_t *job = read_file("services.hcl");
    size_t length;
    char *text = alloc_text(job, NULL, &length);
    struct alloc_spec *spec = decode(text, length);

    (void)state;
    assert_int_equal(spec->services_count, 4);
    const struct spec_service *web = &spec->services[0];
    assert_string_equal(web->task, "");
    assert_string_equal(web->name, "web");
    assert_string_equal(web->port, "http");
    assert_string_equal(web->address, "");
    assert_int_equal(web->address_mode, ADDRESS_AUTO);
    assert_int_equal(web->tags.count, 2);
    assert_string_equal(web->tags.items[1], "b");
    assert_string_equal(web->canary_tags.items[0], "c");
    assert_int_equal(web->checks_count, 2);
    const struct spec_check *health = &web->checks[0];
    assert_int_equal(health->type, CHECK_HTTP);
    assert_string_equal(health->name, "service: \"web\" check");
    assert_string_equal(health->path, "/health");
    assert_string_equal(health->task, "");
    assert_false(health->has_address_mode);
    assert_int_equal(health->interval_ms, 10000);
    assert_int_equal(health->timeout_ms, 2000);
    assert_int_equal(health->headers.count, 3);
    assert_string_equal(health->headers.items[0].key, "Host");
    assert_string_equal(health->headers.items[1].key, "X-Two");
    assert_string_equal(health->headers.items[1].value, "1");
    assert_string_equal(health->headers.items[2].value, "2");
    assert_int_equal(health->restart_limit, 5);
    assert_int_equal(health->restart_grace_ms, 30000);
    assert_false(health->ready_only);
    const struct spec_check *alive = &web->checks[1];
    assert_int_equal(alive->type, CHECK_TCP);
    assert_string_equal(alive->port, "admin");
    assert_string_equal(alive->task, "server");
    assert_int_equal(alive->restart_limit, 3);
    assert_string_equal(spec->services[1].name, "shop-web");
    assert_string_equal(spec->services[2].task, "server");
    assert_true(spec->services[2].checks[0].ready_only);
    assert_int_equal(spec->services[2].checks[0].restart_limit, 0);
    assert_string_equal(spec->services[3].name, "shop-web-server-x");
    assert_int_equal(spec->services[3].checks_count, 0);
    alloc_spec_free(spec);
    free(text);
    json_decref(job);
}

static void test_damaged_services_are_no_alloc(void **state)
{
    static const struct {
        const char *from, *to;
    } damages[] = {
        {"\"Provider\":\"nomad\"", "\"Provider\":\"etcd\""},
        {"\"AddressMode\":\"auto\"", "\"AddressMode\":\"driver\""},
        {"\"Type\":\"http\"", "\"Type\":\"ftp\""},
        {"\"Type\":\"http\"", "\"Type\":\"script\""},
        {"\"Interval\":10000000000", "\"Interval\":0"},
        {"\"Timeout\":2000000000", "\"Timeout\":-1"},
        {"\"Tags\":[\"a\",\"b\"]", "\"Tags\":[\"a\",1]"},
        {"\"Header\":{\"Host\":[\"a.example\"]", "\"Header\":{\"Host\":[null]"},
        {"\"Limit\":5", "\"Limit\":\"5\""},
    };
    json_t *job = read_file("services.hcl");
    size_t length;
    char *text = alloc_text(job, NULL, &length), damaged[16384];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(damages); i++) {
        const char *at = strstr(text, damages[i].from);
        struct alloc_spec *spec = NULL;
        struct err err = {0};

        if (at == NULL)
            fail_msg("nothing says %s", damages[i].from);
        assert_true(text_format(damaged, sizeof(damaged), "%.*s%s%s", (int)(at - text), text,
                                damages[i].to, at + strlen(damages[i].from)));
        if (jobspec_decode_alloc(damaged, strlen(damaged), &spec, &err) != ERR_CORRUPT)
            fail_msg("%s is taken", damages[i].to);
    }
    free(text);
    json_decref(job);
}

static void test_alloc_knows_whether_checks_say_that_it_is_healthy(void **state)
{
    static const struct {
        const char *health;
        bool task, manual;
    } ways[] = {{"checks", false, false}, {"task_states", true, false}, {"manual", false, true}};
    json_t *job = read_file("services.hcl");
    json_t *update = json_object_get(group_of(job), "Update");

    (void)state;
    assert_non_null(update);
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        size_t length;

        assert_int_equal(json_object_set_new(update, "HealthCheck", json_string(ways[i].health)),
                         0);
        char *text = alloc_text(job, "1f3a3e5c-5f31-4a52-9f0e-0123456789ab", &length);
        struct alloc_spec *spec = decode(text, length);
        assert_int_equal(spec->task_health, ways[i].task);
        assert_int_equal(spec->manual_health, ways[i].manual);
        alloc_spec_free(spec);
        free(text);
    }
    json_decref(job);
}

/* --- what is otherwise --- */

static const json_t *find(const json_t *list, const char *name)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        if (text_equal(json_string_value(json_object_get(item, "Name")), name))
            return item;
    }
    return NULL;
}

static void assert_told(const json_t *object, const char *list, const char *name, const char *type)
{
    const json_t *found = find(json_object_get(object, list), name);

    if (found == NULL || !text_equal(json_string_value(json_object_get(found, "Type")), type))
        fail_msg("%s is not %s", name, type);
}

static void test_services_are_told_by_name_and_port_and_their_checks_by_name(void **state)
{
    json_t *before = read_file("services.hcl"), *after = read_file("services.hcl");
    json_t *services = json_object_get(group_of(after), "Services");
    json_t *web = json_incref(json_array_get(services, 0));

    (void)state;
    (void)json_array_remove(services, 0); /* to the end */
    assert_int_equal(json_array_append_new(services, web), 0);
    json_t *diff = jobspec_diff(before, after);
    assert_int_equal(json_array_size(json_object_get(
                         json_array_get(json_object_get(diff, "TaskGroups"), 0), "Objects")),
                     0);
    json_decref(diff);

    assert_int_equal(json_object_set_new(web, "Tags", json_pack("[s]", "a")), 0);
    json_t *check_of = json_array_get(json_object_get(web, "Checks"), 0);
    assert_int_equal(json_object_set_new(check_of, "Path", json_string("/")), 0);
    diff = jobspec_diff(before, after);
    const json_t *group = json_array_get(json_object_get(diff, "TaskGroups"), 0);
    assert_int_equal(json_array_size(json_object_get(group, "Objects")), 1);
    assert_told(group, "Objects", "Service", "Edited");
    const json_t *service = find(json_object_get(group, "Objects"), "Service");
    assert_told(service, "Fields", "Name", "None");
    assert_told(service, "Objects", "Tags", "Deleted");
    assert_told(service, "Objects", "Check", "Edited");
    assert_told(find(json_object_get(service, "Objects"), "Check"), "Fields", "Path", "Edited");
    json_decref(diff);

    (void)json_array_remove(services, 0);
    diff = jobspec_diff(before, after);
    group = json_array_get(json_object_get(diff, "TaskGroups"), 0);
    assert_int_equal(json_array_size(json_object_get(group, "Objects")), 2);
    json_decref(diff);
    json_decref(before);
    json_decref(after);
}

static void test_alloc_takes_other_services_in_place(void **state)
{
    json_t *before = read_file("services.hcl"), *after = read_file("services.hcl");

    (void)state;
    (void)json_object_del(group_of(after), "Services");
    (void)json_object_del(task_of(after), "Services");
    json_t *old = jobspec_essence(before, "web"), *new = jobspec_essence(after, "web");
    assert_true(json_equal(old, new));
    assert_false(jobspec_group_equal(before, after, "web"));
    json_decref(old);
    json_decref(new);
    json_decref(before);
    json_decref(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_than_an_alloc_may_offer_is_refused),
        cmocka_unit_test(test_more_tags_than_a_service_may_have_are_refused),
        cmocka_unit_test(test_headers_that_are_none_or_too_many_are_refused),
        cmocka_unit_test(test_paths_are_told_from_urls),
        cmocka_unit_test(test_texts_that_are_too_long_are_refused),
        cmocka_unit_test(test_names_of_services_are_labels),
        cmocka_unit_test(test_services_are_made_whole_as_nomad_makes_them),
        cmocka_unit_test(test_what_only_consul_acts_on_is_warned_of),
        cmocka_unit_test(test_names_speak_of_what_is_known),
        cmocka_unit_test(test_alloc_offers_what_the_job_says),
        cmocka_unit_test(test_damaged_services_are_no_alloc),
        cmocka_unit_test(test_alloc_knows_whether_checks_say_that_it_is_healthy),
        cmocka_unit_test(test_services_are_told_by_name_and_port_and_their_checks_by_name),
        cmocka_unit_test(test_alloc_takes_other_services_in_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
