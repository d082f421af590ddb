/*
 * Hook network: what an alloc has of a network that is not the host's.
 *
 * It is made before the tasks of the alloc and removed behind them.  Each start of a task asks for
 * it again, as for its directory: after a reboot the first of them makes it anew, and what it is
 * then (its address may be another one) is kept with that task.  A group that shares the host's
 * network has the hook, too, if it says how names are found.
 */
#include "hooks/network/cni.h"
#include "hooks/network/network.h"
#include "hooks/network/versions.h"
#include "hooks/part.h"
#include "io/program.h"
#include "spec/constraint.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const char status_key[] = "status";

static int make(const struct hook_request *request, json_t **ret_status, struct err *err)
{
    if (request->network == NULL || !request->privileged)
        return err_set(err, ERR_UNSUPPORTED,
                       "networks of allocs are made by an agent that is root");
    return network_make(request->network, request->alloc, request->order, ret_status, err);
}

int hooks_network_make(const struct hook_request *request, struct err *err)
{
    json_t *status = NULL;
    int code = make(request, &status, err);

    json_decref(status);
    return code;
}

int hooks_network_join(const struct hook_request *request, struct err *err)
{
    json_t *status = NULL;
    int code = make(request, &status, err);

    if (code == 0) {
        scoped_string char *text = json_dumps(status, JSON_COMPACT);

        check(text != NULL);
        if (results_set(request->results, TASK_HOOK_NETWORK, RESULT_DATA, status_key, text,
                        (uint32_t)strlen(text)) != 0)
            code = err_set(err, ERR_LIMIT, "there is more to tell of it than a record holds");
    }
    json_decref(status);
    return code;
}

int hooks_network_check(const struct hook_request *request, struct err *err)
{
    char remark[ERR_TEXT_SIZE] = "";
    int code =
        request->network == NULL || !request->privileged
            ? 0
            : network_check(request->network, request->alloc, request->asks_plugins, remark, err);

    if (code != 0)
        return code;
    if (remark[0] == '\0')
        return 0;
    (void)err_set(err, ERR_IO, "%s", remark); /* and no failure */
    return HOOK_REMARK;
}

int hooks_network_remove(const struct hook_request *request, struct err *err)
{
    return request->network == NULL ? 0 : network_remove(request->network, request->alloc, err);
}

/* --- what there is --- */

json_t *hooks_network_status(const uint8_t *results, uint32_t bytes)
{
    struct result result;

    for (uint32_t at = 0; results_next(results, bytes, &at, &result);) {
        if (result.hook == TASK_HOOK_NETWORK && result.kind == RESULT_DATA &&
            text_equal(result.key, status_key))
            return json_loadb(result.value, result.value_length, 0, NULL);
    }
    return NULL;
}

int hooks_each_network(const struct hooks *hooks, void (*cb)(void *ctx, const char *alloc_id),
                       void *ctx, struct err *err)
{
    return hooks->network == NULL ? 0 : network_each(hooks->network, cb, ctx, err);
}

/* Asked when a group first wants one: a restart does not wait for a namespace to be made. */
static bool knows_bridges(struct hooks *hooks)
{
    if (!hooks->asked_kernel)
        hooks->knows_bridges = netns_knows_bridges();
    hooks->asked_kernel = true;
    return hooks->knows_bridges;
}

bool hooks_has_network(struct hooks *hooks, const char *mode)
{
    static const char *const plugins[] = {"loopback", "bridge", "host-local", "firewall",
                                          "portmap"};
    const struct hooks_network *network = hooks->network;
    char program[PATH_SIZE];
    json_t *list = NULL;
    bool there = true;

    if (text_equal(mode, "") || text_equal(mode, "host"))
        return true;
    if (network == NULL || !hooks->privileged)
        return false;
    if (text_equal(mode, "none"))
        return true;
    if (!text_equal(mode, "bridge")) {
        there = cni_list(network, mode, &list, NULL) == 0;
        json_decref(list);
        return there;
    }
    for (size_t i = 0; i < COUNT_OF(plugins) && there; i++)
        there = program_find(network->cni_path, plugins[i], program);
    return there && knows_bridges(hooks);
}

json_t *hooks_network_modes(struct hooks *hooks)
{
    json_t *modes =
        hooks->network == NULL || !hooks->privileged ? json_array() : cni_modes(hooks->network);

    check(modes != NULL);
    if (hooks_has_network(hooks, "bridge"))
        check(json_array_insert_new(modes, 0, json_string("bridge")) == 0);
    return modes;
}

/* --- plugins --- */

enum { PUT_OFF_MAX = 40 };

struct plugins_look {
    struct io_timer timer; /* before it begins */
    uint64_t after_ms;
    unsigned put_off; /* so often */
    struct io_work work;
    struct hooks *hooks; /* NULL once they are gone */
    bool begun;
    atomic_bool over; /* nobody waits for it: no plugin but that at hand is asked */
    hooks_before_plugins *before;
    hooks_plugins_found *found;
    void *ctx;
    struct arena arena;
    struct spec_pairs versions;
    char path[]; /* a copy */
};

static void look_for_plugins(struct io_work *work)
{
    struct plugins_look *look = work->ctx;

    look->versions = cni_versions(look->path, &look->over, &look->arena);
}

/* Older ones say no for reasons of their own (nomad v2.0.5 networking_cni.go). */
static bool answers_well(const struct spec_pairs *versions)
{
    bool well = false;

    for (size_t i = 0; i < versions->count; i++) {
        json_t *constraint = json_pack("{s:s, s:s, s:s}", "LTarget", versions->items[i].value,
                                       "Operand", "semver", "RTarget", ">= 1.3.0");

        well = well || (text_equal(versions->items[i].key, "bridge") && constraint != NULL &&
                        constraint_holds(&(struct constraint_node){.id = ""}, constraint));
        json_decref(constraint);
    }
    return well;
}

static void tell_plugins(struct io_work *work)
{
    struct plugins_look *look = work->ctx;

    if (look->hooks != NULL) {
        look->hooks->look = NULL;
        look->hooks->asks_plugins = answers_well(&look->versions);
        look->hooks->begin_checks(look->hooks);
        look->found(look->ctx, &look->versions);
    }
    arena_free(&look->arena);
    free(look);
}

static void begin_look(struct plugins_look *look)
{
    io_timer_stop(&look->timer);
    look->begun = true;
    io_work_submit(look->hooks->loop, &look->work, look_for_plugins, tell_plugins, look);
}

static void begin_later(struct plugins_look *look);

static void on_time(struct io_timer *timer)
{
    struct plugins_look *look = timer->ctx;

    if (look->before == NULL || look->put_off == PUT_OFF_MAX || !look->before(look->ctx)) {
        begin_look(look);
        return;
    }
    look->put_off++;
    begin_later(look);
}

static void begin_later(struct plugins_look *look)
{
    io_timer_start(look->hooks->loop, &look->timer, loop_now_ms() + look->after_ms, on_time, look);
}

void hooks_find_plugins(struct hooks *hooks, uint64_t after_ms, hooks_before_plugins *before,
                        hooks_plugins_found *found, void *ctx)
{
    const char *path = hooks->network == NULL || !hooks->privileged ? "" : hooks->network->cni_path;
    struct plugins_look *look = calloc(1, sizeof(*look) + strlen(path) + 1);

    check(look != NULL);
    check(hooks->look == NULL); /* once is enough */
    memcpy(look->path, path, strlen(path) + 1);
    look->hooks = hooks;
    look->after_ms = after_ms;
    look->before = before;
    look->found = found;
    look->ctx = ctx;
    hooks->look = look;
    begin_later(look);
}

bool hooks_await_plugins(struct hooks *hooks)
{
    if (hooks->look != NULL && !hooks->look->begun)
        begin_look(hooks->look);
    return hooks->look != NULL;
}

void hooks_forget_plugins(struct hooks *hooks)
{
    struct plugins_look *look = hooks->look;

    if (look == NULL)
        return;
    look->hooks = NULL;
    atomic_store(&look->over, true);
    if (!look->begun) {
        io_timer_stop(&look->timer);
        free(look);
    }
}
