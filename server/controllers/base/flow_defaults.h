/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The FlowSchemas and PriorityLevelConfigurations that every server has, as the server passes them
 * to the controller flow-control. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;

/* One of the objects that every server has; the strings are static. */
struct hfd_flow_default {
        const char *plural, *name;
        bool mandatory; /* users cannot change its spec, except spec.exempt of the level `exempt` */
};
struct hfd_flow_defaults {
        size_t n;
        /* The i-th default. */
        struct hfd_flow_default (*get)(size_t i);
        /* The i-th as an object, which the caller frees. NULL = out of memory. */
        struct hf__json *(*make)(size_t i);
};
