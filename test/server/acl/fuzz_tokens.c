/*
 * What callers send about policies and tokens: each piece of the input is one request, whose first
 * byte says which.
 *
 * No token does more than its request says, none is kept with its secret, and a daemon that begins
 * again has what those before had.
 */
#include "test/server/fuzz_request.h"
#include "test/server/small_life.h"

struct told {
    int count, code;
    char secret[UUID_TEXT_SIZE];
};

static void tell(void *ctx, int code, const struct err *err, const json_t *answer)
{
    struct told *told = ctx;

    told->count++;
    told->code = code;
    check((code == 0) == (err == NULL || err->code == 0));
    check(code == 0 || (err->text[0] != '\0' && text_is_utf8(err->text, strlen(err->text))));
    (void)text_copy(told->secret, sizeof(told->secret),
                    code == 0 && json_object_get(answer, "SecretID") != NULL
                        ? json_string_value(json_object_get(answer, "SecretID"))
                        : "");
}

/* The secret of a token that was made, "" if none was. */
static void ask(struct small_life *small, uint8_t which, const json_t *request,
                char ret_secret[UUID_TEXT_SIZE])
{
    const char *name = json_string_value(json_object_get(request, "Name"));
    const char *accessor = json_string_value(json_object_get(request, "AccessorID"));
    struct acl *acl = alone_acl(small->alone);
    struct acl_fresh fresh;
    struct told told = {0};

    small_new_id(small, fresh.accessor);
    small_new_id(small, fresh.secret);
    switch (which % 6) {
    case 0:
        acl_put_policy(acl, request, tell, &told);
        break;
    case 1:
        acl_create_token(acl, request, &fresh, tell, &told);
        break;
    case 2:
        acl_update_token(acl, request, tell, &told);
        break;
    case 3:
        acl_bootstrap(acl, &fresh, NULL, NULL, tell, &told);
        break;
    case 4:
        acl_delete_policy(acl, name == NULL ? "" : name, tell, &told);
        break;
    default:
        acl_delete_token(acl, accessor == NULL ? "" : accessor, tell, &told);
        break;
    }
    small_settle(small);
    check(told.count == 1);
    check(told.secret[0] == '\0' || text_equal(told.secret, fresh.secret));
    (void)text_copy(ret_secret, UUID_TEXT_SIZE, told.secret); /* as long */
}

static void count_one(void *ctx, const json_t *json)
{
    check(json_object_get(json, "SecretID") == NULL &&
          json_object_get(json, "cairnDigest") == NULL);
    ++*(size_t *)ctx;
}

static size_t count(struct small_life *small)
{
    size_t known = 0;

    acl_each_policy(alone_acl(small->alone), count_one, &known);
    acl_each_token(alone_acl(small->alone), count_one, &known);
    return known;
}

/* What is kept of it shows nobody the SECRET; and who has it may no more than its token says. */
static void check_secret(struct small_life *small, const char *secret)
{
    const struct acl_rights *rights = NULL;
    struct acl *acl = alone_acl(small->alone);

    for (size_t i = 0; i < small->specs.count; i++)
        check(memmem(small->specs.items[i].bytes, small->specs.items[i].length, secret,
                     strlen(secret)) == NULL);
    if (acl_resolve(acl, secret, &rights, NULL) != 0)
        return; /* it has been deleted */
    const char *type = json_string_value(json_object_get(acl_token_of(acl, secret), "Type"));
    check(acl_manages(rights) == text_equal(type, "management"));
}

int LLVMFuzzerInitialize(int *arguments_count, char ***arguments)
{
    (void)arguments_count;
    (void)arguments;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    char secrets[FUZZ_REQUESTS_MAX][UUID_TEXT_SIZE];
    const struct acl_rights *rights;
    void *state = NULL;
    size_t asked = 0;
    json_t *request;
    uint8_t which;

    check(small_open(&state) == 0);
    struct small_life *small = state;
    while (asked < FUZZ_REQUESTS_MAX && fuzz_request(&input, &which, &request)) {
        ask(small, which, request, secrets[asked++]);
        json_decref(request);
    }
    size_t known = count(small);
    for (int life = 0; life < 2; life++) {
        for (size_t i = 0; i < asked; i++) {
            if (secrets[i][0] != '\0')
                check_secret(small, secrets[i]);
        }
        check(acl_resolve(alone_acl(small->alone), "00000000-0000-4000-8000-000000000000", &rights,
                          NULL) != 0);
        small_again(small);
        check(count(small) == known);
    }
    check(small->said[0] == '\0'); /* nothing that was kept is odd */
    return small_close(&state);
}
