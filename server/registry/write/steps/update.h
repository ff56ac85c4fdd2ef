/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One attempt of a create, an update or a patch: builds the new object and commits it. Both
 * functions may end the write or pass it to another thread.
 */
#include "server/registry/write/write.h"

void hfd_write_update_create(struct hfd_write *w);
/* For an update or a patch. */
void hfd_write_update_attempt(struct hfd_write *w);
