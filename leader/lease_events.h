/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The Events that tell people who led: "<identity> became leader" and "<identity> stopped leading",
 * reason LeaderElection, on the Lease. Best effort: they are written behind the election's back, a
 * few are kept and tried again while the server does not answer, and nothing waits for them.
 */
#include <stdbool.h>

#include <holdfast/client.h>

#include "leader/record.h"

struct hf__lease_events;

/* Texts are copied; the client is borrowed and must outlive every answer. 0 or -errno. */
int hf__lease_events_new(const struct hf_host *host, struct hf_client *client, const char *ns,
                         const char *name, const char *identity,
                         struct hf__lease_events **ret_events);
/*
 * Notes that a term began or ended; lease is the record it was led under. Written by the next turn
 * that is not before `due`. Thread: owner only, as for turn. Never blocks.
 */
void hf__lease_events_note(struct hf__lease_events *events, bool began,
                           const struct hf__record *lease, int64_t real_us, hf_nsec due);
/* Writes what is due. */
void hf__lease_events_iterate(struct hf__lease_events *events, hf_nsec now);
/* Whether any is noted that was not sent, or is to be sent again. Thread: any. */
bool hf__lease_events_waiting(struct hf__lease_events *events);
/* What is under way goes on, and touches nothing but its own memory. Accepts NULL, returns NULL. */
struct hf__lease_events *hf__lease_events_free(struct hf__lease_events *events);
