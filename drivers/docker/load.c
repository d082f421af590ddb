/*
 * Images that a task brings along: an archive of its directory, which the Engine is given.
 *
 * Follows nomad v2.0.6 drivers/docker/driver.go loadImage.  An archive may be large, and a disk
 * slow: it goes from the file to the Engine's socket on a thread of the pool, one at a time of all
 * that there are.  What is below a task's directory is the payload's to exchange: the path is not
 * followed over links, and what is no file is not read.
 */
#include "drivers/docker/docker.h"

#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { LOAD_CHUNK = 1 << 20, LOAD_ANSWER_MAX = 64 << 10, LOAD_LOOK_MS = 500 };

struct load {
    struct io_work work;
    struct drivers *drivers; /* NULL: the room is closed */
    struct load *next, **link;
    struct container *waiting; /* NULL: nobody does any more */
    bool runs;
    atomic_bool is_over;
    char socket[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    char alloc_dir[512], path[IMAGE_NAME_SIZE];
    uint64_t until_ms;
    struct err failed;
};

static void run_next(struct drivers *drivers);

/* --- on a thread --- */

static int open_archive(struct load *load, off_t *ret_size)
{
    scoped_fd int root = open(load->alloc_dir, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    scoped_fd int fd = root < 0 ? -errno : beneath_open(root, load->path, O_RDONLY | O_NONBLOCK, 0);
    struct stat status;

    if (fd < 0) {
        (void)err_os(&load->failed, err_from_errno(-fd), -fd,
                     "docker: \"load\": cannot open %.100s", load->path);
        return -1;
    }
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        (void)err_set(&load->failed, ERR_INVALID, "docker: \"load\": %.100s is no file",
                      load->path);
        return -1;
    }
    *ret_size = status.st_size;
    return take_fd(&fd);
}

static int connect_engine(struct load *load)
{
    const struct timeval look = {.tv_usec = LOAD_LOOK_MS * 1000};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    scoped_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)text_copy(address.sun_path, sizeof(address.sun_path), load->socket); /* of its size */
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &look, sizeof(look)) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof(look)) == 0 &&
        connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
        return take_fd(&fd);
    (void)err_os(&load->failed, err_from_errno(errno), errno,
                 "the Docker Engine cannot be reached");
    load->failed.recoverable = true;
    return -1;
}

/* The last call has failed, as errno says: true if it was only that it took long. */
static bool goes_on(struct load *load)
{
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
        (void)err_os(&load->failed, err_from_errno(errno), errno,
                     "the Docker Engine takes no more of the image");
    } else if (atomic_load(&load->is_over)) {
        (void)err_set(&load->failed, ERR_CANCELED, "the image is not wanted any more");
    } else if (loop_now_ms() >= load->until_ms) {
        (void)err_set(&load->failed, ERR_TIMEOUT,
                      "the image was not loaded in time (image_pull_timeout)");
    }
    load->failed.recoverable = load->failed.code != 0;
    return load->failed.code == 0;
}

/* An Engine that has enough of it may say so, and listen to no more: its answer is read. */
static bool send_archive(struct load *load, int to, int from, off_t size)
{
    char head[256];
    size_t sent = 0;

    check(text_format(head, sizeof(head),
                      "POST /images/load?quiet=1 HTTP/1.0\r\nHost: engine\r\n"
                      "Content-Type: application/x-tar\r\nContent-Length: %lld\r\n\r\n",
                      (long long)size));
    while (sent < strlen(head)) {
        ssize_t done = send(to, head + sent, strlen(head) - sent, MSG_NOSIGNAL);

        if (done < 0 && !goes_on(load))
            return false;
        sent += done < 0 ? 0 : (size_t)done;
    }
    for (off_t at = 0; at < size;) {
        ssize_t done = sendfile(to, from, &at, LOAD_CHUNK);

        if (done == 0) {
            (void)err_set(&load->failed, ERR_IO, "docker: \"load\": %.100s became shorter",
                          load->path);
            return false;
        }
        if (done < 0 && (errno == EPIPE || errno == ECONNRESET))
            return true;
        if (done < 0 && !goes_on(load))
            return false;
        if (done > 0 && (atomic_load(&load->is_over) || loop_now_ms() >= load->until_ms)) {
            errno = EAGAIN;
            if (!goes_on(load))
                return false;
        }
    }
    return true;
}

/* What the Engine has to say, all of it or the beginning; the length. */
static size_t read_answer(struct load *load, int from, char to[LOAD_ANSWER_MAX])
{
    size_t length = 0;

    while (length < LOAD_ANSWER_MAX - 1) {
        ssize_t got = recv(from, to + length, LOAD_ANSWER_MAX - 1 - length, 0);

        if (got == 0 || (got < 0 && !goes_on(load)))
            break;
        length += got < 0 ? 0 : (size_t)got;
    }
    to[length] = '\0';
    return length;
}

int load_fault(const char *answer, size_t length, struct err *err)
{
    const char *body = memmem(answer, length, "\r\n\r\n", 4);
    struct http_reply reply = {.status = 0};
    char text[ERR_TEXT_SIZE] = "";

    if (length > 12 && memcmp(answer, "HTTP/1.", 7) == 0)
        reply.status = (int)strtol(answer + 9, NULL, 10);
    if (body == NULL || reply.status < 100)
        return err_set(err, ERR_IO, "the Docker Engine's answer to an image is none");
    body += 4;
    if (reply.status / 100 != 2) {
        reply.body = body;
        reply.body_length = length - (size_t)(body - answer);
        (void)engine_fault(&reply, err);
        return err->code;
    }
    for (const char *line = body; *line != '\0';) {
        size_t size = strcspn(line, "\n");
        json_t *said_by = json_loadb(line, size, 0, NULL);
        const char *error = json_string_value(json_object_get(said_by, "error"));

        if (error != NULL)
            (void)text_copy(text, sizeof(text), error); /* may be cut */
        json_decref(said_by);
        line += size + (line[size] == '\n');
    }
    if (text[0] == '\0')
        return 0;
    text_whole(text);
    text_clean(text);
    return err_set(err, ERR_REFUSED, "%s", text);
}

static void on_pool(struct io_work *work)
{
    struct load *load = work->ctx;
    off_t size = 0;
    scoped_fd int from = open_archive(load, &size);
    scoped_fd int to = from < 0 ? -1 : connect_engine(load);

    if (to < 0 || !send_archive(load, to, from, size))
        return;
    char *answer = malloc(LOAD_ANSWER_MAX);
    check(answer != NULL);
    size_t length = read_answer(load, to, answer);
    if (load->failed.code == 0 && load_fault(answer, length, &load->failed) != 0)
        (void)err_wrap(&load->failed, "Failed to load `%.60s`", load->path);
    free(answer);
}

/* --- on the loop --- */

static void load_free(struct load *load)
{
    *load->link = load->next;
    if (load->next != NULL)
        load->next->link = load->link;
    free(load);
}

static void on_loaded(struct io_work *work)
{
    struct load *load = work->ctx;
    struct drivers *drivers = load->drivers;
    struct container *container = load->waiting;

    if (drivers == NULL) {
        free(load);
        return;
    }
    if (container != NULL) {
        container->pulled = true;
        container_wait_ends(container, &load->failed);
    }
    load_free(load);
    run_next(drivers);
}

/* The oldest is the last of the list. */
static void run_next(struct drivers *drivers)
{
    struct load *load = drivers->loads, *oldest = NULL;

    while (load != NULL) {
        struct load *next = load->next;

        if (load->runs)
            return;
        if (load->waiting == NULL)
            load_free(load);
        else
            oldest = load;
        load = next;
    }
    if (oldest == NULL)
        return;
    oldest->runs = true;
    oldest->until_ms = loop_now_ms() + oldest->waiting->pull_timeout_ms;
    io_work_submit(drivers->config.loop, &oldest->work, on_pool, on_loaded, oldest);
}

static void on_left(void *of)
{
    struct load *load = of;

    atomic_store(&load->is_over, true); /* who has not begun is passed over */
}

void load_begin(struct container *container)
{
    struct drivers *drivers = container->run->drivers;
    struct load *load = calloc(1, sizeof(*load));

    check(load != NULL);
    load->drivers = drivers;
    load->next = drivers->loads;
    load->link = &drivers->loads;
    if (load->next != NULL)
        load->next->link = &load->next;
    drivers->loads = load;
    (void)text_copy(load->path, sizeof(load->path), container->load); /* of the same size */
    (void)text_copy(load->alloc_dir, sizeof(load->alloc_dir), container->record.alloc_dir);
    (void)text_copy(load->socket, sizeof(load->socket), drivers->config.docker.socket);
    container_wait(container, &load->waiting, on_left, load);
    run_next(drivers);
}

void loads_close(struct drivers *drivers)
{
    while (drivers->loads != NULL) {
        struct load *load = drivers->loads;

        drivers->loads = load->next;
        load->drivers = NULL;
        atomic_store(&load->is_over, true);
        if (!load->runs)
            free(load);
    }
}
