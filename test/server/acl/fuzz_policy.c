/*
 * The text of a policy: what is read of it grants no more than its words, and a denial is one.
 */
#include "test/fuzz.h"

#include "server/acl/acl.h"

int LLVMFuzzerInitialize(int *arguments_count, char ***arguments)
{
    (void)arguments_count;
    (void)arguments;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"default", "a", "prod-web-1", ""};
    struct acl_rights *rights = NULL;
    struct err err = {0};

    if (acl_read_policy((const char *)data, size, &rights, &err) < 0) {
        check(rights == NULL && err.text[0] != '\0');
        return 0;
    }
    check(!acl_manages(rights));
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        /* Whoever may do one thing in a namespace sees it, and nobody is granted a denial. */
        bool sees = acl_sees_namespace(rights, names[i]);
        for (int capability = ACL_LIST_JOBS; capability < ACL_CAPABILITIES; capability++)
            check(sees || !acl_allows(rights, names[i], ACL_BIT(capability)));
        check(!sees || acl_sees_namespace(rights, "*"));
    }
    for (int area = 0; area < ACL_AREAS; area++)
        check(acl_allows_area(rights, (enum acl_area)area, ACL_READ) ||
              !acl_allows_area(rights, (enum acl_area)area, ACL_WRITE));
    acl_rights_free(rights);
    return 0;
}
