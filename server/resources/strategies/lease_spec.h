/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the specs of Leases and LeaseCandidates have in common. Types are strict, as in Kubernetes.
 * A MicroTime is converted to the format in which this server writes it. `kind` is "Lease" or
 * "LeaseCandidate", for the messages. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;
struct hfd_causes;

#define HFD_OLDEST_EMULATION_VERSION "OldestEmulationVersion"

/*
 * Gets the spec, borrowed from object, and removes its members that are null. *ret_spec NULL =
 * object has no spec. False: the spec is not an object, and reason is the message.
 */
bool hfd_lease_spec_get(struct hf__json *object, const char *kind, struct hf__json **ret_spec,
                        char *reason, size_t max_reason);
/* True: the field is absent or a string. False: it is not, and reason is the message. */
bool hfd_lease_spec_is_text(const struct hf__json *spec, const char *kind, const char *field,
                            char *reason, size_t max_reason);
/* The same for a whole number of 32 bits. */
bool hfd_lease_spec_is_int32(const struct hf__json *spec, const char *kind, const char *field,
                             char *reason, size_t max_reason);
/* The same for a MicroTime, which is normalized in spec. */
bool hfd_lease_spec_is_micro_time(struct hf__json *spec, const char *field, char *reason,
                                  size_t max_reason);
/*
 * Adds a cause unless the strategy of a coordinated election is Kubernetes' own, or the name of
 * another one in the form domain/name. strategy is not empty.
 */
void hfd_lease_spec_validate_strategy(const char *strategy, struct hfd_causes *causes);
