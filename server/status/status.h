/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Inside `holdfastd status`: the picture (status_picture.c, pure), how it is drawn
 * (status_render.c, pure), how it is gathered (status_gather.c), and the command with its live mode
 * (status.c).
 *
 * A picture is put together from two sources: the Leases of one API server (identity Leases name
 * the instances, all others are what is led), and each instance's own /debug/leader, which knows
 * its state and its term. Texts in it are fit for a terminal.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/cancel.h>
#include <holdfast/error.h>
#include <holdfast/host.h>

#include "leader/lease_history.h"

struct hf__strbuf;

#define HFD_STATUS_MAX_INSTANCES 32 /* shown, and asked; the rest is counted */
#define HFD_STATUS_MAX_LEASES    32

struct hfd_status_instance {
        char identity[HF_IDENTITY_MAX + 1];
        char name[64], host[128], endpoint[160]; /* as its identity Lease says; "" = it does not */
        int64_t renew_us;                        /* its last sign of life; 0 = none */
        /* of its own answer */
        char state[20];                    /* "leading"; "unreachable" until it has answered */
        char lease[2 * (HF_NAME_MAX + 1)]; /* "namespace/name" of the Lease it contends for */
        uint64_t term;                     /* 0 = it leads no term */
        unsigned n_unasked; /* rounds since an instance that does not answer was last asked */
};

struct hfd_status_lease {
        char label[2 * (HF_NAME_MAX + 1)]; /* "namespace/name" */
        char holder[HF_IDENTITY_MAX + 1];  /* "" = nobody */
        int64_t acquire_us, renew_us;      /* 0 = not said */
        int64_t duration_s, n_transitions; /* likewise */
        unsigned n_history;
        struct hf__lease_history_entry history[HF__LEASE_HISTORY_MAX]; /* oldest first */
};

struct hfd_status_model {
        char server[160];          /* where the Leases were read */
        char trouble[256];         /* why they could not be read again; "" = they are fresh */
        char resource_version[40]; /* of the list */
        unsigned n_instances, n_leases;
        unsigned n_more_instances, n_more_leases; /* beyond the limits */
        struct hfd_status_instance instances[HFD_STATUS_MAX_INSTANCES];
        struct hfd_status_lease leases[HFD_STATUS_MAX_LEASES];
};

/* Replaces all that comes from Leases by what the list says; what an incarnation answered stays.
 * HF_E_INVALID, -ENOMEM: unchanged. */
int hfd_status_take_leases(struct hfd_status_model *picture, const char *list, size_t n);
/* What the instance answered on /debug/leader; code 0 = nothing came. */
void hfd_status_take_response(struct hfd_status_instance *instance, int code, const char *body,
                              size_t n);
/* The term of the Lease, as its holder says; 0 = not known. */
uint64_t hfd_status_term(const struct hfd_status_model *picture,
                         const struct hfd_status_lease *lease);

/* The picture as people read it; ages are counted to now. */
void hfd_status_render(const struct hfd_status_model *picture, int64_t now_us,
                       struct hf__strbuf *out);
/* Only what does not change with time nor with a renewal: two pictures of equal facts need not both
 * be printed. */
void hfd_status_facts(const struct hfd_status_model *picture, struct hf__strbuf *out);
/* "12s", "3m4s", "5h": as kubectl has it. text has 32 bytes. */
void hfd_age_format(int64_t usec, char *text);
/* "a/91d0" for the identity host_a_boot_91d0...; another one as it is, cut to 40 characters. text
 * has 48 bytes. */
void hfd_identity_short(const char *identity, char *text);

struct hfd_status_collector;

/* kubeconfig is a path. HF_E_INVALID, HF_E_NOT_FOUND, -errno: with words. host is borrowed. */
int hfd_status_collector_new(const struct hf_host *host, const char *kubeconfig,
                             struct hfd_status_collector **ret_gather,
                             struct hf_status *reterr_status);
struct hfd_status_collector *hfd_status_collector_free(
        struct hfd_status_collector
                *gather); /* accepts NULL; its watch has ended, changed no longer comes */
/*
 * Reads the Leases. When the server does not answer, the instances that picture knows are tried, so
 * that a live picture outlives the instance it was looking through.
 */
int hfd_status_collector_leases(struct hfd_status_collector *gather, struct hf_cancel *token,
                                struct hfd_status_model *picture, struct hf_status *reterr_status);
/*
 * Asks the instances, in parallel; blocks at most about 2 s. One that did not answer is left in
 * peace for a few rounds, so that a live picture of the others does not wait for it each time.
 */
void hfd_status_collector_responses(struct hfd_status_collector *gather,
                                    struct hfd_status_model *picture);
/* The server of the Leases does not answer as an instance: a watch there, open as it may seem,
 * tells nothing. */
bool hfd_status_collector_is_deaf(const struct hfd_status_collector *gather,
                                  const struct hfd_status_model *picture);
/* Watches the Leases from the picture on, unless a watch is open. changed: something did, or the
 * watch is lost; any thread, only pokes. */
void hfd_status_collector_watch(struct hfd_status_collector *gather,
                                const struct hfd_status_model *picture, void (*changed)(void *ctx),
                                void *ctx);
