/*
 * Inside server/acl/: what its parts share.
 *
 * rights.c says what rights allow, and adds them up; policy.c reads them from a policy's text;
 * book.c keeps policies and tokens and stores them; requests.c is what callers ask
 * for.
 */
#ifndef CAIRN_SERVER_ACL_PART_H
#define CAIRN_SERVER_ACL_PART_H

#include "base/list.h"
#include "server/acl/acl.h"

#include <uthash.h>

/* What is granted by a name, in which a * stands for anything. */
struct acl_rule {
    char name[ACL_NAME_SIZE];
    uint64_t granted;
};

struct acl_rules {
    struct acl_rule *items;
    size_t count, size;
};

struct acl_rights {
    bool manages;
    struct acl_rules namespaces, volumes;
    enum acl_level levels[ACL_AREAS];
};

struct acl_rights *rights_new(void);

/* GRANTED of what has NAME, besides what was granted before; a denial is for ever. */
void rights_grant(struct acl_rules *rules, const char *name, uint64_t granted);
void rights_grant_area(struct acl_rights *rights, enum acl_area area, enum acl_level level);

/* All that FROM grants, too. */
void rights_add(struct acl_rights *rights, const struct acl_rights *from);

/* --- the book --- */

enum { DIGEST_TEXT_SIZE = 65 };

struct policy {
    char name[ACL_NAME_SIZE];
    json_t *json;              /* Nomad's ACLPolicy */
    struct acl_rights *rights; /* that its text grants */
    UT_hash_handle hh;
};

struct token {
    char accessor[UUID_TEXT_SIZE], digest[DIGEST_TEXT_SIZE];
    json_t *json;              /* Nomad's ACLToken without its secret */
    struct acl_rights *rights; /* NULL: to be added up when they are needed */
    UT_hash_handle hh, by_digest;
};

/* A change that the next commit decides. */
struct change {
    struct acl *acl;
    char key[JOURNAL_KEY_SIZE];
    json_t *json;   /* as it is stored; NULL: forgotten */
    json_t *answer; /* may be NULL */
    acl_answer *then;
    void *ctx;
    struct change *next, **link;
};

struct acl {
    struct acl_config config;
    struct policy *policies;
    struct token *tokens, *by_digest;
    bool policies_unsorted, tokens_unsorted;
    bool bootstrapped;
    struct acl_rights *anonymous; /* NULL: to be added up */
    struct change *changes;
};

/* The policy or token of a stored KEY says JSON (borrowed) from now on, NULL: it is forgotten.
 * NULL, or why it cannot be believed, and then nothing has changed. */
const char *book_apply(struct acl *acl, const char *key, const json_t *json);

/* Stores JSON (moved, NULL: nothing) under KEY; THEN hears of it with ANSWER (moved, may be NULL).
 */
void book_store(struct acl *acl, const char *key, json_t *json, json_t *answer, acl_answer *then,
                void *ctx);

/* Answers a request that changes nothing. */
void book_refuse(acl_answer *then, void *ctx, const struct err *err);

/* The index that the next commit has. */
json_int_t book_index(const struct acl *acl);

/* True if TOKEN has an end that is over. */
bool book_has_expired(const struct acl *acl, const struct token *token);

struct token *book_token(const struct acl *acl, const char *accessor);

/* True if SECRET is that of a token, be it one that has expired. */
bool book_has_secret(const struct acl *acl, const char *secret);

/* The SHA-256 of SECRET, in hexadecimal digits. */
void book_digest(const char *secret, char to[DIGEST_TEXT_SIZE]);

extern const char book_bootstrap_key[];

/* --- texts from outside --- */

/* True if NAME may be a policy's: letters, digits and dashes, at most 128. */
bool policy_name_is_valid(const char *name);

#endif
