/*
 * `cairn sim -search`: all reachable states within bounds.
 *
 * A search is named by what it allows: "poststop,server,faults=2,crashes=2".  "all" makes the ones
 * that are planned, several at a time; one alone is made here, so that its trace can be told.
 */
#include "agent/cli/sim/sim.h"

#include <string.h>
#include <sys/mman.h>

enum { SPEC_SIZE = 256, STATES_BETWEEN_LINES = 100000, STALL_S = 120 };

/* --- naming a search --- */

static bool set_bound(struct sim_search *search, const char *name, const char *value)
{
    uint64_t number;

    if (!text_to_u64(value, &number) || number > UINT8_MAX)
        return false;
    for (unsigned bound = 0; bound < SIM_BOUND_COUNT; bound++) {
        if (text_equal(sim_bound_name((enum sim_bound)bound), name)) {
            search->bounds[bound] = (uint8_t)number;
            return true;
        }
    }
    return false;
}

static bool set_word(struct sim_search *search, char *word)
{
    char *value = strchr(word, '=');

    if (value != NULL) {
        *value++ = '\0';
        return set_bound(search, word, value);
    }
    if (text_equal(word, "server")) {
        search->server = true;
        return true;
    }
    for (unsigned shape = 0; shape < SIM_SHAPE_COUNT; shape++) {
        if (text_equal(sim_shape_name((enum sim_shape)shape), word)) {
            search->shape = (enum sim_shape)shape;
            return true;
        }
    }
    return false;
}

static int read_spec(const char *spec, struct sim_search *ret_search)
{
    char copy[SPEC_SIZE], *save = NULL;

    *ret_search = sim_search_default();
    if (!text_copy(copy, sizeof(copy), spec))
        return cli_fail(CLI_USAGE, "-search: that is too long");
    for (char *word = strtok_r(copy, ",", &save); word != NULL; word = strtok_r(NULL, ",", &save)) {
        if (!set_word(ret_search, word))
            return cli_fail(CLI_USAGE,
                            "-search: \"%.60s\" is neither a shape, nor server, nor a bound with "
                            "its number; cairn sim -list names them",
                            word);
    }
    return CLI_OK;
}

static void write_spec(const struct sim_search *search, char to[SPEC_SIZE])
{
    struct sim_search usual = sim_search_default();
    char part[64];

    (void)text_format(to, SPEC_SIZE, "%s%s", sim_shape_name(search->shape),
                      search->server ? ",server" : ""); /* names are short */
    for (unsigned bound = 0; bound < SIM_BOUND_COUNT; bound++) {
        if (search->bounds[bound] == usual.bounds[bound])
            continue;
        (void)text_format(part, sizeof(part), ",%s=%u", sim_bound_name((enum sim_bound)bound),
                          search->bounds[bound]); /* fits */
        (void)text_append(to, SPEC_SIZE, part);   /* there are not that many */
    }
}

/* --- what came of it --- */

static void print_search(const char *name, const struct sim_search *search)
{
    (void)printf("search, %s: %llu states, %llu transitions, %llu at rest, depth %u: %s\n", name,
                 (unsigned long long)search->states, (unsigned long long)search->transitions,
                 (unsigned long long)search->ends, search->depth,
                 search->outcome != SIM_FINE ? search->text
                 : search->complete          ? "complete, all invariants hold"
                                             : "not complete");
}

static void add_rows(struct laboratory *lab, const struct sim_search *search)
{
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
        for (size_t i = 0; i < COUNT_OF(search->rows[kind]); i++)
            lab->tally.rows[kind][i] |= search->rows[kind][i];
    }
}

/* --- one, told --- */

static void say_progress(void *ctx, const struct sim_search *so_far)
{
    uint64_t *said = ctx;

    if (so_far->states < *said + STATES_BETWEEN_LINES)
        return;
    *said = so_far->states;
    (void)fprintf(stderr, "%llu states, %llu not yet looked at, depth %u\n",
                  (unsigned long long)so_far->states, (unsigned long long)so_far->frontier,
                  so_far->depth);
}

static int search_one(struct laboratory *lab, const char *spec)
{
    struct sim_search search;
    uint64_t said = 0;
    int status = read_spec(spec, &search);

    if (status != CLI_OK)
        return status;
    search.progress = say_progress;
    search.progress_ctx = &said;
    sim_search(&search, cli_sim_print_to, stdout);
    print_search(spec, &search);
    add_rows(lab, &search);
    return (int)search.outcome;
}

/* --- all that are planned --- */

/* For the pool a state is what a world is elsewhere. */
static void count_states(void *ctx, const struct sim_search *so_far)
{
    struct sim_tally *tally = ctx;

    tally->runs = so_far->states;
}

static bool search_plan(void *ctx, struct sim *sim, uint64_t item, struct sim_tally *tally,
                        struct sim_failure *ret_failure)
{
    struct sim_search *search = &((struct sim_search *)ctx)[item];

    (void)sim; /* it has a world of its own */
    search->progress = count_states;
    search->progress_ctx = tally;
    sim_search(search, NULL, NULL);
    ret_failure->result.outcome = search->outcome;
    (void)text_copy(ret_failure->result.text, sizeof(ret_failure->result.text), search->text);
    return search->outcome == SIM_FINE;
}

static int search_all(struct laboratory *lab)
{
    struct sim_search *searches, unused;
    struct sim_tally tally = {0};
    struct sim_failure failure;
    size_t count = 0;
    char spec[SPEC_SIZE];

    while (sim_search_plan(count, &unused) != NULL)
        count++;
    searches = mmap(NULL, count * sizeof(*searches), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(searches != MAP_FAILED);
    for (size_t i = 0; i < count; i++)
        (void)sim_search_plan(i, &searches[i]); /* its name is asked for below */
    struct sim_pool pool = {"searches", count, lab->cores, STALL_S, search_plan, searches};
    bool fine = sim_pool_run(&pool, &tally, &failure);
    for (size_t i = 0; i < count; i++) {
        if (searches[i].states > 0)
            print_search(sim_search_plan(i, &unused), &searches[i]);
        add_rows(lab, &searches[i]);
    }
    if (!fine) {
        write_spec(&searches[failure.item], spec);
        (void)fflush(stdout);
        (void)fprintf(stderr, "cairn: %s\n  show it:         cairn sim -search %s\n",
                      failure.result.text, spec);
    }
    (void)munmap(searches, count * sizeof(*searches)); /* ours, as mapped above */
    return fine ? CLI_OK : (int)failure.result.outcome;
}

int cli_sim_run_search(struct laboratory *lab)
{
    const char *spec = cli_text(lab->cli, "search", "");

    return text_equal(spec, "all") ? search_all(lab) : search_one(lab, spec);
}
