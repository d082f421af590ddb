/* What another part of the room keeps once per loop (the HTTP client its connections). */
#ifndef CAIRN_IO_LOOP_GUEST_H
#define CAIRN_IO_LOOP_GUEST_H

#include "io/loop.h"

struct loop_guest {
    void (*close)(struct loop_guest *guest); /* called once, by loop_free; identifies the kind */
    struct loop_guest *next;
};

/* The guest with this CLOSE, or NULL. */
struct loop_guest *loop_guest_find(const struct loop *loop,
                                   void (*close)(struct loop_guest *guest));

/* GUEST is moved to the loop until its close() is called. */
void loop_guest_add(struct loop *loop, struct loop_guest *guest);

#endif
