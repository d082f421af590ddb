/* Images that tasks wait for, use, or use no more, before an Engine that is asked for them, and to
 * remove them: over restarts of the daemon, and when it says something else than yes. */
#include "test/drivers/room.h"

#include "drivers/docker/images.c" /* what is private to it, too */

enum { ASKED_MAX = 8 };

struct stand {
    struct room *room;
    struct http_server *server;
    char socket[PATH_SIZE];
    int status; /* of answers, 0: none is given */
    char asked[ASKED_MAX][80];
    size_t asked_count, awaited;
    struct http_exchange *held;
};

static const char first[] = "sha256:aaaa", second[] = "sha256:bbbb";

static void on_gone(void *ctx)
{
    struct stand *stand = ctx;

    stand->held = NULL;
}

static void on_request(void *ctx, struct http_exchange *exchange)
{
    struct stand *stand = ctx;

    if (text_equal(http_path(exchange), "/version")) { /* whether there is an Engine */
        http_respond(exchange, 404, "application/json", NULL, 0, "{}", 2);
        return;
    }
    assert_true(stand->asked_count < ASKED_MAX);
    assert_true(text_format(stand->asked[stand->asked_count++], sizeof(stand->asked[0]), "%s %s",
                            http_method(exchange), http_path(exchange)));
    stand->held = exchange;
    if (stand->status != 0)
        http_respond(exchange, stand->status, "application/json", NULL, 0, "{}", 2);
    else
        http_on_close(exchange, on_gone, stand);
    if (stand->asked_count == stand->awaited)
        loop_stop(stand->room->loop);
}

static void too_late(struct io_timer *timer)
{
    struct stand *stand = timer->ctx;

    fail_msg("%zu requests came, not %zu", stand->asked_count, stand->awaited);
}

/* Until so many requests have come, in all. */
static void await_asked(struct stand *stand, size_t count)
{
    struct io_timer bound = {0};

    stand->awaited = count;
    io_timer_start(stand->room->loop, &bound, loop_now_ms() + PATIENCE_MS, too_late, stand);
    if (stand->asked_count < count)
        loop_run(stand->room->loop);
    io_timer_stop(&bound);
}

static bool look_at_state(void *ctx)
{
    struct stand *stand = ctx;
    const struct image *image = stand->room->drivers->images;

    while (image != NULL && image->state != IMAGE_LEAVING)
        image = image->next;
    if (image == NULL)
        loop_stop(stand->room->loop);
    return false;
}

/* Until what came of a removal is known. */
static void await_settled(struct stand *stand)
{
    struct io_before_sleep look = {0};
    struct io_timer bound = {0};

    io_timer_start(stand->room->loop, &bound, loop_now_ms() + PATIENCE_MS, too_late, stand);
    io_before_sleep_start(stand->room->loop, &look, look_at_state, stand);
    loop_run(stand->room->loop);
    io_before_sleep_stop(&look);
    io_timer_stop(&bound);
}

static void stop(struct io_timer *timer)
{
    loop_stop(timer->ctx);
}

/* What is armed for now has its turn. */
static void go_round(struct stand *stand)
{
    struct io_timer now = {0};

    io_timer_start(stand->room->loop, &now, loop_now_ms(), stop, stand->room->loop);
    loop_run(stand->room->loop);
}

/* As a daemon that starts. */
static void open_stand(struct stand *stand, uint64_t delay_ms)
{
    struct err err = {0};

    room_open(stand->room);
    struct drivers_docker *docker = &stand->room->drivers->config.docker;
    const struct http_listen listen = {.unix_socket = stand->socket,
                                       .connections_max = 8,
                                       .body_bytes_max = 1 << 16,
                                       .handle = on_request,
                                       .ctx = stand};
    (void)unlink(stand->socket);
    stand->server = http_server_new(stand->room->loop, &listen, &err);
    if (stand->server == NULL)
        fail_msg("%s", err.text);
    *docker = (struct drivers_docker){
        .socket = stand->socket, .collects_images = true, .image_delay_ms = delay_ms};
    assert_int_equal(images_open(stand->room->drivers, &err), 0);
}

static void close_stand(struct stand *stand)
{
    struct drivers *drivers = stand->room->drivers;

    images_close(drivers); /* while the loop and its server are there */
    drivers->images_fd = -1;
    http_server_free(stand->server);
    room_close(stand->room);
}

static int make(void **state)
{
    struct stand *stand = calloc(1, sizeof(*stand));
    void *room;

    assert_non_null(stand);
    if (room_make(&room) != 0)
        return -1;
    stand->room = room;
    stand->status = 200;
    assert_int_equal(path_join(stand->socket, stand->room->path, "engine.sock"), 0);
    *state = stand;
    return 0;
}

static int unmake(void **state)
{
    struct stand *stand = *state;
    void *room = stand->room;

    free(stand);
    return room_remove(&room);
}

/* A container of ID, as it is just before it is made. */
static struct container *container_of(struct stand *stand, uint32_t generation, const char *id)
{
    struct driver_key key = room_key(stand->room, generation);
    struct container *container = calloc(1, sizeof(*container));

    assert_non_null(container);
    container->run = run_new(stand->room->drivers, &key);
    container->run->container = container;
    container->run->phase = RUN_CONTAINED;
    assert_true(text_copy(container->record.image, sizeof(container->record.image), id));
    assert_true(text_copy(container->image, sizeof(container->image), "img:1"));
    return container;
}

static int take(struct stand *stand, uint32_t generation, const char *id)
{
    return images_take(container_of(stand, generation, id));
}

static void leave(struct stand *stand, uint32_t generation)
{
    struct driver_key key = room_key(stand->room, generation);

    images_leave(stand->room->drivers, &key);
}

static const struct image *only(const struct stand *stand)
{
    const struct image *image = stand->room->drivers->images;

    assert_non_null(image);
    assert_null(image->next);
    return image;
}

static bool is_marked(const struct stand *stand, const char *id)
{
    char path[PATH_SIZE];

    assert_true(text_format(path, sizeof(path), "%.3000s/images/%s", stand->room->state, id));
    return access(path, F_OK) == 0;
}

/* What a container's file says that lives on without us. */
static void put_task_file(struct stand *stand, uint32_t generation, const char *id)
{
    struct container_record record = {0};
    char path[PATH_SIZE];

    assert_true(text_copy(record.image, sizeof(record.image), id));
    record_seal(&record, RECORD_MAGIC_CONTAINER, sizeof(record));
    room_task_file(stand->room, generation, path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(task_file_put(fd, TASK_STARTED_AT, &record, false, NULL), 0);
    (void)close(fd);
}

static void remove_task_file(struct stand *stand, uint32_t generation)
{
    char path[PATH_SIZE];

    room_task_file(stand->room, generation, path);
    assert_int_equal(unlink(path), 0);
}

static void an_image_goes_when_its_last_user_has_left_it(void **state)
{
    struct stand *stand = *state;

    open_stand(stand, 0);
    assert_int_equal(take(stand, 1, first), 0);
    assert_int_equal(take(stand, 2, first), 0);
    assert_int_equal(take(stand, 3, second), 0);
    assert_true(is_marked(stand, first) && is_marked(stand, second));
    leave(stand, 1);
    leave(stand, 1); /* as whoever is not known */
    leave(stand, 3);
    await_asked(stand, 1);
    assert_string_equal(stand->asked[0], "DELETE /images/sha256:bbbb");
    leave(stand, 2);
    await_asked(stand, 2);
    assert_string_equal(stand->asked[1], "DELETE /images/sha256:aaaa");
    await_settled(stand);
    assert_null(stand->room->drivers->images);
    assert_false(is_marked(stand, first) || is_marked(stand, second));
    close_stand(stand);
}

static void an_image_that_is_wanted_again_in_time_stays(void **state)
{
    struct stand *stand = *state;

    open_stand(stand, 1);
    assert_int_equal(take(stand, 1, first), 0);
    leave(stand, 1);
    assert_int_equal(only(stand)->state, IMAGE_IDLE);
    assert_int_equal(take(stand, 2, first), 0);
    assert_int_equal(only(stand)->state, IMAGE_USED);
    for (uint64_t since_ms = loop_now_ms(); loop_now_ms() <= since_ms + 2;)
        go_round(stand);
    assert_int_equal(stand->asked_count, 0);
    close_stand(stand);
}

static void what_a_daemon_that_died_knew_is_found_again(void **state)
{
    struct stand *stand = *state;

    open_stand(stand, 3600 * 1000);
    assert_int_equal(take(stand, 1, first), 0);
    put_task_file(stand, 1, first);
    assert_int_equal(take(stand, 2, second), 0);
    leave(stand, 2);
    close_stand(stand);
    open_stand(stand, 0); /* over by now */
    await_asked(stand, 1);
    await_settled(stand);
    assert_string_equal(stand->asked[0], "DELETE /images/sha256:bbbb");
    assert_string_equal(only(stand)->id, first);
    assert_int_equal(only(stand)->state, IMAGE_USED);
    close_stand(stand);
    remove_task_file(stand, 1); /* its container has gone, and nobody has noted when */
    open_stand(stand, 3600 * 1000);
    assert_int_equal(only(stand)->state, IMAGE_IDLE);
    assert_true(only(stand)->due.at_ms > loop_now_ms() + 3000 * 1000);
    close_stand(stand);
    open_stand(stand, 0);
    await_asked(stand, 2);
    assert_string_equal(stand->asked[1], "DELETE /images/sha256:aaaa");
    await_settled(stand);
    close_stand(stand);
    open_stand(stand, 0);
    assert_null(stand->room->drivers->images);
    close_stand(stand);
}

static void a_delay_goes_on_over_a_restart_and_begins_again_after_a_boot(void **state)
{
    struct stand *stand = *state;
    uint64_t due_ms;

    open_stand(stand, 3600 * 1000);
    assert_int_equal(take(stand, 1, first), 0);
    leave(stand, 1);
    due_ms = only(stand)->due.at_ms;
    close_stand(stand);
    open_stand(stand, 3600 * 1000);
    assert_true(only(stand)->due.at_ms == due_ms);
    (void)text_copy(stand->room->drivers->boot_id, sizeof(stand->room->drivers->boot_id),
                    "11111111-2222-4333-8444-555555555555");
    put_since(stand->room->drivers->images, 1); /* which is long over, in another boot */
    close_stand(stand);
    open_stand(stand, 3600 * 1000);
    assert_true(only(stand)->due.at_ms >= due_ms);
    close_stand(stand);
}

static unsigned waited;

static void on_waited(struct container *container, const struct err *err)
{
    (void)container;
    assert_int_equal(err->code, 0);
    waited++;
}

static void who_takes_an_image_that_is_just_going_is_told_when_it_has_gone(void **state)
{
    struct stand *stand = *state;

    open_stand(stand, 0);
    assert_int_equal(take(stand, 1, first), 0);
    stand->status = 0;
    leave(stand, 1);
    await_asked(stand, 1);
    struct container *waiting = container_of(stand, 2, first), *other;
    assert_int_equal(images_take(waiting), ERR_AGAIN);
    other = container_of(stand, 3, first);
    assert_int_equal(images_take(other), ERR_AGAIN);
    run_free(other->run); /* it does not wait until it is told */
    waiting->wait_over = on_waited;
    waiting->pulled = true;
    http_respond(stand->held, 200, "application/json", NULL, 0, "[]", 2);
    await_settled(stand);
    assert_int_equal(waited, 1);
    assert_false(waiting->pulled); /* it may have to be pulled again */
    assert_null(stand->room->drivers->images);
    run_free(waiting->run);
    close_stand(stand);
}

static void what_the_engine_does_not_remove_is_asked_for_again(void **state)
{
    static const int answers[] = {409, 500};
    struct stand *stand = *state;
    uint64_t before_ms = loop_now_ms();

    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        stand->asked_count = 0;
        stand->status = answers[i];
        open_stand(stand, 0);
        if (i == 0)
            assert_int_equal(take(stand, 1, first), 0);
        leave(stand, 1);
        await_asked(stand, 1);
        await_settled(stand);
        assert_true(only(stand)->due.at_ms >= before_ms + IMAGE_AGAIN_MS);
        assert_true(is_marked(stand, first));
        close_stand(stand);
    }
    stand->asked_count = 0;
    stand->status = 404; /* somebody else has removed it */
    open_stand(stand, 0);
    await_asked(stand, 1);
    await_settled(stand);
    assert_false(is_marked(stand, first));
    close_stand(stand);
}

static void a_node_that_collects_none_notes_none(void **state)
{
    struct stand *stand = *state;

    open_stand(stand, 0);
    stand->room->drivers->config.docker.collects_images = false;
    assert_int_equal(take(stand, 1, first), 0);
    leave(stand, 1);
    assert_null(stand->room->drivers->images);
    assert_false(is_marked(stand, first));
    close_stand(stand);
}

static void ids_are_no_paths(void **state)
{
    (void)state;
    assert_true(image_is_id("sha256:0a1b"));
    assert_false(image_is_id(NULL));
    assert_false(image_is_id(""));
    assert_false(image_is_id(".."));
    assert_false(image_is_id("sha256:a/b"));
    assert_false(image_is_id("sha256:a?b"));
    assert_false(image_is_id("0123456789012345678901234567890123456789012345678901234567890123"
                             "0123456789012345678901234567890123456789012345678901234567890123"));
}

/* --- pulls --- */

static unsigned told_begun, told_far;

static void on_said(void *ctx, const struct driver_key *key, const char *text)
{
    struct room *room = ctx;

    assert_string_equal(key->alloc, ALLOC);
    told_begun += text_equal(text, "Downloading image");
    told_far += text_starts_with(text, "Docker image pull progress: Pulled 0/1 (1KiB/4KiB)");
    if (told_far >= 4)
        loop_stop(room->loop);
}

static void tasks_that_wait_for_a_pull_are_told_how_far_it_is(void **state)
{
    static const char line[] = "{\"id\":\"a\",\"status\":\"Downloading\","
                               "\"progressDetail\":{\"current\":1024,\"total\":4096}}\n";
    struct stand *stand = *state;
    struct container *all[3];
    struct io_timer bound = {0};

    open_stand(stand, 0);
    struct drivers_config *config = &stand->room->drivers->config;
    config->on_said = on_said;
    config->docker.pull_activity_timeout_ms = PATIENCE_MS;
    config->docker.pull_report_ms = 1;
    stand->status = 0;
    told_begun = told_far = waited = 0;
    for (uint32_t i = 0; i < COUNT_OF(all); i++) {
        all[i] = container_of(stand, i + 1, first);
        all[i]->wait_over = on_waited;
        pull_begin(all[i]);
    }
    await_asked(stand, 1);
    assert_string_equal(stand->asked[0], "POST /images/create");
    assert_int_equal(told_begun, 3);
    run_free(all[1]->run); /* it is not waited for any more by one of them */
    http_stream_begin(stand->held, 200, "application/json", NULL, 0, NULL, NULL);
    (void)http_stream_write(stand->held, line, sizeof(line) - 1);
    io_timer_start(stand->room->loop, &bound, loop_now_ms() + PATIENCE_MS, too_late, stand);
    loop_run(stand->room->loop);
    assert_int_equal(told_far, 4); /* two, twice */
    http_stream_end(stand->held);
    while (waited < 2)
        go_round(stand);
    io_timer_stop(&bound);
    assert_true(all[0]->pulled && all[2]->pulled);
    assert_null(stand->room->drivers->pulls);
    close_stand(stand);
}

static void a_pull_that_nobody_waits_for_is_given_up(void **state)
{
    struct stand *stand = *state;

    open_stand(stand, 0);
    stand->room->drivers->config.docker.pull_activity_timeout_ms = PATIENCE_MS;
    stand->room->drivers->config.docker.pull_report_ms = PATIENCE_MS;
    stand->status = 0;
    struct container *one = container_of(stand, 1, first), *other = container_of(stand, 2, first);
    other->auth = strdup("X-Registry-Auth: x"); /* who asks for himself */
    pull_begin(one);
    pull_begin(other);
    await_asked(stand, 2);
    run_free(one->run);
    assert_non_null(stand->room->drivers->pulls);
    run_free(other->run);
    assert_null(stand->room->drivers->pulls);
    close_stand(stand);
}

static void take_line(struct pull_progress *progress, const char *text)
{
    json_t *line = json_loads(text, 0, NULL);

    assert_non_null(line);
    progress_take(progress, line);
    json_decref(line);
}

static void a_pull_is_as_far_as_its_layers(void **state)
{
    struct pull_progress progress = {0};
    char text[PULL_TEXT_SIZE];

    (void)state;
    progress_text(&progress, 1000, text);
    assert_string_equal(text, "Docker image pull progress: Pulled 0/0 (0B/0B) layers: 0 waiting/0 "
                              "pulling");
    take_line(&progress, "{\"id\":\"a\",\"status\":\"Pulling fs layer\"}");
    take_line(&progress, "{\"id\":\"b\",\"status\":\"Already exists\"}");
    take_line(&progress, "{\"id\":\"c\",\"status\":\"Waiting\"}");
    take_line(&progress, "{\"id\":\"c\",\"status\":\"Downloading\","
                         "\"progressDetail\":{\"current\":1048576,\"total\":10485760}}");
    take_line(&progress, "{\"id\":\"img\",\"status\":\"Pulling from img\"}");
    take_line(&progress, "{\"status\":\"Waiting\"}");
    take_line(&progress, "[]");
    progress_text(&progress, 119900, text);
    assert_string_equal(text, "Docker image pull progress: Pulled 1/3 (1MiB/10MiB) layers: 1 "
                              "waiting/1 pulling - est 1081.0s remaining");
    take_line(&progress, "{\"id\":\"c\",\"status\":\"Download complete\"}");
    take_line(&progress, "{\"id\":\"a\",\"status\":\"Downloading\","
                         "\"progressDetail\":{\"current\":1536,\"total\":-1}}");
    take_line(&progress, "{\"id\":\"a\",\"status\":\"Downloading\","
                         "\"progressDetail\":{\"current\":1,\"total\":4611686018427387904}}");
    progress_text(&progress, 119900, text);
    assert_string_equal(text, "Docker image pull progress: Pulled 2/3 (10MiB/10MiB) layers: 0 "
                              "waiting/1 pulling");
}

static void layers_beyond_all_bounds_are_none(void **state)
{
    struct pull_progress progress = {0};
    char text[PULL_TEXT_SIZE];

    (void)state;
    for (unsigned i = 0; i < PULL_LAYERS_MAX + 10; i++) {
        char line[80];

        assert_true(
            text_format(line, sizeof(line), "{\"id\":\"%u\",\"status\":\"Pull complete\"}", i));
        take_line(&progress, line);
    }
    take_line(&progress, "{\"id\":\"0123456789012345678901234567890123456789\","
                         "\"status\":\"Waiting\"}");
    progress_text(&progress, UINT64_MAX / 2, text);
    assert_string_equal(text, "Docker image pull progress: Pulled 128/128 (0B/0B) layers: 0 "
                              "waiting/0 pulling");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, unmake)
    const struct CMUnitTest tests[] = {
        TEST(an_image_goes_when_its_last_user_has_left_it),
        TEST(an_image_that_is_wanted_again_in_time_stays),
        TEST(what_a_daemon_that_died_knew_is_found_again),
        TEST(a_delay_goes_on_over_a_restart_and_begins_again_after_a_boot),
        TEST(who_takes_an_image_that_is_just_going_is_told_when_it_has_gone),
        TEST(what_the_engine_does_not_remove_is_asked_for_again),
        TEST(a_node_that_collects_none_notes_none),
        TEST(tasks_that_wait_for_a_pull_are_told_how_far_it_is),
        TEST(a_pull_that_nobody_waits_for_is_given_up),
        cmocka_unit_test(ids_are_no_paths),
        cmocka_unit_test(a_pull_is_as_far_as_its_layers),
        cmocka_unit_test(layers_beyond_all_bounds_are_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
