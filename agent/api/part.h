/*
 * Inside agent/api/ only: one request, how it is answered, and what they share.
 *
 * A handler answers its request exactly once, before it returns (api_reply_*, api_refuse) or later:
 * then it has taken the exchange over (api_defer, or a stream of its own).
 */
#ifndef CAIRN_AGENT_API_PART_H
#define CAIRN_AGENT_API_PART_H

#include "agent/api/api.h"
#include "agent/api/format/write.h"
#include "agent/api/streams/files.h"
#include "io/host.h"
#include "io/http.h"
#include "server/acl/acl.h"

#include <jansson.h>

enum {
    API_BODY_MAX = 8 << 20,            /* of a job */
    API_SHORT_BODY_MAX = 16 << 10,     /* read at once, and all that other requests may bring */
    API_BODIES_BYTES_MAX = 24 << 20,   /* that arrive; and as much that waits to be read */
    API_ANSWERS_BYTES_MAX = 128 << 20, /* on their way */
    API_CONNECTIONS_MAX = 1408,
    API_PARKED_MAX = 112,             /* blocking queries that wait at once */
    API_FOLLOWERS_MAX = 1024,         /* of files, logs, events and the agent's own log */
    API_DEFERRED_MAX = 256,           /* answers that wait for the daemon */
    API_READS_MAX = 24,               /* of files and logs, to their present end */
    API_SESSIONS_MAX = 32,            /* commands that are run in tasks */
    API_ASIDES_MAX = 24,              /* requests that threads of the pool work for */
    API_KNOCKS_MAX = 128,             /* that wait for what servers say of their tokens */
    API_STREAM_QUEUE_MAX = 128 << 10, /* bytes a reader may lag behind */
    API_STREAMS_BYTES_MAX = 16 << 20, /* and all readers together, but for a block of each */
    API_ARGUMENT_SIZE = 1024,
    API_SAFE_HEADERS = 2,
};

/* host_read_stats, or what a test puts in its place. */
typedef int api_host_reader(const char *data_dir, struct host_cpu_times *since,
                            struct host_stats *ret_stats, struct err *err);

/* What was seen of the host last (host.c). */
struct api_host {
    api_host_reader *read;
    struct host_stats stats; /* if KNOWN */
    bool known;
    bool hangs; /* the look that is under way takes long */
    int64_t unix_ns;
    uint64_t seen_ms;
    struct host_cpu_times cpu;
    struct err err;             /* of the last look */
    struct api_host_look *look; /* under way */
    struct api_host_waiter *waiters;
    size_t waiters_count;
};

/* What a thread of the pool reads of a request. */
enum api_reads {
    READS_NOTHING,
    READS_SHORT, /* a body of API_SHORT_BODY_MAX at most */
    READS_LONG,
    READINGS,
};

struct api {
    struct parts *parts;
    struct http_server *server, *local; /* on the network, on a UNIX socket; one may be NULL */
    char address[API_ADDRESS_SIZE];     /* of the first of them that there is */
    int64_t started_unix_ns;
    struct api_parked *parked; /* blocking queries */
    size_t parked_count;
    struct api_deferred *deferred; /* answers that wait for the daemon */
    size_t deferred_count;
    struct api_stream *streams;
    struct api_snapshot *snapshots;      /* disks that are packed for others */
    size_t followers_count, reads_count; /* of them */
    struct io_timer left_timer;          /* since one of them went */
    struct api_monitor *monitors;
    struct api_subscriber *subscribers; /* to events */
    uint64_t events_index;              /* of what was told last */
    struct past *past;                  /* events that were told; NULL: nobody has asked */
    struct io_timer past_linger;        /* to forget them, when all readers are gone */
    uint64_t node_digest;               /* of the node as it was then; 0: nobody asked */
    struct api_session *sessions;       /* commands in tasks */
    size_t sessions_count;
    struct api_aside *asides;          /* in the order in which they came */
    size_t asides_count, asides_bytes; /* but for those with a short body; of all bodies */
    unsigned readings[READINGS];       /* of these bodies that are being read */
    struct api_host host;
    struct api_kept *kept; /* answers (kept.c); NULL: nobody has asked yet */
    unsigned knocks_count; /* requests that wait for what servers say of their tokens */
};

struct api_request {
    struct api *api;
    struct http_exchange *exchange;
    const struct api_route *route;
    const char *argument;            /* what the first * in the route's path stood for, or "" */
    const char *namespace;           /* "default" unless given; "*": all */
    const char *prefix;              /* "" unless given */
    struct life_subject subject;     /* what the answer is about: its index is the answer's, */
    uint64_t index;                  /* unless that was settled before, 0: it was not */
    const struct acl_rights *rights; /* of its token: see api_is_allowed */
};

typedef void api_handler(struct api_request *request);

/* PUT is POST, too.  What changes something has no GET, though Go's client of Nomad uses it here
 * and there: only with the header of its token, whatever that says (origin.c). */
enum api_method {
    API_GET = 1,
    API_PUT = 2,
    API_DELETE = 4,
    API_GET_CHANGES = 8, /* a GET that changes something: of programs, see origin.c */
    API_ANY = API_GET | API_PUT | API_DELETE,
    API_PUT_OR_DELETE = API_PUT | API_DELETE,
    API_PUT_OR_GET = API_PUT | API_GET_CHANGES,
};

/* A route that blocks honours index and wait: it waits for a change of anything, of the job or the
 * alloc that its argument names, or of the job that an evaluation was of. */
enum api_blocks {
    BLOCKS_NOT,
    BLOCKS,
    BLOCKS_IF_TOKENS, /* the same where tokens are on */
    BLOCKS_ON_JOB,
    BLOCKS_ON_ALLOC,
    BLOCKS_ON_EVAL,
};

/* What the token of a request has to allow. */
enum api_scope {
    NEEDS_UNSAID,     /* no route has this */
    NEEDS_NOTHING,    /* or the handler looks by itself */
    NEEDS_NAMESPACE,  /* in the request's namespace, "*": in any */
    NEEDS_BODY,       /* in that of what its body describes: the handler looks again (api_may) */
    NEEDS_ALLOC,      /* in that of the alloc that is its argument */
    NEEDS_EVALUATION, /* the same */
    NEEDS_DEPLOYMENT,
    NEEDS_AREA,
    NEEDS_MANAGEMENT,
    NEEDS_MIGRATION, /* a token that is made for the alloc which is its argument */
};

struct api_need {
    enum api_scope scope;
    uint64_t any_of; /* capabilities */
    enum acl_area area;
    enum acl_level level;
};

struct api_route {
    const char *path; /* with a *, which stands for at least one byte, and a second, for a name */
    uint8_t methods;
    enum api_blocks blocks;
    api_handler *handle;
    struct api_need need;
};

extern const struct api_route api_routes[];
extern const size_t api_routes_count;

/* The route for PATH and one of METHOD, or for any method; NULL: there is none.  RET_ARGUMENT is
 * what the first * stands for. */
const struct api_route *api_route_of(const char *path, uint8_t method,
                                     char ret_argument[API_ARGUMENT_SIZE]);
const struct api_route *api_find_route(const char *path, char ret_argument[API_ARGUMENT_SIZE]);

/* What the answer of ROUTE to REQUEST is about; borrowed from the request and the evaluation. */
struct life_subject api_subject(const struct api_request *request, const struct api_route *route);

/* --- whom it is from (access/origin.c) --- */

/* True if the request comes from a web page, or to a name that is not ours: somebody else's DNS may
 * have pointed it here. */
bool api_is_foreign(const struct api *api, const struct http_exchange *exchange);

/* True if no browser sent it: a GET of it may change something. */
bool api_is_by_program(const struct http_exchange *exchange);

/* True if AUTHORITY ("host", "host:port", "[v6]:port") may stand for the agent of CONFIG. */
bool api_is_own_name(const struct config *config, const char *authority);

/* --- whether he may (access/rights.c) --- */

/* True if servers have to be asked about the token of REQUEST first: AGAIN is called when they have
 * answered, or it was refused (access/knock.c). */
typedef void api_again(struct api *api, struct http_exchange *exchange);
bool api_knocks(struct api_request *request, api_again *again);

/* True if the token of REQUEST, or that it has none, allows what its route needs; else it is
 * refused. From then on, until the next turn, its rights are known. */
bool api_is_allowed(struct api_request *request);

/* True if TOKEN (NULL: none) is the one for the disk of the alloc that it names
 * (access/migration.c). */
bool api_is_migrating(const struct api_request *request, const char *token);

/* True if it allows one of CAPABILITIES in NAMESPACE; the second refuses the request if not. */
bool api_may(const struct api_request *request, const char *namespace, uint64_t capabilities);
bool api_must(struct api_request *request, const char *namespace, uint64_t capabilities);

/* True if the request means what is in NAMESPACE, and may see it. */
bool api_namespace_matches(const struct api_request *request, const char *namespace);

/* True if a job of NAMESPACE that mounts what it does may be registered; else REQUEST is refused.
 */
bool api_may_register(struct api_request *request, const json_t *job);

/* The token that REQUEST shows, NULL: none; and what SECRET allows now, NULL: it is none
 * any more. */
const char *api_token(const struct api_request *request);
const struct acl_rights *api_rights_of(const struct api *api, const char *secret);

/* --- what a request says --- */

bool api_wants_pretty(const struct http_exchange *exchange);

/* The text NAME of the query, NULL: it has none, or an empty one. */
const char *api_query_text(const struct api_request *request, const char *name);

/* The boolean NAME of the query into RET_VALUE, which keeps its value if there is none; a request
 * with something else is refused and false returned. */
bool api_query_bool(struct api_request *request, const char *name, bool *ret_value);
bool api_query_number(struct api_request *request, const char *name, int64_t *ret_value);

/* The job that the request names, or NULL after refusing the request (jobs/jobs.c). */
const struct alone_job *api_find_job(struct api_request *request);

/* The body as JSON object, a new reference; NULL after refusing the request.  With MAY_BE_EMPTY no
 * body is an empty object.  For requests that are short: others have API_SHORT_BODY_MAX to obey. */
json_t *api_body(struct api_request *request, bool may_be_empty);

/* The same of a body that may have up to BYTES_MAX. */
json_t *api_long_body(struct api_request *request, bool may_be_empty, size_t bytes_max);

/* True unless BODY has a field NAME that is neither null nor of TYPE; JSON_TRUE: true or false. */
bool api_field_is(const json_t *body, const char *name, json_type type);

/* Lets ACT answer what BODY, owned, asks for, or refuses with what FAULT_OF finds wrong with it;
 * what has no body was refused already. */
void api_act(struct api_request *request, json_t *body,
             const char *(*fault_of)(const struct api_request *request, const json_t *body),
             void (*act)(struct api_request *request, const json_t *body));

/* --- what it asks for in vain (unserved.c) --- */

/* True if its query has nothing that Nomad acts on and its route does not; else it is refused. */
bool api_is_served(struct api_request *request);

/* True if this node decides what REQUEST is about; else servers do, and it is refused. */
bool api_is_decided_here(struct api_request *request);

/* True if its query names no other node and no other server, or ID (may be NULL), which is of its
 * body, no other node; else it is refused. */
bool api_is_of_this_agent(struct api_request *request);
bool api_names_this_node(struct api_request *request, const char *id);

/* The field of a job's registration BODY that Nomad acts on and we do not; NULL: there is none. */
const char *api_unserved_field(const json_t *body);

/* --- answers --- */

/* On all of them: no browser takes one for something else, or runs what is in it. */
extern const struct http_header_line api_safe_headers[API_SAFE_HEADERS];

/* The daemon's index, but never 0, which to a client means that it knows none. */
uint64_t api_index(const struct api *api);

/* The same of what REQUEST is about: the X-Nomad-Index of its answer. */
uint64_t api_index_of(const struct api_request *request);

/* 200 with BODY (moved) as JSON. */
void api_reply(struct api_request *request, json_t *body);

/* 200 with an empty body. */
void api_reply_nothing(struct api_request *request);

/* For a body that is written piece by piece, so that it is never a whole tree in memory; and 200
 * with it, after which it is freed. */
struct writer api_writer(const struct api_request *request);
void api_reply_written(struct api_request *request, struct writer *body);
void api_reply_bytes(struct api_request *request, const char *body, size_t length);

/* The same of what is right until something is committed or decided, whoever asks: the first
 * answers with what was written before, if it still is. */
bool api_reply_kept(struct api_request *request);
void api_reply_and_keep(struct api_request *request, struct writer *body);
void api_kept_close(struct api *api);

/* STATUS with one line of text. */
void api_refuse(struct api_request *request, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for text of any length. */
void api_refuse_text(struct api_request *request, int status, const char *text);

/* The status that says what ERR says; and the answer made of both. */
int api_status_of(const struct api *api, int code);
void api_refuse_err(struct api_request *request, const struct err *err);

/* What is wrong with a job: PROBLEMS, a line each, or if there are none what ERR says. */
void api_refuse_problems(struct api_request *request, const json_t *problems,
                         const struct err *err);

/* --- answering later --- */

/* A request whose answer waits for the daemon. */
struct api_deferred {
    struct api *api;
    struct http_exchange *exchange; /* NULL: the peer is gone */
    bool pretty;
    size_t waiting; /* answers of the daemon still to come */
    struct err err; /* the first that was a refusal */
    /* Makes the body once it is true; NULL: an empty one.  CTX is freed afterwards. */
    json_t *(*make)(struct api *api, void *ctx);
    void *ctx;
    struct api_deferred *next, **link;
};

/* Takes the exchange of REQUEST over; MAKE may be NULL, CTX is moved (free). */
struct api_deferred *api_defer(struct api_request *request,
                               json_t *(*make)(struct api *api, void *ctx), void *ctx);

/* A life_answer with a struct api_deferred as CTX: the last one answers the request. */
void api_deferred_answer(void *ctx, int code, const struct err *err);

/* Forgets those that still wait; nobody is there to be answered. */
void api_deferred_close(struct api *api);

/* The body {"Index": n} of writes without another result. */
json_t *api_make_index(struct api *api, void *ctx);

/* EVALUATION as the API shows it: a new reference (jobs/evals.c). */
struct alone_evaluation;
json_t *api_evaluation(struct api *api, const struct alone_evaluation *evaluation);

/* Those of JOB that are kept, as the API shows them, the newest first: a new reference
 * (jobs/deployments.c). */
json_t *api_deployments(const struct api *api, const struct alone_job *job);

/* --- counts of jobs (jobs/jobs.c) --- */

/* How a job's allocs are, group by group: zeroed, and its list freed by the caller. */
struct api_counting {
    struct api_job_counts *groups;
    size_t count, size;
};

/* Counts anew; the list is used again, and its names are JOB's. */
void api_count_job(struct api *api, const struct alone_job *job, struct api_counting *counting);

/* Those of all jobs, for those who watch (jobs/figures.c). */
struct sheet;
void api_put_job_figures(struct sheet *sheet, struct api *api);

/* --- children of jobs (jobs/dispatch.c) --- */

/* How the jobs are that were dispatched of one, by its namespace and id. */
struct api_family;

/* Of all jobs, or of those of PARENT only (NULL: of all): owned by the caller. */
struct api_family *api_families(struct api *api, const struct alone_job *parent);
void api_families_free(struct api_family *families);
struct api_job_children api_children(const struct api_family *families,
                                     const struct alone_job *job);

/* --- answering from another thread (aside.c) --- */

/* A request that a thread of the pool works for.  The first member of what RUN works on; zeroed but
 * for the three functions when it is started. */
struct api_aside {
    void (*run)(struct api_aside *aside); /* on the pool: sees nothing but what it is part of */
    /* On the loop, unless the peer has gone meanwhile: answers as a handler does. */
    void (*answer)(struct api_request *request, struct api_aside *aside);
    void (*free)(struct api_aside *aside);

    char *body; /* of the request, while RUN reads it */
    size_t body_length;

    struct api *api; /* private, as all that follows; NULL: it is gone */
    bool left;       /* the peer is gone, and the exchange with him */
    enum api_reads reading;
    parser_function *parse; /* with this program: */
    const char *parse_path;
    struct api_request request;
    char argument[API_ARGUMENT_SIZE];
    struct io_work work;
    bool running;
    struct api_aside *next, **link;
};

/* Takes REQUEST over, and refuses it if too many are under way already.  The second is for those
 * whose body is to be read. */
void api_aside_start(struct api_request *request, struct api_aside *aside);
void api_aside_read(struct api_request *request, struct api_aside *aside);

/* In RUN: what the body says, as the parser beside the daemon has read it, a new reference.  NULL
 * and ERR if that failed; RET_REFUSAL, if it is not NULL, is what is wrong with the text then,
 * which is the caller's, or NULL. */
json_t *api_aside_parse(const struct api_aside *aside, enum parse_kind kind, char **ret_refusal,
                        struct err *err);

/* Gives free memory back to the system, on the pool. */
void api_trim(struct api *api);

/* After the server: nobody is there to be answered. */
void api_asides_close(struct api *api);

/* --- what the host uses (host.c) --- */

struct api_host_view {
    const struct host_stats *stats; /* NULL: it was never seen; then: */
    const struct err *err;
    int64_t unix_ns; /* when it was seen, and how long ago that is */
    uint64_t age_ms;
};

/* Takes REQUEST over; GIVE answers it with what is seen now, or, if that takes long, with what was
 * seen last. */
void api_host_ask(struct api_request *request,
                  void (*give)(struct api_request *request, const struct api_host_view *view));

/* After the server. */
void api_host_close(struct api *api);

/* Where the data directory is, "": nobody knows. */
const char *api_device(const struct api *api);

/* --- jobs, common to several files --- */

struct alone_evaluation;

/* Answers, once it is true, as to one who has registered a job, or stopped one, by EVALUATION;
 * REMARK ("": none) is one of the warnings. */
void api_reply_evaluation(struct api_request *request, const struct alone_evaluation *evaluation,
                          const char *remark);

/* --- allocs, common to several files --- */

/* The alloc that the request's argument names, or NULL after refusing the request. */
const struct alloc *api_alloc_of(struct api_request *request, const char *id,
                                 struct machine_id *ret_id);

/* Which allocs a list shows: those for which KEEP holds, in NAMESPACE ("*": all); of one job, or
 * with JOB NULL of all.  PARTS: what of each. */
enum { API_ALLOC_FULL = 1, API_ALLOC_TASK_STATES = 2, API_ALLOC_RESOURCES = 4 };
struct api_selection {
    const char *namespace, *job;
    unsigned parts;
    bool (*keep)(void *ctx, const char *id, const struct alloc *alloc); /* NULL: all */
    void *ctx;
};

/* Writes ID's alloc: all of it, or as a list shows it. */
void api_put_alloc(struct writer *to, struct api *api, const char *id, const struct alloc *alloc,
                   unsigned parts);

/* Answers with those allocs, newest first. */
void api_reply_allocs(struct api_request *request, const struct api_selection *selection);

/* --- streams --- */

/* Its place among those that there may be; part of what streams. */
struct api_stream {
    struct api *api;
    struct http_exchange *exchange;
    bool taken, follows;
    uint64_t stalled_ms; /* since then its peer has not taken what is queued; 0: it has */
    struct api_stream *next, **link;
};

/* Takes a place for REQUEST; false, and the request refused, if there is none: not even that of one
 * whose peer has long not taken anything. */
bool api_stream_take(struct api_request *request, struct api_stream *stream, bool follows);
void api_stream_give(struct api_stream *stream);

/* Begins the answer, as text or as frames. */
void api_stream_begin(struct http_exchange *exchange, bool plain, void (*on_drain)(void *ctx),
                      void *ctx);

/* The peer takes what is queued, or not. */
void api_stream_stalls(struct api_stream *stream, bool stalls);

/* What to read, and how. */
struct api_reading {
    char root[API_ROOT_SIZE], path[API_PATH_SIZE];
    char task[SPEC_NAME_SIZE], type[8]; /* a log; task is empty for other files */
    bool plain, follow, from_end;
    int64_t offset; /* from the origin, not negative */
    int64_t left;   /* bytes wanted, -1: all */
};

/* Answers REQUEST with what READING says; takes it over. */
void api_stream_start(struct api_request *request, const struct api_reading *reading);

/* Refuses a path: what is forbidden with 403, the rest by its error. */
void api_refuse_file(struct api *api, struct http_exchange *exchange, const struct err *err);

/* Writes one frame {"Offset","Data","File","FileEvent"} and returns the bytes that wait. */
struct api_frame {
    int64_t offset;
    const char *file, *event; /* or NULL */
    const void *data;
    size_t length;
};
json_t *api_format_frame(const struct api_frame *frame);
size_t api_frame_write(struct http_exchange *exchange, const struct api_frame *frame);

void api_monitors_close(struct api *api);

/* Before the server: nobody is told of anything any more (streams/events.c). */
void api_events_close(struct api *api);

/* The node, a new reference: all of it, or an entry of a list with PARTS (api_node_part). */
json_t *api_node(struct api *api, unsigned parts);

/* After the server: what is still packed ends (streams/snapshot.c). */
void api_snapshots_close(struct api *api);

/* After the server: what is run in tasks ends (streams/exec.c). */
void api_sessions_close(struct api *api);

/* --- storage plugins (storage/plugins.c) --- */

/* What one of them was asked because of a request, as part of its answer: a new reference to
 * ANSWER, null if there is none, or {"Error"}. */
json_t *api_passed(int code, const struct err *err, const json_t *answer);

/* What the node says of those that have ROLE, by their ids: a new reference. */
json_t *api_node_plugins(struct api *api, enum csi_role role);

/* Each id that runs, or that a job wants to. */
void api_each_plugin(struct api *api, void (*cb)(void *ctx, const char *id), void *ctx);

/* --- handlers, by file --- */

api_handler api_acl_bootstrap, api_acl_policies, api_acl_policy_get, api_acl_policy_put,
    api_acl_policy_delete, api_acl_tokens, api_acl_token_create, api_acl_token_self,
    api_acl_token_get, api_acl_token_update, api_acl_token_delete;

api_handler api_jobs_list, api_jobs_register, api_jobs_parse, api_job_get, api_job_delete,
    api_job_allocations, api_job_evaluations, api_job_evaluate, api_job_summary, api_job_versions,
    api_job_submission, api_job_tag, api_job_deployment, api_job_deployments, api_job_update,
    api_job_revert, api_validate_job;
api_handler api_job_plan;
api_handler api_job_scale, api_job_scale_status, api_policies_list, api_policy_get;
api_handler api_job_dispatch;
api_handler api_job_force;
api_handler api_allocs_list, api_alloc_get, api_alloc_stop, api_alloc_stats, api_alloc_exec,
    api_job_action, api_job_actions, api_alloc_restart, api_alloc_signal, api_alloc_gc,
    api_client_gc, api_system_gc;
api_handler api_services_list, api_service_get, api_service_delete, api_alloc_services,
    api_alloc_checks;
api_handler api_evals_list, api_eval_get, api_eval_allocations, api_deployments_list,
    api_deployment_get, api_deployed_allocs, api_deployed_pause, api_deployed_promote,
    api_deployed_health, api_deployed_fail, api_deployed_unblock, api_search, api_unavailable;
api_handler api_volumes_list, api_volume_get, api_volume_register, api_volume_create,
    api_volume_forget, api_volume_delete, api_volume_detach, api_volumes_external,
    api_snapshots_list, api_snapshot_create, api_snapshot_delete;
api_handler api_host_volumes_list, api_host_volume_get, api_host_volume_create,
    api_host_volume_register, api_host_volume_delete;
api_handler api_plugins_list, api_plugin_get;
api_handler api_nodes_list, api_node_get, api_node_allocations, api_node_drain,
    api_node_eligibility, api_client_stats, api_metadata_get, api_metadata_apply;
api_handler api_alloc_snapshot;
api_handler api_fs_list, api_fs_stat, api_fs_cat, api_fs_readat, api_fs_stream, api_fs_logs;
api_handler api_agent_self, api_agent_health, api_agent_members, api_agent_servers,
    api_agent_set_servers, api_agent_monitor, api_status_leader, api_status_peers, api_regions,
    api_namespaces, api_namespace_get, api_metrics, api_event_stream;

#endif
