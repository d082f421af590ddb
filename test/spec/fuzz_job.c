/* Job files in both languages: what is accepted is a job that allocs can be made of. */
#include "test/fuzz.h"

#include "spec/job.h"

/* All that GROUP asks for is free. */
static struct spec_ports give_ports(const json_t *group, struct spec_port ports[SPEC_PORTS_MAX])
{
    struct spec_ports given = {.items = ports};

    check(jobspec_ports(group, ports, &given.count));
    for (size_t i = 0; i < given.count; i++) {
        if (!ports[i].is_static)
            ports[i].value = (uint16_t)(20000 + i);
        if (ports[i].to == -1)
            ports[i].to = ports[i].value;
        ports[i].host_ip = "127.0.0.1";
    }
    return given;
}

static struct spec_cores give_cores(const json_t *group, struct spec_core items[NODE_CORES_MAX])
{
    struct spec_cores given = {.items = items};
    const json_t *task;
    size_t t;

    json_array_foreach(json_object_get(group, "Tasks"), t, task)
    {
        json_int_t left =
            json_integer_value(json_object_get(json_object_get(task, "Resources"), "Cores"));

        for (; left > 0; left--, given.count++)
            items[given.count] = (struct spec_core){
                json_string_value(json_object_get(task, "Name")), (uint16_t)given.count};
    }
    return given;
}

/* Its volumes of type csi have a plugin. */
static struct spec_pairs give_plugins(const json_t *group, struct spec_pair items[ALLOC_CLAIMS_MAX])
{
    struct spec_pairs given = {items, 0};
    const char *name;
    json_t *volume;

    json_object_foreach(json_object_get(group, "Volumes"), name, volume)
    {
        const char *type = json_string_value(json_object_get(volume, "Type"));

        if (type == NULL || !text_equal(type, "csi"))
            continue;
        check(given.count < ALLOC_CLAIMS_MAX);
        items[given.count++] = (struct spec_pair){name, "plugin"};
    }
    return given;
}

/* An alloc of its first group gives a text that reads again. */
static void place(const json_t *job)
{
    const json_t *group = json_array_get(json_object_get(job, "TaskGroups"), 0);
    struct spec_port ports[SPEC_PORTS_MAX];
    struct spec_core cores[NODE_CORES_MAX];
    struct spec_pair plugins[ALLOC_CLAIMS_MAX];
    struct jobspec_placement placement = {
        .ports = give_ports(group, ports),
        .cores = give_cores(group, cores),
        .plugins = give_plugins(group, plugins),
        .group = json_string_value(json_object_get(group, "Name")),
        .alloc_id = "0f3a3e5c-5f31-4a52-9f0e-0123456789ab",
        .eval_id = "",
        .datacenter = "dc1",
    };
    struct alloc_spec *spec;
    struct err err;
    char *text;
    size_t length;

    check(jobspec_group_equal(job, job, placement.group));
    check(jobspec_alloc_json(job, &placement, &text, &length, &err) == 0);
    if (jobspec_decode_alloc(text, length, &spec, &err) != 0) {
        fprintf(stderr, "an accepted job makes an alloc that is refused: %s\n", err.text);
        abort();
    }
    alloc_spec_free(spec);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct jobspec_problems problems;
    struct jobspec_source source = {.name = "fuzz", .text = (const char *)data, .length = size};
    json_t *job, *again;

    if (jobspec_parse(&source, &job, &problems) != 0) {
        check(problems.count > 0);
        return 0;
    }
    check(jobspec_from_json("again", job, &again, &problems) == 0);
    check(json_equal(job, again));
    json_decref(again);
    place(job);
    json_decref(job);
    return 0;
}
