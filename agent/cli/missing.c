/*
 * Commands that Nomad has and cairn has not, each with the reason, or with what to use instead: who
 * types one is told so, and not that there is none.
 */
#include "agent/cli/cli.h"

static const char one_namespace[] = "there is one namespace here, \"default\"";
static const char no_variables[] = "variables are not kept here";
static const char enterprise[] = "it is of Nomad Enterprise";
static const char no_servers[] = "this node is its own control plane: there are no servers";
static const char no_keys[] = "there is no keyring: it is servers who sign identities";

/* clang-format off */
static const struct {
    const char *group, *name; /* group "": whatever begins with the name */
    const char *why;
} missing[] = {
    {"job",        "allocs",         "use: cairn job status JOB"},
    {"job",        "deployments",    "use: cairn job status JOB, or: cairn deployment list"},
    {"job",        "init",           "README.md has jobs to begin with"},
    {"alloc",      "pause",          "schedules of tasks are of Nomad Enterprise"},
    {"service",    "delete",         "a service goes with what offers it; use: cairn alloc stop"},
    {"node",       "identity",       no_keys},
    {"node",       "intro",          no_servers},
    {"node",       "pool",           "there is one pool of nodes here, \"default\""},
    {"eval",       "delete",         "evaluations go with the agent, of itself"},
    {"deployment", "unblock",        "deployments of several regions are of Nomad Enterprise"},
    {"volume",     "claim",          "claims of host volumes end with their allocs"},
    {"acl",        "auth-method",    "tokens are made here: cairn acl token create"},
    {"acl",        "binding-rule",   "tokens are made here: cairn acl token create"},
    {"acl",        "role",           "a token names its policies: cairn acl token create -policy"},
    {"system",     "reconcile",      "summaries are made of the allocs, and are never stale"},
    {"operator",   "api",            "use curl; the paths are Nomad's"},
    {"operator",   "autopilot",      no_servers},
    {"operator",   "client-state",   "use: cairn journal list"},
    {"operator",   "debug",          "use: cairn journal export, and: cairn operator metrics"},
    {"operator",   "gossip",         no_servers},
    {"operator",   "raft",           no_servers},
    {"operator",   "root",           no_keys},
    {"operator",   "scheduler",      "it has no other configuration than the jobs"},
    {"operator",   "snapshot",       "use: cairn journal export"},
    {"operator",   "utilization",    enterprise},
    {"",           "action",         "use: cairn job action"},
    {"",           "agent-info",     "use: cairn operator metrics"},
    {"",           "config",         "the agent says what is wrong with its configuration"},
    {"",           "exec",           "use: cairn alloc exec"},
    {"",           "fmt",            "files are read as they are, and not rewritten"},
    {"",           "license",        enterprise},
    {"",           "login",          "tokens are made here: cairn acl token create"},
    {"",           "namespace",      one_namespace},
    {"",           "quota",          enterprise},
    {"",           "recommendation", enterprise},
    {"",           "run",            "use: cairn job run"},
    {"",           "sentinel",       enterprise},
    {"",           "server",         no_servers},
    {"",           "setup",          "there is nothing to set up"},
    {"",           "start",          "use: cairn job start"},
    {"",           "stop",           "use: cairn job stop"},
    {"",           "tls",            "use openssl; cairn.1 says which files are read"},
    {"",           "ui",             "there is no web UI"},
    {"",           "var",            no_variables},
};
/* clang-format on */

const char *cli_missing(const char *group, const char *name)
{
    for (size_t i = 0; i < COUNT_OF(missing); i++) {
        if (text_equal(missing[i].group, group) && text_equal(missing[i].name, name))
            return missing[i].why;
    }
    return NULL;
}
