/*
 * Programs that know credentials: docker-credential-NAME, which is told a registry and says who
 * asks there.
 *
 * Follows nomad v2.0.6 drivers/docker/utils.go authFromHelper.  One is run on a thread of the pool,
 * as the daemon, with its environment: the node's operator has named it.  It is bounded in time and
 * in what it says, of which nothing is told to anybody but the Engine: not even when it fails.
 */
#include "drivers/docker/docker.h"

#include "io/program.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HELPER_MS = 30 * 1000 };

struct asking {
    struct io_work work;
    struct drivers *drivers; /* NULL: the room is closed */
    struct asking *next, **link;
    struct container *waiting; /* NULL: nobody does any more */
    char helper[HELPER_NAME_SIZE], registry[IMAGE_NAME_SIZE];
    char *header; /* what came of it; owned, secret; NULL: nothing */
    struct err failed;
};

/* --- on a thread --- */

/* What it says, or why there is nothing. */
static int run(const struct asking *asking, struct program_answer *ret_answer, struct err *err)
{
    const char *path = getenv("PATH");
    char program[PATH_SIZE], name[HELPER_NAME_SIZE + 32];
    char *const argv[] = {name, (char[]){"get"}, NULL};
    const struct program_call call = {.program = program,
                                      .argv = argv,
                                      .environment = environ,
                                      .input = asking->registry,
                                      .lock_fd = -1,
                                      .cancel_fd = -1,
                                      .limit_ms = HELPER_MS,
                                      .ends_with_us = true};

    (void)text_format(name, sizeof(name), "docker-credential-%s", asking->helper); /* it fits */
    if (!program_find(path == NULL ? "" : path, name, program))
        return err_set(err, ERR_GONE, "it is not in the agent's PATH");
    int code = program_run(&call, ret_answer, err);
    if (code == 0 && ret_answer->status != 0)
        code = err_set(err, ERR_REFUSED, "it ended with status %d", ret_answer->status);
    return code;
}

static void on_pool(struct io_work *work)
{
    struct asking *asking = work->ctx;
    struct program_answer answer = {0};
    int code = run(asking, &answer, &asking->failed);

    if (code == 0) {
        asking->header = helper_header(answer.output, asking->registry);
        if (asking->header == NULL)
            code = err_set(&asking->failed, ERR_REFUSED, "what it says is no credentials");
    }
    if (code != 0) {
        (void)err_wrap(&asking->failed, "docker: docker-credential-%s get, for %.100s",
                       asking->helper, asking->registry); /* it is told */
        asking->failed.code = ERR_REFUSED;
        asking->failed.recoverable = false;
    }
    program_close(&answer);
}

/* --- on the loop --- */

static void on_asked(struct io_work *work)
{
    struct asking *asking = work->ctx;
    struct container *container = asking->waiting;
    const struct err none = {0};

    if (container != NULL) {
        container->helper[0] = '\0';
        container->auth = asking->header;
        asking->header = NULL;
        container_wait_ends(container, container->auth_soft_fail ? &none : &asking->failed);
    }
    if (asking->drivers != NULL) {
        *asking->link = asking->next;
        if (asking->next != NULL)
            asking->next->link = asking->link;
    }
    if (asking->header != NULL)
        explicit_bzero(asking->header, strlen(asking->header));
    free(asking->header);
    free(asking);
}

void helper_begin(struct container *container)
{
    struct drivers *drivers = container->run->drivers;
    struct asking *asking = calloc(1, sizeof(*asking));

    check(asking != NULL);
    asking->drivers = drivers;
    asking->next = drivers->askings;
    asking->link = &drivers->askings;
    if (asking->next != NULL)
        asking->next->link = &asking->next;
    drivers->askings = asking;
    (void)text_copy(asking->helper, sizeof(asking->helper), container->helper); /* of its size */
    helper_registry(container->image, asking->registry);
    container_wait(container, &asking->waiting, NULL, NULL);
    io_work_submit(drivers->config.loop, &asking->work, on_pool, on_asked, asking);
}

void helpers_close(struct drivers *drivers)
{
    while (drivers->askings != NULL) {
        struct asking *asking = drivers->askings;

        drivers->askings = asking->next;
        asking->drivers = NULL; /* its thread ends it */
    }
}
