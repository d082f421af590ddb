/* Volumes of storage plugins: who may have one beside whom, and what follows a plugin's answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fsm/policy.h"

/* --- claims --- */

static struct claim_terms terms(enum csi_access access, bool read_only)
{
    return (struct claim_terms){(uint8_t)access, CSI_FILE_SYSTEM, read_only};
}

/* Of a volume that can be had in every way as a file system. */
static enum claim_verdict claim(const struct claim_terms *claims, size_t count,
                                struct claim_terms asked)
{
    struct claim_terms all[CSI_ACCESS_COUNT];

    for (int access = 0; access < CSI_ACCESS_COUNT; access++)
        all[access] = terms((enum csi_access)access, false);
    return policy_claim(all, COUNT_OF(all), claims, count, &asked);
}

static void test_claims_stand_beside_each_other_as_their_modes_say(void **state)
{
    static const struct {
        struct claim_terms has, asks;
        enum claim_verdict verdict;
    } pairs[] = {
#define FS CSI_FILE_SYSTEM
        {{CSI_SINGLE_NODE_WRITER, FS, false},
         {CSI_SINGLE_NODE_WRITER, FS, false},
         CLAIM_WRITERS_EXHAUSTED},
        {{CSI_SINGLE_NODE_WRITER, FS, false},
         {CSI_SINGLE_NODE_WRITER, FS, true},
         CLAIM_READERS_EXHAUSTED},
        {{CSI_SINGLE_NODE_WRITER, FS, true},
         {CSI_SINGLE_NODE_WRITER, FS, true},
         CLAIM_READERS_EXHAUSTED},
        {{CSI_SINGLE_NODE_WRITER, FS, true}, {CSI_SINGLE_NODE_WRITER, FS, false}, CLAIM_FITS},
        {{CSI_SINGLE_NODE_READER, FS, true},
         {CSI_SINGLE_NODE_READER, FS, true},
         CLAIM_READERS_EXHAUSTED},
        {{CSI_MULTI_NODE_READER, FS, true}, {CSI_MULTI_NODE_READER, FS, true}, CLAIM_FITS},
        {{CSI_MULTI_NODE_READER, FS, true},
         {CSI_MULTI_NODE_MULTI_WRITER, FS, false},
         CLAIM_NOT_WRITABLE},
        {{CSI_MULTI_NODE_SINGLE_WRITER, FS, false},
         {CSI_MULTI_NODE_SINGLE_WRITER, FS, false},
         CLAIM_WRITERS_EXHAUSTED},
        {{CSI_MULTI_NODE_SINGLE_WRITER, FS, false},
         {CSI_MULTI_NODE_SINGLE_WRITER, FS, true},
         CLAIM_FITS},
        {{CSI_MULTI_NODE_MULTI_WRITER, FS, false},
         {CSI_MULTI_NODE_MULTI_WRITER, FS, false},
         CLAIM_FITS},
        /* Who asks to be alone is, whatever those who have it let pass. */
        {{CSI_MULTI_NODE_MULTI_WRITER, FS, false},
         {CSI_SINGLE_NODE_WRITER, FS, false},
         CLAIM_WRITERS_EXHAUSTED},
        {{CSI_SINGLE_NODE_WRITER, FS, false},
         {CSI_MULTI_NODE_MULTI_WRITER, FS, false},
         CLAIM_WRITERS_EXHAUSTED},
#undef FS
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        if (claim(&pairs[i].has, 1, pairs[i].asks) != pairs[i].verdict)
            fail_msg("pair %zu", i);
        if (pairs[i].asks.access != CSI_SINGLE_NODE_READER)
            assert_int_equal(claim(NULL, 0, pairs[i].asks), CLAIM_FITS);
    }
}

static void test_claim_is_of_a_kind_that_the_volume_is_registered_for(void **state)
{
    const struct claim_terms volume[] = {terms(CSI_MULTI_NODE_READER, false)};
    struct claim_terms asked = terms(CSI_MULTI_NODE_READER, true), other = asked;

    (void)state;
    assert_int_equal(policy_claim(volume, 1, NULL, 0, &asked), CLAIM_FITS);
    assert_int_equal(policy_claim(volume, 0, NULL, 0, &asked), CLAIM_NOT_CAPABLE);
    other.attachment = CSI_BLOCK_DEVICE;
    assert_int_equal(policy_claim(volume, 1, NULL, 0, &other), CLAIM_NOT_CAPABLE);
    assert_int_equal(policy_claim(volume, 1, &other, 1, &asked), CLAIM_OTHERWISE_ATTACHED);
    asked.read_only = false;
    assert_int_equal(policy_claim(volume, 1, NULL, 0, &asked), CLAIM_NOT_WRITABLE);
}

/* --- what is made and deleted --- */

static void test_answers_settle_what_becomes_of_a_volume(void **state)
{
    static const struct {
        enum registration_state state;
        enum csi_call call;
        unsigned status;
        bool sent, answered;
        enum registration_step step;
    } cases[] = {
#define CREATING REGISTRATION_CREATING, CSI_CREATE_VOLUME
#define DELETING REGISTRATION_DELETING, CSI_DELETE_VOLUME
#define LEARNING REGISTRATION_DELETING, CSI_CREATE_VOLUME
        {CREATING, 0, true, true, REGISTRATION_BECOMES_READY},
        {CREATING, 3, true, true, REGISTRATION_IS_FORGOTTEN},
        {CREATING, 13, true, true, REGISTRATION_CALLS_AGAIN},
        {CREATING, 4, true, false, REGISTRATION_CALLS_AGAIN},
        {CREATING, 14, false, false, REGISTRATION_CALLS_AGAIN},
        {DELETING, 0, true, true, REGISTRATION_IS_FORGOTTEN},
        {DELETING, 5, true, true, REGISTRATION_IS_FORGOTTEN},
        {DELETING, 9, true, true, REGISTRATION_BECOMES_READY},
        {DELETING, 7, true, true, REGISTRATION_BECOMES_READY},
        {DELETING, 10, true, true, REGISTRATION_CALLS_AGAIN},
        {DELETING, 14, true, false, REGISTRATION_CALLS_AGAIN},
        {DELETING, 14, false, false, REGISTRATION_CALLS_AGAIN},
        {LEARNING, 0, true, true, REGISTRATION_CALLS_NEXT},
        {LEARNING, 3, true, true, REGISTRATION_IS_FORGOTTEN},
        {LEARNING, 14, false, false, REGISTRATION_CALLS_AGAIN},
#undef CREATING
#undef DELETING
#undef LEARNING
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct csi_outcome outcome =
            policy_csi_outcome(cases[i].call, cases[i].status, cases[i].sent, cases[i].answered);

        if (policy_registration(cases[i].state, cases[i].call, &outcome, cases[i].answered) !=
            cases[i].step)
            fail_msg("case %zu", i);
    }
}

/* A plugin that answers what nobody can use has made something all the same. */
static void test_lie_about_what_was_made_is_deleted(void **state)
{
    const struct csi_outcome lies = {.verdict = CSI_LIES};

    (void)state;
    assert_int_equal(policy_registration(REGISTRATION_CREATING, CSI_CREATE_VOLUME, &lies, true),
                     REGISTRATION_CALLS_NEXT);
}

static void test_ready_volume_asked_for_again_stays_or_is_forgotten(void **state)
{
    static const struct {
        struct csi_outcome outcome;
        bool answered;
        enum registration_step step;
    } cases[] = {
        {{.verdict = CSI_DONE}, true, REGISTRATION_BECOMES_READY},
        {{.verdict = CSI_REFUSED}, true, REGISTRATION_IS_FORGOTTEN},
        {{.verdict = CSI_LIES}, true, REGISTRATION_IS_FORGOTTEN},
        {{.verdict = CSI_REFUSED, .may_run = true}, true, REGISTRATION_CALLS_AGAIN},
        {{.verdict = CSI_REPEAT, .may_run = true}, false, REGISTRATION_CALLS_AGAIN},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (policy_registration(REGISTRATION_READY, CSI_CREATE_VOLUME, &cases[i].outcome,
                                cases[i].answered) != cases[i].step)
            fail_msg("case %zu", i);
    }
}

/* --- what is waited for --- */

static void test_what_a_claim_waits_for_is_said(void **state)
{
    static const struct {
        uint8_t state;
        uint32_t attempt, tries;
        uint64_t plugin_until_ms;
        const char *says; /* NULL: it waits for nothing */
    } claims[] = {
        {V_IDLE, 0, 0, 0, NULL},
        {V_CLAIMING, 0, 0, 0, "it is asked for"},
        {V_CLAIMING, 1, 0, 0, "why (1 try, trying again)"},
        {V_QUEUED, 0, 0, 9, "plugin \"disks\" is not ready: run its job, or see its logs"},
        {V_QUEUED, 0, 0, 0, "others who have it are seen to first"},
        {V_STAGING, 0, 0, 0, "plugin \"disks\" is asked to stage it"},
        {V_STAGING, 1, 3, 0, "why (3 tries, trying again)"},
        {V_PUBLISHING, 1, 0, 0, "plugin \"disks\" is asked to publish it"},
        {V_VERIFYING, 0, 0, 0, "it is looked whether it is mounted"},
        {V_READY, 0, 0, 0, NULL},
        {V_BROKEN, 0, 9, 0, NULL},
        {V_DRAINING, 0, 0, 9, NULL},
    };
    struct volume volume = {.failure = "why", .define.plugin = "disks"};
    char text[DESCRIPTION_SIZE];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(claims); i++) {
        volume.machine.state = claims[i].state;
        volume.machine.attempt = claims[i].attempt;
        volume.tries = claims[i].tries;
        volume.plugin_until_ms = claims[i].plugin_until_ms;
        bool waits = policy_claim_waits(&volume, text, sizeof(text));
        assert_int_equal(waits, claims[i].says != NULL);
        if (waits)
            assert_string_equal(text, claims[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_claim_waits_for_is_said),
        cmocka_unit_test(test_lie_about_what_was_made_is_deleted),
        cmocka_unit_test(test_ready_volume_asked_for_again_stays_or_is_forgotten),
        cmocka_unit_test(test_claims_stand_beside_each_other_as_their_modes_say),
        cmocka_unit_test(test_claim_is_of_a_kind_that_the_volume_is_registered_for),
        cmocka_unit_test(test_answers_settle_what_becomes_of_a_volume),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
