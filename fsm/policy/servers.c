/*
 * How a node keeps up with its servers: when it tries again, and what an answer of theirs means for
 * an alloc.
 *
 * Times follow nomad v2.0.5 client/client.go (getHeartbeatRetryIntv, registerNode, allocSync) and
 * client/allocwatcher, with one difference: a first registration is tried again after a second and
 * then ever later, and not after half a minute at once.
 */
#include "fsm/policy.h"

#include <string.h>

enum {
    REGISTER_FIRST_MS = 1000,
    REGISTER_LAST_MS = 15000,
    BEAT_SOON_MS = 1000,
    BEAT_LATE_MS = 25000,
    BEAT_LATE_SPREAD_MS = 5000,
    BEAT_NEVER_MS = 15000, /* no heartbeat was ever answered, or nobody leads */
    BEAT_GRACE_MS = 30000, /* this long after its time one more is as urgent as can be */
    ASK_AGAIN_MS = 5000,
    AWAIT_AGAIN_MS = 30000,
    FACT_FIRST_MS = 250,
    FACT_LAST_MS = 60000,
    FACT_TRIES_MAX = 12,
    PUSH_AGAIN_MS = 5000,
    TELL_NODE_MS = 5000,
    TELL_NEW_NODE_MS = 200,
    BEAT_LIMIT_LEAST_MS = 2000,
    BEAT_LIMIT_MOST_MS = 10000,
    BEAT_PARTS = 3, /* of its time, of which one server may have one */
    PUSH_URGENT_MS = 200,
    PUSH_LAZY_MS = 1000,
    FIND_VOLUMES_MS = 300000, /* in which servers have a leader again */
    FIND_DISK_MS = 300000,    /* likewise */
};

/* LEAST and at most as much again. */
static uint64_t spread(uint64_t least, uint64_t draw)
{
    return least + draw % (least + 1);
}

/* Each of them has had its turn, and none has answered. */
bool policy_seeks_servers(uint32_t tries, size_t known)
{
    return tries >= known;
}

uint64_t policy_register_again_ms(uint32_t tries, uint64_t draw)
{
    uint64_t least = REGISTER_FIRST_MS;

    for (; tries > 1 && least < REGISTER_LAST_MS; tries--)
        least *= 2;
    return spread(least < REGISTER_LAST_MS ? least : REGISTER_LAST_MS, draw);
}

uint64_t policy_beat_every_ms(int64_t ttl_ns)
{
    int64_t ttl_ms = ttl_ns / 1000000;

    return ttl_ms > BEAT_SOON_MS ? (uint64_t)ttl_ms : BEAT_SOON_MS;
}

uint64_t policy_beat_limit_ms(const struct heartbeat *last)
{
    uint64_t part_ms = last->ttl_ms / BEAT_PARTS;

    if (last->heard_ms == 0 || part_ms > BEAT_LIMIT_MOST_MS)
        return BEAT_LIMIT_MOST_MS;
    return part_ms < BEAT_LIMIT_LEAST_MS ? BEAT_LIMIT_LEAST_MS : part_ms;
}

uint64_t policy_beat_again_ms(const struct heartbeat *last, uint64_t now_ms, uint64_t draw)
{
    uint64_t due_ms = last->heard_ms + last->ttl_ms;
    uint64_t apart = due_ms > now_ms ? due_ms - now_ms : now_ms - due_ms;

    if (last->heard_ms == 0 || last->leaderless)
        return spread(BEAT_NEVER_MS, draw);
    if (due_ms <= now_ms && apart < BEAT_GRACE_MS)
        return spread(BEAT_SOON_MS, draw);
    uint64_t wait_ms = draw % (apart + 1);
    if (wait_ms < BEAT_SOON_MS)
        return spread(BEAT_SOON_MS, draw);
    return wait_ms > BEAT_LATE_MS + BEAT_LATE_SPREAD_MS
               ? BEAT_LATE_MS + draw % (BEAT_LATE_SPREAD_MS + 1)
               : wait_ms;
}

uint64_t policy_ask_again_ms(uint64_t draw)
{
    return spread(ASK_AGAIN_MS, draw);
}

uint64_t policy_await_again_ms(uint64_t draw)
{
    return spread(AWAIT_AGAIN_MS, draw);
}

/* nomad client/config DefaultTemplateConfig NomadRetry, and consul-template config/retry.go. */
uint64_t policy_fact_again_ms(uint32_t tries, uint64_t draw)
{
    uint64_t least = FACT_FIRST_MS;

    for (; tries > 1 && least < FACT_LAST_MS; tries--)
        least *= 2;
    least = least < FACT_LAST_MS ? least : FACT_LAST_MS;
    return least + draw % (least / 4 + 1);
}

bool policy_fact_is_refused(uint32_t refusals)
{
    return refusals > FACT_TRIES_MAX;
}

uint64_t policy_tell_node_ms(bool is_new, uint64_t draw)
{
    return is_new ? TELL_NEW_NODE_MS : spread(TELL_NODE_MS, draw);
}

uint64_t policy_find_volumes_ms(void)
{
    return FIND_VOLUMES_MS;
}

uint64_t policy_find_disk_ms(void)
{
    return FIND_DISK_MS;
}

uint64_t policy_push_again_ms(uint64_t draw)
{
    return spread(PUSH_AGAIN_MS, draw);
}

uint64_t policy_push_after_ms(enum status_haste haste)
{
    return haste == STATUS_URGENT ? PUSH_URGENT_MS : PUSH_LAZY_MS;
}

/* Words of servers, nomad v1.1.2 to v2.0.5: of their RPC, nomad/structs/csi.go and errors.go, and
 * nomad/csi_endpoint.go.  The first that is found counts. */
static const struct {
    const char *words;
    enum claim_trouble trouble;
} claim_words[] = {
    {"No cluster leader", CLAIM_TROUBLE_SERVERS},
    {"Not ready to serve consistent reads", CLAIM_TROUBLE_SERVERS},
    {"leadership lost", CLAIM_TROUBLE_SERVERS},
    {"leadership transfer in progress", CLAIM_TROUBLE_SERVERS},
    {"not the leader", CLAIM_TROUBLE_SERVERS},
    {"no servers", CLAIM_TROUBLE_SERVERS},
    {"failed to get conn", CLAIM_TROUBLE_SERVERS},
    {"connection re", CLAIM_TROUBLE_SERVERS}, /* fused, set by peer */
    {"i/o timeout", CLAIM_TROUBLE_SERVERS},
    {"rpc error: EOF", CLAIM_TROUBLE_SERVERS},
    {"max claims reached", CLAIM_TROUBLE_PASSES},
    {"CSI client error (retryable)", CLAIM_TROUBLE_PASSES},
    {"unschedulable", CLAIM_TROUBLE_PASSES},
    {"plugin not found", CLAIM_TROUBLE_PASSES}, /* its node has just come back */
    {"missing external node ID", CLAIM_TROUBLE_PASSES},
    {"No path to node", CLAIM_TROUBLE_PASSES},
    {"Permission denied", CLAIM_TROUBLE_PASSES}, /* to a node that they have lost: it comes back */
    {"context deadline exceeded", CLAIM_TROUBLE_PASSES},
    {"volume not found", CLAIM_TROUBLE_GONE},
    {"no such volume", CLAIM_TROUBLE_GONE},
    {"Unknown allocation", CLAIM_TROUBLE_GONE}, /* whose claims they drop by themselves */
    {"allocation missing", CLAIM_TROUBLE_GONE},
};

enum claim_trouble policy_claim_trouble(int code, const char *text)
{
    if (code != ERR_REFUSED)
        return CLAIM_TROUBLE_SERVERS;
    for (size_t i = 0; i < COUNT_OF(claim_words); i++) {
        if (strstr(text, claim_words[i].words) != NULL)
            return claim_words[i].trouble;
    }
    return CLAIM_TROUBLE_STAYS;
}

enum node_trouble policy_node_trouble(int code, const char *text)
{
    if (code != ERR_REFUSED)
        return NODE_TROUBLE_NONE;
    if (strstr(text, "node not found") != NULL ||
        strstr(text, "node secret ID does not match") != NULL)
        return NODE_TROUBLE_UNKNOWN;
    return strstr(text, "Permission denied") != NULL ? NODE_TROUBLE_DENIED : NODE_TROUBLE_NONE;
}

bool policy_is_over_for_others(const char *client_status)
{
    static const char *const words[] = {"complete", "failed", "lost", "unknown"};

    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (text_equal(client_status, words[i]))
            return true;
    }
    return false;
}

bool policy_awaits_in_vain(int code, const char *text)
{
    return code == ERR_REFUSED && (strstr(text, "Unknown allocation") != NULL ||
                                   strstr(text, "Permission denied") != NULL);
}

bool policy_is_withdrawn(int code, const char *text)
{
    return code == ERR_REFUSED && strstr(text, "service registration not found") != NULL;
}

bool policy_may_answer_later(int code, const char *text)
{
    return code != ERR_REFUSED || strstr(text, "No cluster leader") != NULL;
}

bool policy_is_not_asked(int code, const char *text)
{
    return code == ERR_REFUSED && strstr(text, "can't find method") != NULL;
}

bool policy_is_denied(int code, const char *text)
{
    static const char *const words[] = {"Permission denied", "ACL token not found",
                                        "ACL token expired"};

    for (size_t i = 0; code == ERR_REFUSED && i < COUNT_OF(words); i++) {
        if (text_ends_with(text, words[i]))
            return true;
    }
    return false;
}

bool policy_has_task_api(uint8_t state)
{
    static const bool has[T_COUNT] = {
        [T_STARTING] = true, [T_RUNNING] = true,  [T_PREKILL] = true,
        [T_DELAYING] = true, [T_STOPPING] = true,
    };

    check(state < T_COUNT);
    return has[state];
}

enum wanted_order policy_wanted(const struct alloc *alloc, uint64_t have,
                                const struct wanted *wanted)
{
    if (alloc == NULL)
        return wanted->run && !wanted->over ? WANTED_ASSIGN : WANTED_IGNORED;
    if (!wanted->run)
        return alloc->stop_wanted ? WANTED_IGNORED : WANTED_STOP;
    if (wanted->index <= have || alloc->ended_unix_ns != 0)
        return WANTED_GO_ON;
    return wanted->unknown ? WANTED_RECONNECT : WANTED_UPDATE;
}
