/* What the files of this room share: the plugins, and what is asked of one. */
#ifndef CAIRN_PLUGINS_PART_H
#define CAIRN_PLUGINS_PART_H

#include "plugins/plugins.h"

#include "io/grpc.h"
#include "plugins/driver/driver.h"
#include "plugins/process/process.h"

/* What a machine asks of its plugin, one thing on a lane at a time. */
struct question {
    struct plugin_held *plugin;
    plugin_asked *cb; /* NULL: nothing is asked */
    void *ctx;
    struct grpc_request *call; /* under way */
    const char *method;        /* of that, for people */
    struct plugin_identity identity;
};

/* A call of somebody else's, until it is answered. */
struct reserving {
    struct plugin_held *plugin;
    struct grpc_request *call;
    plugin_reserved *cb;
    void *ctx;
    struct reserving *next, *prev;
};

/* What a plugin for a driver has said. */
struct plugin_drives {
    char name[SPEC_DRIVER_SIZE], version[sizeof(((struct plugin_identity *)0)->version)];
    struct plugin_capabilities capabilities;
    char *schema; /* of tasks; owned, NULL: it has not said it */
    size_t schema_length;
    bool answers, has_told; /* how it is */
    struct driver_state state;
    struct grpc_request *events; /* a stream, NULL: not open */
};

struct plugin_held {
    struct plugins *plugins;
    struct plugin_held *next, *prev;
    char name[PLUGIN_NAME_SIZE], directory[PATH_SIZE];
    json_t *config; /* NULL: none; owned */
    struct process *process;
    uint32_t generation;
    struct question process_question, question; /* of its process, and of what is behind it */

    struct grpc_request *fingerprint, *statistics, *prints; /* streams, NULL: not open */
    struct err untold; /* why it tells no more of its devices; code 0: it does */
    bool prints_nothing;
    json_t *devices, *stats;      /* owned; NULL: none */
    struct plugin_drives *drives; /* owned; NULL: no driver, or it is not known yet */
    bool is_known;                /* what it is */
    struct reserving *reserving;
};

struct plugins {
    struct loop *loop;
    char directory[PATH_SIZE], cgroup[CGROUP_NAME_SIZE];
    enum cgroup_mode cgroup_mode;
    uint32_t cores, core_mhz;
    void (*on_exit)(void *ctx, const char *name, uint32_t generation, const struct exited *exited);
    void (*on_devices)(void *ctx, const char *name);
    void (*on_driver)(void *ctx, const char *driver);
    void (*on_task_event)(void *ctx, const struct plugin_task_event *event);
    const char *(*driver_fault)(void *ctx, const char *driver);
    void *ctx;
    struct plugin_held *held;
};

static inline struct plugin_held *held_find(const struct plugins *plugins, const char *name)
{
    struct plugin_held *plugin = plugins->held;

    while (plugin != NULL && !text_equal(plugin->name, name))
        plugin = plugin->next;
    return plugin;
}

/* --- questions --- */

/* The answer to QUESTION; a call of it that is under way is forgotten. */
void question_end(struct question *question, const struct started *started, const struct err *err);

/* Asks METHOD ("/service/Name") of it; its answer, at most BYTES_MAX long, goes to CB.  If it
 * cannot be asked, the question ends. */
void question_call(struct question *question, const char *method, const void *message,
                   size_t length, uint64_t timeout_ms, size_t bytes_max,
                   void (*cb)(void *ctx, const struct grpc_reply *reply));

/* --- what it is followed by --- */

/* Opens all streams that are not open. */
void plugin_follow(struct plugin_held *plugin);
void plugin_unfollow(struct plugin_held *plugin);

/* The devices that are known are those that were kept, or none any more. */
void plugin_recall(struct plugin_held *plugin);
void plugin_forget(struct plugin_held *plugin);

/* --- streams.c --- */

enum { PLUGIN_SET_BYTES_MAX = 4 << 20 }; /* of a message that comes by one */

void plugin_open_stream(struct plugin_held *plugin, struct grpc_request **ret_stream,
                        const char *method, const void *request, size_t length,
                        bool (*on_message)(void *ctx, const void *message, size_t length),
                        void (*on_end)(void *ctx, const struct grpc_reply *reply));
void plugin_close_stream(struct grpc_request **stream);

/* The stream that says how it is has ended, as REPLY says: that is told when it is asked next. */
void plugin_note_silence(struct plugin_held *plugin, const struct grpc_reply *reply,
                         const char *what);

/* NAME in the directory of PLUGIN; and bytes into it, not synced: they are of use as long as the
 * process that has said them. */
bool plugin_path(const struct plugin_held *plugin, const char *name, char to[PATH_SIZE]);
void plugin_keep(const struct plugin_held *plugin, const char *name, const void *bytes,
                 size_t length);

/* --- drives.c: what it says as a driver --- */

/* It is one from now on, NAME being looked at; what was known of another is forgotten. */
void drives_begin(struct plugin_held *plugin, const struct plugin_identity *identity);
void drives_forget(struct plugin_held *plugin); /* it is none, whatever it was */
void drives_free(struct plugin_held *plugin);

/* What it has said of itself is kept for the next daemon, and taken from what was kept: tasks of it
 * are there before it answers again.  CAPABILITIES is its answer. */
void drives_keep(const struct plugin_held *plugin, const void *capabilities, size_t length);
void drives_recall(struct plugin_held *plugin);

void drives_follow(struct plugin_held *plugin);
void drives_unfollow(struct plugin_held *plugin);

/* Whoever waits for a reservation hears that there is none. */
void plugin_break_off(struct plugin_held *plugin);

#endif
