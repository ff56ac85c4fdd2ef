/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Measures how much one object uses of each resource that a quota may count.
 *
 *      pods                      pods, cpu and memory and the like, extended resources, huge pages
 *      persistentvolumeclaims    claims and their storage, also for each class
 *      services                  services, node ports and load balancers
 *      other kinds               only their number, so nothing is measured here
 *
 * Pure. Thread: any. For an object of n values the time is in proportion to n log n, the memory to
 * n.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/quota/quota_kind.h"
#include "server/schema/values/quantity.h"

struct hf__json;

#define HFD_QUOTA_NAME_MAX 320 /* bytes of the name of a counted kind, with the NUL */

/* Whether objects of the kind, which is not HFD_QUOTA_OBJECTS, use the resource. */
bool hfd_quota_kind_tracks(enum hfd_quota_kind kind, const char *name);

/* A sum over the parts of a pod (struct hfd_pod_parts). */
struct hfd_pod_sum {
        const char *name;             /* borrowed from the pod */
        struct hfd_quantity total;    /* what the whole pod needs */
        struct hfd_quantity sidecars; /* what the sidecars need that were added so far */
        struct hfd_quantity init;     /* the most needed at once before the containers start */
        bool present;                 /* false: only the name was collected, there is no sum */
        bool negative;                /* a part asks for less than nothing; this is not added */
};

struct hfd_pod_sums {
        struct hfd_pod_sum *of; /* owned; sorted by name */
        size_t n;
};

/* Zero = nothing. Borrows texts from the object, which must live longer. */
struct hfd_usage {
        enum hfd_quota_kind kind;
        bool ended;                           /* of a pod: see hfd_pod_has_ended */
        struct hfd_pod_sums requests, limits; /* of a pod */
        const char *storage_class;            /* of a claim; NULL = none */
        bool has_storage, negative_storage;
        struct hfd_quantity storage;
        uint64_t node_ports, load_balancers; /* of a service */
};

/* Measures an object of a kind that is not HFD_QUOTA_OBJECTS. now_s: the time, for pods that are
 * being deleted. 0 or -ENOMEM; the caller calls done, also after a failure. */
int hfd_usage_init(struct hfd_usage *usage, enum hfd_quota_kind kind, const struct hf__json *object,
                   int64_t now_s);
void hfd_usage_done(struct hfd_usage *usage);
/* How much the object uses of the resource. False: it has no such resource. */
bool hfd_usage_get(const struct hfd_usage *usage, const char *name,
                   struct hfd_quantity *ret_quantity);
/* Whether the object asks for less than nothing of the resource. */
bool hfd_usage_is_negative(const struct hfd_usage *usage, const char *name);

/* ---- pods (pod_usage.c) ---- */

/* Whether a pod itself asks for cpu, memory or huge pages, or limits them, apart from its
 * containers. */
bool hfd_pod_has_own_resources(const struct hf__json *spec);
/* The parts that are summed up; each may be NULL, and is borrowed. */
struct hfd_pod_parts {
        const struct hf__json *containers, *init_containers;
        /* The object with the member `resources`: the spec of a pod or of a claim, or a container.
         * If `containers` is not NULL, cpu, memory and huge pages in `resources` replace the sums
         * over the containers, and the rest of it is ignored. Otherwise all of it is added. */
        const struct hf__json *itself;
        const struct hf__json *overhead;
};
/* Sums up the requests or the limits ("requests", "limits"). 0 or -ENOMEM; the caller calls done,
 * also after a failure. */
int hfd_pod_sums_of(struct hfd_pod_sums *sums, const struct hfd_pod_parts *parts,
                    const char *which);
/* The same for all parts of a pod. */
int hfd_pod_sums_init(struct hfd_pod_sums *sums, const struct hf__json *spec, const char *which);
void hfd_pod_sums_done(struct hfd_pod_sums *sums);
/* NULL: no part of the pod has the resource. */
const struct hfd_pod_sum *hfd_pod_sums_find(const struct hfd_pod_sums *sums, const char *name);
/* Whether a pod has ended, or should have been deleted by now. Then it still counts as an object
 * ("count/pods"), but uses nothing else, not even one of "pods". */
bool hfd_pod_has_ended(const struct hf__json *pod, int64_t now_s);
