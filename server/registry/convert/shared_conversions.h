/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Conversions that watches share. An event concerns many watches at the same time, and each of them
 * gets the same object. So the object is converted once for each version, by the watch that comes
 * first. The others wait for this conversion, or find its result later.
 *
 * shared_table.h bounds their memory. Gets, lists and writes do not share: each converts what it
 * shows. Only for the params of policies do requests use the same table (convert_params.h).
 *
 * Lock: that of the table; it is not held while the webhook is called or a callback runs. Thread:
 * any.
 */
#include <stdbool.h>

#include "server/registry/base/convert_turns.h"
#include "server/registry/convert/convert.h"

struct hfd_shared_job;

/* A member of the watch's struct. Zero at first; lives as long as its conversions. */
struct hfd_shared_turn {
        struct hfd_convert_turn turn; /* for the webhook */
        /* guarded by the mutex of the table */
        struct hfd_shared_job *waiting; /* NULL = it does not wait for another watch */
        bool canceled;
};

/* As hfd_convert_start, with a shared turn in place of convert->turn. */
bool hfd_shared_convert(struct hfd_registry *registry, const struct hfd_convert *convert,
                        struct hfd_shared_turn *turn);
/* As hfd_convert_cancel. */
void hfd_shared_cancel(struct hfd_registry *registry, struct hfd_shared_turn *turn);
