/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One watch of a namespace's Leases for all electors of a set that use the same client and have
 * their Leases in that namespace, except those that migrate (two_lease_lock.h). The watch passes
 * each event to the elector of the Lease that the event names. A set of ten thousand electors would
 * otherwise need as many requests, of 40 KiB each in libcurl.
 *
 * The Leases of a namespace are watched together if at least HF__LEASE_WATCHES_SHARED of them are
 * expected, until the server forbids it: a role may allow the Leases by their names only. Otherwise
 * each lock opens a watch of its own with hf_client_watch.
 *
 * Unlike hf_client_watch, a new subscription does not begin with the present Lease if the shared
 * watch is open already, only with the next event. Events of one Lease come one at a time and in
 * order.
 *
 * Thread: any, but opens and closes must come one at a time. Nothing blocks.
 */
#include <holdfast/client.h>

struct hf__lease_watches;

#define HF__LEASE_WATCHES_SHARED 8 /* a few single watches cost little, and need fewer rights */

/* 0 or -errno. */
int hf__lease_watches_new(struct hf__lease_watches **ret_watches);
/* All subscriptions must have ended or been closed. If the client has not reported the end of a
 * canceled watch yet, the last such report frees the memory. Accepts NULL, returns NULL. */
struct hf__lease_watches *hf__lease_watches_free(struct hf__lease_watches *watches);

/* Announces one more Lease of this namespace. client is borrowed until all responses have arrived,
 * ns is copied. 0 or -ENOMEM. */
int hf__lease_watches_expect(struct hf__lease_watches *watches, struct hf_client *client,
                             const char *ns);
/* Whether the Leases of this namespace are watched together. */
bool hf__lease_watches_is_shared(struct hf__lease_watches *watches, struct hf_client *client,
                                 const char *ns);
/* Subscribes to the events of one Lease. hf__lease_watches_expect must have announced the namespace
 * with this client. As in hf_client_watch, on_end is called once if the result is 0. name is
 * borrowed until then. A Lease has one subscription at a time; the previous one must have
 * ended or been closed. */
int hf__lease_watches_open(struct hf__lease_watches *watches, struct hf_client *client,
                           const char *ns, const char *name, hf_event_fn on_event,
                           hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id);
/* Ends a subscription with HF_E_CANCELED, as hf_client_watch_cancel does. on_end may be called
 * before this function returns. */
void hf__lease_watches_close(struct hf__lease_watches *watches, struct hf_client *client,
                             const char *ns, const char *name, uint64_t id);
