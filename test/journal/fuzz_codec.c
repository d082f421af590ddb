/*
 * Values of the journal whose seal is right: as a record, as an event, and what is read of them
 * encodes to bytes that read as the same.
 */
#include "test/fuzz.h"

#include "fsm/fsm.h"
#include "journal/codec.h"

static _Alignas(8) unsigned char value[CODEC_BYTES_MAX];
static _Alignas(16) unsigned char one[FSM_RECORD_BYTES_MAX], other[FSM_RECORD_BYTES_MAX];

static void read_record(struct codec *codec, size_t length)
{
    struct machine *record = (struct machine *)(void *)one, *again = (void *)other;
    void *bytes;

    if (codec_decode_record(codec, value, length, 0, record) != NULL)
        return;
    check(fsm_broken(record) == NULL);
    journal_encode_record(record, &bytes, &length);
    check(journal_decode_record(bytes, length, again, NULL) == 0);
    check(memcmp(one, other, fsm_record_size(record)) == 0);
    free(bytes);
}

static void read_event(struct codec *codec, size_t length)
{
    static _Alignas(16) unsigned char payload[FSM_PAYLOAD_BYTES_MAX];
    struct journal_event event, again;
    void *bytes;

    memset(payload, 0, sizeof(payload));
    if (codec_decode_event(codec, value, length, 0, &event, payload) != NULL)
        return;
    journal_encode_event(&event, &bytes, &length);
    static _Alignas(16) unsigned char second[FSM_PAYLOAD_BYTES_MAX];
    check(journal_decode_event(bytes, length, &again, second, NULL) == 0);
    check(again.sequence == event.sequence && again.digest == event.digest);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > sizeof(value) - CODEC_CHECK_BYTES)
        return 0;
    const uint64_t seal = codec_check(data, size, 0);
    struct codec *codec = codec_new();

    memcpy(value, &seal, sizeof(seal));
    memcpy(value + CODEC_CHECK_BYTES, data, size);
    read_record(codec, size + CODEC_CHECK_BYTES);
    read_event(codec, size + CODEC_CHECK_BYTES);
    codec_free(codec);
    return 0;
}
