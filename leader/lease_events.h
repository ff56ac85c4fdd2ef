/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The Events that report who leads, as client-go writes them: "<identity> became leader" and
 * "<identity> stopped leading", reason LeaderElection, on the Lease.
 *
 * Best effort: while the server does not respond, a few Events are kept and retried, and nothing
 * waits for a response.
 */
#include <stdbool.h>

#include <holdfast/client.h>

#include "leader/record.h"

struct hf__lease_events;

/* Texts are copied. host and client are borrowed: host until hf__lease_events_free, client until
 * the response to the last request has come. 0 or -errno. */
int hf__lease_events_new(const struct hf_host *host, struct hf_client *client, const char *ns,
                         const char *name, const char *identity,
                         struct hf__lease_events **ret_events);
/*
 * Adds an Event about a term that began or ended. lease: the record of the term; real_us: the time
 * of the Event, microseconds since 1970. The Event is sent by the first hf__lease_events_iterate at
 * or after boot time `due`. Thread: owner only. Never blocks.
 */
void hf__lease_events_add(struct hf__lease_events *events, bool began,
                          const struct hf__record *lease, int64_t real_us, hf_nsec due);
/* Sends the Events that are due. Thread: owner only. Never blocks. */
void hf__lease_events_iterate(struct hf__lease_events *events, hf_nsec now);
/* Whether an Event still has to be sent or retried. Thread: any. */
bool hf__lease_events_waiting(struct hf__lease_events *events);
/* Requests under way continue; the last response frees the memory. Accepts NULL, returns NULL. */
struct hf__lease_events *hf__lease_events_free(struct hf__lease_events *events);
