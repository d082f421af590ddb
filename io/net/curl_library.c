/*
 * Loads libcurl, whichever flavour there is: they differ in their library for TLS.  It is never
 * unloaded: what it registers at exit must not be unmapped.
 */
#include "io/net/curl_library.h"

#include "io/http.h"

#include <dlfcn.h>

struct curl_library curl_library;

int curl_library_load(struct err *err)
{
    static const char *const names[] = {
#define X(name) "curl_" #name,
        CURL_CALLS(X)
#undef X
    };
    void **const places[] = {
#define X(name) (void **)(void *)&curl_library.name,
        CURL_CALLS(X)
#undef X
    };

    if (curl_library.loaded)
        return 0;
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return err_set(err, ERR_UNSUPPORTED, "libcurl cannot be loaded: %s", dlerror());
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        *places[i] = dlsym(library, names[i]);
        if (*places[i] == NULL)
            return err_set(err, ERR_UNSUPPORTED, "libcurl is too old: it lacks %s", names[i]);
    }
    if (curl_library.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return err_set(err, ERR_UNSUPPORTED, "libcurl cannot be set up");
    curl_library.loaded = true;
    return 0;
}

void curl_library_trust(CURL *easy, const struct http_trust *trust)
{
    if (trust == NULL)
        return;
    if (trust->ca_file != NULL)
        (void)curl_library.easy_setopt(easy, CURLOPT_CAINFO, trust->ca_file); /* options we know */
    if (trust->ca_path != NULL)
        (void)curl_library.easy_setopt(easy, CURLOPT_CAPATH, trust->ca_path);
    if (trust->cert_file != NULL)
        (void)curl_library.easy_setopt(easy, CURLOPT_SSLCERT, trust->cert_file);
    if (trust->key_file != NULL)
        (void)curl_library.easy_setopt(easy, CURLOPT_SSLKEY, trust->key_file);
    if (trust->insecure) {
        (void)curl_library.easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        (void)curl_library.easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
}
