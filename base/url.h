/* What of a URL anybody may read. */
#ifndef CAIRN_BASE_URL_H
#define CAIRN_BASE_URL_H

#include <stdbool.h>

/* The parts of a URL without its user, query and fragment, which may hold secrets.  They point into
 * it. */
struct url_shown {
    const char *scheme; /* with its "://", and what a getter wrote before it; may be empty */
    int scheme_length;
    const char *place; /* host and path */
    int place_length;
    bool user; /* there is one, or what may be one */
    char rest; /* '?' or '#' if more follows, 0 if not */
};

/* Of something without "://", which is a path or a host of git with its user, all before the query
 * is shown. */
struct url_shown url_shown(const char *url);

#endif
