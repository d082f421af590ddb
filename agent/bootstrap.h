/* The first token, where the configuration says which it is (acl.bootstrap_secret_file). */
#ifndef CAIRN_AGENT_BOOTSTRAP_H
#define CAIRN_AGENT_BOOTSTRAP_H

#include "base/base.h"

struct parts;

/* Asks for it, if there has been none yet: before anybody else can.  ERR_* if the file does not say
 * which it is. */
int bootstrap_ask(struct parts *parts, struct err *err);

/* True if nobody else may make the first token: the configuration says which it is to be. */
bool bootstrap_is_configured(const struct parts *parts);

#endif
