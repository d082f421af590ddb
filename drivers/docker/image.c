/*
 * The image of a container: whether it is there, has to be brought, or is just being removed.
 *
 * Follows nomad v2.0.6 drivers/docker (driver.go createImage, utils.go): an image whose tag is
 * "latest" is pulled each time, others when the Engine does not have them.
 */
#include "drivers/docker/docker.h"

#include <string.h>

/* Of a task that has an archive of its own, from there; else by who may have it. */
static void bring(struct container *container)
{
    container->step = STEP_BRING;
    if (container->load[0] != '\0')
        load_begin(container);
    else if (container->helper[0] != '\0')
        helper_begin(container);
    else
        pull_begin(container);
}

/* What was waited for is over, with others or without. */
static void on_waited(struct container *container, const struct err *err)
{
    container->failed = *err;
    if (err->code != 0)
        container_fail(container);
    else
        image_look(container);
}

static bool is_to_be_brought(const struct container *container)
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
        bring(container);
        return;
    }
    if (reply->status == 404 && container->load[0] != '\0') {
        (void)err_set(&container->failed, ERR_GONE,
                      "docker: the archive of \"load\" has no image `%.100s`", container->image);
        container_fail(container);
        return;
    }
    json_t *image = json_loadb(reply->body, reply->body_length, 0, NULL);
    const char *id = json_string_value(json_object_get(image, "Id"));
    if (reply->status == 200 && image_is_id(id)) {
        struct container_record *record = &container->record;

        (void)text_copy(record->image, sizeof(record->image), id); /* one of ours fits */
        json_decref(image);
        int code = images_take(container);
        if (code == 0)
            container_make(container);
        else if (code != ERR_AGAIN)
            container_fail(container);
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

    container->wait_over = on_waited;
    if (is_to_be_brought(container)) {
        bring(container);
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
