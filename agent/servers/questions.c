/* What a server asks, as a request of the API. */
#include "agent/servers/part.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct query {
    struct http_pair pairs[QUESTION_QUERY_MAX];
    char numbers[QUESTION_QUERY_MAX][QUESTION_NUMBER_SIZE];
    char *texts[QUESTION_QUERY_MAX]; /* owned */
    size_t count;
};

/* VALUE as text; NULL: it says nothing. */
static const char *text_of(struct query *query, const json_t *value)
{
    char *number = query->numbers[query->count];

    if (json_is_string(value))
        return json_string_length(value) == 0 ? NULL : json_string_value(value);
    if (json_is_boolean(value))
        return json_is_true(value) ? "true" : "false";
    if (json_is_integer(value) && json_integer_value(value) != 0) {
        (void)text_format(number, QUESTION_NUMBER_SIZE, "%" PRId64,
                          (int64_t)json_integer_value(value)); /* it fits */
        return number;
    }
    if (!json_is_array(value))
        return NULL;
    query->texts[query->count] = json_dumps(value, JSON_COMPACT);
    check(query->texts[query->count] != NULL);
    return query->texts[query->count];
}

static void fill(struct query *query, const struct question *question, const json_t *args)
{
    for (size_t i = 0; i < QUESTION_QUERY_MAX && question->query[i].field != NULL; i++) {
        const json_t *value = json_object_get(args, question->query[i].field);
        const char *text = value == NULL ? question->query[i].missing : text_of(query, value);

        if (text != NULL)
            query->pairs[query->count++] = (struct http_pair){question->query[i].query, text};
    }
}

static char *body_of(const struct question *question, const json_t *args)
{
    json_t *body = json_object();

    for (size_t i = 0; i < QUESTION_FIELDS_MAX && question->body[i] != NULL; i++) {
        json_t *value = json_object_get(args, question->body[i]);

        if (value != NULL)
            check(json_object_set(body, question->body[i], value) == 0);
    }
    char *text = json_dumps(body, JSON_COMPACT);
    check(text != NULL);
    json_decref(body);
    return text;
}

struct http_exchange *question_begin(const struct question *question, const json_t *args,
                                     const struct http_pair *headers, size_t headers_count,
                                     const struct http_guest *guest)
{
    const char *alloc = json_string_value(json_object_get(args, "AllocID"));
    const char *star = strchr(question->path, '*');
    struct http_guest asked = *guest;
    struct query query = {.count = 0};
    char path[256], *body = NULL;
    size_t before = star == NULL ? strlen(question->path) : (size_t)(star - question->path);

    /* What is no id names no alloc. */
    if (alloc == NULL || !uuid_is_valid(alloc))
        alloc = "none";
    (void)text_format(path, sizeof(path), "%.*s%s%s", (int)before, question->path,
                      star == NULL ? "" : alloc, star == NULL ? "" : star + 1); /* it fits */
    fill(&query, question, args);
    if (!text_equal(question->verb, "GET"))
        body = body_of(question, args);
    asked.method = question->verb;
    asked.path = path;
    asked.query = query.pairs;
    asked.query_count = query.count;
    asked.headers = headers;
    asked.headers_count = headers_count;
    asked.body = body;
    asked.body_length = body == NULL ? 0 : strlen(body);
    struct http_exchange *exchange = http_guest_begin(&asked);
    for (size_t i = 0; i < query.count; i++)
        free(query.texts[i]);
    free(body);
    return exchange;
}
