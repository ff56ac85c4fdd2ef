/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bootstrap object: creates it, and provides its controllers to the elector and its hooks to
 * the hook runner.
 *
 * The model. A phase is a list of manifests that the leader applies. The ledger, a ConfigMap, has a
 * record per manifest, and shows which phases are complete. plan.c decides what to do next in a
 * phase. It is pure, as are ledger.c, steps.c and content.c. In each term, one thread per phase
 * carries the decisions out (phase_run.c). Terms do not overlap, and usually a phase begins after
 * the previous one is complete. But two phases run in parallel in three cases: at the beginning of
 * the term the earlier phase is settled, which means that this process has seen in the ledger that
 * nothing was left to do in it; the earlier phase fails, but some version has completed it already;
 * or somebody has deleted the ledger, and the earlier phase writes it again. In all three, the
 * ledger's resourceVersion keeps each phase from overwriting the other's record. The hooks
 * (ledger_wait.c) only watch the ledger. Controllers and hooks publish their state in the `info` of
 * the phase, under one lock (report.c).
 *
 *      every instance                     the leader's term
 *      hook bootstrap-<phase>             controller bootstrap-<phase>
 *           watches                            applies and records
 *                 \                             /
 *                  +------->  ledger  <--------+
 */
#include <holdfast/bootstrap.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/host.h"
#include "base/sized_struct.h"
#include "base/thread.h"
#include "bootstrap/ledger_wait.h"
#include "bootstrap/manifest.h"
#include "bootstrap/manifest_files.h"
#include "bootstrap/phase.h"
#include "bootstrap/phase_run.h"
#include "bootstrap/report.h"

#define GIVE_WAY_AFTER (15 * HF_NSEC_PER_SEC) /* the default */

static const struct hf__sized sized_config = HF__SIZED(struct hf_bootstrap_config, ctx);
static const struct hf__sized sized_phase = HF__SIZED(struct hf_bootstrap_phase, name);
static const struct hf__sized sized_controller = HF__SIZED(struct hf_controller, ctx);
static const struct hf__sized sized_info = HF__SIZED(struct hf_bootstrap_info, n_settled);

static bool is_phase_name(const char *text) {
        size_t n = text ? strlen(text) : 0;
        return n > 0 && n <= 40 && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == n &&
               text[0] != '-' && text[n - 1] != '-';
}

/* Replaces the caller's phases, whose structs may be of another release, by copies in `phases`. */
static int copy_phases(struct hf_bootstrap_config *config,
                       struct hf_bootstrap_phase phases[HF_BOOTSTRAP_PHASES_MAX],
                       struct hf_status *reterr_status) {
        int r = 0;

        if (config->n_phases == 0 || config->n_phases > HF_BOOTSTRAP_PHASES_MAX)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "bootstrap: there must be 1 to %d phases, not %zu",
                               HF_BOOTSTRAP_PHASES_MAX, config->n_phases);
        for (size_t i = 0; i < config->n_phases && r == 0; i++)
                r = hf__sized_copy_at(&sized_phase, &phases[i], config->phases, i, reterr_status);
        config->phases = phases;
        return r;
}

/* Refuses NULL where a text is required: nothing checks for it later. */
static int check_lists(const struct hf_bootstrap_config *config, struct hf_status *reterr_status) {
        for (size_t i = 0; i < config->n_kinds; i++) {
                const struct hf_bootstrap_kind *kind = &config->kinds[i];
                if (!kind->api_version || !kind->kind || !kind->plural)
                        return hf_fail(reterr_status, HF_E_INVALID,
                                       "bootstrap: kind %zu has no api_version, kind or plural", i);
        }
        for (size_t i = 0; i < config->n_phases; i++) {
                const struct hf_bootstrap_phase *phase = &config->phases[i];
                for (size_t k = 0; k < phase->n_directories; k++)
                        if (!phase->directories[k])
                                return hf_fail(reterr_status, HF_E_INVALID,
                                               "bootstrap: directory %zu of phase %s is NULL", k,
                                               phase->name);
                for (size_t k = 0; k < phase->n_manifests; k++) {
                        const struct hf_bootstrap_manifest *manifest = &phase->manifests[k];
                        if (!manifest->source || (!manifest->text && manifest->n > 0))
                                return hf_fail(reterr_status, HF_E_INVALID,
                                               "bootstrap: manifest %zu of phase %s has no source "
                                               "or no text",
                                               k, phase->name);
                }
        }
        return 0;
}

/* The names of phases become part of the names of controllers, hooks and health checks, of the
 * labels of metrics, and of keys in the ledger. So they are checked before anything is created. */
static int check_config(const struct hf_bootstrap_config *config, struct hf_status *reterr_status) {
        if (!hf__version_valid(config->version))
                return hf_fail(reterr_status, HF_E_INVALID, "bootstrap: \"%.80s\" is not a version",
                               config->version ? config->version : "");
        for (size_t i = 0; i < config->n_phases; i++) {
                const char *name = config->phases[i].name;
                if (!is_phase_name(name))
                        return hf_fail(reterr_status, HF_E_INVALID,
                                       "bootstrap: \"%.60s\" is not a name for a phase: it must be "
                                       "a DNS label of up to 40 bytes",
                                       name ? name : "");
                for (size_t k = 0; k < i; k++)
                        if (strcmp(config->phases[k].name, name) == 0)
                                return hf_fail(reterr_status, HF_E_INVALID,
                                               "bootstrap: there are two phases %s", name);
        }
        return check_lists(config, reterr_status);
}

static int copy_settings(struct hf_bootstrap *bootstrap, const struct hf_bootstrap_config *config,
                         struct hf_status *reterr_status) {
        const char *ns = config->ledger_ns ? config->ledger_ns : "kube-system";
        const char *name = config->ledger_name ? config->ledger_name : "holdfast-bootstrap";

        if (strlen(ns) > HF_NAME_MAX || strlen(name) > HF_NAME_MAX)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "bootstrap: the ledger's namespace or name has more than %d bytes",
                               HF_NAME_MAX);
        (void)snprintf(bootstrap->version, sizeof bootstrap->version, "%s", config->version);
        (void)snprintf(bootstrap->ledger_ns, sizeof bootstrap->ledger_ns, "%s", ns);
        (void)snprintf(bootstrap->ledger_name, sizeof bootstrap->ledger_name, "%s", name);
        bootstrap->client = config->client;
        bootstrap->one_revision = config->one_revision;
        bootstrap->give_way_after =
                config->give_way_after > 0 ? config->give_way_after : GIVE_WAY_AFTER;
        bootstrap->on_progress = config->on_progress;
        bootstrap->ctx = config->ctx;
        int r = hf__manifest_kinds_copy(config->kinds, config->n_kinds, &bootstrap->kinds);
        if (r != 0)
                (void)hf_fail(reterr_status, r, "bootstrap: %s", hf_strerror(r));
        return r;
}

/* Loads the manifests of a phase in the order in which they are applied. */
static int load_steps(struct hf__phase *phase, const struct hf_bootstrap_phase *from,
                      struct hf_status *reterr_status) {
        const struct hf__manifest_kinds *kinds = &phase->bootstrap->kinds;
        int r = 0;

        for (size_t i = 0; r == 0 && i < from->n_manifests; i++)
                r = hf__manifest_read_text(&phase->steps, kinds, from->manifests[i].source,
                                           from->manifests[i].text, from->manifests[i].n,
                                           reterr_status);
        /* This comes before the directories are read: their manifests always keep their order. */
        for (size_t i = 0; i < phase->steps.n; i++)
                phase->steps.list[i].any_order = from->any_order;
        for (size_t i = 0; r == 0 && i < from->n_directories; i++)
                r = hf__manifest_read_directory(&phase->steps, kinds, from->directories[i],
                                                reterr_status);
        return r;
}

/* Fills the next phase. Counts it at once, so that hf_bootstrap_free frees it if the rest fails. */
static int add_phase(struct hf_bootstrap *bootstrap, const struct hf_bootstrap_phase *from,
                     struct hf_status *reterr_status) {
        struct hf__phase *phase = &bootstrap->phases[bootstrap->n_phases];
        size_t n_steps = 0;

        phase->bootstrap = bootstrap;
        (void)snprintf(phase->name, sizeof phase->name, "%s", from->name);
        (void)snprintf(phase->full_name, sizeof phase->full_name, "bootstrap-%s", from->name);
        phase->hook_patience = from->hook_patience;
        phase->give_way_after = bootstrap->give_way_after;
        phase->after[0] = bootstrap->n_phases ? phase[-1].full_name : NULL;
        bootstrap->phase_names[bootstrap->n_phases] = phase->name;
        bootstrap->controllers[bootstrap->n_phases++] =
                (struct hf_controller){.size = sizeof(struct hf_controller),
                                       .name = phase->full_name,
                                       .runs = HF_LEADER_ONLY,
                                       .run = hf__phase_run,
                                       .is_settled = hf__phase_is_settled,
                                       .ctx = phase,
                                       .after = phase->after,
                                       .n_after = phase->after[0] ? 1 : 0};
        int r = load_steps(phase, from, reterr_status);
        for (struct hf__phase *earlier = bootstrap->phases; r == 0 && earlier <= phase; earlier++) {
                /* Two manifests must not describe the same object, because the ledger has one
                 * record per object. */
                const struct hf__steps none = {0};
                r = hf__steps_check_unique(earlier < phase ? &earlier->steps : &none, &phase->steps,
                                           reterr_status);
                n_steps += earlier->steps.n;
        }
        if (r == 0 && n_steps > HF_BOOTSTRAP_STEPS_MAX)
                r = hf_fail(reterr_status, HF_E_TOO_LARGE,
                            "bootstrap: there are more than %d manifests", HF_BOOTSTRAP_STEPS_MAX);
        phase->info.size = sizeof phase->info;
        (void)snprintf(phase->info.phase, sizeof phase->info.phase, "%s", phase->name);
        phase->info.n_steps = phase->steps.n;
        return r;
}

static int init_bootstrap(struct hf_bootstrap *bootstrap, const struct hf_bootstrap_config *config,
                          struct hf_status *reterr_status) {
        int r = copy_settings(bootstrap, config, reterr_status);

        if (r != 0)
                return r;
        bootstrap->phases = calloc(config->n_phases, sizeof *bootstrap->phases);
        if (!bootstrap->phases)
                return hf_fail(reterr_status, -ENOMEM, "bootstrap: out of memory");
        for (size_t i = 0; r == 0 && i < config->n_phases; i++)
                r = add_phase(bootstrap, &config->phases[i], reterr_status);
        if (r != 0)
                return r;
        r = hf__report_init(bootstrap);
        if (r != 0)
                (void)hf_fail(reterr_status, r,
                              "bootstrap: cannot add the health check or a metric: %s",
                              hf_strerror(r));
        return r;
}

HF__CLEANUP_DEFINE(bootstrap_cleanup, struct hf_bootstrap *, hf_bootstrap_free)

int hf_bootstrap_new(const struct hf_host *host, const struct hf_bootstrap_config *given,
                     struct hf_bootstrap **ret_bootstrap, struct hf_status *reterr_status) {
        struct hf_bootstrap_config config;
        struct hf_bootstrap_phase phases[HF_BOOTSTRAP_PHASES_MAX];
        int r = hf__host_check(host, reterr_status);

        if (r == 0)
                r = hf__sized_copy(&sized_config, &config, given, reterr_status);
        if (r == 0)
                r = copy_phases(&config, phases, reterr_status);
        if (r == 0)
                r = check_config(&config, reterr_status);
        if (r != 0)
                return r;
        HF__CLEANUP(hf__free_cleanup) struct hf_bootstrap *memory = calloc(1, sizeof *memory);
        r = memory ? hf__mutex_init(&memory->mu) : -ENOMEM;
        if (r != 0)
                return hf_fail(reterr_status, r, "bootstrap: %s", hf_strerror(r));
        HF__CLEANUP(bootstrap_cleanup) struct hf_bootstrap *bootstrap = HF__TAKE(memory);
        bootstrap->host = host;
        r = init_bootstrap(bootstrap, &config, reterr_status);
        if (r == 0)
                *ret_bootstrap = HF__TAKE(bootstrap);
        return r;
}

struct hf_bootstrap *hf_bootstrap_free(struct hf_bootstrap *bootstrap) {
        if (!bootstrap)
                return NULL;
        hf__report_done(bootstrap);
        for (size_t i = 0; i < bootstrap->n_phases; i++)
                hf__steps_done(&bootstrap->phases[i].steps);
        free(bootstrap->phases);
        hf__manifest_kinds_done(&bootstrap->kinds);
        pthread_mutex_destroy(&bootstrap->mu);
        free(bootstrap);
        return NULL;
}

int hf_bootstrap_controller(struct hf_bootstrap *bootstrap, size_t phase,
                            struct hf_controller *ret_controller) {
        assert(phase < bootstrap->n_phases);
        return hf__sized_fill(&sized_controller, ret_controller, &bootstrap->controllers[phase]);
}

void hf_bootstrap_set_elector(struct hf_bootstrap *bootstrap, struct hf_elector *elector) {
        bootstrap->elector = elector;
}

int hf_bootstrap_install(struct hf_bootstrap *bootstrap, struct hf_hooks *hooks,
                         const char *const *after, size_t n_after,
                         struct hf_status *reterr_status) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < bootstrap->n_phases; i++) {
                struct hf__phase *phase = &bootstrap->phases[i];
                const struct hf_hook hook = {
                        .size = sizeof hook,
                        .name = phase->full_name,
                        .after = i ? phase->after : after,
                        .n_after = i ? 1 : n_after,
                        .start = hf__ledger_wait,
                        /* Practically no limit: the hook ends when the phase is complete, when its
                         * patience is over, or when the hooks shut down. */
                        .start_deadline = HF_NSEC_NEVER / 4,
                        .ctx = phase,
                };
                r = hf_hooks_add(hooks, &hook, HF_HOOKS_HERE, reterr_status);
                if (r != 0 || phase->hook_patience != 0)
                        continue;
                r = hf__report_add_readiness(phase);
                if (r != 0)
                        (void)hf_fail(reterr_status, r, "cannot add the health check %s: %s",
                                      phase->full_name, hf_strerror(r));
        }
        return r;
}

size_t hf_bootstrap_n_phases(struct hf_bootstrap *bootstrap) { return bootstrap->n_phases; }

int hf_bootstrap_info(struct hf_bootstrap *bootstrap, size_t phase,
                      struct hf_bootstrap_info *ret_info) {
        assert(phase < bootstrap->n_phases);
        pthread_mutex_lock(&bootstrap->mu);
        const struct hf_bootstrap_info info = bootstrap->phases[phase].info;
        pthread_mutex_unlock(&bootstrap->mu);
        return hf__sized_fill(&sized_info, ret_info, &info);
}
