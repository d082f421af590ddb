/* Inside hooks/fetch/ only: what one artifact is on its way, and what all modes share. */
#ifndef CAIRN_HOOKS_FETCH_FETCH_H
#define CAIRN_HOOKS_FETCH_FETCH_H

#include "base/base.h"
#include "hooks/fetch/modes.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define FETCH_PLACE_PATH "/proc/self/fd/4"

enum {
    FETCH_NOBODY = 65534, /* where no user of its own can be: in some containers */
};

enum { CHECKSUM_SIZE = 8 + 128 + 1, FILE_NAME_SIZE = 256, URL_SIZE = 3 * 4096 };

/* What the download is, as its name or its options say. */
enum archive_kind {
    ARCHIVE_NONE,
    ARCHIVE_TAR, /* with any of the compressions */
    ARCHIVE_ZIP,
    ARCHIVE_COMPRESSED, /* one file */
};

/* What the source says; made by each process for itself. */
struct source {
    char url[URL_SIZE];
    char ref[FILE_NAME_SIZE], depth[16]; /* of a repository */
    char archive[32];
    char checksum[URL_SIZE /
                  4]; /* "type:digits", or "file:" and where it is; "": none is asked for */
    char name[FILE_NAME_SIZE]; /* of the file */
    char part[FILE_NAME_SIZE]; /* the directory of an archive that is meant; "": all of it */
    enum archive_kind kind;
    bool is_git;
};

int fetch_source(const json_t *artifact, struct source *ret_source, struct err *err);

/* Told by the process that downloads to the one that unpacks. */
struct told {
    char
        checksum[CHECKSUM_SIZE]; /* that of the file, in the file of checksums that was asked for */
};

struct fetch {
    uid_t uid; /* whose the files will be */
    gid_t gid;
    uid_t fetcher;       /* whose who downloads is */
    bool is_alone;       /* this process is, and nobody else's is that user's */
    uint64_t timeout_ms; /* for one download */
    uint64_t bytes_max;  /* of one download */
    uint64_t unpacked_bytes_max, entries_max; /* of one archive */
    const char *snapshot; /* of that alloc's disk the archive is one; NULL: it is anything */
    int data;             /* what was downloaded */
    struct told *told;    /* seen by all processes */
};

/* Downloads ARTIFACT into fetch->data, and looks its checksum up if that is in a file. */
int fetch_download(struct fetch *fetch, const json_t *artifact, struct err *err);

/* Reads the whole of fetch->data: ERR_CORRUPT if its digest is not CHECKSUM. */
int fetch_check_sum(const struct fetch *fetch, const char *checksum, struct err *err);

/* Puts what fetch->data holds, which is KIND, into the directory that is the current one: entries
 * of an archive that lie in its directory PART ("": all) beneath it, or its one file as NAME, which
 * is no path. */
int fetch_unpack(const struct fetch *fetch, enum archive_kind kind, const char *part,
                 struct err *err);
int fetch_unpack_file(const struct fetch *fetch, enum archive_kind kind, const char *name,
                      struct err *err);

/* Becomes USER and nobody else, without a group that is another's. */
bool fetch_be(uid_t uid, gid_t gid);

/* All but those of MASK, which has their bits, are gone. */
int fetch_keep_capabilities(uint64_t mask);

/* cairn-fetch in its mode snapshot: packs the disk of ALLOC, whose directory is at PATH, with those
 * of its TASKS, to FETCH_PACKED; its exit code. */
int fetch_pack(const char *path, const char *alloc, char *const *tasks);

/* cairn-fetch in its other mode: asks what it is told over its socket, until that ends.  OWN is a
 * user that nobody else is, for who is root. */
int fetch_check(uid_t own);

/* Where the file of checksums is that is asked for, or NULL. */
static inline const char *source_sums(const struct source *source)
{
    static const char file[] = "file:";

    return text_starts_with(source->checksum, file) ? source->checksum + sizeof(file) - 1 : NULL;
}

/* The texts of ARTIFACT; "" if there is none. */
static inline const char *fetch_text(const json_t *artifact, const char *field)
{
    const char *text = json_string_value(json_object_get(artifact, field));

    return text == NULL ? "" : text;
}

#endif
