/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The transaction of a write. */
#include "server/registry/write/write.h"

/*
 * Puts w->stored, deletes, or only compares (w->unchanged); a dry run sends nothing. After a
 * conflict w is attempted again. Ends the write or gives it to another thread.
 */
void hfd_write_commit(struct hfd_write *w);
