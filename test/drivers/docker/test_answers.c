/* What is read of an Engine: output in frames, how a container is, whose it is, and what went
 * wrong. */
#include "test/drivers/room.h"

#include "drivers/docker/docker.h"

#include <jansson.h>

static const struct driver_key key = {
    .alloc = ALLOC, .task = "t", .driver = "docker", .generation = 3};

/* --- frames --- */

/* What was found, as "<stream><bytes>" for each whole frame, in TO; false: something strange. */
static bool read_frames(const char *bytes, size_t length, size_t step, char to[256])
{
    struct frames frames = {0};
    enum frames_found found = FRAMES_WAIT;
    size_t used = 0;
    bool begins = true;

    for (size_t at = 0; at < length; at += step) {
        const char *next = bytes + at;
        size_t left = length - at < step ? length - at : step;
        struct frame_part part;

        while ((found = frames_next(&frames, &next, &left, &part)) == FRAMES_PART) {
            if (begins)
                to[used++] = (char)('0' + part.stream);
            memcpy(to + used, part.bytes, part.length);
            used += part.length;
            begins = part.is_last;
        }
        if (found == FRAMES_STRANGE)
            break;
        assert_int_equal(left, 0);
    }
    to[used] = '\0';
    return found != FRAMES_STRANGE;
}

static void frames_are_the_same_however_they_come(void **state)
{
    static const char bytes[] = "\1\0\0\0\0\0\0\3one\2\0\0\0\0\0\0\4two\n\0\0\0\0\0\0\0\1x";
    char found[256];

    (void)state;
    for (size_t step = 1; step < sizeof(bytes); step++) {
        assert_true(read_frames(bytes, sizeof(bytes) - 1, step, found));
        assert_string_equal(found, "0one1two\n0x");
    }
}

static void what_are_no_frames_is_said(void **state)
{
    static const char stream[] = "\3\0\0\0\0\0\0\1x", empty[] = "\1\0\0\0\0\0\0\0x",
                      large[] = "\1\0\0\0\0\x20\0\0x";
    char found[256];

    (void)state;
    assert_false(read_frames(stream, sizeof(stream) - 1, 99, found));
    assert_false(read_frames(empty, sizeof(empty) - 1, 99, found));
    assert_false(read_frames(large, sizeof(large) - 1, 99, found));
    assert_string_equal(found, "");
}

/* --- how a container is --- */

static bool read_state(const char *text, struct container_state *ret_state)
{
    struct http_reply reply = {.status = 200, .body = text, .body_length = strlen(text)};

    return engine_read_state(&reply, "0a1b2c3d", &key, ret_state);
}

#define LABELS(node, generation)                                                                   \
    "{\"cairn.node\":\"" node "\",\"cairn.alloc_id\":\"" ALLOC                                     \
    "\",\"cairn.task_name\":\"t\",\"cairn.generation\":\"" generation "\"}"
#define STATE(labels, running, started)                                                            \
    "{\"Id\":\"abc\",\"Config\":{\"Labels\":" labels ",\"StopSignal\":\"SIGQUIT\"},"               \
    "\"State\":{\"Running\":" running ",\"Pid\":17,\"ExitCode\":3,\"StartedAt\":\"" started        \
    "\",\"FinishedAt\":\"2026-11-28T06:14:38.5Z\",\"Error\":\"a\\nb\"}}"
#define NEVER "0001-01-01T00:00:00Z"

static void a_container_is_as_the_engine_says(void **state)
{
    struct container_state found;

    (void)state;
    assert_true(read_state(STATE(LABELS("0a1b2c3d", "3"), "true", "2026-11-28T06:14:38Z"), &found));
    assert_true(found.ours && found.runs && found.was_started);
    assert_int_equal(found.pid, 17);
    assert_int_equal(found.code, 3);
    assert_int_equal(found.stop_signal, SIGQUIT);
    assert_true(found.finished_unix_ns % 1000000000 == 500000000);
    assert_null(strchr(found.error, '\n'));
    assert_true(read_state(STATE(LABELS("0a1b2c3d", "3"), "false", NEVER), &found));
    assert_false(found.runs || found.was_started);
}

static void a_container_of_another_key_is_not_ours(void **state)
{
    struct container_state found;

    (void)state;
    assert_true(read_state(STATE(LABELS("0a1b2c3d", "4"), "true", NEVER), &found));
    assert_false(found.ours);
    assert_true(read_state(STATE(LABELS("ffffffff", "3"), "true", NEVER), &found));
    assert_false(found.ours);
    assert_true(read_state(STATE("null", "true", NEVER), &found));
    assert_false(found.ours);
}

static void an_answer_by_half_is_none(void **state)
{
    static const char whole[] = STATE(LABELS("0a1b2c3d", "3"), "true", "2026-11-28T06:14:38Z");
    static const char *const lacking[] = {
        "\"Running\":false,\"Pid\":0", "\"Running\":false,\"ExitCode\":0",
        "\"Pid\":0,\"ExitCode\":0", "\"Running\":\"no\",\"Pid\":0,\"ExitCode\":0"};
    char part[sizeof(whole)];
    struct container_state found;

    (void)state;
    for (size_t length = 0; length < sizeof(whole) - 1; length++) {
        memcpy(part, whole, length);
        part[length] = '\0';
        assert_false(read_state(part, &found));
    }
    assert_false(read_state("[]", &found));
    assert_false(read_state("{\"Id\":\"abc\",\"State\":{}}", &found));
    for (size_t i = 0; i < COUNT_OF(lacking); i++) {
        assert_true(text_format(part, sizeof(part), "{\"Id\":\"abc\",\"Config\":{},\"State\":{%s}}",
                                lacking[i]));
        assert_false(read_state(part, &found));
    }
}

/* --- names, times, faults --- */

static void a_key_is_found_by_its_labels_and_named_by_itself(void **state)
{
    struct driver_key strange = key, found;
    char name[CONTAINER_NAME_SIZE], sharer[SHARER_NAME_SIZE];

    (void)state;
    (void)text_copy(strange.task, sizeof(strange.task), "-a b/c");
    container_name(&strange, name);
    assert_string_equal(name, "ta_b_c-" ALLOC ".3");
    sharer_name(&key, sharer);
    assert_string_equal(sharer, "t-" ALLOC ".3.net");
    json_t *labels = sharer_labels("0a1b2c3d", &key);
    assert_true(container_key(labels, "0a1b2c3d", &found));
    assert_true(key_equal(&found, &key) && labels_are_sharers(labels));
    json_decref(labels);
    labels = container_labels("0a1b2c3d", &key);
    assert_false(labels_are_sharers(labels));
    assert_false(container_key(labels, "0a1b2c3e", &found));
    json_decref(labels);
}

static void times_are_read_to_the_nanosecond(void **state)
{
    static const struct {
        const char *text;
        int64_t unix_ns;
    } times[] = {{"1970-01-01T00:00:01Z", 1000000000},
                 {"1970-01-01T00:00:01.000000002Z", 1000000002},
                 {"1970-01-01T01:00:01.5+01:00", 1500000000},
                 {NEVER, 0},
                 {"1970-01-01T00:00:01", -1},
                 {"1970-01-01T00:00:01Zx", -1},
                 {"2263-01-01T00:00:00Z", -1},
                 {"yesterday", -1},
                 {"", -1}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        int64_t found = -1;
        bool good = engine_time(times[i].text, strlen(times[i].text), &found);

        assert_int_equal(good, times[i].unix_ns >= 0);
        assert_true(found == times[i].unix_ns);
    }
}

static void what_went_wrong_is_said_in_the_engines_words(void **state)
{
    static const struct {
        int status, code;
        bool again;
        const char *body, *text;
    } faults[] = {
        {404, ERR_GONE, false, "{\"message\":\"no such\\u0007 thing\"}", "no such? thing"},
        {409, ERR_EXISTS, false, "{\"message\":\"in use\"}", "in use"},
        {400, ERR_REFUSED, false, "", "the Docker Engine answered with status 400"},
        {500, ERR_IO, true, "{\"message\":7}", "the Docker Engine answered with status 500"}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        struct http_reply reply = {.status = faults[i].status,
                                   .body = faults[i].body,
                                   .body_length = strlen(faults[i].body)};
        struct err err = {0};

        assert_int_equal(engine_fault(&reply, &err), faults[i].code);
        assert_string_equal(err.text, faults[i].text);
        assert_int_equal(err.recoverable, faults[i].again);
    }
}

static void what_comes_of_a_load_is_in_any_of_its_lines(void **state)
{
    static const struct {
        const char *answer;
        int code;
        const char *text;
    } answers[] = {
        {"HTTP/1.0 200 OK\r\nA: b\r\n\r\n{\"stream\":\"Loaded\"}\r\n", 0, ""},
        {"HTTP/1.0 200 OK\r\n\r\n", 0, ""},
        {"HTTP/1.0 200 OK\r\n\r\n{}\n{\"error\":\"no\\u0007\"}\n{}", ERR_REFUSED, "no?"},
        {"HTTP/1.0 500 No\r\n\r\n{\"message\":\"out of space\"}", ERR_IO, "out of space"},
        {"HTTP/1.0 200 OK\r\nA: b", ERR_IO, "the Docker Engine's answer to an image is none"},
        {"SSH-2.0\r\n\r\n", ERR_IO, "the Docker Engine's answer to an image is none"},
        {"", ERR_IO, "the Docker Engine's answer to an image is none"}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        struct err err = {0};

        assert_int_equal(load_fault(answers[i].answer, strlen(answers[i].answer), &err),
                         answers[i].code);
        assert_string_equal(err.text, answers[i].text);
    }
}

static void who_knows_credentials_is_asked_for_a_registry(void **state)
{
    static const char *const nothing[] = {"",
                                          "[]",
                                          "{\"Username\":\"a\"}",
                                          "{\"Username\":\"\",\"Secret\":\"\"}",
                                          "{\"Username\":7,\"Secret\":\"x\"}",
                                          "not found"};
    char registry[IMAGE_NAME_SIZE];

    (void)state;
    helper_registry("busybox:1", registry);
    assert_string_equal(registry, "docker.io");
    helper_registry("docker.io/library/x", registry);
    assert_string_equal(registry, "docker.io");
    helper_registry("reg.example:5000/a/b@sha256:x", registry);
    assert_string_equal(registry, "reg.example:5000");
    for (size_t i = 0; i < COUNT_OF(nothing); i++)
        assert_null(helper_header(nothing[i], "reg.example"));
    char *header = helper_header("{\"Username\":\"a\",\"Secret\":\"b\"}", "r");
    assert_string_equal(header, "X-Registry-Auth: eyJ1c2VybmFtZSI6ImEiLCJwYXNzd29yZCI6ImIiLCJzZXJ2"
                                "ZXJhZGRyZXNzIjoiciJ9");
    free(header);
}

/* Those that Nomad 2.0.6 asks for. */
static void time_of_processors_is_a_part_of_all_of_them(void **state)
{
    (void)state;
    assert_true(cpu_quota_us(500, 5000, 2, 100000) == 20000);
    assert_true(cpu_quota_us(100, 6784, 2, 100000) == 2948);
    assert_true(cpu_quota_us(1, 6784, 4, 1000) == 0);
    assert_true(cpu_quota_us(6784, 6784, 2, 50000) == 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_the_same_however_they_come),
        cmocka_unit_test(what_are_no_frames_is_said),
        cmocka_unit_test(a_container_is_as_the_engine_says),
        cmocka_unit_test(a_container_of_another_key_is_not_ours),
        cmocka_unit_test(an_answer_by_half_is_none),
        cmocka_unit_test(a_key_is_found_by_its_labels_and_named_by_itself),
        cmocka_unit_test(times_are_read_to_the_nanosecond),
        cmocka_unit_test(what_went_wrong_is_said_in_the_engines_words),
        cmocka_unit_test(what_comes_of_a_load_is_in_any_of_its_lines),
        cmocka_unit_test(who_knows_credentials_is_asked_for_a_registry),
        cmocka_unit_test(time_of_processors_is_a_part_of_all_of_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
