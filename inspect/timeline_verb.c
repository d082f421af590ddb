/* `timeline`: collects lanes from the log, then hands them to one of three ways of drawing. */
#include "inspect/timeline.h"

static int draw(struct timeline *timeline, struct err *err)
{
    struct inspect *inspect = timeline->inspect;

    if (inspect_flag(inspect, FLAG_HTML))
        return timeline_put_html(timeline, inspect->flags[FLAG_HTML], err);
    if (inspect_flag(inspect, FLAG_JSON)) {
        timeline_put_json(timeline, inspect->out);
        (void)fputc('\n', inspect->out);
    } else {
        timeline_put_text(timeline);
    }
    return 0;
}

int inspect_timeline(struct inspect *inspect)
{
    struct timeline timeline = {.inspect = inspect};
    struct err err = {0};
    int code = timeline_collect(&timeline, &err);

    if (code == 0)
        code = draw(&timeline, &err);
    if (code == 0 && timeline.cut)
        (void)fprintf(inspect->complain,
                      "cairn journal: only the first %d events are shown; see -since, -until and "
                      "-alloc\n",
                      TIMELINE_EVENTS_MAX);
    timeline_free(&timeline);
    return code < 0 ? inspect_fail(inspect, &err) : STATUS_OK;
}
