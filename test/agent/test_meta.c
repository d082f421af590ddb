/* The node's metadata: what is set while it runs, over restarts, commits that fail, and damage. */
#include "agent/node/meta.h"
#include "fsm/limits.h"
#include "test/server/small_life.h"

static struct spec_pair configured_items[] = {{"rack", "r1"}, {"zone", "a"}};

struct metaed {
    struct small_life *small;
    struct spec_pairs configured;
    struct node_meta meta;
    struct err err;
};

/* --- a daemon after the other --- */

static int put_aside(void *ctx, const char *table, const char *name, const char *reason,
                     int64_t unix_ns, struct err *err)
{
    struct small_life *small = ctx;

    (void)reason;
    (void)unix_ns;
    (void)err;
    assert_string_equal(table, "meta");
    small_keep_blob(&small->metas, name, NULL, 0);
    return 0;
}

static void tell_alone(void *ctx)
{
    alone_node_changed(((struct small_life *)ctx)->alone);
}

static void begin(struct metaed *node)
{
    const struct store store = {
        .ctx = node->small, .meta_read = small_meta_read, .quarantine = put_aside};
    const struct say say = {small_line, node->small};

    node->meta = (struct node_meta){.configured = &node->configured, .merged = &node->small->meta};
    assert_int_equal(node_meta_read(&node->meta, &store, &say, 1, &node->err), 0);
    node_meta_begin(&node->meta, node->small->life, tell_alone, node->small);
    small_settle(node->small);
}

static void restart(struct metaed *node)
{
    node_meta_free(&node->meta);
    small_again(node->small);
    begin(node);
}

static int open_node(void **state)
{
    struct metaed *node = calloc(1, sizeof(*node));
    void *small;

    assert_non_null(node);
    assert_int_equal(small_open(&small), 0);
    node->small = small;
    node->configured = (struct spec_pairs){configured_items, COUNT_OF(configured_items)};
    begin(node);
    *state = node;
    return 0;
}

static int close_node(void **state)
{
    struct metaed *node = *state;
    void *small = node->small;

    node_meta_free(&node->meta);
    free(node);
    return small_close(&small);
}

/* --- what is said, and what holds --- */

static int apply(struct metaed *node, const char *changes)
{
    json_t *json = json_loads(changes, JSON_REJECT_DUPLICATES, NULL);

    assert_non_null(json);
    node->err = (struct err){.code = 0};
    int code = node_meta_apply(&node->meta, json, &node->err);
    json_decref(json);
    return code;
}

static void set(struct metaed *node, const char *changes)
{
    if (apply(node, changes) != 0)
        fail_msg("%s: %s", changes, node->err.text);
    small_settle(node->small);
}

static void assert_holds(const struct metaed *node, const char *key, const char *value)
{
    const struct spec_pairs *meta = &node->small->meta;
    const char *found = NULL;

    for (size_t i = 0; i < meta->count; i++) {
        if (text_equal(meta->items[i].key, key))
            found = meta->items[i].value;
    }
    if ((found == NULL) != (value == NULL) || (value != NULL && !text_equal(found, value)))
        fail_msg("%s is %s, not %s", key, found == NULL ? "unset" : found,
                 value == NULL ? "unset" : value);
}

static void assert_stored(const struct metaed *node, const char *text)
{
    const struct stored_blob *stored = small_blob(&node->small->metas, "metadata");

    assert_non_null(stored);
    assert_string_equal(stored->bytes, text);
}

/* A service that wants to be in RACK. */
static void run_in(struct small_life *small, const char *name, const char *rack)
{
    json_t *job = small_job(name, "/bin/x", 1, 0);
    struct alone_evaluation evaluation;
    struct err err = {0};

    assert_int_equal(json_object_set_new(job, "Constraints",
                                         json_pack("[{s:s, s:s, s:s}]", "LTarget", "${meta.rack}",
                                                   "RTarget", rack, "Operand", "=")),
                     0);
    assert_int_equal(alone_register(small->alone, job, &evaluation, NULL, &err), 0);
    json_decref(job);
    small_settle(small);
}

static size_t live(const struct metaed *node, const char *job)
{
    struct small_counts counts = {.job = job};

    core_each(life_core(node->small->life), MACHINE_ALLOC, small_count_one, &counts);
    return counts.live;
}

/* --- what is refused --- */

static void test_what_is_no_metadata_is_refused_in_nomads_words(void **state)
{
    static const struct {
        const char *changes, *why;
    } rows[] = {
        {"{}", "missing required Meta object"},
        {"[]", "missing required Meta object"},
        {"{\"\":\"x\"}", "metadata keys must not be empty"},
        {"{\"ok\":\"x\",\"1st\":\"x\"}",
         "\"1st\" is invalid; metadata keys must be valid dotted hcl "
         "identifiers"},
        {"{\"a..b\":\"x\"}", "is invalid"},
        {"{\".a\":\"x\"}", "is invalid"},
        {"{\"a.\":\"x\"}", "is invalid"},
        {"{\"a b\":\"x\"}", "is invalid"},
        {"{\"-a\":\"x\"}", "is invalid"},
        {"{\"a.1\":null}", "is invalid"},
        {"{\"a\":1}", "must be text or null"},
        {"{\"a\":true}", "must be text or null"},
        {"{\"a\":{}}", "must be text or null"},
    };
    struct metaed *node = *state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (apply(node, rows[i].changes) != ERR_INVALID ||
            strstr(node->err.text, rows[i].why) == NULL)
            fail_msg("%s: %s", rows[i].changes, node->err.text);
    }
    small_settle(node->small);
    assert_null(small_blob(&node->small->metas, "metadata"));
    set(node, "{\"a.b-c_1\":\"x\",\"_\":\"\",\"\xc3\xa4\":\"y\"}");
    assert_holds(node, "a.b-c_1", "x");
    assert_holds(node, "_", "");
    assert_holds(node, "\xc3\xa4", "y");
}

/* {KEY: "xxx..."} with BYTES of them. */
static int apply_long(struct metaed *node, const char *key, size_t bytes)
{
    char *value = malloc(bytes + 1);

    assert_non_null(value);
    memset(value, 'x', bytes);
    value[bytes] = '\0';
    json_t *changes = json_pack("{s:s}", key, value);
    free(value);
    node->err = (struct err){.code = 0};
    int code = node_meta_apply(&node->meta, changes, &node->err);
    json_decref(changes);
    small_settle(node->small);
    return code;
}

static void test_more_than_the_bounds_is_refused(void **state)
{
    struct metaed *node = *state;
    char key[NODE_META_KEY_SIZE + 1];

    memset(key, 'k', sizeof(key));
    key[NODE_META_KEY_SIZE] = '\0';
    assert_int_equal(apply_long(node, key, 1), ERR_LIMIT);
    assert_non_null(strstr(node->err.text, "may have 255 bytes"));
    key[NODE_META_KEY_SIZE - 1] = '\0';
    assert_int_equal(apply_long(node, key, 1), 0);
    assert_int_equal(apply_long(node, "a", NODE_META_VALUE_MAX + 1), ERR_LIMIT);
    assert_non_null(strstr(node->err.text, "4097"));
    assert_int_equal(apply_long(node, "a", NODE_META_VALUE_MAX), 0);
    for (size_t i = 0; i < NODE_META_MAX - 2; i++) {
        assert_true(text_format(key, sizeof(key), "k%zu", i));
        assert_int_equal(apply_long(node, key, 1), 0);
    }
    assert_int_equal(apply(node, "{\"more\":\"x\"}"), ERR_LIMIT);
    assert_string_equal(node->err.text, "there may be 256 metadata keys, and there would be 257");
    set(node, "{\"more\":\"x\",\"k1\":null}"); /* another in its place */
}

static void test_all_of_it_together_is_bounded(void **state)
{
    struct metaed *node = *state;
    char key[16];
    int code = 0;
    size_t count = 0;

    for (; code == 0; count++) {
        assert_true(text_format(key, sizeof(key), "k%zu", count));
        code = apply_long(node, key, NODE_META_VALUE_MAX);
    }
    assert_int_equal(code, ERR_LIMIT);
    assert_non_null(strstr(node->err.text, "there may be 65536 bytes of metadata"));
    assert_int_equal(count, 16);
    assert_int_equal(apply_long(node, "k0", 1), 0);
    assert_int_equal(apply_long(node, key, NODE_META_VALUE_MAX), 0);
}

/* As a later version may keep it: it holds, and may become less. */
static void test_a_journal_may_have_more_than_the_bounds(void **state)
{
    struct metaed *node = *state;
    json_t *many = json_object();
    char key[NODE_META_KEY_SIZE + 100];

    for (size_t i = 0; i < NODE_META_MAX + 2; i++) {
        assert_true(text_format(key, sizeof(key), "k%zu", i));
        assert_int_equal(json_object_set_new(many, key, json_string("x")), 0);
    }
    memset(key, 'k', sizeof(key));
    key[sizeof(key) - 1] = '\0';
    assert_int_equal(json_object_set_new(many, key, json_string("x")), 0);
    char *text = json_dumps(many, 0);
    small_keep_blob(&node->small->metas, "metadata", text, strlen(text));
    free(text);
    json_decref(many);
    restart(node);
    assert_holds(node, key, "x");
    assert_int_equal(apply(node, "{\"more\":\"x\"}"), ERR_LIMIT);
    set(node, "{\"k1\":null}");
    assert_holds(node, "k1", NULL);
    set(node, "{\"k0\":\"y\"}");
    assert_holds(node, "k0", "y");
}

static void test_a_journal_that_cannot_be_written_changes_nothing(void **state)
{
    struct metaed *node = *state;
    struct small_heard heard = {0};

    set(node, "{\"rack\":\"r2\"}");
    node->small->commit_code = ERR_FULL;
    assert_int_equal(apply(node, "{\"rack\":\"r3\",\"new\":\"x\"}"), 0);
    life_after_commit(node->small->life, small_hear, &heard);
    assert_holds(node, "rack", "r2"); /* as the commit is to decide */
    small_settle(node->small);
    assert_int_equal(heard.code, ERR_FULL);
    assert_holds(node, "rack", "r2");
    assert_int_equal(apply(node, "{\"new\":\"y\"}"), ERR_AGAIN);
    node->small->commit_code = 0;
    node->small->now_ms += 2000;
    small_settle(node->small);
    assert_stored(node, "{\"rack\":\"r2\"}");
    set(node, "{\"zone\":null}");
    assert_stored(node, "{\"rack\":\"r2\",\"zone\":null}");
    assert_holds(node, "new", NULL);
}

static void test_what_is_damaged_is_put_aside_and_begun_anew(void **state)
{
    static const char *const damaged[] = {
        "{", "[]", "{\"a\":1}", "{\"a\":\"x\",\"b c\":\"y\"}", "{\"\":\"x\"}",
    };
    struct metaed *node = *state;

    for (size_t i = 0; i < COUNT_OF(damaged); i++) {
        small_keep_blob(&node->small->metas, "metadata", damaged[i], strlen(damaged[i]));
        node->small->said[0] = '\0';
        restart(node);
        assert_null(small_blob(&node->small->metas, "metadata"));
        assert_non_null(strstr(node->small->said, "quarantine"));
        assert_holds(node, "rack", "r1");
        assert_int_equal(json_object_size(node->meta.said), 0);
    }
    set(node, "{\"a\":\"x\"}");
    restart(node);
    assert_holds(node, "a", "x");
}

/* --- what it does --- */

static void test_what_waits_for_it_is_looked_at_again(void **state)
{
    struct metaed *node = *state;

    run_in(node->small, "there", "r2");
    run_in(node->small, "here", "r1");
    assert_int_equal(live(node, "there"), 0);
    assert_int_equal(live(node, "here"), 1);
    set(node, "{\"rack\":\"r2\"}");
    assert_int_equal(live(node, "there"), 1);
    assert_int_equal(live(node, "here"), 1); /* what runs is left alone */
    set(node, "{\"rack\":null}");
    run_in(node->small, "late", "r1");
    assert_int_equal(live(node, "late"), 0);
}

static void test_watchers_hear_of_it_once_it_is_true(void **state)
{
    struct metaed *node = *state;
    const struct life_subject everything = {.kind = LIFE_EVERYTHING};
    uint64_t before = life_index(node->small->life, &everything);

    set(node, "{\"a\":\"x\"}");
    assert_true(life_index(node->small->life, &everything) > before);
}

static void test_two_of_one_turn_both_hold(void **state)
{
    struct metaed *node = *state;

    assert_int_equal(apply(node, "{\"a\":\"x\",\"b\":\"x\"}"), 0);
    assert_int_equal(apply(node, "{\"b\":null,\"c\":\"y\"}"), 0);
    small_settle(node->small);
    assert_stored(node, "{\"a\":\"x\",\"c\":\"y\"}");
    assert_holds(node, "a", "x");
    assert_holds(node, "b", NULL);
    assert_holds(node, "c", "y");
}

static void test_what_is_so_already_is_not_written(void **state)
{
    struct metaed *node = *state;

    set(node, "{\"a\":\"x\"}");
    size_t commits = node->small->commits;
    set(node, "{\"a\":\"x\",\"b\":null}");
    assert_int_equal(node->small->commits, commits);
}

static void test_it_wins_over_the_configuration_after_a_restart(void **state)
{
    static struct spec_pair others[] = {{"rack", "r9"}, {"zone", "b"}, {"row", "7"}};
    struct metaed *node = *state;

    set(node, "{\"rack\":\"r2\",\"zone\":null,\"own\":\"x\"}");
    restart(node);
    assert_holds(node, "rack", "r2");
    assert_holds(node, "zone", NULL);
    assert_holds(node, "own", "x");
    node->configured = (struct spec_pairs){others, COUNT_OF(others)};
    restart(node);
    assert_holds(node, "rack", "r2");
    assert_holds(node, "zone", NULL);
    assert_holds(node, "row", "7");
    set(node, "{\"rack\":null}");
    assert_holds(node, "rack", NULL);
    set(node, "{\"own\":null}"); /* nothing of it is left */
    assert_stored(node, "{\"rack\":null,\"zone\":null}");
}

/* As with Nomad: what nobody configures needs no note that it is taken away. */
static void test_what_was_taken_away_of_the_configuration_is_forgotten_with_it(void **state)
{
    struct metaed *node = *state;

    set(node, "{\"rack\":null,\"a\":\"x\"}");
    node->configured.count = 0;
    restart(node);
    assert_stored(node, "{\"a\":\"x\"}");
    node->configured.count = COUNT_OF(configured_items);
    restart(node);
    assert_holds(node, "rack", "r1");
    assert_holds(node, "a", "x");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_node, close_node)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_no_metadata_is_refused_in_nomads_words),
        TEST(test_more_than_the_bounds_is_refused),
        TEST(test_all_of_it_together_is_bounded),
        TEST(test_a_journal_may_have_more_than_the_bounds),
        TEST(test_a_journal_that_cannot_be_written_changes_nothing),
        TEST(test_what_is_damaged_is_put_aside_and_begun_anew),
        TEST(test_what_waits_for_it_is_looked_at_again),
        TEST(test_watchers_hear_of_it_once_it_is_true),
        TEST(test_two_of_one_turn_both_hold),
        TEST(test_what_is_so_already_is_not_written),
        TEST(test_it_wins_over_the_configuration_after_a_restart),
        TEST(test_what_was_taken_away_of_the_configuration_is_forgotten_with_it),
    };

    return cmocka_run_group_tests_name("meta", tests, NULL, NULL);
}
