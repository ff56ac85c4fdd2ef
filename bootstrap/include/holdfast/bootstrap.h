/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Bootstrap: brings the objects that a system needs from its first moment into the store, once per
 * cluster, no matter which instances crash and how many start together.
 *
 * A *phase* is an ordered list of *manifests*: objects in YAML or JSON, built into the program or
 * in directories. The leader applies them: each phase is a leader-only controller
 * `bootstrap-<phase>` of the elector, so the gate and the fence (<holdfast/leader.h>) keep a
 * process that no longer leads from writing. The controller counts as started when the phase is
 * complete, or when the phase fails but some version has completed it before. A *ledger*, a
 * ConfigMap, has one record per manifest: a manifest whose content is the recorded one is not
 * applied again. If a user deletes the ledger, the leader does the phases once more.
 *
 * Each phase is also a post-start hook `bootstrap-<phase>` on every instance, leading or not. The
 * hook is done once the ledger shows that *any* version has completed the phase, so that a rolling
 * upgrade cannot block itself; or when its patience is over.
 *
 * docs/semantics.md, "Bootstrap", has the rules for upgrades, edits and mixed versions. In short:
 * an absent object is created; an object that a user made, edited or deleted stays as the user left
 * it; a newer version replaces what an older one applied and nobody edited; an older version undoes
 * nothing.
 *
 * Use: call hf_bootstrap_new; add each hf_bootstrap_controller to the elector's set, and let the
 * other leader-only controllers run `after` the last of them; call hf_bootstrap_set_elector and
 * hf_bootstrap_install; then run the hooks. A program with its own kind of hooks may skip
 * hf_bootstrap_install. hf_bootstrap_info then knows only what this process learned while it led.
 *
 * Thread: the owner's, before the elector and the hooks run, unless a function's comment names
 * another.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/api.h>
#include <holdfast/error.h>
#include <holdfast/hooks.h>
#include <holdfast/host.h>
#include <holdfast/leader.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HF_BOOTSTRAP_PHASES_MAX 8
#define HF_BOOTSTRAP_STEPS_MAX  1000 /* manifests in all phases together */

struct hf_bootstrap;

/* A kind of object that manifests may have. All strings are copied by hf_bootstrap_new. Frozen: it
 * never gets another member (<holdfast/api.h>), because it has all that the path of an object needs
 * besides the object's own name and namespace. */
struct hf_bootstrap_kind {
        const char *api_version; /* "v1", "rbac.authorization.k8s.io/v1" */
        const char *kind;        /* "ConfigMap" */
        const char *plural;      /* "configmaps" */
        bool namespaced;
};

/* A text with manifests that is built into the program. Copied by hf_bootstrap_new. Frozen: it is a
 * text with a name; options of how to apply it are members of the phase. */
struct hf_bootstrap_manifest {
        const char *source; /* its name in messages: "phase-0/10-admin.json" */
        const char *text;   /* one object as JSON, or any number of YAML documents */
        size_t n;           /* bytes */
};

/* Copied by hf_bootstrap_new, which also reads the directories, once. */
struct hf_bootstrap_phase {
        size_t size;      /* sizeof(struct hf_bootstrap_phase) */
        const char *name; /* required: a DNS label of up to 40 bytes, "phase-0" */
        /* an array of n_manifests, applied in this order before the manifests of the directories */
        const struct hf_bootstrap_manifest *manifests;
        size_t n_manifests;
        /*
         * Directories, n_directories of them. The regular files *.yaml, *.yml and *.json of each
         * are read in the order of their names, through symbolic links too. Files whose names begin
         * with a dot are skipped. A file may have up to 1 MiB, a directory 1000 such files.
         */
        const char *const *directories;
        size_t n_directories;
        /*
         * How long the phase's hook waits until the ledger shows the phase as complete. 0 = no
         * limit: the instance becomes ready only when the phase is complete. Otherwise the hook
         * logs a warning after that time and is done.
         */
        hf_nsec hook_patience;
        /*
         * The objects of `manifests` do not need each other, so their order does not matter. Until
         * some version has completed the phase, those without a record are created at the same
         * time, up to 64 of them, and recorded in one write of the ledger. An object that a user
         * deletes before that write is created again if the leader dies before it. The manifests of
         * the directories follow one after another in any case.
         */
        bool any_order;
};

/*
 * The events that on_progress reports. Only the leader reports them. When a response is lost, or
 * another process writes the ledger at the same time, an event may be repeated or left out. For
 * steps that are recorded together (any_order), all HF_BOOTSTRAP_APPLIED come first, then all
 * HF_BOOTSTRAP_RECORDED.
 */
enum hf_bootstrap_point {
        HF_BOOTSTRAP_BEGUN,    /* a phase with something to do has begun */
        HF_BOOTSTRAP_APPLIED,  /* a step's object is as it should be, but not recorded yet */
        HF_BOOTSTRAP_RECORDED, /* the ledger has the step's record */
        HF_BOOTSTRAP_COMPLETE, /* the ledger says that the phase is complete */
        HF_BOOTSTRAP_FAILING,  /* a step or a request for the ledger failed; it is tried again */
        HF_BOOTSTRAP_GAVE_WAY, /* the phase kept failing, and the elector releases the Lease */
};

/*
 * The state of a phase, as this process last knew it. It learns from the ledger while it leads, and
 * while the phase's hook waits. What other processes do at other times does not show here.
 */
struct hf_bootstrap_info {
        size_t size;    /* sizeof(struct hf_bootstrap_info); the caller sets it before the call */
        char phase[48]; /* its name */
        size_t n_steps; /* manifests */
        /* How many steps need nothing more, counted from the first step to the first one that needs
         * something. Equals n_steps when the whole phase needs nothing more, for example because a
         * newer version has completed it. */
        size_t n_settled;
        /* The ledger showed that some version, perhaps an older one, has completed the phase. Stays
         * true if the ledger is deleted. */
        bool complete;
        bool running;        /* this process leads and works on the phase */
        bool failing;        /* running, and the last attempt failed */
        unsigned n_failures; /* consecutive failures; 0 unless failing */
        char step[128];      /* running: the step, "ConfigMap/default/a"; may be cut; "" = the
                                ledger */
        char message[464];   /* failing: one line with the reason, which names the manifest and its
                                object, or the ledger */
};

/* Zero is the default of every member that is not required. */
struct hf_bootstrap_config {
        size_t size; /* sizeof(struct hf_bootstrap_config) */
        /* required: this program's version, "1.2.3" or "1.2.3-rc.1", ordered as semver orders it */
        const char *version;
        /* required: n_kinds, the kinds that the server has */
        const struct hf_bootstrap_kind *kinds;
        size_t n_kinds;
        const struct hf_bootstrap_phase *phases; /* n_phases, required, in order */
        size_t n_phases;
        const char *ledger_ns, *ledger_name; /* NULL = kube-system, holdfast-bootstrap */
        /* The hooks watch the ledger with this client. Borrowed. NULL = the client that the hooks
         * were created with; they must then have one. */
        struct hf_client *client;
        /* Set this if Leases and ConfigMaps of the server share one revision counter, and a GET
         * with a resourceVersion gives a state that is not older. Then the ledger is read, at the
         * beginning of a term, with the resourceVersion of the write that acquired the Lease; and
         * with resourceVersion=0 when the leader checks that it still exists. So the server can use
         * its cache. By default all reads are consistent. */
        bool one_revision;
        /* A leader in which a phase has failed for this long, without a success in between,
         * releases the Lease, so that another instance can try; but not if the phase was complete
         * in this term and only writes a deleted ledger again. The time doubles with each release
         * in a row, up to 10 minutes; a longer one stays as it is. 0 = 15 s */
        hf_nsec give_way_after;
        /* Called on the phase's thread, or on a thread of this library that the phase's thread
         * waits for, without a lock; the phase waits until it returns. Phases can run in parallel,
         * so calls for different phases can overlap. info is borrowed until it returns. NULL = none
         */
        void (*on_progress)(void *ctx, enum hf_bootstrap_point point,
                            const struct hf_bootstrap_info *info);
        void *ctx; /* for on_progress; borrowed */
};

/*
 * Reads and checks all manifests; writes nothing, and sends no request. Everything is copied,
 * except client and ctx; `host` is borrowed. Blocks for the file system.
 *
 * 0; -errno: a directory or file cannot be read, memory is exhausted, or a `size` is wrong;
 * HF_E_TOO_LARGE; HF_E_UNAVAILABLE: a manifest is YAML, and libyaml cannot be loaded; HF_E_EXISTS:
 * the host has a health check `bootstrap` already; HF_E_INVALID: the configuration is wrong, or a
 * manifest does not parse, has a kind that is not in `kinds`, has no name, or occurs twice. The
 * message is one line; for an invalid manifest it names the file, the document, and the line or
 * field.
 */
HF_MUST_CHECK int hf_bootstrap_new(const struct hf_host *host,
                                   const struct hf_bootstrap_config *config,
                                   struct hf_bootstrap **ret_bootstrap,
                                   struct hf_status *reterr_status);
/* Call it after the electors and hooks are freed. Accepts NULL; returns NULL. */
struct hf_bootstrap *hf_bootstrap_free(struct hf_bootstrap *bootstrap);

/*
 * Fills *ret_controller, whose size the caller has set, with the leader-only controller of a phase,
 * for hf_elector_config.controllers. Each phase's controller runs `after` the previous phase's.
 * phase is below hf_bootstrap_n_phases. The pointers in *ret_controller are valid until
 * hf_bootstrap_free. 0, or -EINVAL: ret_controller->size is wrong.
 */
HF_MUST_CHECK int hf_bootstrap_controller(struct hf_bootstrap *bootstrap, size_t phase,
                                          struct hf_controller *ret_controller);
/* Sets the elector that releases the Lease when a phase keeps failing; borrowed. Call it before the
 * elector is started. Without an elector, a failing phase keeps the Lease and tries again. */
void hf_bootstrap_set_elector(struct hf_bootstrap *bootstrap, struct hf_elector *elector);
/*
 * Registers a post-start hook bootstrap-<phase> per phase. The first phase's hook runs after the
 * n_after hooks named in `after` (copied), each other after the previous phase's. The election must
 * not wait for these hooks, so the hook start-controllers (hf_controllers_install) must not be
 * `after` one of them. A phase without hook_patience also gets the check bootstrap-<phase> in
 * healthz and readyz. Call it before hf_hooks_start. 0, or an error of hf_hooks_add or
 * hf_health_add; some hooks may then be registered.
 */
HF_MUST_CHECK int hf_bootstrap_install(struct hf_bootstrap *bootstrap, struct hf_hooks *hooks,
                                       const char *const *after, size_t n_after,
                                       struct hf_status *reterr_status);

/* Thread: any. */
size_t hf_bootstrap_n_phases(struct hf_bootstrap *bootstrap);
/* Fills *ret_info, whose size the caller has set, with the phase's state. phase is below
 * hf_bootstrap_n_phases. 0, or -EINVAL: ret_info->size is wrong. Thread: any. Holds a lock while it
 * copies the state; it does no I/O. */
int hf_bootstrap_info(struct hf_bootstrap *bootstrap, size_t phase,
                      struct hf_bootstrap_info *ret_info);

#ifdef __cplusplus
}
#endif
