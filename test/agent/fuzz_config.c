/* The agent's configuration, as HCL or, when it begins with a brace, as JSON. */
#include "test/fuzz.h"

#include "agent/config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config config;
    struct err err = {0};
    char path[512];

    fuzz_write(fuzz_path(path, size > 0 && data[0] == '{' ? "agent.json" : "agent.hcl"), data,
               size);
    config_defaults(&config);
    int code = config_read(&config, path, &err);
    if (code == 0)
        code = config_finish(&config, &err);
    check(code == 0 || err.text[0] != '\0');
    config_free(&config);
    return 0;
}
