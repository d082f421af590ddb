/* What a plugin says of the driver that it is. */
#include "plugins/driver/driver.h"
#include "plugins/process/part.h"
#include "plugins/protocol/plugin.pb-c.h"

#include "io/host.h"
#include "io/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static ProtobufCBinaryData text(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

static void test_names_that_are_no_words_are_no_drivers(void **state)
{
    static const char *const wrong[] = {"", "a b", "a/b", "-a", "a.b", "a\nb", "\xc3\xa4"};
    char longest[SPEC_DRIVER_SIZE + 1];
    (void)state;

    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(driver_name_is_good(wrong[i]));
    memset(longest, 'a', sizeof(longest));
    longest[SPEC_DRIVER_SIZE] = '\0';
    assert_false(driver_name_is_good(longest));
    longest[SPEC_DRIVER_SIZE - 1] = '\0';
    assert_true(driver_name_is_good(longest));
    assert_true(driver_name_is_good("podman") && driver_name_is_good("nomad-driver_9"));
}

static void test_capabilities_are_those_that_were_said(void **state)
{
    Wire__Capabilities said = WIRE__CAPABILITIES__INIT;
    Wire__CapabilitiesAnswer answer = WIRE__CAPABILITIES_ANSWER__INIT;
    struct plugin_capabilities read = {.signals = true, .isolation = ISOLATION_IMAGE};
    int32_t modes[] = {0, 1};
    uint8_t bytes[128];
    struct err err = {0};
    (void)state;

    /* Nothing was said: nothing can be done. */
    assert_int_equal(driver_read_capabilities("", 0, &read, &err), 0);
    assert_false(read.signals || read.runs_commands || read.enters_network || read.makes_network);
    assert_int_equal(read.isolation, ISOLATION_NONE);

    said.send_signals = said.must_create_network = true;
    said.fs_isolation = 2;
    said.network_modes = modes;
    said.n_network_modes = COUNT_OF(modes);
    answer.capabilities = &said;
    size_t length = wire__capabilities_answer__pack(&answer, bytes);
    assert_int_equal(driver_read_capabilities(bytes, length, &read, &err), 0);
    assert_true(read.signals && read.makes_network && read.enters_network);
    assert_false(read.runs_commands);
    assert_int_equal(read.isolation, ISOLATION_IMAGE);
    assert_int_equal(driver_read_capabilities(bytes, length - 1, &read, &err), ERR_CORRUPT);
}

/* The state of a driver "d" that says KEY of itself, and HEALTH. */
static int read_state(const char *key, int32_t health, const char *error,
                      struct driver_state *ret_state, struct err *err)
{
    Wire__Attribute value = WIRE__ATTRIBUTE__INIT;
    Wire__Pair pair = WIRE__PAIR__INIT, *pairs[] = {&pair};
    Wire__DriverState said = WIRE__DRIVER_STATE__INIT;
    uint8_t inner[64], bytes[512];

    value.value_case = WIRE__ATTRIBUTE__VALUE_INT_VALUE;
    value.int_value = 4;
    value.unit = text("GiB");
    pair.key = text(key);
    pair.value = (ProtobufCBinaryData){wire__attribute__pack(&value, inner), inner};
    said.attributes = pairs;
    said.n_attributes = 1;
    said.health = health;
    said.description = text("as ever");
    said.error = text(error);
    return driver_read_state(bytes, wire__driver_state__pack(&said, bytes), "d", ret_state, err);
}

static void test_attributes_of_others_are_not_taken(void **state)
{
    static const char *const others[] = {"cpu.arch", "driver.exec.version", "driver.d",
                                         "driver.d2.x"};
    struct driver_state read;
    struct err err = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(others); i++) {
        assert_int_equal(read_state(others[i], 2, "", &read, &err), 0);
        assert_int_equal(json_object_size(read.attributes), 0);
        json_decref(read.attributes);
    }
    assert_int_equal(read_state("driver.d.size", 2, "", &read, &err), 0);
    assert_string_equal(json_string_value(json_object_get(read.attributes, "driver.d.size")),
                        "4GiB");
    json_decref(read.attributes);
}

static void test_one_that_has_failed_is_not_healthy(void **state)
{
    static const struct {
        int32_t health;
        const char *error, *description;
        bool detected, healthy;
    } rows[] = {{0, "", "as ever", false, false},
                {1, "", "as ever", true, false},
                {2, "", "as ever", true, true},
                {2, "no Engine", "no Engine", true, false},
                {7, "", "as ever", true, false}};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct driver_state read;
        struct err err = {0};

        assert_int_equal(read_state("driver.d.x", rows[i].health, rows[i].error, &read, &err), 0);
        assert_int_equal(read.detected, rows[i].detected);
        assert_int_equal(read.healthy, rows[i].healthy);
        assert_string_equal(read.description, rows[i].description);
        json_decref(read.attributes);
    }
}

/* --- sockets --- */

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(text_copy(address.sun_path, sizeof(address.sun_path), path));
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

static void test_sockets_of_tasks_outlive_their_plugin(void **state)
{
    char directory[] = "/tmp/cairn-sockets-XXXXXX", live[64], dead[64];
    struct err err = {0};
    struct stat status;
    (void)state;

    assert_non_null(mkdtemp(directory));
    assert_true(text_format(live, sizeof(live), "%s/live", directory));
    assert_true(text_format(dead, sizeof(dead), "%s/dead", directory));
    scoped_fd int fd = listen_at(live);
    (void)fd; /* it listens as long as it is open */
    (void)close(listen_at(dead));
    assert_int_equal(sockets_clear(directory, true, &err), 0);
    assert_int_equal(stat(live, &status), 0);
    assert_int_not_equal(stat(dead, &status), 0);
    /* Of a plugin without tasks nothing stays. */
    assert_int_equal(sockets_clear(directory, false, &err), 0);
    assert_int_not_equal(stat(directory, &status), 0);
    assert_int_equal(sockets_clear(directory, true, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_that_are_no_words_are_no_drivers),
        cmocka_unit_test(test_capabilities_are_those_that_were_said),
        cmocka_unit_test(test_attributes_of_others_are_not_taken),
        cmocka_unit_test(test_one_that_has_failed_is_not_healthy),
        cmocka_unit_test(test_sockets_of_tasks_outlive_their_plugin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
