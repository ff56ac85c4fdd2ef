/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The bootstrap object and its phases. The files of this folder that send requests share this
 * state. bootstrap.c describes the model.
 */
#include <pthread.h>
#include <stdatomic.h>

#include <holdfast/bootstrap.h>
#include <holdfast/client.h>
#include <holdfast/metrics.h>

#include "bootstrap/ledger.h"
#include "bootstrap/steps.h"

#define HF__COMPONENT "bootstrap" /* in log lines */

/* Borrowed from the registry; each may be NULL. */
struct hf__phase_metrics {
        struct hf_metric *complete, *failing, *steps[_HF__OUTCOME_MAX], *failures, *gave_way;
};

struct hf__phase {
        /* immutable once the elector and the hooks run */
        struct hf_bootstrap *bootstrap; /* borrowed; owns the phase */
        char name[48];
        char full_name[64];   /* "bootstrap-<name>": controller, hook and check */
        const char *after[1]; /* the previous phase's full name; NULL = it is the first */
        struct hf__steps steps;
        hf_nsec hook_patience; /* as in struct hf_bootstrap_phase */
        struct hf__phase_metrics metrics;
        bool has_readiness_check; /* it is registered; set by hf_bootstrap_install */

        /* used only by the phase's thread in the current term; terms do not overlap */
        /* A phase that has failed for this long releases the Lease. Doubles with each release, up
         * to GIVE_WAY_MAX (phase_run.c); reset when the phase is complete. */
        hf_nsec give_way_after;

        /*
         * Set once this process has seen in the ledger that nothing is left to do, and never
         * cleared. There may be work to do again, for example if a user deletes the ledger, but
         * nothing waits for it. Thread: any.
         */
        atomic_bool settled;

        /* guarded by bootstrap->mu */
        struct hf_bootstrap_info info;
};

struct hf_bootstrap {
        /* immutable after new, except for the elector, which is set before anything runs */
        const struct hf_host *host; /* borrowed */
        char version[HF__VERSION_MAX + 1];
        char ledger_ns[HF_NAME_MAX + 1], ledger_name[HF_NAME_MAX + 1];
        struct hf_client *client; /* borrowed; NULL = the client of the hooks */
        bool one_revision;        /* as in struct hf_bootstrap_config */
        hf_nsec give_way_after;   /* the initial value of each phase's give_way_after */
        void (*on_progress)(void *ctx, enum hf_bootstrap_point point,
                            const struct hf_bootstrap_info *info);
        void *ctx;                  /* borrowed */
        struct hf_elector *elector; /* borrowed; NULL = the Lease is never released */
        struct hf__manifest_kinds kinds;
        struct hf__phase *phases; /* owned */
        size_t n_phases;
        const char *phase_names[HF_BOOTSTRAP_PHASES_MAX]; /* borrowed from the phases */
        struct hf_controller controllers[HF_BOOTSTRAP_PHASES_MAX];
        bool has_health_check; /* the check `bootstrap` is registered */

        pthread_mutex_t mu; /* guards the phases' info; nothing else is done under it */
};

/* The resource type of the ledger: ConfigMaps. */
extern const struct hf_resource hf__ledger_resource;

/* Whether the ledger leaves nothing to do in the phase. A ledger in a newer format leaves nothing:
 * the caller checks that it shows the phase as complete. Pure. */
bool hf__phase_settled_by(const struct hf__phase *phase, const struct hf__ledger *ledger);
/* The is_settled function of the phase's controller; ctx is the struct hf__phase. Thread: any. */
bool hf__phase_is_settled(void *ctx);
