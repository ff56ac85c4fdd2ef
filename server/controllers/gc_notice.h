/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "server/controllers/kinds.h"

struct hf__json;

/*
 * Puts an event OwnerRefInvalidNamespace beside an object: its reference names an owner that cannot
 * be one of it. One event per object, whatever is asked; a courtesy, so failures are passed over.
 */
void hfd_gc_notice(struct hf_term *term, const struct hfd_kind_row *row, const char *ns,
                   const char *name, const char *uid, const struct hf__json *reference);
