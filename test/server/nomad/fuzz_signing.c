/*
 * What a server answers who is asked to sign identities, as values of its message in JSON.
 *
 * Whoever asks hears once: a good token of each identity, or why there is none, in a text.
 */
#include "test/fuzz.h"

#include "server/nomad/part.h"
#include "spec/names.h"

#define ALLOC "11111111-1111-4111-8111-111111111111"

enum { BEARERS = 3 };

static nomad_reply_cb *reply_cb;
static void *reply_ctx;

static void on_call(void *ctx, const char *server, const char *method, const json_t *args,
                    uint64_t timeout_ms, nomad_reply_cb *cb, void *cb_ctx)
{
    (void)ctx;
    check(server[0] != '\0' && timeout_ms > 0 && text_equal(method, "Alloc.SignIdentities"));
    check(json_array_size(json_object_get(args, "Identities")) == BEARERS);
    reply_cb = cb;
    reply_ctx = cb_ctx;
}

static void on_line(void *ctx, enum say_level level, const char *room, const char *text)
{
    (void)ctx;
    (void)level;
    (void)room;
    check(text_is_utf8(text, strlen(text)));
}

static void on_heard(struct nomad *nomad)
{
    check(nomad->signing == NULL);
}

static void on_signed(void *ctx, const struct spec_signed *tokens, const struct err *err)
{
    ++*(int *)ctx;
    check(tokens != NULL || (err->text[0] != '\0' && text_is_utf8(err->text, strlen(err->text))));
    check(implies(tokens != NULL, err->code == 0));
    for (size_t i = 0; tokens != NULL && i < BEARERS; i++)
        check(spec_is_token(tokens[i].token) && tokens[i].expires_unix_ns >= 0);
}

int LLVMFuzzerInitialize(int *arguments_count, char ***arguments)
{
    (void)arguments_count;
    (void)arguments;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct spec_bearer bearers[BEARERS] = {
        {"aws", "web", NULL}, {"aws", "db", NULL}, {"consul", "${x}", "front"}};
    json_t *reply = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);
    struct nomad nomad = {
        .config = {.call = on_call, .say = {on_line, NULL}, .region = "global", .secret = "s"},
        .servers = {"a:4647"},
        .servers_count = 1,
        .heard = on_heard};
    int heard = 0;

    if (!json_is_object(reply)) {
        json_decref(reply);
        return 0;
    }
    nomad_sign(&nomad, ALLOC, 7, bearers, BEARERS, on_signed, &heard);
    check(heard == 0);
    reply_cb(reply_ctx, reply, NULL);
    check(heard == 1);
    json_decref(reply);
    return 0;
}
