/* What was built beside a test: the programs under test. */
#ifndef CAIRN_TEST_IO_BESIDE_H
#define CAIRN_TEST_IO_BESIDE_H

#include "io/host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* build/<out>/test/<room>/<program> -> build/<out>/<name> */
static inline void beside_program(char to[PATH_SIZE], const char *name)
{
    char self[PATH_SIZE];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    assert_true(length > 0);
    self[length] = '\0';
    for (int i = 0; i < 3; i++)
        *strrchr(self, '/') = '\0';
    assert_int_equal(path_join(to, self, name), 0);
}

#endif
