/* Specs: stubs live as long as their alloc, decoded specs until the daemon is idle. */
#include "test/agent/api/whole_node.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { ALLOCS = 3 };

static int open_node(void **state)
{
    struct whole_node *node = malloc(sizeof(*node));

    assert_non_null(node);
    whole_open(node);
    *state = node;
    return 0;
}

static int close_node(void **state)
{
    whole_close(*state);
    free(*state);
    return 0;
}

static bool first(void *ctx, const struct machine_id *id, const struct machine *record)
{
    (void)record;
    assert_true(text_copy(ctx, UUID_TEXT_SIZE, id->text));
    return false;
}

/* The first alloc of "web", of which there are ALLOCS. */
static void place(struct whole_node *node, char ret_id[UUID_TEXT_SIZE])
{
    ret_id[0] = '\0';
    whole_register(node, "web", ALLOCS);
    whole_turns(node);
    core_each_of_job(node->parts.core, "default", "web", first, ret_id);
    assert_true(uuid_is_valid(ret_id));
}

static void test_stub_says_what_the_spec_says(void **state)
{
    struct whole_node *node = *state;
    struct specs *fresh = specs_new(node->parts.journal); /* as after a restart */
    char id[UUID_TEXT_SIZE];

    place(node, id);
    struct alloc_stub *placed = specs_stub(node->parts.specs, id);
    struct alloc_stub *read = specs_stub(fresh, id);
    assert_non_null(placed);
    assert_non_null(read);
    assert_string_equal(placed->job_type, "service");
    assert_string_equal(read->job_type, "service");
    assert_true(uuid_is_valid(placed->eval_id));
    assert_string_equal(read->eval_id, placed->eval_id);
    specs_free(fresh);
}

static void test_stub_outlives_the_decoded_spec(void **state)
{
    struct whole_node *node = *state;
    char id[UUID_TEXT_SIZE];

    place(node, id);
    const struct alloc_stub *stub = specs_stub(node->parts.specs, id);
    specs_forget(node->parts.specs, node->parts.core);
    assert_ptr_equal(specs_stub(node->parts.specs, id), stub);
    const struct alloc_spec *spec = specs_find(node->parts.specs, id, NULL);
    assert_non_null(spec);
    assert_string_equal(spec->job_id, "web");
    assert_ptr_equal(specs_find(node->parts.specs, id, NULL), spec); /* decoded once */
    assert_ptr_equal(specs_stub(node->parts.specs, id), stub);
}

static void test_spec_of_an_alloc_that_was_never_born_is_forgotten(void **state)
{
    struct whole_node *node = *state;
    char id[UUID_TEXT_SIZE];
    struct alloc_spec *spec;

    place(node, id);
    assert_int_equal(specs_read(node->parts.specs, id, &spec, NULL), 0);
    spec->id = "00000000-0000-4000-8000-000000000000";
    specs_placed(node->parts.specs, spec);
    assert_non_null(specs_stub(node->parts.specs, "00000000-0000-4000-8000-000000000000"));
    specs_forget(node->parts.specs, node->parts.core);
    assert_null(specs_stub(node->parts.specs, "00000000-0000-4000-8000-000000000000"));
}

static void test_spec_of_an_alloc_that_is_gone_is_forgotten(void **state)
{
    struct whole_node *node = *state;
    struct alone_evaluation evaluation;
    struct err err;
    char id[UUID_TEXT_SIZE];

    place(node, id);
    assert_int_equal(
        alone_deregister(node->parts.alone, "default", "web", ALONE_PURGE, &evaluation, &err), 0);
    whole_turns(node);
    assert_null(core_alloc(node->parts.core, id));
    assert_null(specs_stub(node->parts.specs, id));
    specs_drop(node->parts.specs, id); /* twice is once */
}

static bool newest(void *ctx, const struct machine_id *id, const struct machine *record)
{
    if (!alloc_of(record)->stop_wanted && alloc_of(record)->assign.index == 0)
        assert_true(text_copy(ctx, UUID_TEXT_SIZE, id->text));
    return true;
}

/* Another one takes the place of the first of "web". */
static void replace(struct whole_node *node, char ret_id[UUID_TEXT_SIZE],
                    char ret_next[UUID_TEXT_SIZE])
{
    struct alone_evaluation evaluation;
    struct err err;

    whole_register(node, "web", ALLOCS);
    whole_turns(node);
    core_each_of_job(node->parts.core, "default", "web", newest, ret_id);
    assert_null(specs_next(node->parts.specs, node->parts.core, ret_id));
    assert_int_equal(alone_stop_alloc(node->parts.alone, ret_id, 0, &evaluation, &err), 0);
    assert_null(specs_next(node->parts.specs, node->parts.core, ret_id)); /* not yet */
    whole_turns(node);
    core_each_of_job(node->parts.core, "default", "web", newest, ret_next);
    assert_string_not_equal(ret_id, ret_next);
}

static void test_who_took_the_place_of_an_alloc_is_known(void **state)
{
    struct whole_node *node = *state;
    struct specs *fresh = specs_new(node->parts.journal); /* as after a restart */
    struct specs *both[] = {node->parts.specs, fresh};
    char id[UUID_TEXT_SIZE], next[UUID_TEXT_SIZE];

    replace(node, id, next);
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        assert_string_equal(specs_next(both[i], node->parts.core, id)->id, next);
        assert_string_equal(specs_next(both[i], node->parts.core, id)->follow_up_id, "");
        assert_null(specs_next(both[i], node->parts.core, next));
        specs_renew(both[i], next); /* it runs by another version */
        assert_string_equal(specs_next(both[i], node->parts.core, id)->id, next);
        specs_drop(both[i], next);
        assert_null(specs_next(both[i], node->parts.core, id));
    }
    assert_null(specs_next(fresh, node->parts.core, "00000000-0000-4000-8000-000000000000"));
    specs_free(fresh);
}

static void test_spec_of_no_alloc_is_none(void **state)
{
    struct whole_node *node = *state;
    struct alloc_spec *spec;
    struct err err = {0};

    assert_null(specs_stub(node->parts.specs, "00000000-0000-4000-8000-000000000000"));
    assert_int_equal(
        specs_read(node->parts.specs, "00000000-0000-4000-8000-000000000000", &spec, &err),
        ERR_GONE);
    assert_null(specs_find(node->parts.specs, "", &err));
}

/* Directories are built and cleared by the id that it says. */
static void test_spec_of_another_alloc_is_refused(void **state)
{
    struct whole_node *node = *state;
    static const char other[] = "00000000-0000-4000-8000-000000000001";
    struct journal_blob blob = {.key = "alloc/00000000-0000-4000-8000-000000000001"};
    struct journal_batch batch = {.specs = &blob, .specs_count = 1};
    char id[UUID_TEXT_SIZE], key[JOURNAL_KEY_SIZE], *text;
    struct alloc_spec *spec;
    struct err err = {0};

    place(node, id);
    (void)text_format(key, sizeof(key), "alloc/%s", id); /* fits */
    assert_int_equal(journal_spec_read(node->parts.journal, key, &text, &blob.length, &err), 0);
    blob.bytes = text;
    assert_int_equal(journal_commit(node->parts.journal, &batch, &err), 0);
    free(text);
    assert_int_equal(specs_read(node->parts.specs, other, &spec, &err), ERR_CORRUPT);
    assert_null(specs_find(node->parts.specs, other, &err));
    assert_null(specs_stub(node->parts.specs, other));
    assert_non_null(specs_find(node->parts.specs, id, &err));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_node, close_node)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_stub_says_what_the_spec_says),
        TEST(test_stub_outlives_the_decoded_spec),
        TEST(test_spec_of_an_alloc_that_was_never_born_is_forgotten),
        TEST(test_spec_of_an_alloc_that_is_gone_is_forgotten),
        TEST(test_who_took_the_place_of_an_alloc_is_known),
        TEST(test_spec_of_no_alloc_is_none),
        TEST(test_spec_of_another_alloc_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
