/*
 * The line by which a plugin says where it answers: CORE|APP|NETWORK|ADDRESS|PROTOCOL[|...].
 */
#include "plugins/process/part.h"

#include <string.h>

enum { FIELDS = 5, LINE_BYTES_MAX = 4096 };

int handshake_read(const char *text, char ret_socket[PROCESS_SOCKET_MAX + 1], struct err *err)
{
    char line[LINE_BYTES_MAX], *at = line, *fields[FIELDS];
    static const struct {
        unsigned field;
        const char *value, *what;
    } fixed[] = {{0, "1", "core protocol"},
                 {1, "2", "protocol of applications"},
                 {2, "unix", "network"},
                 {4, "grpc", "protocol"}};

    if (!text_copy(line, sizeof(line), text))
        return err_set(err, ERR_INVALID, "the first line that it prints is too long");
    for (size_t i = 0; i < FIELDS; i++) {
        fields[i] = strsep(&at, "|");
        if (fields[i] == NULL)
            return err_set(err, ERR_INVALID,
                           "the first line that it prints is not that of a plugin");
    }
    for (size_t i = 0; i < COUNT_OF(fixed); i++) {
        if (!text_equal(fields[fixed[i].field], fixed[i].value))
            return err_set(err, ERR_INVALID, "it speaks another %s than \"%s\"", fixed[i].what,
                           fixed[i].value);
    }
    if (fields[3][0] != '/' || !text_copy(ret_socket, PROCESS_SOCKET_MAX + 1, fields[3]))
        return err_set(err, ERR_INVALID, "what it says of its socket is no path of one");
    return 0;
}
