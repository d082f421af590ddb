/* Two streams in one, as an Engine sends output that is of no terminal: of logs, and of commands.
 */
#include "drivers/docker/docker.h"

#include <string.h>

static bool begin(struct frames *frames)
{
    const unsigned char *head = frames->head;

    frames->left = (size_t)head[4] << 24 | (size_t)head[5] << 16 | (size_t)head[6] << 8 | head[7];
    frames->stream = head[0] == 2;
    frames->head_used = 0;
    return head[0] <= 2 && frames->left > 0 && frames->left <= FRAME_MAX;
}

enum frames_found frames_next(struct frames *frames, const char **bytes, size_t *length,
                              struct frame_part *ret_part)
{
    while (*length > 0) {
        bool in_head = frames->left == 0;
        size_t wanted = in_head ? FRAME_HEAD - frames->head_used : frames->left;
        size_t part = *length < wanted ? *length : wanted;
        const char *from = *bytes;

        *bytes += part;
        *length -= part;
        if (!in_head) {
            frames->left -= part;
            *ret_part = (struct frame_part){frames->stream, from, part, frames->left == 0};
            return FRAMES_PART;
        }
        memcpy(frames->head + frames->head_used, from, part);
        frames->head_used += part;
        if (frames->head_used == FRAME_HEAD && !begin(frames))
            return FRAMES_STRANGE;
    }
    return FRAMES_WAIT;
}
