/*
 * What the machine of a plugin asks: whether it answers, and who it is.
 *
 * A question is one call, or several, one behind the other; the first that fails is the answer.
 * What will not be otherwise the next time is not recoverable: another kind of plugin, another
 * interface, a configuration that does not fit.
 */
#include "plugins/part.h"

#include "plugins/protocol/plugin.pb-c.h"
#include "plugins/protocol/read.h"
#include "plugins/protocol/schema.h"
#include "spec/constraint.h"

#include <stdlib.h>
#include <string.h>

#define BASE "/hashicorp.nomad.plugins.base.proto.BasePlugin/"

static const char api_version[] = "v0.1.0";

enum {
    ASK_MS = 5000,
    CONFIGURE_MS = 20 * 1000, /* all of it stays below the limit of its machine */
    TYPE_DRIVER = 2,
    TYPE_DEVICE = 3,
    SERVING = 1,
    VERSIONS_MAX = 64,
    SHORT_BYTES_MAX = 16 << 10,
};

void question_end(struct question *question, const struct started *started, const struct err *err)
{
    struct question told = *question;

    question->cb = NULL;
    question->call = NULL;
    if (told.call != NULL)
        grpc_cancel(told.call);
    if (told.cb != NULL)
        told.cb(told.ctx, started, &told.identity, err);
}

static void fail(struct question *question, const struct err *err, bool recoverable)
{
    struct err told;

    (void)err_set(&told, err->code, "%s: %s", question->method, err->text); /* only to be filled */
    told.recoverable = recoverable;
    question_end(question, NULL, &told);
}

void question_call(struct question *question, const char *method, const void *message,
                   size_t length, uint64_t timeout_ms, size_t bytes_max,
                   void (*cb)(void *ctx, const struct grpc_reply *reply))
{
    struct err err = {0};
    const struct grpc_call call = {
        .unix_socket = process_socket(question->plugin->process),
        .method = method,
        .message = message,
        .message_length = length,
        .timeout_ms = timeout_ms,
        .answer_bytes_max = bytes_max,
        .cb = cb,
        .ctx = question,
    };

    question->method = strrchr(method, '/') + 1;
    question->call = grpc_start(question->plugin->plugins->loop, &call, &err);
    if (question->call == NULL)
        fail(question, &err, true);
}

/* True if QUESTION goes on by what REPLY says. */
static bool goes_on(struct question *question, const struct grpc_reply *reply)
{
    if (question->cb == NULL)
        return false; /* it is over, and its call was ended with it */
    question->call = NULL;
    if (reply->status == GRPC_OK)
        return true;
    fail(question, &reply->error, true);
    return false;
}

static struct question *begin(struct plugins *plugins, const char *name, plugin_asked *cb,
                              void *ctx)
{
    struct plugin_held *plugin = held_find(plugins, name);
    struct err err;

    if (plugin != NULL && process_socket(plugin->process)[0] != '\0') {
        (void)err_set(&err, ERR_CANCELED, "something else is asked"); /* only to be filled */
        question_end(&plugin->question, NULL, &err);
        plugin->question.cb = cb;
        plugin->question.ctx = ctx;
        plugin->question.identity = (struct plugin_identity){0};
        return &plugin->question;
    }
    (void)err_set(&err, ERR_GONE, "plugin \"%.100s\" does not run", name); /* only to be filled */
    err.recoverable = true;
    cb(ctx, NULL, NULL, &err);
    return NULL;
}

/* --- whether it answers --- */

/* That it tells no more of its devices is said once: it is followed again when it is asked who it
 * is. */
static void on_health(void *ctx, const struct grpc_reply *reply)
{
    struct question *question = ctx;
    struct plugin_held *plugin = question->plugin;
    struct arena arena = {0};
    struct err err = {0};

    if (!goes_on(question, reply))
        return;
    struct reading from = reading_begin(&arena, &err);
    const Wire__HealthAnswer *answer = reading_unpack(&from, &wire__health_answer__descriptor,
                                                      reply->message, reply->message_length);
    if (answer != NULL && answer->status != SERVING)
        (void)err_set(&err, ERR_REFUSED, "it says that it does not serve"); /* likewise */
    arena_free(&arena);
    if (err.code == 0 && plugin->untold.code != 0) {
        err = plugin->untold;
        plugin->untold = (struct err){0};
        question->method = "Fingerprint";
    }
    if (err.code != 0)
        fail(question, &err, true);
    else
        question_end(question, NULL, NULL);
}

void plugins_probe(struct plugins *plugins, const char *name, plugin_asked *cb, void *ctx)
{
    static const char plugin[] = "\n\006plugin"; /* the service that it is asked for */
    struct question *question = begin(plugins, name, cb, ctx);

    if (question != NULL)
        question_call(question, "/grpc.health.v1.Health/Check", plugin, sizeof(plugin) - 1, ASK_MS,
                      SHORT_BYTES_MAX, on_health);
}

/* --- who it is --- */

static void is_configured(struct question *question)
{
    plugin_follow(question->plugin);
    question_end(question, NULL, NULL);
}

static void on_configured(void *ctx, const struct grpc_reply *reply)
{
    struct question *question = ctx;

    if (question->cb != NULL && reply->status != GRPC_OK && reply->answered &&
        reply->status != GRPC_UNAVAILABLE) {
        question->call = NULL;
        fail(question, &reply->error, false);
        return;
    }
    if (!goes_on(question, reply))
        return;
    process_note_configured(question->plugin->process);
    is_configured(question);
}

/* An empty configuration is a map without anything, for those that read it unasked. */
static void configure(struct question *question, const char *bytes, size_t length)
{
    Wire__SetConfigRequest request = WIRE__SET_CONFIG_REQUEST__INIT;

    request.config = (ProtobufCBinaryData){length, (uint8_t *)(uintptr_t)bytes};
    request.api_version =
        (ProtobufCBinaryData){strlen(api_version), (uint8_t *)(uintptr_t)api_version};
    size_t size = wire__set_config_request__get_packed_size(&request);
    unsigned char *message = malloc(size + 1);
    check(message != NULL);
    check(wire__set_config_request__pack(&request, message) == size);
    question_call(question, BASE "SetConfig", message, size, CONFIGURE_MS, SHORT_BYTES_MAX,
                  on_configured);
    explicit_bzero(message, size);
    free(message);
}

static void on_schema(void *ctx, const struct grpc_reply *reply)
{
    struct question *question = ctx;
    const json_t *config = question->plugin->config;
    struct arena arena = {0};
    struct err err = {0};
    char *bytes = NULL;
    size_t length = 0;

    if (!goes_on(question, reply))
        return;
    struct reading from = reading_begin(&arena, &err);
    const Wire__SchemaAnswer *answer = reading_unpack(&from, &wire__schema_answer__descriptor,
                                                      reply->message, reply->message_length);
    if (answer != NULL && answer->spec.len > 0)
        (void)schema_encode(answer->spec.data, answer->spec.len, config, &bytes, &length, &err);
    else if (answer != NULL && json_object_size(config) > 0)
        (void)err_set(&err, ERR_INVALID, "it takes no configuration, and is given some");
    arena_free(&arena);
    if (err.code != 0)
        fail(question, &err, false);
    else
        configure(question, bytes == NULL ? "\x80" : bytes, bytes == NULL ? 1 : length);
    if (bytes != NULL)
        explicit_bzero(bytes, length);
    free(bytes);
}

static bool speaks(const Wire__InfoAnswer *answer)
{
    for (size_t i = 0; i < answer->n_api_versions && i < VERSIONS_MAX; i++) {
        if (answer->api_versions[i].len == strlen(api_version) &&
            memcmp(answer->api_versions[i].data, api_version, strlen(api_version)) == 0)
            return true;
    }
    return false;
}

/* Into RET_IDENTITY, if it is one that can be used. */
static int read_info(const struct grpc_reply *reply, struct plugin_identity *ret_identity,
                     struct err *err)
{
    struct arena arena = {0};
    struct reading from = reading_begin(&arena, err);
    const Wire__InfoAnswer *answer = reading_unpack(&from, &wire__info_answer__descriptor,
                                                    reply->message, reply->message_length);
    const char *name = "", *version = "";

    if (answer != NULL) {
        name = reading_needed(&from, answer->name, sizeof(ret_identity->provider) - 1, "its name");
        version =
            reading_text(&from, answer->version, sizeof(ret_identity->version) - 1, "its version");
    }
    if (from.code == 0 && answer->type != TYPE_DEVICE)
        from.code = err_set(err, ERR_UNSUPPORTED,
                            answer->type == TYPE_DRIVER
                                ? "it is a plugin for a driver, and those for devices are run"
                                : "it is no plugin for devices");
    if (from.code == 0 && !speaks(answer))
        from.code = err_set(err, ERR_UNSUPPORTED, "it does not speak version %s of the interface",
                            api_version);
    if (from.code == 0 && !constraint_is_version(version + (version[0] == 'v')))
        from.code = err_set(err, ERR_INVALID, "its version is none");
    if (from.code == 0) {
        check(text_copy(ret_identity->provider, sizeof(ret_identity->provider), name));
        check(text_copy(ret_identity->version, sizeof(ret_identity->version), version));
        text_clean(ret_identity->provider);
        text_clean(ret_identity->version);
    }
    arena_free(&arena);
    return from.code;
}

static void on_info(void *ctx, const struct grpc_reply *reply)
{
    struct question *question = ctx;
    struct err err = {0};

    if (!goes_on(question, reply))
        return;
    if (read_info(reply, &question->identity, &err) != 0)
        fail(question, &err, false);
    else if (process_is_configured(question->plugin->process))
        is_configured(question);
    else
        question_call(question, BASE "ConfigSchema", "", 0, ASK_MS, SCHEMA_BYTES_MAX, on_schema);
}

void plugins_identify(struct plugins *plugins, const char *name, plugin_asked *cb, void *ctx)
{
    struct question *question = begin(plugins, name, cb, ctx);

    if (question != NULL)
        question_call(question, BASE "PluginInfo", "", 0, ASK_MS, SHORT_BYTES_MAX, on_info);
}
