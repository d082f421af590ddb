/*
 * What keys of a configuration file are set to: each kind of them by its own rule, and one line
 * that says what is wrong, with its place.
 */
#include "agent/config/read.h"

#include "drivers/drivers.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int reader_take_error(struct reader *reader, const struct hcl_error *error)
{
    char place[192] = "";

    if (error->place.line > 0)
        (void)text_format(place, sizeof(place), "%s:%u:%u", reader->name, error->place.line,
                          error->place.column); /* a cut path is still of use */
    else
        (void)text_copy(place, sizeof(place), reader->name);
    return err_set(reader->err, ERR_INVALID, "%s: %s%s%s%s", place, error->message,
                   error->hint[0] != '\0' ? " (" : "", error->hint,
                   error->hint[0] != '\0' ? ")" : "");
}

int reader_complain(struct reader *reader, struct hcl_place place, const char *hint,
                    const char *format, ...)
{
    struct hcl_error error = {.code = ERR_INVALID, .place = place};
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(error.message, sizeof(error.message), format, arguments); /* may be cut */
    va_end(arguments);
    (void)text_copy(error.hint, sizeof(error.hint), hint);
    return reader_take_error(reader, &error);
}

static int set_text(struct reader *reader, const struct key *key, void *field,
                    struct hcl_place place, json_t *value)
{
    json_t *text = hcl_convert(value, HCL_STRING);
    int code = 0;

    if (text == NULL || !json_is_string(text))
        code = reader_complain(reader, place, NULL, "%s must be a string, not %s", key->name,
                               hcl_type_text(value));
    else if (!text_copy(field, key->size, json_string_value(text)))
        code = reader_complain(reader, place, NULL, "%s is longer than %zu bytes", key->name,
                               key->size - 1);
    json_decref(text);
    return code;
}

/* A text that is looked at as a whole. */
static int set_sound(struct reader *reader, const struct key *key, void *field,
                     struct hcl_place place, json_t *value)
{
    int code = set_text(reader, key, field, place, value);
    const char *text = field, *fault = NULL, *example = "as in \"10.0.0.0/8\"";
    struct port_set ports = {{0}};
    struct core_set cores = {{0}};

    if (code != 0)
        return code;
    if (key->kind == KEY_PORTS) {
        fault = config_ports(text, &ports);
        example = "as in \"22,8000-8080\"";
    } else if (key->kind == KEY_CORES) {
        fault = config_cores(text, &cores);
        example = "as in \"0,2-3\"";
    } else if (key->kind == KEY_NETWORKS) {
        fault = config_cidr_fault(text);
    } else {
        fault = config_subnet_fault(text, key->kind == KEY_SUBNET_IPV6);
        if (key->kind == KEY_SUBNET_IPV6)
            example = "as in \"fd00:1::/64\"";
    }
    return fault == NULL ? 0 : reader_complain(reader, place, example, "%s: %s", key->name, fault);
}

static int set_bool(struct reader *reader, const struct key *key, void *field,
                    struct hcl_place place, json_t *value)
{
    json_t *truth = hcl_convert(value, HCL_BOOL);
    bool *to = field;

    if (truth == NULL && json_is_string(value) && strlen(json_string_value(value)) == 1 &&
        strchr("01", json_string_value(value)[0]) != NULL) /* client.options are written so */
        truth = json_boolean(json_string_value(value)[0] == '1');
    if (truth == NULL || !json_is_boolean(truth)) {
        json_decref(truth);
        return reader_complain(reader, place, NULL, "%s must be true or false, not %s", key->name,
                               hcl_type_text(value));
    }
    *to = json_is_true(truth);
    json_decref(truth);
    return 0;
}

static int set_number(struct reader *reader, const struct key *key, void *field,
                      struct hcl_place place, json_t *value)
{
    json_int_t max = key->kind == KEY_PORT      ? UINT16_MAX
                     : key->kind == KEY_PERCENT ? 100
                                                : INT32_MAX;
    json_t *number = hcl_convert(value, HCL_NUMBER);
    bool good = number != NULL && json_is_integer(number) && json_integer_value(number) >= 0 &&
                json_integer_value(number) <= max;
    json_int_t found = json_integer_value(number);

    json_decref(number);
    if (!good)
        return reader_complain(reader, place, NULL, "%s must be a whole number from 0 to %lld",
                               key->name, (long long)max);
    if (key->kind == KEY_PORT)
        *(uint16_t *)field = (uint16_t)found;
    else
        *(uint32_t *)field = (uint32_t)found;
    return 0;
}

static int set_duration(struct reader *reader, const struct key *key, void *field,
                        struct hcl_place place, json_t *value)
{
    int64_t ns;

    if (!json_is_string(value) || !text_to_duration_ns(json_string_value(value), &ns) || ns < 0)
        return reader_complain(reader, place, "as in \"30s\" or \"5m\"",
                               "%s must be a duration, not negative", key->name);
    *(uint64_t *)field = (uint64_t)ns / 1000000;
    return 0;
}

/* Bytes as Nomad's configuration writes them: "100GB" of 1000 each, "64MiB" of 1024. */
static int set_size(struct reader *reader, const struct key *key, void *field,
                    struct hcl_place place, json_t *value)
{
    static const struct {
        const char *unit;
        uint64_t bytes;
    } units[] = {
        {"", 1},           {"B", 1},           {"kB", 1000},           {"KB", 1000},
        {"MB", 1000000},   {"GB", 1000000000}, {"TB", 1000000000000u}, {"KiB", 1u << 10},
        {"MiB", 1u << 20}, {"GiB", 1u << 30},  {"TiB", 1ull << 40},
    };
    const char *text = json_string_value(value);
    char digits[24] = "";
    size_t length = text == NULL ? 0 : strspn(text, "0123456789");
    uint64_t number;

    if (length > 0 && length < sizeof(digits))
        (void)text_format(digits, sizeof(digits), "%.*s", (int)length, text); /* fits */
    for (size_t i = 0; text_to_u64(digits, &number) && i < COUNT_OF(units); i++) {
        if (number <= INT64_MAX / units[i].bytes &&
            text_equal(text + length + strspn(text + length, " "), units[i].unit)) {
            *(uint64_t *)field = number * units[i].bytes;
            return 0;
        }
    }
    return reader_complain(reader, place, "as in \"100GB\"", "%s must be a size", key->name);
}

static int set_mode(struct reader *reader, const struct key *key, void *field,
                    struct hcl_place place, json_t *value)
{
    const char *mode = json_string_value(value);
    bool *to = field;

    if (mode == NULL || (!text_equal(mode, "private") && !text_equal(mode, "host")))
        return reader_complain(reader, place, NULL, "%s must be \"private\" or \"host\"",
                               key->name);
    *to = text_equal(mode, "host");
    return 0;
}

static int set_capabilities(struct reader *reader, const struct key *key, void *field,
                            struct hcl_place place, json_t *value)
{
    uint64_t *to = field, sum = 0;
    json_t *name;
    size_t at;

    if (!json_is_array(value))
        return reader_complain(reader, place, "as in [\"chown\", \"kill\"]",
                               "%s must be a list of names", key->name);
    json_array_foreach(value, at, name)
    {
        uint64_t set;

        if (!json_is_string(name) || !driver_capability(json_string_value(name), &set))
            return reader_complain(reader, place, NULL,
                                   "%s: this machine knows no capability \"%s\"", key->name,
                                   json_is_string(name) ? json_string_value(name) : "");
        sum |= set;
    }
    *to = sum;
    return 0;
}

static int set_ids(struct reader *reader, const struct key *key, void *field,
                   struct hcl_place place, json_t *value)
{
    const char *fault = json_is_string(value) ? driver_ids_fault(json_string_value(value)) : NULL;

    if (fault != NULL)
        return reader_complain(reader, place, NULL, "%s %s", key->name, fault);
    return set_text(reader, key, field, place, value);
}

static int set_names(struct reader *reader, const struct key *key, void *field,
                     struct hcl_place place, json_t *value)
{
    char *to = field;
    json_t *name;
    size_t at;

    if (!json_is_array(value))
        return reader_complain(reader, place, "as in [\"AWS_*\"]", "%s must be a list of names",
                               key->name);
    to[0] = '\0';
    json_array_foreach(value, at, name)
    {
        const char *text = json_string_value(name);

        if (text == NULL || strchr(text, ',') != NULL)
            return reader_complain(reader, place, NULL, "%s[%zu] must be a name", key->name, at);
        if (!text_append(to, key->size, at == 0 ? "" : ",") || !text_append(to, key->size, text))
            return reader_complain(reader, place, NULL, "%s is longer than %zu bytes", key->name,
                                   key->size - 1);
    }
    return 0;
}

static int set_addresses(struct reader *reader, const struct key *key, void *field,
                         struct hcl_place place, json_t *value)
{
    const char *fault = json_is_string(value)
                            ? config_set_addresses(reader->config, json_string_value(value))
                            : "it must be a string";
    (void)field; /* it is more than one */

    return fault == NULL ? 0
                         : reader_complain(reader, place, "as in \"127.0.0.1 unix:///PATH\"",
                                           "%s: %s", key->name, fault);
}

static int obey_rule(struct reader *reader, const struct key *key, void *field,
                     struct hcl_place place, json_t *value)
{
    const char *fault = key->rule(value);
    (void)field; /* it says nothing that is kept */

    return fault == NULL ? 0 : reader_complain(reader, place, NULL, "%s: %s", key->name, fault);
}

int key_set(struct reader *reader, const struct key *key, void *field, struct hcl_place place,
            json_t *value)
{
    static int (*const setters[])(struct reader *, const struct key *, void *, struct hcl_place,
                                  json_t *) = {
        [KEY_TEXT] = set_text,
        [KEY_BOOL] = set_bool,
        [KEY_PORT] = set_number,
        [KEY_COUNT] = set_number,
        [KEY_PERCENT] = set_number,
        [KEY_DURATION] = set_duration,
        [KEY_SIZE] = set_size,
        [KEY_MODE] = set_mode,
        [KEY_CAPABILITIES] = set_capabilities,
        [KEY_PORTS] = set_sound,
        [KEY_CORES] = set_sound,
        [KEY_NETWORKS] = set_sound,
        [KEY_SUBNET] = set_sound,
        [KEY_SUBNET_IPV6] = set_sound,
        [KEY_IDS] = set_ids,
        [KEY_NAMES] = set_names,
        [KEY_ADDRESSES] = set_addresses,
    };

    int code = key->rule == NULL ? 0 : obey_rule(reader, key, field, place, value);
    return code != 0 || key->kind == KEY_RULE
               ? code
               : setters[key->kind](reader, key, field, place, value);
}
