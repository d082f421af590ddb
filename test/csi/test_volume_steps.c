/*
 * Steps of volumes at a plugin that mounts them for real, and is told what to do wrong.
 *
 * Its directory has another name in the plugin than here, and all of it is in a mount namespace of
 * this test.
 */
#include "csi/volumes/part.h"
#include "io/scope.h"
#include "test/csi/plugin.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define ALLOC "0f3a3e5c-5f31-4a52-9f0e-0123456789ab"
#define OTHER "1f3a3e5c-5f31-4a52-9f0e-0123456789ab"
#define TARGET "csi/test/per-alloc/" ALLOC "/data/rw-file-system-single-node-writer"
#define STAGING "csi/test/staging/default/data"

struct fixture {
    struct plugin_process *plugin;
    struct csi_volumes *volumes;
    struct volume_define define;
    struct csi_claim claim;
    struct csi_step_result result; /* of the last step */
    char remark[ERR_TEXT_SIZE];
    char root[PATH_SIZE], inside[PATH_SIZE], disks[PATH_SIZE];
    bool absent; /* the plugin */
    bool stages;
};

static bool find(void *ctx, const char *plugin, struct csi_node *ret_node)
{
    struct fixture *fixture = ctx;

    assert_string_equal(plugin, "test");
    *ret_node = (struct csi_node){fixture->plugin->client, fixture->inside, fixture->stages};
    return !fixture->absent;
}

static const char *in(const struct fixture *fixture, const char *path)
{
    static char whole[PATH_SIZE];

    assert_int_equal(path_join(whole, fixture->plugin->scratch->path, path), 0);
    return whole;
}

static bool is_there(const struct fixture *fixture, const char *path)
{
    struct stat status;

    return lstat(in(fixture, path), &status) == 0;
}

static bool is_mounted(const struct fixture *fixture, const char *path)
{
    return mount_is_point(AT_FDCWD, in(fixture, path), NULL) == 1;
}

static void know(struct fixture *fixture, const char *secret)
{
    static const char *const flags[] = {"noatime"};
    static const struct csi_pair publish[] = {{"device", "/dev/xvdf"}}, volume[] = {{"pool", "p"}};
    struct csi_terms terms = {.fs_type = "ext4",
                              .flags = flags,
                              .flags_count = 1,
                              .publish_context = {publish, 1},
                              .volume_context = {volume, 1},
                              .secrets = csi_secrets_new()};
    struct err err = {0};

    assert_int_equal(csi_secrets_add(terms.secrets, "key", secret, &err), 0);
    csi_volumes_know(fixture->volumes, &fixture->claim, &terms);
}

static void done(void *ctx, const struct csi_step_result *result)
{
    struct fixture *fixture = ctx;

    fixture->result = *result;
    (void)text_copy(fixture->remark, sizeof(fixture->remark), result->remark);
    loop_stop(fixture->plugin->loop);
}

static int run(struct fixture *fixture, struct csi_step step)
{
    fixture->result = (struct csi_step_result){.code = 1};
    step.claim = fixture->claim;
    csi_volume_step(fixture->volumes, &step, done, fixture);
    assert_int_equal(fixture->result.code, 1); /* later */
    loop_run(fixture->plugin->loop);
    return fixture->result.code;
}

#define STEP(step_kind, ...) ((struct csi_step){.kind = CSI_STEP_##step_kind, ##__VA_ARGS__})

static void must(struct fixture *fixture, struct csi_step step)
{
    if (run(fixture, step) != 0)
        fail_msg("%s", fixture->result.error.text);
}

static void next(const struct fixture *fixture, const char *method, const char *commands)
{
    char path[PATH_SIZE];

    assert_true(text_format(path, sizeof(path), "%s/next.%s", fixture->disks, method));
    put_file(path, commands);
}

static void mount_both(struct fixture *fixture)
{
    know(fixture, "hunter2");
    must(fixture, STEP(STAGE));
    must(fixture, STEP(PUBLISH, .fresh = true));
}

static void undo_both(struct fixture *fixture)
{
    must(fixture, STEP(UNPUBLISH));
    must(fixture, STEP(UNSTAGE));
}

static bool is_clean(const struct fixture *fixture)
{
    return !is_there(fixture, "csi/test/per-alloc/" ALLOC) && !is_there(fixture, STAGING);
}

/* --- one after the other --- */

static void test_volume_is_mounted_and_taken_away_without_a_trace(void **state)
{
    struct fixture *fixture = *state;
    struct err err;
    char target[PATH_SIZE];

    mount_both(fixture);
    const char *heard = plugin_heard(fixture->plugin);
    assert_non_null(strstr(heard, "\"secrets\": {\"key\": \"hunter2\"}"));
    assert_non_null(strstr(heard, "\"publish_context\": {\"device\": \"/dev/xvdf\"}"));
    assert_non_null(strstr(heard, "\"volume_context\": {\"pool\": \"p\"}"));
    assert_non_null(strstr(heard, "\"fs_type\": \"ext4\", \"mount_flags\": [\"noatime\"]"));
    assert_non_null(strstr(heard, "/inside/per-alloc/" ALLOC "/data/"));
    assert_non_null(strstr(heard, "/inside/staging/default/data\""));
    assert_true(is_mounted(fixture, TARGET));
    assert_true(is_mounted(fixture, STAGING));
    assert_true(is_there(fixture, TARGET "/who"));
    assert_int_equal(csi_volume_target(fixture->volumes, &fixture->claim, target, &err), 0);
    assert_string_equal(target, in(fixture, TARGET));
    must(fixture, STEP(LOOK));
    assert_true(fixture->result.is_mounted);

    csi_volumes_forget(fixture->volumes, &fixture->claim); /* nothing of it is needed */
    must(fixture, STEP(UNPUBLISH));
    assert_null(strstr(plugin_heard(fixture->plugin), "hunter2"));
    assert_false(is_there(fixture, "csi/test/per-alloc/" ALLOC));
    must(fixture, STEP(LOOK));
    assert_false(fixture->result.is_mounted);
    must(fixture, STEP(UNSTAGE));
    assert_true(is_clean(fixture));
    assert_true(is_there(fixture, "disks/vol-1/who"));
    undo_both(fixture); /* once more: there is nothing to undo */
}

static void test_steps_again_find_what_the_first_have_made(void **state)
{
    struct fixture *fixture = *state;

    mount_both(fixture);
    must(fixture, STEP(STAGE));
    must(fixture, STEP(PUBLISH));
    assert_true(is_mounted(fixture, TARGET));
    undo_both(fixture);
    assert_true(is_clean(fixture));
}

/* The directories of a target are made one by one. */
static void test_daemon_died_between_two_directories_that_it_made(void **state)
{
    struct fixture *fixture = *state;

    know(fixture, "hunter2");
    (void)mkdir(in(fixture, "csi/test/per-alloc"), 0700); /* it may be there */
    assert_return_code(mkdir(in(fixture, "csi/test/per-alloc/" ALLOC), 0700), errno);
    must(fixture, STEP(UNPUBLISH));
    assert_true(is_clean(fixture));
}

static void test_two_claims_share_what_is_staged(void **state)
{
    struct fixture *fixture = *state;

    mount_both(fixture);
    fixture->claim.alloc = OTHER;
    know(fixture, "x");
    must(fixture, STEP(PUBLISH, .fresh = true));
    fixture->claim.alloc = ALLOC;
    must(fixture, STEP(UNPUBLISH));
    assert_true(is_mounted(fixture, STAGING));
    assert_true(is_there(fixture, "csi/test/per-alloc/" OTHER
                                  "/data/rw-file-system-single-node-writer/who"));
    fixture->claim.alloc = OTHER;
    undo_both(fixture);
    assert_true(is_clean(fixture));
}

static void test_volume_of_a_plugin_that_does_not_stage_is_published_alone(void **state)
{
    struct fixture *fixture = *state;

    fixture->stages = false;
    fixture->define.read_only = 1;
    know(fixture, "x");
    must(fixture, STEP(PUBLISH, .fresh = true));
    const char *heard = plugin_heard(fixture->plugin);
    assert_null(strstr(heard, "staging_target_path"));
    assert_non_null(strstr(heard, "\"readonly\": true"));
    assert_true(
        is_mounted(fixture, "csi/test/per-alloc/" ALLOC "/data/ro-file-system-single-node-writer"));
    must(fixture, STEP(UNPUBLISH));
    assert_true(is_clean(fixture));
}

static void test_device_is_a_file(void **state)
{
    struct fixture *fixture = *state;
    static const char path[] =
        "csi/test/per-alloc/" ALLOC "/data/rw-block-device-single-node-writer";
    struct stat status;

    fixture->define.attachment_mode = CSI_BLOCK_DEVICE;
    fixture->claim.external = "disk";
    fixture->stages = false;
    know(fixture, "x");
    must(fixture, STEP(PUBLISH, .fresh = true));
    assert_non_null(strstr(plugin_heard(fixture->plugin), "\"block\": {}"));
    assert_null(strstr(plugin_heard(fixture->plugin), "ext4"));
    assert_int_equal(lstat(in(fixture, path), &status), 0);
    assert_true(S_ISREG(status.st_mode));
    must(fixture, STEP(LOOK));
    assert_true(fixture->result.is_mounted);
    next(fixture, "NodeUnpublishVolume", "did lie\n");
    must(fixture, STEP(UNPUBLISH));
    assert_true(is_clean(fixture));
}

/* --- plugins that err --- */

static void test_ok_without_a_mount_is_a_lie(void **state)
{
    struct fixture *fixture = *state;

    know(fixture, "x");
    must(fixture, STEP(STAGE));
    next(fixture, "NodePublishVolume", "lie\n");
    assert_int_equal(run(fixture, STEP(PUBLISH, .fresh = true)), ERR_REFUSED);
    assert_int_equal(fixture->result.outcome.verdict, CSI_LIES);
    assert_true(fixture->result.error.recoverable);
    assert_non_null(strstr(fixture->result.error.text,
                           "says that it is published, which is not so (see its logs): "));
    assert_non_null(strstr(fixture->result.error.text, "is not mounted"));
    undo_both(fixture);
    assert_true(is_clean(fixture));
}

static void test_ok_before_it_is_done_is_waited_for(void **state)
{
    struct fixture *fixture = *state;

    know(fixture, "x");
    must(fixture, STEP(STAGE));
    next(fixture, "NodePublishVolume", "late 300\n");
    must(fixture, STEP(PUBLISH, .fresh = true));
    assert_true(is_mounted(fixture, TARGET));
    next(fixture, "NodeUnpublishVolume", "late 300\n");
    must(fixture, STEP(UNPUBLISH));
    next(fixture, "NodeUnstageVolume", "late 300\n");
    must(fixture, STEP(UNSTAGE));
    assert_true(is_clean(fixture));
}

static void test_ok_that_leaves_the_mount_is_a_lie_until_somebody_insists(void **state)
{
    struct fixture *fixture = *state;

    mount_both(fixture);
    next(fixture, "NodeUnpublishVolume", "lie\n");
    assert_int_equal(run(fixture, STEP(UNPUBLISH)), ERR_REFUSED);
    assert_int_equal(fixture->result.outcome.verdict, CSI_LIES);
    assert_true(is_there(fixture, TARGET "/who"));
    must(fixture, STEP(UNMOUNT));
    assert_non_null(strstr(fixture->remark, "was unmounted without its plugin"));
    assert_false(is_there(fixture, "csi/test/per-alloc/" ALLOC));
    assert_true(is_there(fixture, "disks/vol-1/who")); /* unmounted, and nothing removed */
    next(fixture, "NodeUnstageVolume", "lie\n");
    assert_int_equal(run(fixture, STEP(UNSTAGE)), ERR_REFUSED);
    must(fixture, STEP(UNMOUNT_STAGING));
    assert_true(is_clean(fixture));
}

static void test_who_undoes_tells_no_secret_that_was_mounted_with(void **state)
{
    struct fixture *fixture = *state;

    mount_both(fixture);
    next(fixture, "NodeUnpublishVolume", "say 13 umount -o noatime of hunter2");
    assert_true(run(fixture, STEP(UNPUBLISH)) < 0);
    assert_non_null(strstr(fixture->result.error.text, "umount -o *** of ***"));
    undo_both(fixture);
    assert_true(is_clean(fixture));
}

static void test_refusal_to_undo_counts_only_while_there_is_something(void **state)
{
    struct fixture *fixture = *state;

    mount_both(fixture);
    next(fixture, "NodeUnpublishVolume", "say 13 odd\nsay 5 unknown\nsay 13 odd\nsay 14 busy\n");
    assert_true(run(fixture, STEP(UNPUBLISH)) < 0);
    assert_int_equal(fixture->result.outcome.verdict, CSI_DOUBT);
    assert_int_equal(run(fixture, STEP(UNPUBLISH)), ERR_REFUSED); /* NOT_FOUND, and mounted */
    assert_int_equal(fixture->result.outcome.verdict, CSI_LIES);
    assert_int_equal(umount2(in(fixture, TARGET), 0), 0);
    assert_int_equal(rmdir(in(fixture, TARGET)), 0);
    must(fixture, STEP(UNPUBLISH));
    assert_true(run(fixture, STEP(UNPUBLISH)) < 0); /* it may be at work on it */
    assert_true(fixture->result.outcome.may_run);
    undo_both(fixture);
    assert_true(is_clean(fixture));
}

static void test_answer_that_was_lost_is_found_done(void **state)
{
    struct fixture *fixture = *state;

    know(fixture, "x");
    next(fixture, "NodeStageVolume", "did say 4 slow\n");
    assert_true(run(fixture, STEP(STAGE)) < 0);
    assert_true(fixture->result.outcome.may_run);
    must(fixture, STEP(STAGE));
    next(fixture, "NodePublishVolume", "did say 14 gone\n");
    assert_true(run(fixture, STEP(PUBLISH, .fresh = true)) < 0);
    must(fixture, STEP(PUBLISH));
    next(fixture, "NodeUnpublishVolume", "did say 4 slow\n");
    assert_true(run(fixture, STEP(UNPUBLISH)) < 0);
    must(fixture, STEP(UNPUBLISH));
    next(fixture, "NodeUnstageVolume", "did say 14 gone\n");
    assert_true(run(fixture, STEP(UNSTAGE)) < 0);
    must(fixture, STEP(UNSTAGE));
    assert_true(is_clean(fixture));
}

static void test_refusals_are_told_apart(void **state)
{
    struct fixture *fixture = *state;

    know(fixture, "hunter2");
    next(fixture, "NodeStageVolume", "say 3 no hunter2 here\nsay 13 odd\n");
    assert_true(run(fixture, STEP(STAGE)) < 0);
    assert_false(fixture->result.error.recoverable);
    assert_non_null(strstr(fixture->result.error.text, "NodeStageVolume: INVALID_ARGUMENT"));
    assert_null(strstr(fixture->result.error.text, "hunter2"));
    assert_true(run(fixture, STEP(STAGE)) < 0);
    assert_true(fixture->result.error.recoverable);
    must(fixture, STEP(STAGE));
    next(fixture, "NodePublishVolume", "say 9 no\nsay 6 no\n");
    assert_true(run(fixture, STEP(PUBLISH)) < 0);
    assert_int_equal(fixture->result.outcome.verdict, CSI_STAGE_FIRST);
    assert_true(run(fixture, STEP(PUBLISH)) < 0);
    assert_int_equal(fixture->result.outcome.verdict, CSI_UNDO_FIRST);
    fixture->absent = true;
    assert_int_equal(run(fixture, STEP(PUBLISH)), ERR_GONE);
    assert_true(fixture->result.error.recoverable);
    assert_int_equal(run(fixture, STEP(UNPUBLISH)), ERR_GONE);
    fixture->absent = false;
    undo_both(fixture);
}

/* --- what is in the way --- */

static void test_mount_that_nobody_made_is_not_published_on(void **state)
{
    struct fixture *fixture = *state;

    know(fixture, "x");
    must(fixture, STEP(STAGE));
    assert_int_equal(directory_make_all(in(fixture, TARGET), 0700, &fixture->result.error), 0);
    assert_int_equal(mount("tmpfs", in(fixture, TARGET), "tmpfs", 0, NULL), 0);
    assert_int_equal(run(fixture, STEP(PUBLISH, .fresh = true)), ERR_EXISTS);
    assert_false(fixture->result.error.recoverable);
    assert_non_null(strstr(fixture->result.error.text,
                           "its target is a mount already, of somebody else: unmount per-alloc/"));
    assert_int_equal(umount2(in(fixture, TARGET), 0), 0);
    must(fixture, STEP(PUBLISH, .fresh = true)); /* an empty directory is in nobody's way */
    undo_both(fixture);
}

/* Over it, and in its place. */
static void test_mount_of_somebody_else_is_not_the_volume(void **state)
{
    struct fixture *fixture = *state;
    char away[PATH_SIZE];

    mount_both(fixture);
    (void)text_copy(away, sizeof(away), in(fixture, "away"));
    assert_int_equal(mount(away, in(fixture, TARGET), NULL, MS_BIND, NULL), 0);
    must(fixture, STEP(LOOK));
    assert_false(fixture->result.is_mounted);
    assert_non_null(strstr(fixture->remark, "is not the volume"));
    assert_int_equal(run(fixture, STEP(PUBLISH)), ERR_EXISTS); /* its plugin is content with it */
    assert_true(fixture->result.error.recoverable);
    assert_non_null(strstr(fixture->result.error.text,
                           "takes for it what somebody else has mounted: unmount per-alloc/"));
    assert_int_equal(umount2(in(fixture, TARGET), 0), 0);
    must(fixture, STEP(PUBLISH));
    must(fixture, STEP(LOOK));
    assert_true(fixture->result.is_mounted);

    assert_int_equal(umount2(in(fixture, TARGET), 0), 0);
    assert_int_equal(mount("tmpfs", in(fixture, TARGET), "tmpfs", 0, NULL), 0);
    must(fixture, STEP(LOOK));
    assert_false(fixture->result.is_mounted);
    assert_int_equal(umount2(in(fixture, TARGET), 0), 0);
    must(fixture, STEP(PUBLISH)); /* what the plugin has mounted itself is believed */
    must(fixture, STEP(LOOK));
    assert_true(fixture->result.is_mounted);
    undo_both(fixture);
    assert_true(is_clean(fixture));
    assert_int_equal(rmdir(in(fixture, "marks")), 0); /* no mark is left */
    assert_int_equal(mkdir(in(fixture, "marks"), 0700), 0);
}

static void test_mark_that_makes_no_sense_says_nothing(void **state)
{
    struct fixture *fixture = *state;
    char path[PATH_SIZE];

    mount_both(fixture);
    assert_int_equal(csi_mark_path(in(fixture, "marks"), &fixture->claim, path), 0);
    put_file(path, "12 zebras");
    must(fixture, STEP(LOOK));
    assert_true(fixture->result.is_mounted);
    undo_both(fixture);
}

static void test_files_in_the_way_stay(void **state)
{
    struct fixture *fixture = *state;

    know(fixture, "x");
    must(fixture, STEP(STAGE));
    assert_int_equal(directory_make_all(in(fixture, TARGET), 0700, &fixture->result.error), 0);
    put_file(in(fixture, TARGET "/precious"), "data");
    assert_int_equal(run(fixture, STEP(PUBLISH, .fresh = true)), ERR_EXISTS);
    assert_non_null(strstr(fixture->result.error.text, "not empty"));
    next(fixture, "NodeUnpublishVolume", "say 5 unknown\n");
    must(fixture, STEP(UNPUBLISH)); /* nothing is mounted: the claim can go */
    assert_non_null(strstr(fixture->remark, "is not mounted and not empty, and stays"));
    assert_true(is_there(fixture, TARGET "/precious"));
    assert_int_equal(unlink(in(fixture, TARGET "/precious")), 0);
    undo_both(fixture);
}

static void test_links_lead_nowhere(void **state)
{
    static const char *const places[] = {"csi/test/per-alloc", "csi/test/per-alloc/" ALLOC,
                                         "csi/test/per-alloc/" ALLOC "/data"};
    struct fixture *fixture = *state;

    know(fixture, "x");
    must(fixture, STEP(STAGE));
    char link[PATH_SIZE];
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        (void)text_copy(link, sizeof(link), in(fixture, places[i]));
        assert_int_equal(symlink(in(fixture, "away"), link), 0);
        assert_true(run(fixture, STEP(PUBLISH, .fresh = true)) < 0);
        assert_true(run(fixture, STEP(LOOK)) == 0 ? !fixture->result.is_mounted : true);
        assert_false(is_there(fixture, "away/data"));
        assert_int_equal(unlink(link), 0);
        assert_int_equal(mkdir(link, 0700), 0);
    }
    (void)text_copy(link, sizeof(link), in(fixture, TARGET));
    assert_int_equal(symlink(in(fixture, "away"), link), 0);
    assert_int_equal(run(fixture, STEP(PUBLISH, .fresh = true)), ERR_EXISTS);
    assert_int_equal(unlink(link), 0);
    undo_both(fixture);
}

static void test_names_that_are_no_paths_are_refused(void **state)
{
    static const char *const names[] = {"", ".", "..", "a/b", "../../etc"};
    struct fixture *fixture = *state;

    know(fixture, "x");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_true(text_copy(fixture->define.volume, sizeof(fixture->define.volume), names[i]));
        assert_int_equal(run(fixture, STEP(STAGE)), ERR_INVALID);
        assert_int_equal(run(fixture, STEP(LOOK)), ERR_INVALID);
        assert_int_equal(run(fixture, STEP(UNPUBLISH)), ERR_INVALID);
    }
}

/* --- what is not known any more --- */

static void test_volume_that_nobody_can_name_is_unmounted_without_its_plugin(void **state)
{
    struct fixture *fixture = *state;

    mount_both(fixture);
    fixture->claim.external = "";
    assert_true(run(fixture, STEP(UNPUBLISH)) < 0);
    fixture->absent = true;
    int user = open(in(fixture, TARGET "/who"), O_RDONLY | O_CLOEXEC);
    assert_true(user >= 0);
    assert_int_equal(run(fixture, STEP(UNMOUNT)), ERR_AGAIN); /* not under somebody who has it */
    assert_true(is_mounted(fixture, TARGET));
    assert_int_equal(close(user), 0);
    must(fixture, STEP(UNMOUNT));
    must(fixture, STEP(UNMOUNT_STAGING));
    assert_true(is_clean(fixture));
    assert_true(is_there(fixture, "disks/vol-1/who"));
    must(fixture, STEP(UNMOUNT));
    must(fixture, STEP(UNMOUNT_STAGING));
    assert_string_equal(fixture->remark, ""); /* nothing was there */
}

/* What has been found, a line each. */
static bool note_found(void *ctx, const struct csi_found *found)
{
    const struct volume_define *define = &found->define;
    char line[PATH_SIZE];

    assert_true(text_format(line, sizeof(line), "%s %s %s/%s %u %u %u\n",
                            found->alloc == NULL ? "staged" : found->alloc, define->plugin,
                            define->namespace, define->volume, define->read_only,
                            define->access_mode, define->attachment_mode));
    (void)text_append(ctx, PATH_SIZE, line);
    return true;
}

static void test_places_say_what_is_mounted_there(void **state)
{
    struct fixture *fixture = *state;
    char said[PATH_SIZE] = "", other[PATH_SIZE];
    struct err err;

    mount_both(fixture);
    assert_int_equal(csi_volumes_each_mounted(fixture->root, note_found, said, &err), 0);
    assert_non_null(strstr(said, ALLOC " test /data 0 1 1\n"));
    assert_non_null(strstr(said, "staged test default/data 0 0 0\n"));
    assert_int_equal(strlen(said),
                     strlen(ALLOC " test /data 0 1 1\nstaged test default/data 0 0 0\n"));
    /* What only lies there is no volume, nor is what is mounted anywhere else. */
    (void)text_copy(other, sizeof(other), in(fixture, "csi/test/per-alloc/" ALLOC "/data/rw-else"));
    assert_int_equal(directory_make_all(other, 0700, &err), 0);
    assert_int_equal(mount(fixture->disks, other, NULL, MS_BIND, NULL), 0);
    assert_int_equal(directory_make_all(in(fixture, "csi/test/staging/default/empty"), 0700, &err),
                     0);
    said[0] = '\0';
    assert_int_equal(csi_volumes_each_mounted(fixture->root, note_found, said, &err), 0);
    assert_null(strstr(said, "else"));
    assert_null(strstr(said, "empty"));
    assert_int_equal(umount(other), 0);
    assert_int_equal(rmdir(other), 0);
    undo_both(fixture);
    said[0] = '\0';
    assert_int_equal(csi_volumes_each_mounted(fixture->root, note_found, said, &err), 0);
    assert_string_equal(said, "");
}

static void note_unmounted(void *ctx, const struct csi_step_result *result)
{
    struct fixture *fixture = ctx;

    assert_int_equal(result->code, 0);
    assert_int_equal(fixture->result.code, 1); /* who wants to mount it is not done */
    (void)text_copy(fixture->remark, sizeof(fixture->remark), result->remark);
    assert_false(is_mounted(fixture, STAGING));
}

static void test_who_mounts_what_is_unmounted_for_nobody_waits(void **state)
{
    struct fixture *fixture = *state;
    const struct csi_found published = {.alloc = ALLOC, .define = fixture->define},
                           staged = {.define = fixture->define};

    mount_both(fixture);
    fixture->absent = true; /* no plugin is asked */
    fixture->result.code = 1;
    csi_volumes_unmount(fixture->volumes, &published, done, fixture);
    loop_run(fixture->plugin->loop);
    assert_int_equal(fixture->result.code, 0);
    assert_non_null(strstr(fixture->remark, "was unmounted without its plugin"));
    assert_false(is_there(fixture, "csi/test/per-alloc/" ALLOC));
    fixture->absent = false;
    fixture->remark[0] = '\0';
    csi_volumes_unmount(fixture->volumes, &staged, note_unmounted, fixture);
    must(fixture, STEP(STAGE));
    must(fixture, STEP(PUBLISH, .fresh = true));
    assert_true(is_mounted(fixture, STAGING));
    undo_both(fixture);
    assert_true(is_clean(fixture));
}

static void test_nothing_is_mounted_by_terms_that_are_forgotten(void **state)
{
    struct fixture *fixture = *state;

    know(fixture, "x");
    csi_volumes_forget(fixture->volumes, &fixture->claim);
    assert_int_equal(run(fixture, STEP(STAGE)), ERR_GONE);
    assert_int_equal(run(fixture, STEP(PUBLISH)), ERR_GONE);
    assert_true(is_clean(fixture));
}

/* --- the end --- */

static void never(void *ctx, const struct csi_step_result *result)
{
    (void)ctx;
    (void)result;
    fail_msg("told after the end");
}

static void stop(struct io_timer *timer)
{
    loop_stop(timer->ctx);
}

static void test_steps_under_way_end_with_the_daemon(void **state)
{
    struct fixture *fixture = *state;
    struct io_timer timer = {0};

    know(fixture, "x");
    next(fixture, "NodeStageVolume", "hang\n");
    for (int i = 0; i < 3; i++) { /* in a call; on the pool; behind a timer */
        struct csi_step step = i == 1 ? STEP(LOOK) : i == 2 ? STEP(UNPUBLISH) : STEP(STAGE);
        step.claim = fixture->claim;
        csi_volume_step(fixture->volumes, &step, never, NULL);
        if (i == 0) {
            io_timer_start(fixture->plugin->loop, &timer, loop_now_ms() + 300, stop,
                           fixture->plugin->loop);
            loop_run(fixture->plugin->loop);
        }
    }
    csi_volumes_free(fixture->volumes);
    fixture->volumes = NULL;
    io_timer_start(fixture->plugin->loop, &timer, loop_now_ms() + 100, stop, fixture->plugin->loop);
    loop_run(fixture->plugin->loop);
}

/* --- around each --- */

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct err err;
    char path[PATH_SIZE];
    void *plugin;

    assert_non_null(fixture);
    *state = fixture;
    if (plugin_set_up(&plugin) != 0)
        return -1;
    fixture->plugin = plugin;
    (void)text_copy(fixture->disks, sizeof(fixture->disks), in(fixture, "disks"));
    (void)text_copy(fixture->root, sizeof(fixture->root), in(fixture, "csi"));
    (void)text_copy(fixture->inside, sizeof(fixture->inside), in(fixture, "inside"));
    assert_int_equal(directory_make_all(in(fixture, "disks/vol-1"), 0700, &err), 0);
    assert_int_equal(directory_make_all(in(fixture, "csi/test"), 0700, &err), 0);
    assert_int_equal(directory_make_all(in(fixture, "away"), 0700, &err), 0);
    assert_int_equal(directory_make_all(in(fixture, "marks"), 0700, &err), 0);
    put_file(in(fixture, "disks/vol-1/who"), "me");
    put_file(in(fixture, "disks/disk"), "blocks");
    (void)text_copy(path, sizeof(path), in(fixture, "csi/test"));
    assert_int_equal(symlink(path, fixture->inside), 0);
    fixture->stages = true;
    fixture->define = (struct volume_define){.access_mode = CSI_SINGLE_NODE_WRITER,
                                             .attachment_mode = CSI_FILE_SYSTEM};
    (void)text_copy(fixture->define.plugin, sizeof(fixture->define.plugin), "test");
    (void)text_copy(fixture->define.namespace, sizeof(fixture->define.namespace), "default");
    (void)text_copy(fixture->define.volume, sizeof(fixture->define.volume), "data");
    fixture->claim = (struct csi_claim){ALLOC, "data", &fixture->define, "vol-1"};
    (void)text_copy(path, sizeof(path), in(fixture, "marks"));
    struct csi_volumes_config config = {.loop = fixture->plugin->loop,
                                        .root = fixture->root,
                                        .marks = path,
                                        .find = find,
                                        .ctx = fixture};
    fixture->volumes = csi_volumes_new(&config);
    return 0;
}

static int set_up_and_run(void **state)
{
    if (set_up(state) != 0)
        return -1;
    struct fixture *fixture = *state;
    fixture->plugin->directory = fixture->disks;
    return plugin_run(fixture->plugin);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    void *plugin = fixture->plugin;

    csi_volumes_free(fixture->volumes);
    int code = plugin_tear_down(&plugin);
    free(fixture);
    return code;
}

/* True if mounts of this process are nobody else's from now on. */
static bool live_apart(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

#define STEPS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_and_run, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STEPS_TEST(test_volume_is_mounted_and_taken_away_without_a_trace),
        STEPS_TEST(test_steps_again_find_what_the_first_have_made),
        STEPS_TEST(test_daemon_died_between_two_directories_that_it_made),
        STEPS_TEST(test_two_claims_share_what_is_staged),
        STEPS_TEST(test_volume_of_a_plugin_that_does_not_stage_is_published_alone),
        STEPS_TEST(test_device_is_a_file),
        STEPS_TEST(test_ok_without_a_mount_is_a_lie),
        STEPS_TEST(test_ok_before_it_is_done_is_waited_for),
        STEPS_TEST(test_ok_that_leaves_the_mount_is_a_lie_until_somebody_insists),
        STEPS_TEST(test_who_undoes_tells_no_secret_that_was_mounted_with),
        STEPS_TEST(test_refusal_to_undo_counts_only_while_there_is_something),
        STEPS_TEST(test_answer_that_was_lost_is_found_done),
        STEPS_TEST(test_refusals_are_told_apart),
        STEPS_TEST(test_mount_that_nobody_made_is_not_published_on),
        STEPS_TEST(test_mount_of_somebody_else_is_not_the_volume),
        STEPS_TEST(test_mark_that_makes_no_sense_says_nothing),
        STEPS_TEST(test_files_in_the_way_stay),
        STEPS_TEST(test_links_lead_nowhere),
        STEPS_TEST(test_names_that_are_no_paths_are_refused),
        STEPS_TEST(test_volume_that_nobody_can_name_is_unmounted_without_its_plugin),
        STEPS_TEST(test_places_say_what_is_mounted_there),
        STEPS_TEST(test_who_mounts_what_is_unmounted_for_nobody_waits),
        STEPS_TEST(test_nothing_is_mounted_by_terms_that_are_forgotten),
        STEPS_TEST(test_steps_under_way_end_with_the_daemon),
    };
    void *probe;

    if (!live_apart()) {
        print_message("skipped: no mount namespace of its own can be had\n");
        return SKIPPED;
    }
    (void)plugin_set_up(&probe);
    int run = plugin_run(probe);
    assert_int_equal(plugin_tear_down(&probe), 0);
    if (run == SKIPPED)
        return SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
