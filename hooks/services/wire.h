/*
 * Between the daemon and the process that checks (hooks/fetch/check.c): whole messages over a
 * socket that keeps them apart.
 *
 *   daemon:  the number of an order and what is asked, a JSON object, once for each number; or the
 *            number alone: nobody waits for it any more
 *   process: WIRE_ANSWER_HEAD bytes and what is to be shown, once for each number, whatever came of
 *            it, and soon if nobody waits
 *
 * An order has "target", "timeout_ms" and, if it is asked by HTTP, "method", "headers" (an array of
 * arrays of two texts), "body" and "insecure".  Its target is HOST:PORT or a URL.
 */
#ifndef CAIRN_HOOKS_SERVICES_WIRE_H
#define CAIRN_HOOKS_SERVICES_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_MODE "checks" /* what cairn-fetch is started with for it */

enum {
    WIRE_SOCKET = 3,
    WIRE_AT_ONCE = 512, /* orders without an answer */
    WIRE_NUMBER = 8,
    WIRE_ORDER_MAX = 64 << 10, /* with its number */
    WIRE_OUTPUT_MAX = 3072,
    WIRE_ANSWER_HEAD = WIRE_NUMBER + 3,
    WIRE_ANSWER_MAX = WIRE_ANSWER_HEAD + WIRE_OUTPUT_MAX,
    WIRE_TIMEOUT_MS_MAX = 10 * 60 * 1000, /* of one check, as in Nomad */
};

void wire_number(uint8_t to[WIRE_NUMBER], uint64_t number);
uint64_t wire_number_read(const uint8_t from[WIRE_NUMBER]);

struct wire_answer {
    uint64_t number;
    bool success;
    uint16_t code;      /* of HTTP, 0: none */
    const char *output; /* with a NUL behind it */
};

/* ANSWER as bytes, of its output as much as may be sent: how many. */
size_t wire_answer(uint8_t to[WIRE_ANSWER_MAX], const struct wire_answer *answer);

/* And back; FROM has room for a NUL behind its LENGTH bytes, and RET_ANSWER points into it.  False:
 * this is none. */
bool wire_answer_read(char *from, size_t length, struct wire_answer *ret_answer);

#endif
