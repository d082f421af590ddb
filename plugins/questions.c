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
#define DRIVER "/hashicorp.nomad.plugins.drivers.proto.Driver/"

static const char api_version[] = "v0.1.0";

enum {
    ASK_MS = 5000,
    CONFIGURE_MS = 12 * 1000, /* all of it is to stay below the limit of its machine */
    PORT_FIRST = 14000,       /* what Nomad gives, for drivers that listen on some */
    PORT_LAST = 14512,
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
    question->plugin->is_known |= !recoverable;
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

/* --- a driver says more --- */

static void on_capabilities(void *ctx, const struct grpc_reply *reply)
{
    struct question *question = ctx;
    struct plugin_drives *drives = question->plugin->drives;
    struct err err = {0};

    if (!goes_on(question, reply))
        return;
    if (driver_read_capabilities(reply->message, reply->message_length, &drives->capabilities,
                                 &err) != 0) {
        fail(question, &err, false);
        return;
    }
    drives_keep(question->plugin, reply->message, reply->message_length);
    is_configured(question);
}

static void on_task_schema(void *ctx, const struct grpc_reply *reply)
{
    struct question *question = ctx;
    struct plugin_drives *drives = question->plugin->drives;
    struct err err = {0};
    size_t length = 0;
    char *schema;

    if (!goes_on(question, reply))
        return;
    if (driver_read_schema(reply->message, reply->message_length, &schema, &length, &err) != 0) {
        fail(question, &err, false);
        return;
    }
    free(drives->schema);
    drives->schema = schema;
    drives->schema_length = length;
    question_call(question, DRIVER "Capabilities", "", 0, ASK_MS, SHORT_BYTES_MAX, on_capabilities);
}

/* What it is has been asked, and it has its configuration. */
static void go_on(struct question *question)
{
    if (question->plugin->drives == NULL)
        is_configured(question);
    else
        question_call(question, DRIVER "TaskConfigSchema", "", 0, ASK_MS, SCHEMA_BYTES_MAX,
                      on_task_schema);
}

/* --- its configuration --- */

static void configured(struct question *question)
{
    process_note(question->plugin->process, PROCESS_IS_CONFIGURED);
    go_on(question);
}

/* Those before 2.0.4 know nothing of it. */
static void on_begun(void *ctx, const struct grpc_reply *reply)
{
    struct question *question = ctx;

    if (question->cb != NULL && reply->status == GRPC_UNIMPLEMENTED)
        question->call = NULL;
    else if (!goes_on(question, reply))
        return;
    configured(question);
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
    if (question->plugin->drives == NULL)
        configured(question);
    else
        question_call(question, DRIVER "Init", "", 0, ASK_MS, SHORT_BYTES_MAX, on_begun);
}

/* The processors of the host, all in one place: drivers add up what they can. */
static void set_topology(Wire__HostDriverConfig *to, const struct plugins *plugins,
                         struct arena *arena)
{
    Wire__HostTopology *topology = arena_new(arena, sizeof(*topology));
    Wire__HostCore *cores = arena_new(arena, (plugins->cores + 1) * sizeof(*cores));

    *topology = (Wire__HostTopology)WIRE__HOST_TOPOLOGY__INIT;
    topology->nodes = arena_new(arena, sizeof(*topology->nodes)); /* number 0 */
    topology->n_nodes = 1;
    topology->cores = arena_new(arena, (plugins->cores + 1) * sizeof(*topology->cores));
    topology->n_cores = plugins->cores;
    for (uint32_t i = 0; i < plugins->cores; i++) {
        cores[i] = (Wire__HostCore)WIRE__HOST_CORE__INIT;
        cores[i].id = i;
        cores[i].mhz = plugins->core_mhz;
        topology->cores[i] = &cores[i];
    }
    to->topology = topology;
}

/* An empty configuration is a map without anything, for those that read it unasked. */
static void configure(struct question *question, const char *bytes, size_t length)
{
    Wire__SetConfigRequest request = WIRE__SET_CONFIG_REQUEST__INIT;

    Wire__HostConfig host = WIRE__HOST_CONFIG__INIT;
    Wire__HostDriverConfig drivers = WIRE__HOST_DRIVER_CONFIG__INIT;
    struct arena arena = {0};

    drivers.port_last = PORT_LAST;
    drivers.port_first = PORT_FIRST;
    set_topology(&drivers, question->plugin->plugins, &arena);
    host.driver = &drivers;
    request.host = &host;
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
    arena_free(&arena);
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
                     bool *ret_drives, struct err *err)
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
    if (from.code == 0 && answer->type != TYPE_DEVICE && answer->type != TYPE_DRIVER)
        from.code =
            err_set(err, ERR_UNSUPPORTED, "it is a plugin neither for devices nor for a driver");
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
        *ret_drives = answer->type == TYPE_DRIVER;
    }
    arena_free(&arena);
    return from.code;
}

/* The driver NAME is this plugin's, and nobody else's. */
static int check_driver(const struct plugin_held *plugin, const char *name, struct err *err)
{
    const struct plugins *plugins = plugin->plugins;
    const char *fault =
        plugins->driver_fault == NULL ? NULL : plugins->driver_fault(plugins->ctx, name);
    struct plugin_driver other;

    if (!driver_name_is_good(name))
        return err_set(err, ERR_INVALID,
                       "the name of its driver is to be of letters, digits, _ and -");
    if (fault != NULL)
        return err_set(err, ERR_EXISTS, "driver \"%s\": %s", name, fault);
    if (plugins_find_driver(plugins, name, &other) && !text_equal(other.plugin, plugin->name))
        return err_set(err, ERR_EXISTS, "driver \"%s\" is plugin \"%s\" already", name,
                       other.plugin);
    return 0;
}

static void on_info(void *ctx, const struct grpc_reply *reply)
{
    struct question *question = ctx;
    struct plugin_held *plugin = question->plugin;
    const struct plugin_identity *identity = &question->identity;
    bool drives = false;
    struct err err = {0};

    if (!goes_on(question, reply))
        return;
    if (read_info(reply, &question->identity, &drives, &err) != 0 ||
        (drives && check_driver(plugin, identity->provider, &err) != 0)) {
        fail(question, &err, false);
        return;
    }
    plugin->is_known = true;
    if (drives) {
        process_note(plugin->process, PROCESS_LEAVES_TASKS);
        drives_begin(plugin, identity);
    } else {
        drives_forget(plugin);
    }
    if (process_is(plugin->process, PROCESS_IS_CONFIGURED))
        go_on(question);
    else
        question_call(question, BASE "ConfigSchema", "", 0, ASK_MS, SCHEMA_BYTES_MAX, on_schema);
}

void plugins_identify(struct plugins *plugins, const char *name, plugin_asked *cb, void *ctx)
{
    struct question *question = begin(plugins, name, cb, ctx);

    if (question != NULL)
        question_call(question, BASE "PluginInfo", "", 0, ASK_MS, SHORT_BYTES_MAX, on_info);
}
