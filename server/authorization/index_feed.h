/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The thread that builds an index of roles and bindings from the cacher after each change. Changes
 * that come while it builds share the next index. Private to server/authorization.
 */
#include <stdbool.h>

#include <holdfast/host.h>

struct hfd_cacher;
struct hfd_index_feed;
struct hfd_rbac_index;
struct hfd_resource;

/* Whether the index is built from these objects. */
bool hfd_index_feed_observes(const struct hfd_resource *resource);
/* Starts the thread. It calls on_index without a lock, and on_index owns the index. host outlives
 * the feed; the cacher must not be freed before the stop. 0 or -errno. */
int hfd_index_feed_new(const struct hf_host *host, struct hfd_cacher *cacher,
                       void (*on_index)(void *ctx, struct hfd_rbac_index *index), void *ctx,
                       struct hfd_index_feed **ret_feed);
/* Joins the thread. Then the feed does not use the cacher any more, but the cacher may still wake
 * it. Accepts NULL. Idempotent. */
void hfd_index_feed_stop(struct hfd_index_feed *feed);
/* Stops. Accepts NULL, returns NULL. */
struct hfd_index_feed *hfd_index_feed_free(struct hfd_index_feed *feed);
/* The cacher has changed. Thread: any. Never blocks. */
void hfd_index_feed_wake(struct hfd_index_feed *feed);
