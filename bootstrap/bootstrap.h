/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the parts of the bootstrap module share: the object and its phases. The model is in
 * bootstrap.c. */
#include <pthread.h>
#include <stdatomic.h>

#include <holdfast/bootstrap.h>
#include <holdfast/client.h>
#include <holdfast/metrics.h>

#include "bootstrap/manifest.h"

#define HF__COMPONENT "bootstrap"

struct hf__phase_metrics {
        struct hf_metric *complete, *failing, *steps[_HF__OUTCOME_MAX], *failures, *gave_way;
};

struct hf__phase {
        /* immutable after new */
        struct hf_bootstrap *bootstrap;
        char name[48];
        char full_name[64]; /* "bootstrap-<name>": of the controller, the hook and the health check
                             */
        const char *after[2];
        struct hf__steps steps;
        hf_nsec hook_patience;
        struct hf__phase_metrics metrics;
        bool has_check; /* the readiness check is registered */

        /* the phase's thread of the present term only; terms follow each other */
        hf_nsec give_way_after;

        /*
         * This process has seen in the ledger that nothing is left to do. It stays so: nothing
         * brings an old content back, and a ledger that somebody deletes makes work, but none that
         * others wait for. Any thread.
         */
        atomic_bool settled;

        /* guarded by bootstrap->mu */
        struct hf_bootstrap_info info;
};

struct hf_bootstrap {
        /* immutable after new, but for the elector, which is set before anything runs */
        const struct hf_host *host; /* borrowed */
        char version[HF__VERSION_MAX + 1];
        char ledger_ns[HF_NAME_MAX + 1], ledger_name[HF_NAME_MAX + 1];
        struct hf_client *client; /* borrowed; may be NULL */
        bool one_revision;
        hf_nsec give_way_after;
        void (*on_progress)(void *ctx, enum hf_bootstrap_point point,
                            const struct hf_bootstrap_info *info);
        void *ctx;
        struct hf_elector *elector; /* borrowed; NULL = none gives way */
        struct hf__kinds kinds;
        struct hf__phase *phases; /* owned */
        size_t n_phases;
        const char *phase_names[HF_BOOTSTRAP_PHASES_MAX];
        struct hf_controller controllers[HF_BOOTSTRAP_PHASES_MAX];
        bool has_check;

        pthread_mutex_t mu; /* of the phases' info; nothing is called under it */
};

extern const struct hf_resource hf__ledger_resource;

/* The phase's controller (phase_run.c); ctx is the struct hf__phase. */
int hf__phase_run(struct hf_term *term, void *ctx);
bool hf__phase_settled(void *ctx);
/* Whether the ledger leaves nothing to do in it. */
bool hf__phase_is_settled(const struct hf__phase *phase, const struct hf__ledger *ledger);
/* The phase's hook (ledger_wait.c); ctx likewise. */
int hf__phase_hook(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status);

/* ---- report.c: how a phase is seen from outside. Thread: any ---- */

#define HF__UNCHANGED ((size_t)-1)

/* The metrics, and the health check of what fails. 0, HF_E_EXISTS, -errno. */
int hf__report_init(struct hf_bootstrap *bootstrap);
/* The health check of a phase that is part of being ready. Likewise. */
int hf__report_readiness(struct hf__phase *phase);
void hf__report_done(struct hf_bootstrap *bootstrap);
/* The phase is known to be complete, or not to be. */
void hf__report_complete(struct hf__phase *phase, bool complete);
/* Notes what is known and tells on_progress. step may be NULL; n_settled may be HF__UNCHANGED. */
void hf__report_progress(struct hf__phase *phase, enum hf_bootstrap_point point, const char *step,
                         size_t n_settled);
/* A failure: log, metrics, an Event by the term's client, and on_progress. n: how many there were
 * in a row. */
void hf__report_failure(struct hf__phase *phase, struct hf_term *term, const char *step, unsigned n,
                        const struct hf_status *why);
/* The phase's controller returns: nothing runs, nothing fails any more in this process. */
void hf__report_over(struct hf__phase *phase);
