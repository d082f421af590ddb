#include "base/url.h"

#include <string.h>

struct url_shown url_shown(const char *url)
{
    int length = (int)strcspn(url, "?#");
    struct url_shown shown = {
        .scheme = url, .place = url, .place_length = length, .rest = url[length]};
    const char *host = strstr(url, "://");

    if (host == NULL || host - url >= length)
        return shown;
    host += 3;
    shown.scheme_length = (int)(host - url);
    shown.place = host;
    for (const char *at = host; at < url + length && *at != '/'; at++) {
        if (*at == '@') { /* a password may hold some, too */
            shown.place = at + 1;
            shown.user = true;
        }
    }
    shown.place_length = (int)(url + length - shown.place);
    return shown;
}
