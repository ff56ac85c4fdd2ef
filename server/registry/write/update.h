/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One attempt of a create, an update or a patch. */
#include "server/registry/write/write.h"

void hfd_write_update_create(struct hfd_write *w);
void hfd_write_update_attempt(struct hfd_write *w);
