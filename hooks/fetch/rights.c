/* Laying down rights, in both modes. */
#include "hooks/fetch/fetch.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

int fetch_keep_capabilities(uint64_t mask)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct kept[_LINUX_CAPABILITY_U32S_3] = {{0}};

    for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        kept[i].effective = kept[i].permitted = (uint32_t)(mask >> 32 * i);
    return (int)syscall(SYS_capset, &header, kept);
}

bool fetch_be(uid_t uid, gid_t gid)
{
    return setgroups(0, NULL) == 0 && setresgid(gid, gid, gid) == 0 &&
           setresuid(uid, uid, uid) == 0;
}
