/*
 * One daemon per data directory (I-21): the file `lock` in the journal's directory.
 *
 * The kernel drops the lock when its holder dies, however it dies, so a file that is left behind
 * never blocks; its contents only say who holds it.  The file is never removed, or two daemons
 * could each lock their own.
 */
#ifndef CAIRN_JOURNAL_LOCK_H
#define CAIRN_JOURNAL_LOCK_H

#include "base/base.h"

/* ERR_EXISTS: held by another process, which ERR names: one that lives; for one that has been
 * killed and is still dying it waits, 5 s at most.  The lock lasts until *ret_fd is closed. */
int lock_take(const char *directory, int *ret_fd, struct err *err);

/* The same where the file system is read-only: whoever could write there is kept out, and so is
 * another one that shares.  ERR_GONE: no daemon ever ran there. */
int lock_share(const char *directory, int *ret_fd, struct err *err);

/* Gives it up at once, and closes FD: a process that is being made has copies of all that we have
 * open until its exec, and would keep it for as long. */
void lock_release(int fd);

/* True if a process that could be asked holds the lock; takes nothing itself. */
bool lock_is_held(const char *directory);

#endif
