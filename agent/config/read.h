/* Private to the room: a file that is being read, and what a key of it may be set to. */
#ifndef CAIRN_AGENT_CONFIG_READ_H
#define CAIRN_AGENT_CONFIG_READ_H

#include "agent/config/part.h"

#include "spec/hcl.h"

enum key_kind {
    KEY_TEXT,
    KEY_BOOL,
    KEY_PORT,
    KEY_COUNT,
    KEY_PERCENT,
    KEY_DURATION,
    KEY_SIZE,         /* "100GB": bytes */
    KEY_MODE,         /* "private", or "host": true */
    KEY_CAPABILITIES, /* a list of names: their bits */
    KEY_PORTS,        /* "22,8000-8080" */
    KEY_CORES,        /* "0,2-3" */
    KEY_NETWORKS,     /* "10.0.0.0/8,fd00::/8" */
    KEY_SUBNET,       /* one of IPv4 */
    KEY_SUBNET_IPV6,
    KEY_IDS,       /* a text of ids and ranges */
    KEY_NAMES,     /* a list of texts: commas between */
    KEY_ADDRESSES, /* "127.0.0.1 unix:///PATH" */
    KEY_RULE,
};

struct key {
    unsigned section; /* of file.c, where it stands */
    const char *name;
    enum key_kind kind;
    size_t offset, size; /* in struct config, or in that of its block */
    /* NULL, or why VALUE cannot be. */
    const char *(*rule)(const json_t *value);
};

struct reader {
    struct config *config;
    struct host_network *host_network;    /* while one is read */
    struct spec_node_volume *host_volume; /* the same */
    struct config_csi_plugin *csi_plugin; /* the same */
    const char *name;                     /* of the file */
    struct hcl_file *file;                /* NULL: JSON */
    struct hcl_context *context;          /* NULL: JSON */
    struct err *err;
};

/* One line from what is wrong with a configuration file. */
int reader_take_error(struct reader *reader, const struct hcl_error *error);
int reader_complain(struct reader *reader, struct hcl_place place, const char *hint,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The block of the plugin NAME that is a program of its own: its BODY, or in JSON its VALUE.  Given
 * twice, in two files, it is the later one. */
int reader_plugin(struct reader *reader, const char *name, struct hcl_place place,
                  const struct hcl_body *body, json_t *value);

/* What KEY says, at FIELD, is VALUE from now on. */
int key_set(struct reader *reader, const struct key *key, void *field, struct hcl_place place,
            json_t *value);

#endif
