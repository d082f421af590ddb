/* Identity, clock and facts of this node.  One journal record, "node", holds the first two. */
#include "agent/node.h"

#include "agent/version.h"

#include "io/log.h"
#include "io/loop.h"
#include "io/proc.h"
#include "journal/journal.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const char key[] = "node";

enum { LAST_TRIES = 64 };

/* --- the last event of the journal --- */

struct last {
    struct clock_last clock;
    uint64_t turn;
};

static bool note_last(void *ctx, const struct journal_event *event)
{
    struct last *last = ctx;

    last->clock = (struct clock_last){event->now_ms, event->unix_ns};
    last->turn = event->turn;
    return true;
}

static void ignore_damage(void *ctx, const char *table, const char *name, const void *bytes,
                          size_t length, const char *reason)
{
    (void)ctx;
    (void)table;
    (void)bytes;
    (void)length;
    log_warn("journal", "event cannot be read sequence=%s reason=%s", log_value(name),
             log_value(reason));
}

static int read_last(struct journal *journal, struct last *last, struct err *err)
{
    uint64_t next = journal_next_sequence(journal), first = journal_first_sequence(journal);
    int code = 0;

    /* Damaged events at the end must not set the clock back to nothing. */
    *last = (struct last){0};
    for (uint64_t at = next - 1, tries = 0;
         code == 0 && at >= first && at > 0 && last->turn == 0 && tries < LAST_TRIES; at--, tries++)
        code = journal_each_event(journal, at, note_last, ignore_damage, last, err);
    return code;
}

/* --- identity --- */

static int random_id(char to[UUID_TEXT_SIZE], struct err *err)
{
    uint64_t numbers[2];

    if (getrandom(numbers, sizeof(numbers), 0) != (ssize_t)sizeof(numbers))
        return err_set(err, ERR_IO, "no random numbers to make a node id of");
    uuid_format(to, numbers[0], numbers[1]);
    return 0;
}

static bool take_id(char to[UUID_TEXT_SIZE], const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text != NULL && uuid_is_valid(text) && text_copy(to, UUID_TEXT_SIZE, text);
}

static int read_stored(struct node *node, struct journal *journal, struct err *err)
{
    char *text;
    size_t length;
    int code = journal_meta_read(journal, key, &text, &length, err);

    if (code < 0)
        return code;
    json_t *stored = json_loadb(text, length, 0, NULL);
    free(text);
    bool whole = take_id(node->id, stored, "id") && take_id(node->secret, stored, "secret") &&
                 take_id(node->boot_id, stored, "boot_id");
    node->clock_offset_ms =
        (uint64_t)json_integer_value(json_object_get(stored, "clock_offset_ms"));
    json_decref(stored);
    return whole ? 0 : err_set(err, ERR_CORRUPT, "the node's identity in the journal is damaged");
}

int node_recall(struct node *node, struct journal *journal, struct clock_last *ret_last,
                struct err *err)
{
    struct last last;
    int code = read_last(journal, &last, err);

    if (code < 0)
        return code;
    *ret_last = last.clock;
    node->last_turn = last.turn;
    return read_stored(node, journal, err);
}

char *node_encode(const struct node *node)
{
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:I}", "id", node->id, "secret", node->secret, "boot_id",
                  node->boot_id, "clock_offset_ms", (json_int_t)node->clock_offset_ms);
    char *text = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);

    check(text != NULL);
    json_decref(object);
    return text;
}

static int store(const struct node *node, struct journal *journal, struct err *err)
{
    char *text = node_encode(node);
    struct journal_blob blob = {.bytes = text, .length = strlen(text)};
    (void)text_copy(blob.key, sizeof(blob.key), key); /* fits */
    struct journal_batch batch = {.metas = &blob, .metas_count = 1};
    int code = journal_commit(journal, &batch, err);
    free(text);
    return code;
}

static int make_identity(struct node *node, struct journal *journal, struct err *err)
{
    int code = random_id(node->id, err);

    if (code == 0)
        code = random_id(node->secret, err);
    return code == 0 ? store(node, journal, err) : code;
}

/* ERR_GONE: out of the way.  Another identity is better than a node that never starts again; what
 * runs is found by its mark, and the clock goes on from the last event. */
static int set_aside(struct journal *journal, struct err *err)
{
    log_error("journal",
              "the node's identity is damaged, put into quarantine, and made anew error=%s",
              log_value(err->text));
    int code = journal_quarantine(journal, "meta", key, err->text, loop_now_unix_ns(), err);
    return code == 0 ? ERR_GONE : code;
}

void node_keep(const struct node *node, struct core *core)
{
    if (!node->changed)
        return;
    char *text = node_encode(node);
    core_meta(core, key, text, strlen(text));
    free(text);
}

/* --- the mark --- */

/* Without a usable file the id decides, which is the same as long as no journal was lost. */
static void take_mark(struct node *node, const char *state_dir)
{
    char path[PATH_SIZE], *text;
    size_t length;
    struct err err = {0};

    (void)text_copy(node->mark, sizeof(node->mark), node->id); /* cut to the length of a mark */
    int code = path_join(path, state_dir, "mark");
    if (code == 0 && file_read(path, 64, &text, &length, &err) == 0) {
        bool sound = length == MARK_SIZE - 1 && strspn(text, "0123456789abcdef") == MARK_SIZE - 1;
        if (sound)
            (void)text_copy(node->mark, sizeof(node->mark), text); /* fits */
        free(text);
        if (sound)
            return;
    }
    if (code == 0)
        code = file_write_durable(path, node->mark, MARK_SIZE - 1, 0600, &err);
    if (code < 0)
        log_warn("agent", "the node's mark cannot be kept beside the journal error=%s",
                 log_value(err.text));
}

/* --- facts --- */

static void add(struct spec_pairs *pairs, const char *name, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return;
    pairs->items = realloc(pairs->items, (pairs->count + 1) * sizeof(*pairs->items));
    check(pairs->items != NULL);
    struct spec_pair *pair = &pairs->items[pairs->count++];
    pair->key = strdup(name);
    pair->value = strdup(value);
    check(pair->key != NULL);
    check(pair->value != NULL);
}

static void add_number(struct spec_pairs *pairs, const char *name, uint64_t value)
{
    char text[24];

    (void)text_format(text, sizeof(text), "%llu", (unsigned long long)value); /* fits */
    add(pairs, name, text);
}

static void collect_attributes(struct node *node, const struct config *config)
{
    struct spec_pairs *to = &node->known.attributes;
    const struct host_facts *facts = &node->facts;

    add(to, "arch", facts->arch);
    add(to, "cpu.arch", facts->arch);
    add(to, "cpu.modelname", facts->cpu_model);
    add_number(to, "cpu.frequency", facts->cpu_mhz);
    add_number(to, "cpu.numcores", facts->cpu_cores);
    add_number(to, "cpu.totalcompute", (uint64_t)facts->cpu_mhz * facts->cpu_cores);
    add(to, "kernel.name", facts->kernel_name);
    add(to, "kernel.version", facts->kernel_version);
    add_number(to, "memory.totalbytes", facts->memory_bytes);
    add(to, "nomad.version", CAIRN_NOMAD_VERSION);
    add(to, "cairn.version", CAIRN_VERSION);
    add(to, "os.name", facts->os_name);
    add(to, "os.version", facts->os_version);
    add(to, "os.cgroups", cgroup_mode_name(cgroup_mode()));
    add(to, "unique.hostname", facts->hostname);
    add(to, "unique.network.ip-address", facts->ip_address);
    add_number(to, "unique.storage.bytestotal", facts->disk_bytes);
    add_number(to, "unique.storage.bytesfree", facts->disk_free_bytes);
    add(to, "unique.storage.volume", config->alloc_dir);
    if (config->raw_exec_enabled)
        add(to, "driver.raw_exec", "1");
}

int node_init(struct node *node, struct journal *journal, const struct config *config,
              struct err *err)
{
    char boot_id[UUID_TEXT_SIZE];
    struct clock_last last;

    *node = (struct node){0};
    int code = node_recall(node, journal, &last, err);
    if (code == ERR_CORRUPT && read_stored(node, journal, err) == ERR_CORRUPT)
        code = set_aside(journal, err); /* the identity, and not what else was read */
    bool first = code == ERR_GONE;
    if (code < 0 && !first)
        return code;
    (void)text_copy(boot_id, sizeof(boot_id), node->boot_id); /* same size */
    code = proc_boot_id(node->boot_id, err);
    if (code == 0 && first)
        code = make_identity(node, journal, err);
    if (code < 0)
        return code;
    take_mark(node, config->state_dir);
    uint64_t offset_ms = node->clock_offset_ms;
    node->rebooted = boot_id[0] != '\0' && !text_equal(boot_id, node->boot_id);
    node->clock_offset_ms =
        clock_continue(offset_ms, node->rebooted, &last, loop_now_ms(), loop_now_unix_ns());
    node->changed = node->rebooted || node->clock_offset_ms != offset_ms;
    if (code == 0)
        code = host_read_facts(config->data_dir, &node->facts, err);
    if (code < 0)
        return code;

    node->known.id = node->id;
    node->known.name = config->name;
    node->known.datacenter = config->datacenter;
    node->known.region = config->region;
    node->known.class = config->node_class;
    node->known.meta = config->meta;
    collect_attributes(node, config);
    return 0;
}

void node_free(struct node *node)
{
    for (size_t i = 0; i < node->known.attributes.count; i++) {
        free((void *)(uintptr_t)node->known.attributes.items[i].key); /* ours, const for readers */
        free((void *)(uintptr_t)node->known.attributes.items[i].value);
    }
    free(node->known.attributes.items);
    node->known.attributes = (struct spec_pairs){0};
}
