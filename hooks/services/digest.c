/* Ids of checks, byte for byte, so that whoever kept one finds it again: nomad v2.0.5
 * nomad/structs/checks.go NomadCheckID, and for Consul nomad/structs/services.go
 * ServiceCheck.Hash. */
#include "hooks/services/part.h"

#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

static void add(struct sha256_ctx *digest, const char *text)
{
    sha256_update(digest, strlen(text), (const uint8_t *)text);
}

static void add_duration(struct sha256_ctx *digest, uint64_t ms)
{
    uint8_t bytes[WIRE_NUMBER];

    wire_number(bytes, ms * 1000000); /* as limits of durations have it, no overflow */
    sha256_update(digest, sizeof(bytes), bytes);
}

static const char *mode_of(const struct spec_check *check)
{
    static const char *const names[] = {
        [ADDRESS_AUTO] = "auto", [ADDRESS_HOST] = "host", [ADDRESS_ALLOC] = "alloc"};

    return check->has_address_mode ? names[check->address_mode] : "";
}

static void write_digest(struct sha256_ctx *digest, char to[CHECK_ID_SIZE])
{
    uint8_t bytes[SHA256_DIGEST_SIZE];

    sha256_digest(digest, sizeof(bytes), bytes);
    for (size_t i = 0; i < sizeof(bytes); i++)
        (void)text_format(to + 2 * i, 3, "%02x", bytes[i]); /* fits */
}

void services_check_id(const struct services_identity *identity, char to[CHECK_ID_SIZE])
{
    const struct spec_check *spec = identity->spec;
    struct sha256_ctx digest;

    sha256_init(&digest);
    add(&digest, identity->alloc);
    add(&digest, identity->group);
    add(&digest, identity->task);
    add(&digest, identity->texts->name);
    add(&digest, spec->type == CHECK_HTTP ? "http" : "tcp");
    add(&digest, identity->texts->port);
    add(&digest, spec->ready_only ? "ignore" : "require_healthy");
    add(&digest, mode_of(spec));
    add_duration(&digest, spec->interval_ms);
    add_duration(&digest, spec->timeout_ms);
    add(&digest, identity->texts->protocol);
    add(&digest, identity->texts->path);
    add(&digest, identity->texts->method);
    add(&digest, spec->tls_skip_verify ? "true" : "false");
    write_digest(&digest, to);
}

/* --- of Consul --- */

static void add_count(struct sha256_ctx *digest, const char *name, uint32_t count)
{
    char text[64];

    if (count == 0)
        return;
    (void)text_format(text, sizeof(text), "%s:%u", name, count); /* fits */
    add(digest, text);
}

static void add_time(struct sha256_ctx *digest, uint64_t ms)
{
    char text[40];

    text_from_duration_ns(text, sizeof(text), (int64_t)ms * 1000000); /* as limits have it */
    add(digest, text);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Each name with all of its values behind it, in the order of these texts. */
static void add_headers(struct sha256_ctx *digest, const json_t *headers)
{
    char *all[SPEC_CHECK_HEADERS_MAX];
    size_t count = 0, i;
    const char *last = NULL;
    json_t *pair;

    json_array_foreach(headers, i, pair)
    {
        const char *name = json_string_value(json_array_get(pair, 0));
        const char *value = json_string_value(json_array_get(pair, 1));
        bool goes_on = last != NULL && text_equal(last, name);
        const char *before = goes_on ? all[count - 1] : name;
        size_t size = strlen(before) + strlen(value) + 1;
        char *text = malloc(size);

        check(text != NULL && (goes_on || count < SPEC_CHECK_HEADERS_MAX));
        (void)text_format(text, size, "%s%s", before, value); /* made to fit */
        if (goes_on)
            free(all[--count]);
        all[count++] = text;
        last = name;
    }
    if (count > 0)
        qsort(all, count, sizeof(all[0]), by_text);
    for (i = 0; i < count; i++) {
        add(digest, all[i]);
        free(all[i]);
    }
}

void services_consul_check_id(const char *service_id, const struct spec_check *spec,
                              const struct check_texts *texts, char to[CHECK_ID_SIZE])
{
    static const char *const types[] = {[CHECK_HTTP] = "http",
                                        [CHECK_TCP] = "tcp",
                                        [CHECK_GRPC] = "grpc",
                                        [CHECK_SCRIPT] = "script"};
    struct sha256_ctx digest;

    sha256_init(&digest);
    add(&digest, service_id);
    add(&digest, texts->name);
    add(&digest, types[spec->type]);
    add(&digest, texts->command);
    for (size_t i = 0; i < texts->arguments.count; i++)
        add(&digest, texts->arguments.items[i]);
    add(&digest, texts->path);
    add(&digest, texts->protocol);
    add(&digest, texts->port);
    add_time(&digest, spec->interval_ms);
    add_time(&digest, spec->timeout_ms);
    add(&digest, texts->method);
    add(&digest, spec->body);
    add(&digest, spec->ready_only      ? "ignore"
                 : spec->warnings_pass ? "ignore_warnings"
                                       : "require_healthy");
    add(&digest, texts->notes);
    add(&digest, spec->tls_skip_verify ? "true" : "");
    add(&digest, spec->tls_server_name);
    add_headers(&digest, texts->headers);
    add(&digest, mode_of(spec));
    add(&digest, texts->grpc_service);
    add(&digest, spec->grpc_tls ? "true" : "");
    add_count(&digest, "success", spec->before_passing);
    add_count(&digest, "failures", spec->before_critical);
    add_count(&digest, "failures-before-warning", spec->before_warning);
    write_digest(&digest, to);
}
