/*
 * Hook migrate_disk: what the alloc before it wrote to its ephemeral disk goes on with this one, be
 * it from another node, as in nomad v2.0.6 client/allocwatcher.
 *
 * What is here is taken over first (move.c).  If the last of those who had the disk was on another
 * node the servers are asked where that is, and cairn-fetch gets it from there and unpacks it
 * beside all that a task sees.  Only what has come whole gets its name, and only what has it is
 * taken: by the next attempt, too, after a crash.  One that ended before begins again, from
 * nothing.
 *
 * What cannot be had is not waited for: as with Nomad the disk is empty then, and each task is told
 * why.
 */
#include "hooks/directory.h"
#include "hooks/disk/disk.h"
#include "hooks/fetching.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

enum {
    PEM_BYTES_MAX = 256 * 1024,
    URL_SIZE = 512,
    ADDRESS_MAX = 160,
    DISK_TIMEOUT_MS = 24 * 3600 * 1000, /* while something comes */
    DISK_ENTRIES_MAX = 1 << 20,
    KEPT_PART = 50, /* of a file system: one in so many bytes stays free */
    PRIVATE_MODE = 0700,
};

/* Of the directory of the alloc; no task can have such a name. */
static const char whole_name[] = ".disk", partial_name[] = ".disk.new";

static const char place_key[] = "place", why_key[] = "why";

/* --- where it is --- */

int hooks_disk_begin(const struct hooks *hooks, const struct hook_run *asked, char **ret_order,
                     struct err *err)
{
    (void)err;
    if (asked->disk_elsewhere == NULL || hooks->disks == NULL || hooks->fetch == NULL)
        return 0;
    *ret_order = strdup(asked->disk_elsewhere);
    check(*ret_order != NULL);
    return 0;
}

struct disk_asking {
    struct hooks_asking asking;
    const struct hooks_disks *disks;
    hooks_asked *done; /* NULL: nobody waits any more */
    void *ctx;
    struct io_timer begin;
    bool asks;
    struct disk_asking *next, **link; /* of those of the hooks */
    char alloc[UUID_TEXT_SIZE], previous[UUID_TEXT_SIZE];
    uint8_t bytes[RESULTS_BYTES_MAX];
};

static void asking_free(struct disk_asking *asking)
{
    *asking->link = asking->next;
    if (asking->next != NULL)
        asking->next->link = asking->link;
    io_timer_stop(&asking->begin);
    explicit_bzero(asking->bytes, sizeof(asking->bytes)); /* the token */
    free(asking);
}

static void set(struct results *results, const char *key, const char *value)
{
    (void)results_set(results, ALLOC_HOOK_MIGRATE_DISK, RESULT_DATA, key, value,
                      (uint32_t)strlen(value)); /* nothing: nobody knows */
}

/* That nobody knows where it is goes on to the step behind: something may have come before. */
static void found(void *ctx, const struct spec_disk_place *place, const struct err *err)
{
    struct disk_asking *asking = ctx;
    struct results results = {.bytes = asking->bytes, .size = sizeof(asking->bytes)};

    if (asking->done == NULL) {
        asking_free(asking);
        return;
    }
    json_t *json = place == NULL
                       ? NULL
                       : json_pack("{s:s, s:s, s:b, s:s}", "node", place->node, "address",
                                   place->address, "tls", place->tls, "token", place->token);
    char *text = json == NULL ? NULL : json_dumps(json, JSON_COMPACT);
    if (text != NULL)
        set(&results, place_key, text);
    else
        set(&results, why_key, place == NULL ? err->text : "its node is told of in no UTF-8");
    free(text);
    json_decref(json);
    asking->done(asking->ctx, &results, NULL);
    asking_free(asking);
}

static void on_begin(struct io_timer *timer)
{
    struct disk_asking *asking = timer->ctx;

    asking->asks = true;
    asking->disks->find(asking->disks->ctx, asking->alloc, asking->previous, found, asking);
}

static void forget(struct hooks_asking *of)
{
    asking_free((struct disk_asking *)(void *)of);
}

void hooks_disk_forget(struct hooks *hooks)
{
    while (hooks->disk_askings != NULL)
        asking_free(hooks->disk_askings);
}

static void abandon(struct hooks_asking *of)
{
    struct disk_asking *asking = (struct disk_asking *)(void *)of;

    asking->done = NULL;
    if (!asking->asks)
        forget(of);
}

struct hooks_asking *hooks_disk_ask(struct hooks *hooks, const struct hook_request *request,
                                    hooks_asked *done, void *ctx)
{
    struct disk_asking *asking = calloc(1, sizeof(*asking));

    check(asking != NULL);
    asking->asking = (struct hooks_asking){.forget = forget, .abandon = abandon};
    asking->disks = hooks->disks;
    asking->next = hooks->disk_askings;
    asking->link = &hooks->disk_askings;
    if (asking->next != NULL)
        asking->next->link = &asking->next;
    hooks->disk_askings = asking;
    (void)text_copy(asking->alloc, sizeof(asking->alloc), request->alloc); /* UUIDs */
    (void)text_copy(asking->previous, sizeof(asking->previous), request->order);
    asking->done = done;
    asking->ctx = ctx;
    io_timer_start(hooks->loop, &asking->begin, loop_now_ms(), on_begin, asking);
    return &asking->asking;
}

/* --- what is asked of its node --- */

static bool is_address(const char *text)
{
    static const char may[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]";
    const char *port = strrchr(text, ':');
    uint64_t number;

    return strlen(text) <= ADDRESS_MAX && strspn(text, may) == strlen(text) && port != NULL &&
           port != text && text_to_u64(port + 1, &number) && number > 0 && number <= UINT16_MAX;
}

static int add_pem(json_t *artifact, const char *field, const char *path, struct err *err)
{
    char *bytes;
    size_t length;

    if (path[0] == '\0')
        return 0;
    int code = file_read(path, PEM_BYTES_MAX, &bytes, &length, err);
    if (code != 0)
        return code;
    json_t *text = json_string(bytes);
    explicit_bzero(bytes, length);
    free(bytes);
    return text != NULL && json_object_set_new(artifact, field, text) == 0
               ? 0
               : err_set(err, ERR_INVALID, "%s is no PEM", path);
}

/* Nodes show a certificate of their kind in their region, by whatever address they are reached. */
static int add_tls(const struct hooks_disks *disks, const char *address, json_t *artifact,
                   struct err *err)
{
    const char *port = strrchr(address, ':') + 1;
    char at[URL_SIZE];

    if (!text_format(at, sizeof(at), "client.%s.nomad:%s:%s", disks->region, port, address))
        return err_set(err, ERR_LIMIT, "the name of the region is too long");
    check(json_object_set_new(artifact, "at", json_string(at)) == 0);
    int code = add_pem(artifact, "ca", disks->ca_file, err);
    if (code == 0)
        code = add_pem(artifact, "cert", disks->cert_file, err);
    return code == 0 ? add_pem(artifact, "key", disks->key_file, err) : code;
}

/* What is asked of the node that PLACE tells of: a new reference. */
static int artifact_of(const struct hook_request *request, const json_t *place,
                       json_t **ret_artifact, struct err *err)
{
    const struct hooks_disks *disks = request->disks;
    const char *address = json_string_value(json_object_get(place, "address"));
    bool tls = json_is_true(json_object_get(place, "tls"));
    char url[URL_SIZE];

    if (!is_address(address))
        return err_set(err, ERR_INVALID, "its node has no address at which it could be asked");
    const char *port = strrchr(address, ':');
    bool fits =
        tls ? text_format(url, sizeof(url), "https://client.%s.nomad%s", disks->region, port)
            : text_format(url, sizeof(url), "http://%s", address);
    if (!fits || !text_append(url, sizeof(url), "/v1/client/allocation/") ||
        !text_append(url, sizeof(url), request->order) ||
        !text_append(url, sizeof(url), "/snapshot"))
        return err_set(err, ERR_LIMIT, "the name of the region is too long");
    json_t *artifact =
        json_pack("{s:s, s:s, s:s, s:s, s:{s:s}, s:{s:O}}", "source", url, "destination", "",
                  "mode", "dir", "snapshot", request->order, "options", "archive", "tar", "headers",
                  "X-Nomad-Token", json_object_get(place, "token"));
    if (artifact == NULL)
        return err_set(err, ERR_INVALID, "the region is not UTF-8");
    int code = tls ? add_tls(disks, address, artifact, err) : 0;
    if (code != 0)
        json_decref(artifact);
    else
        *ret_artifact = artifact;
    return code;
}

/* For so much there is room: it is there packed first, and then twice. */
static uint64_t bytes_max(int root)
{
    struct statvfs status;

    if (fstatvfs(root, &status) != 0)
        return 0;
    uint64_t kept = status.f_blocks / KEPT_PART;
    return status.f_bavail > kept ? (status.f_bavail - kept) / 2 * status.f_frsize : 0;
}

static int write_order(const struct hook_request *request, int root, const json_t *place,
                       struct err *err)
{
    json_int_t bytes = (json_int_t)bytes_max(root);
    json_t *artifact = NULL;
    int code = bytes == 0 ? err_set(err, ERR_FULL, "there is no room for it")
                          : artifact_of(request, place, &artifact, err);

    if (code != 0)
        return code;
    json_t *order =
        json_pack("{s:I, s:I, s:I, s:I, s:[o]}", "timeout_ms", (json_int_t)DISK_TIMEOUT_MS,
                  "bytes_max", bytes, "unpacked_bytes_max", bytes, "entries_max",
                  (json_int_t)DISK_ENTRIES_MAX, "artifacts", artifact);
    check(order != NULL);
    char *text = json_dumps(order, JSON_COMPACT);
    json_decref(order);
    check(text != NULL);
    code = fetching_order(request->fetching, text, err);
    explicit_bzero(text, strlen(text));
    free(text);
    return code;
}

/* --- on the pool --- */

/* The disk begins empty, and this is why. */
static int go_without(const struct hook_request *request, struct err *err)
{
    struct err why = *err;

    (void)err_set(err, why.code, "The disk of alloc %.8s on another node is not taken over: %s",
                  request->order, why.text); /* may be cut */
    return HOOK_REMARK;
}

/* What has come whole, if anything has, becomes the alloc's.  RET_HAD: it has. */
static int take_whole(const struct hook_request *request, int root, bool *ret_had, struct err *err)
{
    scoped_fd int whole = beneath_open(root, whole_name, O_PATH | O_DIRECTORY, 0);

    *ret_had = whole >= 0;
    if (whole < 0)
        return 0;
    int code = disk_move(request, whole, root, err);
    if (code == 0)
        (void)tree_remove(root, whole_name, NULL); /* goes with the alloc else */
    return code;
}

/* The answer to where it is: NULL with ERR filled, else a new reference.  It is nobody's to keep.
 */
static json_t *read_place(struct results *results, struct err *err)
{
    struct result result;
    json_t *place = NULL;

    (void)err_set(err, ERR_GONE, "nobody knows where it is"); /* unless something is said */
    for (uint32_t at = 0; results_next(results->bytes, results->used, &at, &result);) {
        if (text_equal(result.key, place_key))
            place = json_loadb((const char *)result.value, result.value_length, 0, NULL);
        else
            (void)err_set(err, ERR_GONE, "%.*s", (int)result.value_length,
                          (const char *)result.value); /* why not */
    }
    explicit_bzero(results->bytes, results->used);
    results->used = 0;
    return place;
}

static int make_partial(const struct hook_request *request, int root, struct err *err)
{
    int code = tree_remove(root, partial_name, err);

    if (code == 0 && mkdirat(root, partial_name, PRIVATE_MODE) != 0)
        code = err_os(err, err_from_errno(errno), errno, "cannot make %s", partial_name);
    return code == 0 ? hooks_directory_open(root, partial_name, partial_name,
                                            &request->fetching->place, err)
                     : code;
}

static int prepare_fetching(const struct hook_request *request, int root, struct err *err)
{
    struct hooks_fetching *fetching = request->fetching;
    json_t *place = read_place(request->results, err);
    int code = place == NULL ? err->code : make_partial(request, root, err);

    if (code == 0)
        code = write_order(request, root, place, err);
    json_decref(place);
    if (code != 0) {
        (void)tree_remove(root, partial_name, NULL); /* goes with the alloc else */
        return go_without(request, err);
    }
    fetching->uid = geteuid();
    fetching->gid = getegid();
    fetching->is_needed = true;
    return 0;
}

int hooks_disk_prepare(const struct hook_request *request, struct err *err)
{
    scoped_fd int root = -1;
    bool had = false;
    int code = hooks_open_root(request, &root, err);

    if (code == 0)
        code = disk_take_over(request, root, err);
    if (code == 0)
        code = take_whole(request, root, &had, err);
    if (code != 0 || had || request->order[0] == '\0') {
        request->results->used = 0;
        return code;
    }
    return prepare_fetching(request, root, err);
}

int hooks_disk_finish(const struct hook_request *request, struct err *err)
{
    struct err why = *err;
    scoped_fd int root = -1;
    bool had = false;
    int code = hooks_open_root(request, &root, err);

    if (code != 0)
        return code;
    if (why.code == 0 && renameat(root, partial_name, root, whole_name) != 0)
        (void)err_os(&why, err_from_errno(errno), errno, "cannot rename it");
    if (why.code == 0)
        return take_whole(request, root, &had, err);
    (void)tree_remove(root, partial_name, NULL); /* goes with the alloc else */
    *err = why;
    return go_without(request, err);
}
