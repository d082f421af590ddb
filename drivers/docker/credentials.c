/*
 * What images are called, and who asks a registry for them: the job's own credentials, or those
 * that the node's file has for the registry, as docker login writes it, or a program that it names.
 */
#include "drivers/docker/docker.h"

#include "io/scope.h"

#include <ctype.h>
#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>

/* --- names --- */

static bool is_plain(const char *text, const char *more)
{
    for (; *text != '\0'; text++) {
        if (!isalnum((unsigned char)*text) && strchr(more, *text) == NULL)
            return false;
    }
    return true;
}

bool image_split(const char *image, char repository[IMAGE_NAME_SIZE], char tag[IMAGE_NAME_SIZE])
{
    const char *digest = strchr(image, '@');

    if (!isalnum((unsigned char)image[0]) || !text_copy(repository, IMAGE_NAME_SIZE, image) ||
        !is_plain(image, "-_./:@"))
        return false;
    tag[0] = '\0';
    if (digest != NULL) { /* a tag before it says nothing more */
        const char *colon = strchr(digest, ':');
        size_t length = (size_t)(digest - image);

        if (colon == NULL || !is_plain(colon + 1, "") || strlen(colon + 1) < 32)
            return false;
        repository[length] = '\0';
        char *end = strrchr(repository, ':');
        if (end != NULL && strchr(end, '/') == NULL)
            *end = '\0';
        return text_append(repository, IMAGE_NAME_SIZE, digest);
    }
    char *colon = strrchr(repository, ':');
    if (colon == NULL || strchr(colon, '/') != NULL)
        return text_copy(tag, IMAGE_NAME_SIZE, "latest");
    *colon = '\0';
    return colon[1] != '\0' && is_plain(colon + 1, "-_.") &&
           text_copy(tag, IMAGE_NAME_SIZE, colon + 1);
}

/* The registry of an image, as files of credentials call it. */
static void registry_of(const char *image, char to[IMAGE_NAME_SIZE])
{
    size_t length = strcspn(image, "/");
    bool is_host = image[length] == '/' &&
                   (memchr(image, '.', length) != NULL || memchr(image, ':', length) != NULL ||
                    (length == 9 && memcmp(image, "localhost", 9) == 0));

    if (!is_host || (length == 9 && memcmp(image, "docker.io", 9) == 0))
        (void)text_copy(to, IMAGE_NAME_SIZE, "https://index.docker.io/v1/"); /* fits */
    else
        (void)text_format(to, IMAGE_NAME_SIZE, "%.*s", (int)length,
                          image); /* an image's name fits */
}

/* --- credentials --- */

static char *header_of(json_t *credentials)
{
    scoped_string char *text = json_dumps(credentials, JSON_COMPACT);
    size_t length, size;
    char *header;

    check(text != NULL);
    length = strlen(text);
    size = sizeof("X-Registry-Auth: ") + BASE64_ENCODE_RAW_LENGTH(length);
    header = calloc(1, size);
    check(header != NULL);
    size_t used = sizeof("X-Registry-Auth: ") - 1;
    memcpy(header, "X-Registry-Auth: ", used);
    base64_encode_raw(header + used, length, (const uint8_t *)text);
    for (char *at = header + used; *at != '\0'; at++) /* as in addresses */
        *at = *at == '+' ? '-' : *at == '/' ? '_' : *at;
    explicit_bzero(text, length);
    json_decref(credentials);
    return header;
}

/* "name:password" of TEXT in base64, as docker login writes it. */
static json_t *credentials_of(const char *text, const char *registry)
{
    struct base64_decode_ctx decode;
    size_t length = strlen(text), decoded = BASE64_DECODE_LENGTH(length);
    scoped_string char *plain = calloc(1, decoded + 1);
    json_t *credentials = NULL;

    check(plain != NULL);
    base64_decode_init(&decode);
    if (base64_decode_update(&decode, &decoded, (uint8_t *)plain, length, text) &&
        base64_decode_final(&decode)) {
        plain[decoded] = '\0';
        char *colon = strchr(plain, ':');

        if (colon != NULL) {
            *colon = '\0';
            credentials = json_pack("{s:s, s:s, s:s}", "username", plain, "password", colon + 1,
                                    "serveraddress", registry);
        }
        explicit_bzero(plain, decoded);
    }
    return credentials;
}

/* Who is asked for those of REGISTRY, as FILE says. */
static int find_helper(const json_t *file, const char *registry, char to[HELPER_NAME_SIZE],
                       struct err *err)
{
    const json_t *own = json_object_get(json_object_get(file, "credHelpers"), registry);
    const char *name = json_string_value(own != NULL ? own : json_object_get(file, "credsStore"));

    if (name == NULL || *name == '\0')
        return 0;
    if (is_plain(name, "-_.") && text_copy(to, HELPER_NAME_SIZE, name))
        return 0;
    to[0] = '\0';
    return err_set(err, ERR_REFUSED, "docker: the credentials of this node for %s name no helper",
                   registry);
}

/* What the node's file says of REGISTRY, or the HELPER that it names for it; NULL: nothing, or with
 * ERR that it cannot be read. */
static json_t *find_credentials(const char *path, const char *registry,
                                char helper[HELPER_NAME_SIZE], struct err *err)
{
    json_error_t where;
    json_t *file = json_load_file(path, 0, &where);
    const json_t *auths = json_object_get(file, "auths"), *entry = json_object_get(auths, registry);
    char address[IMAGE_NAME_SIZE + 8];
    json_t *found = NULL;

    if (file == NULL) {
        (void)err_set(err, ERR_REFUSED,
                      "docker: the credentials of this node cannot be read: %s: %s", path,
                      where.text);
        return NULL;
    }
    if (entry == NULL && text_format(address, sizeof(address), "https://%s", registry))
        entry = json_object_get(auths, address);
    const char *auth = json_string_value(json_object_get(entry, "auth"));
    if (auth != NULL)
        found = credentials_of(auth, registry);
    if (auth != NULL && found == NULL)
        (void)err_set(err, ERR_REFUSED, "docker: the credentials of this node for %s are none",
                      registry);
    if (auth == NULL)
        (void)find_helper(file, registry, helper, err); /* it fills that */
    json_decref(file);
    return found;
}

static const char *said(const char *text)
{
    return text == NULL ? "" : text;
}

char *helper_header(const char *answer, const char *registry)
{
    json_t *said_by = json_loads(answer, 0, NULL);
    const char *user = json_string_value(json_object_get(said_by, "Username"));
    const char *secret = json_string_value(json_object_get(said_by, "Secret"));
    json_t *credentials = user == NULL || secret == NULL || (*user == '\0' && *secret == '\0')
                              ? NULL
                              : json_pack("{s:s, s:s, s:s}", "username", user, "password", secret,
                                          "serveraddress", registry);

    json_decref(said_by);
    return credentials == NULL ? NULL : header_of(credentials);
}

void helper_registry(const char *image, char to[IMAGE_NAME_SIZE])
{
    registry_of(image, to);
    if (text_starts_with(to, "https://"))
        (void)text_copy(to, IMAGE_NAME_SIZE, "docker.io"); /* fits */
}

int image_auth(const struct drivers *drivers, const struct command *command, char **ret_header,
               char helper[HELPER_NAME_SIZE], struct err *err)
{
    const struct docker_config *docker = &command->docker;
    const char *file = drivers->config.docker.auth_config;
    const char *usual = drivers->config.docker.auth_helper;
    char registry[IMAGE_NAME_SIZE];
    struct err cause = {0};
    json_t *found = NULL;

    *ret_header = NULL;
    helper[0] = '\0';
    registry_of(docker->image, registry);
    if (*said(docker->auth_username) != '\0' || *said(docker->auth_password) != '\0') {
        const char *server = *said(docker->auth_server) != '\0' ? docker->auth_server : registry;

        found = json_pack("{s:s, s:s, s:s}", "username", said(docker->auth_username), "password",
                          said(docker->auth_password), "serveraddress", server);
        check(found != NULL);
    } else {
        if (file != NULL && *file != '\0')
            found = find_credentials(file, registry, helper, &cause);
        if (found == NULL && helper[0] == '\0' && cause.code == 0 && usual != NULL)
            (void)text_copy(helper, HELPER_NAME_SIZE, usual); /* of its size */
    }
    if (found != NULL)
        *ret_header = header_of(found);
    if (cause.code == 0 || docker->auth_soft_fail)
        return 0;
    *err = cause;
    return cause.code;
}
