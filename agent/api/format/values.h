/* Values as Nomad's JSON has them: text, times, pairs. */
#ifndef CAIRN_AGENT_API_FORMAT_VALUES_H
#define CAIRN_AGENT_API_FORMAT_VALUES_H

#include "spec/spec.h"

#include <jansson.h>

/* TEXT (NULL counts as "") as JSON; bytes that are no UTF-8 become question marks. */
json_t *api_text(const char *text);

/* Wall clock time as Go prints it: RFC 3339 with nanoseconds, UTC; 0 is Go's zero time. */
enum { API_TIME_SIZE = 40 };
void api_time(char to[API_TIME_SIZE], int64_t unix_ns);

/* TEXT as api_time has written it, as io/rpc.h has times: a new reference. */
json_t *api_wire_time(const char *text);

json_t *api_pairs(const struct spec_pairs *pairs);

/* Field NAME of OBJECT: VALUE (moved), TEXT (NULL counts as ""), NUMBER.  Without memory the
 * process ends. */
void api_set(json_t *object, const char *name, json_t *value);
void api_set_text(json_t *object, const char *name, const char *text);
void api_set_number(json_t *object, const char *name, uint64_t number);

#endif
