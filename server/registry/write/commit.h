/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The transaction of a write. */
#include "server/registry/write/write.h"

/* Puts w->stored, or deletes, or (w->unchanged) only compares. On a conflict w is attempted again.
 */
void hfd_write_commit(struct hfd_write *w);
