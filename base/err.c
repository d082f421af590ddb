#include "base/err.h"

#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 3, 0))) static int fill(struct err *err, int code, const char *format,
                                                      va_list args)
{
    if (err == NULL)
        return code;

    err->code = code;
    err->os = 0;
    err->recoverable = false;
    (void)vsnprintf(err->text, sizeof(err->text), format, args); /* cutting is the contract */
    text_whole(err->text);
    return code;
}

int err_set(struct err *err, int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)fill(err, code, format, args); /* returns code */
    va_end(args);
    return code;
}

int err_os(struct err *err, int code, int number, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)fill(err, code, format, args); /* returns code */
    va_end(args);
    if (err != NULL) {
        err->os = number;
        text_append(err->text, sizeof(err->text), ": ");
        text_append(err->text, sizeof(err->text), strerror(number));
    }
    return code;
}

int err_wrap(struct err *err, const char *format, ...)
{
    char rest[ERR_TEXT_SIZE];
    va_list args;

    if (err == NULL)
        return ERR_IO;

    text_copy(rest, sizeof(rest), err->text);
    va_start(args, format);
    (void)vsnprintf(err->text, sizeof(err->text), format, args); /* cutting is the contract */
    va_end(args);
    text_whole(err->text);
    text_append(err->text, sizeof(err->text), ": ");
    text_append(err->text, sizeof(err->text), rest);
    return err->code;
}

const char *err_text(int code)
{
    switch (code) {
    case ERR_OK:
        return "no error";
#define X(name, value, text)                                                                       \
    case ERR_##name:                                                                               \
        return text;
        ERR_LIST(X)
#undef X
    }
    return "unknown error";
}

int err_from_errno(int number)
{
    static const struct {
        int number, code;
    } map[] = {
        {EAGAIN, ERR_AGAIN},       {EINTR, ERR_AGAIN},
        {EBUSY, ERR_AGAIN},        {ENOENT, ERR_GONE},
        {ESRCH, ERR_GONE},         {ENODEV, ERR_GONE},
        {EPERM, ERR_REFUSED},      {EACCES, ERR_REFUSED},
        {EROFS, ERR_REFUSED},      {ETIMEDOUT, ERR_TIMEOUT},
        {EMFILE, ERR_LIMIT},       {ENFILE, ERR_LIMIT},
        {ENAMETOOLONG, ERR_LIMIT}, {E2BIG, ERR_LIMIT},
        {EEXIST, ERR_EXISTS},      {EINVAL, ERR_INVALID},
        {ENOSPC, ERR_FULL},        {EDQUOT, ERR_FULL},
        {ENOSYS, ERR_UNSUPPORTED}, {EOPNOTSUPP, ERR_UNSUPPORTED},
    };

    for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++) {
        if (map[i].number == number)
            return map[i].code;
    }
    return ERR_IO;
}
