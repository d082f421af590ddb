/*
 * msgpack as values of jansson, the way Go's net/rpc of Nomad speaks it.
 *
 * Written: maps with names, strings and bytes as raw (fixstr, da, db), numbers signed.  Read: all
 * forms; what is no text becomes {"$bytes": base64}, a time of Go {"$time": nanoseconds}, see
 * io/rpc.h.  A float without a fraction is read as an integer: numbers that came through JSON are
 * floats on the other side.
 */
#ifndef CAIRN_IO_RPC_MSGPACK_H
#define CAIRN_IO_RPC_MSGPACK_H

#include "base/base.h"
#include "io/net/buffer.h"

#include <jansson.h>
#include <stddef.h>

enum {
    /* Of lists and maps in each other.  An alloc with its job has about 15, and configurations of
     * drivers are what their authors make of them. */
    MSGPACK_DEPTH_MAX = 64,
    /* Bytes to one element, on average: what is smaller is there to exhaust memory, where each
     * takes about a hundred.  Those of an alloc with its job are 6 bytes long. */
    MSGPACK_ELEMENT_BYTES = 4,
    MSGPACK_ELEMENTS_LEAST = 1024, /* however short an object has to be */
};

struct msgpack_reader;

/* Reads objects that come back to back, each of at most OBJECT_BYTES_MAX and a fourth as many
 * elements. */
struct msgpack_reader *msgpack_reader_new(size_t object_bytes_max);
void msgpack_reader_free(struct msgpack_reader *reader);

/* Bytes that have come, behind those before.  ERR_LIMIT if nobody takes what is whole. */
int msgpack_reader_add(struct msgpack_reader *reader, const void *bytes, size_t length);

/* The next object (owned by the caller) with 0.  ERR_AGAIN: the rest of it has not come; ERR_LIMIT,
 * ERR_CORRUPT: nothing can be read any more. */
int msgpack_reader_next(struct msgpack_reader *reader, json_t **ret_object, struct err *err);

/* True if nothing is left of what was added: the peer has stopped between two objects. */
bool msgpack_reader_is_empty(const struct msgpack_reader *reader);

/* Appends VALUE to TO, at most BYTES_MAX.  ERR_LIMIT: it is too long, or too deep; then TO may hold
 * a part of it. */
int msgpack_write(struct buffer *to, size_t bytes_max, const json_t *value);

#endif
