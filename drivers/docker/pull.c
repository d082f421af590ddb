/*
 * Pulls: an image that more than one task waits for comes once.
 *
 * Follows nomad v2.0.6 drivers/docker/coordinator.go, but that only those share a pull who would
 * show the registry the same: whoever may not have an image does not get it by asking at the right
 * moment.  The first one's time counts.  A pull that nobody waits for any more is given up, and the
 * Engine with it.
 */
#include "drivers/docker/docker.h"

#include "io/scope.h"

#include <stdlib.h>
#include <string.h>

enum { PROGRESS_LINE_MAX = 64 << 10 };

struct pull {
    struct drivers *drivers;
    struct pull *next, **link;
    char image[IMAGE_NAME_SIZE];
    char *auth; /* owned, secret; NULL: nobody */
    struct http_request *request;
    struct container *waiting; /* never empty, until it is over */
    bool is_over;
    struct io_timer silence;
    struct io_timer report;
    struct pull_progress progress;
    uint64_t begun_ms, since_ms; /* and the last time that it was seen to go on */
    char *line;                  /* the unfinished last one; owned */
    size_t line_length;
    struct err failed;
};

static void pull_free(struct pull *pull)
{
    io_timer_stop(&pull->silence);
    io_timer_stop(&pull->report);
    if (pull->auth != NULL)
        explicit_bzero(pull->auth, strlen(pull->auth));
    free(pull->auth);
    free(pull->line);
    free(pull);
}

/* Nobody finds it any more. */
static void unlist(struct pull *pull)
{
    pull->is_over = true;
    *pull->link = pull->next;
    if (pull->next != NULL)
        pull->next->link = pull->link;
}

/* --- while it lasts --- */

/* A line of the Engine's: what it does, or why it cannot. */
static void take_line(struct pull *pull, const char *line, size_t length)
{
    json_t *said_by = json_loadb(line, length, 0, NULL);
    const char *error = json_string_value(json_object_get(said_by, "error"));

    if (error != NULL && pull->failed.code == 0) {
        char text[ERR_TEXT_SIZE];

        (void)text_copy(text, sizeof(text), error); /* may be cut */
        text_whole(text);
        text_clean(text);
        (void)err_set(&pull->failed, ERR_REFUSED, "Failed to pull `%.60s`: %s", pull->image, text);
        pull->failed.recoverable = true; /* as in Nomad: a registry may be away for a while */
    }
    progress_take(&pull->progress, said_by);
    json_decref(said_by);
}

static bool on_progress(void *ctx, const char *bytes, size_t length)
{
    struct pull *pull = ctx;

    pull->since_ms = loop_now_ms();
    while (length > 0) {
        const char *end = memchr(bytes, '\n', length);
        size_t part = end == NULL ? length : (size_t)(end - bytes);

        if (pull->line_length + part > PROGRESS_LINE_MAX)
            return false;
        pull->line = realloc(pull->line, pull->line_length + part + 1);
        check(pull->line != NULL);
        memcpy(pull->line + pull->line_length, bytes, part);
        pull->line_length += part;
        if (end != NULL) {
            take_line(pull, pull->line, pull->line_length);
            pull->line_length = 0;
            part++;
        }
        bytes += part;
        length -= part;
    }
    return true;
}

static void on_silence(struct io_timer *timer)
{
    struct pull *pull = timer->ctx;
    uint64_t bound_ms = pull->drivers->config.docker.pull_activity_timeout_ms;
    uint64_t until_ms = pull->since_ms + bound_ms;

    if (loop_now_ms() < until_ms) {
        io_timer_start(pull->drivers->config.loop, timer, until_ms, on_silence, pull);
        return;
    }
    (void)err_set(&pull->failed, ERR_TIMEOUT,
                  "Failed to pull `%.100s`: nothing has come for %llu s", pull->image,
                  (unsigned long long)(bound_ms / 1000));
    pull->failed.recoverable = true;
    http_cancel(pull->request); /* its callback goes on */
}

/* All who wait are told, when it takes long. */
static void on_report(struct io_timer *timer)
{
    struct pull *pull = timer->ctx;
    uint64_t now_ms = loop_now_ms();
    char text[PULL_TEXT_SIZE];

    progress_text(&pull->progress, now_ms - pull->begun_ms, text);
    for (const struct container *one = pull->waiting; one != NULL; one = one->wait_next)
        run_say(one->run, text);
    io_timer_start(pull->drivers->config.loop, timer,
                   now_ms + pull->drivers->config.docker.pull_report_ms, on_report, pull);
}

/* --- its end --- */

/* Those who wait go on, or have failed as it has; and it is gone. */
static void end(struct pull *pull)
{
    unlist(pull);
    while (pull->waiting != NULL) {
        struct container *container = pull->waiting;

        container->pulled = true;
        container_wait_ends(container, &pull->failed);
    }
    pull_free(pull);
}

static void on_pulled(void *ctx, const struct http_reply *reply)
{
    struct pull *pull = ctx;

    pull->request = NULL;
    if (pull->is_over) /* it was given up */
        return;
    if (pull->line_length > 0)
        take_line(pull, pull->line, pull->line_length);
    if (reply->status / 100 != 2 && pull->failed.code == 0) {
        (void)engine_fault(reply, &pull->failed);
        (void)err_wrap(&pull->failed, "Failed to pull `%.60s`", pull->image);
        pull->failed.recoverable = true;
    }
    end(pull);
}

/* By one of those who waited for it. */
static void on_left(void *of)
{
    struct pull *pull = of;

    if (pull->is_over || pull->waiting != NULL)
        return;
    unlist(pull);
    if (pull->request != NULL)
        http_cancel(pull->request);
    pull_free(pull);
}

/* --- its beginning --- */

static bool is_same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : text_equal(a, b);
}

static struct pull *find(const struct drivers *drivers, const struct container *container)
{
    struct pull *pull = drivers->pulls;

    while (pull != NULL && !(text_equal(pull->image, container->image) &&
                             is_same_text(pull->auth, container->auth)))
        pull = pull->next;
    return pull;
}

static struct pull *pull_new(struct drivers *drivers, const struct container *container)
{
    struct pull *pull = calloc(1, sizeof(*pull));
    uint64_t now_ms = loop_now_ms();

    check(pull != NULL);
    *pull = (struct pull){.drivers = drivers,
                          .auth = container->auth == NULL ? NULL : strdup(container->auth),
                          .begun_ms = now_ms,
                          .since_ms = now_ms,
                          .next = drivers->pulls,
                          .link = &drivers->pulls};
    check((pull->auth == NULL) == (container->auth == NULL));
    (void)text_copy(pull->image, sizeof(pull->image), container->image); /* of the same size */
    if (pull->next != NULL)
        pull->next->link = &pull->next;
    drivers->pulls = pull;
    return pull;
}

static void ask(struct pull *pull, uint64_t timeout_ms)
{
    const struct drivers *drivers = pull->drivers;
    char repository[IMAGE_NAME_SIZE], tag[IMAGE_NAME_SIZE], path[IMAGE_NAME_SIZE * 6 + 64];

    check(image_split(pull->image, repository, tag)); /* checked before */
    scoped_string char *from = engine_quote(repository), *version = engine_quote(tag);
    bool fits = text_format(path, sizeof(path), "/images/create?fromImage=%s%s%s", from,
                            *tag == '\0' ? "" : "&tag=", version);
    check(fits);
    const struct engine_ask asked = {.method = "POST",
                                     .path = path,
                                     .header = pull->auth,
                                     .lasts = true,
                                     .secret = true,
                                     .timeout_ms = timeout_ms,
                                     .on_data = on_progress,
                                     .cb = on_pulled,
                                     .ctx = pull};
    pull->request = engine_ask(drivers, &asked, &pull->failed);
    if (pull->request == NULL)
        return;
    io_timer_start(drivers->config.loop, &pull->silence,
                   pull->since_ms + drivers->config.docker.pull_activity_timeout_ms, on_silence,
                   pull);
    io_timer_start(drivers->config.loop, &pull->report,
                   pull->since_ms + drivers->config.docker.pull_report_ms, on_report, pull);
}

void pull_begin(struct container *container)
{
    struct drivers *drivers = container->run->drivers;
    struct pull *pull = find(drivers, container);
    bool is_new = pull == NULL;

    if (is_new)
        pull = pull_new(drivers, container);
    container_wait(container, &pull->waiting, on_left, pull);
    run_say(container->run, "Downloading image");
    if (is_new)
        ask(pull, container->pull_timeout_ms);
    if (pull->request == NULL) /* nobody can be asked here */
        end(pull);
}
