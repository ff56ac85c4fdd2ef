/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Conflicts: the fields that an apply would take from other managers. Thread: owner only. */
#include "base/strbuf.h"
#include "server/apply/managers.h"

#define HFD_CONFLICTS_LISTED_MAX 200  /* conflicts that a response lists; all are counted */
#define HFD_CONFLICTS_PATH_MAX   1000 /* bytes of a path in the response; longer ones are cut */
/* Bytes of a manager's name, subresource or apiVersion in the response; longer ones are cut. Names
 * and subresources that a client sends are not longer. An apiVersion in managedFields may be, and
 * so may any text that another program has stored. */
#define HFD_CONFLICTS_NAME_MAX 256

/* Why an apply failed. Begins as {0}; the caller calls hfd_apply_failure_done. */
struct hfd_apply_failure {
        struct hf__strbuf message; /* owned */
        struct hf__json *causes;   /* owned; for a conflict, the causes of the Status */
};

struct hfd_conflicts {
        struct hfd_manager *at; /* memory of scratch: managers, with the fields in conflict */
        size_t n;
        size_t n_fields; /* of all managers together */
};

/* Finds the fields among `changed` that managers other than `self` own. self: an element of
 * managers itself, because its address is compared. When memory is exhausted, scratch->failed is
 * set; the same holds for the next function. */
struct hfd_conflicts hfd_conflicts_find(struct hf__arena *scratch,
                                        const struct hfd_managers *managers,
                                        const struct hfd_manager *self,
                                        const struct hfd_fields *changed);
/* The conflicts whose fields are not in `allowed`. */
struct hfd_conflicts hfd_conflicts_except(struct hf__arena *scratch,
                                          const struct hfd_conflicts *conflicts,
                                          const struct hfd_fields *allowed);
/* Writes Kubernetes' message and causes. 0 or -ENOMEM. */
int hfd_conflicts_report(const struct hfd_conflicts *conflicts, struct hfd_apply_failure *failure);
void hfd_apply_failure_done(struct hfd_apply_failure *failure);
