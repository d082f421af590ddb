/* Archives of strangers: whatever they hold, it is beneath the directory that they were unpacked
 * in, and no more than there may be.  The first byte says which kind was announced. */
#include "test/fuzz.h"

#include "hooks/fetch/fetch.h"
#include "io/host.h"

#include <ftw.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { ENTRIES_MAX = 16, BYTES_MAX = 1 << 16 };

static struct {
    unsigned entries;
    uint64_t bytes;
} found;

static int count(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)path;
    (void)kind;
    check((status->st_mode & (S_ISUID | S_ISGID)) == 0);
    check(S_ISREG(status->st_mode) || S_ISDIR(status->st_mode) || S_ISLNK(status->st_mode));
    found.entries += walk->level > 0 && !S_ISDIR(status->st_mode);
    found.bytes += S_ISREG(status->st_mode) ? (uint64_t)status->st_size : 0;
    return 0;
}

static int expect(void *ctx, const char *name, unsigned char type)
{
    (void)ctx;
    (void)type;
    check(text_equal(name, "inside") || text_equal(name, "file"));
    return 0;
}

static void unpack(const struct fetch *fetch, enum archive_kind kind, int outside)
{
    struct err err = {0};

    check(mkdirat(outside, "inside", 0700) == 0);
    check(fchdir(outside) == 0 && chdir("inside") == 0);
    int code = fetch_unpack(fetch, kind, "", &err);
    check(code <= 0 && code == err.code);
    check(fchdir(outside) == 0);
    code = fetch_unpack_file(fetch, kind, "file", &err);
    check(code <= 0);
    check(directory_each(outside, expect, NULL) == 0);
    memset(&found, 0, sizeof(found));
    check(nftw("inside", count, 8, FTW_PHYS) == 0);
    check(found.entries <= ENTRIES_MAX);
    check(found.bytes <= BYTES_MAX * ENTRIES_MAX); /* by each of its names */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fetch fetch = {.unpacked_bytes_max = BYTES_MAX, .entries_max = ENTRIES_MAX};
    char place[128];
    struct err err;

    if (size == 0)
        return 0;
    check(text_format(place, sizeof(place), "%s/archive-XXXXXX", fuzz_directory()));
    fetch.data = memfd_create("archive", MFD_CLOEXEC);
    check(fetch.data >= 0 && mkdtemp(place) != NULL);
    check(write(fetch.data, data + 1, size - 1) == (ssize_t)size - 1);
    int outside = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    check(outside >= 0);
    unpack(&fetch, (enum archive_kind)(1 + data[0] % 3), outside);
    check(chdir("/") == 0);
    check(tree_remove(AT_FDCWD, place, &err) == 0);
    check(close(outside) == 0 && close(fetch.data) == 0);
    return 0;
}
