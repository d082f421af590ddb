/*
 * Where an artifact says that it is, and a file of checksums from there: the source, its options as
 * JSON and that file are pieces of the input.
 *
 * What the two processes make of a source is the same, no option of ours is asked the server for,
 * and a checksum that is found in a file is one.
 */
#include "test/fuzz.h"

#include "hooks/fetch/download.c"

static json_t *text_of(struct fuzz_input *input)
{
    const uint8_t *bytes = NULL;
    size_t length = 0;

    (void)fuzz_piece(input, &bytes, &length); /* else it is empty */
    json_t *text = json_stringn((const char *)bytes, length);
    return text != NULL ? text : json_string("https://host/dir/file.tar.gz?archive=zip&a=b");
}

/* Of texts, as a job file is read. */
static json_t *options_of(struct fuzz_input *input)
{
    const uint8_t *bytes = NULL;
    size_t length = 0;
    void *next;
    const char *name;
    json_t *value;

    (void)fuzz_piece(input, &bytes, &length);
    json_t *options = json_loadb((const char *)bytes, length, 0, NULL);
    json_object_foreach_safe(options, next, name, value)
    {
        if (!json_is_string(value))
            (void)json_object_del(options, name); /* it is there */
    }
    return options != NULL ? options : json_object();
}

static void check_url(const struct source *source)
{
    CURLU *url = curl_url();
    char *query = NULL;

    check(url != NULL);
    if (curl_url_set(url, CURLUPART_URL, source->url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_QUERY, &query, 0) == CURLUE_OK) {
        for (char *rest = query, *option; (option = strsep(&rest, "&")) != NULL;)
            check(!text_starts_with(option, "checksum=") && !text_starts_with(option, "archive=") &&
                  !text_starts_with(option, "filename="));
    }
    curl_free(query);
    curl_url_cleanup(url);
}

static void read_sums(const struct source *source, struct fuzz_input *input)
{
    char checksum[CHECKSUM_SIZE];
    const uint8_t *bytes;
    size_t length;

    if (!fuzz_piece(input, &bytes, &length))
        return;
    char *text = strndup((const char *)bytes, length), *rest = text;
    check(text != NULL);
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        if (!read_line(line, source->name, checksum))
            continue;
        const char *digits = strchr(checksum, ':');
        check(digits != NULL && type_of(strlen(digits + 1)) != NULL);
        check(strspn(digits + 1, "0123456789abcdefABCDEF") == strlen(digits + 1));
    }
    free(text);
}

int LLVMFuzzerInitialize(int *arguments_count, char ***arguments)
{
    (void)arguments_count;
    (void)arguments;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct source source, again;
    struct fuzz_input input = {data, size};
    json_t *artifact = json_object();
    struct err err = {0};

    check(json_object_set_new(artifact, "source", text_of(&input)) == 0);
    check(json_object_set_new(artifact, "options", options_of(&input)) == 0);
    int code = fetch_source(artifact, &source, &err);
    check(code == err.code && fetch_source(artifact, &again, &err) == code);
    if (code == 0) {
        check(text_equal(source.url, again.url) && text_equal(source.checksum, again.checksum) &&
              text_equal(source.name, again.name) && source.kind == again.kind);
        check_url(&source);
        read_sums(&source, &input);
    } else {
        check(err.text[0] != '\0');
    }
    json_decref(artifact);
    return 0;
}
