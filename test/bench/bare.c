/*
 * The raw limit of starting supervised payloads: COUNT static supervisors, each in a session of its
 * own with one payload, and nothing else.
 *
 *     bare COUNT PAYLOAD FIFO     prints the milliseconds from the first spawn to the last byte
 *     bare - PAYLOAD FIFO         is one supervisor
 */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static int supervise(char **argv)
{
    (void)setsid();
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(argv[2], argv[2], argv[3], (char *)NULL);
        _exit(127);
    }
    return pid < 0 || waitpid(pid, NULL, 0) < 0;
}

static double now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    if (strcmp(argv[1], "-") == 0)
        return supervise(argv);

    int count = (int)strtol(argv[1], NULL, 10), alive = 0, fifo = open(argv[3], O_RDWR);
    pid_t *pids = calloc((size_t)count, sizeof(*pids));
    if (count <= 0 || fifo < 0 || pids == NULL)
        return 1;
    double start = now_ms();
    for (int i = 0; i < count; i++) {
        char *child[] = {argv[0], "-", argv[2], argv[3], NULL};
        if (posix_spawn(&pids[i], "/proc/self/exe", NULL, NULL, child, environ) != 0)
            return 1;
    }
    while (alive < count) {
        char bytes[512];
        ssize_t got = read(fifo, bytes, sizeof(bytes));
        if (got <= 0)
            return 1;
        alive += (int)got;
    }
    (void)printf("%.3f\n", now_ms() - start);
    for (int i = 0; i < count; i++)
        (void)kill(pids[i], SIGKILL);
    for (int i = 0; i < count; i++)
        (void)waitpid(pids[i], NULL, 0);
    return 0;
}
