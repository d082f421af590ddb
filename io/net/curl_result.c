/* What libcurl's results mean to a caller: a table. */
#include "io/net/curl_result.h"

int curl_result_code(CURLcode result)
{
    static const struct {
        CURLcode result;
        int code;
    } map[] = {
        {CURLE_COULDNT_RESOLVE_HOST, ERR_AGAIN},
        {CURLE_COULDNT_RESOLVE_PROXY, ERR_AGAIN},
        {CURLE_COULDNT_CONNECT, ERR_AGAIN},
        {CURLE_OPERATION_TIMEDOUT, ERR_TIMEOUT},
        {CURLE_URL_MALFORMAT, ERR_INVALID},
        {CURLE_UNSUPPORTED_PROTOCOL, ERR_INVALID},
        {CURLE_BAD_FUNCTION_ARGUMENT, ERR_INVALID},
        {CURLE_TOO_MANY_REDIRECTS, ERR_LIMIT},
        {CURLE_PEER_FAILED_VERIFICATION, ERR_REFUSED},
        {CURLE_SSL_CACERT_BADFILE, ERR_REFUSED},
    };

    for (size_t i = 0; i < COUNT_OF(map); i++) {
        if (map[i].result == result)
            return map[i].code;
    }
    return ERR_IO;
}
