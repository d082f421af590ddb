/*
 * Asking CNI plugins for their versions: one that is told to do nothing says who it is.
 *
 * Follows nomad v2.0.5 client/fingerprint/plugins_cni.go: the first word that is a version counts,
 * so a plugin whose build does not know its own, as Debian's, has that of the protocol.  Unlike
 * there, of two plugins of one name the first is asked: it is the one that is run.
 */
#include "hooks/network/versions.h"

#include "io/host.h"
#include "io/program.h"
#include "io/scope.h"
#include "spec/constraint.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLUGIN_LIMIT_MS = 3000, PLUGINS_MAX = 256 };

struct finding {
    struct arena *arena;
    struct spec_pairs *found;
    const char *path;
    const atomic_bool *over;
};

static const char *first_version(struct arena *arena, char *said)
{
    char *rest = said, *word;

    while ((word = strsep(&rest, " \t\r\n")) != NULL) {
        if (*word != '\0' && constraint_is_version(word))
            return arena_text(arena, word);
    }
    return NULL;
}

static const char *ask(struct arena *arena, const char *program)
{
    char *environment[] = {NULL};
    const struct program_call call = {
        .program = program,
        .environment = environment,
        .input = "",
        .lock_fd = -1,
        .cancel_fd = -1,
        .limit_ms = PLUGIN_LIMIT_MS,
        .together = true,
    };
    struct program_answer answer = {0};
    const char *version = NULL;

    if (program_run(&call, &answer, NULL) == 0 && answer.status == 0)
        version = first_version(arena, answer.output);
    program_close(&answer);
    return version;
}

static bool is_known(const struct spec_pairs *found, const char *name)
{
    for (size_t i = 0; i < found->count; i++) {
        if (text_equal(found->items[i].key, name))
            return true;
    }
    return false;
}

static int look_at(void *ctx, const char *name, unsigned char type)
{
    const struct finding *finding = ctx;
    struct spec_pairs *found = finding->found;
    char program[PATH_SIZE];

    (void)type; /* links are followed */
    if (atomic_load(finding->over))
        return 1;
    if (is_known(found, name) || !program_find(finding->path, name, program))
        return 0;
    const char *version = ask(finding->arena, program);
    if (version == NULL)
        return 0;
    found->items = arena_more(finding->arena, found->items, found->count, sizeof(*found->items));
    found->items[found->count++] =
        (struct spec_pair){.key = arena_text(finding->arena, name), .value = version};
    return found->count == PLUGINS_MAX;
}

struct spec_pairs cni_versions(const char *path, const atomic_bool *over, struct arena *arena)
{
    struct spec_pairs found = {0};
    struct finding finding = {.arena = arena, .found = &found, .path = path, .over = over};

    while (*path != '\0') {
        char directory[PATH_SIZE];
        size_t length = strcspn(path, ":");

        if (text_format(directory, sizeof(directory), "%.*s", (int)length, path)) {
            scoped_fd int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

            if (fd >= 0)
                (void)directory_each(fd, look_at, &finding); /* what cannot be read has none */
        }
        path += length;
        path += *path == ':';
    }
    return found;
}
