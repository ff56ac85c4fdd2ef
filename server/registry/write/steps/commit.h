/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The transaction of a write. */
#include "server/registry/write/write.h"

/*
 * Sends the transaction, which puts w->stored, deletes the object, or only compares (w->unchanged).
 * A dry run sends nothing and responds at once. After a conflict, another attempt follows. But if
 * the store has a value that cannot be read, or if the write is fenced and its term is over or the
 * store was replaced, the response is an error. Ends the write or passes it to another thread.
 */
void hfd_write_commit(struct hfd_write *w);
