/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A candidate of a coordinated election (KEP-4355). It keeps a LeaseCandidate object up to date.
 * The object declares that this process can lead a certain Lease, and which version it runs.
 *
 * A coordinator at the server chooses one candidate and writes its name into the Lease. Before that
 * it sets pingTime in each LeaseCandidate, to learn which candidates are alive. A process that has
 * a candidate also has an elector with `coordinated` set (leader.h). The elector's identity is the
 * candidate's name, and it leads once the Lease contains that name.
 *
 * The candidate creates the object if it is missing. It responds to a ping by setting renewTime to
 * a time later than pingTime. It renews the object at intervals (refresh), so that it stays valid.
 * Failures are retried with backoff. hf_candidate_stop does not delete the object: it expires.
 *
 * Each candidate has its own thread. The object is coordination.k8s.io/v1beta1.
 * Thread: any, for every function. No other thread may use the candidate during hf_candidate_free.
 */
#include <stddef.h>

#include <holdfast/api.h>
#include <holdfast/client.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_candidate;

struct hf_candidate_config {
        size_t size;                   /* sizeof(struct hf_candidate_config) */
        struct hf_client *client;      /* required; borrowed until hf_candidate_free. The
                                          candidate's watch may end after that. Do not pass
                                          hf_term_client's (leader.h): it refuses the writes of a
                                          standby */
        const char *ns, *name;         /* the LeaseCandidate's; required; copied. name must be the
                                          elector's identity */
        const char *lease_name;        /* the Lease to lead, in namespace ns; required; copied */
        const char *binary_version;    /* of this program, as "1.2.3"; required; copied */
        const char *emulation_version; /* the version it emulates; NULL = binary_version; copied */
        const char *strategy;          /* NULL = "OldestEmulationVersion"; copied */
        hf_nsec refresh;               /* time between renewals, plus up to 20 %; 0 = 5 min */
};

/* Checks and copies config; starts nothing. host is borrowed until hf_candidate_free. 0 or -errno.
 * HF_E_INVALID: a member is missing or invalid, and reterr_status names it. -EINVAL: config->size
 * is wrong. */
HF_MUST_CHECK int hf_candidate_new(const struct hf_host *host,
                                   const struct hf_candidate_config *config,
                                   struct hf_candidate **ret_candidate,
                                   struct hf_status *reterr_status);
/* Starts the thread and returns at once. 0 or -errno. HF_E_CLOSED: already started or stopped. */
HF_MUST_CHECK int hf_candidate_start(struct hf_candidate *candidate);
/* Cancels the requests under way and blocks until the thread has ended. Before the start it only
 * makes a later start fail. A second call returns at once, even if the first one still blocks. */
void hf_candidate_stop(struct hf_candidate *candidate);
/* Stops the candidate if necessary, then frees it. Accepts NULL, returns NULL. */
struct hf_candidate *hf_candidate_free(struct hf_candidate *candidate);

#ifdef __cplusplus
}
#endif
