/* The network hook with plugins that are scripts: what they are told, what becomes of what they
 * say, and that nothing of it is left. */
#include "test/hooks/fixture.h"

#include "fsm/results.h"
#include "hooks/network/versions.h"
#include "hooks/part.h"
#include "io/proc.h"
#include "io/scope.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { HOUR_MS = 3600000 };

struct network {
    struct fixture *fixture;
    char state[512], run[512], plugins[512], configs[512];
};

static struct network network;

static const char *below(const char *name)
{
    return at(&network.fixture->scratch, name);
}

static void make_directory(const char *name, char to[512])
{
    assert_true(text_copy(to, 512, below(name)));
    assert_return_code(mkdir(to, 0755), 0);
}

static void write_text(const char *directory, const char *name, mode_t mode, const char *text)
{
    char path[1024];
    FILE *file;

    assert_true(text_format(path, sizeof(path), "%s/%s", directory, name));
    file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_return_code(chmod(path, mode), 0);
}

/* A plugin that notes what it is called with, and then does as SCRIPT says. */
static void write_plugin(const char *name, const char *script)
{
    char text[4096];

    assert_true(text_format(text, sizeof(text),
                            "#!/bin/sh\ncat > %s/$CNI_COMMAND.%s\n"
                            "echo \"$CNI_COMMAND %s $CNI_CONTAINERID $CNI_IFNAME $CNI_ARGS\" >> "
                            "%s/calls\n%s\n",
                            network.state, name, name, network.state, script));
    write_text(network.plugins, name, 0755, text);
}

#define ANSWER(address)                                                                            \
    "echo '{\"cniVersion\":\"0.4.0\",\"interfaces\":[{\"name\":\"host0\"},"                        \
    "{\"name\":\"eth0\",\"sandbox\":\"/x\"}],\"ips\":[{\"version\":\"4\",\"interface\":1,"         \
    "\"address\":\"" address "\"}],\"dns\":{\"nameservers\":[\"10.1.1.1\"]}}'"

static int make(void **state)
{
    if (fixture_make(state) != 0)
        return -1;
    network = (struct network){.fixture = *state};
    make_directory("networks", network.state);
    make_directory("run", network.run);
    make_directory("plugins", network.plugins);
    make_directory("configs", network.configs);
    network.fixture->network = (struct hooks_network){
        .state_dir = network.state,
        .run_dir = network.run,
        .mark = "0123abcd",
        .cni_path = network.plugins,
        .cni_config_dir = network.configs,
        .bridge_name = "nobridge",
        .bridge_subnet = "10.1.0.0/24",
        .bridge_subnet_ipv6 = "",
    };
    start_hooks(network.fixture, NULL);
    network.fixture->alloc.network_mode = "cni/mine";
    write_text(network.configs, "1.conflist", 0644,
               "{\"cniVersion\":\"0.4.0\",\"name\":\"mine\",\"plugins\":[{\"type\":\"first\"},"
               "{\"type\":\"second\",\"capabilities\":{\"portMappings\":true}}]}");
    return 0;
}

static int make_network(void)
{
    return run_hook(network.fixture, PHASE_PRERUN, ALLOC_HOOK_NETWORK, NULL);
}

static int remove_network(void)
{
    return run_hook(network.fixture, PHASE_POSTRUN, ALLOC_HOOK_NETWORK, NULL);
}

static char *text_of(const char *name)
{
    char path[1024], *bytes;
    size_t length;

    assert_true(text_format(path, sizeof(path), "%s/%s", network.state, name));
    if (file_read(path, 1 << 20, &bytes, &length, NULL) != 0)
        return strdup("");
    return bytes;
}

static void assert_says(const char *name, const char *part)
{
    scoped_string char *text = text_of(name);

    if (strstr(text, part) == NULL)
        fail_msg("%s says \"%s\", not \"%s\"", name, text, part);
}

static void assert_calls(const char *expected)
{
    scoped_string char *text = text_of("calls");
    char said[512] = "";
    char *rest = text, *line;

    while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
        line[strcspn(line, " ") + 1 + strcspn(strchr(line, ' ') + 1, " ")] = '\0';
        assert_true(text_append(said, sizeof(said), line));
        assert_true(text_append(said, sizeof(said), ", "));
    }
    assert_string_equal(said, expected);
}

static const char *namespace_path(void)
{
    static char path[1024];

    assert_true(text_format(path, sizeof(path), "%s/cairn-0123abcd-" ALLOC_ID, network.run));
    return path;
}

static const char *note_path(void)
{
    static char path[1024];

    assert_true(text_format(path, sizeof(path), "%s/" ALLOC_ID ".json", network.state));
    return path;
}

static void assert_nothing_left(void)
{
    assert_false(exists(namespace_path()));
    assert_false(exists(note_path()));
}

static struct spec_port given = {.label = "http",
                                 .task = "",
                                 .host_network = "default",
                                 .host_ip = "10.0.0.9",
                                 .value = 20005,
                                 .to = 80};

static void test_plugins_are_chained_there_and_back(void **state)
{
    struct fixture *fixture = *state;
    struct spec_pair argument = {"colour", "blue"};

    need_root();
    fixture->alloc.cni_args = (struct spec_pairs){&argument, 1};
    fixture->alloc.ports = (struct spec_ports){&given, 1};
    write_plugin("first", ANSWER("127.0.0.1/8"));
    write_plugin("second", ANSWER("127.0.0.1/8"));
    assert_int_equal(make_network(), 0);
    assert_calls("ADD first, ADD second, ");
    assert_says("calls", "ADD first " ALLOC_ID " eth0 IgnoreUnknown=true;colour=blue;"
                         "NOMAD_REGION=global;NOMAD_NAMESPACE=default;NOMAD_JOB_ID=shop;"
                         "NOMAD_GROUP_NAME=front;NOMAD_ALLOC_ID=" ALLOC_ID);
    assert_says("ADD.first", "\"name\":\"mine\",\"cniVersion\":\"0.4.0\"}");
    assert_says("ADD.second", "\"prevResult\":{");
    assert_says("ADD.second", "\"runtimeConfig\":{\"portMappings\":[{\"hostPort\":20005,"
                              "\"containerPort\":80,\"protocol\":\"tcp\"},");
    assert_int_equal(netns_is_there(namespace_path(), &fixture->scratch.err), 1);
    assert_int_equal(remove_network(), 0);
    assert_calls("ADD first, ADD second, DEL second, DEL first, ");
    assert_says("DEL.first", "\"prevResult\":{");
    assert_nothing_left();
    assert_int_equal(remove_network(), 0); /* nothing is success */
    assert_calls("ADD first, ADD second, DEL second, DEL first, ");
}

/* What a start of the task finds; the outcome carries results. */
static int join_network(void)
{
    ask(network.fixture, PHASE_PRESTART, TASK_HOOK_NETWORK, &network.fixture->task);
    loop_run(network.fixture->loop);
    assert_true(network.fixture->answered);
    return network.fixture->outcome.code;
}

static void test_what_a_group_says_of_its_network_is_interpolated(void **state)
{
    struct fixture *fixture = *state;
    struct spec_pair argument = {"colour", "${meta.paint}-${NOMAD_META_shade}-${unknown}"};
    struct spec_pair paint = {"paint", "blue"}, shade = {"shade", "dark"};
    const char *servers[] = {"${meta.paint}.example"}, *options[] = {"ndots:${NOMAD_ALLOC_INDEX}"};
    static const char status[] = "{\"Address\":\"127.0.0.1\"}";
    uint8_t bytes[256];
    struct results results = {.bytes = bytes, .size = sizeof(bytes)};
    struct hooks_launch *launch;

    need_root();
    fixture->node.meta = (struct spec_pairs){&paint, 1};
    fixture->alloc.meta = (struct spec_pairs){&shade, 1};
    fixture->alloc.cni_args = (struct spec_pairs){&argument, 1};
    fixture->alloc.has_dns = true;
    fixture->alloc.dns_servers = (struct spec_texts){servers, 1};
    fixture->alloc.dns_options = (struct spec_texts){options, 1};
    fixture->alloc.hostname = "${NOMAD_GROUP_NAME}-${NOMAD_META_shade}";
    write_plugin("first", ANSWER("127.0.0.1/8"));
    write_plugin("second", ANSWER("127.0.0.1/8"));
    assert_int_equal(make_network(), 0);
    assert_says("calls", "IgnoreUnknown=true;colour=blue-dark-${unknown};NOMAD_REGION");
    assert_says(ALLOC_ID ".resolv", "nameserver blue.example\n");
    assert_says(ALLOC_ID ".resolv", "options ndots:0\n");
    assert_says(ALLOC_ID ".hosts", "\n127.0.0.1 front-dark\n");
    assert_int_equal(results_set(&results, TASK_HOOK_NETWORK, RESULT_DATA, "status", status,
                                 (uint32_t)strlen(status)),
                     0);
    assert_int_equal(hooks_prepare(fixture->hooks, &fixture->alloc, &fixture->task, results.bytes,
                                   results.used, &launch, &fixture->scratch.err),
                     0);
    assert_string_equal(launch->hostname, "front-dark");
    assert_true(text_ends_with(launch->hosts, ALLOC_ID ".hosts"));
    assert_string_equal(launch->network, namespace_path());
    hooks_launch_free(launch);
    assert_int_equal(remove_network(), 0);
    assert_nothing_left();
    scoped_string char *left = text_of(ALLOC_ID ".hosts");
    assert_string_equal(left, "");
}

static void test_a_hostname_that_is_none_is_told_before_anything_is_made(void **state)
{
    struct fixture *fixture = *state;

    need_root();
    fixture->alloc.hostname = "${meta.none}";
    assert_int_equal(make_network(), ERR_INVALID);
    assert_outcome(fixture, ERR_INVALID, false, "the hostname \"${meta.none}\" is letters");
    assert_false(exists(note_path()));
    /* Without an address there is nothing to say of it, and in the host's network it is not one. */
    fixture->alloc.hostname = "mine";
    fixture->alloc.network_mode = "none";
    assert_int_equal(make_network(), 0);
    scoped_string char *hosts = text_of(ALLOC_ID ".hosts");
    assert_string_equal(hosts, "");
    assert_int_equal(remove_network(), 0);
    assert_nothing_left();
}

struct versions {
    unsigned before, times;
    char said[256];
};

static void hear_of_plugins(void *ctx, const struct spec_pairs *versions)
{
    struct versions *heard = ctx;

    heard->times++;
    for (size_t i = 0; i < versions->count; i++) {
        assert_true(text_append(heard->said, sizeof(heard->said), versions->items[i].key));
        assert_true(text_append(heard->said, sizeof(heard->said), "="));
        assert_true(text_append(heard->said, sizeof(heard->said), versions->items[i].value));
        assert_true(text_append(heard->said, sizeof(heard->said), " "));
    }
    loop_stop(network.fixture->loop);
}

static void test_plugins_tell_their_versions(void **state)
{
    static const struct {
        const char *says, *version;
    } rows[] = {
        {"echo CNI x plugin v1.4.0 >&2", "one=v1.4.0 "},
        {"echo 'plugin version unknown'; echo 'protocols 0.3.0, 0.4.0, 1.0.0' >&2", "one=1.0.0 "},
        {"echo 1.0.0; exit 3", ""},
        {"echo none", ""},
        {"test -z \"$CNI_COMMAND\" && test -z \"$CNI_PATH\" && echo 0.9.1", "one=0.9.1 "},
    };
    struct fixture *fixture = *state;
    char text[256];

    need_root();
    write_text(network.plugins, "README", 0644, "1.2.3\n");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct versions heard = {0};

        assert_true(text_format(text, sizeof(text), "#!/bin/sh\n%s\n", rows[i].says));
        write_text(network.plugins, "one", 0755, text);
        hooks_find_plugins(fixture->hooks, 0, NULL, hear_of_plugins, &heard);
        loop_run(fixture->loop);
        assert_int_equal(heard.times, 1);
        assert_string_equal(heard.said, rows[i].version);
    }
    struct versions unheard = {0};
    hooks_find_plugins(fixture->hooks, 0, NULL, hear_of_plugins, &unheard);
    start_hooks(fixture, NULL); /* who asked is gone */
    hooks_find_plugins(fixture->hooks, 0, NULL, hear_of_plugins, &(struct versions){0});
    loop_run(fixture->loop);
    assert_int_equal(unheard.times, 0);
}

/* Each of them says that it was asked, and waits. */
static void write_slow_plugins(void)
{
    for (const char *name = "abc"; *name != '\0'; name++) {
        char script[512];

        assert_true(text_format(script, sizeof(script),
                                "#!/bin/sh\necho x >> %s/asked\n"
                                "while [ ! -e %s/go ]; do sleep 0.01; done\necho v1.0.0\n",
                                network.state, network.state));
        write_text(network.plugins, (char[]){*name, '\0'}, 0755, script);
    }
}

static void test_plugins_are_asked_no_more_when_nobody_waits_for_them(void **state)
{
    struct fixture *fixture = *state;
    struct versions heard = {0};
    struct arena arena = {0};
    atomic_bool over = true;

    need_root();
    write_slow_plugins();
    assert_int_equal(cni_versions(network.plugins, &over, &arena).count, 0);
    arena_free(&arena);
    assert_false(exists(at(&fixture->scratch, "networks/asked")));

    hooks_find_plugins(fixture->hooks, HOUR_MS, NULL, hear_of_plugins, &heard);
    assert_true(hooks_await_plugins(fixture->hooks));
    while (!exists(at(&fixture->scratch, "networks/asked")))
        (void)poll(NULL, 0, 10);
    start_hooks(fixture, NULL); /* who asked is gone */
    write_text(network.state, "go", 0644, "");
    hooks_find_plugins(fixture->hooks, 0, NULL, hear_of_plugins, &heard);
    loop_run(fixture->loop);
    assert_int_equal(heard.times, 1);
    scoped_string char *asked = text_of("asked");
    assert_string_equal(asked, "x\nx\nx\nx\n"); /* the first of them twice */
}

/* CTX: how often there is something before them. */
static bool is_before(void *ctx)
{
    struct versions *heard = ctx;

    return heard->before != 0 && heard->before-- != 0;
}

static void test_plugins_are_asked_behind_what_goes_before_for_a_limited_time(void **state)
{
    struct fixture *fixture = *state;
    struct versions heard = {.before = 3}, never = {.before = ~0U};

    need_root();
    write_text(network.plugins, "one", 0755, "#!/bin/sh\necho v1.0.0\n");
    hooks_find_plugins(fixture->hooks, 1, is_before, hear_of_plugins, &heard);
    loop_run(fixture->loop);
    assert_int_equal(heard.before, 0);
    assert_string_equal(heard.said, "one=v1.0.0 ");
    hooks_find_plugins(fixture->hooks, 1, is_before, hear_of_plugins, &never);
    loop_run(fixture->loop);
    assert_int_equal(never.times, 1);
}

static void test_what_failed_half_way_is_undone_before_it_is_tried_again(void **state)
{
    (void)state;
    need_root();
    write_plugin("first", ANSWER("127.0.0.1/8"));
    write_plugin("second",
                 "test $CNI_COMMAND = DEL || { echo '{\"code\":7,\"msg\":\"no\\u001b rules\","
                 "\"details\":\"mend them\"}'; exit 1; }");
    assert_int_equal(make_network(), ERR_IO);
    assert_outcome(network.fixture, ERR_IO, true,
                   "CNI plugin \"second\" (ADD): no? rules: mend them");
    assert_int_equal(make_network(), ERR_IO);
    assert_calls("ADD first, ADD second, DEL second, DEL first, ADD first, ADD second, ");
    assert_says("DEL.second", "\"address\":\"127.0.0.1/8\""); /* as far as it had come */
    assert_int_equal(remove_network(), 0);
    assert_nothing_left();
}

static void test_an_end_insists_until_plugins_have_undone_it(void **state)
{
    (void)state;
    need_root();
    write_plugin("first", ANSWER("127.0.0.1/8"));
    write_plugin("second",
                 "test $CNI_COMMAND = ADD && " ANSWER("127.0.0.1/8") " && exit 0\n"
                                                                     "echo busy >&2; exit 3");
    assert_int_equal(make_network(), 0);
    assert_int_equal(remove_network(), ERR_IO);
    assert_outcome(network.fixture, ERR_IO, true, "CNI plugin \"second\" (DEL): busy");
    assert_true(exists(note_path()));
    write_plugin("second", "");
    assert_int_equal(remove_network(), 0);
    assert_nothing_left();
}

/* As if somebody had taken away what was made in the namespace PATH. */
static void drop_address(const char *path)
{
    char name[600], program[] = "/usr/bin/nsenter";
    char *const words[] = {program,
                           name,
                           (char[]){"ip"},
                           (char[]){"address"},
                           (char[]){"del"},
                           (char[]){"127.0.0.1/8"},
                           (char[]){"dev"},
                           (char[]){"lo"},
                           NULL};
    char *const environment[] = {(char[]){"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, NULL};
    struct proc_spawn spawn = {.path = program, .argv = words, .envp = environment};
    pid_t pid;
    int status;

    assert_true(text_format(name, sizeof(name), "--net=%s", path));
    assert_int_equal(proc_spawn(&spawn, &pid, NULL, NULL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void test_a_start_finds_the_network_or_makes_it_again(void **state)
{
    struct fixture *fixture = *state;

    need_root();
    write_text(network.configs, "1.conflist", 0644,
               "{\"cniVersion\":\"0.4.0\",\"name\":\"mine\",\"plugins\":[{\"type\":\"lo\"}]}");
    write_plugin("lo", "echo '{\"interfaces\":[{\"name\":\"lo\",\"sandbox\":\"x\"}],\"ips\":"
                       "[{\"interface\":0,\"address\":\"127.0.0.1/8\"}]}'");
    assert_int_equal(make_network(), 0);
    assert_int_equal(join_network(), 0);
    assert_calls("ADD lo, "); /* it is all there */
    assert_int_equal(netns_remove(namespace_path(), &fixture->scratch.err), 0); /* a reboot */
    assert_int_equal(join_network(), 0);
    assert_calls("ADD lo, DEL lo, ADD lo, ");
    assert_int_equal(netns_is_there(namespace_path(), &fixture->scratch.err), 1);
    /* There, and without what was made in it. */
    assert_int_equal(netns_remove(namespace_path(), &fixture->scratch.err), 0);
    assert_int_equal(netns_make(namespace_path(), &fixture->scratch.err), 0);
    drop_address(namespace_path());
    assert_int_equal(join_network(), 0);
    assert_calls("ADD lo, DEL lo, ADD lo, DEL lo, ADD lo, ");
    /* One that says more than there is in it is believed. */
    assert_int_equal(remove_network(), 0);
    write_plugin("lo", "echo '{\"interfaces\":[{\"name\":\"lo\",\"sandbox\":\"x\"}],\"ips\":"
                       "[{\"interface\":0,\"address\":\"10.9.9.9/8\"}]}'");
    assert_int_equal(make_network(), 0);
    assert_int_equal(join_network(), 0);
    assert_calls("ADD lo, DEL lo, ADD lo, DEL lo, ADD lo, DEL lo, ADD lo, ");
    assert_int_equal(remove_network(), 0);
    assert_nothing_left();
}

static int check_network(void)
{
    struct fixture *fixture = network.fixture;

    fixture->answered = false;
    hooks_check_network(fixture->hooks, ALLOC_ID, on_outcome, fixture);
    loop_run(fixture->loop);
    assert_true(fixture->answered);
    return fixture->outcome.code;
}

static void find_bridge(const char *version)
{
    char script[128];

    assert_true(text_format(script, sizeof(script), "#!/bin/sh\necho %s\n", version));
    write_text(network.plugins, "bridge", 0755, script);
    hooks_find_plugins(network.fixture->hooks, 0, NULL, hear_of_plugins, &(struct versions){0});
    loop_run(network.fixture->loop);
    assert_return_code(unlink(at(&network.fixture->scratch, "networks/calls")), 0);
}

static void test_what_a_plugin_misses_is_made_again_in_its_place(void **state)
{
    struct fixture *fixture = *state;

    need_root();
    write_plugin("first", ANSWER("127.0.0.1/8"));
    write_plugin("second", ANSWER("127.0.0.1/8"));
    assert_int_equal(check_network(), 0); /* there is none, and none is made */
    assert_nothing_left();
    assert_int_equal(make_network(), 0);
    find_bridge("v1.2.9");
    assert_int_equal(check_network(), 0);
    assert_false(exists(at(&fixture->scratch, "networks/calls"))); /* it answers for no reason */
    write_text(network.state, "calls", 0644, "");
    find_bridge("v1.3.0");
    assert_int_equal(check_network(), 0);
    assert_string_equal(fixture->text, "");
    assert_calls("CHECK first, CHECK second, ");
    assert_says("CHECK.first", "\"prevResult\":{");
    write_plugin("second",
                 "test $CNI_COMMAND = CHECK && echo '{\"code\":1,\"msg\":\"no rule\"}' && "
                 "exit 1\n" ANSWER("127.0.0.1/8"));
    assert_int_equal(check_network(), 0);
    assert_string_equal(fixture->text, "its network was damaged and is mended: "
                                       "CNI plugin \"second\" (CHECK): no rule");
    assert_calls("CHECK first, CHECK second, CHECK first, CHECK second, DEL second, DEL first, "
                 "ADD first, ADD second, ");
    assert_int_equal(netns_is_there(namespace_path(), &fixture->scratch.err), 1);
    /* One that cannot be asked has not said no. */
    assert_return_code(unlink(at(&fixture->scratch, "plugins/second")), 0);
    assert_int_equal(check_network(), 0);
    assert_string_equal(fixture->text, "");
    write_plugin("second", "test $CNI_COMMAND = DEL || exit 1");
    assert_int_equal(check_network(), ERR_GONE); /* in the middle of it ... */
    assert_true(text_starts_with(fixture->text, "its network was damaged ("));
    write_plugin("second", ANSWER("127.0.0.1/8"));
    assert_int_equal(check_network(), 0); /* ... it goes on */
    assert_true(text_ends_with(fixture->text, "a daemon ended while it was made"));
    assert_int_equal(check_network(), 0);
    assert_string_equal(fixture->text, "");
    assert_int_equal(netns_remove(namespace_path(), &fixture->scratch.err), 0);
    assert_int_equal(check_network(), ERR_GONE);
    assert_string_equal(fixture->text, "its network namespace was taken away");
    assert_int_equal(make_network(), 0); /* of who starts again */
    assert_int_equal(check_network(), 0);
    assert_int_equal(remove_network(), 0);
    assert_nothing_left();
}

/* Whether plugins can be asked is not known yet. */
static void test_look_at_a_network_waits_for_what_plugins_say(void **state)
{
    struct fixture *fixture = *state;
    struct versions versions = {0};

    need_root();
    write_plugin("first", ANSWER("127.0.0.1/8"));
    write_plugin("second", ANSWER("127.0.0.1/8"));
    assert_int_equal(make_network(), 0);
    write_text(network.plugins, "bridge", 0755, "#!/bin/sh\necho v1.3.0\n");
    fixture->answered = false;
    hooks_find_plugins(fixture->hooks, HOUR_MS, NULL, hear_of_plugins, &versions);
    write_text(network.state, "calls", 0644, "");
    hooks_check_network(fixture->hooks, ALLOC_ID, on_outcome, fixture);
    loop_run(fixture->loop);
    if (!fixture->answered)
        loop_run(fixture->loop);
    assert_true(fixture->answered);
    assert_calls(" first,  second, CHECK first, CHECK second, "); /* their versions first */
    assert_int_equal(remove_network(), 0);
    assert_nothing_left();
}

static void test_mode_none_is_a_loopback_and_no_plugin(void **state)
{
    struct fixture *fixture = *state;

    need_root();
    fixture->alloc.network_mode = "none";
    assert_int_equal(make_network(), 0);
    assert_int_equal(netns_has_address(namespace_path(), "lo", "127.0.0.1", &fixture->scratch.err),
                     1);
    assert_int_equal(netns_has_address(namespace_path(), "lo", "127.0.0.2", &fixture->scratch.err),
                     0);
    assert_int_equal(make_network(), 0);
    assert_int_equal(remove_network(), 0);
    assert_nothing_left();
}

static void count(void *ctx, const char *alloc)
{
    assert_string_equal(alloc, ALLOC_ID);
    ++*(int *)ctx;
}

static void test_what_is_left_is_told_by_note_and_by_namespace(void **state)
{
    struct fixture *fixture = *state;
    char path[1024];
    int told = 0;

    need_root();
    fixture->alloc.network_mode = "none";
    assert_int_equal(hooks_each_network(fixture->hooks, count, &told, &fixture->scratch.err), 0);
    assert_int_equal(told, 0);
    assert_int_equal(make_network(), 0);
    assert_true(text_format(path, sizeof(path), "%s/cairn-ffffffff-" ALLOC_ID, network.run));
    assert_int_equal(netns_make(path, &fixture->scratch.err), 0); /* of another node */
    assert_int_equal(hooks_each_network(fixture->hooks, count, &told, &fixture->scratch.err), 0);
    assert_int_equal(told, 2);
    assert_return_code(unlink(note_path()), 0);
    told = 0;
    assert_int_equal(hooks_each_network(fixture->hooks, count, &told, &fixture->scratch.err), 0);
    assert_int_equal(told, 1);
    assert_int_equal(remove_network(), 0);
    assert_true(exists(path));
    assert_int_equal(netns_remove(path, &fixture->scratch.err), 0);
    assert_nothing_left();
}

static void assert_modes(struct fixture *fixture, const char *expected)
{
    json_t *modes = hooks_network_modes(fixture->hooks);
    char *text = json_dumps(modes, JSON_COMPACT);

    assert_string_equal(text, expected);
    free(text);
    json_decref(modes);
}

static void test_networks_of_files_are_modes_that_groups_may_want(void **state)
{
    struct fixture *fixture = *state;

    need_root();
    assert_modes(fixture, "[\"cni/mine\"]"); /* and no bridge without its plugins */
    write_text(network.configs, "0.conf", 0644, "{\"name\": \"alone\", \"type\": \"first\"}");
    write_text(network.configs, "z.conflist", 0644,
               "{\"name\": \"MINE\", \"plugins\": [{\"type\": \"first\"}]}");
    write_text(network.configs, "z.json", 0644, "{\"name\": \"broken\"");
    assert_modes(fixture, "[\"cni/alone\",\"cni/mine\"]"); /* the first of one name counts */
}

static void test_what_is_no_plugin_or_no_network_is_told(void **state)
{
    struct fixture *fixture = *state;

    need_root();
    assert_int_equal(make_network(), ERR_GONE);
    assert_outcome(fixture, ERR_GONE, true, "CNI plugin \"first\" (ADD): not in ");
    assert_true(hooks_has_network(fixture->hooks, "cni/MINE"));
    assert_true(hooks_has_network(fixture->hooks, "none"));
    assert_false(hooks_has_network(fixture->hooks, "cni/other"));
    assert_false(hooks_has_network(fixture->hooks, "bridge")); /* none of its plugins */
    write_plugin("first", ANSWER("not an address"));
    write_plugin("second", ANSWER("not an address"));
    assert_int_equal(make_network(), ERR_CORRUPT);
    write_plugin("first", "echo '[]'");
    assert_int_equal(make_network(), ERR_CORRUPT);
    assert_outcome(fixture, ERR_CORRUPT, true, "what it answers is no result");
    write_plugin("first", "head -c 400000 /dev/zero");
    assert_int_equal(make_network(), ERR_LIMIT);
    write_plugin("first", "");
    write_plugin("second", "");
    assert_int_equal(remove_network(), 0);
    assert_nothing_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_plugins_are_chained_there_and_back, make,
                                        fixture_remove),
        cmocka_unit_test_setup_teardown(test_what_a_group_says_of_its_network_is_interpolated, make,
                                        fixture_remove),
        cmocka_unit_test_setup_teardown(
            test_a_hostname_that_is_none_is_told_before_anything_is_made, make, fixture_remove),
        cmocka_unit_test_setup_teardown(test_plugins_tell_their_versions, make, fixture_remove),
        cmocka_unit_test_setup_teardown(test_plugins_are_asked_no_more_when_nobody_waits_for_them,
                                        make, fixture_remove),
        cmocka_unit_test_setup_teardown(
            test_plugins_are_asked_behind_what_goes_before_for_a_limited_time, make,
            fixture_remove),
        cmocka_unit_test_setup_teardown(
            test_what_failed_half_way_is_undone_before_it_is_tried_again, make, fixture_remove),
        cmocka_unit_test_setup_teardown(test_an_end_insists_until_plugins_have_undone_it, make,
                                        fixture_remove),
        cmocka_unit_test_setup_teardown(test_a_start_finds_the_network_or_makes_it_again, make,
                                        fixture_remove),
        cmocka_unit_test_setup_teardown(test_look_at_a_network_waits_for_what_plugins_say, make,
                                        fixture_remove),
        cmocka_unit_test_setup_teardown(test_what_a_plugin_misses_is_made_again_in_its_place, make,
                                        fixture_remove),
        cmocka_unit_test_setup_teardown(test_mode_none_is_a_loopback_and_no_plugin, make,
                                        fixture_remove),
        cmocka_unit_test_setup_teardown(test_what_is_left_is_told_by_note_and_by_namespace, make,
                                        fixture_remove),
        cmocka_unit_test_setup_teardown(test_networks_of_files_are_modes_that_groups_may_want, make,
                                        fixture_remove),
        cmocka_unit_test_setup_teardown(test_what_is_no_plugin_or_no_network_is_told, make,
                                        fixture_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
