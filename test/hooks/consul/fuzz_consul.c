/*
 * Whatever an agent of Consul answers: who it is, what it has, and whether that is what is wanted.
 * An input is pieces, each a JSON text: what is wanted, its services, its checks, and itself.
 */
#include "test/fuzz.h"

#include "hooks/consul/part.h"

/* The next piece as a value; anything but an object is an empty one, as it is given up then. */
static json_t *next_object(struct fuzz_input *input)
{
    const uint8_t *bytes = NULL;
    size_t length = 0;
    bool is_there = fuzz_piece(input, &bytes, &length);
    json_t *value = is_there ? json_loadb((const char *)bytes, length, 0, NULL) : NULL;

    if (json_is_object(value))
        return value;
    json_decref(value);
    return json_object();
}

static void read_self(const json_t *self)
{
    char values[CONSUL_ATTRIBUTES_MAX][CONSUL_ATTRIBUTE_SIZE];
    struct spec_pair pairs[CONSUL_ATTRIBUTES_MAX];
    const char *envoy = consul_envoy_of(self);
    size_t count = 0;

    check(strlen(envoy) < CONSUL_ENVOY_SIZE && strspn(envoy, "0123456789.") == strlen(envoy));
    if (!consul_read_self(self, strlen(envoy) > 4, values, pairs, &count))
        return;
    check(count > 0 && count <= CONSUL_ATTRIBUTES_MAX);
    for (size_t i = 0; i < count; i++)
        check(*pairs[i].key != '\0' && strlen(pairs[i].value) < CONSUL_ATTRIBUTE_SIZE);
}

static void compare(json_t *wanted, json_t *services, const json_t *checks)
{
    const char *own = json_string_value(json_object_get(wanted, "ID"));
    json_t *there = json_object_get(services, own == NULL ? "" : own), *one;
    char alloc[UUID_TEXT_SIZE];
    const char *id;

    for (int tags = 0; tags < 2; tags++) {
        json_t *merged = consul_merge(wanted, there, tags != 0);

        (void)consul_is_same(wanted, services, checks, tags != 0);
        check(json_is_object(merged));
        json_decref(merged);
    }
    json_object_foreach(services, id, one)
    {
        (void)consul_is_ours(one, "4bc6d0f0-1111-2222-3333-444455556666");
        check(implies(consul_alloc_of(id, alloc), uuid_is_valid(alloc)));
    }
    json_object_foreach((json_t *)(uintptr_t)checks, id, one)
        check(consul_status_of(one) <= CONSUL_CRITICAL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    json_t *wanted = next_object(&input), *services = next_object(&input);
    json_t *checks = next_object(&input), *self = next_object(&input);

    read_self(self);
    compare(wanted, services, checks);
    json_decref(wanted);
    json_decref(services);
    json_decref(checks);
    json_decref(self);
    return 0;
}
