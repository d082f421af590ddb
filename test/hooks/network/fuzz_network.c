/*
 * What plugins say that make networks, each after the other, and iptables: the first byte says what
 * is asked of them.
 */
#include "test/hooks/answers.h"

#include "hooks/network/cni.c"

enum { MASQUERADES = 1, IS_GONE = 2 };

static int made(void *ctx, const json_t *result, struct err *err)
{
    (void)ctx;
    (void)err;
    check(json_is_object(result));
    return 0;
}

static void read_status(const json_t *result)
{
    struct err err = {0};
    json_t *status = cni_status(result, &err);

    if (status == NULL) {
        check(err.code == ERR_CORRUPT);
        return;
    }
    check(*text_of(status, "InterfaceName") != '\0');
    check(*text_of(status, "Address") != '\0' || *text_of(status, "AddressIPv6") != '\0');
    json_decref(status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct hooks_network config = {.cni_path = "/bin",
                                                .bridge_subnet_ipv6 = "fd00::/64"};
    struct err err = {0};
    json_t *result = NULL;

    if (size == 0)
        return 0;
    json_t *list =
        json_pack("{s:s, s:s, s:[{s:s, s:b}, {s:s}]}", "cniVersion", "1.0.0", "name", "net",
                  "plugins", "type", "true", "ipMasq", data[0] & MASQUERADES, "type", "true");
    const struct cni_call call = {.config = &config,
                                  .container = "11111111-2222-3333-4444-555555555555",
                                  .netns = (data[0] & IS_GONE) != 0 ? "" : "/run/netns/x",
                                  .list = list,
                                  .args = "",
                                  .lock_fd = -1,
                                  .made = made};

    check(list != NULL);
    answers = (struct fuzz_input){data + 1, size - 1};
    if (cni_add(&call, &result, &err) == 0) {
        read_status(result);
        (void)cni_check(&call, result, &err); /* whatever it says, as of what follows */
    } else {
        check(err.text[0] != '\0' && text_is_utf8(err.text, strlen(err.text)));
    }
    (void)cni_remove(&call, result, &err);
    (void)cni_admit(&config, -1, &err);
    json_decref(result);
    json_decref(list);
    return 0;
}
