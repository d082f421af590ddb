/*
 * The first token: its secret is in a file that the operator, or the service manager, has put
 * there, so that nobody can ask before him.
 *
 * It is made once.  What is in the file later counts no more, nor has the file to be there.
 */
#include "agent/bootstrap.h"

#include "agent/parts.h"
#include "io/host.h"
#include "io/log.h"

#include <stdlib.h>
#include <string.h>

enum { SECRET_FILE_MAX = 256 };

static int read_secret(const char *path, char to[UUID_TEXT_SIZE], struct err *err)
{
    char *text;
    size_t length;
    int code = file_read(path, SECRET_FILE_MAX, &text, &length, err);

    if (code != 0)
        return err_wrap(err, "acl.bootstrap_secret_file");
    text[strcspn(text, " \r\n")] = '\0';
    if (!uuid_is_valid(text))
        code = err_set(err, ERR_INVALID,
                       "acl.bootstrap_secret_file: %s does not begin with a UUID, which the secret "
                       "of a token is",
                       path);
    else
        (void)text_copy(to, UUID_TEXT_SIZE, text); /* of that size */
    explicit_bzero(text, length);
    free(text);
    return code;
}

static void told(void *ctx, int code, const struct err *err, const json_t *answer)
{
    const struct parts *parts = ctx;

    (void)answer; /* has the secret in it */
    if (code == 0)
        log_info("agent", "the first token is made, of secret_file=%s",
                 log_value(parts->config->bootstrap_secret_file));
    else
        log_error("agent", "the first token cannot be made; SIGHUP tries again error=%s",
                  log_value(err->text));
}

bool bootstrap_is_configured(const struct parts *parts)
{
    return parts->config->bootstrap_secret_file[0] != '\0';
}

int bootstrap_ask(struct parts *parts, struct err *err)
{
    struct acl *acl = alone_acl(parts->alone);
    struct acl_fresh fresh;

    if (!bootstrap_is_configured(parts) || acl_is_bootstrapped(acl))
        return 0;
    int code = read_secret(parts->config->bootstrap_secret_file, fresh.secret, err);
    if (code == 0) {
        host_draw_id(fresh.accessor);
        acl_bootstrap(acl, &fresh, NULL, NULL, told, parts);
    }
    explicit_bzero(&fresh, sizeof(fresh));
    return code;
}
