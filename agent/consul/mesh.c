#include "agent/consul/mesh.h"

#include "agent/consul/reach.h"
#include "agent/parts.h"
#include "base/list.h"
#include "fsm/policy.h"
#include "hooks/consul/consul.h"
#include "io/log.h"
#include "io/relay.h"
#include "server/nomad/nomad.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uthash.h>
#include <utlist.h>

enum {
    GRPC_PORT = 8502,   /* Consul's own */
    SOCKET_MODE = 0666, /* nobody else gets to the alloc's directory */
    TARGET_SIZE = 300,
    DERIVE_AGAIN_MS = 1000, /* doubled each time, up to the next */
    DERIVE_AGAIN_MAX_MS = 20 * 1000,
    DERIVE_ALL_MS = 4 * 60 * 1000, /* less than a hook may take */
};

/* The sockets of an alloc. */
struct gate {
    char alloc[UUID_TEXT_SIZE];
    struct relay *grpc, *http; /* NULL: it has none */
    UT_hash_handle hh;
};

/* An alloc to be looked at. */
struct noted {
    char alloc[UUID_TEXT_SIZE];
    bool wanted;
};

/* A token that is asked for. */
struct derivation {
    struct mesh *mesh;
    char alloc[UUID_TEXT_SIZE];
    char task[SPEC_NAME_SIZE];
    uint64_t waited_ms, after_ms;
    struct io_timer timer;
    hooks_derived *done;
    void *ctx;
    struct derivation *prev, *next;
};

struct mesh {
    struct parts *parts;
    struct consul_config config;
    struct consul_tokens *tokens; /* NULL until the first is asked for */
    struct hooks_connect connect;
    char envoy[CONSUL_ENVOY_SIZE]; /* "": not known yet */
    char grpc[TARGET_SIZE], http[TARGET_SIZE];
    struct gate *gates; /* by alloc */
    size_t sockets;
    struct {
        struct noted *items;
        size_t count, size;
    } noted;
    struct derivation *derivations;
    bool derives_none; /* the servers are of Nomad 1.10 or newer, and know of no such token */
};

/* --- where Consul is --- */

/* HOST:PORT or "unix:PATH", of ADDRESS as the configuration has it. */
static bool find_target(const char *address, char to[TARGET_SIZE])
{
    static const char unix_scheme[] = "unix://";
    static const char *const schemes[] = {"http://", "https://"};

    if (text_starts_with(address, unix_scheme))
        return text_format(to, TARGET_SIZE, "unix:%s", address + strlen(unix_scheme));
    for (size_t i = 0; i < COUNT_OF(schemes); i++) {
        if (text_starts_with(address, schemes[i]))
            address += strlen(schemes[i]);
    }
    return text_copy(to, TARGET_SIZE, address);
}

/* The port PORT of the host of HTTP; of one that is asked by a socket, on this host. */
static void aim_grpc(struct mesh *mesh, unsigned port)
{
    const struct config_consul *config = &mesh->parts->config->consul;
    const char *colon = strrchr(mesh->http, ':');

    if (config->grpc_address[0] != '\0') {
        check(find_target(config->grpc_address, mesh->grpc));
        return;
    }
    if (config->socket[0] != '\0')
        (void)text_format(mesh->grpc, sizeof(mesh->grpc), "127.0.0.1:%u", port); /* fits */
    else
        check(text_format(mesh->grpc, sizeof(mesh->grpc), "%.*s:%u",
                          colon == NULL ? (int)strlen(mesh->http) : (int)(colon - mesh->http),
                          mesh->http, port)); /* an address is shorter */
}

static unsigned port_in(const struct spec_pairs *attributes)
{
    uint64_t port;

    for (size_t i = 0; i < attributes->count; i++) {
        if (text_equal(attributes->items[i].key, "consul.grpc") &&
            text_to_u64(attributes->items[i].value, &port) && port > 0 && port <= UINT16_MAX)
            return (unsigned)port;
    }
    return GRPC_PORT;
}

void mesh_found(struct mesh *mesh, const struct spec_pairs *attributes, const char *envoy)
{
    check(text_copy(mesh->envoy, sizeof(mesh->envoy), envoy));
    aim_grpc(mesh, port_in(attributes));
    for (struct gate *gate = mesh->gates; gate != NULL; gate = gate->hh.next) {
        if (gate->grpc != NULL)
            relay_aim(gate->grpc, mesh->grpc);
    }
}

static const char *envoy(void *ctx)
{
    const struct mesh *mesh = ctx;

    return mesh->envoy[0] == '\0' ? NULL : mesh->envoy;
}

/* --- tokens --- */

static void ask(struct io_timer *timer);

static void end_derivation(struct derivation *one, const char *token, const struct err *err)
{
    DL_DELETE(one->mesh->derivations, one);
    io_timer_stop(&one->timer);
    one->done(one->ctx, token, err);
    free(one);
}

static void on_reply(void *ctx, const json_t *reply, const struct err *why)
{
    struct derivation *one = ctx;
    const json_t *failed = json_object_get(reply, "Error");
    const char *token =
        json_string_value(json_object_get(json_object_get(reply, "Tokens"), one->task));
    struct err err = {0};

    if (reply == NULL && policy_is_not_asked(why->code, why->text)) {
        one->mesh->derives_none = true;
        end_derivation(one, NULL, NULL);
        return;
    }
    if (reply == NULL && policy_may_answer_later(why->code, why->text) &&
        one->waited_ms < DERIVE_ALL_MS) {
        one->waited_ms += one->after_ms;
        io_timer_start(one->mesh->parts->loop, &one->timer, loop_now_ms() + one->after_ms, ask,
                       one);
        one->after_ms *= one->after_ms * 2 <= DERIVE_AGAIN_MAX_MS ? 2 : 1;
        return;
    }
    if (reply == NULL) {
        err = *why;
        err.recoverable = policy_may_answer_later(why->code, why->text);
    } else if (json_is_object(failed)) {
        const char *text = json_string_value(json_object_get(failed, "Err"));

        (void)err_set(&err, ERR_REFUSED, "%.200s", text == NULL ? "" : text); /* as below */
        err.recoverable = json_is_true(json_object_get(failed, "Recoverable"));
    } else if (token == NULL || token[0] == '\0') {
        (void)err_set(&err, ERR_CORRUPT, "the servers have sent none");
    }
    end_derivation(one, err.code == 0 ? token : NULL, err.code == 0 ? NULL : &err);
}

static void ask(struct io_timer *timer)
{
    struct derivation *one = timer->ctx;
    struct parts *parts = one->mesh->parts;
    const char *secret = parts->node.identity.secret;
    json_t *args = json_pack("{s:s, s:s, s:s, s:[s]}", "NodeID", parts->node.identity.id,
                             "SecretID", secret, "AllocID", one->alloc, "Tasks", one->task);

    check(args != NULL);
    nomad_ask(parts->nomad, "Node.DeriveSIToken", args, secret, 0, on_reply, one);
}

static void derive(void *ctx, const char *alloc, const char *task, hooks_derived *done,
                   void *done_ctx)
{
    struct mesh *mesh = ctx;
    struct derivation *one;

    if (mesh->parts->nomad == NULL || mesh->derives_none) {
        done(done_ctx, NULL, NULL);
        return;
    }
    one = calloc(1, sizeof(*one));
    check(one != NULL);
    one->mesh = mesh;
    one->after_ms = DERIVE_AGAIN_MS;
    one->done = done;
    one->ctx = done_ctx;
    check(text_copy(one->alloc, sizeof(one->alloc), alloc) &&
          text_copy(one->task, sizeof(one->task), task));
    DL_APPEND(mesh->derivations, one);
    io_timer_start(mesh->parts->loop, &one->timer, loop_now_ms(), ask, one);
}

static struct consul_tokens *tokens_of(struct mesh *mesh)
{
    if (mesh->tokens == NULL) {
        mesh->config = reach_consul(mesh->parts);
        mesh->tokens = consul_tokens_new(&mesh->config);
    }
    return mesh->tokens;
}

static void login(void *ctx, const struct hooks_login *login, hooks_derived *done, void *done_ctx)
{
    struct mesh *mesh = ctx;
    const struct config_consul *config = &mesh->parts->config->consul;
    char who[SPEC_SERVICE_TEXT_SIZE + 32];

    (void)text_format(who, sizeof(who), "nomad_%s_%s", login->of_service ? "service" : "task",
                      login->bearer); /* a name is shorter */
    consul_login(tokens_of(mesh),
                 login->of_service ? config->service_auth_method : config->task_auth_method,
                 login->jwt, who, done, done_ctx);
}

static void logout(void *ctx, const char *token, hooks_derived *done, void *done_ctx)
{
    consul_logout(tokens_of(ctx), token, done, done_ctx);
}

/* --- sockets --- */

static void open_socket(struct mesh *mesh, const char *alloc, int directory, const char *name,
                        const char *target, struct relay **relay)
{
    const struct http_admission admits = {.mode = SOCKET_MODE, .gives = false, .uid = 0, .gid = 0};
    struct err err = {0};
    int code = mesh->sockets < MESH_SOCKETS_MAX
                   ? relay_open(mesh->parts->loop, directory, name, &admits, target,
                                MESH_CONNECTIONS_MAX, relay, &err)
                   : err_set(&err, ERR_LIMIT, "this node has %d of them", MESH_SOCKETS_MAX);

    if (code == 0)
        mesh->sockets++;
    else
        log_warn("consul",
                 "an alloc does not reach it from its network alloc=%s socket=%s error=%s", alloc,
                 name, log_value(err.text));
}

static void open_gate(struct mesh *mesh, const char *id)
{
    struct err err = {0};
    const struct alloc_spec *alloc = specs_find(mesh->parts->specs, id, &err);
    int directory;

    if (alloc == NULL || (!hooks_wants_grpc(alloc) && !hooks_wants_http(alloc)))
        return;
    if (hooks_open_shared_tmp(mesh->parts->hooks, id, &directory, &err) != 0) {
        log_warn("consul", "an alloc does not reach it from its network alloc=%s error=%s", id,
                 log_value(err.text));
        return;
    }
    struct gate *gate = calloc(1, sizeof(*gate));
    check(gate != NULL && text_copy(gate->alloc, sizeof(gate->alloc), id));
    if (hooks_wants_grpc(alloc))
        open_socket(mesh, id, directory, HOOKS_GRPC_SOCKET, mesh->grpc, &gate->grpc);
    if (hooks_wants_http(alloc))
        open_socket(mesh, id, directory, HOOKS_HTTP_SOCKET, mesh->http, &gate->http);
    (void)close(directory); /* nothing was written to it */
    HASH_ADD_STR(mesh->gates, alloc, gate);
}

static void close_gate(struct mesh *mesh, struct gate *gate)
{
    mesh->sockets -= (size_t)(gate->grpc != NULL) + (size_t)(gate->http != NULL);
    relay_close(gate->grpc);
    relay_close(gate->http);
    HASH_DEL(mesh->gates, gate);
    free(gate);
}

void mesh_note(struct mesh *mesh, const struct journal_event *event)
{
    if (mesh == NULL || event->id.kind != MACHINE_ALLOC)
        return;
    bool wanted = policy_has_mesh(event->after);
    bool is_restore = event->event.kind == AE_RESTORE;
    if (wanted == policy_has_mesh(event->before) && !is_restore)
        return;
    struct noted *noted = list_more(&mesh->noted);
    noted->wanted = wanted;
    check(text_copy(noted->alloc, sizeof(noted->alloc), event->id.text));
}

void mesh_settle(struct mesh *mesh)
{
    if (mesh == NULL)
        return;
    for (size_t i = 0; i < mesh->noted.count; i++) {
        const struct noted *noted = &mesh->noted.items[i];
        struct gate *gate;

        HASH_FIND_STR(mesh->gates, noted->alloc, gate);
        if (noted->wanted && gate == NULL)
            open_gate(mesh, noted->alloc);
        else if (!noted->wanted && gate != NULL)
            close_gate(mesh, gate);
    }
    mesh->noted.count = 0;
    list_release(&mesh->noted);
}

/* --- the beginning and the end --- */

const struct hooks_connect *mesh_connect(const struct mesh *mesh)
{
    return mesh == NULL ? NULL : &mesh->connect;
}

struct mesh *mesh_new(struct parts *parts)
{
    const struct config_consul *config = &parts->config->consul;
    struct mesh *mesh;

    if (!config->used)
        return NULL;
    mesh = calloc(1, sizeof(*mesh));
    check(mesh != NULL);
    mesh->parts = parts;
    mesh->connect = (struct hooks_connect){
        .ctx = mesh,
        .address = config->address,
        .token = config->token,
        .ssl = text_starts_with(config->url, "https:"),
        .verifies = config->verify_ssl,
        .ca_file = config->ca_file,
        .cert_file = config->cert_file,
        .key_file = config->key_file,
        .grpc_ca_file = config->grpc_ca_file,
        .shares_files = config->share_ssl,
        .envoy = envoy,
        .derive = derive,
        .login = login,
        .logout = logout,
    };
    check(find_target(config->address, mesh->http)); /* an address is shorter */
    aim_grpc(mesh, GRPC_PORT);
    return mesh;
}

void mesh_free(struct mesh *mesh)
{
    struct gate *gate, *next;
    struct derivation *one, *after;

    if (mesh == NULL)
        return;
    HASH_ITER(hh, mesh->gates, gate, next)
    {
        close_gate(mesh, gate);
    }
    DL_FOREACH_SAFE(mesh->derivations, one, after)
    {
        io_timer_stop(&one->timer); /* whoever waited is gone, and so are the servers */
        free(one);
    }
    list_release(&mesh->noted);
    consul_tokens_free(mesh->tokens);
    free(mesh);
}
