/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The facts that `holdfastd status` shows: the instances, and the Leases with their holders. Pure.
 *
 * A model has two sources:
 * - the list of Leases of one API server. The identity Leases of holdfastd name the instances.
 *   Ignored are the other Leases with the label of identity Leases (HFD_IDENTITY_LABEL), such as
 *   those of kube-apiserver, and the Leases of nodes. The remaining Leases belong to elections.
 * - the response of each instance to GET /debug/leader, which has its state and its term.
 *
 * All texts in a model are printable ASCII, apart from the URL that the user's kubeconfig gives.
 * Other bytes are replaced by '?', so that nothing in a Lease or a response can control the
 * terminal.
 *
 * Thread: a model belongs to one thread. Only hfd_status_model_set_response may run on another: it
 * changes one instance, and the caller locks (collector.c).
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/error.h>
#include <holdfast/host.h>

#include "leader/lease_history.h"

/* Kubelets renew one Lease per node here as a heartbeat; no election uses them. */
#define HFD_STATUS_NODE_NAMESPACE "kube-node-lease"

#define HFD_STATUS_MAX_INSTANCES 32 /* stored and queried; further ones are only counted */
#define HFD_STATUS_MAX_LEASES    32 /* stored; further ones are only counted */

struct hfd_status_instance {
        /* from its identity Lease */
        char identity[HF_IDENTITY_MAX + 1];
        char name[64], host[128], endpoint[160]; /* from annotations; "" = not given */
        int64_t renew_us; /* last renewal, microseconds since 1970; 0 = none */
        /* from its response */
        char state[32];                    /* "unreachable" until it has responded */
        char lease[2 * (HF_NAME_MAX + 1)]; /* "namespace/name" of the Lease it contends for */
        uint64_t term;                     /* 0 = it leads no term, or its term is not known */
        /* If it did not respond to the last query: the refreshes since then, including that of the
         * query. 0 = it responded, or was not queried yet. Counted by the collector. */
        unsigned n_skipped;
};

struct hfd_status_lease {
        char label[2 * (HF_NAME_MAX + 1)]; /* "namespace/name" */
        char holder[HF_IDENTITY_MAX + 1];  /* "" = nobody */
        int64_t acquire_us, renew_us;      /* microseconds since 1970; 0 = not given */
        int64_t duration_s;                /* 0 = not given */
        int64_t n_transitions;             /* how often the holder has changed */
        unsigned n_history;
        struct hf__lease_history_entry history[HF__LEASE_HISTORY_MAX]; /* oldest first */
};

struct hfd_status_model {
        char server[160];          /* URL that the Leases were read from */
        char read_error[256];      /* why the last read of the Leases failed; "" = it succeeded */
        char resource_version[40]; /* of the list; a watch starts from it */
        unsigned n_instances, n_leases;
        unsigned n_omitted_instances, n_omitted_leases;                 /* beyond the limits */
        struct hfd_status_instance instances[HFD_STATUS_MAX_INSTANCES]; /* sorted by name */
        struct hfd_status_lease leases[HFD_STATUS_MAX_LEASES];          /* sorted by label */
};

/*
 * Replaces everything that comes from Leases by the contents of a LeaseList (n bytes of JSON). An
 * instance's response is kept while its identity and endpoint are the same. HF_E_INVALID (also if
 * there is no list of items) or another error of hf__json_parse: the model is unchanged.
 */
int hfd_status_model_set_leases(struct hfd_status_model *model, const char *list, size_t n);

/* Stores why the last read of the Leases failed. */
void hfd_status_model_set_read_error(struct hfd_status_model *model, const char *message);

/* The code that hfd_status_model_set_response gets for a server whose certificate was issued by
 * none of the CAs that are trusted (collector.h), and the state that the function stores for it. */
#define HFD_STATUS_OTHER_CA       (-1)
#define HFD_STATUS_OTHER_CA_STATE "certificate of another CA"
/* Stores an instance's response to GET /debug/leader: the n bytes of body. code: the HTTP status,
 * HFD_STATUS_OTHER_CA, or 0 = no response. */
void hfd_status_model_set_response(struct hfd_status_instance *instance, int code, const char *body,
                                   size_t n);

/* The term that the Lease's holder reported in its response; 0 = not known. */
uint64_t hfd_status_model_term(const struct hfd_status_model *model,
                               const struct hfd_status_lease *lease);

/* Whether the Lease has a holder that did not renew it for its duration: the holder is dead or cut
 * off, or the clocks differ. False if the Lease gives no duration or no time of a renewal. now_us:
 * microseconds since 1970. */
bool hfd_status_model_is_silent(const struct hfd_status_lease *lease, int64_t now_us);
