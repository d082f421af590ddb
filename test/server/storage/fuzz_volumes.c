/*
 * What callers send about volumes, of storage plugins and of the node: each piece of the input is
 * one request, whose first byte says which.
 *
 * Nothing that is secret is among what is shown of a volume, each caller hears once, and a daemon
 * that begins again believes all that is stored.
 */
#include "test/server/fuzz_request.h"
#include "test/server/storage/small_storage.h"

#include "server/storage/part.h"

static void tell(void *ctx, int code, const struct err *err, const json_t *answer)
{
    (void)answer;
    ++*(int *)ctx;
    check(code == 0 || (err->text[0] != '\0' && text_is_utf8(err->text, strlen(err->text))));
}

/* Plugins of both kinds make whatever they are asked for. */
static void make(void *ctx, const char *name, enum csi_call call, const json_t *request,
                 control_answer_cb *cb, void *cb_ctx)
{
    json_t *json = json_pack("{s:s, s:s, s:i, s:{}, s:[], s:b}", "HostPath", "/srv/made",
                             "ExternalVolumeID", "made-1", "CapacityBytes", 4096, "VolumeContext",
                             "Topologies", "NodeExpansionRequired", 0);
    const struct control_answer answer = {
        .answer = json, .outcome = {.verdict = CSI_DONE}, .answered = true};

    (void)ctx;
    (void)call;
    check(json != NULL && name[0] != '\0' && json_is_object(request));
    check(json_object_set_new(json, "Capacity", json_integer(4096)) == 0);
    cb(cb_ctx, &answer);
    json_decref(json);
}

static void read_alone(const json_t *request)
{
    json_t *volume = NULL, *secret = NULL;
    struct err err = {0};

    if (registry_read(request, "default", &volume, &secret, &err) == 0) {
        check(json_object_get(volume, "Secrets") == NULL);
        check(json_object_get(json_object_get(volume, "MountOptions"), "MountFlags") == NULL);
        json_decref(volume);
        storage_wipe(secret);
    }
    for (int registers = 0; registers < 2; registers++) {
        volume = NULL;
        if (hosted_read(request, "default", registers != 0, &volume, &err) == 0) {
            check(json_is_object(volume));
            json_decref(volume);
        }
    }
}

static void ask(struct small_life *small, uint8_t which, const json_t *request)
{
    struct storage *storage = alone_storage(small->alone);
    struct storage *hosted = alone_hosted(small->alone);
    const char *id = json_string_value(json_object_get(request, "ID"));
    int heard = 0;

    id = id == NULL ? "" : id;
    switch (which % 8) {
    case 0:
        storage_register_volume(storage, "default", request, tell, &heard);
        break;
    case 1:
        storage_create_volume(storage, "default", request, tell, &heard);
        break;
    case 2:
        storage_register_volume(hosted, "default", request, tell, &heard);
        break;
    case 3:
        storage_create_volume(hosted, "default", request, tell, &heard);
        break;
    case 4:
        storage_create_snapshot(storage, "default", request, tell, &heard);
        break;
    case 5:
        storage_delete_volume(storage, "default", id, json_object_get(request, "Secrets"), tell,
                              &heard);
        break;
    case 6:
        storage_deregister_volume(storage, "default", id, true, tell, &heard);
        break;
    default:
        storage_delete_volume(hosted, "default", id, NULL, tell, &heard);
        break;
    }
    small_settle(small);
    check(heard == 1);
}

static bool count_one(void *ctx, const struct storage_volume *volume)
{
    check(json_object_get(volume->json, "Secrets") == NULL);
    check(volume->id[0] != '\0' && volume->namespace[0] != '\0');
    ++*(size_t *)ctx;
    return true;
}

static size_t count(struct small_life *small)
{
    size_t known = 0;

    storage_each_volume(alone_storage(small->alone), count_one, &known);
    storage_each_volume(alone_hosted(small->alone), count_one, &known);
    return known;
}

static struct small_life *open_node(void **state)
{
    check(small_open(state) == 0);
    struct small_life *small = *state;
    small->controller = make;
    small->host_plugin = make;
    small->identity.plugin_capabilities = CSI_PLUGIN_HAS_CONTROLLER;
    small->identity.controller_capabilities =
        CSI_CONTROLLER_CREATES | CSI_CONTROLLER_EXPANDS | CSI_CONTROLLER_SNAPSHOTS;
    small_again(small);
    start_plugin(small, PLUGIN_CSI_MONOLITH);
    return small;
}

int LLVMFuzzerInitialize(int *arguments_count, char ***arguments)
{
    (void)arguments_count;
    (void)arguments;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    json_t *request;
    uint8_t which;
    void *state = NULL;
    struct small_life *small = open_node(&state);

    for (int asked = 0; asked < FUZZ_REQUESTS_MAX && fuzz_request(&input, &which, &request);
         asked++) {
        read_alone(request);
        ask(small, which, request);
        json_decref(request);
    }
    size_t known = count(small);
    small_again(small);
    check(count(small) == known);
    if (small->said[0] != '\0') {
        (void)fprintf(stderr, "%s", small->said);
        check(false);
    }
    return small_close(&state);
}
