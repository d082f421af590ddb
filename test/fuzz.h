/*
 * What the fuzz targets share.
 *
 * A target is a program test/<room>/fuzz_<name>.c that libFuzzer calls with bytes from outside;
 * what it starts from, and what it has found, is in test/fuzz/<name>/.  test/fuzz.py runs it, in
 * namespaces of its own and with a directory for what it writes (FUZZ_DIRECTORY).
 *
 * Where an input is many messages or changes it is read as pieces (fuzz_piece).
 */
#ifndef CAIRN_TEST_FUZZ_H
#define CAIRN_TEST_FUZZ_H

#include "base/base.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Called once, before the first input. */
int LLVMFuzzerInitialize(int *arguments_count, char ***arguments);

/* Where a target may write; what is there goes with the run. */
static inline const char *fuzz_directory(void)
{
    static char path[64];
    const char *given = getenv("FUZZ_DIRECTORY");

    if (given != NULL)
        return given;
    if (path[0] == '\0') {
        check(text_copy(path, sizeof(path), "/dev/shm/cairn-fuzz-XXXXXX"));
        check(mkdtemp(path) != NULL);
        (void)fprintf(stderr, "fuzz: no FUZZ_DIRECTORY; %s is left behind\n", path);
    }
    return path;
}

/* NAME in that directory. */
static inline const char *fuzz_path(char to[512], const char *name)
{
    check(text_format(to, 512, "%s/%s", fuzz_directory(), name));
    return to;
}

static inline void fuzz_write(const char *path, const void *bytes, size_t length)
{
    FILE *file = fopen(path, "w");

    check(file != NULL && fwrite(bytes, 1, length, file) == length);
    check(fclose(file) == 0);
}

struct fuzz_input {
    const uint8_t *at;
    size_t left;
};

/* The next piece, with its length before it in two bytes; what is left if there is less.  False at
 * the end. */
static inline bool fuzz_piece(struct fuzz_input *input, const uint8_t **ret_bytes,
                              size_t *ret_length)
{
    if (input->left < 2)
        return false;
    size_t length = (size_t)input->at[0] | (size_t)input->at[1] << 8;

    input->at += 2;
    input->left -= 2;
    if (length > input->left)
        length = input->left;
    *ret_bytes = input->at;
    *ret_length = length;
    input->at += length;
    input->left -= length;
    return true;
}

#endif
