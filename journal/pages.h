/*
 * The data file as pages, looked at without LMDB.
 *
 * LMDB believes what it maps: a head that points behind the end of the file, or a node that points
 * behind its page, kills the process that reads it, and a node that is longer than its place the
 * one that writes, after it has spoilt the page.  So each journal is looked over once before it
 * is used, through read(2), which can fail but not kill.
 */
#ifndef CAIRN_JOURNAL_PAGES_H
#define CAIRN_JOURNAL_PAGES_H

#include "base/base.h"

#define PAGES_BYTES_MAX ((uint64_t)64 << 30) /* of a data file, and of its map */

struct pages_head {
    uint64_t transaction; /* the last one committed */
    uint64_t map_bytes;
    uint64_t last_page;
    uint32_t page_bytes;
};

/* The newer of the two heads of the file FD.  ERR_CORRUPT: not a data file of LMDB, or damaged. */
int pages_head(int fd, struct pages_head *ret_head, struct err *err);

/* Follows every page that TRANSACTION (0: the last one) can reach.  ERR_CORRUPT: something does not
 * hold; ERR_AGAIN: the head of that transaction has been overwritten by later ones. */
int pages_check(int fd, uint64_t transaction, struct err *err);

#endif
