/* Jobs as requests bring them: JSON that is none of ours, under any of the names it may have. */
#include "test/fuzz.h"

#include "spec/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct jobspec_problems problems;
    json_t *request = json_loadb((const char *)data, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    json_t *job, *again;

    if (request == NULL)
        return 0;
    if (jobspec_from_json("fuzz", request, &job, &problems) == 0) {
        check(jobspec_from_json("again", job, &again, &problems) == 0);
        check(json_equal(job, again));
        json_decref(again);
        json_decref(job);
    } else {
        check(problems.count > 0);
    }
    json_decref(request);
    return 0;
}
