/* What libcurl's results mean to a caller. */
#ifndef CAIRN_IO_NET_CURL_RESULT_H
#define CAIRN_IO_NET_CURL_RESULT_H

#include "io/http.h"
#include "io/net/curl_library.h"

/* The ERR_* that says what can be done about RESULT, a failure. */
int curl_result_code(CURLcode result);

#endif
