/*
 * Gets the bytes of one artifact from wherever they are: by HTTP or from a file with libcurl, from
 * a repository with the git program.
 *
 * A repository is cloned into a place of its own and handed on as a tar, so that whoever
 * writes the task's files never talks to anybody.  Who does this may do nothing here but what every
 * user may.
 */
#include "hooks/fetch/fetch.h"

#include <curl/curl.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CONNECT_TIMEOUT_MS = 30000,
    REDIRECTS_MAX = 10,
    RECEIVE_BYTES = 512 * 1024,
    SUMS_BYTES_MAX = 1 << 20, /* of a file of checksums */
    NOT_FOUND = 127,
    PLACE_SIZE = 4096,
    STALLED_S = 60, /* for which a node may send nothing of a disk */
};

/* --- with libcurl --- */

struct receiving {
    int fd;       /* -1: into memory */
    char *memory; /* NUL behind it */
    uint64_t bytes, bytes_max;
    int os; /* of a write that failed */
    bool too_long;
};

static bool store(struct receiving *receiving, const char *bytes, size_t length)
{
    if (receiving->fd < 0) {
        memcpy(receiving->memory + receiving->bytes, bytes, length);
        return true;
    }
    while (length > 0) {
        ssize_t done = write(receiving->fd, bytes, length);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0) {
            receiving->os = errno;
            return false;
        }
        bytes += done;
        length -= (size_t)done;
    }
    return true;
}

static size_t on_data(char *bytes, size_t size, size_t count, void *ctx)
{
    struct receiving *receiving = ctx;
    size_t length = size * count;

    receiving->too_long = length > receiving->bytes_max - receiving->bytes;
    if (receiving->too_long || !store(receiving, bytes, length))
        return 0;
    receiving->bytes += length;
    return length;
}

static int transfer_failed(const struct receiving *receiving, CURLcode result, const char *text,
                           struct err *err)
{
    if (receiving->too_long || result == CURLE_FILESIZE_EXCEEDED)
        return err_set(err, ERR_LIMIT, "it is larger than %llu bytes",
                       (unsigned long long)receiving->bytes_max);
    if (receiving->os != 0)
        return err_os(err, err_from_errno(receiving->os), receiving->os, "cannot store it");
    int code = err_set(err, ERR_IO, "%.150s", *text != '\0' ? text : curl_easy_strerror(result));
    text_clean(err->text);
    text_whole(err->text);
    return code;
}

static struct curl_slist *headers_of(const json_t *artifact)
{
    json_t *headers = json_object_get(artifact, "headers"), *value;
    struct curl_slist *list = NULL;
    const char *name;

    json_object_foreach(headers, name, value)
    {
        char line[URL_SIZE];
        const char *text = json_string_value(value);

        /* An empty one is to be sent as such. */
        if (text_format(line, sizeof(line), "%s%s%s", name, *text == '\0' ? ";" : ": ", text))
            list = curl_slist_append(list, line);
    }
    return list;
}

static void set_pem(CURL *curl, CURLoption option, const json_t *artifact, const char *field)
{
    const char *text = json_string_value(json_object_get(artifact, field));
    struct curl_blob pem = {.data = (void *)(uintptr_t)text, .flags = CURL_BLOB_NOCOPY};

    if (text == NULL)
        return;
    pem.len = strlen(text);
    (void)curl_easy_setopt(curl, option, &pem); /* known */
}

/* The API of another node: by no other way, under the name that its certificate has, and without
 * an end as long as something comes.  What leads elsewhere must not get our token. */
static struct curl_slist *set_node(CURL *curl, const json_t *artifact)
{
    struct curl_slist *places = curl_slist_append(NULL, fetch_text(artifact, "at"));

    (void)curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L); /* all are known, here and below */
    (void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(curl, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)STALLED_S);
    (void)curl_easy_setopt(curl, CURLOPT_CONNECT_TO, places);
    set_pem(curl, CURLOPT_CAINFO_BLOB, artifact, "ca");
    set_pem(curl, CURLOPT_SSLCERT_BLOB, artifact, "cert");
    set_pem(curl, CURLOPT_SSLKEY_BLOB, artifact, "key");
    return places;
}

static void set_options(CURL *curl, const struct fetch *fetch, const char *url,
                        struct receiving *receiving, char *text)
{
    (void)curl_easy_setopt(curl, CURLOPT_URL, url); /* all are known, here and below */
    (void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https,file");
    (void)curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_MAXREDIRS, (long)REDIRECTS_MAX);
    (void)curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)fetch->timeout_ms);
    (void)curl_easy_setopt(curl, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)receiving->bytes_max);
    (void)curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, (long)RECEIVE_BYTES);
    (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_USERAGENT, "cairn");
    (void)curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, text);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, receiving);
}

/* Of URLs of files: what is no file has no end, or none of what is in it would be seen. */
static int check_file(const char *url, struct err *err)
{
    struct stat status;
    char *scheme = NULL, *path = NULL;
    CURLU *parts = curl_url();
    bool is_other = false;

    check(parts != NULL);
    if (curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
        curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
        text_equal(scheme, "file") &&
        curl_url_get(parts, CURLUPART_PATH, &path, CURLU_URLDECODE) == CURLUE_OK)
        is_other = stat(path, &status) == 0 && !S_ISREG(status.st_mode);
    curl_free(scheme);
    curl_free(path);
    curl_url_cleanup(parts);
    return is_other ? err_set(err, ERR_INVALID, "it is no file, but a directory or a device") : 0;
}

/* Only a whole answer with status 2xx counts. */
static int get(const struct fetch *fetch, const json_t *artifact, const char *url,
               struct receiving *receiving, struct err *err)
{
    char text[CURL_ERROR_SIZE] = "";
    struct curl_slist *headers = headers_of(artifact), *places = NULL;
    CURL *curl = curl_easy_init();
    long status = 0;

    check(curl != NULL);
    set_options(curl, fetch, url, receiving, text);
    (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    if (fetch->snapshot != NULL)
        places = set_node(curl, artifact);
    if (json_is_true(json_object_get(artifact, "insecure"))) {
        (void)curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
        (void)curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    CURLcode result = curl_easy_perform(curl);
    (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    int code = result == CURLE_OK ? 0 : transfer_failed(receiving, result, text, err);
    if (code == 0 && status != 0 && (status < 200 || status > 299))
        code = err_set(err, ERR_IO, "bad response code: %ld", status);
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
    curl_slist_free_all(places);
    return code;
}

/* --- a file of checksums --- */

static const char *type_of(size_t digits)
{
    return digits == 32    ? "md5"
           : digits == 40  ? "sha1"
           : digits == 64  ? "sha256"
           : digits == 128 ? "sha512"
                           : NULL;
}

/* "DIGITS  NAME", "DIGITS *NAME", "TYPE (NAME) = DIGITS", or DIGITS alone for whatever it is. */
static bool read_line(const char *line, const char *name, char checksum[CHECKSUM_SIZE])
{
    static const char hex[] = "0123456789abcdefABCDEF";
    char whose[FILE_NAME_SIZE + 1] = "", digits[129] = "";

    if (sscanf(line, "%*15s (%256[^)]) = %128s", whose, digits) != 2) {
        whose[0] = digits[0] = '\0';
        if (sscanf(line, "%128s %256s", digits, whose) < 1)
            return false;
    }
    const char *own = *whose == '*' ? whose + 1 : whose;
    if (text_starts_with(own, "./"))
        own += 2;
    size_t length = strspn(digits, hex);
    return digits[length] == '\0' && type_of(length) != NULL &&
           (*own == '\0' || text_equal(own, name)) &&
           text_format(checksum, CHECKSUM_SIZE, "%s:%s", type_of(length), digits);
}

static int find_sum(const struct fetch *fetch, const json_t *artifact, const struct source *source,
                    struct err *err)
{
    struct receiving receiving = {.fd = -1, .bytes_max = SUMS_BYTES_MAX};
    const char *url = source_sums(source);
    bool found = false;

    receiving.memory = calloc(1, SUMS_BYTES_MAX + 1);
    check(receiving.memory != NULL);
    int code = get(fetch, artifact, url, &receiving, err);
    if (code != 0)
        (void)err_wrap(err, "Failed to download checksum file"); /* its code stays */
    char *rest = receiving.memory;
    for (char *line; code == 0 && !found && (line = strsep(&rest, "\n")) != NULL;)
        found = read_line(line, source->name, fetch->told->checksum);
    if (code == 0 && !found)
        code = err_set(err, ERR_GONE, "the checksum file has no checksum of %.80s", source->name);
    free(receiving.memory);
    return code;
}

/* --- with git --- */

/* Runs a program to its end; what it says goes to OUT, or nowhere with -1. */
static int run(char *const argv[], int out, const char *doing, struct err *err)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        if (out >= 0)
            (void)dup2(out, STDOUT_FILENO); /* both are open */
        (void)execvp(argv[0], argv);
        _exit(NOT_FOUND);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return err_os(err, ERR_IO, errno, "cannot run %s", argv[0]);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND)
        return err_set(err, ERR_UNSUPPORTED, "there is no program %s on this node", argv[0]);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return err_set(err, ERR_IO, "%s: %s ended with %d", doing, argv[0],
                       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return 0;
}

/* Whoever owns a repository on this node, git may read it: whatever that leads git to do is done by
 * a user who has nothing, and is gone with it.  What the node's configuration says to git wins. */
static int trust_owners(struct err *err)
{
    static const char said[] = "[safe]\n\tdirectory = *\n", name[] = "/trust";
    char path[PLACE_SIZE];
    FILE *file = NULL;

    if (getcwd(path, sizeof(path) - sizeof(name)) == NULL ||
        !text_append(path, sizeof(path), name) || (file = fopen(path, "wxe")) == NULL)
        return err_os(err, err_from_errno(errno), errno, "cannot tell git whom to trust");
    bool wrote = fputs(said, file) >= 0;
    if (fclose(file) != 0 || !wrote || setenv("GIT_CONFIG_GLOBAL", path, 0) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot tell git whom to trust");
    return 0;
}

/* The current directory is empty and nobody else's. */
static int clone(const struct fetch *fetch, const struct source *source, struct err *err)
{
    char depth[32], branch[sizeof(source->ref) + 16];
    char *argv[12] = {(char[]){"git"}, (char[]){"-c"}, (char[]){"protocol.ext.allow=never"},
                      (char[]){"clone"}, (char[]){"-q"}};
    int count = 5;
    bool shallow = source->depth[0] != '\0' && source->ref[0] != '\0';

    if (source->ref[0] == '-')
        return err_set(err, ERR_INVALID, "ref is no name of a revision");
    if (source->depth[0] != '\0') {
        (void)text_format(depth, sizeof(depth), "--depth=%s", source->depth); /* fits */
        argv[count++] = depth;
    }
    if (shallow) { /* what it does not bring along cannot be checked out afterwards */
        (void)text_format(branch, sizeof(branch), "--branch=%s", source->ref); /* fits */
        argv[count++] = branch;
    }
    argv[count++] = (char[]){"--"};
    argv[count++] = (char *)source->url;
    argv[count++] = (char[]){"repository"};
    argv[count] = NULL;
    int code = fetch->is_alone ? trust_owners(err) : 0;
    if (code == 0)
        code = run(argv, -1,
                   shallow ? "cannot clone (with depth, ref must be a branch or a tag)"
                           : "cannot clone",
                   err);
    if (code != 0 || source->ref[0] == '\0' || shallow)
        return code;
    char *const checkout[] = {
        (char[]){"git"}, (char[]){"-C"},      (char[]){"repository"}, (char[]){"checkout"},
        (char[]){"-q"},  (char *)source->ref, (char[]){"--"},         NULL};
    return run(checkout, -1, "cannot check out", err);
}

static int get_repository(const struct fetch *fetch, const struct source *source, struct err *err)
{
    char *const pack[] = {(char[]){"tar"}, (char[]){"-C"}, (char[]){"repository"},
                          (char[]){"-c"},  (char[]){"."},  NULL};
    int code = clone(fetch, source, err);

    if (code == 0)
        code = run(pack, fetch->data, "cannot pack what was cloned", err);
    return code;
}

/* --- all of it --- */

int fetch_download(struct fetch *fetch, const json_t *artifact, struct err *err)
{
    static struct source source;
    struct receiving receiving = {.fd = fetch->data, .bytes_max = fetch->bytes_max};
    int code = fetch_source(artifact, &source, err);

    if (code != 0)
        return code;
    if (source.is_git)
        return get_repository(fetch, &source, err);
    code = check_file(source.url, err);
    if (code == 0)
        code = get(fetch, artifact, source.url, &receiving, err);
    return code == 0 && source_sums(&source) != NULL ? find_sum(fetch, artifact, &source, err)
                                                     : code;
}
