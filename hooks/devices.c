/*
 * Hook devices: what a task gets with the devices that it was given.
 *
 * Follows nomad v2.0.5 client/allocrunner/taskrunner/device_hook.go: whoever knows the devices is
 * asked for each group of them, before each start, since what there was the last time may have
 * changed; he keeps nothing of it, so that nothing has to be given back.  Variables, mounts and
 * nodes of devices are the hook's results.  What is mounted needs a driver that mounts; one without
 * a root of its own needs no nodes, which are the host's.
 */
#include "hooks/part.h"

#include "spec/names.h"

#include <stdlib.h>
#include <string.h>

/* The order: whether the driver mounts, a character, and what was given. */
enum { ORDER_MOUNTS = 'm', ORDER_PLAIN = '-' };

struct asking {
    struct hooks_asking asking; /* what others know of it */
    struct hooks *hooks;
    json_t *given; /* owned */
    size_t next;   /* to be asked for */
    bool mounts;
    struct io_timer begin;
    struct results results; /* owned */
    hooks_asked *done;
    void *ctx;
};

int hooks_devices_begin(const struct hooks *hooks, const struct hook_run *asked, char **ret_order,
                        struct err *err)
{
    const char *given = asked->task->devices_json;
    size_t size = strlen(given) + 2;

    if (hooks->devices == NULL)
        return err_set(err, ERR_UNSUPPORTED, "this agent has no devices");
    *ret_order = malloc(size);
    check(*ret_order != NULL);
    check(text_format(*ret_order, size, "%c%s",
                      hooks_driver(hooks, asked->task->driver)->mounts ? ORDER_MOUNTS : ORDER_PLAIN,
                      given));
    return 0;
}

static void asking_free(struct asking *asking)
{
    json_decref(asking->given);
    free(asking->results.bytes);
    free(asking);
}

static void finish(struct asking *asking, const struct err *err)
{
    if (asking->done != NULL)
        asking->done(asking->ctx, &asking->results, err);
    asking_free(asking);
}

/* --- one answer --- */

static int set(struct asking *asking, enum result_kind kind, const char *key, const char *value,
               struct err *err)
{
    int code =
        results_set(&asking->results, TASK_HOOK_DEVICES, kind, key, value, (uint32_t)strlen(value));

    return code == 0
               ? 0
               : err_set(err, code, "what comes with the devices is too long: \"%.60s\"", key);
}

static int take_item(struct asking *asking, const struct spec_reserved *item, struct err *err)
{
    bool is_node = item->permissions != NULL;
    char place[SPEC_PLACE_SIZE], text[1024 + 64];
    const char *fault = is_node ? NULL : spec_place(item->inside, place);

    if (!asking->mounts && is_node)
        return 0; /* the task has those of the host */
    if (!asking->mounts)
        return err_set(err, ERR_REFUSED,
                       "its driver mounts nothing, and its devices come with %.100s", item->inside);
    if (is_node && (!text_starts_with(item->inside, "/dev/") || text_goes_up(item->inside) ||
                    !text_copy(place, sizeof(place), item->inside)))
        fault = "is not in /dev";
    if (fault != NULL)
        return err_set(err, ERR_INVALID, "what comes with its devices: \"%.100s\" %s", item->inside,
                       fault);
    (void)text_format(text, sizeof(text), is_node ? "%s\t%s" : "%s\t%s\tprivate", item->host,
                      is_node           ? item->permissions
                      : item->read_only ? "ro"
                                        : "rw"); /* paths are shorter */
    return set(asking, is_node ? RESULT_DEVICE : RESULT_MOUNT, place, text, err);
}

static int take(struct asking *asking, const struct spec_reservation *reservation, struct err *err)
{
    int code = 0;

    for (size_t i = 0; i < reservation->envs.count && code == 0; i++)
        code = set(asking, RESULT_ENV, reservation->envs.items[i].key,
                   reservation->envs.items[i].value, err);
    for (size_t i = 0; i < reservation->count && code == 0; i++)
        code = take_item(asking, &reservation->items[i], err);
    return code;
}

/* --- all of them --- */

static void ask_next(struct asking *asking);

static void reserved(void *ctx, const struct spec_reservation *reservation, const struct err *err)
{
    struct asking *asking = ctx;
    const json_t *given = json_array_get(asking->given, asking->next - 1);
    struct err why = {0};

    if (err != NULL) {
        why = *err;
        (void)err_wrap(&why, "failed to reserve device %s/%s/%s",
                       json_string_value(json_object_get(given, "Vendor")),
                       json_string_value(json_object_get(given, "Type")),
                       json_string_value(json_object_get(given, "Name"))); /* only to be filled */
    } else {
        (void)take(asking, reservation, &why); /* it fills that */
    }
    if (why.code != 0)
        finish(asking, &why);
    else
        ask_next(asking);
}

static void ask_next(struct asking *asking)
{
    if (asking->done == NULL) { /* nobody waits any more */
        asking_free(asking);
        return;
    }
    const struct hooks_devices *devices = asking->hooks->devices;

    if (asking->next == json_array_size(asking->given)) {
        finish(asking, NULL);
        return;
    }
    asking->next++;
    devices->reserve(devices->ctx, json_array_get(asking->given, asking->next - 1), reserved,
                     asking);
}

static void on_begin(struct io_timer *timer)
{
    ask_next(timer->ctx);
}

/* Nobody is told any more, and nobody answers. */
static void forget(struct hooks_asking *of)
{
    struct asking *asking = (struct asking *)(void *)of;

    io_timer_stop(&asking->begin);
    asking_free(asking);
}

/* It is gone when whoever was asked has answered. */
static void abandon(struct hooks_asking *of)
{
    struct asking *asking = (struct asking *)(void *)of;
    bool asks = asking->next > 0; /* and hears of it */

    asking->done = NULL;
    asking->hooks = NULL;
    if (!asks)
        forget(of);
}

struct hooks_asking *hooks_devices_ask(struct hooks *hooks, const struct hook_request *request,
                                       hooks_asked *done, void *ctx)
{
    const char *order = request->order;
    struct asking *asking = calloc(1, sizeof(*asking));

    check(asking != NULL);
    asking->asking = (struct hooks_asking){.forget = forget, .abandon = abandon};
    asking->hooks = hooks;
    asking->given = json_loads(order + 1, 0, NULL);
    check(asking->given != NULL); /* decoding has made it */
    asking->mounts = order[0] == ORDER_MOUNTS;
    asking->results =
        (struct results){.bytes = calloc(1, RESULTS_BYTES_MAX), .size = RESULTS_BYTES_MAX};
    check(asking->results.bytes != NULL);
    asking->done = done;
    asking->ctx = ctx;
    io_timer_start(hooks->loop, &asking->begin, loop_now_ms(), on_begin, asking);
    return &asking->asking;
}
