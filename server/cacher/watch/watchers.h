/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * All watches of the cacher: queues changes for them, and ends them. watcher.h is about one watch.
 *
 * Thread: any. Functions with the suffix _locked need the cacher's lock, and call no sink.
 * hfd_watchers_deliver calls the sinks without the lock. Nothing blocks.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/clock.h>

struct hfd_cacher;
struct hfd_change;
struct hfd_watcher;
struct hfd_watchers;

/* NULL: out of memory. */
struct hfd_watchers *hfd_watchers_new(void);
/* Every watch must have ended. Accepts NULL; returns NULL. */
struct hfd_watchers *hfd_watchers_free(struct hfd_watchers *watchers);

/*
 * Functions with the argument `**dirty` queue events for watchers, or request their end, and link
 * these watchers into *dirty. After the caller has released the lock, it passes the list to
 * hfd_watchers_deliver.
 */
/* Queues the change for the watchers whose resource, namespace and name match and that began at an
 * earlier revision. Returns their number. Those that still catch up are not counted, because they
 * get the change from the history. Those whose end was requested are counted, although they do not
 * get the change. */
size_t hfd_watchers_queue_change_locked(struct hfd_cacher *cacher, const struct hfd_change *change,
                                        struct hfd_watcher **dirty);
/*
 * Whether there are watches that a change finds by the value of the resource's trigger, a field
 * such as the spec.nodeName of pods (watcher_lists.c). Then the caller should call
 * hfd_object_selectable for the object before the change and for the new one, without the lock,
 * before it calls hfd_watchers_queue_change_locked. Otherwise the change visits more watches.
 */
bool hfd_watchers_need_trigger_locked(const struct hfd_cacher *cacher, size_t resource);
/* Ends all watches with 410, because the cache cannot tell which changes they have missed. */
void hfd_watchers_expire_locked(struct hfd_cacher *cacher, struct hfd_watcher **dirty);
/* The same for the watches of one resource. */
void hfd_watchers_expire_resource_locked(struct hfd_cacher *cacher, size_t resource,
                                         struct hfd_watcher **dirty);
/* Ends the watches of one resource cleanly. */
void hfd_watchers_end_resource_locked(struct hfd_cacher *cacher, size_t resource,
                                      struct hfd_watcher **dirty);
/* Ends all watches cleanly. From now on no watch begins. */
void hfd_watchers_end_locked(struct hfd_cacher *cacher, struct hfd_watcher **dirty);
/*
 * Called when this process is the new holder of a Lease. Queues a bookmark for the watches of the
 * loopback client that want bookmarks, because the controllers of the term wait until their
 * informers have reached the write that acquired the Lease. Visits no other watches.
 */
void hfd_watchers_term_begun_locked(struct hfd_cacher *cacher, struct hfd_watcher **dirty);
/* The boot time at which the next bookmark or end of a watch is due; HF_NSEC_NEVER: none. */
hf_nsec hfd_watchers_due_locked(const struct hfd_cacher *cacher);
/* Queues the bookmarks that are due at `now`, and ends the watches whose time is over. If there are
 * many, it leaves some of them due, so that the caller can release the lock in between. */
void hfd_watchers_tick_locked(struct hfd_cacher *cacher, hf_nsec now, struct hfd_watcher **dirty);
/* Delivers to each watcher of the list. The caller must not hold the lock. */
void hfd_watchers_deliver(struct hfd_watcher *dirty);
