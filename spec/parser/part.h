/* Inside spec/parser/ only: the socket of cairn-parse, and its end. */
#ifndef CAIRN_SPEC_PARSER_PART_H
#define CAIRN_SPEC_PARSER_PART_H

#include "spec/parsed.h"

/* At once: libraries that have something to do at the end may not do it any more. */
_Noreturn void parser_end(int code);

/* As much as comes now, up to LENGTH: how much, 0: nothing more. */
size_t parser_read(void *to, size_t length);
bool parser_write(const void *bytes, size_t length);

/* Renders what is asked for until nothing more comes (spec/rendering.h). */
_Noreturn void parser_render(void);

#endif
