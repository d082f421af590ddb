/* A payload that says when it is alive: one byte into the FIFO of its argument, then it waits. */
#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int fd = argc > 1 ? open(argv[1], O_WRONLY) : -1;

    if (fd < 0 || write(fd, "x", 1) != 1)
        return 1;
    (void)close(fd);
    (void)pause(); /* until a signal ends us */
    return 0;
}
