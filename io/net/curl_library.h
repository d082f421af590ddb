/*
 * libcurl as a table of functions; only this header includes curl/curl.h.
 *
 * The library is loaded at the first use and never linked: it and what it pulls in cost as much
 * memory as the whole daemon may use, and a node without Consul, Docker or artifacts never needs
 * it.
 */
#ifndef CAIRN_IO_NET_CURL_LIBRARY_H
#define CAIRN_IO_NET_CURL_LIBRARY_H

#include "base/base.h"

#include <curl/curl.h>

/* What is used of it, found by name. */
#define CURL_CALLS(X)                                                                              \
    X(global_init)                                                                                 \
    X(easy_init)                                                                                   \
    X(easy_setopt)                                                                                 \
    X(easy_getinfo)                                                                                \
    X(easy_strerror)                                                                               \
    X(easy_cleanup)                                                                                \
    X(easy_perform)                                                                                \
    X(easy_send)                                                                                   \
    X(easy_recv)                                                                                   \
    X(multi_init)                                                                                  \
    X(multi_setopt)                                                                                \
    X(multi_add_handle)                                                                            \
    X(multi_remove_handle)                                                                         \
    X(multi_socket_action)                                                                         \
    X(multi_assign)                                                                                \
    X(multi_info_read)                                                                             \
    X(multi_timeout)                                                                               \
    X(multi_cleanup)                                                                               \
    X(slist_append)                                                                                \
    X(slist_free_all)                                                                              \
    X(url)                                                                                         \
    X(url_set)                                                                                     \
    X(url_get)                                                                                     \
    X(url_cleanup)                                                                                 \
    X(free)

/* The header turns some of these names into macros with arguments, which have no place here. */
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

struct curl_library {
    bool loaded;
#define X(name) __typeof__(curl_##name) *name;
    CURL_CALLS(X)
#undef X
};

extern struct curl_library curl_library;

struct http_trust;

/* What TRUST (may be NULL) says, for calls of EASY. */
void curl_library_trust(CURL *easy, const struct http_trust *trust);

/* Fills the table, once; ERR_UNSUPPORTED if the library is missing or too old. */
int curl_library_load(struct err *err);

#endif
