/* Whatever a plugin may say: the first byte says as what it is read. */
#include "test/fuzz.h"

#include "plugins/device/device.h"
#include "plugins/driver/driver.h"
#include "plugins/process/part.h"
#include "plugins/protocol/schema.h"

static void read_json(json_t *value)
{
    if (value == NULL)
        return;
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    check(text != NULL && text_is_utf8(text, strlen(text)));
    free(text);
    json_decref(value);
}

static void read_reservation(const uint8_t *bytes, size_t length, struct err *err)
{
    struct spec_reservation reservation;
    struct arena arena = {0};

    if (device_read_reservation(bytes, length, &arena, &reservation, err) == 0) {
        for (size_t i = 0; i < reservation.count; i++)
            check(reservation.items[i].host[0] != '\0');
    }
    arena_free(&arena);
}

static void read_line(const uint8_t *bytes, size_t length, struct err *err)
{
    char socket[PROCESS_SOCKET_MAX + 1], *line = strndup((const char *)bytes, length);

    check(line != NULL);
    if (handshake_read(line, socket, err) == 0)
        check(socket[0] == '/');
    free(line);
}

/* A piece that is a schema, and then what is said by it. */
static void encode(const uint8_t *bytes, size_t length, struct err *err)
{
    struct fuzz_input input = {bytes, length};
    const uint8_t *spec;
    size_t spec_length, encoded_length;
    char *encoded;

    if (!fuzz_piece(&input, &spec, &spec_length))
        return;
    json_t *config = json_loadb((const char *)input.at, input.left, JSON_REJECT_DUPLICATES, NULL);
    if ((config == NULL || json_is_object(config)) &&
        schema_encode(spec, spec_length, config, &encoded, &encoded_length, err) == 0) {
        check(encoded_length > 0 && encoded_length <= SCHEMA_CONFIG_BYTES_MAX);
        free(encoded);
    }
    json_decref(config);
}

static void read_driver(const uint8_t *bytes, size_t length, struct err *err)
{
    struct plugin_capabilities capabilities;
    struct driver_state state;
    size_t schema_length;
    char *schema;

    (void)driver_read_capabilities(bytes, length, &capabilities, err);
    if (driver_read_schema(bytes, length, &schema, &schema_length, err) == 0) {
        check(schema_length <= SCHEMA_BYTES_MAX);
        free(schema);
    }
    if (driver_read_state(bytes, length, "d", &state, err) == 0) {
        check(text_is_utf8(state.description, strlen(state.description)));
        read_json(state.attributes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = {0};

    if (size == 0)
        return 0;
    switch (data[0] % 6) {
    case 0:
        read_line(data + 1, size - 1, &err);
        break;
    case 1:
        encode(data + 1, size - 1, &err);
        break;
    case 2:
        read_json(device_read_groups(data + 1, size - 1, &err));
        break;
    case 3:
        read_json(device_read_stats(data + 1, size - 1, &err));
        break;
    case 4:
        read_reservation(data + 1, size - 1, &err);
        break;
    case 5:
        read_driver(data + 1, size - 1, &err);
        break;
    }
    check(text_is_utf8(err.text, strlen(err.text)));
    return 0;
}
