/* What groups offer (agent/services/catalogue.c), on a node whose effects are answered at once: it
 * is there while it runs, in its namespace, by its newest version, and nothing is left of it. */
#include "test/agent/api/whole_node.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define TASK_SERVICE "task"

/* Service NAME of provider "nomad", which needs no port. */
static json_t *service(const char *name, const char *tag)
{
    return json_pack("{s:s, s:s, s:[s]}", "Name", name, "Provider", "nomad", "Tags", tag);
}

/* ID in NAMESPACE: COUNT of a group "g" that offers NAME, as its task offers TASK_SERVICE. */
static json_t *job_of(const char *namespace, const char *id, int count, const char *name,
                      const char *tag)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:[s],"
                     " s:[{s:s, s:i, s:[o], s:[{s:s, s:s, s:{s:s}, s:[o]}]}]}",
                     "ID", id, "Name", id, "Namespace", namespace, "Type", "service", "Datacenters",
                     "dc1", "TaskGroups", "Name", "g", "Count", count, "Services",
                     service(name, tag), "Tasks", "Name", "t", "Driver", "raw_exec", "Config",
                     "command", "/bin/true", "Services", service(TASK_SERVICE, tag));
}

static void run(struct whole_node *node, json_t *job)
{
    whole_register_job(node, job);
    whole_turns(node);
}

/* --- what is offered --- */

struct seen {
    char text[512]; /* NAME:TAG of each */
    char last[256]; /* the last NAME and ID */
    bool in_order;
};

static void see(void *ctx, const struct catalogue_entry *entry)
{
    struct seen *seen = ctx;
    char key[sizeof(seen->last)];

    assert_true(text_format(key, sizeof(key), "%s %s", entry->service->name, entry->service->id));
    seen->in_order = seen->in_order && strcmp(seen->last, key) < 0;
    assert_true(text_copy(seen->last, sizeof(seen->last), key));
    assert_int_equal(entry->service->tags.count, 1);
    assert_true(text_append(seen->text, sizeof(seen->text), " "));
    assert_true(text_append(seen->text, sizeof(seen->text), entry->service->name));
    assert_true(text_append(seen->text, sizeof(seen->text), ":"));
    assert_true(text_append(seen->text, sizeof(seen->text), entry->service->tags.items[0]));
}

static void assert_offers(struct whole_node *node, const char *namespace, const char *expected)
{
    struct seen seen = {.in_order = true};

    catalogue_each(node->parts.catalogue, namespace, see, &seen);
    assert_string_equal(seen.text, expected);
    assert_true(seen.in_order);
}

static void stop(struct whole_node *node, const char *namespace, const char *id, bool purge)
{
    struct alone_evaluation evaluation;
    struct err err = {0};

    assert_int_equal(alone_deregister(node->parts.alone, namespace, id, purge ? ALONE_PURGE : 0,
                                      &evaluation, &err),
                     0);
    whole_turns(node);
}

/* Of the last that is offered. */
static void note_alloc(void *ctx, const struct catalogue_entry *entry)
{
    (void)text_copy(ctx, UUID_TEXT_SIZE, entry->alloc->id); /* a UUID */
}

/* --- tests --- */

static void test_what_never_starts_offers_its_group_alone(void **state)
{
    struct whole_node *node = *state;
    char alloc[UUID_TEXT_SIZE] = "";

    node->small.holds_starts = true;
    run(node, job_of("default", "a", 1, "group", "one"));
    assert_offers(node, NULL, " group:one");
    catalogue_each(node->parts.catalogue, NULL, note_alloc, alloc);
    const struct hooks_services *all = catalogue_of_alloc(node->parts.catalogue, alloc);
    assert_non_null(all);
    assert_int_equal(all->count, 2);
}

static void test_what_cannot_be_made_whole_says_so_once_and_offers_nothing(void **state)
{
    struct whole_node *node = *state;
    char path[128], said[4096] = "";
    int before = dup(STDERR_FILENO);

    assert_true(text_format(path, sizeof(path), "%s/said", node->directory));
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(file >= 0 && dup2(file, STDERR_FILENO) == STDERR_FILENO);
    run(node, job_of("default", "a", 1, "no-${meta.such}", "one"));
    assert_offers(node, NULL, "");
    assert_offers(node, NULL, "");
    assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
    assert_true(pread(file, said, sizeof(said) - 1, 0) >= 0);
    (void)close(file);
    (void)close(before);
    const char *first = strstr(said, "nothing of it can be found");
    assert_non_null(first);
    assert_null(strstr(first + 1, "nothing of it can be found"));
    run(node, job_of("default", "a", 1, "group", "two")); /* the next version can be */
    assert_offers(node, NULL, " group:two task:two");
}

static void test_task_is_registered_with_its_start_and_gone_with_its_end(void **state)
{
    struct whole_node *node = *state;
    char alloc[UUID_TEXT_SIZE] = "";
    struct exited failed = {.known = 1, .code = 1};

    run(node, job_of("default", "a", 1, "group", "one"));
    assert_offers(node, NULL, " group:one task:one");
    catalogue_each(node->parts.catalogue, NULL, note_alloc, alloc);
    struct machine_id id = machine_id_join(MACHINE_TASK, alloc, "t");
    const struct task *task = core_task(node->parts.core, alloc, "t");
    assert_non_null(task);
    core_news(node->parts.core, &id, task->machine.generation, TE_EXITED, &failed);
    whole_turns(node);
    assert_offers(node, NULL, " group:one"); /* it waits to be restarted */
    stop(node, "default", "a", false);
    assert_offers(node, NULL, "");
    assert_null(catalogue_of_alloc(node->parts.catalogue, alloc));
}

static void test_newer_version_takes_the_place_of_the_older(void **state)
{
    struct whole_node *node = *state;
    char first[UUID_TEXT_SIZE] = "", then[UUID_TEXT_SIZE] = "";

    run(node, job_of("default", "a", 1, "group", "one"));
    catalogue_each(node->parts.catalogue, NULL, note_alloc, first);
    run(node, job_of("default", "a", 1, "group", "two"));
    assert_offers(node, NULL, " group:two task:two");
    run(node, job_of("default", "a", 1, "other", "three"));
    assert_offers(node, NULL, " other:three task:three");
    catalogue_each(node->parts.catalogue, NULL, note_alloc, then);
    assert_string_equal(first, then); /* in place */
}

static void test_another_namespace_sees_nothing_of_it(void **state)
{
    struct whole_node *node = *state;

    run(node, job_of("default", "a", 1, "group", "one"));
    assert_offers(node, "default", " group:one task:one");
    assert_offers(node, "other", "");
    json_t *list = catalogue_list(node->parts.catalogue, "other");
    assert_int_equal(json_array_size(list), 0);
    json_decref(list);
}

static void test_all_are_ordered_by_name_and_id_and_gone_once_purged(void **state)
{
    struct whole_node *node = *state;

    run(node, job_of("default", "a", 3, "zoo", "one"));
    run(node, job_of("default", "b", 2, "ape", "two"));
    assert_offers(node, NULL,
                  " ape:two ape:two task:one task:one task:one task:two task:two"
                  " zoo:one zoo:one zoo:one");
    json_t *list = catalogue_list(node->parts.catalogue, "default");
    assert_int_equal(json_array_size(list), 10);
    json_decref(list);
    stop(node, "default", "a", true);
    assert_offers(node, NULL, " ape:two ape:two task:two task:two");
    stop(node, "default", "b", true);
    assert_offers(node, NULL, "");
}

static int open_one(void **state)
{
    static struct whole_node node;

    whole_open(&node);
    *state = &node;
    return 0;
}

static int close_one(void **state)
{
    whole_close(*state);
    return 0;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_one, close_one)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_what_never_starts_offers_its_group_alone),
        TEST(test_what_cannot_be_made_whole_says_so_once_and_offers_nothing),
        TEST(test_task_is_registered_with_its_start_and_gone_with_its_end),
        TEST(test_newer_version_takes_the_place_of_the_older),
        TEST(test_another_namespace_sees_nothing_of_it),
        TEST(test_all_are_ordered_by_name_and_id_and_gone_once_purged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
