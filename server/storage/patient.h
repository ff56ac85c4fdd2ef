/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Lists the keys of a store that may be unavailable for a while, for commands that run without a
 * server: a list that fails for this reason is repeated for HFD_PATIENCE. A caller can repeat its
 * other operations in the same way by hfd_patient_may_repeat. Thread: one thread. Blocks.
 */
#include "server/storage/waiter.h"

#define HFD_PATIENT_TIMEOUT (10 * HF_NSEC_PER_SEC) /* for one operation */
#define HFD_PATIENCE        (20 * HF_NSEC_PER_SEC) /* with a store that does not work */

struct hfd_patient {
        struct hfd_waiter waiter;
        struct hf_status *status; /* borrowed; of the latest failure */
};

/* 0 or -errno, with a status. host is borrowed. */
int hfd_patient_init(struct hfd_patient *patient, const struct hf_host *host,
                     struct hf_status *status);
void hfd_patient_deinit(struct hfd_patient *patient);

/* The deadline of an operation that is started now. */
hf_nsec hfd_patient_deadline(const struct hfd_patient *patient);
/* Whether to repeat an operation that has failed with this error. If so, waits first. *give_up: the
 * boot time from which on it is not repeated; 0 before the first failure, which sets it. */
bool hfd_patient_may_repeat(struct hfd_patient *patient, int error, hf_nsec *give_up);
/* Sets the status to the message of the result (without one, to the text of error), after the name
 * of the store. Returns error. */
int hfd_patient_fail(struct hfd_patient *patient, const char *name, int error,
                     const struct hfd_result *result);

/* The range to list. */
struct hfd_patient_range {
        struct hfd_store *store;
        const char *name; /* of the store, for messages: "the source" */
        const char *prefix, *start;
        uint64_t revision; /* 0 = the current one */
        size_t limit;
        bool keys_only;
};
/* Starts a list without waiting, so that several can be under way. Returns what
 * hfd_patient_end_list gets as `started`. */
int hfd_patient_start_list(struct hfd_patient *patient, const struct hfd_patient_range *range,
                           struct hfd_result *result);
/* Ends a list that was started, and repeats it if necessary. 0, or the store's error. */
int hfd_patient_end_list(struct hfd_patient *patient, const struct hfd_patient_range *range,
                         struct hfd_result *result, int started);
/* Starts a list and ends it. */
int hfd_patient_list(struct hfd_patient *patient, const struct hfd_patient_range *range,
                     struct hfd_result *result);
