/* Stories: what is accepted prints as a story that reads as the same, and can be run. */
#include "test/fuzz.h"

#include "sim/sim.h"

struct text {
    char bytes[1 << 18];
    size_t length;
};

static void append(void *ctx, const char *line)
{
    struct text *text = ctx;
    size_t length = strlen(line);

    check(length < sizeof(text->bytes) - text->length);
    memcpy(text->bytes + text->length, line, length + 1);
    text->length += length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct sim_script script, again;
    static struct text once, twice;
    static struct sim *sim;
    struct sim_result result;
    struct err err = {0};
    char *text = strndup((const char *)data, size);

    check(text != NULL);
    int code = sim_script_read(text, &script, &err);
    free(text);
    if (code != 0) {
        check(code == ERR_INVALID && err.text[0] != '\0');
        return 0;
    }
    once.length = twice.length = 0;
    sim_script_print(&script, append, &once);
    if (sim_script_read(once.bytes, &again, &err) != 0) {
        (void)fprintf(stderr, "%s\n%s", err.text, once.bytes);
        check(false);
    }
    sim_script_print(&again, append, &twice);
    check(once.length == twice.length && memcmp(once.bytes, twice.bytes, once.length) == 0);
    if (script.jobs_count > 0)
        return 0; /* these need a control plane */
    if (sim == NULL)
        sim = sim_new();
    sim_run(sim, &script, NULL, NULL, &result);
    if (result.outcome != SIM_FINE) {
        (void)fprintf(stderr, "invariant %u: %s\n%s", result.invariant, result.text, once.bytes);
        check(result.invariant == 0 && result.outcome != SIM_ASSERTION);
    }
    return 0;
}
