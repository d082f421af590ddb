/* Both languages of interpolation, on text that a job's author chose. */
#include "test/fuzz.h"

#include "hooks/env/expand.h"

#include <jansson.h>

static struct spec_pair variables[] = {
    {"EMPTY", ""}, {"FOO", "foo"}, {"QUOTE", "a\"b\\c\n"}, {"a.b", "dotted"}};
static struct spec_pair attributes[] = {{"kernel.name", "linux"}};
static struct spec_pair meta[] = {{"rack", "r7"}};
static const struct hooks_node node = {.id = "id-1",
                                       .name = "stone",
                                       .datacenter = "dc1",
                                       .region = "global",
                                       .attributes = {attributes, COUNT_OF(attributes)},
                                       .meta = {meta, COUNT_OF(meta)}};
static const struct hooks_env env = {.pairs = {variables, COUNT_OF(variables)}};
static const struct hooks_names names = {&node, &env};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct err err = {0};
    const char *made = NULL;
    char *text = strndup((const char *)data, size);

    check(text != NULL);
    if (hooks_expand_plain(&names, &arena, text, 4096, &made, &err) == 0)
        check(strlen(made) <= 4096 || made == text);
    json_t *config = json_pack("{s: s%, s: [s]}", "command", text, strlen(text), "args", "x");
    if (config != NULL) { /* or it is no UTF-8 */
        char *packed = json_dumps(config, JSON_COMPACT);

        check(packed != NULL);
        if (hooks_expand_config(&names, &arena, packed, &made, &err) == 0) {
            json_t *expanded = json_loads(made, 0, NULL);

            check(json_is_object(expanded));
            json_decref(expanded);
        } else {
            check(!err.recoverable);
        }
        free(packed);
        json_decref(config);
    }
    free(text);
    arena_free(&arena);
    return 0;
}
