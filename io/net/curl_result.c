/* What libcurl's results mean to a caller: two tables. */
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

/* Which of its results 7.88 gives for what a peer does was found by doing it: test_grpc.c. */
enum http_end curl_result_end(CURLcode result)
{
    static const struct {
        CURLcode result;
        enum http_end end;
    } map[] = {
        {CURLE_OK, HTTP_WHOLE},
        {CURLE_COULDNT_CONNECT, HTTP_UNCONNECTED},
        {CURLE_PARTIAL_FILE, HTTP_BROKEN_OFF},
        {CURLE_SEND_ERROR, HTTP_BROKEN_OFF},
        {CURLE_RECV_ERROR, HTTP_BROKEN_OFF},
        {CURLE_HTTP2_STREAM, HTTP_RESET},
        {CURLE_HTTP2, HTTP_SENT_AWAY},
        {CURLE_GOT_NOTHING, HTTP_STRANGE},
        {CURLE_WEIRD_SERVER_REPLY, HTTP_STRANGE},
        {CURLE_UNSUPPORTED_PROTOCOL, HTTP_STRANGE},
    };

    for (size_t i = 0; i < COUNT_OF(map); i++) {
        if (map[i].result == result)
            return map[i].end;
    }
    return HTTP_OURS;
}
