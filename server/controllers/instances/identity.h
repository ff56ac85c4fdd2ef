/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The identity of one incarnation of a holdfastd process, and the label of its identity Lease.
 *
 * An identity is never used twice: neither a restarted process nor a second process with the same
 * instance name on the same host can mistake another process's record for its own.
 */
#include <holdfast/error.h>
#include <holdfast/leader.h>

/* The label of identity Leases, which kube-apiserver uses too, and the value for holdfastd. */
#define HFD_IDENTITY_LABEL "apiserver.kubernetes.io/identity"
#define HFD_IDENTITY_VALUE "holdfastd"

#define HFD_IDENTITY_SECONDS       40 /* leaseDurationSeconds of an identity Lease */
#define HFD_IDENTITY_RENEW_SECONDS 10 /* leaves 30 s in which a failing renewal is repeated */

struct hfd_identity {
        char identity[HF_IDENTITY_MAX + 1]; /* <host>_<instance>_<boot>_<16 hex digits> */
        char lease_name[64];                /* name of the identity Lease; also unique */
        char host[128], instance[64];
        char endpoint[160]; /* the URL of this instance, such as https://127.0.0.1:6443 */
};

/*
 * Fills identity, lease_name, host and instance from the instance's name, the machine's host name,
 * its boot id and random bytes. In host and instance capital letters become small ones, and
 * characters other than ASCII letters and digits become '-'. endpoint is empty: the caller sets it
 * once the server listens. 0 or -errno. Thread: any.
 */
int hfd_identity_make(const char *instance, struct hfd_identity *ret_identity);
