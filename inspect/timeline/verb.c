/* `timeline`: collects lanes from the log, then hands them to one of three ways of drawing. */
#include "inspect/timeline/timeline.h"

static int draw(struct timeline *timeline, const struct inspect_drawing *drawing, struct err *err)
{
    const struct inspect_options *options = &timeline->inspect->options;

    if (drawing->html != NULL)
        return timeline_put_html(timeline, drawing->html, err);
    if (options->json) {
        timeline_put_json(timeline, options->out);
        (void)fputc('\n', options->out);
    } else {
        timeline_put_text(timeline, drawing->columns);
    }
    return 0;
}

int inspect_timeline(struct inspect *inspect, const struct inspect_drawing *drawing,
                     struct err *err)
{
    struct timeline timeline = {.inspect = inspect};
    int code = timeline_collect(&timeline, err);

    if (code == 0)
        code = draw(&timeline, drawing, err);
    if (code == 0 && timeline.cut)
        inspect_say(inspect, "only the first %d events are shown; see -since, -until and -alloc",
                    TIMELINE_EVENTS_MAX);
    timeline_free(&timeline);
    return code;
}
