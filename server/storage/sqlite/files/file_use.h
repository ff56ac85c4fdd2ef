/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Tells whether a process uses the file of a SQLite store, for commands that need it alone. The
 * result is true only at the moment of the call: a process may open the file afterwards.
 *
 * The function relies on SQLite's locks. A connection to a file in WAL mode holds the shared lock
 * of the file from its first read until it is closed. Each start of a store sets that mode. A
 * backup does not have it: commands that read one hold the lock only while they read. Thread: any.
 */
#include <holdfast/error.h>

/*
 * 0: no process uses the file. HF_E_BUSY: a process does; the message names the file and, if the
 * kernel knows it, the process. HF_E_NOT_FOUND: there is no such file. Or -errno. This process must
 * not use the file itself, because the call would drop its locks.
 */
int hfd_sqlite_check_unused(const char *path, struct hf_status *reterr_status);
