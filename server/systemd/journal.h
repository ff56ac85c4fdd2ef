/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * systemd's journal, by its native protocol: entries with named fields.
 *
 * journal.c uses libsystemd. journal_none.c is for a build without libsystemd, and sends nothing.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

/*
 * Sends one entry. Each of the n fields is "NAME=value". False: the journal did not take it, and
 * the caller writes the line elsewhere. Allocates and keeps nothing. Blocks only while the
 * journal's queue is full. Thread: any.
 */
bool hfd_journal_send(const struct iovec *fields, size_t n);
