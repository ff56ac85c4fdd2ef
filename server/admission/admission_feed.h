/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Tells the plug-ins of a chain to read their configuration again, on a thread of a feed
 * (server/cacher/feed/feed.h). The cacher wakes the feed when an object of the group
 * admissionregistration.k8s.io has changed, on every instance. So a change counts everywhere soon
 * after the store's watch has delivered it; the feed may wait a little for further changes.
 */
#include <stdbool.h>

#include <holdfast/host.h>

struct hfd_admission_chain;
struct hfd_cacher;
struct hfd_feed;
struct hfd_resource;

/* Starts the feed. host and chain outlive it; cacher is used until hfd_feed_stop. No plug-in is
 * added to the chain any more. 0 or -errno. */
int hfd_admission_feed_new(const struct hf_host *host, struct hfd_admission_chain *chain,
                           struct hfd_cacher *cacher, struct hfd_feed **ret_feed);
/* Whether the feed must be woken after a change of an object of the resource (on_observed in
 * cacher.h). */
bool hfd_admission_feed_observes(const struct hfd_resource *resource);
