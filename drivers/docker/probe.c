/*
 * Whether there is an Engine, which one, and whether it answers.
 *
 * Follows nomad v2.0.6 drivers/docker/fingerprint.go: an Engine that never answered is not there,
 * one that did and does not any more is unwell.
 */
#include "drivers/docker/docker.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MS = 5000, ANSWER_BYTES = 64 << 10 };

bool docker_look(const struct drivers *drivers, char ret_why[ERR_TEXT_SIZE])
{
    const struct drivers_docker *docker = &drivers->config.docker;
    bool is_off = docker->socket == NULL || docker->socket[0] == '\0';

    if (is_off)
        (void)text_copy(ret_why, ERR_TEXT_SIZE, "disabled"); /* fits */
    return !is_off;
}

/* --- one question, on a thread --- */

static bool wait_for(int fd, short events, uint64_t at_ms)
{
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = events};
        uint64_t now_ms = loop_now_ms();
        int ready = now_ms >= at_ms ? 0 : poll(&wait, 1, (int)(at_ms - now_ms));

        if (ready < 0 && errno == EINTR)
            continue;
        return ready > 0;
    }
}

/* All that comes until the Engine closes; false: it does not in time, or sends too much. */
static bool read_answer(struct http_line *line, char to[ANSWER_BYTES], uint64_t at_ms,
                        struct err *err)
{
    size_t length = 0, got;

    for (;;) {
        int code = length == ANSWER_BYTES - 1
                       ? ERR_LIMIT
                       : http_line_recv(line, to + length, ANSWER_BYTES - 1 - length, &got);

        if (code == ERR_AGAIN && wait_for(http_line_fd(line), POLLIN, at_ms))
            continue;
        if (code != 0) {
            (void)err_set(err, ERR_TIMEOUT, "it does not answer");
            return false;
        }
        to[length += got] = '\0';
        if (got == 0)
            return true;
    }
}

/* The answer to "which version?", the body of it; NULL and a reason. */
static json_t *ask_version(const char *socket, struct err *err)
{
    static const char question[] = "GET /version HTTP/1.0\r\nHost: engine\r\n\r\n";
    const struct http_call call = {.method = "GET", .url = "http://engine/", .unix_socket = socket};
    uint64_t at_ms = loop_now_ms() + ANSWER_MS;
    struct http_line *line = NULL;
    size_t sent = 0, length;
    json_t *version = NULL;

    if (http_line_open(&call, &line, err) != 0)
        return NULL;
    while (sent < sizeof(question) - 1) {
        int code = http_line_send(line, question + sent, sizeof(question) - 1 - sent, &length);

        if (code != 0 && !(code == ERR_AGAIN && wait_for(http_line_fd(line), POLLOUT, at_ms)))
            break;
        sent += code == 0 ? length : 0;
    }
    char *answer = malloc(ANSWER_BYTES);
    check(answer != NULL);
    if (read_answer(line, answer, at_ms, err)) {
        const char *body = strstr(answer, "\r\n\r\n");

        version = body == NULL ? NULL : json_loads(body, JSON_DISABLE_EOF_CHECK, NULL);
        if (!json_is_string(json_object_get(version, "Version"))) {
            (void)err_set(err, ERR_IO, "what answers is no Docker Engine");
            json_decref(version);
            version = NULL;
        }
    }
    free(answer);
    http_line_close(line);
    return version;
}

void docker_probe(const struct drivers_config *config, struct driver_probed *ret_probed)
{
    struct driver_probed probed = {.done = true};
    struct err err = {0};
    json_t *version = ask_version(config->docker.socket, &err);

    probed.found = version != NULL;
    if (version == NULL)
        (void)text_format(probed.why, sizeof(probed.why), "no Docker Engine at %s: %s",
                          config->docker.socket, err.text); /* may be cut */
    else
        probed.attributes[probed.attributes_count++] =
            (struct driver_attribute){.name = "driver.docker.version"};
    if (version != NULL) {
        (void)text_copy(probed.attributes[0].value, sizeof(probed.attributes[0].value),
                        json_string_value(json_object_get(version, "Version"))); /* may be cut */
        text_clean(probed.attributes[0].value);
    }
    if (version != NULL && config->docker.volumes_enabled)
        probed.attributes[probed.attributes_count++] =
            (struct driver_attribute){.name = "driver.docker.volumes.enabled", .value = "true"};
    if (version != NULL && config->docker.allow_privileged)
        probed.attributes[probed.attributes_count++] =
            (struct driver_attribute){.name = "driver.docker.privileged.enabled", .value = "true"};
    json_decref(version);
    *ret_probed = probed;
}
