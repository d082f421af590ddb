/*
 * The artifact blocks of a task: what is not given, and what is wrong.
 *
 * Follows nomad v2.0.5 api/tasks.go TaskArtifact and nomad/structs/structs.go
 * TaskArtifact.Validate. What could only fail later is refused here, as far as nothing in it is
 * interpolated: a way of fetching that there is not, and a destination outside of the task's own
 * directory, where Nomad takes any in that of the alloc.
 */
#include "spec/blocks/blocks.h"

#include "spec/json.h"
#include "spec/names.h"

#include <string.h>

static void set_default(json_t *object, const char *field, const char *text)
{
    if (*text_of(object, field) == '\0')
        check(json_object_set_new(object, field, json_string(text)) == 0);
}

static void default_artifact(json_t *artifact)
{
    const char *source = text_of(artifact, "GetterSource"), *name = strrchr(source, '/');
    char destination[SPEC_PLACE_SIZE] = "local/";

    if (text_equal(text_of(artifact, "GetterMode"), "file"))
        (void)text_append(destination, sizeof(destination), name == NULL ? source : name + 1);
    set_default(artifact, "GetterSource", "");
    set_default(artifact, "GetterMode", "any");
    if (json_object_get(artifact, "RelativeDest") == NULL) /* "" is the task's own directory */
        check(json_object_set_new(artifact, "RelativeDest", json_string(destination)) == 0);
    if (json_object_get(artifact, "GetterInsecure") == NULL)
        check(json_object_set_new(artifact, "GetterInsecure", json_false()) == 0);
}

void jobspec_default_artifacts(json_t *task)
{
    json_t *artifact;
    size_t i;

    json_array_foreach(jobspec_list(task, "Artifacts"), i, artifact) default_artifact(artifact);
}

bool spec_artifact_mode(const char *text, enum spec_artifact_mode *ret_mode)
{
    static const struct jobspec_word modes[] = {
        {"any", ARTIFACT_ANY}, {"file", ARTIFACT_FILE}, {"dir", ARTIFACT_DIRECTORY}};
    int mode;

    if (!jobspec_word_value(modes, COUNT_OF(modes), text, &mode))
        return false;
    *ret_mode = (enum spec_artifact_mode)mode;
    return true;
}

/* --- what is wrong --- */

static bool is_interpolated(const char *text)
{
    return strstr(text, "${") != NULL;
}

static bool is_hex(const char *text, size_t digits)
{
    return strlen(text) == digits && strspn(text, "0123456789abcdefABCDEF") == digits;
}

static void check_checksum(struct jobspec_work *work, const json_t *artifact)
{
    static const struct {
        const char *type;
        size_t digits;
    } types[] = {{"md5:", 32}, {"sha1:", 40}, {"sha256:", 64}, {"sha512:", 128}};
    const json_t *options = json_object_get(artifact, "GetterOptions");
    const char *sum = json_string_value(json_object_get(options, "checksum"));

    if (sum == NULL || is_interpolated(sum) || text_starts_with(sum, "file:"))
        return;
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        const char *digits = sum + strlen(types[i].type);

        if (text_starts_with(sum, types[i].type) && is_hex(digits, types[i].digits))
            return;
    }
    jobspec_complain(work, artifact, "GetterOptions",
                     "write md5:, sha1:, sha256: or sha512: and all digits, or file:URL",
                     "invalid checksum: \"%.80s\"", sum);
}

/* How it is to be fetched, where the source says it. */
static void check_source(struct jobspec_work *work, const json_t *artifact, const char *source)
{
    static const char *const served[] = {"http://", "https://", "file://", "git::"};

    if (*source == '\0') {
        jobspec_complain(work, artifact, "", "write source = \"https://...\"",
                         "an artifact: source must be specified");
        return;
    }
    if (strlen(source) >= SPEC_SOURCE_URL_SIZE)
        jobspec_complain(work, artifact, "GetterSource", NULL,
                         "the source of an artifact is longer than %d bytes",
                         SPEC_SOURCE_URL_SIZE - 1);
    for (size_t i = 0; i < COUNT_OF(served); i++) {
        if (text_starts_with(source, served[i]))
            return;
    }
    if (!text_starts_with(source, "${"))
        jobspec_complain(work, artifact, "GetterSource",
                         "write http://, https://, file:// or git::URL",
                         "artifacts cannot be fetched from \"%.60s\"", source);
}

static void check_artifact(struct jobspec_work *work, const json_t *artifact)
{
    const char *mode = text_of(artifact, "GetterMode");
    const char *destination = text_of(artifact, "RelativeDest");
    enum spec_artifact_mode known;

    check_source(work, artifact, text_of(artifact, "GetterSource"));
    if (!spec_artifact_mode(mode, &known))
        jobspec_complain(work, artifact, "GetterMode", NULL,
                         "invalid artifact mode \"%.40s\"; must be one of: any, file, dir", mode);
    if (strlen(destination) >= SPEC_PLACE_SIZE)
        jobspec_complain(work, artifact, "RelativeDest", NULL,
                         "the destination of an artifact is longer than %d bytes",
                         SPEC_PLACE_SIZE - 1);
    else if (spec_leaves_alloc(destination))
        jobspec_complain(work, artifact, "RelativeDest",
                         "write a path in the task's directory, as in \"local/\", or \"../alloc/\"",
                         "destination escapes the directory of the alloc: \"%.80s\"", destination);
    check_checksum(work, artifact);
}

void jobspec_check_artifacts(struct jobspec_work *work, const json_t *task)
{
    const json_t *artifacts = jobspec_list(task, "Artifacts"), *artifact;
    size_t i;

    if (json_array_size(artifacts) > SPEC_ARTIFACTS_MAX) {
        jobspec_complain(work, task, "Artifacts", NULL, "%zu artifacts, there may be %d",
                         json_array_size(artifacts), SPEC_ARTIFACTS_MAX);
        return;
    }
    json_array_foreach(artifacts, i, artifact) check_artifact(work, artifact);
}
