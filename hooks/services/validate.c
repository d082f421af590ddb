/*
 * Hook group_services: what the alloc offers can be made whole, or it is not set up.
 */
#include "hooks/part.h"

int hooks_services_validate(const struct hook_request *request, struct err *err)
{
    (void)request;
    (void)err;
    return 0;
}
