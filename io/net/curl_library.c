/*
 * Loads libcurl, whichever flavour there is: they differ in their library for TLS.  It is never
 * unloaded: what it registers at exit must not be unmapped.
 */
#include "io/net/curl_library.h"

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
