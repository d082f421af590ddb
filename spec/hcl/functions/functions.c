/*
 * The table of functions.
 *
 * Names and meaning follow nomad v1.1.2 jobspec2/functions.go and the cty standard library it
 * takes them from; tostring, tonumber, tobool, tolist, toset, tomap, strlen, sum, startswith,
 * endswith, regex and regexall are those of Terraform and later Nomad.  Not made: bcrypt, convert,
 * fileset, rsadecrypt, yamlencode.  try and can are part of the evaluator.  Regular expressions are
 * Go's (spec/regex.h).
 */
#include "spec/hcl/tree.h"

static const struct hcl_function_row *const tables[] = {
    hcl_text_functions,     hcl_regex_functions, hcl_number_functions, hcl_list_functions,
    hcl_encoding_functions, hcl_time_functions,  hcl_yaml_functions,   hcl_csv_functions,
    hcl_network_functions,  hcl_file_functions,
};

static const char *const special[] = {"can", "try"};

const struct hcl_function_row *hcl_function_find(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        for (const struct hcl_function_row *row = tables[i]; row->name != NULL; row++) {
            if (text_equal(row->name, name))
                return row;
        }
    }
    return NULL;
}

void hcl_each_function(void (*cb)(void *ctx, const char *name), void *ctx)
{
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        for (const struct hcl_function_row *row = tables[i]; row->name != NULL; row++)
            cb(ctx, row->name);
    }
    for (size_t i = 0; i < COUNT_OF(special); i++)
        cb(ctx, special[i]);
}

struct names {
    const char *items[160];
    size_t count;
};

static void add_name(void *ctx, const char *name)
{
    struct names *names = ctx;

    check(names->count < COUNT_OF(names->items));
    names->items[names->count++] = name;
}

int hcl_function_unknown(const struct hcl_file *file, struct hcl_place place, const char *name,
                         struct hcl_error *error)
{
    static const char *const absent[] = {"bcrypt", "convert", "fileset", "rsadecrypt",
                                         "yamlencode"};
    struct names names = {0};
    char hint[ERR_TEXT_SIZE] = "";

    for (size_t i = 0; i < COUNT_OF(absent); i++) {
        if (text_equal(absent[i], name))
            return hcl_complain(file, place, "compute the value outside and pass it with -var",
                                error, "the function %s() of Nomad is not available here", name);
    }
    hcl_each_function(add_name, &names);
    const char *closest = hcl_closest(name, names.items, names.count);
    if (closest != NULL)
        (void)text_format(hint, sizeof(hint), "did you mean %s()?", closest);
    return hcl_complain(file, place, hint, error, "unknown function %.60s()", name);
}
