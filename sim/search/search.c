/*
 * The search: every state that can be reached within the bounds, nearest first.
 *
 * States are kept as numbers (form.c) in the order in which they were found, which is
 * also the queue of those still to be looked at; each knows the move that led to it first, so that
 * the trace to a violation is a shortest one.  Nothing is hashed away: two states are one only if
 * they are equal.
 *
 * Then the graph is walked backward: from each state a rest must be reachable by moves that heal,
 * with no fault and no new order (I-9).
 */
#include "sim/search/part.h"

#include "base/list.h"

#include <stdlib.h>
#include <string.h>

enum { PROGRESS_STATES = 4096, TABLE_MIN = 1 << 16, DEPTH_MAX = 4096, INVARIANT_WAITS = 35 };

#define HEALS UINT32_C(0x80000000)

/* --- names --- */

static const struct {
    const char *name, *about;
    uint8_t value;
} bounds[SIM_BOUND_COUNT] = {
#define X(name, text, value, what) [SIM_BOUND_##name] = {text, what, value},
    SIM_BOUNDS(X)
#undef X
};

static const struct {
    const char *name, *about;
} shapes[SIM_SHAPE_COUNT] = {
#define X(name, text, what) [SIM_SHAPE_##name] = {text, what},
    SIM_SHAPES(X)
#undef X
};

const char *sim_bound_name(enum sim_bound bound)
{
    return (unsigned)bound < SIM_BOUND_COUNT ? bounds[bound].name : NULL;
}

const char *sim_bound_about(enum sim_bound bound)
{
    return (unsigned)bound < SIM_BOUND_COUNT ? bounds[bound].about : NULL;
}

const char *sim_shape_name(enum sim_shape shape)
{
    return (unsigned)shape < SIM_SHAPE_COUNT ? shapes[shape].name : NULL;
}

const char *sim_shape_about(enum sim_shape shape)
{
    return (unsigned)shape < SIM_SHAPE_COUNT ? shapes[shape].about : NULL;
}

struct sim_search sim_search_default(void)
{
    struct sim_search search = {.shape = SIM_SHAPE_MAINS};

    for (int bound = 0; bound < SIM_BOUND_COUNT; bound++)
        search.bounds[bound] = bounds[bound].value;
    return search;
}

/* --- plans --- */

static const struct {
    const char *name;
    enum sim_shape shape;
    bool server;
    uint8_t faults, crashes, requests, together;
} plans[] = {
    {"any fault", SIM_SHAPE_MAINS, false, 1, 1, 0, 1},
    {"any fault, with a server", SIM_SHAPE_MAINS, true, 1, 1, 0, 1},
    {"any fault, a leader", SIM_SHAPE_LEADER, false, 1, 1, 0, 1},
    {"any fault, a sidecar", SIM_SHAPE_SIDECAR, false, 1, 1, 0, 1},
    {"any fault, hooks and delays", SIM_SHAPE_HOOKS, false, 1, 1, 0, 1},
    {"any fault and request, a poststop task", SIM_SHAPE_POSTSTOP, false, 1, 1, 1, 1},
    {"any two faults, a poststop task", SIM_SHAPE_POSTSTOP, false, 2, 2, 0, 1},
    {"any fault, events together, a poststop task", SIM_SHAPE_POSTSTOP, true, 1, 1, 0, 2},
};

const char *sim_search_plan(size_t number, struct sim_search *ret_search)
{
    if (number >= COUNT_OF(plans))
        return NULL;
    *ret_search = sim_search_default();
    ret_search->shape = plans[number].shape;
    ret_search->server = plans[number].server;
    ret_search->bounds[SIM_BOUND_FAULTS] = plans[number].faults;
    ret_search->bounds[SIM_BOUND_CRASH] = plans[number].crashes;
    ret_search->bounds[SIM_BOUND_REQUEST] = plans[number].requests;
    ret_search->bounds[SIM_BOUND_TOGETHER] = plans[number].together;
    return plans[number].name;
}

/* --- the graph --- */

struct node {
    struct search_form form;
    uint32_t parent; /* where it was found from */
    struct search_move move;
    size_t edges_from;
    uint32_t edges_count;
    bool rests; /* a rest can be reached */
};

struct graph {
    struct {
        struct node *items;
        size_t count, size;
    } nodes;
    uint32_t *table; /* number + 1 of a node, by the hash of its form */
    uint32_t table_size;
    struct {
        uint32_t *items; /* of each node in turn: number | HEALS */
        size_t count, size;
    } edges;
};

static uint32_t place_of(const struct graph *graph, const struct search_form *form)
{
    uint32_t at = (uint32_t)hash_bytes(0, form, sizeof(*form));

    for (;; at++) {
        uint32_t entry = graph->table[at & (graph->table_size - 1)];
        if (entry == 0 || memcmp(&graph->nodes.items[entry - 1].form, form, sizeof(*form)) == 0)
            return at & (graph->table_size - 1);
    }
}

static void grow_table(struct graph *graph)
{
    if (graph->nodes.count * 2 < graph->table_size)
        return;
    free(graph->table);
    graph->table_size = graph->table_size == 0 ? TABLE_MIN : graph->table_size * 2;
    graph->table = calloc(graph->table_size, sizeof(*graph->table));
    check(graph->table != NULL);
    for (uint32_t number = 0; number < graph->nodes.count; number++)
        graph->table[place_of(graph, &graph->nodes.items[number].form)] = number + 1;
}

/* The node of FORM, made if it is new. */
static uint32_t find_node(struct graph *graph, const struct search_form *form, uint32_t parent,
                          const struct search_move *move)
{
    grow_table(graph);
    uint32_t at = place_of(graph, form);
    if (graph->table[at] != 0)
        return graph->table[at] - 1;
    check(graph->nodes.count < HEALS);
    uint32_t number = (uint32_t)graph->nodes.count;
    *list_more(&graph->nodes) = (struct node){.form = *form, .parent = parent, .move = *move};
    graph->table[at] = number + 1;
    return number;
}

static void add_edge(struct graph *graph, uint32_t from, uint32_t to, bool heals)
{
    *list_more(&graph->edges) = heals ? to | HEALS : to;
    graph->nodes.items[from].edges_count++;
}

static void graph_free(struct graph *graph)
{
    free(graph->nodes.items);
    free(graph->table);
    free(graph->edges.items);
}

/* --- traces --- */

static void on_check_failed(void *ctx, const char *file, int line, const char *text)
{
    struct search *search = ctx;

    search->asked->outcome = SIM_ASSERTION;
    (void)text_format(search->asked->text, sizeof(search->asked->text), "assertion %s:%d: %s", file,
                      line, text); /* cut if too long */
    longjmp(search->failed, 1);
}

/* The nodes from the first one to NUMBER; returns how many moves lie between. */
static uint32_t path_to(const struct graph *graph, uint32_t number, uint32_t *path)
{
    uint32_t length = 0;

    for (uint32_t at = number; at != 0; at = graph->nodes.items[at].parent)
        length++;
    check(length < DEPTH_MAX);
    uint32_t left = length;
    for (uint32_t at = number; at != 0; at = graph->nodes.items[at].parent)
        path[left--] = at;
    path[0] = 0;
    return length;
}

static void say_move(struct search *search, uint32_t number, const struct search_move *move)
{
    char text[SIM_VIOLATION_SIZE];

    search_describe(search, move, text, sizeof(text));
    search_say(search, "%4u  %s", number, text);
}

/* False: it violates something. */
static bool make(struct search *search, const struct search_move *move)
{
    struct check_guard guard;

    check_guard_push(&guard, on_check_failed, search);
    bool broken = setjmp(search->failed) != 0;
    if (!broken)
        search_make(search, move);
    check_guard_pop(&guard);
    return !broken;
}

/* Makes again, aloud, what leads to NODE, and then MOVE, if there is one. */
static void tell(struct search *search, const struct graph *graph, uint32_t node,
                 const struct search_move *move, fsm_print *print, void *ctx)
{
    uint32_t path[DEPTH_MAX];
    struct sim_search *asked = search->asked;
    char violated[SIM_VIOLATION_SIZE];
    uint32_t length = path_to(graph, node, path);

    asked->trace_length = length + (move != NULL);
    if (print == NULL)
        return;
    (void)text_copy(violated, sizeof(violated), asked->text); /* same size */
    search->print = print;
    search->print_ctx = ctx;
    if (asked->outcome != SIM_ASSERTION) /* else it stopped anywhere, and is left alone */
        core_free(search->core);
    search->core = search_core(search);
    for (uint32_t i = 1; i <= length + (move != NULL); i++) {
        const struct search_move *next = i <= length ? &graph->nodes.items[path[i]].move : move;
        search_load(search, &graph->nodes.items[path[i - 1]].form);
        say_move(search, i, next);
        (void)make(search, next); /* the last one fails again */
    }
    search_say(search, "VIOLATED %s", violated);
    search->print = NULL;
}

/* --- the search --- */

static void report_progress(const struct sim_search *asked)
{
    if (asked->progress != NULL)
        asked->progress(asked->progress_ctx, asked);
}

/* Tries all that can happen in the state NUMBER.  False: one of them is a violation. */
static bool expand(struct search *search, struct graph *graph, uint32_t number, fsm_print *print,
                   void *ctx)
{
    struct search_move moves[SEARCH_MOVES_MAX];
    const char *why;
    unsigned invariant;

    search_load(search, &graph->nodes.items[number].form);
    bool rests = search_at_rest(search, &why, &invariant);
    search->asked->ends += rests;
    graph->nodes.items[number].rests = rests;
    graph->nodes.items[number].edges_from = graph->edges.count;
    size_t count = search_moves(search, moves);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            search_load(search, &graph->nodes.items[number].form);
        search->asked->transitions++;
        if (!make(search, &moves[i])) {
            tell(search, graph, number, &moves[i], print, ctx);
            return false;
        }
        struct search_form form = search_form(search);
        uint32_t to = find_node(graph, &form, number, &moves[i]);
        if (to != number)
            add_edge(graph, number, to, search_heals(search, &moves[i]));
    }
    return true;
}

static bool explore(struct search *search, struct graph *graph, fsm_print *print, void *ctx)
{
    struct sim_search *asked = search->asked;
    struct search_move nothing = {.kind = MOVE_NOTHING};
    uint32_t level_end = 1; /* number of the first state that is deeper than the one at hand */

    struct search_form form = search_form(search);
    (void)find_node(graph, &form, 0, &nothing);
    for (uint32_t number = 0; number < graph->nodes.count; number++) {
        if (number == level_end) {
            asked->depth++;
            level_end = (uint32_t)graph->nodes.count;
        }
        if (asked->states_max != 0 && number >= asked->states_max) {
            asked->complete = false;
            break;
        }
        bool fine = expand(search, graph, number, print, ctx);
        asked->states = graph->nodes.count;
        asked->frontier = graph->nodes.count - number - 1;
        if (!fine)
            return false;
        if ((number + 1) % PROGRESS_STATES == 0)
            report_progress(asked);
    }
    return true;
}

static bool leads_to_rest(const struct graph *graph, uint32_t number)
{
    const struct node *node = &graph->nodes.items[number];

    for (size_t i = 0; i < node->edges_count; i++) {
        uint32_t edge = graph->edges.items[node->edges_from + i];
        if ((edge & HEALS) != 0 && graph->nodes.items[edge & ~HEALS].rests)
            return true;
    }
    return false;
}

/* Marks each state from which a rest can be reached by moves that heal. */
static void spread_rest(struct graph *graph)
{
    bool more = true;

    while (more) {
        more = false;
        for (uint32_t number = (uint32_t)graph->nodes.count; number-- > 0;) {
            if (graph->nodes.items[number].rests || !leads_to_rest(graph, number))
                continue;
            graph->nodes.items[number].rests = true;
            more = true;
        }
    }
}

/* The first state from which no rest can be reached, in which the node has nothing to wait for, or
 * simply the first; UINT32_MAX: there is none. */
static uint32_t first_trap(struct search *search, const struct graph *graph)
{
    uint32_t first = UINT32_MAX;
    const char *why;
    unsigned invariant;

    for (uint32_t number = 0; number < graph->nodes.count; number++) {
        if (graph->nodes.items[number].rests)
            continue;
        first = first == UINT32_MAX ? number : first;
        search_load(search, &graph->nodes.items[number].form);
        (void)search_at_rest(search, &why, &invariant);
        if (invariant != INVARIANT_WAITS)
            return number;
    }
    return first;
}

static void find_traps(struct search *search, struct graph *graph, fsm_print *print, void *ctx)
{
    struct sim_search *asked = search->asked;
    const char *why;
    unsigned invariant;

    spread_rest(graph);
    uint32_t number = first_trap(search, graph);
    if (number == UINT32_MAX)
        return;
    search_load(search, &graph->nodes.items[number].form);
    (void)search_at_rest(search, &why, &invariant);
    asked->outcome = SIM_LIVENESS;
    asked->invariant = (uint8_t)invariant;
    (void)text_format(asked->text, sizeof(asked->text), "I-%u: no rest can be reached any more: %s",
                      invariant, why);
    tell(search, graph, number, NULL, print, ctx);
}

struct search *search_new(struct sim_search *asked)
{
    static const char *const names[WHO_COUNT] = {"csi/plugin", "a/volume", "a/one", "a/two", "a"};
    static const uint8_t machines[WHO_COUNT] = {MACHINE_PLUGIN, MACHINE_VOLUME, MACHINE_TASK,
                                                MACHINE_TASK, MACHINE_ALLOC};
    struct search *search = calloc(1, sizeof(*search));

    check(search != NULL);
    search->asked = asked;
    search->core = search_core(search);
    search->draft = search_draft_new();
    for (int who = 0; who < WHO_COUNT; who++)
        search->ids[who] = machine_id_make((enum machine_kind)machines[who], names[who]);
    search_begin(search);
    return search;
}

void search_free(struct search *search)
{
    core_free(search->core);
    for (int part = 0; part < PART_COUNT; part++)
        search_shelf_free(&search->shelves[part]);
    core_snapshot_free(&search->seen);
    free(search->draft);
    free(search);
}

void sim_search(struct sim_search *asked, fsm_print *print, void *ctx)
{
    struct search *search = search_new(asked);
    struct graph graph = {0};

    asked->complete = true;
    bool fine = explore(search, &graph, print, ctx);
    asked->complete &= fine;
    if (fine && asked->complete)
        find_traps(search, &graph, print, ctx);
    report_progress(asked);
    if (asked->outcome == SIM_ASSERTION)
        search->core = NULL; /* it stopped anywhere, and is left alone */
    graph_free(&graph);
    search_free(search);
}
