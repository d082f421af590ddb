#include "hooks/render/renderer.h"

#include "base/base.h"
#include "io/loop.h"
#include "spec/rendering.h"
#include "spec/template.h"

#include <stdlib.h>
#include <string.h>

enum {
    LIMIT_MS = 5000, /* for one template */
    YOUNG_MS = 1000, /* it takes another: of its own four seconds, three are left */
};

/* --- messages --- */

static bool send_message(const struct renderer *renderer, char kind, const void *bytes,
                         size_t length)
{
    uint8_t head[RENDERING_HEAD_SIZE];

    rendering_head(head, kind, length);
    return helper_send(&renderer->helper, head, sizeof(head)) &&
           helper_send(&renderer->helper, bytes, length);
}

static bool receive(const struct renderer *renderer, void *to, size_t length)
{
    uint8_t *at = to;

    while (length > 0) {
        size_t got = helper_receive(&renderer->helper, at, length);

        if (got == 0)
            return false;
        at += got;
        length -= got;
    }
    return true;
}

/* True: BYTES are the caller's.  No message of a renderer is longer than what may be rendered. */
static bool receive_message(struct renderer *renderer, char *ret_kind, char **ret_bytes,
                            size_t *ret_length)
{
    uint8_t head[RENDERING_HEAD_SIZE];

    *ret_bytes = NULL;
    if (!receive(renderer, head, sizeof(head)))
        return false;
    *ret_kind = rendering_head_read(head, ret_length);
    renderer->is_strange = *ret_length > TEMPLATE_BYTES_MAX;
    if (renderer->is_strange)
        return false;
    *ret_bytes = malloc(*ret_length + 1);
    check(*ret_bytes != NULL);
    (*ret_bytes)[*ret_length] = '\0';
    if (receive(renderer, *ret_bytes, *ret_length))
        return true;
    free(*ret_bytes);
    *ret_bytes = NULL;
    return false;
}

/* --- its begin and its end --- */

/* What the daemon says is of its own making. */
static bool send_json(const struct renderer *renderer, char kind, const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT);

    check(text != NULL);
    size_t length = strlen(text);
    bool sent = length <= RENDERING_NAMES_MAX && send_message(renderer, kind, text, length);
    free(text);
    return sent;
}

void renderer_end(struct renderer *renderer)
{
    struct err err;

    if (renderer->runs)
        (void)helper_end(&renderer->helper, false, &err); /* it has answered */
    renderer->runs = false;
}

/* It does not go on: why. */
static int fail(struct renderer *renderer, struct err *err)
{
    int code = helper_end(&renderer->helper, !renderer->is_strange, err);

    renderer->runs = false;
    if (renderer->is_strange || code == 0)
        code = err_set(err, ERR_CORRUPT, "cairn-parse did not answer as it should");
    else if (code == ERR_TIMEOUT)
        (void)text_copy(err->text, sizeof(err->text), "it takes too long to render"); /* fits */
    else if (code == ERR_IO)
        return err_wrap(err, "it takes too much memory to render, or worse");
    err->recoverable = err->recoverable || code != ERR_TIMEOUT;
    return code;
}

/* One that has time for a template. */
static int start(struct renderer *renderer, struct err *err)
{
    uint64_t now_ms = loop_now_ms();

    if (renderer->runs && now_ms - renderer->began_ms > YOUNG_MS)
        renderer_end(renderer);
    if (renderer->runs) {
        renderer->helper.until_ms = now_ms + LIMIT_MS;
        return 0;
    }
    if (helper_start(renderer->program, "cairn-parse", RENDERING, now_ms + LIMIT_MS,
                     &renderer->helper, err) != 0) {
        err->recoverable = true;
        return err->code;
    }
    renderer->runs = true;
    renderer->is_strange = false;
    renderer->began_ms = now_ms;
    return send_json(renderer, RENDER_NAMES, renderer->names) ? 0 : fail(renderer, err);
}

/* --- one template --- */

static bool send_order(const struct renderer *renderer, const struct renderer_order *order)
{
    json_t *how =
        json_pack("{s:s, s:s, s:b, s:b, s:I}", "left", order->left, "right", order->right, "strict",
                  order->strict, "alone", order->alone, "now", (json_int_t)order->now_unix_ns);

    check(how != NULL); /* both came out of JSON */
    bool sent = send_json(renderer, RENDER_HOW, how) &&
                send_message(renderer, RENDER_TEXT, order->text, order->length);
    json_decref(how);
    return sent;
}

/* A file that it asks for, or why it gets none. */
static bool give(const struct renderer *renderer, const char *path)
{
    uint8_t failure[RENDERING_FAILURE_SIZE];
    struct err err = {0};
    size_t length;
    char *text;

    if (renderer->read(renderer->ctx, path, &text, &length, &err) != 0)
        return send_message(renderer, RENDER_FAILED, failure, rendering_failure(failure, &err));
    bool sent = send_message(renderer, RENDER_FILE, text, length);
    free(text);
    return sent;
}

/* What others know, or why it gets no answer; it is strange if it asks for nothing. */
static bool answer(struct renderer *renderer, const char *question)
{
    uint8_t failure[RENDERING_FAILURE_SIZE];
    struct err err = {0};
    const char *text = NULL;
    int code = renderer->ask(renderer->ctx, question, &text, &err);

    renderer->is_strange = code == ERR_CORRUPT;
    if (renderer->is_strange)
        return false;
    if (code == 0 && strlen(text) > RENDERING_NAMES_MAX)
        code = err_set(&err, ERR_LIMIT, "there is more of it than templates can be told");
    if (code != 0)
        return send_message(renderer, RENDER_FAILED, failure, rendering_failure(failure, &err));
    return send_message(renderer, RENDER_ANSWER, text, strlen(text));
}

/* True if what it asks for is nothing strange: a file by its path, or something of others. */
static bool is_question(char kind, const char *bytes, size_t length)
{
    return (kind == RENDER_ASKS || kind == RENDER_ASKS_OTHERS) && strlen(bytes) == length;
}

int renderer_say(struct renderer *renderer, const struct renderer_order *order, char **ret_text,
                 size_t *ret_length, bool *ret_asks_time, struct err *err)
{
    char kind = '\0', *bytes;
    size_t length;
    int code = start(renderer, err);

    if (code != 0)
        return code;
    bool goes_on = send_order(renderer, order);
    while (goes_on && receive_message(renderer, &kind, &bytes, &length)) {
        if (kind == RENDER_SAYS || kind == RENDER_SAYS_NOW) {
            *ret_asks_time = kind == RENDER_SAYS_NOW;
            *ret_text = bytes;
            *ret_length = length;
            return 0;
        }
        code =
            kind == RENDER_FAILED ? rendering_failure_read((const uint8_t *)bytes, length, err) : 0;
        renderer->is_strange =
            code == ERR_CORRUPT || (code == 0 && !is_question(kind, bytes, length));
        goes_on = code == 0 && !renderer->is_strange &&
                  (kind == RENDER_ASKS ? give(renderer, bytes) : answer(renderer, bytes));
        free(bytes);
        if (code != 0 && !renderer->is_strange)
            return code;
    }
    return fail(renderer, err);
}
