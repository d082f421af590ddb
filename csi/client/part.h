/* Inside the client: messages of CSI as bytes, and as cairn's own structs. */
#ifndef CAIRN_CSI_CLIENT_PART_H
#define CAIRN_CSI_CLIENT_PART_H

#include "csi/csi.h"
#include "spec/arena.h"

/* 0 if REQUEST is one that its call has and the specification allows. */
int csi_check_request(const struct csi_request *request, struct err *err);

/* REQUEST, checked before, as bytes; owned by the caller, who wipes them. */
void *csi_encode(const struct csi_request *request, size_t *ret_length);

enum { CSI_DECODED_MAX = 32 << 20 }; /* memory for one answer */

/* Fills RET_ANSWER, all of it in ARENA, from the answer to CALL.  ERR_CORRUPT if it is no such
 * message, ERR_INVALID if it says what the specification does not allow, ERR_LIMIT if it is more
 * than is taken; then RET_ANSWER is not to be used. */
int csi_decode(enum csi_call call, const void *bytes, size_t length, struct arena *arena,
               struct csi_answer *ret_answer, struct err *err);

size_t csi_secrets_count(const struct csi_secrets *secrets); /* 0 for NULL */
const struct csi_pair *csi_secrets_pairs(const struct csi_secrets *secrets);

/* What must not be told of REQUEST: its secrets, what is to be mounted with, and what is hidden. */
struct csi_secrets *csi_secrets_of(const struct csi_request *request);

/* TEXT with *** for whatever of it is of SECRETS, cut at SIZE - 1 bytes; or, if one of them is so
 * short that this would give it away, a remark that says so. */
void csi_secrets_hide(const struct csi_secrets *secrets, const char *text, char *to, size_t size);

#endif
