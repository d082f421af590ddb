/* Two users of one machine, each with tasks: each reaches what is its own, what the tasks of its
 * alloc share, and nothing else. */
#include "test/hooks/fixture.h"

#include <grp.h>
#include <sys/wait.h>

#define OTHER_ID "7e0c1a52-44d1-4b0e-9b7f-aaaaaaaaaaaa"

enum { CAN_NOTHING = 0, CAN_ENTER = 1, CAN_LIST = 2, CAN_MAKE = 4 };

static uid_t uid_of(const char *user)
{
    const struct passwd *entry = getpwnam(user);

    assert_non_null(entry);
    return entry->pw_uid;
}

/* What USER can do with the directory PATH, as a bit mask. */
static int abilities(const char *user, const char *path)
{
    uid_t uid = uid_of(user);
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        char made[PATH_SIZE];
        int able = 0;

        if (setgroups(0, NULL) != 0 || setresgid(uid, uid, uid) != 0 ||
            setresuid(uid, uid, uid) != 0 || path_join(made, path, "made-by-a-user") != 0)
            _exit(128);
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        able |= fd >= 0 ? CAN_LIST : 0;
        able |= chdir(path) == 0 ? CAN_ENTER : 0;
        able |= mkdir(made, 0700) == 0 && rmdir(made) == 0 ? CAN_MAKE : 0;
        _exit(able);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void build_for(struct fixture *fixture, const char *task, const char *user)
{
    fixture->task.name = task;
    fixture->task.user = user;
    assert_int_equal(build_task(fixture), 0);
}

/* The alloc of the fixture has tasks of nobody, of daemon and of root; the other one of daemon. */
static void build_all(struct fixture *fixture)
{
    static const struct spec_pair meta[] = {{"who", "daemon"}};

    assert_return_code(chmod(fixture->scratch.path, 0711), 0);
    assert_int_equal(build_alloc(fixture), 0);
    build_for(fixture, "web", "nobody");
    build_for(fixture, "root", "");
    fixture->alloc.id = OTHER_ID;
    assert_int_equal(build_alloc(fixture), 0);
    fixture->task.meta =
        (struct spec_pairs){.items = (struct spec_pair *)(uintptr_t)meta, .count = COUNT_OF(meta)};
    build_for(fixture, "side", "${NOMAD_META_who}");
    fixture->alloc.id = ALLOC_ID;
}

static void destroy_all(struct fixture *fixture)
{
    assert_int_equal(destroy_alloc(fixture), 0);
    fixture->alloc.id = OTHER_ID;
    assert_int_equal(destroy_alloc(fixture), 0);
}

static void assert_able(struct fixture *fixture, const char *user, const char *path, int able)
{
    int found = abilities(user, in_alloc(fixture, path));

    if (found != able)
        print_error("%s can do %d and not %d with %s\n", user, found, able, path);
    assert_int_equal(found, able);
}

static void assert_able_in_other(struct fixture *fixture, const char *user, const char *path,
                                 int able)
{
    char whole[PATH_SIZE];

    assert_true(text_format(whole, sizeof(whole), "%s/%s/%s", fixture->alloc_dir, OTHER_ID, path));
    assert_int_equal(abilities(user, whole), able);
}

static void test_users_reach_what_is_theirs_and_nothing_of_others(void **state)
{
    struct fixture *fixture = *state;
    static const char *const parts[] = {
        "",        "alloc",       "alloc/logs", "alloc/data", "web",      "web/local",
        "web/tmp", "web/secrets", "root",       "root/local", "root/tmp", "root/secrets",
    };
    static const struct {
        const char *path;
        int able;
    } own[] = {
        {"", CAN_ENTER},
        {"alloc", CAN_ENTER | CAN_LIST | CAN_MAKE},
        {"alloc/logs", CAN_ENTER | CAN_LIST | CAN_MAKE},
        {"alloc/tmp", CAN_ENTER | CAN_LIST | CAN_MAKE},
        {"alloc/data", CAN_ENTER | CAN_LIST | CAN_MAKE},
        {"web", CAN_ENTER | CAN_LIST | CAN_MAKE},
        {"web/local", CAN_ENTER | CAN_LIST | CAN_MAKE},
        {"web/tmp", CAN_ENTER | CAN_LIST | CAN_MAKE},
        {"web/secrets", CAN_ENTER | CAN_LIST | CAN_MAKE},
        {"root", CAN_ENTER | CAN_LIST}, /* of the same alloc: to be looked at */
        {"root/local", CAN_ENTER | CAN_LIST},
        {"root/tmp", CAN_NOTHING},
        {"root/secrets", CAN_NOTHING},
    };

    need_root();
    build_all(fixture);
    for (size_t i = 0; i < COUNT_OF(own); i++)
        assert_able(fixture, "nobody", own[i].path, own[i].able);
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        assert_able(fixture, "daemon", parts[i], CAN_NOTHING);
    assert_able_in_other(fixture, "daemon", "side/secrets", CAN_ENTER | CAN_LIST | CAN_MAKE);
    assert_able_in_other(fixture, "daemon", "alloc/data", CAN_ENTER | CAN_LIST | CAN_MAKE);
    assert_able_in_other(fixture, "nobody", "alloc/data", CAN_NOTHING);
    assert_int_equal(abilities("nobody", fixture->alloc_dir), CAN_ENTER); /* and no list of ids */
    destroy_all(fixture);
}

/* Both may be about to start at the same moment, each with its own idea of who is in already. */
static void test_second_user_of_an_alloc_is_let_in_beside_the_first(void **state)
{
    struct fixture *fixture = *state;
    static const char *const users[] = {"nobody", "daemon"};

    need_root();
    build_all(fixture);
    build_for(fixture, "log", "daemon");
    build_for(fixture, "log", "daemon"); /* again changes nothing */
    for (size_t i = 0; i < COUNT_OF(users); i++)
        assert_able(fixture, users[i], "alloc/data", CAN_ENTER | CAN_LIST | CAN_MAKE);
    assert_able(fixture, "daemon", "web/local", CAN_ENTER | CAN_LIST);
    assert_able(fixture, "daemon", "web/secrets", CAN_NOTHING);
    assert_able(fixture, "bin", "alloc/data", CAN_NOTHING);
    destroy_all(fixture);
}

static void test_user_that_is_none_fails_before_anything_is_made(void **state)
{
    struct fixture *fixture = *state;

    need_root();
    assert_int_equal(build_alloc(fixture), 0);
    fixture->task.user = "no-such-user";
    assert_int_equal(build_task(fixture), ERR_GONE);
    assert_outcome(fixture, ERR_GONE, false, "there is no user \"no-such-user\"");
    assert_false(exists(in_alloc(fixture, "web")));
}

/* Then ids are all there is, as in Nomad. */
static void test_without_access_lists_users_are_let_in_by_name(void **state)
{
    struct fixture *fixture = *state;

    need_root();
    assert_return_code(chmod(fixture->scratch.path, 0711), 0);
    assert_return_code(mount("ramfs", fixture->alloc_dir, "ramfs", 0, "mode=0711"), 0);
    assert_int_equal(build_alloc(fixture), 0);
    build_for(fixture, "web", "nobody");
    assert_int_equal(mode_of(fixture->root), 0711);
    assert_able(fixture, "nobody", "web/local", CAN_ENTER | CAN_LIST | CAN_MAKE);
    assert_able(fixture, "daemon", "web/secrets", CAN_NOTHING);
    assert_int_equal(destroy_alloc(fixture), 0);
    assert_return_code(umount(fixture->alloc_dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_make, fixture_remove)
        TEST(test_users_reach_what_is_theirs_and_nothing_of_others),
        TEST(test_second_user_of_an_alloc_is_let_in_beside_the_first),
        TEST(test_user_that_is_none_fails_before_anything_is_made),
        TEST(test_without_access_lists_users_are_let_in_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
