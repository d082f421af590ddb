/*
 * The driver java: a program of a Java machine, isolated as by exec.
 *
 * Follows nomad v2.0.5 drivers/java.  The machine is the first "java" of the agent's PATH, and has
 * to be in the payload's root under the same name.  Which one it is tells itself, `java -version`,
 * on standard error; one that does not answer in time is none.
 */
#include "drivers/part.h"
#include "io/program.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ANSWER_MS = 10000 };

static const struct config_key keys[] = {
    {"class", CONFIG_TEXT, offsetof(struct command, class), NULL},
    {"class_path", CONFIG_TEXT, offsetof(struct command, class_path), NULL},
    {"jar_path", CONFIG_TEXT, offsetof(struct command, jar_path), NULL},
    {"jvm_options", CONFIG_TEXTS, offsetof(struct command, jvm_options), NULL},
    {"args", CONFIG_TEXTS, offsetof(struct command, arguments), NULL},
    ISOLATED_KEYS,
};

/* --- config --- */

static bool is_said(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static int check_config(const struct command *command, struct err *err)
{
    if (!is_said(command->class) && !is_said(command->jar_path))
        return err_set(err, ERR_INVALID, "java: \"jar_path\" or \"class\" is required");
    return isolated_check("java", command, err);
}

static void add(struct texts *to, const char *text)
{
    to->items[to->count++] = text;
}

/* Options, class path, jar, class, what is the program's own: in this order. */
static void line_up(struct command *command)
{
    const struct texts *options = &command->jvm_options, *own = &command->arguments;
    struct texts line = {.items = calloc(options->count + own->count + 5, sizeof(*line.items))};

    check(line.items != NULL);
    for (size_t i = 0; i < options->count; i++)
        add(&line, options->items[i]);
    if (is_said(command->class_path)) {
        add(&line, "-cp");
        add(&line, command->class_path);
    }
    if (is_said(command->jar_path)) {
        add(&line, "-jar");
        add(&line, command->jar_path);
    }
    if (is_said(command->class))
        add(&line, command->class);
    for (size_t i = 0; i < own->count; i++)
        add(&line, own->items[i]);
    free(command->arguments.items);
    command->arguments = line;
}

static int prepare(const struct drivers *drivers, const struct driver_probed *probed,
                   struct command *command, struct err *err)
{
    command->program = probed->found ? probed->program : "java"; /* it is not known yet */
    line_up(command);
    return isolated_prepare("java", &drivers->config.java, command, err);
}

static bool look(const struct drivers *drivers, char ret_why[ERR_TEXT_SIZE])
{
    return isolated_look(drivers, &drivers->config.java, ret_why);
}

/* --- which one there is --- */

static bool find_java(char to[PATH_SIZE])
{
    const char *path = getenv("PATH");

    return program_find(path == NULL ? "" : path, "java", to);
}

/* Which file the program is, as far as can be seen without running it. */
static void note_file(struct driver_probed *probed)
{
    struct stat status;

    if (stat(probed->program, &status) != 0)
        return;
    probed->inode = status.st_ino;
    probed->changed_ns = (int64_t)status.st_ctim.tv_sec * 1000000000 + status.st_ctim.tv_nsec;
}

/* A Java machine takes a while to start: one that has answered is not asked again. */
static bool is_current(const struct driver_probed *probed)
{
    struct driver_probed now = {.done = true};

    if (!find_java(now.program))
        return probed->done && probed->program[0] == '\0';
    note_file(&now);
    return probed->found && text_equal(now.program, probed->program) &&
           now.inode == probed->inode && now.changed_ns == probed->changed_ns;
}

/* The line that TEXT begins with, ended; the next one is returned. */
static char *cut_line(char *text)
{
    char *end = text + strcspn(text, "\n");

    if (*end != '\0')
        *end++ = '\0';
    return end;
}

static void set(struct driver_probed *probed, const char *name, const char *value)
{
    struct driver_attribute *attribute = &probed->attributes[probed->attributes_count++];

    attribute->name = name;
    (void)text_copy(attribute->value, sizeof(attribute->value), value); /* a long one is cut */
}

/* The first number with dots of LINE, which holds the version, or all of it. */
static void cut_version(char *line)
{
    char *number = line + strcspn(line, "0123456789._");
    size_t length = strspn(number, "0123456789._");

    if (length > 0) {
        memmove(line, number, length);
        line[length] = '\0';
    }
}

/* As `java -version` prints it: version, runtime, machine, a line for each. */
static void read_version(char *text, struct driver_probed *probed)
{
    char *version = text, *runtime = cut_line(version);

    if (strstr(version, "Picked up _JAVA_OPTIONS") != NULL) {
        version = runtime;
        runtime = cut_line(version);
    }
    char *machine = cut_line(runtime);
    (void)cut_line(machine);
    if (machine[0] == '\0')
        return; /* something else prints other things: it is there all the same */
    cut_version(version);
    set(probed, "driver.java.version", version);
    set(probed, "driver.java.runtime", runtime);
    set(probed, "driver.java.vm", machine);
}

static void probe(const struct drivers_config *config, struct driver_probed *ret_probed)
{
    struct driver_probed probed = {.done = true};
    char *const argv[] = {probed.program, (char[]){"-version"}, NULL};
    char *const environment[] = {(char[]){"PATH=/usr/local/bin:/usr/bin:/bin"}, NULL};
    const struct program_call call = {.program = probed.program,
                                      .argv = argv,
                                      .environment = environment,
                                      .input = "",
                                      .lock_fd = -1,
                                      .cancel_fd = -1,
                                      .limit_ms = ANSWER_MS,
                                      .ends_with_us = true,
                                      .together = true};
    struct program_answer answer = {0};
    struct err err;
    (void)config;

    if (!find_java(probed.program)) {
        probed.program[0] = '\0';
        (void)text_copy(probed.why, sizeof(probed.why), "no java in the agent's PATH"); /* fits */
        *ret_probed = probed;
        return;
    }
    note_file(&probed);
    probed.found = program_run(&call, &answer, &err) == 0 && answer.status == 0;
    if (probed.found)
        read_version(answer.output, &probed);
    else
        (void)text_format(probed.why, sizeof(probed.why),
                          "%s -version failed, or took longer than %d s", probed.program,
                          ANSWER_MS / 1000); /* may be cut */
    program_close(&answer);
    *ret_probed = probed;
}

const struct driver java_driver = {
    .kind = {.name = "java",
             .isolation = ISOLATION_CHROOT,
             .checks_user = true,
             .user = "nobody",
             .mounts = true,
             .enters_network = true,
             .signals = true,
             .runs_commands = true},
    .stop_signal = "SIGINT",
    .keys = keys,
    .keys_count = COUNT_OF(keys),
    .validate = check_config,
    .prepare = prepare,
    .look = look,
    .probe = probe,
    .is_current = is_current,
};
