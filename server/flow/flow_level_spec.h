/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The settings of a PriorityLevelConfiguration. Pure. Thread: any. */
#include <stdbool.h>

#include "server/flow/core/borrowing.h"
#include "server/flow/core/queue_set.h"

struct hf__json;

struct hfd_flow_level_spec {
        const char *name; /* borrowed */
        struct hfd_level_shares shares;
        struct hfd_queue_config queues;
};

/* Fills in all but the name. False: the object is malformed, and counts as absent. */
bool hfd_flow_level_spec_read(const struct hf__json *object, struct hfd_flow_level_spec *ret_spec);
