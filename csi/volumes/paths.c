/*
 * Where a volume is below the root of its plugin.
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

int volume_paths_of(const struct csi_claim *claim, struct volume_paths *ret_paths, struct err *err)
{
    const struct volume_define *define = claim->define;
    const char *attachment, *access;

    if (!is_part(define->namespace) || !is_part(define->volume) || !is_part(define->plugin) ||
        !is_part(claim->alloc) || define->access_mode >= CSI_ACCESS_COUNT ||
        define->attachment_mode >= CSI_ATTACHMENT_COUNT)
        return err_set(err, ERR_INVALID, "volume \"%.100s\" has no path: its claim is damaged",
                       define->volume);
    attachment = spec_attachment_name((enum csi_attachment)define->attachment_mode);
    access = spec_access_name((enum csi_access)define->access_mode);
    /* All of them fit. */
    check(text_format(ret_paths->staging, PATH_SIZE, "staging/%s/%s", define->namespace,
                      define->volume));
    check(
        text_format(ret_paths->above, PATH_SIZE, "per-alloc/%s/%s", claim->alloc, define->volume));
    check(text_format(ret_paths->target, PATH_SIZE, "%s/%s-%s-%s", ret_paths->above,
                      define->read_only ? "ro" : "rw", attachment, access));
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
