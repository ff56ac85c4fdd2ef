/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Aggregated discovery: a document with all groups, versions and resources below a root. Clients
 * since 1.26 ask for both: that of /api, which has the core group, and that of /apis, which has the
 * others. Thread: any; takes only the lock of table.
 */
#include <stdbool.h>

#include "base/buf.h"

struct hfd_custom_table;

/* The apidiscovery.k8s.io APIGroupDiscoveryList. core: the document at /api, otherwise the one at
 * /apis. version: "v2" or "v2beta1", which have the same content. table NULL = without
 * custom resources. NULL = out of memory. */
struct hf__buf *hfd_aggregated_discovery(struct hfd_custom_table *table, bool core,
                                         const char *version);
