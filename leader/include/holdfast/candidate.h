/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A candidate of a coordinated election (KEP-4355). It keeps a LeaseCandidate object up to date, by
 * which this process says that it can lead a Lease, and with which version.
 *
 * A coordinator at the server checks that candidates are alive (it sets pingTime), chooses one, and
 * writes its name into the Lease. The elector that then leads is one with `coordinated` set
 * (leader.h); its identity is the candidate's name.
 *
 * The candidate creates the object if it is missing, answers a ping (it sets renewTime to a later
 * time than pingTime), and renews it every five minutes, so that it stays valid. Failures are
 * retried with backoff. The object is not deleted at the end; the coordinator lets it expire.
 *
 * Each candidate has one thread of its own. The object is coordination.k8s.io/v1beta1.
 * Thread: any, for every function.
 */
#include <stddef.h>

#include <holdfast/client.h>

struct hf_candidate;

struct hf_candidate_config {
        size_t size;              /* sizeof(struct hf_candidate_config) */
        struct hf_client *client; /* required; borrowed until hf_candidate_free. Not a term's
                                     client: every instance is a candidate */
        const char *ns, *name;    /* of the LeaseCandidate; required; copied. name: the identity of
                                     the elector */
        const char *lease_name;   /* the Lease to lead, in ns; required; copied */
        const char *binary_version;    /* of the program, semantic: "1.2.3"; required; copied */
        const char *emulation_version; /* the version it behaves like; NULL = binary_version */
        const char *strategy;          /* NULL = "OldestEmulationVersion" */
        hf_nsec refresh;               /* between renewals, jittered; 0 = 5 min */
};

/* Checks and copies config; starts nothing. 0, -ENOMEM, HF_E_INVALID: names what is missing,
 * -EINVAL: config->size is wrong. host is borrowed until hf_candidate_free. */
int hf_candidate_new(const struct hf_host *host, const struct hf_candidate_config *config,
                     struct hf_candidate **ret_candidate, struct hf_status *reterr_status);
/* Returns at once. 0, -errno, HF_E_CLOSED: started or stopped before. */
int hf_candidate_start(struct hf_candidate *candidate);
/* Cancels the requests under way and blocks until the thread has ended. */
void hf_candidate_stop(struct hf_candidate *candidate);
/* Stops first. Accepts NULL, returns NULL. */
struct hf_candidate *hf_candidate_free(struct hf_candidate *candidate);
