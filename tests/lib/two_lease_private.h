/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of two_lease_fixture.h share: its events and its store. Single-threaded. */
#include "two_lease_fixture.h"

#define FAIL(f, format, ...)                                                                       \
        fail_msg("seed %llu, at %.3f s: " format, (unsigned long long)(f)->seed,                   \
                 (double)(f)->now / 1e9, __VA_ARGS__)

/* A step of a process as the model knows it. */
#define STEP(f, process, format, ...)                                                              \
        do {                                                                                       \
                if ((f)->steps)                                                                    \
                        fprintf((f)->steps, "e%d-%u " format "\n", process,                        \
                                (f)->processes[process].incarnation, __VA_ARGS__);                 \
        } while (0)

extern const char *const two_lease_side_names[HF__TWO_LEASE_SIDES];

/* Whether a fault of this frequency happens now; never while faults are off. */
bool two_lease_has_fault(struct two_lease_fixture *f, unsigned of_1000);
bool two_lease_does_know(const struct two_lease_process *p, enum hf__two_lease_side side);
/* The caller fills in the rest of the event, which belongs to the fixture. */
struct two_lease_event *two_lease_add_event(struct two_lease_fixture *f,
                                            enum two_lease_event_type type, int process,
                                            hf_nsec at);
/* record: what a write stores; NULL for a read. A lost request looks to its sender like a timeout
 * at the deadline. */
void two_lease_send_request(struct two_lease_fixture *f, int process, enum hf__two_lease_side side,
                            bool write, uint32_t op_id, hf_nsec deadline,
                            const struct hf__record *record);
/* The state of a Lease, for a process with a watch. */
void two_lease_send_watch_event(struct two_lease_fixture *f, int process,
                                enum hf__two_lease_side side);
/* Applies a request and sends its reply. */
void two_lease_handle_request(struct two_lease_fixture *f, const struct two_lease_event *request);
