/*
 * Whole nodes in one process: each with a configuration, directories, a journal, shims, hooks and
 * an API of its own, all on one loop.
 */
#ifndef CAIRN_TEST_AGENT_NODES_H
#define CAIRN_TEST_AGENT_NODES_H

#include "agent/daemon.h"
#include "io/http.h"
#include "io/log.h"
#include "io/proc.h"
#include "test/io/beside.h"
#include "test/io/scratch.h"

#include <poll.h>

enum { NODES_COUNT = 2, PATIENCE_MS = 60000 };

struct whole {
    struct config config;
    struct daemon *daemon; /* NULL while it is down */
    struct parts *parts;
    char mark[MARK_SIZE];
};

struct nodes {
    struct scratch scratch;
    struct loop *loop;
    struct whole node[NODES_COUNT];

    bool (*holds)(struct nodes *nodes); /* what the loop runs for */
    bool too_late;
    int status; /* of the last answer of an API */
    char body[1 << 20];
};

/* --- time goes by --- */

static inline bool nodes_look(void *ctx)
{
    struct nodes *nodes = ctx;

    if (nodes->holds(nodes))
        loop_stop(nodes->loop);
    return false;
}

static inline void nodes_too_late(struct io_timer *timer)
{
    struct nodes *nodes = timer->ctx;

    nodes->too_late = true;
    loop_stop(nodes->loop);
}

/* Runs all nodes that are up until HOLDS does, which is looked at after all turns. */
static inline void nodes_run_until(struct nodes *nodes, bool (*holds)(struct nodes *nodes))
{
    struct io_timer bound = {0};
    struct io_before_sleep look = {0};

    nodes->holds = holds;
    io_timer_start(nodes->loop, &bound, loop_now_ms() + PATIENCE_MS, nodes_too_late, nodes);
    io_before_sleep_start(nodes->loop, &look, nodes_look, nodes);
    loop_run(nodes->loop);
    io_before_sleep_stop(&look);
    io_timer_stop(&bound);
    if (nodes->too_late)
        fail_msg("it never came true");
}

/* --- a node --- */

static inline void node_up(struct nodes *nodes, unsigned number)
{
    struct whole *node = &nodes->node[number];
    struct err err = {0};

    assert_null(node->daemon);
    node->daemon = daemon_new(&node->config, nodes->loop, NULL, &err);
    if (node->daemon == NULL)
        fail_msg("%s", err.text);
    node->parts = daemon_parts(node->daemon);
    assert_true(text_copy(node->mark, sizeof(node->mark), node->parts->node.mark));
}

static inline void node_down(struct nodes *nodes, unsigned number)
{
    struct whole *node = &nodes->node[number];

    daemon_free(node->daemon);
    node->daemon = NULL;
    node->parts = NULL;
}

static inline bool first_is(void *ctx, const struct machine_id *id, const struct machine *record)
{
    (void)record;
    *(struct machine_id *)ctx = *id;
    return false;
}

/* The one alloc of a node; its text is "" if there is none. */
static inline struct machine_id the_alloc(const struct whole *node)
{
    struct machine_id id = {.text = ""};

    core_each(node->parts->core, MACHINE_ALLOC, first_is, &id);
    return id;
}

/* The one task of a node, or NULL. */
static inline const struct task *the_task(const struct whole *node)
{
    struct machine_id id = {.text = ""};

    core_each(node->parts->core, MACHINE_TASK, first_is, &id);
    const struct machine *record = core_find(node->parts->core, &id);
    return record != NULL ? task_of(record) : NULL;
}

static inline bool task_is(const struct whole *node, enum task_state state)
{
    const struct task *task = the_task(node);

    return task != NULL && task->machine.state == state;
}

static inline bool both_run(struct nodes *nodes)
{
    return task_is(&nodes->node[0], T_RUNNING) && task_is(&nodes->node[1], T_RUNNING);
}

static inline bool first_runs(struct nodes *nodes)
{
    return task_is(&nodes->node[0], T_RUNNING);
}

static inline bool first_is_empty(struct nodes *nodes)
{
    return core_count(nodes->node[0].parts->core, MACHINE_ALLOC) == 0;
}

static inline bool second_is_empty(struct nodes *nodes)
{
    return core_count(nodes->node[1].parts->core, MACHINE_ALLOC) == 0;
}

static inline void has_answered(void *ctx, const struct http_reply *reply)
{
    struct nodes *nodes = ctx;

    nodes->status = reply->status;
    assert_true(text_copy(nodes->body, sizeof(nodes->body), reply->body));
}

static inline bool answer_is_there(struct nodes *nodes)
{
    return nodes->status != 0;
}

/* Asks the API of a node, while all nodes run; whatever it answers. */
static inline void nodes_ask(struct nodes *nodes, unsigned number, const char *method,
                             const char *path, const char *body)
{
    char url[640];
    struct err err = {0};
    struct http_call call = {
        .method = method,
        .url = url,
        .body = body,
        .body_length = strlen(body),
        .cb = has_answered,
        .ctx = nodes,
    };

    assert_true(text_format(url, sizeof(url), "http://%s%s",
                            daemon_address(nodes->node[number].daemon), path));
    nodes->status = 0;
    if (http_start(nodes->loop, &call, &err) == NULL)
        fail_msg("%s", err.text);
    nodes_run_until(nodes, answer_is_there);
}

static inline void ask_api(struct nodes *nodes, unsigned number, const char *method,
                           const char *path, const char *body)
{
    nodes_ask(nodes, number, method, path, body);
    if (nodes->status != 200)
        fail_msg("%s %s: %d %s", method, path, nodes->status, nodes->body);
}

static inline void register_sleeper(struct nodes *nodes, unsigned number)
{
    ask_api(nodes, number, "PUT", "/v1/jobs",
            "{\"Job\": {\"ID\": \"sleeper\", \"Name\": \"sleeper\", \"Type\": \"service\","
            " \"Datacenters\": [\"dc1\"], \"TaskGroups\": [{\"Name\": \"g\", \"Count\": 1,"
            " \"RestartPolicy\": {\"Attempts\": 3, \"Delay\": 0, \"Interval\": 3600000000000,"
            " \"Mode\": \"fail\"}, \"Tasks\": [{\"Name\": \"t\", \"Driver\": \"raw_exec\","
            " \"Config\": {\"command\": \"/bin/sleep\", \"args\": [\"1000\"]}}]}]}}");
}

static inline void purge_sleeper(struct nodes *nodes, unsigned number)
{
    struct alone_evaluation evaluation;
    struct err err = {0};

    if (alone_deregister(nodes->node[number].parts->alone, "default", "sleeper", ALONE_PURGE,
                         &evaluation, &err) != 0)
        fail_msg("%s", err.text);
}

/* --- all of them --- */

static inline void nodes_configure(struct nodes *nodes, unsigned number)
{
    struct config *config = &nodes->node[number].config;
    struct err err = {0};

    config_defaults(config);
    assert_true(text_format(config->name, sizeof(config->name), "node-%u", number));
    assert_int_equal(path_join(config->data_dir, nodes->scratch.path, config->name), 0);
    beside_program(config->shim_path, "cairn-shim");
    config->http_port = 0;
    if (config_finish(config, &err) != 0)
        fail_msg("%s", err.text);
}

static inline int nodes_make(void **state)
{
    struct nodes *nodes = calloc(1, sizeof(*nodes));
    void *scratch;

    assert_non_null(nodes);
    assert_int_equal(log_init(LOG_ERROR, NULL, false), 0);
    assert_int_equal(scratch_make(&scratch), 0);
    nodes->scratch = *(struct scratch *)scratch;
    free(scratch);
    nodes->loop = loop_new();
    for (unsigned i = 0; i < NODES_COUNT; i++)
        nodes_configure(nodes, i);
    *state = nodes;
    return 0;
}

/* What a test left running is its failure, and is ended. */
static inline int end_what_is_left(const char *mark)
{
    char cgroup[CGROUP_NAME_SIZE];
    struct err err = {0};
    enum cgroup_mode mode = cgroup_mode();

    (void)text_format(cgroup, sizeof(cgroup), "cairn/%s", mark); /* fits */
    if (mark[0] == '\0' || cgroup_populated(mode, cgroup, &err) == 0)
        return 0;
    print_message("left behind: processes in %s\n", cgroup);
    for (int i = 0; i < 200 && cgroup_populated(mode, cgroup, &err) == 1; i++) {
        (void)cgroup_kill(mode, cgroup, &err);
        (void)poll(NULL, 0, 10);
    }
    (void)cgroup_remove(mode, cgroup, &err);
    return -1;
}

static inline int nodes_remove(void **state)
{
    struct nodes *nodes = *state;
    int left = 0;

    for (unsigned i = 0; i < NODES_COUNT; i++) {
        node_down(nodes, i);
        left |= end_what_is_left(nodes->node[i].mark);
        config_free(&nodes->node[i].config);
    }
    loop_free(nodes->loop);
    if (tree_remove(AT_FDCWD, nodes->scratch.path, &nodes->scratch.err) != 0) {
        print_message("left behind: %s\n", nodes->scratch.err.text);
        left = -1;
    }
    free(nodes);
    return left;
}

static inline void nodes_need_root(void)
{
    if (geteuid() != 0 || cgroup_mode() == CGROUP_NONE) {
        print_message("skipped: needs root and cgroups\n");
        skip();
    }
}

#endif
