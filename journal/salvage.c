/*
 * What a refused data file still holds (journal.h): read page by page, without LMDB.
 *
 * The trees of the newest head are followed as far as they go.  Where they are torn, or nobody can
 * say which commit was the last one, all other pages are looked through, too: a branch that is lost
 * takes whole pages with it.  An entry counts only if its seal fits its table and its key, so that
 * nothing is taken for one that is none.  But it may be an old one: pages that were given back keep
 * what they held.  So each entry says how it was found, and who knows more of it decides.
 */
#include "journal/format.h"
#include "journal/part.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct salvage {
    const struct journal_salvaging *to;
    struct journal_salvaged *result;
    int fd;
    uint64_t bytes, pages; /* of the file */
    uint32_t page_bytes;
    struct head head;
    bool has_head;
    bool certain;    /* it is that of the last commit */
    bool torn;       /* its trees have lost something */
    bool free_known; /* so have its lists of free pages not */
    bool has_tail;   /* its log has the last event */
    uint64_t odd_pages;
    uint8_t *reached, *given_back; /* bit per page */
    struct machine *record;        /* scratch, FSM_RECORD_BYTES_MAX */
    void *payload;                 /* scratch, FSM_PAYLOAD_BYTES_MAX */
    struct codec *codec;
};

/* --- the file --- */

/* False if it ends before, or cannot be read there. */
static bool read_bytes(const struct salvage *salvage, void *to, uint64_t length, uint64_t at)
{
    uint64_t done = 0;

    while (done < length) {
        ssize_t count = pread(salvage->fd, (char *)to + done, length - done, (off_t)(at + done));
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        done += (uint64_t)count;
    }
    return true;
}

static void find_heads(struct salvage *salvage)
{
    struct head_page at[HEADS] = {0};
    bool whole[HEADS];
    long size = sysconf(_SC_PAGESIZE);

    check(size > 0);
    whole[0] = read_bytes(salvage, &at[0], sizeof(at[0]), 0) && format_is_head(&at[0], 0);
    salvage->page_bytes = whole[0] ? at[0].head.free.page_bytes : (uint32_t)size;
    whole[1] = read_bytes(salvage, &at[1], sizeof(at[1]), salvage->page_bytes) &&
               format_is_head(&at[1], 1) && at[1].head.free.page_bytes == salvage->page_bytes;
    salvage->has_head = whole[0] || whole[1];
    salvage->certain = whole[0] && whole[1] && format_in_turn(&at[0].head, &at[1].head);
    if (salvage->has_head)
        salvage->head =
            at[!whole[0] || (whole[1] && at[0].head.transaction < at[1].head.transaction) ? 1 : 0]
                .head;
    salvage->pages = (salvage->bytes + salvage->page_bytes - 1) / salvage->page_bytes;
}

/* --- entries --- */

static enum journal_trust trust_now(const struct salvage *salvage)
{
    return salvage->certain ? JOURNAL_CURRENT : JOURNAL_REACHED;
}

static bool take_event(struct salvage *salvage, enum journal_trust trust, struct store_bytes key,
                       struct store_bytes value)
{
    struct journal_event event;
    uint64_t sequence;

    if (!key_to_number(key, &sequence) ||
        codec_decode_event(salvage->codec, value.bytes, value.length, key_seal(STORE_LOG, key),
                           &event, salvage->payload) != NULL ||
        event.sequence != sequence)
        return false;
    if (sequence >= salvage->result->next)
        salvage->result->next = sequence + 1;
    salvage->to->event(salvage->to->ctx, trust, &event);
    return true;
}

static bool take_record(struct salvage *salvage, enum journal_trust trust, bool base,
                        struct store_bytes key, struct store_bytes value)
{
    enum store_table table = base ? STORE_BASE : STORE_STATE;
    struct machine_id id;

    if (!key_to_machine(key, &id) ||
        codec_decode_record(salvage->codec, value.bytes, value.length, key_seal(table, key),
                            salvage->record) != NULL ||
        salvage->record->kind != id.kind)
        return false;
    salvage->to->record(salvage->to->ctx, trust, base, &id, salvage->record);
    return true;
}

static void note_own(struct salvage *salvage, const char *name, struct store_bytes bytes)
{
    char text[24] = "";
    uint64_t number;

    if (bytes.length >= sizeof(text))
        return;
    memcpy(text, bytes.bytes, bytes.length);
    if (!text_to_u64(text, &number))
        return;
    if (text_equal(name, META_SEQUENCE) && number > salvage->result->next)
        salvage->result->next = number;
    if (text_equal(name, META_SCHEMA) && number > salvage->result->schema)
        salvage->result->schema = (uint32_t)number;
}

static bool take_blob(struct salvage *salvage, enum journal_trust trust, bool meta,
                      struct store_bytes key, struct store_bytes value)
{
    enum store_table table = meta ? STORE_META : STORE_SPEC;
    char name[JOURNAL_KEY_SIZE];
    struct store_bytes bytes;

    if (!key_to_text(key, name, sizeof(name)) || !value_open(table, key, value, &bytes))
        return false;
    if (meta && text_starts_with(name, "journal/"))
        note_own(salvage, name, bytes);
    else
        salvage->to->blob(salvage->to->ctx, trust, meta, name, bytes.bytes, bytes.length);
    return true;
}

static bool take_quarantined(struct salvage *salvage, enum journal_trust trust,
                             struct store_bytes key, struct store_bytes value)
{
    struct journal_quarantined item = {0};

    if (!quarantine_unpack(key, value, &item))
        return false;
    salvage->to->quarantined(salvage->to->ctx, trust, &item);
    return true;
}

/* False if it is sealed for no table. */
static bool take_entry(struct salvage *salvage, enum journal_trust trust, struct store_bytes key,
                       struct store_bytes value)
{
    bool taken =
        key.length > 0 && key.length < JOURNAL_KEY_SIZE &&
        value.length <= JOURNAL_VALUE_BYTES_MAX + CODEC_BYTES_MAX &&
        (take_event(salvage, trust, key, value) || take_record(salvage, trust, false, key, value) ||
         take_record(salvage, trust, true, key, value) ||
         take_blob(salvage, trust, false, key, value) ||
         take_blob(salvage, trust, true, key, value) ||
         take_quarantined(salvage, trust, key, value));

    salvage->result->entries += taken;
    return taken;
}

/* The value of NODE where it lies elsewhere, owned by the caller; NULL if it does not. */
static void *read_long(struct salvage *salvage, const struct node *node, bool reached)
{
    uint64_t first, length = format_length(node);

    memcpy(&first, node->key + node->key_length, sizeof(first));
    uint64_t count = format_pages(length, salvage->page_bytes);
    if (first < HEADS || first >= salvage->pages || count > salvage->pages - first)
        return NULL;
    void *bytes = malloc(length + 1);
    if (bytes == NULL ||
        !read_bytes(salvage, bytes, length, first * salvage->page_bytes + HEAD_BYTES)) {
        free(bytes);
        return NULL;
    }
    for (uint64_t i = first; reached && i < first + count; i++)
        (void)format_take(salvage->reached, i); /* by whom else does not matter */
    return bytes;
}

/* An entry of a leaf; false if it is none, or its value is damaged. */
static bool take_node(struct salvage *salvage, enum journal_trust trust, const struct page *page,
                      const struct node *node)
{
    uint64_t place = (uint64_t)((const char *)node - (const char *)page);
    struct store_bytes key = {.bytes = node->key, .length = node->key_length};
    struct store_bytes value = {.bytes = node->key + node->key_length,
                                .length = format_length(node)};
    void *elsewhere = NULL;

    if ((node->flags != 0 && node->flags != NODE_LONG) ||
        place + format_bytes(node, true) > salvage->page_bytes)
        return false;
    if (node->flags == NODE_LONG) {
        elsewhere = read_long(salvage, node, trust != JOURNAL_DOUBTFUL);
        if (elsewhere == NULL)
            return false;
        value.bytes = elsewhere;
    }
    bool taken = take_entry(salvage, trust, key, value);
    free(elsewhere);
    return taken;
}

/* --- pages --- */

/* Looks for entries at every place of a page whose own account of them cannot be believed.  Among
 * them may be what was deleted since the page was written. */
static void dig(struct salvage *salvage, const struct page *page, enum journal_trust trust)
{
    salvage->result->damaged_pages++;
    for (uint32_t place = HEAD_BYTES; place + NODE_BYTES < salvage->page_bytes; place += 2) {
        const struct node *node = format_node(page, salvage->page_bytes, place);
        if (node != NULL && take_node(salvage, trust, page, node))
            place += (uint32_t)format_bytes(node, true) - 2;
    }
}

static bool is_sound(const struct salvage *salvage, const struct page *page, uint64_t number,
                     enum page_flags flags, unsigned *ret_count)
{
    return page->number == number && page->flags == flags &&
           format_counts(page, salvage->page_bytes, ret_count);
}

/* A list of free pages: their count, then the pages. */
static void note_given_back(struct salvage *salvage, const struct node *node)
{
    bool is_long = node->flags == NODE_LONG;
    uint64_t length = format_length(node), count = 0, page;
    void *elsewhere = is_long ? read_long(salvage, node, true) : NULL;
    const uint8_t *bytes = is_long ? elsewhere : node->key + node->key_length;

    if (bytes != NULL && length >= sizeof(count))
        memcpy(&count, bytes, sizeof(count));
    if (bytes == NULL || length < sizeof(count) || count > length / sizeof(count) - 1) {
        salvage->free_known = false;
        count = 0;
    }
    for (uint64_t i = 1; i <= count; i++) {
        memcpy(&page, bytes + i * sizeof(page), sizeof(page));
        if (page < HEADS || page > salvage->head.last_page)
            salvage->free_known = false;
        else if (page < salvage->pages && !format_take(salvage->given_back, page))
            salvage->free_known = false;
    }
    free(elsewhere);
}

enum tree_kind { TREE_OF_FREE, TREE_OF_TREES, TREE_OF_ENTRIES };

static void follow(struct salvage *salvage, enum tree_kind kind, uint64_t number, unsigned depth);

static void lose(struct salvage *salvage, enum tree_kind kind)
{
    if (kind == TREE_OF_FREE)
        salvage->free_known = false;
    else
        salvage->torn = true;
}

/* True if the newest entry below the page NUMBER is there. */
static bool has_tail(struct salvage *salvage, uint64_t number, unsigned depth)
{
    struct page *page = malloc(salvage->page_bytes);
    const struct node *last = NULL;
    unsigned count = 0;
    bool has = false;

    check(page != NULL);
    bool sound = depth > 0 && depth <= DEPTH_MAX && number >= HEADS && number < salvage->pages &&
                 read_bytes(salvage, page, salvage->page_bytes, number * salvage->page_bytes) &&
                 is_sound(salvage, page, number, depth == 1 ? PAGE_LEAF : PAGE_BRANCH, &count);
    if (sound && count > 0)
        last = format_node(page, salvage->page_bytes, format_place(page, count - 1));
    if (last != NULL && depth > 1)
        has = has_tail(salvage, format_child(last), depth - 1);
    else if (last != NULL && last->flags == 0 && last->key_length == sizeof(uint64_t))
        has = take_node(salvage, trust_now(salvage), page, last);
    free(page);
    return has;
}

/* One of the tables. */
static void follow_table(struct salvage *salvage, const struct node *node)
{
    const char *log = store_table_name(STORE_LOG);
    bool is_log = node->key_length == strlen(log) && memcmp(node->key, log, strlen(log)) == 0;
    struct tree tree;

    memcpy(&tree, node->key + node->key_length, sizeof(tree));
    if (tree.root != NO_PAGE)
        follow(salvage, TREE_OF_ENTRIES, tree.root, tree.depth);
    if (is_log)
        salvage->has_tail = tree.root == NO_PAGE || has_tail(salvage, tree.root, tree.depth);
}

static void follow_node(struct salvage *salvage, enum tree_kind kind, const struct page *page,
                        const struct node *node)
{
    uint64_t place = (uint64_t)((const char *)node - (const char *)page);

    if (place + format_bytes(node, true) > salvage->page_bytes) {
        lose(salvage, kind);
    } else if (kind == TREE_OF_FREE) {
        note_given_back(salvage, node);
    } else if (kind == TREE_OF_ENTRIES) {
        if (!take_node(salvage, trust_now(salvage), page, node)) {
            salvage->result->damaged_entries++;
            salvage->torn = true;
        }
    } else if (node->flags == NODE_TREE && format_length(node) == sizeof(struct tree)) {
        follow_table(salvage, node);
    } else {
        salvage->torn = true;
    }
}

static void follow_page(struct salvage *salvage, enum tree_kind kind, const struct page *page,
                        unsigned count, unsigned depth)
{
    for (unsigned i = 0; i < count; i++) {
        uint32_t place = format_place(page, i);
        const struct node *node =
            place < page->upper ? NULL : format_node(page, salvage->page_bytes, place);
        if (node == NULL)
            lose(salvage, kind);
        else if (page->flags == PAGE_BRANCH)
            follow(salvage, kind, format_child(node), depth - 1);
        else
            follow_node(salvage, kind, page, node);
    }
}

/* Everything below the page NUMBER, which is the root of DEPTH levels. */
static void follow(struct salvage *salvage, enum tree_kind kind, uint64_t number, unsigned depth)
{
    struct page *page = malloc(salvage->page_bytes);
    unsigned count;

    check(page != NULL);
    if (depth == 0 || depth > DEPTH_MAX || number < HEADS || number >= salvage->pages ||
        !format_take(salvage->reached, number) ||
        !read_bytes(salvage, page, salvage->page_bytes, number * salvage->page_bytes)) {
        lose(salvage, kind);
    } else if (!is_sound(salvage, page, number, depth == 1 ? PAGE_LEAF : PAGE_BRANCH, &count)) {
        lose(salvage, kind);
        dig(salvage, page, page->number == number ? JOURNAL_REACHED : JOURNAL_DOUBTFUL);
    } else {
        follow_page(salvage, kind, page, count, depth);
    }
    free(page);
}

/* True if the page NUMBER is none that LMDB may have left there: it has lost something.  Behind the
 * first page of a long value there is only its text. */
static bool is_odd(const struct page *page, uint64_t number)
{
    const unsigned char *at = (const unsigned char *)page;

    if (page->number == number)
        return page->flags != PAGE_BRANCH && page->flags != PAGE_LEAF && page->flags != PAGE_LONG;
    for (size_t i = 0; i < sizeof(*page); i++) {
        if (at[i] < ' ' || at[i] > 0xF4) /* in no UTF-8 */
            return i == 0 || at[i] != 0; /* its end, and zeroes behind it */
    }
    return false;
}

/* Pages that no tree led to: given back, or torn off. */
static void look_through(struct salvage *salvage)
{
    struct page *page = malloc(salvage->page_bytes);
    bool stale = salvage->certain && salvage->free_known; /* what was given back */
    uint64_t pages = salvage->pages;
    enum journal_trust trust = stale ? JOURNAL_REACHED : JOURNAL_DOUBTFUL;

    check(page != NULL);
    if (salvage->certain && salvage->head.last_page < pages)
        pages = salvage->head.last_page + 1; /* behind it is what never was committed */
    for (uint64_t number = HEADS; number < pages; number++) {
        uint8_t bit = (uint8_t)(1u << number % 8);
        unsigned count;
        if ((salvage->reached[number / 8] & bit) != 0 ||
            (stale && (salvage->given_back[number / 8] & bit) != 0) ||
            !read_bytes(salvage, page, salvage->page_bytes, number * salvage->page_bytes))
            continue;
        salvage->odd_pages += is_odd(page, number);
        if (page->number != number || page->flags == PAGE_BRANCH || page->flags == PAGE_LONG)
            continue;
        if (!is_sound(salvage, page, number, PAGE_LEAF, &count)) {
            dig(salvage, page, trust);
            continue;
        }
        for (unsigned i = 0; i < count; i++) {
            uint32_t place = format_place(page, i);
            const struct node *node = format_node(page, salvage->page_bytes, place);
            if (node != NULL)
                (void)take_node(salvage, trust, page, node); /* lists of free pages, too */
        }
    }
    free(page);
}

static void look(struct salvage *salvage)
{
    const struct head *head = &salvage->head;

    find_heads(salvage);
    salvage->reached = calloc(1, salvage->pages / 8 + 1);
    salvage->given_back = calloc(1, salvage->pages / 8 + 1);
    check(salvage->reached != NULL);
    check(salvage->given_back != NULL);
    salvage->free_known = salvage->has_head;
    salvage->torn = !salvage->certain;
    if (salvage->has_head && head->main.root != NO_PAGE)
        follow(salvage, TREE_OF_TREES, head->main.root, head->main.depth);
    if (salvage->has_head && head->free.root != NO_PAGE)
        follow(salvage, TREE_OF_FREE, head->free.root, head->free.depth);
    if (salvage->torn)
        look_through(salvage);
    /* Where no head says which event was the last one, it is the newest that was found, if nothing
     * else is missing. */
    bool whole = salvage->odd_pages == 0 && salvage->bytes % salvage->page_bytes == 0 &&
                 (!salvage->has_head || head->last_page < salvage->pages);
    salvage->result->has_tail = salvage->certain ? salvage->has_tail : whole;
    salvage->result->certain = salvage->certain;
    free(salvage->reached);
    free(salvage->given_back);
}

int journal_salvage(const char *path, const struct journal_salvaging *to,
                    struct journal_salvaged *ret_result, struct err *err)
{
    struct salvage salvage = {.to = to, .result = ret_result};
    char name[PATH_MAX];
    struct stat about;

    *ret_result = (struct journal_salvaged){.next = 1};
    if (!text_format(name, sizeof(name), "%s/data.mdb", path))
        return err_set(err, ERR_LIMIT, "the path is too long");
    salvage.fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (salvage.fd < 0)
        return err_os(err, err_from_errno(errno), errno, "open the data file in %s", path);
    if (fstat(salvage.fd, &about) != 0) {
        int code = err_os(err, ERR_IO, errno, "read the data file in %s", path);
        (void)close(salvage.fd); /* only read from */
        return code;
    }
    salvage.bytes = (uint64_t)about.st_size;
    salvage.record = malloc(FSM_RECORD_BYTES_MAX);
    salvage.payload = malloc(FSM_PAYLOAD_BYTES_MAX);
    salvage.codec = codec_new();
    check(salvage.record != NULL);
    check(salvage.payload != NULL);
    look(&salvage);
    free(salvage.record);
    free(salvage.payload);
    codec_free(salvage.codec);
    (void)close(salvage.fd); /* only read from */
    if (ret_result->schema > JOURNAL_SCHEMA)
        return err_set(err, ERR_UNSUPPORTED,
                       "the journal was written by a newer cairn: it has schema %u, this one knows "
                       "%d",
                       ret_result->schema, JOURNAL_SCHEMA);
    if (ret_result->entries == 0)
        return err_set(err, ERR_GONE, "no entry in the data file in %s can be read", path);
    return 0;
}
