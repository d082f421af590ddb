/*
 * The codec: records and events as bytes and back.
 *
 * A value is eight bytes of check, then a FlatBuffer (journal.fbs).  The check is the digest of the
 * FlatBuffer, mixed with the caller's SEAL: the store seals with table and key, so that a value
 * that turns up under another key is found out like a flipped bit.  Equal structs give equal bytes.
 *
 * A codec is the memory of these calls, so that none of them allocates: each open journal has one,
 * and two journals may be worked on by two threads.  Calls for one codec do not nest.
 */
#ifndef CAIRN_JOURNAL_CODEC_H
#define CAIRN_JOURNAL_CODEC_H

#include "journal/journal.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CODEC_CHECK_BYTES = 8,
    CODEC_BYTES_MAX = 96 * 1024, /* of one value: the largest record and event, with room */
};

struct codec;

struct codec *codec_new(void);
void codec_free(struct codec *codec);

struct codec_value {
    const uint8_t *bytes; /* borrowed until the next call that encodes for the same codec */
    size_t length;
};

struct codec_value codec_encode_record(struct codec *codec, const struct machine *record,
                                       uint64_t seal);
struct codec_value codec_encode_event(struct codec *codec, const struct journal_event *event,
                                      uint64_t seal);

/* As journal_decode_record and journal_decode_event; the reason it is refused, or NULL. */
const char *codec_decode_record(struct codec *codec, const void *bytes, size_t length,
                                uint64_t seal, struct machine *record);
const char *codec_decode_event(struct codec *codec, const void *bytes, size_t length, uint64_t seal,
                               struct journal_event *event, void *payload);

/* The check of LENGTH bytes under SEAL, for values that are not FlatBuffers. */
uint64_t codec_check(const void *bytes, size_t length, uint64_t seal);

#ifdef __cplusplus
}
#endif

#endif
