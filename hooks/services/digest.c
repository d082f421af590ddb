/* Ids of checks: nomad v2.0.5 nomad/structs/checks.go NomadCheckID, byte for byte, so that whoever
 * kept one finds it again. */
#include "hooks/services/part.h"

#include <nettle/sha2.h>
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

void services_check_id(const struct services_identity *identity, char to[CHECK_ID_SIZE])
{
    const struct spec_check *spec = identity->spec;
    uint8_t bytes[SHA256_DIGEST_SIZE];
    struct sha256_ctx digest;

    sha256_init(&digest);
    add(&digest, identity->alloc);
    add(&digest, identity->group);
    add(&digest, identity->task);
    add(&digest, identity->name);
    add(&digest, spec->type == CHECK_HTTP ? "http" : "tcp");
    add(&digest, identity->port);
    add(&digest, spec->ready_only ? "ignore" : "require_healthy");
    add(&digest, mode_of(spec));
    add_duration(&digest, spec->interval_ms);
    add_duration(&digest, spec->timeout_ms);
    add(&digest, identity->protocol);
    add(&digest, identity->path);
    add(&digest, identity->method);
    add(&digest, spec->tls_skip_verify ? "true" : "false");
    sha256_digest(&digest, sizeof(bytes), bytes);
    for (size_t i = 0; i < sizeof(bytes); i++)
        (void)text_format(to + 2 * i, 3, "%02x", bytes[i]); /* fits */
}
