/*
 * The parts of a running node, made by daemon.c and handed at birth to whoever works with them.
 *
 * Nothing here is owned by who reads it; everything lives as long as the daemon.
 */
#ifndef CAIRN_AGENT_PARTS_H
#define CAIRN_AGENT_PARTS_H

#include "agent/config/config.h"
#include "agent/crash.h"
#include "agent/node/health.h"
#include "agent/node/node.h"
#include "agent/parser.h"
#include "agent/specs.h"
#include "agent/tally.h"
#include "core/life.h"
#include "csi/plugins.h"
#include "drivers/drivers.h"
#include "hooks/hooks.h"
#include "io/loop.h"
#include "plugins/plugins.h"
#include "server/alone/alone.h"

struct acl_lent;
struct catalogue;
struct devices;
struct facts;
struct mesh;
struct nomad;

struct parts {
    const struct config *config;
    struct loop *loop;
    int listen_fd; /* for the API, made by whoever started us, moved to it; 0: it makes one */
    struct journal *journal;
    bool is_volatile; /* the journal is a copy in memory: its file system is read-only */
    struct life *life;
    struct core *core; /* of the life */
    struct drivers *drivers;
    struct hooks *hooks;
    struct csi_plugins *plugins;
    struct plugins *programs;     /* plugins that are programs of their own */
    struct devices *devices;      /* that those have */
    struct volumes *volumes;      /* of volumes.c */
    struct strays *strays;        /* volumes that nobody names, of perform/strays.c */
    struct hosted *hosted;        /* plugins of host volumes */
    struct host_call *host_calls; /* to them, under way, of perform/hosted.c */
    struct held *held;            /* effects that wait for one of those, of perform/hosted.c */
    struct alone *alone;
    struct storage *storage, *host_volumes; /* of alone */
    const struct control *control;          /* who answers for claims on volumes */
    struct disk_watch *disk;
    struct specs *specs;
    struct perform_call *calls; /* under way, of perform/calls.c */
    struct asking *asked;       /* of controller.c */
    struct script *scripts;     /* under way, of scripts.c */
    parser_function *parse;     /* parser_ask, or what a test puts in its place */
    struct crash crash;
    struct node node;
    bool has_asked_plugins, has_asked_consul; /* what they are, for the first time */
    uint64_t known_at_ms;                     /* of the loop: nobody is waited for any longer */
    struct health health;                     /* of its drivers */
    struct tally *tally;                      /* for those who watch */
    struct catalogue *catalogue;              /* what allocs offer */
    struct facts *facts;                      /* what templates ask for */
    struct mesh *mesh;         /* how their tasks reach Consul; NULL: there is none */
    struct task_api *task_api; /* how tasks ask servers; NULL: there are none */
    struct nomad *nomad;       /* with servers, who decide what runs; NULL: this node does */
    struct acl_lent *lent;     /* what they say of tokens; NULL: nobody is asked for one */
};

#endif
