/* msgpack: what Go writes is read, what is written is what Go reads, and nobody who sends bytes
 * gets more out of them than an error. */
#include "io/rpc/msgpack.h"
#include "test/io/scratch.h"

enum { OBJECT_MAX = 1 << 16 };

struct row {
    const char *bytes; /* in hexadecimal digits */
    const char *json;
};

static size_t from_hex(const char *digits, uint8_t *to)
{
    size_t length = 0;

    for (unsigned value; sscanf(digits, "%2x", &value) == 1; digits += 2)
        to[length++] = (uint8_t)value;
    return length;
}

static json_t *from_text(const char *text)
{
    json_error_t error;
    json_t *value = json_loads(text, JSON_DECODE_ANY, &error);

    if (value == NULL)
        fail_msg("%s: %s", text, error.text);
    return value;
}

/* Takes VALUE. */
static void assert_is(json_t *value, const char *text, const char *what)
{
    json_t *wanted = from_text(text);
    char *got = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

    if (!json_equal(value, wanted))
        fail_msg("%s is %s, not %s", what, got, text);
    free(got);
    json_decref(wanted);
    json_decref(value);
}

/* Reads one object from LENGTH bytes; ERR_*. */
static int read_bytes(const void *bytes, size_t length, json_t **ret_object, struct err *err)
{
    struct msgpack_reader *reader = msgpack_reader_new(OBJECT_MAX);

    assert_int_equal(msgpack_reader_add(reader, bytes, length), 0);
    int code = msgpack_reader_next(reader, ret_object, err);
    if (code != 0 && code != ERR_AGAIN) {
        struct err again = {0};
        json_t *nothing;

        assert_int_equal(msgpack_reader_next(reader, &nothing, &again), code);
    }
    assert_true(implies(code == 0, msgpack_reader_is_empty(reader)));
    msgpack_reader_free(reader);
    return code;
}

static int read_hex(const char *digits, json_t **ret_object, struct err *err)
{
    uint8_t bytes[256];

    return read_bytes(bytes, from_hex(digits, bytes), ret_object, err);
}

/* --- unhappy --- */

static void test_what_is_no_msgpack_is_refused(void **state)
{
    static const char *const wrong[] = {
        "c1",           /* no such kind */
        "d40100",       /* extensions: of one byte */
        "c7010500",     /* of a length */
        "d6ff00000000", /* what others take for a time */
        "8101a16180",   /* a number for a name, and what follows */
        "81c001",       /* nothing for a name */
        "81900180",     /* a list for a name */
        "92a1618101c0", /* deep inside */
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct err err = {0};
        json_t *object = NULL;

        if (read_hex(wrong[i], &object, &err) != ERR_CORRUPT || err.code != ERR_CORRUPT)
            fail_msg("%s is taken", wrong[i]);
    }
}

static void test_what_promises_too_much_is_refused_at_once(void **state)
{
    static const char *const wrong[] = {
        "ddffffffff",             /* a list of four thousand million */
        "dfffffffff",             /* a map */
        "df80000000",             /* twice as many as that are none in 32 bits */
        "dd00004001",             /* one more than a fourth of the bytes */
        "92dd00002000dd00002000", /* the sum of two */
        "dbffffffff61",           /* a text */
        "c6ffffffff61",
        "db00010001", /* one byte longer than an object may be */
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct err err = {0};
        json_t *object = NULL;

        if (read_hex(wrong[i], &object, &err) != ERR_LIMIT || err.code != ERR_LIMIT)
            fail_msg("%s is taken", wrong[i]);
    }
}

static void test_an_object_that_is_too_long_as_a_whole_is_refused(void **state)
{
    uint8_t bytes[OBJECT_MAX / 8 + 3] = {0xda, OBJECT_MAX / 8 >> 8, OBJECT_MAX / 8 & 0xff};
    struct msgpack_reader *reader = msgpack_reader_new(OBJECT_MAX);
    json_t *object = NULL;
    struct err err = {0};
    int code = ERR_AGAIN;
    unsigned count = 0;
    (void)state;

    memset(bytes + 3, 'x', sizeof(bytes) - 3);
    assert_int_equal(msgpack_reader_add(reader, "\x9f", 1), 0);
    while (code == ERR_AGAIN && count++ < 15) {
        assert_int_equal(msgpack_reader_add(reader, bytes, sizeof(bytes)), 0);
        code = msgpack_reader_next(reader, &object, &err);
    }
    assert_int_equal(code, ERR_LIMIT);
    assert_int_equal(count, 8);
    msgpack_reader_free(reader);
}

static void test_an_object_is_as_deep_as_it_may_be_and_no_deeper(void **state)
{
    uint8_t bytes[MSGPACK_DEPTH_MAX + 2];
    struct buffer written = {0};
    json_t *object = NULL;
    struct err err = {0};
    (void)state;

    memset(bytes, 0x91, sizeof(bytes));
    bytes[MSGPACK_DEPTH_MAX - 1] = 0x90;
    assert_int_equal(read_bytes(bytes, MSGPACK_DEPTH_MAX, &object, &err), 0);
    assert_int_equal(msgpack_write(&written, OBJECT_MAX, object), 0);
    assert_int_equal(buffer_length(&written), MSGPACK_DEPTH_MAX);
    assert_memory_equal(buffer_text(&written), bytes, MSGPACK_DEPTH_MAX);
    json_t *deeper = json_pack("[o]", object);
    assert_int_equal(msgpack_write(&written, OBJECT_MAX, deeper), ERR_LIMIT);
    json_decref(deeper);
    buffer_close(&written);
    bytes[MSGPACK_DEPTH_MAX - 1] = 0x91;
    bytes[MSGPACK_DEPTH_MAX] = 0x90;
    assert_int_equal(read_bytes(bytes, MSGPACK_DEPTH_MAX + 1, &object, &err), ERR_LIMIT);
}

static void test_half_an_object_waits_and_is_forgotten_with_its_reader(void **state)
{
    static const char *const halves[] = {"82a161", "82a16182", "82a16191",     "9392",   "da",
                                         "da0005", "a36162",   "81a16193a162", "cb0000", "d3"};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(halves); i++) {
        struct err err = {0};
        json_t *object = NULL;

        assert_int_equal(read_hex(halves[i], &object, &err), ERR_AGAIN);
        assert_int_equal(err.code, 0);
    }
}

static void test_nobody_adds_for_ever(void **state)
{
    static uint8_t bytes[OBJECT_MAX];
    struct msgpack_reader *reader = msgpack_reader_new(OBJECT_MAX);
    unsigned count = 0;
    (void)state;

    while (msgpack_reader_add(reader, bytes, sizeof(bytes)) == 0)
        assert_true(++count < 1000);
    assert_true(count > 1);
    msgpack_reader_free(reader);
}

static void test_what_cannot_be_written_is_told(void **state)
{
    struct buffer written = {0};
    json_t *value = from_text("[\"twenty bytes of text\", 1, {\"a\": \"b\"}]");
    (void)state;

    for (size_t max = 0; max < 28; max++) {
        assert_int_equal(msgpack_write(&written, max, value), ERR_LIMIT);
        buffer_close(&written);
    }
    assert_int_equal(msgpack_write(&written, 28, value), 0);
    assert_int_equal(buffer_length(&written), 28);
    buffer_close(&written);
    json_decref(value);
}

/* --- happy --- */

static void test_all_forms_are_read(void **state)
{
    static const struct row rows[] = {
        {"c0", "null"},
        {"c2", "false"},
        {"c3", "true"},
        {"00", "0"},
        {"7f", "127"},
        {"ff", "-1"},
        {"e0", "-32"},
        {"ccff", "255"},
        {"cdffff", "65535"},
        {"ceffffffff", "4294967295"},
        {"cf7fffffffffffffff", "9223372036854775807"},
        {"cfffffffffffffffff", "18446744073709551615.0"},
        {"d080", "-128"},
        {"d18000", "-32768"},
        {"d280000000", "-2147483648"},
        {"d38000000000000000", "-9223372036854775808"},
        {"d300000003a0e654b7", "15584351415"},
        {"ca3fc00000", "1.5"},
        {"ca40000000", "2"},
        {"cb3ff8000000000000", "1.5"},
        {"cb40f86a0000000000", "100000"},             /* a size that came through JSON */
        {"cb4340000000000000", "9007199254740992.0"}, /* 2^53 */
        {"cb433fffffffffffff", "9007199254740991"},
        {"cbc340000000000000", "-9007199254740992.0"},
        {"cb8000000000000000", "0"},
        {"cb7ff0000000000000", "null"}, /* what JSON has no words for */
        {"cb7ff8000000000000", "null"},
        {"a0", "\"\""},
        {"a3616263", "\"abc\""},
        {"d903616263", "\"abc\""},
        {"da0003616263", "\"abc\""},
        {"db00000003616263", "\"abc\""},
        {"c403616263", "\"abc\""},
        {"c50003616263", "\"abc\""},
        {"c600000003616263", "\"abc\""},
        {"c400", "\"\""},
        {"a2c3a4", "\"\xc3\xa4\""},
        {"a2c3c3", "{\"$bytes\": \"w8M=\"}"},
        {"c40100", "{\"$bytes\": \"AA==\"}"},
        {"90", "[]"},
        {"9201c0", "[1, null]"},
        {"dc000101", "[1]"},
        {"dd0000000101", "[1]"},
        {"80", "{}"},
        {"82a16101a16202", "{\"a\": 1, \"b\": 2}"},
        {"de0001a16190", "{\"a\": []}"},
        {"df00000001c4016180", "{\"a\": {}}"},
        {"81a0a0", "{\"\": \"\"}"},
        {"82a16101a16102", "{\"a\": 2}"},
        {"81a1ff01", "{\"bytes:/w==\": 1}"}, /* whoever has made such a name is not heard less */
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct err err = {0};
        json_t *object = NULL;

        if (read_hex(rows[i].bytes, &object, &err) != 0)
            fail_msg("%s: %s", rows[i].bytes, err.text);
        assert_is(object, rows[i].json, rows[i].bytes);
    }
}

static void test_times_are_times(void **state)
{
    static const struct row rows[] = {
        {"af01000000000000000000000000ffff", "{\"$time\": null}"},
        {"af010000000e7791f70000000000ffff", "{\"$time\": 0}"},
        {"af010000000ed868d2a6075bcd15ffff", "{\"$time\": 1624693670123456789}"},
        {"af010000000ed868d2a6075bcd15003c", "{\"$time\": 1624693670123456789}"}, /* elsewhere */
        {"b0020000000ed868d2a6075bcd15003c1e", "{\"$time\": 1624693670123456789}"},
        {"c40f010000000ed868d2a6075bcd15ffff", "{\"$time\": 1624693670123456789}"},
        {"af010000000e7791f6ff3b9ac9ffffff", "{\"$time\": -1}"},
        /* a second has no more nanoseconds; other versions; other lengths; 292 years from 1970 */
        {"af010000000e7791f7003b9aca00ffff", NULL},
        {"af020000000e7791f70000000000ffff", NULL},
        {"b0010000000e7791f70000000000ffff00", NULL},
        {"ae010000000e7791f70000000000ff", NULL},
        {"af01000000ffffffffff00000000ffff", NULL},
        {"af017fffffffffffffff00000000ffff", NULL},
        {"af01800000000000000000000000ffff", NULL},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct err err = {0};
        json_t *object = NULL;
        int code = read_hex(rows[i].bytes, &object, &err);

        if (code != 0)
            fail_msg("%s: %s", rows[i].bytes, err.text);
        if (rows[i].json != NULL)
            assert_is(object, rows[i].json, rows[i].bytes);
        else if (json_object_get(object, "$bytes") == NULL)
            fail_msg("%s is a time", rows[i].bytes);
        else
            json_decref(object);
    }
}

static void test_it_is_written_as_go_writes_it(void **state)
{
    static const struct row rows[] = {
        {"c0", "null"},
        {"c2", "false"},
        {"c3", "true"},
        {"00", "0"},
        {"7f", "127"},
        {"d10080", "128"},
        {"d17fff", "32767"},
        {"d200008000", "32768"},
        {"d27fffffff", "2147483647"},
        {"d30000000080000000", "2147483648"},
        {"d37fffffffffffffff", "9223372036854775807"},
        {"ff", "-1"},
        {"e0", "-32"},
        {"d0df", "-33"},
        {"d080", "-128"},
        {"d1ff7f", "-129"},
        {"d2ffff7fff", "-32769"},
        {"d38000000000000000", "-9223372036854775808"},
        {"cb3ff8000000000000", "1.5"},
        {"cb4000000000000000", "2.0"},
        {"a0", "\"\""},
        {"a3616263", "\"abc\""},
        {"da00207878787878787878787878787878787878787878787878787878787878787878",
         "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\""},
        {"90", "[]"},
        {"9201c0", "[1, null]"},
        {"80", "{}"},
        {"81a16180", "{\"a\": {}}"},
        {"a2c3c3", "{\"$bytes\": \"w8M=\"}"},
        {"a0", "{\"$bytes\": \"\"}"},
        {"af01000000000000000000000000ffff", "{\"$time\": null}"},
        {"af010000000e7791f70000000000ffff", "{\"$time\": 0}"},
        {"af010000000ed868d2a6075bcd15ffff", "{\"$time\": 1624693670123456789}"},
        {"af010000000e7791f6ff3b9ac9ffffff", "{\"$time\": -1}"},
        /* what only looks like them */
        {"81a6246279746573a12a", "{\"$bytes\": \"*\"}"},
        {"81a624627974657301", "{\"$bytes\": 1}"},
        {"81a52474696d65a131", "{\"$time\": \"1\"}"},
        {"82a52474696d6501a16102", "{\"$time\": 1, \"a\": 2}"},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct buffer written = {0};
        uint8_t bytes[256];

        json_t *value = from_text(rows[i].json);
        assert_int_equal(msgpack_write(&written, OBJECT_MAX, value), 0);
        if (buffer_length(&written) != from_hex(rows[i].bytes, bytes) ||
            memcmp(buffer_text(&written), bytes, buffer_length(&written)) != 0)
            fail_msg("%s is written otherwise", rows[i].json);
        buffer_close(&written);
        json_decref(value);
    }
}

static void test_objects_come_back_to_back_however_they_are_cut(void **state)
{
    static const char text[] =
        "{\"Error\": \"\", \"Seq\": 700, \"Payload\": {\"$bytes\": \"/w==\"}, "
        "\"At\": [{\"$time\": 1624693670123456789}, {\"x\": -1.5}]}";
    struct buffer written = {0};
    json_t *value = from_text(text);
    (void)state;

    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(msgpack_write(&written, OBJECT_MAX, value), 0);
    json_decref(value);
    for (size_t step = 1; step <= buffer_length(&written); step++) {
        struct msgpack_reader *reader = msgpack_reader_new(OBJECT_MAX);
        struct err err = {0};
        json_t *object;
        unsigned count = 0;
        int code = ERR_AGAIN;

        for (size_t at = 0; at < buffer_length(&written); at += step) {
            size_t left = buffer_length(&written) - at;

            assert_int_equal(
                msgpack_reader_add(reader, buffer_text(&written) + at, left < step ? left : step),
                0);
            while ((code = msgpack_reader_next(reader, &object, &err)) == 0) {
                assert_is(object, text, "one of three");
                count++;
            }
            assert_int_equal(code, ERR_AGAIN);
        }
        assert_int_equal(count, 3);
        assert_true(msgpack_reader_is_empty(reader));
        msgpack_reader_free(reader);
    }
    buffer_close(&written);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_no_msgpack_is_refused),
        cmocka_unit_test(test_what_promises_too_much_is_refused_at_once),
        cmocka_unit_test(test_an_object_that_is_too_long_as_a_whole_is_refused),
        cmocka_unit_test(test_an_object_is_as_deep_as_it_may_be_and_no_deeper),
        cmocka_unit_test(test_half_an_object_waits_and_is_forgotten_with_its_reader),
        cmocka_unit_test(test_nobody_adds_for_ever),
        cmocka_unit_test(test_what_cannot_be_written_is_told),
        cmocka_unit_test(test_all_forms_are_read),
        cmocka_unit_test(test_times_are_times),
        cmocka_unit_test(test_it_is_written_as_go_writes_it),
        cmocka_unit_test(test_objects_come_back_to_back_however_they_are_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
