/* What templates ask the servers: by how many questions, as whom, and what becomes of the answers.
 */
#include "test/server/nomad/small_session.h"

#include "base/text.h"

static const struct spec_asker web = {
    .namespace = "default", .job = "j", .group = "g", .task = "web", .token = "token of web"};
static const struct spec_asker other = {
    .namespace = "default", .job = "j", .group = "g", .task = "other", .token = "token of other"};
static const struct spec_asker nobody = {
    .namespace = "default", .job = "j", .group = "g", .task = "web", .token = ""};

static struct spec_question about(enum spec_question_kind kind, const char *name,
                                  const struct spec_asker *asker)
{
    return (struct spec_question){
        .kind = kind, .namespace = "default", .name = name, .asker = asker};
}

static void count_news(void *ctx)
{
    ++*(unsigned *)ctx;
}

static json_t *variable(int index, const char *value)
{
    return value == NULL ? json_pack("{s:i, s:n}", "Index", index, "Data")
                         : json_pack("{s:i, s:{s:s, s:{s:s}}}", "Index", index, "Data", "Path", "p",
                                     "Items", "k", value);
}

static const char *known(const void *wish)
{
    struct err err = {0};
    const char *text = nomad_known(wish, &err);

    return text == NULL ? "" : text;
}

static json_int_t number_of(const json_t *args, const char *name)
{
    return json_integer_value(json_object_get(args, name));
}

/* --- questions --- */

static void test_variable_is_asked_for_as_its_task_and_awaited(void **state)
{
    struct small_session *session = *state;
    struct spec_question question = about(QUESTION_VARIABLE, "p", &web);
    unsigned news = 0;

    run_one(session);
    void *wish = nomad_want(session->nomad, &question, count_news, &news);
    pass(session, 0);
    const struct waiting *call = waits(session, "Variables.Read");
    assert_non_null(call);
    assert_string_equal(word_of(call->args, "Path"), "p");
    assert_string_equal(word_of(call->args, "Namespace"), "default");
    assert_string_equal(word_of(call->args, "Region"), "global");
    assert_string_equal(word_of(call->args, "AuthToken"), "token of web");
    assert_int_equal(number_of(call->args, "MinQueryIndex"), 0);
    assert_int_equal(number_of(call->args, "MaxQueryTime"), 300000000000);
    assert_int_equal(call->timeout_ms, 300000 + 300000 / 16 + 15000);
    json_decref(answer(session, "Variables.Read", variable(7, "v")));
    assert_int_equal(news, 1);
    assert_string_equal(known(wish), "{\"Path\":\"p\",\"Items\":{\"k\":\"v\"}}");
    pass(session, 100);
    assert_int_equal(number_of(waits(session, "Variables.Read")->args, "MinQueryIndex"), 7);
    pass(session, 5000);
    json_decref(answer(session, "Variables.Read", variable(8, "v"))); /* the same of others */
    assert_int_equal(news, 1);
    pass(session, 100);
    json_decref(answer(session, "Variables.Read", variable(9, NULL))); /* deleted */
    assert_int_equal(news, 2);
    assert_string_equal(known(wish), "null");
    nomad_unwant(wish);
    pass(session, 600000);
    assert_null(waits(session, "Variables.Read"));
}

static void test_each_kind_is_asked_for_as_servers_have_it(void **state)
{
    struct small_session *session = *state;
    struct spec_question questions[] = {
        about(QUESTION_SERVICES, "", &web),
        about(QUESTION_SERVICE, "db", &web),
        about(QUESTION_VARIABLES, "a/", &nobody),
    };
    const void *wishes[3];
    unsigned news = 0;

    run_one(session);
    for (size_t i = 0; i < 3; i++)
        wishes[i] = nomad_want(session->nomad, &questions[i], count_news, &news);
    pass(session, 0);
    json_t *args =
        answer(session, "ServiceRegistration.List",
               json_pack("{s:i, s:[{s:s, s:[{s:s, s:[s]}]}]}", "Index", 3, "Services", "Namespace",
                         "default", "Services", "ServiceName", "db", "Tags", "t"));
    assert_string_equal(word_of(args, "AuthToken"), "token of web");
    json_decref(args);
    args = answer(session, "ServiceRegistration.GetService",
                  json_pack("{s:i, s:n}", "Index", 3, "Services"));
    assert_string_equal(word_of(args, "ServiceName"), "db");
    assert_null(json_object_get(args, "Choose"));
    json_decref(args);
    args = answer(session, "Variables.List",
                  json_pack("{s:i, s:[{s:s}]}", "Index", 3, "Data", "Path", "a/b"));
    assert_string_equal(word_of(args, "Prefix"), "a/");
    assert_string_equal(word_of(args, "AuthToken"), "s"); /* the node's own */
    json_decref(args);
    assert_string_equal(known(wishes[0]), "[{\"ServiceName\":\"db\",\"Tags\":[\"t\"]}]");
    assert_string_equal(known(wishes[1]), "[]");
    assert_string_equal(known(wishes[2]), "[{\"Path\":\"a/b\"}]");
    assert_int_equal(news, 3);
    pass(session, 2000);
    json_decref(answer(session, "ServiceRegistration.List",
                       json_pack("{s:i, s:[]}", "Index", 4, "Services")));
    assert_string_equal(known(wishes[0]), "[]");
}

static void test_one_question_serves_all_who_may_be_told_the_same(void **state)
{
    struct small_session *session = *state;
    struct spec_question variables[] = {about(QUESTION_VARIABLE, "p", &web),
                                        about(QUESTION_VARIABLE, "p", &web),
                                        about(QUESTION_VARIABLE, "p", &other)};
    struct spec_question services[] = {about(QUESTION_SERVICE, "db", &web),
                                       about(QUESTION_SERVICE, "db", &other),
                                       about(QUESTION_SERVICE, "db", &nobody)};
    void *wishes[6];
    unsigned news[6] = {0};

    run_one(session);
    for (size_t i = 0; i < 3; i++) {
        wishes[i] = nomad_want(session->nomad, &variables[i], count_news, &news[i]);
        wishes[3 + i] = nomad_want(session->nomad, &services[i], count_news, &news[3 + i]);
    }
    pass(session, 0);
    json_decref(answer(session, "Variables.Read", variable(7, "v")));
    assert_string_equal(known(wishes[0]), known(wishes[1]));
    assert_string_equal(known(wishes[2]), "");
    json_t *args = answer(session, "Variables.Read", variable(7, "w"));
    assert_string_equal(word_of(args, "AuthToken"), "token of other");
    json_decref(args);
    assert_int_equal(news[0] + news[1] + news[2], 3);
    assert_non_null(strstr(known(wishes[2]), "\"w\""));
    for (size_t i = 0; i < 2; i++)
        json_decref(answer(session, "ServiceRegistration.GetService",
                           json_pack("{s:i, s:[]}", "Index", 3, "Services")));
    assert_null(waits(session, "ServiceRegistration.GetService"));
    assert_int_equal(news[3] + news[4] + news[5], 3);
    /* Who asks goes, and the next one asks for those who are left. */
    nomad_unwant(wishes[3]);
    pass(session, 2000);
    args = answer(session, "ServiceRegistration.GetService",
                  json_pack("{s:i, s:[{s:s}]}", "Index", 4, "Services", "ID", "i"));
    assert_string_equal(word_of(args, "AuthToken"), "token of other");
    json_decref(args);
    assert_int_equal(news[4], 2);
    assert_int_equal(news[3], 1);
}

/* What is not wanted any more when the answer comes is told to nobody. */
static void test_answer_that_nobody_wants_any_more_is_none(void **state)
{
    struct small_session *session = *state;
    struct spec_question question = about(QUESTION_VARIABLE, "p", &web);
    unsigned news = 0, again = 0;

    run_one(session);
    void *wish = nomad_want(session->nomad, &question, count_news, &news);
    pass(session, 0);
    nomad_unwant(wish);
    wish = nomad_want(session->nomad, &question, count_news, &again); /* another question */
    pass(session, 0);
    json_decref(answer(session, "Variables.Read", variable(7, "v")));
    assert_int_equal(news + again, 0);
    json_decref(answer(session, "Variables.Read", variable(8, "w")));
    assert_int_equal(again, 1);
    assert_non_null(strstr(known(wish), "\"w\""));
}

/* --- trouble --- */

static void test_what_is_refused_is_asked_for_again_and_then_not_waited_for(void **state)
{
    struct small_session *session = *state;
    struct spec_question question = about(QUESTION_VARIABLE, "p", &web);
    uint64_t waited_ms = 0;
    unsigned news = 0;
    struct err err = {0};

    run_one(session);
    const void *wish = nomad_want(session->nomad, &question, count_news, &news);
    pass(session, 0);
    for (int tries = 1; tries <= 13; tries++) {
        assert_int_equal(news, 0);
        fail_call(session, "Variables.Read", ERR_REFUSED, "Permission denied");
        assert_null(nomad_known(wish, &err));
        assert_int_equal(err.recoverable, tries < 13);
        for (; waits(session, "Variables.Read") == NULL; waited_ms += 50)
            pass(session, 50);
    }
    assert_string_equal(err.text, "Permission denied");
    assert_int_equal(news, 1);
    assert_in_range(waited_ms, 363000, 365000);
    json_decref(answer(session, "Variables.Read", variable(7, "v"))); /* it is allowed by now */
    assert_int_equal(news, 2);
    assert_non_null(strstr(known(wish), "\"v\""));
    assert_string_equal(session->small->said, ""); /* servers that refuse answer as they should */
}

static void test_list_of_what_may_not_be_listed_is_empty(void **state)
{
    struct small_session *session = *state;
    struct spec_question question = about(QUESTION_VARIABLES, "a", &web);
    unsigned news = 0;

    run_one(session);
    const void *wish = nomad_want(session->nomad, &question, count_news, &news);
    pass(session, 0);
    fail_call(session, "Variables.List", ERR_REFUSED, "Permission denied");
    assert_int_equal(news, 1);
    assert_string_equal(known(wish), "[]");
    pass(session, 1000);
    fail_call(session, "Variables.List", ERR_REFUSED, "Permission denied");
    assert_int_equal(news, 1);
}

static void test_what_was_told_stays_while_no_server_answers(void **state)
{
    struct small_session *session = *state;
    struct spec_question question = about(QUESTION_VARIABLE, "p", &web);
    unsigned news = 0;
    struct err err = {0};

    run_one(session);
    const void *wish = nomad_want(session->nomad, &question, count_news, &news);
    pass(session, 0);
    for (int i = 0; i < 20; i++) {
        fail_call(session, "Variables.Read", ERR_IO, "the connection is lost");
        assert_null(nomad_known(wish, &err));
        assert_true(err.recoverable); /* however long it takes */
        pass(session, 75000);
        while (waits(session, "Node.UpdateStatus") != NULL)
            json_decref(answer(session, "Node.UpdateStatus", node_reply(0)));
    }
    json_decref(answer(session, "Variables.Read", variable(7, "v")));
    pass(session, 100);
    fail_call(session, "Variables.Read", ERR_REFUSED, "No cluster leader");
    assert_non_null(strstr(known(wish), "\"v\""));
    assert_null(waits(session, "Variables.Read"));
    pass(session, 10000);
    json_decref(answer(session, "Node.UpdateStatus", node_reply(0))); /* they are back */
    const struct waiting *call = waits(session, "Variables.Read");
    assert_non_null(call);
    assert_int_equal(number_of(call->args, "MinQueryIndex"), 0); /* they may be others */
    json_decref(answer(session, "Variables.Read", variable(2, "v")));
    assert_int_equal(news, 1);
}

static void test_nothing_is_asked_before_servers_know_this_node(void **state)
{
    struct small_session *session = *state;
    struct spec_question question = about(QUESTION_VARIABLE, "p", &web);
    unsigned news = 0;

    (void)nomad_want(session->nomad, &question, count_news, &news);
    pass(session, 10);
    assert_null(waits(session, "Variables.Read"));
    run_one(session);
    assert_non_null(waits(session, "Variables.Read"));
}

static void test_answer_of_a_server_that_lags_is_asked_for_again(void **state)
{
    struct small_session *session = *state;
    struct spec_question question = about(QUESTION_VARIABLE, "p", &web);
    unsigned news = 0;

    run_one(session);
    const void *wish = nomad_want(session->nomad, &question, count_news, &news);
    pass(session, 0);
    json_decref(answer(session, "Variables.Read", variable(7, "v")));
    pass(session, 100);
    json_decref(answer(session, "Variables.Read", variable(6, "old")));
    assert_null(waits(session, "Variables.Read"));
    assert_non_null(strstr(known(wish), "\"v\""));
    pass(session, 1000);
    assert_int_equal(number_of(waits(session, "Variables.Read")->args, "MinQueryIndex"), 0);
    assert_int_equal(news, 1);
}

/* --- bounds --- */

static void test_questions_have_bounds(void **state)
{
    struct small_session *session = *state;
    static char names[1025][16];
    static struct spec_question questions[1025];
    void *wishes[1025];
    unsigned news = 0;
    struct err err = {0};

    run_one(session);
    for (size_t i = 0; i < 1025; i++) {
        assert_true(text_format(names[i], sizeof(names[i]), "p%zu", i));
        questions[i] = about(QUESTION_VARIABLE, names[i], &web);
        wishes[i] = nomad_want(session->nomad, &questions[i], count_news, &news);
    }
    pass(session, 0);
    size_t asked = 0;
    for (size_t i = 0; i < session->calls_count; i++)
        asked += text_equal(session->calls[i].method, "Variables.Read");
    assert_int_equal(asked, 32);
    assert_int_equal(number_of(waits(session, "Variables.Read")->args, "MaxQueryTime"), 5000000000);
    for (size_t i = 0; i < 1024; i++) /* each has its turn */
        json_decref(answer(session, "Variables.Read", variable(7, "v")));
    assert_int_equal(news, 1024);
    assert_non_null(strstr(known(wishes[1023]), "\"v\""));
    assert_null(nomad_known(wishes[1024], &err));
    assert_int_equal(err.code, ERR_LIMIT);
    for (size_t i = 0; i < 1025; i++)
        nomad_unwant(wishes[i]);
}

static void test_answers_have_bounds(void **state)
{
    struct small_session *session = *state;
    struct spec_question question = about(QUESTION_VARIABLE, "p", &web);
    char *text = malloc((4 << 20) + 1);
    unsigned news = 0;
    struct err err = {0};

    assert_non_null(text);
    memset(text, 'x', 4 << 20);
    text[4 << 20] = '\0';
    run_one(session);
    const void *wish = nomad_want(session->nomad, &question, count_news, &news);
    pass(session, 0);
    json_decref(answer(session, "Variables.Read", variable(7, text)));
    free(text);
    assert_null(nomad_known(wish, &err));
    assert_int_equal(err.code, ERR_LIMIT);
    assert_false(err.recoverable);
    assert_int_equal(news, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SESSION_TEST(test_variable_is_asked_for_as_its_task_and_awaited),
        SESSION_TEST(test_each_kind_is_asked_for_as_servers_have_it),
        SESSION_TEST(test_one_question_serves_all_who_may_be_told_the_same),
        SESSION_TEST(test_answer_that_nobody_wants_any_more_is_none),
        SESSION_TEST(test_what_is_refused_is_asked_for_again_and_then_not_waited_for),
        SESSION_TEST(test_list_of_what_may_not_be_listed_is_empty),
        SESSION_TEST(test_what_was_told_stays_while_no_server_answers),
        SESSION_TEST(test_nothing_is_asked_before_servers_know_this_node),
        SESSION_TEST(test_answer_of_a_server_that_lags_is_asked_for_again),
        SESSION_TEST(test_questions_have_bounds),
        SESSION_TEST(test_answers_have_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
