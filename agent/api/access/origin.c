/*
 * Web pages that an operator looks at must not reach what his browser can: where no tokens are
 * asked for, whoever may register a job runs programs.
 *
 * Three ways lead from a page here.  A script's request and a form's bear an Origin: refused.  An
 * image or a link is a GET: none changes anything, but for those that no browser sends (routes with
 * API_GET_CHANGES: Nomad's client library collects garbage by GET).  And a name that belongs to
 * somebody else may be pointed at our address: what a request calls us is looked at.
 */
#include "agent/api/part.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

bool api_is_loopback(const char *address)
{
    struct in_addr four;
    struct in6_addr six;

    if (inet_pton(AF_INET, address, &four) == 1)
        return ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET;
    if (inet_pton(AF_INET6, address, &six) != 1)
        return false;
    return IN6_IS_ADDR_LOOPBACK(&six) ||
           (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == IN_LOOPBACKNET);
}

/* True if NAME is one of LIST, which commas and spaces divide. */
static bool is_listed(const char *list, const char *name)
{
    static const char between[] = ", \t";
    size_t length = strlen(name);

    for (const char *at = list + strspn(list, between); *at != '\0'; at += strspn(at, between)) {
        size_t here = strcspn(at, between);

        if (here == length && strncasecmp(at, name, length) == 0)
            return true;
        at += here;
    }
    return false;
}

bool api_is_own_name(const struct config *config, const char *authority)
{
    char host[256];
    struct in6_addr address;

    if (!text_copy(host, sizeof(host), authority[0] == '[' ? authority + 1 : authority))
        return false;
    char *end = authority[0] == '[' ? strchr(host, ']') : strrchr(host, ':');
    if (end != NULL)
        *end = '\0';
    /* One that is bound beyond loopback has names that it cannot know, unless it is told. */
    if (config->allowed_hosts[0] == '\0' && !api_is_loopback(config->bind_address))
        return true;
    return strcasecmp(host, "localhost") == 0 || inet_pton(AF_INET, host, &address) == 1 ||
           inet_pton(AF_INET6, host, &address) == 1 || strcasecmp(host, config->name) == 0 ||
           is_listed(config->allowed_hosts, host);
}

/* Browsers name themselves Mozilla, all of them and always, and tell programs on this machine what
 * they fetch for (Sec-Fetch-*); a page can change neither without asking us first, which a request
 * with an Origin does.  Who says nothing of himself may be one. */
bool api_is_by_program(const struct http_exchange *exchange)
{
    static const char *const of_browsers[] = {"sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest",
                                              "referer", "cookie"};
    const char *agent = http_header(exchange, "user-agent");

    for (size_t i = 0; i < COUNT_OF(of_browsers); i++) {
        if (http_header(exchange, of_browsers[i]) != NULL)
            return false;
    }
    return http_header(exchange, "x-nomad-token") != NULL ||
           (agent != NULL && agent[0] != '\0' && strcasestr(agent, "mozilla") == NULL);
}

bool api_is_foreign(const struct api *api, const struct http_exchange *exchange)
{
    const char *host = http_header(exchange, "host");

    if (http_header(exchange, "origin") != NULL)
        return true; /* of another page: this agent has served none */
    if (http_is_local(exchange))
        return false; /* no name leads to a UNIX socket, and no page */
    return host != NULL && !api_is_own_name(api->parts->config, host);
}
