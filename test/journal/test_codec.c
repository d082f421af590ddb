/* The codec: what goes in comes out byte for byte; what is damaged is refused, never believed. */
#include "journal/codec.h"
#include "test/journal/make.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static unsigned char record_bytes[FSM_RECORD_BYTES_MAX] __attribute__((aligned(16)));
static unsigned char other_bytes[FSM_RECORD_BYTES_MAX] __attribute__((aligned(16)));
static unsigned char payload_bytes[FSM_PAYLOAD_BYTES_MAX] __attribute__((aligned(16)));
static unsigned char other_payload[FSM_PAYLOAD_BYTES_MAX] __attribute__((aligned(16)));

static struct codec *codec;
static struct machine *const record = (struct machine *)(void *)record_bytes;
static struct machine *const other = (struct machine *)(void *)other_bytes;

static void assert_same_event(const struct journal_event *a, const struct journal_event *b)
{
    struct journal_event plain_a = *a, plain_b = *b;
    enum fsm_payload kind = (enum fsm_payload)fsm_definition((enum machine_kind)a->id.kind)
                                ->events[a->event.kind]
                                .payload;

    plain_a.event.payload = plain_b.event.payload = NULL;
    assert_memory_equal(&plain_a, &plain_b, sizeof(plain_a));
    if (kind == PAYLOAD_NONE) {
        assert_null(b->event.payload);
        return;
    }
    uint32_t size = fsm_payload_size(kind, a->event.payload);
    assert_int_equal(size, fsm_payload_size(kind, b->event.payload));
    assert_memory_equal(a->event.payload, b->event.payload, size);
}

static void test_record_encoded_and_decoded_is_the_same(void **state)
{
    struct err err;
    void *bytes, *again;
    size_t length, length_again;

    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct rng rng = rng_init(seed);
        make_record(&rng, (enum machine_kind)(seed % MACHINE_KIND_COUNT), record);
        journal_encode_record(record, &bytes, &length);
        memset(other_bytes, 0xA5, sizeof(other_bytes));
        assert_int_equal(journal_decode_record(bytes, length, other, &err), 0);
        assert_memory_equal(record, other, fsm_record_size(record));
        journal_encode_record(other, &again, &length_again);
        assert_int_equal(length, length_again);
        assert_memory_equal(bytes, again, length);
        free(bytes);
        free(again);
    }
}

static void test_event_of_every_kind_encoded_and_decoded_is_the_same(void **state)
{
    struct journal_event event, back;
    struct err err;
    uint64_t payloads = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
            const struct fsm_def *def = fsm_definition((enum machine_kind)kind);
            for (uint8_t i = 0; i < def->events_count; i++) {
                struct rng rng = rng_init(seed * 1000 + i);
                void *bytes;
                size_t length;
                make_event(&rng, seed + 1, (enum machine_kind)kind, i, payload_bytes, &event);
                journal_encode_event(&event, &bytes, &length);
                memset(other_payload, 0xA5, sizeof(other_payload));
                assert_int_equal(journal_decode_event(bytes, length, &back, other_payload, &err),
                                 0);
                assert_same_event(&event, &back);
                payloads |= (uint64_t)1 << def->events[i].payload;
                free(bytes);
            }
        }
    }
    assert_int_equal(payloads, ((uint64_t)1 << PAYLOAD_KIND_COUNT) - 1); /* none was left out */
}

static void test_largest_records_fit(void **state)
{
    struct task *task = (struct task *)(void *)record;
    struct alloc *alloc = (struct alloc *)(void *)record;
    struct results results;
    char value[RESULT_VALUE_MAX], key[16];
    struct rng rng = rng_init(1);
    struct codec_value bytes;

    (void)state;
    memset(value, 'v', sizeof(value));
    do {
        make_record(&rng, MACHINE_TASK, record);
    } while (task->events_count != TASK_EVENTS_MAX);
    task->results_bytes = 0;
    memset(task->results, 0, RESULTS_BYTES_MAX);
    results = (struct results){.bytes = task->results, .size = RESULTS_BYTES_MAX};
    for (uint32_t i = 0; RESULTS_BYTES_MAX - results.used > 32; i++) {
        uint32_t room = RESULTS_BYTES_MAX - results.used - 16;
        text_format(key, sizeof(key), "%07u", i);
        assert_int_equal(results_set(&results, 1, RESULT_DATA, key, value,
                                     room < sizeof(value) ? room : sizeof(value)),
                         0);
    }
    task->results_bytes = results.used;
    assert_true(results.used > RESULTS_BYTES_MAX - 64);
    bytes = codec_encode_record(codec, record, 7);
    assert_null(codec_decode_record(codec, bytes.bytes, bytes.length, 7, other));
    assert_memory_equal(record, other, fsm_record_size(record));

    do {
        make_record(&rng, MACHINE_ALLOC, record);
    } while (alloc->assign.members_count != ALLOC_MEMBERS_MAX);
    bytes = codec_encode_record(codec, record, 7);
    assert_null(codec_decode_record(codec, bytes.bytes, bytes.length, 7, other));
    assert_memory_equal(record, other, fsm_record_size(record));
}

static void test_value_at_odd_address_decodes(void **state)
{
    struct rng rng = rng_init(5);
    struct codec_value value;
    struct err err;

    (void)state;
    make_record(&rng, MACHINE_TASK, record);
    value = codec_encode_record(codec, record, 0);
    char *moved = malloc(value.length + 1);
    memcpy(moved + 1, value.bytes, value.length);
    assert_int_equal(journal_decode_record(moved + 1, value.length, other, &err), 0);
    assert_memory_equal(record, other, fsm_record_size(record));
    free(moved);
}

/* A record or event of usual size, encoded; the caller frees it. */
static unsigned char *make_value(struct rng *rng, int kind, bool is_event, size_t *ret_length)
{
    struct journal_event event;
    void *bytes = NULL;

    do {
        free(bytes);
        if (is_event) {
            uint8_t event_kind =
                (uint8_t)rng_below(rng, fsm_definition((enum machine_kind)kind)->events_count);
            make_event(rng, 1, (enum machine_kind)kind, event_kind, payload_bytes, &event);
            journal_encode_event(&event, &bytes, ret_length);
        } else {
            make_record(rng, (enum machine_kind)kind, record);
            journal_encode_record(record, &bytes, ret_length);
        }
    } while (*ret_length > 2000);
    return bytes;
}

/* What every reader of an event relies on without looking. */
static void assert_valid_event(const struct journal_event *event)
{
    assert_true(event->id.kind < MACHINE_KIND_COUNT);
    const struct fsm_def *def = fsm_definition((enum machine_kind)event->id.kind);

    assert_true(event->event.kind < def->events_count);
    assert_true(event->event.lane < LANE_COUNT);
    assert_true(event->row < def->rows_count);
    assert_true(event->before < def->states_count);
    assert_true(event->after < def->states_count);
    assert_true(event->issues_count <= FSM_EFFECTS_MAX);
    for (int i = 0; i < event->issues_count; i++)
        assert_true(event->issues[i].effect > 0 && event->issues[i].effect < def->effects_count);
    if (def->events[event->event.kind].payload == PAYLOAD_HOOK) {
        const struct hook_outcome *outcome = event->event.payload;
        assert_true(results_valid(outcome->results, outcome->results_bytes));
    }
}

static int decode(const void *bytes, size_t length, bool is_event)
{
    struct journal_event event;
    struct err err;

    if (!is_event)
        return journal_decode_record(bytes, length, other, &err);
    int code = journal_decode_event(bytes, length, &event, other_payload, &err);
    if (code == 0)
        assert_valid_event(&event);
    return code;
}

static void test_every_flipped_bit_is_detected(void **state)
{
    (void)state;
    for (int round = 0; round < 2 * MACHINE_KIND_COUNT; round++) {
        bool is_event = round % 2 != 0;
        struct rng rng = rng_init((uint64_t)round);
        size_t length;
        unsigned char *bytes = make_value(&rng, round / 2, is_event, &length);
        assert_int_equal(decode(bytes, length, is_event), 0);
        for (size_t bit = 0; bit < length * 8; bit += round < 2 ? 1 : 7) {
            bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
            assert_int_equal(decode(bytes, length, is_event), ERR_CORRUPT);
            bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
        assert_int_equal(decode(bytes, length, is_event), 0);
        free(bytes);
    }
}

static void test_every_truncation_is_detected(void **state)
{
    (void)state;
    for (int round = 0; round < 2 * MACHINE_KIND_COUNT; round++) {
        bool is_event = round % 2 != 0;
        struct rng rng = rng_init((uint64_t)round);
        size_t length;
        unsigned char *bytes = make_value(&rng, round / 2, is_event, &length);
        for (size_t cut = 0; cut < length; cut++) {
            unsigned char *shorter = malloc(cut > 0 ? cut : 1); /* exact: asan sees a read behind */
            memcpy(shorter, bytes, cut);
            assert_int_equal(decode(shorter, cut, is_event), ERR_CORRUPT);
            free(shorter);
        }
        free(bytes);
    }
}

static void reseal(unsigned char *bytes, size_t length)
{
    uint64_t digest = codec_check(bytes + CODEC_CHECK_BYTES, length - CODEC_CHECK_BYTES, 0);

    memcpy(bytes, &digest, sizeof(digest));
}

/* Behind a check that is right, as a hostile or mistaken writer would make it, the decoder stands
 * on verifier and bounds alone: it may accept a valid value, and must survive every other. */
static void test_damage_behind_a_right_check_is_survived(void **state)
{
    unsigned accepted = 0, refused = 0;

    (void)state;
    for (int round = 0; round < 8 * MACHINE_KIND_COUNT; round++) {
        bool is_event = round % 4 != 0;
        struct rng rng = rng_init((uint64_t)round);
        size_t length;
        unsigned char *bytes = make_value(&rng, round / 8, is_event, &length);
        unsigned char *damaged = malloc(length);
        for (int i = 0; i < 6000; i++) {
            memcpy(damaged, bytes, length);
            for (uint64_t flips = 1 + rng_below(&rng, 3); flips > 0; flips--) {
                size_t at = CODEC_CHECK_BYTES + rng_below(&rng, length - CODEC_CHECK_BYTES);
                unsigned flipped = damaged[at] ^ (1u << rng_below(&rng, 8));
                damaged[at] = (unsigned char)(rng_chance(&rng, 1, 2) ? rng_next(&rng) : flipped);
            }
            reseal(damaged, length);
            int code = decode(damaged, length, is_event);
            if (code == 0 && !is_event)
                assert_null(fsm_broken(other));
            accepted += code == 0;
            refused += code != 0;
        }
        free(damaged);
        free(bytes);
    }
    assert_true(accepted > 0);
    assert_true(refused > 0);
}

static void test_random_bytes_are_refused(void **state)
{
    unsigned char bytes[512];
    struct rng rng = rng_init(99);

    (void)state;
    for (int i = 0; i < 20000; i++) {
        size_t length = CODEC_CHECK_BYTES + rng_below(&rng, sizeof(bytes) - CODEC_CHECK_BYTES);
        for (size_t j = 0; j < length; j++)
            bytes[j] = (unsigned char)rng_next(&rng);
        reseal(bytes, length);
        assert_int_equal(decode(bytes, length, i % 2 != 0), ERR_CORRUPT);
    }
}

static void test_value_of_the_other_kind_or_seal_is_refused(void **state)
{
    struct rng rng = rng_init(3);
    struct journal_event event;
    struct codec_value value;
    size_t length;
    unsigned char *bytes;

    (void)state;
    bytes = make_value(&rng, MACHINE_TASK, false, &length);
    assert_int_equal(decode(bytes, length, true), ERR_CORRUPT);
    free(bytes);
    bytes = make_value(&rng, MACHINE_TASK, true, &length);
    assert_int_equal(decode(bytes, length, false), ERR_CORRUPT);
    free(bytes);
    make_event(&rng, 1, MACHINE_ALLOC, AE_STOP, payload_bytes, &event);
    value = codec_encode_event(codec, &event, 11);
    assert_null(codec_decode_event(codec, value.bytes, value.length, 11, &event, other_payload));
    assert_non_null(
        codec_decode_event(codec, value.bytes, value.length, 12, &event, other_payload));
}

/* fsm_broken is the last word: a record that breaks its invariant is whole, and not valid. */
static void test_record_that_breaks_its_invariant_is_refused(void **state)
{
    struct task *task = (struct task *)(void *)record;
    struct rng rng = rng_init(4);
    unsigned char *bytes;
    unsigned refused = 0;
    size_t length;

    (void)state;
    do {
        make_record(&rng, MACHINE_TASK, record);
    } while (record->state != T_BACKOFF || task->events_count > 0);
    record->deadline_ms = 0x1122334455667788;
    journal_encode_record(record, (void **)&bytes, &length);
    for (size_t i = CODEC_CHECK_BYTES; i + 8 <= length; i++) {
        uint64_t value;
        memcpy(&value, bytes + i, sizeof(value));
        if (value == record->deadline_ms) {
            memset(bytes + i, 0, 8);
            refused++;
        }
    }
    assert_int_equal(refused, 1);
    reseal(bytes, length);
    struct err err;
    assert_int_equal(journal_decode_record(bytes, length, other, &err), ERR_CORRUPT);
    assert_string_equal(err.text, "backing off without a timer");
    free(bytes);
}

/* Two journals in one process, on two threads: what one has encoded stays while the other works. */
static void test_codecs_share_nothing(void **state)
{
    struct codec *second = codec_new();
    struct codec_value value, ours;
    struct rng rng = rng_init(9);

    (void)state;
    make_record(&rng, MACHINE_ALLOC, record);
    value = codec_encode_record(codec, record, 1);
    make_record(&rng, MACHINE_TASK, other);
    ours = codec_encode_record(second, other, 1);
    assert_ptr_not_equal(value.bytes, ours.bytes);
    assert_null(codec_decode_record(second, value.bytes, value.length, 1, other));
    assert_memory_equal(record, other, fsm_record_size(record));
    codec_free(second);
}

static int open_codec(void **state)
{
    (void)state;
    codec = codec_new();
    return 0;
}

static int close_codec(void **state)
{
    (void)state;
    codec_free(codec);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_flipped_bit_is_detected),
        cmocka_unit_test(test_every_truncation_is_detected),
        cmocka_unit_test(test_damage_behind_a_right_check_is_survived),
        cmocka_unit_test(test_random_bytes_are_refused),
        cmocka_unit_test(test_value_of_the_other_kind_or_seal_is_refused),
        cmocka_unit_test(test_record_that_breaks_its_invariant_is_refused),
        cmocka_unit_test(test_record_encoded_and_decoded_is_the_same),
        cmocka_unit_test(test_event_of_every_kind_encoded_and_decoded_is_the_same),
        cmocka_unit_test(test_largest_records_fit),
        cmocka_unit_test(test_value_at_odd_address_decodes),
        cmocka_unit_test(test_codecs_share_nothing),
    };

    return cmocka_run_group_tests(tests, open_codec, close_codec);
}
