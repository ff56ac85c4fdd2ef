/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repeats operations that a store cannot do at the moment (patient.h).
 *
 * Invariant: an operation is repeated only after HF_E_UNAVAILABLE or HF_E_TIMEOUT, and only until
 * about HFD_PATIENCE after its first failure. After a timeout it may have been done: a caller that
 * repeats a write finds out whether it was.
 */
#include "server/storage/patient.h"

#define RETRY_PAUSE (200 * HF_NSEC_PER_MSEC)

int hfd_patient_init(struct hfd_patient *patient, const struct hf_host *host,
                     struct hf_status *status) {
        patient->status = status;
        int r = hfd_waiter_init(&patient->waiter, host);

        return r == 0 ? 0 : hf_fail(status, r, "%s", hf_strerror(r));
}

void hfd_patient_deinit(struct hfd_patient *patient) { hfd_waiter_deinit(&patient->waiter); }

static hf_nsec now(const struct hfd_patient *patient) { return hf_now(patient->waiter.clock); }

hf_nsec hfd_patient_deadline(const struct hfd_patient *patient) {
        return now(patient) + HFD_PATIENT_TIMEOUT;
}

bool hfd_patient_may_repeat(struct hfd_patient *patient, int error, hf_nsec *give_up) {
        if (error != HF_E_UNAVAILABLE && error != HF_E_TIMEOUT)
                return false;
        if (*give_up == 0)
                *give_up = now(patient) + HFD_PATIENCE;
        if (now(patient) >= *give_up)
                return false;
        hfd_waiter_pause(&patient->waiter, now(patient) + RETRY_PAUSE);
        return true;
}

int hfd_patient_fail(struct hfd_patient *patient, const char *name, int error,
                     const struct hfd_result *result) {
        return hf_fail(patient->status, error, "%s: %s", name,
                       result->status.message[0] ? result->status.message : hf_strerror(error));
}

int hfd_patient_start_list(struct hfd_patient *patient, const struct hfd_patient_range *range,
                           struct hfd_result *result) {
        hfd_waiter_begin(&patient->waiter, result);
        return range->store->ops->list(range->store, range->prefix, range->start, range->revision,
                                       range->limit, range->keys_only,
                                       hfd_patient_deadline(patient), hfd_result_fill, result);
}

int hfd_patient_end_list(struct hfd_patient *patient, const struct hfd_patient_range *range,
                         struct hfd_result *result, int started) {
        hf_nsec give_up = 0;
        int r = hfd_waiter_end(&patient->waiter, result, started);

        while (hfd_patient_may_repeat(patient, r, &give_up))
                r = hfd_waiter_end(&patient->waiter, result,
                                   hfd_patient_start_list(patient, range, result));
        return r != 0 ? hfd_patient_fail(patient, range->name, r, result) : 0;
}

int hfd_patient_list(struct hfd_patient *patient, const struct hfd_patient_range *range,
                     struct hfd_result *result) {
        return hfd_patient_end_list(patient, range, result,
                                    hfd_patient_start_list(patient, range, result));
}
