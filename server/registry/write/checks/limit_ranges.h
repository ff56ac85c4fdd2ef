/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The LimitRanges of a namespace: the defaults for containers of its pods, and the bounds for its
 * pods and volume claims. LimitRanges are read from the cache, so a new one counts when the store's
 * watch has delivered it, as in Kubernetes. Thread: that of the write (write.h). Nothing blocks.
 */
#include "server/registry/write/write.h"

struct hf__json;

/* Sets the requests and limits that the containers of a new pod leave out. Other writes pass.
 * False: the response was sent. */
bool hfd_write_limit_ranges_default(struct hfd_write *w);
/* Whether w->object is within the bounds. Checks a new pod, a resize of a pod, and a new or updated
 * claim, unless the object is being deleted; all other writes pass. old: the stored object;
 * NULL = a create. False: the response was sent; or old may be outdated, and the write reads it
 * again. */
bool hfd_write_limit_ranges_allow(struct hfd_write *w, const struct hf__json *old);
