/* Volumes of storage plugins: how their room begins and ends. */
#include "server/storage/operation.h"

#include <stdlib.h>

/* Volumes of storage plugins; those of the host are hosted_kind. */
static const struct storage_kind registry_kind = {.prefix = REGISTRY_PREFIX,
                                                  .fault = registry_fault,
                                                  .read = provision_read,
                                                  .enter = provision_enter,
                                                  .begin_delete = provision_begin_delete,
                                                  .keep = provision_keep,
                                                  .is_open = operation_is_open,
                                                  .resume = provision_resume};

static struct storage *new_of(const struct storage_config *config, const struct storage_kind *kind)
{
    struct storage *storage = calloc(1, sizeof(*storage));

    check(storage != NULL);
    check(config->life != NULL);
    check(config->freed != NULL);
    storage->config = *config;
    storage->kind = kind;
    return storage;
}

struct storage *storage_new(const struct storage_config *config)
{
    struct storage *storage = new_of(config, &registry_kind);

    claims_begin(storage);
    return storage;
}

struct storage *storage_new_hosted(const struct storage_config *config)
{
    return new_of(config, &hosted_kind);
}

int storage_load(struct storage *storage, struct err *err)
{
    int code = registry_load(storage, err);

    storage_resume(storage);
    return code;
}

void storage_free(struct storage *storage)
{
    registry_forget_changes(storage);
    lanes_free(storage);
    passing_forget(storage);
    claims_free(storage);
    registry_free(storage);
    free(storage);
}
