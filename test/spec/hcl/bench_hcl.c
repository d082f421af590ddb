/*
 * How long a job file of 1 MB takes: prints "NAME MS BARE", milliseconds for a job read from HCL,
 * the least of many, and for the same job read by jansson from JSON that is there already.
 *
 *   services   360 tasks as people write them, each with a template
 *   keys       one long block of short arguments, three pieces of template in each
 */
#include "spec/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BYTES = 1 << 20, ROUNDS = 15, GROUPS = 90, TASKS = 4, LINES = 44 };

struct text {
    char *bytes;
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(text->bytes + text->length, 2 * BYTES - text->length, format, arguments);
    va_end(arguments);
    check(length > 0 && text->length + (size_t)length < 2 * BYTES);
    text->length += (size_t)length;
}

static void add_task(struct text *text, int group, int task)
{
    add(text,
        "    task \"t%d\" {\n      driver = \"raw_exec\"\n      env {\n        PORT  = \"80%d\"\n"
        "        IMAGE = \"registry/${var.image}\"\n        NAME  = \"${NOMAD_ALLOC_ID}-%d\"\n"
        "      }\n      config {\n        command = \"/usr/bin/server\"\n        args    = "
        "[\"-listen\", \"0.0.0.0:80\", \"-name\", \"g%d\", \"-verbose\"]\n      }\n      template "
        "{\n"
        "        destination = \"local/conf\"\n        data        = <<EOF\n",
        task, group, group, group);
    for (int i = 0; i < LINES; i++)
        add(text, "line %d of a configuration file, with some words in it\n", i);
    add(text,
        "EOF\n      }\n      resources {\n        cpu    = 100\n        memory = 64\n      }\n"
        "    }\n");
}

static void make_services(struct text *text)
{
    add(text, "variable \"image\" {\n  default = \"1.2\"\n}\njob \"big\" {\n"
              "  datacenters = [\"dc1\"]\n");
    for (int group = 0; group < GROUPS; group++) {
        add(text, "  group \"g%d\" {\n    count = 2\n", group);
        for (int task = 0; task < TASKS; task++)
            add_task(text, group, task);
        add(text, "  }\n");
    }
    add(text, "}\n");
}

static void make_keys(struct text *text)
{
    add(text, "variable \"n\" {\n  default = 3\n}\njob \"big\" {\n  meta {\n");
    for (int i = 0; text->length < BYTES - 300; i++)
        add(text,
            "    key%05d = \"value of %d: ${upper(\"text\")} ${var.n + %d} ${NOMAD_ALLOC_ID}\"\n",
            i, i, i);
    add(text,
        "  }\n  group \"g\" {\n    task \"t\" {\n      driver = \"raw_exec\"\n      config {\n"
        "        command = \"true\"\n      }\n    }\n  }\n}\n");
}

static double now_ms(void)
{
    struct timespec now;

    check(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static json_t *read_job(const struct text *text, double *least)
{
    struct jobspec_problems *problems = calloc(1, sizeof(*problems));
    const struct jobspec_source source = {
        .name = "big.hcl", .text = text->bytes, .length = text->length};
    json_t *job;
    double begun = now_ms();
    int code = jobspec_parse(&source, &job, problems);
    double took = now_ms() - begun;

    if (code != 0)
        (void)fprintf(stderr, "%s\n", problems->items[0]);
    check(problems != NULL && code == 0);
    free(problems);
    *least = took < *least ? took : *least;
    return job;
}

static double read_json(const char *json)
{
    double begun = now_ms();
    json_t *read = json_loads(json, 0, NULL);
    double took = now_ms() - begun;

    check(read != NULL);
    json_decref(read);
    return took;
}

static void measure(const char *name, void (*make)(struct text *text))
{
    struct text text = {.bytes = malloc(2 * BYTES)};
    double ours = 1e9, bare = 1e9;

    check(text.bytes != NULL);
    make(&text);
    for (int i = 0; i < ROUNDS; i++) {
        json_t *job = read_job(&text, &ours);
        char *json = json_dumps(job, JSON_COMPACT);
        double took = read_json(json);

        bare = took < bare ? took : bare;
        free(json);
        json_decref(job);
    }
    (void)printf("%s %.2f %.2f\n", name, ours, bare);
    free(text.bytes);
}

int main(void)
{
    measure("services", make_services);
    measure("keys", make_keys);
    return 0;
}
