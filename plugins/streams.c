/*
 * What all streams of a plugin have in common, and what is kept of what they say.
 *
 * A stream that ends while the process lives is not opened by itself: that it tells no more is what
 * the next question whether it is well says, and all are opened when it is asked again who it is.
 */
#include "plugins/part.h"

#include "io/log.h"
#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool plugin_path(const struct plugin_held *plugin, const char *name, char to[PATH_SIZE])
{
    return path_join(to, plugin->directory, name) == 0;
}

void plugin_keep(const struct plugin_held *plugin, const char *name, const void *bytes,
                 size_t length)
{
    char path[PATH_SIZE], made[PATH_SIZE];
    bool kept = plugin_path(plugin, name, path) && plugin_path(plugin, "new", made);
    scoped_fd int fd =
        kept ? open(made, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;

    if (fd < 0 || write(fd, bytes, length) != (ssize_t)length || rename(made, path) != 0)
        log_warn("plugins", "what it says is not kept for a restart plugin=%s what=%s error=%s",
                 log_value(plugin->name), name, strerror(errno));
}

void plugin_note_silence(struct plugin_held *plugin, const struct grpc_reply *reply,
                         const char *what)
{
    if (plugin->untold.code == 0 && reply->error.code != 0)
        plugin->untold = reply->error;
    else if (plugin->untold.code == 0)
        (void)err_set(&plugin->untold, ERR_GONE, "it tells no more of %s", what);
    log_warn("plugins", "%s: nothing is told any more plugin=%s error=%s", what,
             log_value(plugin->name), log_value(plugin->untold.text));
}

void plugin_open_stream(struct plugin_held *plugin, struct grpc_request **ret_stream,
                        const char *method, const void *request, size_t length,
                        bool (*on_message)(void *ctx, const void *message, size_t length),
                        void (*on_end)(void *ctx, const struct grpc_reply *reply))
{
    struct err err = {0};
    const struct grpc_call call = {
        .unix_socket = process_socket(plugin->process),
        .method = method,
        .message = request,
        .message_length = length,
        .answer_bytes_max = PLUGIN_SET_BYTES_MAX,
        .on_message = on_message,
        .cb = on_end,
        .ctx = plugin,
    };

    if (*ret_stream != NULL)
        return;
    *ret_stream = grpc_start(plugin->plugins->loop, &call, &err);
    if (*ret_stream == NULL)
        log_warn("plugins", "cannot be followed plugin=%s error=%s", log_value(plugin->name),
                 log_value(err.text));
}

void plugin_close_stream(struct grpc_request **stream)
{
    struct grpc_request *open = *stream;

    *stream = NULL;
    if (open != NULL)
        grpc_cancel(open);
}
