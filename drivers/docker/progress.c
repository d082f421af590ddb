/*
 * How far a pull is, from the lines that the Engine writes of each layer.
 *
 * Follows nomad v2.0.6 drivers/docker/progress.go, but for layers that are there already, which
 * bring no bytes, and for a time that is left: that of bytes alone, as it is known of.
 */
#include "drivers/docker/docker.h"

#include <string.h>

static enum layer_step step_of(const char *status)
{
    static const struct {
        const char *status;
        enum layer_step step;
    } steps[] = {
        {"Pulling fs layer", LAYER_WAITS},  {"Waiting", LAYER_WAITS},
        {"Downloading", LAYER_COMES},       {"Verifying Checksum", LAYER_COMES},
        {"Download complete", LAYER_THERE}, {"Extracting", LAYER_THERE},
        {"Pull complete", LAYER_THERE},     {"Already exists", LAYER_THERE},
    };

    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        if (text_equal(steps[i].status, status))
            return steps[i].step;
    }
    return LAYER_UNKNOWN;
}

/* That of ID; NULL: it is one too many. */
static struct pull_layer *layer_of(struct pull_progress *progress, const char *id)
{
    for (size_t i = 0; i < progress->count; i++) {
        if (text_equal(progress->layers[i].id, id))
            return &progress->layers[i];
    }
    if (progress->count == PULL_LAYERS_MAX || strlen(id) >= sizeof(progress->layers[0].id))
        return NULL;
    struct pull_layer *layer = &progress->layers[progress->count++];

    (void)text_copy(layer->id, sizeof(layer->id), id); /* fits */
    return layer;
}

void progress_take(struct pull_progress *progress, const json_t *line)
{
    const char *id = json_string_value(json_object_get(line, "id"));
    const char *status = json_string_value(json_object_get(line, "status"));
    const json_t *detail = json_object_get(line, "progressDetail");
    enum layer_step step = status == NULL || id == NULL ? LAYER_UNKNOWN : step_of(status);
    struct pull_layer *layer = step == LAYER_UNKNOWN ? NULL : layer_of(progress, id);
    json_int_t bytes = json_integer_value(json_object_get(detail, "current"));
    json_int_t of = json_integer_value(json_object_get(detail, "total"));

    if (layer == NULL)
        return;
    layer->step = step;
    if (text_equal(status, "Downloading") && bytes >= 0 && of >= bytes && of <= PULL_BYTES_MAX) {
        layer->bytes = bytes;
        layer->bytes_of = of;
    } else if (step == LAYER_THERE) {
        layer->bytes = layer->bytes_of;
    }
}

static void bytes_text(int64_t bytes, char to[24])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int64_t tenths = bytes * 10;
    size_t unit = 0;

    for (; tenths >= 10240 && unit < COUNT_OF(units) - 1; unit++)
        tenths /= 1024;
    if (tenths % 10 == 0)
        check(text_format(to, 24, "%lld%s", (long long)(tenths / 10), units[unit]));
    else
        check(text_format(to, 24, "%lld.%lld%s", (long long)(tenths / 10), (long long)(tenths % 10),
                          units[unit]));
}

void progress_text(const struct pull_progress *progress, uint64_t elapsed_ms,
                   char to[PULL_TEXT_SIZE])
{
    size_t there = 0, comes = 0, waits = 0;
    int64_t bytes = 0, of = 0;
    char here[24], all[24];

    for (size_t i = 0; i < progress->count; i++) {
        const struct pull_layer *layer = &progress->layers[i];

        there += layer->step == LAYER_THERE;
        comes += layer->step == LAYER_COMES;
        waits += layer->step == LAYER_WAITS;
        bytes += layer->bytes;
        of += layer->bytes_of;
    }
    bytes_text(bytes, here);
    bytes_text(of, all);
    check(text_format(to, PULL_TEXT_SIZE,
                      "Docker image pull progress: Pulled %zu/%zu (%s/%s) layers: %zu waiting/%zu "
                      "pulling",
                      there, progress->count, here, all, waits, comes));
    int64_t a_tenth = bytes / (int64_t)(elapsed_ms / 100 + 1); /* of a second brings that many */
    int64_t left_ds = a_tenth == 0 ? 0 : (of - bytes) / a_tenth;
    char rest[64];

    check(text_format(rest, sizeof(rest), " - est %lld.%llds remaining", (long long)(left_ds / 10),
                      (long long)(left_ds % 10)));
    if (left_ds > 0)
        check(text_append(to, PULL_TEXT_SIZE, rest));
}
