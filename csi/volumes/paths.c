/*
 * Where a volume is below the root of its plugin, and what is where one would be.
 *
 * The same on the host and in the plugin, only the root has two names.  Follows nomad v2.0.5
 * client/pluginmanager/csimanager/volume.go, but for the directory of a staged volume, which there
 * is another one for each way of using it: CSI allows one, and a machine that is not the one that
 * staged it has to find it.
 */
#include "csi/volumes/part.h"

#include "spec/names.h"

#include <string.h>

static bool is_part(const char *text)
{
    return *text != '\0' && strchr(text, '/') == NULL && !text_equal(text, ".") &&
           !text_equal(text, "..") && strlen(text) < NAME_SIZE;
}

static void usage_name(char to[NAME_SIZE], bool read_only, uint8_t attachment, uint8_t access)
{
    check(text_format(to, NAME_SIZE, "%s-%s-%s", read_only ? "ro" : "rw",
                      spec_attachment_name((enum csi_attachment)attachment),
                      spec_access_name((enum csi_access)access)));
}

int volume_paths_of(const struct csi_claim *claim, struct volume_paths *ret_paths, struct err *err)
{
    const struct volume_define *define = claim->define;
    char usage[NAME_SIZE];

    if (!is_part(define->namespace) || !is_part(define->volume) || !is_part(define->plugin) ||
        !is_part(claim->alloc) || define->access_mode >= CSI_ACCESS_COUNT ||
        define->attachment_mode >= CSI_ATTACHMENT_COUNT)
        return err_set(err, ERR_INVALID, "volume \"%.100s\" has no path: its claim is damaged",
                       define->volume);
    usage_name(usage, define->read_only != 0, define->attachment_mode, define->access_mode);
    /* All of them fit. */
    check(text_format(ret_paths->staging, PATH_SIZE, "staging/%s/%s", define->namespace,
                      define->volume));
    check(
        text_format(ret_paths->above, PATH_SIZE, "per-alloc/%s/%s", claim->alloc, define->volume));
    check(text_format(ret_paths->target, PATH_SIZE, "%s/%s", ret_paths->above, usage));
    return 0;
}

void csi_path_in(const char *root, const char *path, char to[PATH_SIZE])
{
    if (path_join(to, root, path) != 0)
        (void)text_copy(to, PATH_SIZE, ""); /* the call says that it is none */
}

int csi_volume_seen(const char *root, const struct csi_claim *claim, char staging[PATH_SIZE],
                    char target[PATH_SIZE], struct err *err)
{
    struct volume_paths paths;
    int code = volume_paths_of(claim, &paths, err);

    if (code != 0)
        return code;
    csi_path_in(root, paths.staging, staging);
    csi_path_in(root, paths.target, target);
    return 0;
}

/* --- the other way --- */

enum { PARTS_MAX = 5 };

struct finding {
    size_t root_length;
    bool (*cb)(void *ctx, const struct csi_found *found);
    void *ctx;
};

/* PATH in place, by its slashes; 0: it has more parts than that. */
static size_t split(char *path, char *parts[PARTS_MAX])
{
    size_t count = 0;

    for (char *at = path; at != NULL; count++) {
        if (count == PARTS_MAX)
            return 0;
        parts[count] = strsep(&at, "/");
    }
    return count;
}

/* How a volume is used whose target has the name USAGE. */
static bool read_usage(const char *usage, struct volume_define *define)
{
    char name[NAME_SIZE];

    for (int attachment = 0; attachment < CSI_ATTACHMENT_COUNT; attachment++) {
        for (int access = 0; access < CSI_ACCESS_COUNT; access++) {
            for (int read_only = 0; read_only < 2; read_only++) {
                usage_name(name, read_only != 0, (uint8_t)attachment, (uint8_t)access);
                if (!text_equal(name, usage))
                    continue;
                define->read_only = (uint8_t)read_only;
                define->attachment_mode = (uint8_t)attachment;
                define->access_mode = (uint8_t)access;
                return true;
            }
        }
    }
    return false;
}

/* POINT is <root>/<plugin>/<place of a volume>, or of no concern. */
static bool look_at(void *ctx, const char *point)
{
    const struct finding *finding = ctx;
    struct csi_found found = {.alloc = NULL};
    struct volume_define *define = &found.define;
    char path[PATH_SIZE], *parts[PARTS_MAX];

    if (strlen(point) <= finding->root_length ||
        !text_copy(path, sizeof(path), point + finding->root_length + 1))
        return true;
    size_t count = split(path, parts);
    bool published = count == 5 && text_equal(parts[1], "per-alloc") && uuid_is_valid(parts[2]) &&
                     read_usage(parts[4], define);
    bool staged = count == 4 && text_equal(parts[1], "staging") &&
                  text_copy(define->namespace, sizeof(define->namespace), parts[2]);
    if ((!published && !staged) || !text_copy(define->plugin, sizeof(define->plugin), parts[0]) ||
        !text_copy(define->volume, sizeof(define->volume), parts[3]))
        return true;
    found.alloc = published ? parts[2] : NULL;
    return finding->cb(finding->ctx, &found);
}

int csi_volumes_each_mounted(const char *root, bool (*cb)(void *ctx, const struct csi_found *found),
                             void *ctx, struct err *err)
{
    struct finding finding = {strlen(root), cb, ctx};

    return mount_each_below(AT_FDCWD, root, look_at, &finding, err);
}
