/*
 * The bytes of a peer's objects, in pieces: the first byte says how they are cut.
 *
 * Nothing is read after what is none; what is read can be written, and what was written is read as
 * it is ever after.  (Not the first time: a peer's own map {"$bytes": ...} looks like bytes.)
 */
#include "test/fuzz.h"

#include "io/rpc/msgpack.h"

enum { OBJECT_MAX = 4096, WRITTEN_MAX = 4 * OBJECT_MAX };

int LLVMFuzzerInitialize(int *arguments_count, char ***arguments)
{
    (void)arguments_count;
    (void)arguments;
    return 0;
}

static json_t *write_and_read(const json_t *value)
{
    struct msgpack_reader *reader = msgpack_reader_new(WRITTEN_MAX);
    struct buffer written = {0};
    struct err err = {0};
    json_t *again = NULL;

    check(msgpack_write(&written, WRITTEN_MAX, value) == 0);
    check(msgpack_reader_add(reader, buffer_text(&written), buffer_length(&written)) == 0);
    check(msgpack_reader_next(reader, &again, &err) == 0);
    check(msgpack_reader_is_empty(reader));
    msgpack_reader_free(reader);
    buffer_close(&written);
    return again;
}

static void look_at(const json_t *value)
{
    json_t *second = write_and_read(value), *third = write_and_read(second);
    char *text = json_dumps(value, JSON_ENCODE_ANY);

    check(json_equal(second, third));
    check(text != NULL);
    free(text);
    json_decref(second);
    json_decref(third);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct msgpack_reader *reader = msgpack_reader_new(OBJECT_MAX);
    size_t step = size > 0 && data[0] > 0 ? data[0] : 1;
    int code = ERR_AGAIN;

    for (size_t at = 1; at < size && code == ERR_AGAIN; at += step) {
        struct err err = {0};
        json_t *object;

        check(msgpack_reader_add(reader, data + at, size - at < step ? size - at : step) == 0);
        while ((code = msgpack_reader_next(reader, &object, &err)) == 0) {
            look_at(object);
            json_decref(object);
        }
        check(code == ERR_AGAIN || err.code == code);
    }
    msgpack_reader_free(reader);
    return 0;
}
