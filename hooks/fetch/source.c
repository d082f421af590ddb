/*
 * What an artifact's source and options say, to each process for itself: none tells another what is
 * to be checked.
 *
 * Follows go-getter as nomad v2.0.5 client/allocrunner/taskrunner/getter sets it up: options are
 * added to the query of the source, and `archive`, `checksum` and `filename` are taken out of it
 * again; what stands behind `//` in its path is a directory of what is fetched.
 */
#include "hooks/fetch/fetch.h"

#include <curl/curl.h>
#include <string.h>

/* An option that is not part of what is asked for: where it goes, or NULL. */
static char *own_option(struct source *source, const char *name, size_t length, size_t *ret_size)
{
    const struct {
        const char *name;
        char *to;
        size_t size;
        bool of_git;
    } options[] = {
        {"archive", source->archive, sizeof(source->archive), false},
        {"checksum", source->checksum, sizeof(source->checksum), false},
        {"filename", source->name, FILE_NAME_SIZE, false},
        {"ref", source->ref, sizeof(source->ref), true},
        {"depth", source->depth, sizeof(source->depth), true},
    };

    for (size_t i = 0; i < COUNT_OF(options); i++) {
        if (strlen(options[i].name) == length && memcmp(options[i].name, name, length) == 0 &&
            (source->is_git || !options[i].of_git)) {
            *ret_size = options[i].size;
            return options[i].to;
        }
    }
    return NULL;
}

/* Takes our own options out of QUERY and puts the others into TO. */
static int take_options(struct source *source, const char *query, char *to, size_t size,
                        struct err *err)
{
    while (*query != '\0') {
        size_t length = strcspn(query, "&"), name = strcspn(query, "=&"), room;
        char *own = own_option(source, query, name, &room);
        int text_length = 0;

        if (own == NULL) {
            char part[URL_SIZE];

            if (!text_format(part, sizeof(part), "%s%.*s", *to == '\0' ? "" : "&", (int)length,
                             query) ||
                !text_append(to, size, part))
                return err_set(err, ERR_LIMIT, "the source is too long");
        } else if (name < length) {
            char *text =
                curl_easy_unescape(NULL, query + name + 1, (int)(length - name - 1), &text_length);
            bool fits = text != NULL && text_copy(own, room, text);

            curl_free(text);
            if (!fits)
                return err_set(err, ERR_LIMIT, "the option %.*s is too long", (int)name, query);
        }
        query += length + (query[length] == '&');
    }
    return 0;
}

/* All options of the artifact as one query, behind that of its source. */
static int join_options(const json_t *artifact, const char *query, char *to, size_t size,
                        struct err *err)
{
    json_t *options = json_object_get(artifact, "options"), *value;
    const char *name;
    bool fits = text_copy(to, size, query);

    json_object_foreach(options, name, value)
    {
        char *key = curl_easy_escape(NULL, name, 0);
        char *text = curl_easy_escape(NULL, json_string_value(value), 0);

        check(key != NULL && text != NULL);
        fits = fits && text_append(to, size, *to == '\0' ? "" : "&") &&
               text_append(to, size, key) && text_append(to, size, "=") &&
               text_append(to, size, text);
        curl_free(key);
        curl_free(text);
    }
    return fits ? 0 : err_set(err, ERR_LIMIT, "the options are too long");
}

/* The last part of the path of URL, as it is written on the disk. */
static int name_file(CURLU *url, struct source *source, struct err *err)
{
    char *path = NULL;

    if (source->name[0] == '\0') {
        if (curl_url_get(url, CURLUPART_PATH, &path, CURLU_URLDECODE) != CURLUE_OK)
            return err_set(err, ERR_INVALID, "the source names no file");
        const char *last = strrchr(path, '/');
        bool fits = text_copy(source->name, sizeof(source->name), last == NULL ? path : last + 1);
        curl_free(path);
        if (!fits)
            return err_set(err, ERR_LIMIT, "the name of the file is too long");
    }
    return 0;
}

static int parse(struct source *source, const json_t *artifact, CURLU *url, const char *text,
                 struct err *err)
{
    char all[URL_SIZE], rest[URL_SIZE] = "", *query = NULL, *whole = NULL;

    if (curl_url_set(url, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK)
        return err_set(err, ERR_INVALID, "failed to parse source URL");
    if (curl_url_get(url, CURLUPART_QUERY, &query, 0) != CURLUE_OK)
        query = NULL;
    int code = join_options(artifact, query == NULL ? "" : query, all, sizeof(all), err);
    curl_free(query);
    if (code == 0)
        code = take_options(source, all, rest, sizeof(rest), err);
    if (code != 0)
        return code;
    if (curl_url_set(url, CURLUPART_QUERY, *rest == '\0' ? NULL : rest, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_URL, &whole, 0) != CURLUE_OK)
        return err_set(err, ERR_INVALID, "failed to parse source URL");
    bool fits = text_copy(source->url, sizeof(source->url), whole);
    curl_free(whole);
    return fits ? name_file(url, source, err) : err_set(err, ERR_LIMIT, "the source is too long");
}

/* By its name, or as the option says: "false" and "0" are none. */
static enum archive_kind kind_of(const struct source *source)
{
    static const struct {
        const char *ending;
        enum archive_kind kind;
    } kinds[] = {
        {".tar", ARCHIVE_TAR},       {".tar.gz", ARCHIVE_TAR},     {".tgz", ARCHIVE_TAR},
        {".tar.bz2", ARCHIVE_TAR},   {".tbz2", ARCHIVE_TAR},       {".tar.xz", ARCHIVE_TAR},
        {".txz", ARCHIVE_TAR},       {".tar.zst", ARCHIVE_TAR},    {".tzst", ARCHIVE_TAR},
        {".zip", ARCHIVE_ZIP},       {".gz", ARCHIVE_COMPRESSED},  {".bz2", ARCHIVE_COMPRESSED},
        {".xz", ARCHIVE_COMPRESSED}, {".zst", ARCHIVE_COMPRESSED},
    };
    char asked[sizeof(source->archive) + 1];
    const char *name = source->name;

    if (source->archive[0] != '\0') {
        (void)text_format(asked, sizeof(asked), ".%s", source->archive); /* fits */
        name = asked;
    }
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (text_ends_with(name, kinds[i].ending))
            return kinds[i].kind;
    }
    return ARCHIVE_NONE;
}

/* "URL//DIRECTORY?QUERY" means a directory of the archive: DIRECTORY goes to source->part, the rest
 * to TO. */
static int split_part(struct source *source, const char *text, char to[URL_SIZE], struct err *err)
{
    const char *scheme = strstr(text, "://"), *from = scheme == NULL ? text : scheme + 3;
    size_t end = strcspn(text, "?");
    const char *part = strstr(from, "//");

    if (part == NULL || part > text + end)
        part = text + end;
    size_t begin = (size_t)(part - text), skipped = strspn(part, "/");
    if (!text_format(to, URL_SIZE, "%.*s%s", (int)begin, text, text + end) ||
        !text_format(source->part, sizeof(source->part), "%.*s", (int)(end - begin - skipped),
                     part + skipped))
        return err_set(err, ERR_LIMIT, "the source is too long");
    for (size_t length = strlen(source->part); length > 0 && source->part[length - 1] == '/';)
        source->part[--length] = '\0';
    return text_goes_up(source->part) ? err_set(err, ERR_INVALID, "the directory behind // goes up")
                                      : 0;
}

int fetch_source(const json_t *artifact, struct source *ret_source, struct err *err)
{
    static const char repository[] = "git::";
    const char *text = fetch_text(artifact, "source");
    char whole[URL_SIZE];
    CURLU *url = curl_url();

    check(url != NULL);
    *ret_source = (struct source){.is_git = text_starts_with(text, repository)};
    int code =
        split_part(ret_source, text + (ret_source->is_git ? strlen(repository) : 0), whole, err);
    if (code == 0)
        code = parse(ret_source, artifact, url, whole, err);
    curl_url_cleanup(url);
    if (code == 0 && ret_source->is_git && ret_source->checksum[0] != '\0')
        code = err_set(err, ERR_INVALID,
                       "a checksum cannot be asked for of a repository: its ref "
                       "names what is meant");
    if (code == 0)
        ret_source->kind = ret_source->is_git ? ARCHIVE_TAR : kind_of(ret_source);
    return code;
}
