/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Follows the CustomResourceDefinitions in the cacher: a thread makes new kinds for those that have
 * changed, brings the cached objects into the form of these kinds (sync/slot_forms.h), and replaces
 * the set of served kinds in the table (resources/custom/custom_table.h).
 */
#include <stdbool.h>

#include <holdfast/host.h>

struct hfd_cacher;
struct hfd_custom_table;
struct hfd_kind_feed;
struct hfd_resource;

/* Whether a change of the resource concerns the feed. For the `observers` of hfd_cacher_config,
 * whose on_observed then calls hfd_kind_feed_wake. */
bool hfd_kind_feed_observes(const struct hfd_resource *resource);
/* Starts the thread. host, cacher and table outlive it. 0 or -errno. */
int hfd_kind_feed_new(const struct hf_host *host, struct hfd_cacher *cacher,
                      struct hfd_custom_table *table, struct hfd_kind_feed **ret_feed);
/* Ends the thread. Afterwards hfd_kind_feed_wake has no effect. Idempotent; accepts NULL. */
void hfd_kind_feed_stop(struct hfd_kind_feed *feed);
/* The caller ensures that hfd_kind_feed_wake is not called any more. Accepts NULL; returns NULL. */
struct hfd_kind_feed *hfd_kind_feed_free(struct hfd_kind_feed *feed);
/* A definition may have changed. Thread: any; never blocks. Accepts NULL. */
void hfd_kind_feed_wake(struct hfd_kind_feed *feed);
/* Whether the definitions of the cacher's first filling have taken effect: their kinds are served,
 * as far as they can be. Thread: any. */
bool hfd_kind_feed_synced(struct hfd_kind_feed *feed);
