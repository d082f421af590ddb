/* `verify`: what verify.c finds, in words and as JSON. */
#include "inspect/part.h"

#include <inttypes.h>

const char *inspect_finding_name(enum finding_kind kind)
{
    static const char *const names[FINDING_COUNT] = {
#define X(name, bad, what, cost, advice) [FINDING_##name] = #name,
        FINDING_LIST(X)
#undef X
    };

    return (unsigned)kind < FINDING_COUNT ? names[kind] : "?";
}

enum { FINDINGS_PRINTED_MAX = 1000 };

struct printing {
    struct inspect *inspect;
    uint64_t count;
};

static void print_json(FILE *to, const struct finding *finding)
{
    (void)fprintf(to,
                  "{\"finding\":\"%s\",\"bad\":%s,\"what\":", inspect_finding_name(finding->kind),
                  finding->bad ? "true" : "false");
    inspect_json_string(to, finding->what);
    if (finding->sequence != 0)
        (void)fprintf(to, ",\"sequence\":%" PRIu64, finding->sequence);
    if (finding->id.text[0] != '\0') {
        (void)fprintf(
            to, ",\"kind\":\"%s\",\"id\":", machine_kind_name((enum machine_kind)finding->id.kind));
        inspect_json_string(to, finding->id.text);
    }
    (void)fputs(",\"where\":", to);
    inspect_json_string(to, finding->where);
    (void)fputs(",\"details\":", to);
    inspect_json_string(to, finding->details);
    (void)fputs(",\"cost\":", to);
    inspect_json_string(to, finding->cost);
    (void)fputs(",\"advice\":", to);
    inspect_json_string(to, finding->advice);
    (void)fputs("}\n", to);
}

static void print_finding(void *ctx, const struct finding *finding)
{
    struct printing *printing = ctx;
    FILE *to = printing->inspect->options.out;

    if (printing->inspect->options.json) {
        print_json(to, finding);
        return;
    }
    if (++printing->count > FINDINGS_PRINTED_MAX)
        return;
    (void)fprintf(to, "%s %s: %s\n", finding->bad ? "WRONG" : "note",
                  inspect_finding_name(finding->kind), finding->what);
    (void)fprintf(to, "  where  %s\n", finding->where);
    if (finding->details[0] != '\0')
        (void)fprintf(to, "  found  %s\n", finding->details);
    (void)fprintf(to, "  costs  %s\n  do     %s\n\n", finding->cost, finding->advice);
}

static void print_verdict(struct printing *printing, const struct inspect_verdict *verdict)
{
    FILE *to = printing->inspect->options.out;

    if (printing->inspect->options.json) {
        (void)fprintf(to,
                      "{\"verdict\":\"%s\",\"events\":%" PRIu64 ",\"first\":%" PRIu64
                      ",\"last\":%" PRIu64 ",\"machines\":%" PRIu64 ",\"bad\":%" PRIu64
                      ",\"notes\":%" PRIu64 ",\"unchecked\":%" PRIu64 "}\n",
                      verdict->bad == 0 ? "ok" : "wrong", verdict->events, verdict->first,
                      verdict->last, verdict->machines, verdict->bad, verdict->notes,
                      verdict->unchecked);
        return;
    }
    if (printing->count > FINDINGS_PRINTED_MAX)
        (void)fprintf(to, "%" PRIu64 " more findings; -json prints all of them\n",
                      printing->count - FINDINGS_PRINTED_MAX);
    (void)fprintf(to, "%s: %" PRIu64 " events, %" PRIu64 " to %" PRIu64 ", %" PRIu64 " machines",
                  verdict->bad == 0 ? "ok" : "WRONG", verdict->events, verdict->first,
                  verdict->last, verdict->machines);
    if (verdict->bad > 0)
        (void)fprintf(to, "; %" PRIu64 " wrong", verdict->bad);
    if (verdict->notes > 0)
        (void)fprintf(to, "; %" PRIu64 " notes", verdict->notes);
    if (verdict->unchecked > 0)
        (void)fprintf(to, "; %" PRIu64 " events behind what is wrong were not checked",
                      verdict->unchecked);
    (void)fputc('\n', to);
}

int inspect_findings(struct inspect *inspect, struct inspect_verdict *ret_verdict, struct err *err)
{
    struct printing printing = {.inspect = inspect};
    int code = inspect_verify(inspect->journal, print_finding, &printing, ret_verdict, err);

    if (code == 0)
        print_verdict(&printing, ret_verdict);
    return code;
}
