/*
 * The format of a data file: that of LMDB 0.9, data version 1, as mdb.c describes it (struct
 * MDB_page, MDB_node, MDB_meta, MDB_db), for machines of this byte order and 64 bits.
 */
#ifndef CAIRN_JOURNAL_FORMAT_H
#define CAIRN_JOURNAL_FORMAT_H

#include "base/base.h"
#include "journal/pages.h"

#include <string.h>

enum {
    HEADS = 2,
    HEAD_BYTES = 16, /* of a page, before its contents */
    NODE_BYTES = 8,  /* of a node, before its key */
    KEY_BYTES_MAX = 511,
    DEPTH_MAX = 32, /* CURSOR_STACK */
    PAGE_BYTES_MIN = 512,
    PAGE_BYTES_MAX = 65536,
    DATA_VERSION = 1,
    DATA_MAGIC = (int)0xBEEFC0DE,
};

#define NO_PAGE UINT64_MAX

enum page_flags { PAGE_BRANCH = 1, PAGE_LEAF = 2, PAGE_LONG = 4, PAGE_HEAD = 8 };
enum node_flags { NODE_LONG = 1, NODE_TREE = 2 };
/* The tree of free pages has the flags of the environment, too: a private copy is no directory. */
enum tree_flags { TREE_NUMBERS = 8, TREE_NO_DIRECTORY = 0x4000 };

struct page {
    uint64_t number;
    uint16_t pad;
    uint16_t flags;
    union {
        struct {
            uint16_t lower, upper; /* free space */
        };
        uint32_t count; /* of a long value: its pages */
    };
};

struct node {
    uint16_t low, high; /* of the data's length, or of the child's page */
    uint16_t flags;     /* a branch: more of the child's page */
    uint16_t key_length;
    uint8_t key[];
};

struct tree {
    uint32_t page_bytes; /* of the file; only in the tree of free pages */
    uint16_t flags, depth;
    uint64_t branches, leaves, longs, entries;
    uint64_t root;
};

struct head {
    uint32_t magic, version;
    uint64_t address, map_bytes;
    struct tree free, main;
    uint64_t last_page;
    uint64_t transaction;
};

/* A head as it lies in the file. */
struct head_page {
    struct page page;
    struct head head;
};

_Static_assert(sizeof(struct page) == HEAD_BYTES, "struct MDB_page");
_Static_assert(sizeof(struct node) == NODE_BYTES, "struct MDB_node");
_Static_assert(sizeof(struct tree) == 48, "struct MDB_db");
_Static_assert(sizeof(struct head) == 136, "struct MDB_meta");

static inline bool format_is_head(const struct head_page *at, uint64_t number)
{
    const struct head *head = &at->head;
    uint32_t size = head->free.page_bytes;

    return at->page.number == number && (at->page.flags & PAGE_HEAD) != 0 &&
           head->magic == (uint32_t)DATA_MAGIC && head->version == DATA_VERSION &&
           size >= PAGE_BYTES_MIN && size <= PAGE_BYTES_MAX && (size & (size - 1)) == 0 &&
           head->map_bytes <= PAGES_BYTES_MAX && head->last_page >= HEADS - 1 &&
           head->last_page < PAGES_BYTES_MAX / size &&
           (head->free.flags & ~TREE_NO_DIRECTORY) == TREE_NUMBERS && head->main.flags == 0;
}

/* Transactions write the two heads in turn, even numbers the first one. */
static inline bool format_in_turn(const struct head *first, const struct head *second)
{
    uint64_t even = first->transaction, odd = second->transaction;

    if (odd == 0)
        return even == 0; /* a new file */
    return even % 2 == 0 && odd % 2 == 1 && (even == odd + 1 || odd == even + 1);
}

/* True if the free space of PAGE lies inside it; then it has as many nodes. */
static inline bool format_counts(const struct page *page, uint32_t page_bytes, unsigned *ret_count)
{
    *ret_count = page->lower < HEAD_BYTES ? 0 : (page->lower - (unsigned)HEAD_BYTES) / 2;
    return page->lower >= HEAD_BYTES && page->lower % 2 == 0 && page->lower <= page->upper &&
           page->upper <= page_bytes;
}

/* The node at PLACE of a page, whose key lies inside the page; NULL if it does not. */
static inline const struct node *format_node(const struct page *page, uint32_t page_bytes,
                                             uint32_t place)
{
    if (place % 2 != 0 || place + NODE_BYTES > page_bytes)
        return NULL;
    const struct node *node = (const void *)((const uint8_t *)page + place);
    bool inside =
        node->key_length <= KEY_BYTES_MAX && place + NODE_BYTES + node->key_length <= page_bytes;
    return inside ? node : NULL;
}

static inline uint32_t format_place(const struct page *page, unsigned index)
{
    return ((const uint16_t *)(const void *)(page + 1))[index];
}

/* Of a leaf's value, long or not. */
static inline uint64_t format_length(const struct node *node)
{
    return node->low | (uint64_t)node->high << 16;
}

static inline uint64_t format_child(const struct node *node)
{
    return format_length(node) | (uint64_t)node->flags << 32;
}

/* How many bytes NODE takes, whose flags may be anything; LMDB keeps all of them even. */
static inline uint64_t format_bytes(const struct node *node, bool is_leaf)
{
    uint64_t bytes = NODE_BYTES + (uint64_t)node->key_length;

    if (is_leaf)
        bytes += (node->flags & NODE_LONG) != 0 ? sizeof(uint64_t) : format_length(node);
    return bytes + bytes % 2;
}

/* Pages that a long value of LENGTH bytes takes. */
static inline uint64_t format_pages(uint64_t length, uint32_t page_bytes)
{
    return (HEAD_BYTES - 1 + length) / page_bytes + 1;
}

/* False if the bit was set already. */
static inline bool format_take(uint8_t *bits, uint64_t number)
{
    uint8_t bit = (uint8_t)(1u << number % 8);
    bool was_set = (bits[number / 8] & bit) != 0;

    bits[number / 8] |= bit;
    return !was_set;
}

/* Sets COUNT bits from FIRST on; false if one of them was set already. */
static inline bool format_take_run(uint64_t *words, uint64_t first, uint64_t count)
{
    bool was_set = false;

    while (count > 0) {
        uint64_t bit = first % 64, here = count < 64 - bit ? count : 64 - bit;
        uint64_t mask = UINT64_MAX >> (64 - here) << bit;
        was_set = was_set || (words[first / 64] & mask) != 0;
        words[first / 64] |= mask;
        first += here;
        count -= here;
    }
    return !was_set;
}

#endif
