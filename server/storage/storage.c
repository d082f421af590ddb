/* Volumes of storage plugins: how their room begins and ends. */
#include "server/storage/part.h"

#include <stdlib.h>

struct storage *storage_new(const struct storage_config *config)
{
    struct storage *storage = calloc(1, sizeof(*storage));

    check(storage != NULL);
    check(config->life != NULL);
    check(config->freed != NULL);
    storage->config = *config;
    claims_begin(storage);
    return storage;
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
    claims_free(storage);
    registry_free(storage);
    free(storage);
}
