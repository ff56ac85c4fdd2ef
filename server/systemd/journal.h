/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sends entries with named fields to systemd's journal, by its native protocol.
 *
 * There are two implementations, and the build chooses one. journal.c uses libsystemd.
 * journal_none.c is for a build without libsystemd and sends nothing.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

/*
 * Sends one entry. Each of the n fields is "NAME=value", borrowed until the function returns.
 * False: the journal did not accept the entry, and the caller should write it elsewhere. Allocates
 * nothing, except that the first call loads libsystemd. Blocks while the journal's queue is full.
 * Thread: any.
 */
bool hfd_journal_send(const struct iovec *fields, size_t n);
