/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Bootstrap: brings the objects that a system needs from its first moment into the store, exactly
 * once per cluster, whatever crashes and however many instances start at once.
 *
 * A *phase* is an ordered list of *manifests*: objects in YAML or JSON, built in or from
 * directories. The leader applies them, gated and fenced, before its controllers run: each phase is
 * a leader-only controller `bootstrap-<phase>` of the elector's set. A *ledger*, a ConfigMap, has
 * one record per manifest, and what is in it is never done again. Each phase is also a post-start
 * hook `bootstrap-<phase>`, on every instance, leading or not: it is done once the ledger says that
 * *a* version has completed the phase, so that a rolling upgrade cannot lock itself out.
 *
 * The rules by which a manifest is applied, left alone or replaced, in upgrades and in mixed
 * versions, are in docs/semantics.md, "Bootstrap". In short: what is absent is created; what
 * somebody made, edited or deleted stays as they left it; a newer version replaces what an older
 * one applied and nobody edited; an older one undoes nothing.
 *
 * Use: hf_bootstrap_new, put hf_bootstrap_controllers into the elector's set and let the other
 * leader-only controllers come `after` the last of them, hf_bootstrap_set_elector,
 * hf_bootstrap_install, then run the hooks. A host with hooks of its own leaves out the install and
 * asks hf_bootstrap_info.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/error.h>
#include <holdfast/hooks.h>
#include <holdfast/host.h>
#include <holdfast/leader.h>

#define HF_BOOTSTRAP_PHASES_MAX 8
#define HF_BOOTSTRAP_STEPS_MAX  1000 /* manifests in all phases together */

struct hf_bootstrap;

/* A kind of object that manifests may be of. */
struct hf_bootstrap_kind {
        const char *api_version; /* "v1", "rbac.authorization.k8s.io/v1" */
        const char *kind;        /* "ConfigMap" */
        const char *plural;      /* "configmaps" */
        bool namespaced;
};

/* A manifest text that is built in: one object as JSON, or any number of YAML documents. */
struct hf_bootstrap_manifest {
        const char *source; /* what messages call it: "phase-0/10-admin.json" */
        const char *text;
        size_t n;
};

struct hf_bootstrap_phase {
        const char *name; /* required, a DNS label of up to 40 bytes: "phase-0" */
        const struct hf_bootstrap_manifest
                *manifests; /* n_manifests; applied first, in this order */
        size_t n_manifests;
        /*
         * Directories, NULL-terminated; NULL = none. Of each the regular files *.yaml, *.yml and
         * *.json in the order of their names; names that begin with a dot are left out. A file has
         * up to 1 MiB.
         */
        const char *const *directories;
        /*
         * How long the phase's hook waits for a completed phase in the ledger. 0 = without limit:
         * the phase is part of being ready. Else the hook is done, with a line in the log, when
         * that has passed.
         */
        hf_nsec hook_patience;
};

/* What on_progress is told. */
enum hf_bootstrap_point {
        HF_BOOTSTRAP_BEGUN,    /* the leader has begun a phase in which something is to be done */
        HF_BOOTSTRAP_APPLIED,  /* the object of a step is as it shall be; the ledger does not say so
                                  yet */
        HF_BOOTSTRAP_RECORDED, /* the ledger has the step's record */
        HF_BOOTSTRAP_COMPLETE, /* the ledger says that the phase is complete */
        HF_BOOTSTRAP_FAILING,  /* a step failed; it is tried again */
        HF_BOOTSTRAP_GAVE_WAY, /* it kept failing, and the Lease is being released */
};

struct hf_bootstrap_info {
        char phase[48];
        size_t n_steps;
        size_t n_settled; /* steps for which there is nothing left to do, as this process last knew
                           */
        bool complete; /* the ledger says that a version completed it, as this process last knew */
        bool running;  /* this process leads and works on it */
        bool failing;  /* and the last try failed */
        unsigned n_failures; /* in a row; 0 unless failing */
        char step[128];      /* running: what is being done: "ConfigMap/default/a"; may be cut */
        char message[464];   /* failing: one line that names manifest, object and reason */
};

struct hf_bootstrap_config {
        size_t size;
        const char *version; /* required: of this program, "1.2.3" or "1.2.3-rc.1"; ordered as
                                semver orders them */
        const struct hf_bootstrap_kind *kinds; /* n_kinds; required: what the server has */
        size_t n_kinds;
        const struct hf_bootstrap_phase *phases; /* n_phases, in order; required */
        size_t n_phases;
        const char *ledger_ns, *ledger_name; /* default kube-system, holdfast-bootstrap */
        struct hf_client *client; /* for the hooks, which watch the ledger; borrowed; NULL = that of
                                     the hooks */
        bool one_revision; /* as in cache.h: a read not older than the acquiring write is as good as
                              a consistent one */
        hf_nsec give_way_after; /* a leader whose bootstrap has failed for so long gives way; 0 = 15
                                   s; doubles each time */
        /* Called on the phase's thread, without a lock; while it has not returned the phase stands
         * still. Optional. */
        void (*on_progress)(void *ctx, enum hf_bootstrap_point point,
                            const struct hf_bootstrap_info *info);
        void *ctx;
};

/*
 * Reads and checks all manifests; writes nothing, asks no server. Everything is copied, but for
 * client and ctx. HF_E_INVALID: one line that names the file, the document and the line or field:
 * it does not parse, is of a kind that is not among kinds, lacks a name, is there twice. -errno: a
 * directory or file cannot be read. Blocks for the file system.
 */
int hf_bootstrap_new(const struct hf_host *host, const struct hf_bootstrap_config *config,
                     struct hf_bootstrap **ret_bootstrap, struct hf_status *reterr_status);
/* After electors and hooks are freed. Accepts NULL. */
struct hf_bootstrap *hf_bootstrap_free(struct hf_bootstrap *bootstrap);

/* One leader-only controller per phase, each `after` the one before; borrowed until free. For
 * hf_elector_config.controllers. */
const struct hf_controller *hf_bootstrap_controllers(struct hf_bootstrap *bootstrap, size_t *ret_n);
/* Before the elector is started: the elector that gives way when a phase keeps failing. Without it
 * the phase goes on trying. */
void hf_bootstrap_set_elector(struct hf_bootstrap *bootstrap, struct hf_elector *elector);
/*
 * Registers a post-start hook bootstrap-<phase> per phase, the first after `after` (NULL-terminated
 * hook names, may be NULL), each further one after the one before. The election must not wait for
 * them: start-controllers comes before.
 */
int hf_bootstrap_install(struct hf_bootstrap *bootstrap, struct hf_hooks *hooks,
                         const char *const *after, struct hf_status *reterr_status);

size_t hf_bootstrap_n_phases(struct hf_bootstrap *bootstrap);
/* Thread: any. phase is below hf_bootstrap_n_phases. */
void hf_bootstrap_info(struct hf_bootstrap *bootstrap, size_t phase,
                       struct hf_bootstrap_info *ret_info);
