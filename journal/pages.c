/*
 * Looks over the pages of a data file (pages.h).
 *
 * Every page is read once: its head is what its place says, nodes fill it from `upper` to its end
 * without gap or overlap, keys ascend through the whole tree, each page has one owner (a tree, a
 * long value or the list of free pages), and the trees have the flags they were made with and as
 * many pages and entries as they claim.  That much has to hold for LMDB to write: it moves nodes by
 * their lengths and frees pages by what refers to them.  What then remains unseen are flipped bits
 * inside keys and values; those have checks of their own (codec.h).
 */
#include "journal/format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_TRIES = 5 }; /* while somebody writes */

/* At the end of a file pages may be missing that one transaction took and gave back unwritten. */
static const uint64_t UNWRITTEN_BYTES_MAX = (uint64_t)256 << 20;

/* One tree being walked. */
struct walk {
    struct look *look;
    struct tree counted;
    uint16_t depth;
    bool of_free, of_main;
    bool has_key, may_equal; /* the last key was a branch's: the next may be equal */
    uint16_t key_length;
    uint8_t key[KEY_BYTES_MAX];
};

struct look {
    int fd;
    struct head head;
    uint32_t page_bytes;
    uint8_t *owned;   /* bit per page */
    uint8_t *buffers; /* a page for each level of two nested trees */
    struct err *err;
};

#define DAMAGED(look, ...)                                                                         \
    err_set((look)->err, ERR_CORRUPT, "the data file is damaged: " __VA_ARGS__)

static int read_at(int fd, void *to, size_t length, uint64_t at, struct err *err)
{
    size_t done = 0;

    while (done < length) {
        ssize_t count = pread(fd, (char *)to + done, length - done, (off_t)(at + done));
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return err_os(err, ERR_IO, errno, "read the data file");
        if (count == 0)
            return err_set(err, ERR_CORRUPT,
                           "the data file is too short: byte %" PRIu64
                           " and what follows are missing",
                           at + done);
        done += (size_t)count;
    }
    return 0;
}

/* --- heads --- */

static int read_each_head(int fd, struct head heads[HEADS], struct err *err)
{
    struct head_page at;
    uint64_t offset = 0;

    for (int i = 0; i < HEADS; i++) {
        int code = read_at(fd, &at, sizeof(at), offset, err);
        if (code < 0)
            return code;
        if (i == 0 && at.head.magic == (uint32_t)DATA_MAGIC && at.head.version != DATA_VERSION)
            return err_set(err, ERR_CORRUPT, "a data file of LMDB, but of its format %u, not %d",
                           at.head.version, DATA_VERSION);
        if (!format_is_head(&at, (uint64_t)i))
            return err_set(err, ERR_CORRUPT,
                           "not a data file of LMDB, or damaged: head page %d "
                           "does not hold what it should",
                           i);
        heads[i] = at.head;
        offset = at.head.free.page_bytes;
    }
    if (heads[0].free.page_bytes != heads[1].free.page_bytes)
        return err_set(err, ERR_CORRUPT, "the data file is damaged: its heads disagree");
    return format_in_turn(&heads[0], &heads[1])
               ? 0
               : err_set(err, ERR_CORRUPT,
                         "the data file is damaged: its heads are of transactions "
                         "%" PRIu64 " and %" PRIu64,
                         heads[0].transaction, heads[1].transaction);
}

/* Between the two reads a writer may have made commits: then they do not fit each other now, and
 * do so the next time. */
static int read_heads(int fd, struct head heads[HEADS], struct err *err)
{
    int code = read_each_head(fd, heads, err);

    for (int i = 1; i < HEAD_TRIES && code == ERR_CORRUPT; i++)
        code = read_each_head(fd, heads, err);
    return code;
}

static const struct head *newer(const struct head heads[HEADS])
{
    return &heads[heads[0].transaction < heads[1].transaction ? 1 : 0];
}

int pages_head(int fd, struct pages_head *ret_head, struct err *err)
{
    struct head heads[HEADS];
    int code = read_heads(fd, heads, err);

    if (code < 0)
        return code;
    const struct head *head = newer(heads);
    *ret_head = (struct pages_head){.transaction = head->transaction,
                                    .map_bytes = head->map_bytes,
                                    .last_page = head->last_page,
                                    .page_bytes = head->free.page_bytes};
    return 0;
}

/* --- pages --- */

static int own(struct look *look, uint64_t page, uint64_t count)
{
    if (page < HEADS || count == 0 || page > look->head.last_page ||
        count - 1 > look->head.last_page - page)
        return DAMAGED(look, "a reference to page %" PRIu64 ", which does not exist", page);
    for (uint64_t i = page; i < page + count; i++) {
        if (!format_take(look->owned, i))
            return DAMAGED(look, "page %" PRIu64 " is used twice", i);
    }
    return 0;
}

static int read_page(struct look *look, uint64_t number, void *to, size_t length)
{
    const struct page *page = to;
    int code = read_at(look->fd, to, length, number * look->page_bytes, look->err);

    if (code < 0)
        return code;
    if (page->number != number)
        return DAMAGED(look, "page %" PRIu64 " calls itself %" PRIu64, number, page->number);
    return 0;
}

/* The node at INDEX, which lies inside the page with its key; NULL if it does not. */
static const struct node *node_at(const struct look *look, const struct page *page, unsigned index)
{
    uint32_t place = format_place(page, index);

    return place < page->upper ? NULL : format_node(page, look->page_bytes, place);
}

/* COUNT nodes fill the page from `upper` to its end: LMDB takes that for granted when it moves
 * them, and that two fit on a page when it splits one. */
static int check_places(struct look *look, const struct page *page, unsigned count, bool is_leaf)
{
    uint64_t node_bytes_max = ((look->page_bytes - HEAD_BYTES) / 2 & ~1u) - sizeof(uint16_t);
    uint64_t taken[PAGE_BYTES_MAX / 2 / 64]; /* bit per two bytes */
    uint64_t used = 0;

    memset(taken, 0, look->page_bytes / 16);
    for (unsigned i = 0; i < count; i++) {
        const struct node *node = node_at(look, page, i);
        uint64_t bytes = node == NULL ? 0 : format_bytes(node, is_leaf);
        uint64_t place = node == NULL ? 0 : (uint64_t)((const char *)node - (const char *)page);
        if (node == NULL || bytes > node_bytes_max || place + bytes > look->page_bytes)
            return DAMAGED(look, "an entry of page %" PRIu64 " leaves it", page->number);
        if (!format_take_run(taken, place / 2, bytes / 2))
            return DAMAGED(look, "entries of page %" PRIu64 " overlap", page->number);
        used += bytes;
    }
    if (used != look->page_bytes - (uint64_t)page->upper)
        return DAMAGED(look, "there is a gap between the entries of page %" PRIu64, page->number);
    return 0;
}

static int compare(const struct walk *walk, const struct node *node)
{
    if (walk->of_free) {
        uint64_t a, b;
        memcpy(&a, walk->key, sizeof(a));
        memcpy(&b, node->key, sizeof(b));
        return a < b ? -1 : a > b;
    }
    size_t shorter = walk->key_length < node->key_length ? walk->key_length : node->key_length;
    int order = memcmp(walk->key, node->key, shorter);
    return order != 0 ? order : (int)walk->key_length - (int)node->key_length;
}

/* A list of free pages is kept under the transaction that freed them. */
static bool is_past(const struct walk *walk, const struct node *node)
{
    uint64_t transaction;

    memcpy(&transaction, node->key, sizeof(transaction));
    return transaction != 0 && transaction <= walk->look->head.transaction;
}

/* Keys ascend through the tree, and a branch's key parts what is below it. */
static int follow_key(struct walk *walk, const struct node *node, uint64_t page, bool of_branch)
{
    if (node->key_length == 0 || (walk->of_free && node->key_length != sizeof(uint64_t)))
        return DAMAGED(walk->look, "page %" PRIu64 " has a key of a wrong length", page);
    if (walk->of_free && !is_past(walk, node))
        return DAMAGED(walk->look, "page %" PRIu64 " has free pages of no transaction", page);
    int order = walk->has_key ? compare(walk, node) : -1;
    if (order > 0 || (order == 0 && !walk->may_equal))
        return DAMAGED(walk->look, "the keys of page %" PRIu64 " are out of order", page);
    walk->has_key = true;
    walk->may_equal = of_branch;
    walk->key_length = node->key_length;
    memcpy(walk->key, node->key, node->key_length);
    return 0;
}

/* --- values --- */

/* A list of free pages: their count, then the pages, descending. */
static int check_free_list(struct look *look, const uint8_t *bytes, uint64_t length)
{
    uint64_t count, page, previous = NO_PAGE;

    if (length < sizeof(count) || length % sizeof(count) != 0)
        return DAMAGED(look, "a list of free pages is too short");
    memcpy(&count, bytes, sizeof(count));
    if (count > length / sizeof(count) - 1)
        return DAMAGED(look, "a list of free pages is longer than its place");
    for (uint64_t i = 1; i <= count; i++) {
        memcpy(&page, bytes + i * sizeof(page), sizeof(page));
        if (page >= previous)
            return DAMAGED(look, "a list of free pages is out of order");
        previous = page;
        int code = own(look, page, 1);
        if (code < 0)
            return code;
    }
    return 0;
}

static int check_long_value(struct walk *walk, const struct node *node, uint64_t length)
{
    struct look *look = walk->look;
    struct page page;
    uint64_t first;

    memcpy(&first, node->key + node->key_length, sizeof(first));
    int code = own(look, first, 1);
    if (code == 0)
        code = read_page(look, first, &page, sizeof(page));
    if (code < 0)
        return code;
    uint64_t need = format_pages(length, look->page_bytes);
    if (page.flags != PAGE_LONG || page.count < need)
        return DAMAGED(look, "page %" PRIu64 " does not hold the long value it should", first);
    if (page.count > 1)
        code = own(look, first + 1, page.count - 1);
    walk->counted.longs += page.count;
    if (code < 0)
        return code;

    /* The last byte is there, so that the map does not end before it. */
    uint64_t begin = first * look->page_bytes + HEAD_BYTES;
    uint8_t last;
    if (!walk->of_free)
        return length == 0 ? 0 : read_at(look->fd, &last, 1, begin + length - 1, look->err);
    uint8_t *list = malloc(length);
    if (list == NULL)
        return err_set(look->err, ERR_LIMIT, "out of memory");
    code = read_at(look->fd, list, length, begin, look->err);
    if (code == 0)
        code = check_free_list(look, list, length);
    free(list);
    return code;
}

static int check_tree(struct look *look, const struct tree *tree, bool of_free, bool of_main,
                      uint8_t *buffers);

static int check_leaf_node(struct walk *walk, const struct page *page, const struct node *node)
{
    struct look *look = walk->look;
    uint64_t length = format_length(node);
    bool is_long = node->flags == NODE_LONG, is_tree = node->flags == NODE_TREE;

    if ((node->flags != 0 && !is_long && !is_tree) || (is_tree && !walk->of_main))
        return DAMAGED(look, "page %" PRIu64 " has an entry of an unknown kind", page->number);
    if (is_tree && length != sizeof(struct tree))
        return DAMAGED(look, "page %" PRIu64 " has a tree of a wrong length", page->number);
    walk->counted.entries++;
    if (is_long)
        return check_long_value(walk, node, length);
    if (is_tree) {
        struct tree tree;
        memcpy(&tree, node->key + node->key_length, sizeof(tree));
        return check_tree(look, &tree, false, false,
                          look->buffers + (size_t)DEPTH_MAX * look->page_bytes);
    }
    return walk->of_free ? check_free_list(look, node->key + node->key_length, length) : 0;
}

/* --- trees --- */

static int check_page(struct walk *walk, uint64_t number, uint16_t level, uint8_t *buffers)
{
    struct look *look = walk->look;
    struct page *page = (void *)(buffers + (size_t)level * look->page_bytes);
    bool is_leaf = level + 1 == walk->depth;
    unsigned count;
    int code = own(look, number, 1);

    if (code == 0)
        code = read_page(look, number, page, look->page_bytes);
    if (code < 0)
        return code;
    if (page->flags != (is_leaf ? PAGE_LEAF : PAGE_BRANCH))
        return DAMAGED(look, "page %" PRIu64 " is not of the kind its place wants", number);
    if (!format_counts(page, look->page_bytes, &count))
        return DAMAGED(look, "the free space of page %" PRIu64 " is impossible", number);
    if (count < (is_leaf || walk->of_free ? 1 : 2))
        return DAMAGED(look, "page %" PRIu64 " has too few entries", number);
    if (is_leaf)
        walk->counted.leaves++;
    else
        walk->counted.branches++;
    code = check_places(look, page, count, is_leaf);

    for (unsigned i = 0; i < count && code == 0; i++) {
        const struct node *node = node_at(look, page, i);
        if (is_leaf || i > 0) /* the first key of a branch stands for "less than the next" */
            code = follow_key(walk, node, number, !is_leaf);
        if (code < 0)
            break;
        code = is_leaf ? check_leaf_node(walk, page, node)
                       : check_page(walk, format_child(node), (uint16_t)(level + 1), buffers);
    }
    return code;
}

static int check_tree(struct look *look, const struct tree *tree, bool of_free, bool of_main,
                      uint8_t *buffers)
{
    struct walk walk = {.look = look, .of_free = of_free, .of_main = of_main, .depth = tree->depth};

    if (!of_free && tree->flags != 0)
        return DAMAGED(look, "a tree has the flags %x", tree->flags);
    if (tree->root == NO_PAGE) {
        if (tree->entries != 0 || tree->depth != 0 || tree->branches != 0 || tree->leaves != 0 ||
            tree->longs != 0)
            return DAMAGED(look, "a tree without a root has entries");
        return 0;
    }
    if (tree->depth == 0 || tree->depth > DEPTH_MAX)
        return DAMAGED(look, "a tree is %u pages deep", tree->depth);
    int code = check_page(&walk, tree->root, 0, buffers);
    if (code < 0)
        return code;
    if (walk.counted.branches != tree->branches || walk.counted.leaves != tree->leaves ||
        walk.counted.longs != tree->longs || walk.counted.entries != tree->entries)
        return DAMAGED(look, "a tree does not have as many pages and entries as it says");
    return 0;
}

int pages_check(int fd, uint64_t transaction, struct err *err)
{
    struct look look = {.fd = fd, .err = err};
    struct head heads[HEADS];
    struct stat about;
    int code = read_heads(fd, heads, err);

    if (code < 0)
        return code;
    look.head = *newer(heads);
    if (transaction != 0 && transaction != look.head.transaction)
        look.head = heads[look.head.transaction == heads[0].transaction ? 1 : 0];
    if (transaction != 0 && transaction != look.head.transaction)
        return err_set(err, ERR_AGAIN, "the journal has moved on");
    look.page_bytes = look.head.free.page_bytes;
    if (fstat(fd, &about) != 0)
        return err_os(err, ERR_IO, errno, "read the data file");
    if (look.head.last_page * look.page_bytes > (uint64_t)about.st_size + UNWRITTEN_BYTES_MAX)
        return err_set(err, ERR_CORRUPT, "the data file is damaged: it claims %" PRIu64 " pages",
                       look.head.last_page + 1);

    look.owned = calloc(1, look.head.last_page / 8 + 1);
    look.buffers = malloc((size_t)2 * DEPTH_MAX * look.page_bytes);
    if (look.owned == NULL || look.buffers == NULL)
        code = err_set(err, ERR_LIMIT, "out of memory");
    if (code == 0)
        code = check_tree(&look, &look.head.free, true, false, look.buffers);
    if (code == 0)
        code = check_tree(&look, &look.head.main, false, true, look.buffers);
    free(look.owned);
    free(look.buffers);
    return code;
}
