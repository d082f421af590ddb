/*
 * Between msgpack and jansson.
 *
 * The grammar is libmsgpack-c's: its template of a parser, which goes on where bytes ran out, calls
 * what is here to make values.  Its ready-made parser makes room for as many elements as a header
 * promises; here a promise costs nothing, and the sum of all promises has a bound.
 */
#include "io/rpc/msgpack.h"

#include <math.h>
#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>

#define MSGPACK_EMBED_STACK_SIZE MSGPACK_DEPTH_MAX
#include <msgpack/pack.h>
#include <msgpack/sysdep.h>
#include <msgpack/unpack.h>
#include <msgpack/unpack_define.h>

enum {
    TIME_BYTES = 15,
    TIME_MORE_BYTES = 16, /* with seconds of the zone */
    UNREAD_MAX = 1 << 20, /* beside an object: more than a window of a stream */
    EXACT_BITS = 53,      /* of a double */
};

static const int64_t seconds_to_1970 = 62135596800; /* since the year 1 */
static const int64_t second_ns = 1000000000;

/* --- values that are more than they look like --- */

/* What Go makes of a time: version, seconds, nanoseconds, zone. */
static bool is_time(const uint8_t *bytes, size_t length, int64_t *ret_seconds, int64_t *ret_ns)
{
    uint64_t seconds = 0;
    uint32_t ns = 0;

    if (!(length == TIME_BYTES && bytes[0] == 1) && !(length == TIME_MORE_BYTES && bytes[0] == 2))
        return false;
    for (size_t i = 1; i <= 8; i++)
        seconds = seconds << 8 | bytes[i];
    for (size_t i = 9; i <= 12; i++)
        ns = ns << 8 | bytes[i];
    *ret_seconds = (int64_t)seconds;
    *ret_ns = (int64_t)ns;
    return ns < (uint32_t)second_ns;
}

/* NULL: it is none that nanoseconds since 1970 can tell. */
static json_t *time_value(const uint8_t *bytes, size_t length)
{
    int64_t seconds, ns, unix_ns;

    if (!is_time(bytes, length, &seconds, &ns))
        return NULL;
    if (seconds == 0 && ns == 0)
        return json_pack("{s:n}", "$time");
    if (__builtin_sub_overflow(seconds, seconds_to_1970, &seconds) ||
        __builtin_mul_overflow(seconds, second_ns, &unix_ns) ||
        __builtin_add_overflow(unix_ns, ns, &unix_ns))
        return NULL;
    return json_pack("{s:I}", "$time", (json_int_t)unix_ns);
}

static json_t *bytes_value(const uint8_t *bytes, size_t length)
{
    size_t size = BASE64_ENCODE_RAW_LENGTH(length);
    char *text = malloc(size + 1);

    check(text != NULL);
    base64_encode_raw(text, length, bytes);
    json_t *value = json_pack("{s:o}", "$bytes", json_stringn_nocheck(text, size));
    free(text);
    return value;
}

static json_t *raw_value(const char *bytes, size_t length)
{
    if (length == 0)
        return json_string(""); /* the template has no bytes then */
    json_t *value = time_value((const uint8_t *)bytes, length);
    if (value != NULL)
        return value;
    if (text_is_utf8(bytes, length))
        return json_stringn_nocheck(bytes, length);
    return bytes_value((const uint8_t *)bytes, length);
}

static json_t *real_value(double number)
{
    const double exact = (double)((int64_t)1 << EXACT_BITS);

    if (isfinite(number) && trunc(number) == number && fabs(number) < exact)
        return json_integer((json_int_t)number);
    return isfinite(number) ? json_real(number) : json_null(); /* JSON has no others */
}

/* --- reading --- */

struct making {
    size_t elements_left; /* of what headers may promise */
    int code;             /* what is wrong with it, 0: nothing yet */
    const char *wrong;
};

typedef json_t *made;

/* The template goes on after an item: whoever runs it looks at the code afterwards. */
static int fail(struct making *making, int code, const char *wrong)
{
    if (making->code == 0) {
        making->code = code;
        making->wrong = wrong;
    }
    return -1;
}

static int give(json_t *value, made *ret_value)
{
    check(value != NULL);
    *ret_value = value;
    return 0;
}

static bool promise(struct making *making, size_t count)
{
    if (count > making->elements_left) {
        (void)fail(making, ERR_LIMIT, "an object has too many elements");
        return false;
    }
    making->elements_left -= count;
    return true;
}

#define NUMBER(name, type)                                                                         \
    static int make_##name(struct making *making, type number, made *ret_value)                    \
    {                                                                                              \
        (void)making;                                                                              \
        return give(json_integer((json_int_t)number), ret_value);                                  \
    }
NUMBER(uint8, uint8_t)
NUMBER(uint16, uint16_t)
NUMBER(uint32, uint32_t)
NUMBER(int8, int8_t)
NUMBER(int16, int16_t)
NUMBER(int32, int32_t)
NUMBER(int64, int64_t)
#undef NUMBER

static int make_uint64(struct making *making, uint64_t number, made *ret_value)
{
    (void)making;
    return give(number <= INT64_MAX ? json_integer((json_int_t)number) : json_real((double)number),
                ret_value);
}

static int make_double(struct making *making, double number, made *ret_value)
{
    (void)making;
    return give(real_value(number), ret_value);
}

static int make_float(struct making *making, float number, made *ret_value)
{
    return make_double(making, (double)number, ret_value);
}

static int make_nil(struct making *making, made *ret_value)
{
    (void)making;
    return give(json_null(), ret_value);
}

static int make_true(struct making *making, made *ret_value)
{
    (void)making;
    return give(json_true(), ret_value);
}

static int make_false(struct making *making, made *ret_value)
{
    (void)making;
    return give(json_false(), ret_value);
}

static int make_str(struct making *making, const char *begin, const char *at, unsigned length,
                    made *ret_value)
{
    (void)making;
    (void)begin;
    return give(raw_value(at, length), ret_value);
}

static int make_bin(struct making *making, const char *begin, const char *at, unsigned length,
                    made *ret_value)
{
    return make_str(making, begin, at, length, ret_value);
}

static int make_ext(struct making *making, const char *begin, const char *at, unsigned length,
                    made *ret_value)
{
    (void)begin;
    (void)at;
    (void)length;
    (void)ret_value;
    return fail(making, ERR_CORRUPT, "an object has an extension");
}

static json_t *make_root(const struct making *making)
{
    (void)making;
    return NULL;
}

static int make_array(struct making *making, size_t count, made *ret_value)
{
    return promise(making, count) ? give(json_array(), ret_value) : -1;
}

static int make_map(struct making *making, size_t count, made *ret_value)
{
    return count <= SIZE_MAX / 2 && promise(making, 2 * count) ? give(json_object(), ret_value)
                                                               : -1;
}

static int make_array_item(struct making *making, const made *array, json_t *item)
{
    (void)making;
    check(json_array_append_new(*array, item) == 0);
    return 0;
}

/* What somebody has put into a name that is no text is no reason to hear nothing of all the rest.
 */
static json_t *clean_name(const json_t *name)
{
    const char *text = json_string_value(json_object_get(name, "$bytes"));

    return json_sprintf("bytes:%s", text == NULL ? "" : text);
}

static int make_map_item(struct making *making, const made *map, json_t *name, json_t *item)
{
    if (json_is_object(name)) {
        json_t *clean = clean_name(name);

        check(clean != NULL);
        json_decref(name);
        name = clean;
    }
    if (!json_is_string(name)) {
        (void)fail(making, ERR_CORRUPT, "a name in a map is none");
        json_decref(item);
    } else {
        check(json_object_set_new_nocheck(*map, json_string_value(name), item) == 0);
    }
    json_decref(name);
    return 0; /* the template holds the name until it hears this */
}

#define msgpack_unpack_struct(name) struct template##name
#define msgpack_unpack_func(type, name) static type template##name
#define msgpack_unpack_callback(name) make##name
#define msgpack_unpack_object made
#define msgpack_unpack_user struct making
#include <msgpack/unpack_template.h>

struct msgpack_reader {
    struct template_context parser;
    size_t object_bytes_max;
    size_t object_bytes; /* of the present object, behind the parser */
    struct buffer in;    /* what it has not taken */
    int failed;
};

static void begin_object(struct msgpack_reader *reader)
{
    size_t elements = reader->object_bytes_max / MSGPACK_ELEMENT_BYTES;

    template_init(&reader->parser);
    reader->object_bytes = 0;
    reader->parser.user = (struct making){
        .elements_left = elements < MSGPACK_ELEMENTS_LEAST ? MSGPACK_ELEMENTS_LEAST : elements};
}

/* Frees what the parser holds: lists and maps that are open, and a name whose value has not come.
 */
static void drop_object(struct msgpack_reader *reader)
{
    struct template_context *parser = &reader->parser;

    for (unsigned i = 0; i < parser->top; i++) {
        json_decref(parser->stack[i].obj);
        if (parser->stack[i].ct == MSGPACK_CT_MAP_VALUE)
            json_decref(parser->stack[i].map_key);
    }
    begin_object(reader);
}

struct msgpack_reader *msgpack_reader_new(size_t object_bytes_max)
{
    struct msgpack_reader *reader = calloc(1, sizeof(*reader));

    check(reader != NULL);
    reader->object_bytes_max = object_bytes_max;
    begin_object(reader);
    return reader;
}

void msgpack_reader_free(struct msgpack_reader *reader)
{
    if (reader == NULL)
        return;
    drop_object(reader);
    buffer_close(&reader->in);
    free(reader);
}

int msgpack_reader_add(struct msgpack_reader *reader, const void *bytes, size_t length)
{
    return buffer_append(&reader->in, bytes, length, reader->object_bytes_max + UNREAD_MAX)
               ? 0
               : ERR_LIMIT;
}

bool msgpack_reader_is_empty(const struct msgpack_reader *reader)
{
    return buffer_length(&reader->in) == 0 && reader->object_bytes == 0;
}

static int fail_reader(struct msgpack_reader *reader, struct err *err, int code, const char *wrong)
{
    reader->failed = code;
    drop_object(reader);
    return err_set(err, code, "%s", wrong);
}

/* What the parser makes of a header that has come may be longer than what may come. */
static bool is_too_long(const struct msgpack_reader *reader)
{
    const struct template_context *parser = &reader->parser;
    size_t awaited = parser->cs == MSGPACK_CS_HEADER ? 0 : parser->trail;

    return reader->object_bytes > reader->object_bytes_max ||
           awaited > reader->object_bytes_max - reader->object_bytes;
}

int msgpack_reader_next(struct msgpack_reader *reader, json_t **ret_object, struct err *err)
{
    struct template_context *parser = &reader->parser;
    size_t taken = 0;

    if (reader->failed != 0)
        return err_set(err, reader->failed, "nothing can be read any more");
    if (buffer_length(&reader->in) == 0)
        return ERR_AGAIN;
    int result =
        template_execute(parser, buffer_text(&reader->in), buffer_length(&reader->in), &taken);
    struct making making = parser->user;
    bool whole = result == 1 && making.code == 0;

    buffer_drop(&reader->in, taken);
    reader->object_bytes += taken;
    if (result == 1 && !whole)
        json_decref(template_data(parser));
    if (making.code != 0)
        return fail_reader(reader, err, making.code, making.wrong);
    if (result < 0)
        return fail_reader(reader, err, parser->top == MSGPACK_DEPTH_MAX ? ERR_LIMIT : ERR_CORRUPT,
                           parser->top == MSGPACK_DEPTH_MAX ? "an object is too deep"
                                                            : "what came is no msgpack");
    if (!whole && is_too_long(reader))
        return fail_reader(reader, err, ERR_LIMIT, "an object is too long");
    if (!whole)
        return ERR_AGAIN;
    *ret_object = template_data(parser);
    begin_object(reader);
    return 0;
}

/* --- writing --- */

struct writing {
    struct buffer *to;
    size_t bytes_max;
};

static int put(void *ctx, const char *bytes, size_t length)
{
    const struct writing *writing = ctx;

    return buffer_append(writing->to, bytes, length, writing->bytes_max) ? 0 : ERR_LIMIT;
}

/* As Go does: never unsigned, which is a question of style, and of bytes to compare. */
static int put_integer(msgpack_packer *packer, int64_t number)
{
    if (number >= -32 && number <= INT8_MAX)
        return msgpack_pack_int64(packer, number);
    if (number >= INT8_MIN && number <= INT8_MAX)
        return msgpack_pack_fix_int8(packer, (int8_t)number);
    if (number >= INT16_MIN && number <= INT16_MAX)
        return msgpack_pack_fix_int16(packer, (int16_t)number);
    if (number >= INT32_MIN && number <= INT32_MAX)
        return msgpack_pack_fix_int32(packer, (int32_t)number);
    return msgpack_pack_fix_int64(packer, number);
}

static int put_raw(msgpack_packer *packer, const void *bytes, size_t length)
{
    if (length > UINT32_MAX || msgpack_pack_v4raw(packer, length) != 0)
        return ERR_LIMIT;
    return length == 0 ? 0 : msgpack_pack_v4raw_body(packer, bytes, length);
}

static int put_time(msgpack_packer *packer, const json_t *value)
{
    uint8_t bytes[TIME_BYTES] = {[0] = 1, [13] = 0xff, [14] = 0xff}; /* the zone is UTC */
    uint64_t seconds = 0;
    uint32_t ns = 0;

    if (json_is_integer(value)) {
        int64_t unix_ns = json_integer_value(value), rest = unix_ns % second_ns;

        rest += rest < 0 ? second_ns : 0;
        seconds = (uint64_t)((unix_ns - rest) / second_ns + seconds_to_1970);
        ns = (uint32_t)rest;
    }
    for (size_t i = 0; i < 8; i++)
        bytes[1 + i] = (uint8_t)(seconds >> (56 - 8 * i));
    for (size_t i = 0; i < 4; i++)
        bytes[9 + i] = (uint8_t)(ns >> (24 - 8 * i));
    return put_raw(packer, bytes, sizeof(bytes));
}

/* ERR_INVALID: it is no base64. */
static int put_bytes(msgpack_packer *packer, const json_t *value)
{
    const char *text = json_string_value(value);
    size_t text_length = json_string_length(value), length = BASE64_DECODE_LENGTH(text_length);
    uint8_t *bytes = malloc(length + 1);
    struct base64_decode_ctx base64;

    check(bytes != NULL);
    base64_decode_init(&base64);
    int code = base64_decode_update(&base64, &length, bytes, text_length, text) == 1 &&
                       base64_decode_final(&base64) == 1
                   ? put_raw(packer, bytes, length)
                   : ERR_INVALID;
    free(bytes);
    return code;
}

/* ERR_INVALID: it is a map as any other. */
static int put_special(msgpack_packer *packer, const json_t *object)
{
    const json_t *time = json_object_get(object, "$time"),
                 *bytes = json_object_get(object, "$bytes");

    if (json_object_size(object) != 1)
        return ERR_INVALID;
    if (json_is_integer(time) || json_is_null(time))
        return put_time(packer, time);
    return json_is_string(bytes) ? put_bytes(packer, bytes) : ERR_INVALID;
}

static int put_value(msgpack_packer *packer, const json_t *value, size_t depth);

static int put_array(msgpack_packer *packer, const json_t *array, size_t depth)
{
    const json_t *item;
    size_t i;
    int code = msgpack_pack_array(packer, json_array_size(array));

    json_array_foreach(array, i, item)
    {
        if (code == 0)
            code = put_value(packer, item, depth);
    }
    return code;
}

static int put_object(msgpack_packer *packer, json_t *object, size_t depth)
{
    const char *name;
    json_t *item;
    int code = put_special(packer, object);

    if (code != ERR_INVALID)
        return code;
    code = msgpack_pack_map(packer, json_object_size(object));
    json_object_foreach(object, name, item)
    {
        if (code == 0)
            code = put_raw(packer, name, strlen(name));
        if (code == 0)
            code = put_value(packer, item, depth);
    }
    return code;
}

static int put_value(msgpack_packer *packer, const json_t *value, size_t depth)
{
    if (depth == MSGPACK_DEPTH_MAX && (json_is_object(value) || json_is_array(value)))
        return ERR_LIMIT;
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return put_object(packer, (json_t *)(uintptr_t)value, depth + 1); /* to walk, no more */
    case JSON_ARRAY:
        return put_array(packer, value, depth + 1);
    case JSON_STRING:
        return put_raw(packer, json_string_value(value), json_string_length(value));
    case JSON_INTEGER:
        return put_integer(packer, json_integer_value(value));
    case JSON_REAL:
        return msgpack_pack_double(packer, json_real_value(value));
    case JSON_TRUE:
        return msgpack_pack_true(packer);
    case JSON_FALSE:
        return msgpack_pack_false(packer);
    case JSON_NULL:
        return msgpack_pack_nil(packer);
    }
    unreachable("a value is one of these");
}

int msgpack_write(struct buffer *to, size_t bytes_max, const json_t *value)
{
    struct writing writing = {to, buffer_length(to) + bytes_max};
    msgpack_packer packer;

    msgpack_packer_init(&packer, &writing, put);
    return put_value(&packer, value, 0) == 0 ? 0 : ERR_LIMIT;
}
