/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The thread that tells the plug-ins of a chain to read their configuration again. The cacher wakes
 * it when an object of the group admissionregistration.k8s.io has changed, on every instance, so a
 * change counts everywhere as soon as the store's watch has delivered it.
 */
#include <stdbool.h>

#include <holdfast/host.h>

struct hfd_admission_chain;
struct hfd_admission_feed;
struct hfd_resource;

/* Starts the thread. host and chain outlive the feed; no plug-in is added any more. 0 or -errno. */
int hfd_admission_feed_new(const struct hf_host *host, struct hfd_admission_chain *chain,
                           struct hfd_admission_feed **ret_feed);
/* Joins the thread; wake may still be called. Call it before the cacher is freed. Accepts NULL;
 * idempotent. */
void hfd_admission_feed_stop(struct hfd_admission_feed *feed);
/* Stops. Accepts NULL, returns NULL. */
struct hfd_admission_feed *hfd_admission_feed_free(struct hfd_admission_feed *feed);
/* The configuration may have changed. Never blocks. Accepts NULL. */
void hfd_admission_feed_wake(struct hfd_admission_feed *feed);
/* Whether the objects of the resource are such configuration. */
bool hfd_admission_feed_observes(const struct hfd_resource *resource);
