#include "agent/node/entry.h"

#include <stdlib.h>
#include <string.h>

int entry_read(const struct store *store, const struct say *log, const char *name,
               bool (*is_whole)(const json_t *json), int64_t now_unix_ns, json_t **ret_json,
               struct err *err)
{
    char *text = NULL;
    size_t length = 0;
    int code = store->meta_read(store->ctx, name, &text, &length, err);
    json_t *json = code == 0 ? json_loadb(text, length, 0, NULL) : NULL;

    free(text);
    if (code == 0 && !is_whole(json))
        code = err_set(err, ERR_CORRUPT, "what is kept as \"%s\" makes no sense", name);
    if (code == 0) {
        *ret_json = json;
        return 0;
    }
    json_decref(json);
    *ret_json = NULL;
    if (code != ERR_CORRUPT)
        return code == ERR_GONE ? 0 : code;
    say(log, SAY_WARN, "journal", "put into quarantine, and begun anew entry=%s error=%s", name,
        text_value(err->text));
    return store->quarantine == NULL
               ? 0
               : store->quarantine(store->ctx, "meta", name, err->text, now_unix_ns, err);
}

void entry_write(struct core *core, const char *name, const json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);

    check(text != NULL); /* all of it is whole UTF-8 */
    core_meta(core, name, text, strlen(text));
    free(text);
}
