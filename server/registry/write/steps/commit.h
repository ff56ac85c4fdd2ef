/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The transaction of a write. */
#include "server/registry/write/write.h"

/*
 * Sends the transaction, which puts w->stored, deletes the object, or only compares (w->unchanged).
 * A dry run sends nothing and responds at once. After a conflict, another attempt follows, unless
 * the term of the fence is over, or the store has a value that cannot be read. Ends the write or
 * passes it to another thread.
 */
void hfd_write_commit(struct hfd_write *w);
