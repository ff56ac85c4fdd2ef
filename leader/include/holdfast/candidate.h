/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A candidate of a coordinated election (KEP-4355): the LeaseCandidate by which a process says that
 * it may lead a Lease, and with which version. A coordinator at the server asks the candidates
 * whether they are there (pingTime), chooses one, and writes its name into the Lease; the elector
 * that leads by it is one with `coordinated` set (leader.h), whose identity is the candidate's
 * name.
 *
 * The candidate is made when it is missing, a ping is answered (renewTime, later than pingTime),
 * and renewTime is renewed every five minutes, so that it stays valid. Failures are tried again
 * with a backoff. It is not deleted at the end: it runs out at the coordinator.
 *
 * Thread: any, for every function; one thread of its own per candidate. The object is
 * coordination.k8s.io/v1beta1.
 */
#include <stddef.h>

#include <holdfast/client.h>

struct hf_candidate;

struct hf_candidate_config {
        size_t size;
        struct hf_client *client; /* borrowed until hf_candidate_free; unfenced: every instance is a
                                     candidate */
        const char *ns,
                *name; /* of the LeaseCandidate; required. name: the identity of the elector */
        const char *lease_name;        /* the Lease that is contended for, in ns; required */
        const char *binary_version;    /* of the program, semantic: "1.2.3"; required */
        const char *emulation_version; /* which it acts like; NULL = binary_version */
        const char *strategy;          /* NULL = "OldestEmulationVersion" */
        hf_nsec refresh;               /* default 5 min, jittered */
};

/* Copies config. 0, -ENOMEM, HF_E_INVALID naming what is missing, -EINVAL: a config of another
 * make. Starts nothing. */
int hf_candidate_new(const struct hf_host *host, const struct hf_candidate_config *config,
                     struct hf_candidate **ret_candidate, struct hf_status *reterr_status);
int hf_candidate_start(struct hf_candidate *candidate); /* returns at once; 0, -errno, HF_E_CLOSED:
                                                           started or stopped already */
void hf_candidate_stop(struct hf_candidate *candidate); /* blocks until its thread has ended, which
                                                           cancels what it has under way */
struct hf_candidate *
hf_candidate_free(struct hf_candidate *candidate); /* stops first; accepts NULL, returns NULL */
