/*
 * Messages of plugins, unpacked by protobuf-c and judged.  Inside the room only.
 *
 * A plugin may be wrong or hostile: all that is unpacked comes out of an arena with a bound, since
 * an entry of two bytes unpacks to a hundred, and every text is bounded, UTF-8 and without NUL
 * before anybody has it.  The first thing that is wrong stays; whoever reads on gets what is empty.
 */
#ifndef CAIRN_PLUGINS_PROTOCOL_READ_H
#define CAIRN_PLUGINS_PROTOCOL_READ_H

#include "base/base.h"
#include "spec/arena.h"

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>

enum { READ_BYTES_MAX = 16 << 20, READ_DEPTH_MAX = 16 };

struct reading {
    struct arena *arena; /* where all of it is */
    struct err *err;
    int code; /* of the first thing that is wrong, 0: nothing */
    size_t bytes_left;
};

struct reading reading_begin(struct arena *arena, struct err *err);

/* A message of DESCRIPTOR's kind; NULL, and the reading has failed, if it is none. */
const void *reading_unpack(struct reading *from, const ProtobufCMessageDescriptor *descriptor,
                           const void *bytes, size_t length);

/* What is wrong with what is read: WHAT, and WHY. */
void reading_refuse(struct reading *from, int code, const char *what, const char *why);

/* False, and refused, if there are more than COUNT_MAX. */
bool reading_may_have(struct reading *from, size_t count, size_t count_max, const char *what);

const char *reading_text(struct reading *from, ProtobufCBinaryData bytes, size_t bytes_max,
                         const char *what);
const char *reading_needed(struct reading *from, ProtobufCBinaryData bytes, size_t bytes_max,
                           const char *what);

/* --- value.c --- */

/* Part of what something is called: on one line, and of one word as far as slashes go. */
const char *reading_word(struct reading *from, ProtobufCBinaryData bytes, const char *what);

/* Words for people, cut and made plain, whatever they are; a new reference, as what follows. */
json_t *reading_words(ProtobufCBinaryData bytes);
json_t *reading_number(struct reading *from, double value);

/* The list PAIRS of attributes, as Nomad's API has that of a device: {"size": {"Int": 4, ...}}. */
struct Wire__Pair;
json_t *reading_attributes(struct reading *from, struct Wire__Pair *const *pairs, size_t count);

#endif
