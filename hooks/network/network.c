#include "hooks/network/network.h"

#include "hooks/network/cni.h"
#include "hooks/network/resolv.h"
#include "io/loop.h"
#include "io/proc.h"
#include "io/scope.h"
#include "spec/json.h"
#include "spec/names.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum {
    NOTE_BYTES_MAX = 1 << 20,
    LOCK_WAIT_MS = 30000, /* for plugins that outlived a daemon */
    LOCK_LOOK_NS = 20000000,
};

#define PREFIX "cairn-"

/* One network while it is worked on. */
struct work {
    const struct hooks_network *config;
    const char *alloc;
    char boot[BOOT_ID_SIZE];
    char netns[PATH_SIZE], note_path[PATH_SIZE];
    int lock_fd;
    json_t *note; /* what is written down; NULL: nothing is */
};

static json_t *packed(json_t *json)
{
    check(json != NULL);
    return json;
}

/* --- names --- */

static void state_path(const struct hooks_network *config, const char *alloc, const char *ending,
                       char to[PATH_SIZE])
{
    check(text_format(to, PATH_SIZE, "%s/%s%s", config->state_dir, alloc, ending));
}

void network_namespace(const struct hooks_network *config, const char *alloc, char to[PATH_SIZE])
{
    check(text_format(to, PATH_SIZE, "%s/" PREFIX "%s-%s", config->run_dir, config->mark, alloc));
}

void network_resolv(const struct hooks_network *config, const char *alloc, char to[PATH_SIZE])
{
    state_path(config, alloc, ".resolv", to);
}

void network_hosts(const struct hooks_network *config, const char *alloc, char to[PATH_SIZE])
{
    state_path(config, alloc, ".hosts", to);
}

struct each {
    const char *prefix;
    void (*cb)(void *ctx, const char *alloc);
    void *ctx;
};

/* NAME is PREFIX, an alloc's id, and in the directory of notes whatever ends it. */
static int tell_alloc(void *ctx, const char *name, unsigned char type)
{
    const struct each *each = ctx;
    char id[UUID_TEXT_SIZE];

    (void)type; /* its name says what it is */
    if (!text_starts_with(name, each->prefix))
        return 0;
    name += strlen(each->prefix);
    (void)text_copy(id, sizeof(id), name); /* cut on purpose */
    if (uuid_is_valid(id) && (name[strlen(id)] == '\0' || name[strlen(id)] == '.'))
        each->cb(each->ctx, id);
    return 0;
}

int network_each(const struct hooks_network *config, void (*cb)(void *ctx, const char *alloc),
                 void *ctx, struct err *err)
{
    char prefix[64];
    const struct {
        const char *directory, *prefix;
    } places[] = {{config->state_dir, ""}, {config->run_dir, prefix}};
    int code = 0;

    check(text_format(prefix, sizeof(prefix), PREFIX "%s-", config->mark));
    for (size_t i = 0; i < COUNT_OF(places) && code == 0; i++) {
        struct each each = {places[i].prefix, cb, ctx};
        scoped_fd int fd = open(places[i].directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int failed = fd >= 0 ? directory_each(fd, tell_alloc, &each) : -errno;

        if (failed < 0 && failed != -ENOENT)
            code = err_os(err, err_from_errno(-failed), -failed, "cannot read %s",
                          places[i].directory);
    }
    return code;
}

/* --- the lock --- */

/* Who holds it is a plugin that an earlier daemon started: it is waited for, since what it makes
 * must be undone or counted on. */
static int take_lock(struct work *work, struct err *err)
{
    uint64_t until_ms = loop_now_ms() + LOCK_WAIT_MS;
    char path[PATH_SIZE];

    state_path(work->config, "lock", "", path);
    scoped_fd int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot open %s", path);
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const struct timespec pause = {.tv_nsec = LOCK_LOOK_NS};

        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_os(err, err_from_errno(errno), errno, "cannot lock %s", path);
        if (loop_now_ms() >= until_ms)
            return err_set(err, ERR_TIMEOUT, "a CNI plugin of an earlier daemon still runs");
        (void)nanosleep(&pause, NULL); /* shorter is fine */
    }
    work->lock_fd = take_fd(&fd);
    return 0;
}

/* --- what is written down --- */

/* A note that cannot be read is one of nothing but a namespace: written whole, it is damaged by
 * nothing of ours. */
static int read_note(struct work *work, struct err *err)
{
    char *bytes;
    size_t length;
    int code = file_read(work->note_path, NOTE_BYTES_MAX, &bytes, &length, err);

    if (code == ERR_GONE)
        return 0;
    if (code != 0)
        return code;
    work->note = json_loadb(bytes, length, 0, NULL);
    free(bytes);
    if (!json_is_object(work->note)) {
        json_decref(work->note);
        work->note = json_object();
    }
    return 0;
}

/* Only what survives a reboot has to be on the disk before a plugin makes it. */
static int write_note(const struct work *work, bool durable, struct err *err)
{
    char beside[PATH_SIZE];
    scoped_string char *text = json_dumps(work->note, JSON_COMPACT);

    check(text != NULL);
    if (durable)
        return file_write_durable(work->note_path, text, strlen(text), 0600, err);
    state_path(work->config, work->alloc, ".json.next", beside);
    scoped_fd int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) ||
        rename(beside, work->note_path) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot write %s", work->note_path);
    return 0;
}

static int remove_notes(const struct work *work, struct err *err)
{
    static const char *const endings[] = {".resolv.new", ".resolv",   ".hosts.new", ".hosts",
                                          ".json.next",  ".json.new", ".json"};
    char path[PATH_SIZE];

    for (size_t i = 0; i < COUNT_OF(endings); i++) {
        state_path(work->config, work->alloc, endings[i], path);
        if (unlink(path) != 0 && errno != ENOENT)
            return err_os(err, err_from_errno(errno), errno, "cannot delete %s", path);
    }
    return 0;
}

/* --- one network --- */

static int begin(struct work *work, struct err *err)
{
    int code = proc_boot_id(work->boot, err);

    network_namespace(work->config, work->alloc, work->netns);
    state_path(work->config, work->alloc, ".json", work->note_path);
    if (code == 0)
        code = take_lock(work, err);
    return code == 0 ? read_note(work, err) : code;
}

static void finish(struct work *work)
{
    scope_close_fd(&work->lock_fd);
    json_decref(work->note);
}

static int on_made(void *ctx, const json_t *result, struct err *err)
{
    struct work *work = ctx;

    check(json_object_set(work->note, "Result", (json_t *)(uintptr_t)result) == 0);
    return write_note(work, false, err);
}

/* The plugins' work as it is noted, for them to make or undo it. */
static struct cni_call call_of(struct work *work)
{
    return (struct cni_call){
        .config = work->config,
        .container = work->alloc,
        .netns = netns_is_there(work->netns, NULL) == 1 ? work->netns : "",
        .list = json_object_get(work->note, "List"),
        .args = text_of(work->note, "Args"),
        .ports = json_object_get(work->note, "Ports"),
        .lock_fd = work->lock_fd,
        .made = on_made,
        .ctx = work,
    };
}

/* Undoes what plugins have made, or had begun to: they take that for granted. */
static int undo(struct work *work, struct err *err)
{
    struct cni_call call = call_of(work);

    return call.list == NULL ? 0 : cni_remove(&call, json_object_get(work->note, "Result"), err);
}

static bool has_address(const struct work *work)
{
    const json_t *status = json_object_get(work->note, "Status");

    return netns_has_address(work->netns, text_of(status, "InterfaceName"),
                             text_of(status, "Address"), NULL) == 1;
}

/* True if all of it is there as it is noted; false: it is to be made again.  Some plugins tell of
 * an interface that is not in the namespace: that is not looked for. */
static bool is_whole(const struct work *work)
{
    return json_object_get(work->note, "Status") != NULL &&
           text_equal(text_of(work->note, "Boot"), work->boot) &&
           netns_is_there(work->netns, NULL) == 1 &&
           (!json_is_true(json_object_get(work->note, "Seen")) || has_address(work));
}

static json_t *no_addresses(void)
{
    return packed(json_pack("{s:s, s:s, s:s, s:n}", "InterfaceName", "", "Address", "",
                            "AddressIPv6", "", "DNS"));
}

/* Puts down what is to be made, before it is. */
static int put_note(struct work *work, const json_t *order, struct err *err)
{
    const char *mode = text_of(order, "Mode");
    json_t *list = NULL;
    int code = text_equal(mode, "none") ? 0 : cni_list(work->config, mode, &list, err);

    if (code != 0)
        return code;
    json_decref(work->note);
    work->note =
        packed(json_pack("{s:s, s:s, s:s, s:O}", "Boot", work->boot, "Mode", mode, "Args",
                         text_of(order, "Args"), "Ports", json_object_get(order, "Ports")));
    if (list != NULL)
        check(json_object_set_new(work->note, "List", list) == 0);
    return write_note(work, true, err);
}

/* What plugins make in the namespace, which is there. */
static int fill(struct work *work, const char *mode, struct err *err)
{
    struct cni_call call = call_of(work);
    json_t *result = NULL, *status;
    int code = text_equal(mode, "bridge") ? cni_admit(work->config, work->lock_fd, err) : 0;

    if (code == 0)
        code = cni_add(&call, &result, err);
    if (code != 0)
        return code;
    status = cni_status(result, err);
    json_decref(result);
    if (status == NULL)
        return err->code;
    check(json_object_set_new(work->note, "Status", status) == 0);
    check(json_object_set_new(work->note, "Seen", json_boolean(has_address(work))) == 0);
    return 0;
}

static int make(struct work *work, const json_t *order, struct err *err)
{
    const char *mode = text_of(order, "Mode");
    int code = directory_make_all(work->config->run_dir, 0755, err);

    if (code == 0 && work->note != NULL)
        code = undo(work, err);
    if (code == 0)
        code = put_note(work, order, err);
    if (code == 0)
        code = netns_make(work->netns, err);
    if (code == 0 && text_equal(mode, "none"))
        check(json_object_set_new(work->note, "Status", no_addresses()) == 0);
    else if (code == 0)
        code = fill(work, mode, err);
    return code == 0 ? write_note(work, true, err) : code;
}

/* The job's word goes before the plugins'. */
static int make_resolv(const struct work *work, const json_t *order, struct err *err)
{
    const json_t *own = json_object_get(order, "DNS");
    const json_t *theirs = json_object_get(json_object_get(work->note, "Status"), "DNS");
    char path[PATH_SIZE];

    network_resolv(work->config, work->alloc, path);
    if (!json_is_object(own) && !json_is_object(theirs))
        return 0;
    return resolv_write(path, json_is_object(own) ? own : theirs, err);
}

/* nomad v2.0.5 drivers/shared/hostnames/mount.go, where only docker has it. */
static int make_hosts(const struct work *work, const json_t *order, struct err *err)
{
    static const char before[] = "# made by cairn\n"
                                 "127.0.0.1 localhost\n"
                                 "::1 localhost\n"
                                 "::1 ip6-localhost ip6-loopback\n"
                                 "fe00::0 ip6-localnet\n"
                                 "ff00::0 ip6-mcastprefix\n"
                                 "ff02::1 ip6-allnodes\n"
                                 "ff02::2 ip6-allrouters\n"
                                 "ff02::3 ip6-allhosts\n"
                                 "\n"
                                 "# the group's own\n";
    const char *hostname = text_of(order, "Hostname");
    const char *address = text_of(json_object_get(work->note, "Status"), "Address");
    char path[PATH_SIZE], text[sizeof(before) + ADDRESS_SIZE + SPEC_HOSTNAME_MAX + 2];

    if (*hostname == '\0' || *address == '\0')
        return 0;
    network_hosts(work->config, work->alloc, path);
    if (!text_format(text, sizeof(text), "%s%s %s\n", before, address, hostname))
        return err_set(err, ERR_LIMIT, "the address of the alloc is too long");
    return file_write_durable(path, text, strlen(text), 0644, err);
}

static bool has_namespace(const json_t *order)
{
    return *text_of(order, "Mode") != '\0';
}

int network_make(const struct hooks_network *config, const char *alloc, const char *order_text,
                 json_t **ret_status, struct err *err)
{
    struct work work = {.config = config, .alloc = alloc, .lock_fd = -1};
    json_t *order = json_loads(order_text, 0, NULL);

    check(order != NULL); /* network_order() made it */
    int code = directory_make_all(config->state_dir, 0700, err);
    if (code == 0)
        code = begin(&work, err);
    if (code == 0 && has_namespace(order) && !is_whole(&work))
        code = make(&work, order, err);
    if (code == 0)
        code = make_resolv(&work, order, err);
    if (code == 0)
        code = make_hosts(&work, order, err);
    if (code == 0) {
        const json_t *status = json_object_get(work.note, "Status");

        *ret_status = status != NULL ? json_deep_copy(status) : no_addresses();
        check(*ret_status != NULL);
    }
    finish(&work);
    json_decref(order);
    return code;
}

/* The plugins' arguments with the wish for ADDRESS, which host-local grants if it is free. */
static json_t *arguments_for(const struct work *work, const char *address)
{
    json_t *args = json_sprintf("%s;IP=%s", text_of(work->note, "Args"), address);

    check(args != NULL);
    return args;
}

/* Made anew in the namespace that is there, in which tasks may run that know its address. */
static int mend(struct work *work, const char *address, struct err *err)
{
    const char *mode = text_of(work->note, "Mode");
    json_t *args = json_incref(json_object_get(work->note, "Args"));
    int code = undo(work, err);

    (void)json_object_del(work->note, "Status"); /* a crash from here on leaves none */
    (void)json_object_del(work->note, "Result"); /* the same */
    if (code == 0)
        code = write_note(work, true, err);
    if (code == 0 && text_equal(mode, "bridge") && *address != '\0') {
        check(json_object_set_new(work->note, "Args", arguments_for(work, address)) == 0);
        code = fill(work, mode, err);
        check(json_object_set(work->note, "Args", args) == 0);
        if (code != 0)
            code = undo(work, err);
    }
    if (code == 0 && json_object_get(work->note, "Status") == NULL)
        code = fill(work, mode, err);
    json_decref(args);
    return code == 0 ? write_note(work, true, err) : code;
}

/* What was made in this boot, by plugins, and lacks something; RET_WHY says what. */
static bool is_damaged(struct work *work, bool asks, char ret_why[ERR_TEXT_SIZE])
{
    const struct cni_call call = call_of(work);
    struct err no = {0};

    (void)text_copy(ret_why, ERR_TEXT_SIZE, "a daemon ended while it was made"); /* fits */
    if (call.list == NULL || json_object_get(work->note, "Status") == NULL)
        return call.list != NULL;
    (void)text_copy(ret_why, ERR_TEXT_SIZE, "its address is gone"); /* fits */
    if (json_is_true(json_object_get(work->note, "Seen")) && !has_address(work))
        return true;
    if (!asks || cni_check(&call, json_object_get(work->note, "Result"), &no) == 0)
        return false;
    (void)text_copy(ret_why, ERR_TEXT_SIZE, no.text); /* of that size */
    return true;
}

static int check_work(struct work *work, bool asks, char ret_remark[ERR_TEXT_SIZE], struct err *err)
{
    const json_t *status = json_object_get(work->note, "Status");
    char why[ERR_TEXT_SIZE], before[ADDRESS_SIZE];

    if (work->note == NULL || !text_equal(text_of(work->note, "Boot"), work->boot))
        return 0; /* there is none, or a start makes it */
    if (netns_is_there(work->netns, NULL) == 0) {
        if (status == NULL)
            return 0; /* there never was one */
        return err_set(err, ERR_GONE, "its network namespace was taken away");
    }
    if (!text_copy(before, sizeof(before), text_of(status, "Address")) ||
        !is_damaged(work, asks, why))
        return 0;
    int code = mend(work, before, err);
    if (code != 0) {
        (void)err_wrap(err, "its network was damaged (%s)", why); /* as this says: */
        return err->code = ERR_GONE;
    }
    const char *address = text_of(json_object_get(work->note, "Status"), "Address");
    (void)text_format(ret_remark, ERR_TEXT_SIZE, "its network was damaged and is mended%s: %s",
                      *before == '\0' || text_equal(before, address) ? ""
                                                                     : ", with another address",
                      why); /* may be cut */
    return 0;
}

int network_check(const struct hooks_network *config, const char *alloc, bool asks,
                  char ret_remark[ERR_TEXT_SIZE], struct err *err)
{
    struct work work = {.config = config, .alloc = alloc, .lock_fd = -1};
    int code = begin(&work, err);

    ret_remark[0] = '\0';
    if (code == 0)
        code = check_work(&work, asks, ret_remark, err);
    finish(&work);
    return code;
}

int network_remove(const struct hooks_network *config, const char *alloc, struct err *err)
{
    struct work work = {.config = config, .alloc = alloc, .lock_fd = -1};
    int code = directory_make_all(config->state_dir, 0700, err);

    if (code == 0)
        code = begin(&work, err);
    if (code == 0 && work.note != NULL)
        code = undo(&work, err);
    if (code == 0)
        code = netns_remove(work.netns, err);
    if (code == 0)
        code = remove_notes(&work, err);
    finish(&work);
    if (code != 0)
        err->recoverable = true; /* nothing here may be given up */
    return code;
}

/* --- what an alloc asks for --- */

static json_t *texts_of(const struct spec_texts *texts)
{
    json_t *list = json_array();

    for (size_t i = 0; i < texts->count; i++)
        check(json_array_append_new(list, json_string(texts->items[i])) == 0);
    return list;
}

/* As Nomad does it, each port for both protocols, and on all addresses of the node where it has no
 * host networks. */
static json_t *ports_of(const struct hooks_network *config, const struct alloc_spec *alloc)
{
    static const char *const protocols[] = {"tcp", "udp"};
    json_t *list = json_array();

    for (size_t i = 0; i < alloc->ports.count; i++) {
        const struct spec_port *port = &alloc->ports.items[i];

        for (size_t p = 0; p < COUNT_OF(protocols) && *port->task == '\0'; p++) {
            json_t *mapping =
                packed(json_pack("{s:i, s:i, s:s}", "hostPort", port->value, "containerPort",
                                 port->to > 0 ? port->to : port->value, "protocol", protocols[p]));

            if (config->maps_host_ip)
                check(json_object_set_new(mapping, "hostIP", json_string(port->host_ip)) == 0);
            check(json_array_append_new(list, mapping) == 0);
        }
    }
    return list;
}

static void add_argument(char *to, size_t size, const char *key, const char *value)
{
    if (strchr(value, ';') != NULL || strchr(key, ';') != NULL)
        return; /* it parts them; Nomad leaves such out, too */
    check(text_append(to, size, ";"));
    check(text_append(to, size, key));
    check(text_append(to, size, "="));
    check(text_append(to, size, value));
}

static bool is_own(const char *key)
{
    return text_starts_with(key, "NOMAD_") || text_equal(key, "IgnoreUnknown");
}

static char *arguments_of(const struct alloc_spec *alloc)
{
    const struct spec_pair own[] = {
        {"NOMAD_REGION", alloc->region}, {"NOMAD_NAMESPACE", alloc->namespace},
        {"NOMAD_JOB_ID", alloc->job_id}, {"NOMAD_GROUP_NAME", alloc->group},
        {"NOMAD_ALLOC_ID", alloc->id},
    };
    size_t size = sizeof("IgnoreUnknown=true");

    for (size_t i = 0; i < COUNT_OF(own); i++)
        size += strlen(own[i].key) + strlen(own[i].value) + 2;
    for (size_t i = 0; i < alloc->cni_args.count; i++)
        size += strlen(alloc->cni_args.items[i].key) + strlen(alloc->cni_args.items[i].value) + 2;
    char *text = calloc(1, size);
    check(text != NULL);
    check(text_copy(text, size, "IgnoreUnknown=true"));
    for (size_t i = 0; i < alloc->cni_args.count; i++) {
        if (!is_own(alloc->cni_args.items[i].key))
            add_argument(text, size, alloc->cni_args.items[i].key, alloc->cni_args.items[i].value);
    }
    for (size_t i = 0; i < COUNT_OF(own); i++)
        add_argument(text, size, own[i].key, own[i].value);
    return text;
}

char *network_order(const struct hooks_network *config, const struct alloc_spec *alloc)
{
    scoped_string char *arguments = arguments_of(alloc);
    bool own = spec_has_namespace(alloc);
    json_t *order = packed(json_pack("{s:s, s:s, s:s, s:o}", "Mode", own ? alloc->network_mode : "",
                                     "Hostname", own ? alloc->hostname : "", "Args", arguments,
                                     "Ports", ports_of(config, alloc)));

    if (alloc->has_dns)
        check(json_object_set_new(order, "DNS",
                                  json_pack("{s:o, s:o, s:o}", "Servers",
                                            texts_of(&alloc->dns_servers), "Searches",
                                            texts_of(&alloc->dns_searches), "Options",
                                            texts_of(&alloc->dns_options))) == 0);
    char *text = json_dumps(order, JSON_COMPACT);
    check(text != NULL);
    json_decref(order);
    return text;
}
