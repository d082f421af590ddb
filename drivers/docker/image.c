/*
 * Images: looking for them, and pulling those that are not there.
 *
 * Follows nomad v2.0.6 drivers/docker (driver.go createImage, utils.go): an image whose tag is
 * "latest" is pulled each time, others when the Engine does not have them.
 */
#include "drivers/docker/docker.h"

#include "io/scope.h"

#include <stdlib.h>
#include <string.h>

enum { PROGRESS_LINE_MAX = 64 << 10 };

static void on_looked(void *ctx, const struct http_reply *reply);

/* A line of the Engine's: what it does, or why it cannot. */
static void take_line(struct container *container, const char *line, size_t length)
{
    json_t *said_by = json_loadb(line, length, 0, NULL);
    const char *error = json_string_value(json_object_get(said_by, "error"));

    if (error != NULL && container->failed.code == 0) {
        char text[ERR_TEXT_SIZE];

        (void)text_copy(text, sizeof(text), error); /* may be cut */
        text_whole(text);
        text_clean(text);
        (void)err_set(&container->failed, ERR_REFUSED, "Failed to pull `%.60s`: %s",
                      container->image, text);
        container->failed.recoverable = true; /* as in Nomad: a registry may be away for a while */
    }
    json_decref(said_by);
}

static bool on_progress(void *ctx, const char *bytes, size_t length)
{
    struct container *container = ctx;
    uint64_t now_ms = loop_now_ms();

    container->pull_since_ms = now_ms;
    while (length > 0) {
        const char *end = memchr(bytes, '\n', length);
        size_t part = end == NULL ? length : (size_t)(end - bytes);

        if (container->progress_length + part > PROGRESS_LINE_MAX)
            return false;
        container->progress = realloc(container->progress, container->progress_length + part + 1);
        check(container->progress != NULL);
        memcpy(container->progress + container->progress_length, bytes, part);
        container->progress_length += part;
        if (end != NULL) {
            take_line(container, container->progress, container->progress_length);
            container->progress_length = 0;
            part++;
        }
        bytes += part;
        length -= part;
    }
    return true;
}

static void forget_progress(struct container *container)
{
    free(container->progress);
    container->progress = NULL;
    container->progress_length = 0;
}

static void on_silence(struct io_timer *timer)
{
    struct run *run = timer->ctx;
    struct container *container = run->container;
    uint64_t bound_ms = run->drivers->config.docker.pull_activity_timeout_ms;
    uint64_t until_ms = container->pull_since_ms + bound_ms, now_ms = loop_now_ms();

    if (container->step != STEP_PULL)
        return;
    if (now_ms < until_ms) {
        run_at(run, until_ms - now_ms, on_silence);
        return;
    }
    (void)err_set(&container->failed, ERR_TIMEOUT,
                  "Failed to pull `%.100s`: nothing has come for %llu s", container->image,
                  (unsigned long long)(bound_ms / 1000));
    container->failed.recoverable = true;
    http_cancel(container->request); /* its callback goes on */
}

static void on_pulled(void *ctx, const struct http_reply *reply)
{
    struct container *container = ctx;

    container->request = NULL;
    if (container->run == NULL)
        return;
    io_timer_stop(&container->run->timer);
    if (container->progress_length > 0)
        take_line(container, container->progress, container->progress_length);
    forget_progress(container);
    if (reply->status / 100 != 2 && container->failed.code == 0) {
        (void)engine_fault(reply, &container->failed);
        (void)err_wrap(&container->failed, "Failed to pull `%.60s`", container->image);
        container->failed.recoverable = true;
    }
    if (container->failed.code != 0) {
        container_fail(container);
        return;
    }
    container->pulled = true;
    image_look(container);
}

static void pull(struct container *container)
{
    struct run *run = container->run;
    char repository[IMAGE_NAME_SIZE], tag[IMAGE_NAME_SIZE], path[IMAGE_NAME_SIZE * 6 + 64];

    check(image_split(container->image, repository, tag)); /* checked before */
    scoped_string char *from = engine_quote(repository), *version = engine_quote(tag);
    bool fits = text_format(path, sizeof(path), "/images/create?fromImage=%s%s%s", from,
                            *tag == '\0' ? "" : "&tag=", version);
    check(fits);
    const struct engine_ask ask = {.method = "POST",
                                   .path = path,
                                   .header = container->auth,
                                   .lasts = true,
                                   .secret = true,
                                   .timeout_ms = container->pull_timeout_ms,
                                   .on_data = on_progress,
                                   .cb = on_pulled,
                                   .ctx = container};
    container->step = STEP_PULL;
    container->pull_since_ms = loop_now_ms();
    container->request = engine_ask(run->drivers, &ask, &container->failed);
    if (container->request == NULL) {
        container_fail(container);
        return;
    }
    run_at(run, run->drivers->config.docker.pull_activity_timeout_ms, on_silence);
}

static bool is_to_be_pulled(const struct container *container)
{
    char repository[IMAGE_NAME_SIZE], tag[IMAGE_NAME_SIZE];

    return !container->pulled &&
           (container->force_pull ||
            (image_split(container->image, repository, tag) && text_equal(tag, "latest")));
}

static void on_looked(void *ctx, const struct http_reply *reply)
{
    struct container *container = ctx;

    container->request = NULL;
    if (container->run == NULL)
        return;
    if (reply->status == 404 && !container->pulled) {
        pull(container);
        return;
    }
    json_t *image = json_loadb(reply->body, reply->body_length, 0, NULL);
    const char *id = json_string_value(json_object_get(image, "Id"));
    if (reply->status == 200 && id != NULL && strlen(id) < IMAGE_NAME_SIZE) {
        char copy[IMAGE_NAME_SIZE];

        (void)text_copy(copy, sizeof(copy), id); /* fits */
        json_decref(image);
        container_make(container, copy);
        return;
    }
    json_decref(image);
    if (reply->status == 200)
        (void)err_set(&container->failed, ERR_IO, "the Docker Engine's answer is none");
    else
        (void)engine_fault(reply, &container->failed);
    container->failed.recoverable |= reply->status / 100 != 4;
    container_fail(container);
}

void image_look(struct container *container)
{
    char path[IMAGE_NAME_SIZE * 3 + 32];
    char repository[IMAGE_NAME_SIZE], tag[IMAGE_NAME_SIZE];

    if (is_to_be_pulled(container)) {
        pull(container);
        return;
    }
    /* Its name as a path: slashes stay. */
    check(image_split(container->image, repository, tag));
    check(text_format(path, sizeof(path), "/images/%s%s%s/json", repository,
                      *tag == '\0' ? "" : ":", tag));
    const struct engine_ask ask = {
        .method = "GET", .path = path, .cb = on_looked, .ctx = container};
    container->step = STEP_IMAGE;
    container->request = engine_ask(container->run->drivers, &ask, &container->failed);
    if (container->request == NULL)
        container_fail(container);
}
