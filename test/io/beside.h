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

/* build/<out>/test/<room>/.../<program> -> build/<out>/<name> */
static inline void beside_program(char to[PATH_SIZE], const char *name)
{
    char self[PATH_SIZE];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *tests = NULL;

    assert_true(length > 0);
    self[length] = '\0';
    for (char *next = self; (next = strstr(next, "/test/")) != NULL; next++)
        tests = next;
    assert_non_null(tests);
    *tests = '\0';
    assert_int_equal(path_join(to, self, name), 0);
}

#endif
