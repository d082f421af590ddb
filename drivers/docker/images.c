/*
 * Images that tasks of this node have used, and which of them still do: what no task uses any more
 * is removed after a while.  What happens when is fsm/policy/images.c's.
 *
 * As in Nomad it does not matter who has brought an image to the Engine: that a task has used it is
 * enough.  What it takes to know that after a crash is
 *
 *   <state>/images/<id>   made before an image is first used, gone when the Engine has it no more:
 *                         when its last user has left it
 *   the files of tasks    what each uses (docker.h), from before its container is asked for until
 *                         that is gone
 *
 * An Engine keeps what a container that runs is of, whoever made it, and says so.
 */
#include "drivers/docker/docker.h"

#include "base/list.h"
#include "fsm/images.h"
#include "io/log.h"
#include "io/scope.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct image_record {
    struct record_head head;
    uint64_t since_ms; /* CLOCK_BOOTTIME of this boot, when its last user left it; 0: it has some */
    char boot_id[40];
};

_Static_assert(sizeof(struct image_record) == 72, "part of a format on disk");

struct image {
    struct drivers *drivers; /* NULL: the room is closed */
    struct image *next, **link;
    char id[IMAGE_ID_SIZE];
    enum image_state state;
    struct {
        uint64_t *items; /* digests of keys */
        size_t count, size;
    } users;
    struct io_timer due;
    struct http_request *request;
    struct container *waiting; /* until it is known what came of its removal */
};

static void step(struct image *image, enum image_event event);

bool image_is_id(const char *id)
{
    if (id == NULL || !isalnum((unsigned char)id[0]) || strlen(id) >= IMAGE_ID_SIZE)
        return false;
    for (const char *at = id; *at != '\0'; at++) {
        if (!isalnum((unsigned char)*at) && strchr(":-_.", *at) == NULL)
            return false;
    }
    return true;
}

/* --- what is written down --- */

static int open_mark(const struct image *image, int flags)
{
    return openat(image->drivers->images_fd, image->id,
                  O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0600);
}

/* After a crash of the host all of it may be as it was: then nobody uses the image. */
static void put_since(const struct image *image, uint64_t since_ms)
{
    struct image_record record = {.since_ms = since_ms};
    scoped_fd int fd = open_mark(image, 0);

    (void)text_copy(record.boot_id, sizeof(record.boot_id), image->drivers->boot_id); /* fits */
    record_seal(&record, RECORD_MAGIC_IMAGE, sizeof(record));
    if (fd >= 0) /* else its delay begins again with the next daemon */
        (void)task_file_put(fd, 0, &record, false, NULL);
}

static int open_directory(struct drivers *drivers, struct err *err)
{
    char path[PATH_SIZE];
    int code;

    if (drivers->images_fd >= 0)
        return 0;
    code = path_join(path, drivers->config.state_dir, "images");
    if (code != 0)
        return err_set(err, code, "the state directory's path is too long");
    code = directory_make_all(path, 0700, err);
    if (code != 0)
        return code;
    drivers->images_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (drivers->images_fd < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot open %s", path);
    return 0;
}

/* From here on it is known that IMAGE is to be removed once, whatever happens. */
static int put_first(struct image *image, struct err *err)
{
    int code = open_directory(image->drivers, err);

    if (code != 0)
        return code;
    scoped_fd int fd = open_mark(image, O_CREAT);
    if (fd >= 0 && fsync(fd) == 0 && fsync(image->drivers->images_fd) == 0)
        return 0;
    (void)err_os(err, err_from_errno(errno), errno, "cannot note the image");
    err->recoverable = true;
    return err->code;
}

/* --- those there are --- */

static struct image *find(const struct drivers *drivers, const char *id)
{
    struct image *image = drivers->images;

    while (image != NULL && !text_equal(image->id, id))
        image = image->next;
    return image;
}

static struct image *image_new(struct drivers *drivers, const char *id)
{
    struct image *image = calloc(1, sizeof(*image));

    check(image != NULL);
    *image = (struct image){
        .drivers = drivers, .state = IMAGE_IDLE, .next = drivers->images, .link = &drivers->images};
    check(text_copy(image->id, sizeof(image->id), id));
    if (image->next != NULL)
        image->next->link = &image->next;
    drivers->images = image;
    return image;
}

static void image_free(struct image *image)
{
    io_timer_stop(&image->due);
    *image->link = image->next;
    if (image->next != NULL)
        image->next->link = image->link;
    free(image->users.items);
    free(image);
}

static size_t find_user(const struct image *image, uint64_t digest)
{
    size_t i = 0;

    while (i < image->users.count && image->users.items[i] != digest)
        i++;
    return i;
}

static void add_user(struct image *image, uint64_t digest)
{
    if (find_user(image, digest) == image->users.count)
        *list_more(&image->users) = digest;
}

/* --- the Engine --- */

static enum image_event event_of(const struct http_reply *reply)
{
    return reply->status / 100 == 2 || reply->status == 404 ? IMAGE_REMOVED
           : reply->status == 409                           ? IMAGE_BUSY
                                                            : IMAGE_FAILED;
}

/* Those who wait look for it again: it is there, or not. */
static void let_go(struct image *image)
{
    const struct err none = {0};

    while (image->waiting != NULL) {
        struct container *container = image->waiting;

        container->pulled = false;
        container_wait_ends(container, &none);
    }
}

static void on_removed(void *ctx, const struct http_reply *reply)
{
    struct image *image = ctx;

    image->request = NULL;
    if (image->drivers == NULL)
        return;
    enum image_event event = event_of(reply);
    if (event == IMAGE_FAILED) {
        struct err err = {0};

        (void)engine_fault(reply, &err);
        log_warn("drivers", "an image cannot be removed now, trying again image=%s error=%s",
                 image->id, log_value(err.text));
    } else if (reply->status / 100 == 2) {
        log_info("drivers", "an image that no task uses any more was removed image=%s", image->id);
    }
    step(image, event);
}

/* With force, as Nomad does: by all its names. */
static void ask_to_remove(struct image *image)
{
    char path[IMAGE_ID_SIZE + 32];

    check(text_format(path, sizeof(path), "/images/%s?force=1", image->id));
    const struct engine_ask ask = {
        .method = "DELETE", .path = path, .cb = on_removed, .ctx = image};
    image->request = engine_ask(image->drivers, &ask, NULL);
    if (image->request == NULL)
        step(image, IMAGE_FAILED);
}

/* --- its life --- */

static void on_due(struct io_timer *timer)
{
    step(timer->ctx, IMAGE_DUE);
}

static void wait_until(struct image *image, uint64_t at_ms)
{
    io_timer_start(image->drivers->config.loop, &image->due, at_ms, on_due, image);
}

/* What came of its removal is known.  May free the image. */
static void settle(struct image *image)
{
    let_go(image);
    if (image->state != IMAGE_GONE)
        return;
    (void)unlinkat(image->drivers->images_fd, image->id, 0); /* else it is looked for again */
    image_free(image);
}

/* May free the image. */
static void step(struct image *image, enum image_event event)
{
    struct image_step found = policy_image(image->state, event);
    uint64_t now_ms = loop_now_ms();
    uint64_t delay_ms = image->drivers->config.docker.image_delay_ms;

    image->state = found.next;
    switch (found.act) {
    case IMAGE_KEEP:
        io_timer_stop(&image->due);
        put_since(image, 0);
        return;
    case IMAGE_WAIT:
        put_since(image, now_ms);
        wait_until(image, now_ms + delay_ms);
        return;
    case IMAGE_WAIT_AGAIN:
        wait_until(image, now_ms + (delay_ms < IMAGE_AGAIN_MS ? IMAGE_AGAIN_MS : delay_ms));
        settle(image);
        return;
    case IMAGE_REMOVE:
        ask_to_remove(image);
        return;
    case IMAGE_HOLD:
        return;
    case IMAGE_FORGET:
        settle(image);
        return;
    case IMAGE_GO_ON:
        return;
    case IMAGE_NEVER:
        break;
    }
    unreachable("a step of an image that cannot be");
}

int images_take(struct container *container)
{
    struct drivers *drivers = container->run->drivers;
    struct image *image = find(drivers, container->record.image);

    if (!drivers->config.docker.collects_images)
        return 0;
    if (image == NULL) {
        image = image_new(drivers, container->record.image);
        if (put_first(image, &container->failed) != 0) {
            image_free(image);
            return container->failed.code;
        }
    }
    step(image, IMAGE_TAKEN);
    if (image->state == IMAGE_LEAVING) {
        container_wait(container, &image->waiting, NULL, NULL);
        return ERR_AGAIN;
    }
    add_user(image, container->run->digest);
    return 0;
}

void images_leave(struct drivers *drivers, const struct driver_key *key)
{
    uint64_t digest = key_digest(key);

    for (struct image *image = drivers->images; image != NULL; image = image->next) {
        size_t at = find_user(image, digest);

        if (at == image->users.count)
            continue;
        image->users.items[at] = image->users.items[--image->users.count];
        if (image->users.count == 0)
            step(image, IMAGE_LEFT);
        return; /* a container is of one image */
    }
}

/* --- what an earlier life of the daemon left --- */

/* Who uses them, by the files of tasks. */
static void find_users(struct drivers *drivers)
{
    DIR *directory = opendir(drivers->shim_dir);

    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
        struct container_record record;
        struct driver_key key;

        if (!key_from_name(entry->d_name, &key))
            continue;
        scoped_fd int fd =
            openat(drivers->shim_fd, entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0 || task_file_get(fd, TASK_STARTED_AT, RECORD_MAGIC_CONTAINER, &record,
                                    sizeof(record), NULL) != 0)
            continue;
        record.image[sizeof(record.image) - 1] = '\0';
        struct image *image = find(drivers, record.image);
        if (image == NULL)
            continue;
        image->state = IMAGE_USED;
        add_user(image, key_digest(&key));
    }
    if (directory != NULL)
        (void)closedir(directory); /* only read from */
}

/* One that nobody uses: its delay goes on. */
static void go_on(struct image *image)
{
    struct image_record record = {0};
    scoped_fd int fd = open_mark(image, 0);
    bool is_read =
        fd >= 0 && task_file_get(fd, 0, RECORD_MAGIC_IMAGE, &record, sizeof(record), NULL) == 0;
    bool same_boot = is_read && memcmp(record.boot_id, image->drivers->boot_id,
                                       sizeof(image->drivers->boot_id)) == 0;
    uint64_t now_ms = loop_now_ms();

    if (!same_boot || record.since_ms == 0)
        put_since(image, now_ms);
    wait_until(image, policy_image_due_ms(record.since_ms, same_boot, now_ms,
                                          image->drivers->config.docker.image_delay_ms));
}

int images_open(struct drivers *drivers, struct err *err)
{
    const struct drivers_docker *docker = &drivers->config.docker;
    char path[PATH_SIZE];

    if (!docker->collects_images || docker->socket == NULL)
        return 0;
    int code = path_join(path, drivers->config.state_dir, "images");
    if (code != 0)
        return err_set(err, code, "the state directory's path is too long");
    DIR *directory = opendir(path);
    if (directory == NULL && errno == ENOENT)
        return 0; /* there were none */
    if (directory == NULL)
        return err_os(err, err_from_errno(errno), errno, "cannot list %s", path);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (image_is_id(entry->d_name))
            (void)image_new(drivers, entry->d_name); /* which is listed */
    }
    (void)closedir(directory); /* only read from */
    code = open_directory(drivers, err);
    if (code != 0 || drivers->images == NULL)
        return code;
    find_users(drivers);
    for (struct image *image = drivers->images; image != NULL; image = image->next) {
        if (image->state == IMAGE_IDLE)
            go_on(image);
    }
    return 0;
}

void images_close(struct drivers *drivers)
{
    while (drivers->images != NULL) {
        struct image *image = drivers->images;

        check(image->waiting == NULL); /* runs are closed before */
        image->drivers = NULL;
        if (image->request != NULL)
            http_cancel(image->request);
        image_free(image);
    }
    if (drivers->images_fd >= 0)
        (void)close(drivers->images_fd); /* only names */
}
