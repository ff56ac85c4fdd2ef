/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The constructor, the destructor and the queries of an elector. The constructor checks the whole
 * configuration at registration, because a mistake that shows up only when a term begins would stop
 * a running system. It copies the texts and the controllers that it keeps.
 *
 * Invariants: no two electors of a set contend for the same Lease (an elector that migrates has two
 * Leases). With the same identity, each would see the other's record as a collision. Controllers'
 * names are unique within a cluster, because metrics and log lines identify a controller by its
 * name.
 */
#include "leader/elector.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "leader/controller_set.h"
#include "leader/electors.h"
#include "leader/holder_watch.h"
#include "leader/lease_lock.h"
#include "leader/two_lease_lock.h"

struct hf_elector *hf__elector_free(struct hf_elector *elector) {
        if (!elector)
                return NULL;
        assert(!elector->term && !elector->instance);
        if (elector->electors->holders)
                hf__holder_watch_drop(elector->electors->holders, elector);
        if (elector->host_loop)
                hf__loop_remove(elector->host_loop, &elector->change);
        if (elector->lock)
                elector->lock->ops->free(elector->lock);
        hf__lease_events_free(elector->events);
        hf__controller_set_free(elector->controllers, elector->n_controllers);
        if (elector->metrics != &hf__leader_metrics_none)
                free((void *)elector->metrics);
        free(elector->announced_record);
        free(elector->failure_text);
        free(elector->texts);
        free(elector);
        return NULL;
}

/* ---- checks ---- */

/* Checks the length and the characters of a DNS subdomain name, which Kubernetes requires for a
 * Lease. The server checks the rest. */
static bool is_object_name(const char *text) {
        size_t n = text ? strlen(text) : 0;
        return n > 0 && n <= HF_NAME_MAX &&
               strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") == n;
}

bool hf__elector_is_identity(const char *text) {
        size_t n = text ? strlen(text) : 0;
        for (size_t i = 0; i < n; i++)
                if (text[i] <= ' ' || text[i] > '~')
                        return false;
        return n > 0 && n <= HF_IDENTITY_MAX;
}

static bool is_cluster_name(const char *text) {
        size_t n =
                strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");

        return n > 0 && n <= HF_CLUSTER_MAX && text[n] == '\0';
}

static int check_labels(const struct hf_elector_config *config, struct hf_status *reterr_status) {
        for (size_t i = 0; i < config->n_labels; i++)
                if (!strchr(config->labels[i], '=') || config->labels[i][0] == '=')
                        return hf_fail(reterr_status, HF_E_INVALID,
                                       "elector: label \"%.100s\" is not of the form key=value",
                                       config->labels[i]);
        return 0;
}

/* The old and the new Lease must differ: an acquire writes one and then the other, and the second
 * write would conflict with the first. */
static int check_migration(const struct hf_elector_config *config,
                           struct hf_status *reterr_status) {
        const char *ns = config->migrate_from_ns ? config->migrate_from_ns : config->ns;
        if (!config->migrate_from && !config->migrate_from_ns)
                return 0;
        if (!is_object_name(config->migrate_from) || !is_object_name(ns))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "elector %s/%s: it cannot migrate from \"%.100s/%.100s\", which is "
                               "not the name of a Lease",
                               config->ns, config->name, ns,
                               config->migrate_from ? config->migrate_from : "");
        if (config->coordinated)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "elector %s/%s: a coordinated election cannot migrate from "
                               "another Lease",
                               config->ns, config->name);
        if (strcmp(ns, config->ns) == 0 && strcmp(config->migrate_from, config->name) == 0)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "elector %s/%s: it cannot migrate from itself", config->ns,
                               config->name);
        return 0;
}

/* Checks everything but the controllers. Sets *timing to that of config, with the defaults. */
static int check_config(const struct hf_electors *electors, const struct hf_elector_config *config,
                        struct hf_leader_timing *timing, struct hf_status *reterr_status) {
        struct hf_status why = {0};
        if (!is_object_name(config->ns) || !is_object_name(config->name))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "elector: \"%.100s/%.100s\" is not the namespace and name "
                               "of a Lease",
                               config->ns ? config->ns : "", config->name ? config->name : "");
        if (!hf__elector_is_identity(config->identity))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "elector %s/%s: the identity must be 1 to %d visible ASCII "
                               "characters without spaces, but it is \"%.100s\"",
                               config->ns, config->name, HF_IDENTITY_MAX,
                               config->identity ? config->identity : "");
        /* Writes of a dead process may still be under way, and only a fence refuses them. An
         * elector that migrates does not describe its process in its Leases (holder_lock.h). */
        if (electors->holders && (config->unfenced || config->migrate_from))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "elector %s/%s: with a lock file it can neither be unfenced nor "
                               "migrate from another Lease",
                               config->ns, config->name);
        if (!config->client)
                return hf_fail(reterr_status, -EINVAL, "elector %s/%s: it has no client",
                               config->ns, config->name);
        int r = hf_leader_lock_type_check(config->lock_type, &why);
        if (r != 0)
                return hf_fail(reterr_status, r, "elector %s/%s: %.300s", config->ns, config->name,
                               why.message);
        r = check_labels(config, reterr_status);
        if (r == 0 && config->cluster && !is_cluster_name(config->cluster))
                r = hf_fail(reterr_status, HF_E_INVALID,
                            "elector %s/%s: \"%.100s\" is not a cluster's name of 1 to %d letters, "
                            "digits, '-', '_' and '.'",
                            config->ns, config->name, config->cluster, HF_CLUSTER_MAX);
        if (r == 0)
                r = check_migration(config, reterr_status);
        if (r != 0)
                return r;
        *timing = config->timing;
        hf_leader_timing_defaults(timing);
        return hf_leader_timing_check(timing, reterr_status);
}

/* ---- construction ---- */

/* Copies the texts into one block, because a process may have ten thousand electors. */
static int copy_texts(struct hf_elector *elector, const struct hf_elector_config *config) {
        const char *old_ns = config->migrate_from_ns ? config->migrate_from_ns : config->ns;
        const char *cluster = config->cluster ? config->cluster : "", *colon = *cluster ? ":" : "";
        struct hf__strbuf texts = {0};
        const char **parts[] = {&elector->ns,      &elector->name,  &elector->identity,
                                &elector->cluster, &elector->label, &elector->old_label};

        hf__strbuf_printf(&texts, "%s%c%s%c%s%c%s%c", config->ns, 0, config->name, 0,
                          config->identity, 0, cluster, 0);
        hf__strbuf_printf(&texts, "%s%s%s/%s%c", cluster, colon, config->ns, config->name, 0);
        if (config->migrate_from)
                hf__strbuf_printf(&texts, "%s%s%s/%s", cluster, colon, old_ns,
                                  config->migrate_from);
        hf__strbuf_putc(&texts, '\0');
        if (texts.error != 0) {
                int r = texts.error;
                hf__strbuf_done(&texts);
                return r;
        }
        char *exact = realloc(texts.data, texts.n); /* without the room to grow */
        elector->texts = exact ? exact : texts.data;
        for (size_t i = 0, at = 0; i < sizeof parts / sizeof *parts; i++) {
                *parts[i] = elector->texts + at;
                at += strlen(elector->texts + at) + 1;
        }
        return 0;
}

/* Runs in the host's loop. */
static void run_change(void *ctx) {
        struct hf_elector *elector = ctx;
        struct hf_leader_info info = {.size = sizeof info};

        hf_elector_info(elector, &info);
        elector->on_change(elector->ctx, &info);
}

static void copy_config(struct hf_elector *elector, const struct hf_elector_config *config) {
        elector->client = config->client;
        elector->unfenced = config->unfenced;
        elector->on_change = config->on_change;
        elector->ctx = config->ctx;
        elector->host_loop = config->loop;
        elector->change = (struct hf__loop_task){.fn = run_change, .ctx = elector};
}

/* Names of Leases and identities fit, because check_config has limited them, and so do the core's
 * static texts. A controller's name may be cut. */
static void copy_text(char *to, size_t max, const char *from) {
        (void)snprintf(to, max, "%s", from);
}

/*
 * Divides the renewals of a set evenly over the retry period, however many electors are added
 * later: the fractional parts of the multiples of the golden ratio never cluster. The first phase
 * is random, because several processes may start at once. There are 128 places: renewals that are a
 * few milliseconds apart may as well go together, which halves their CPU time here and at the
 * server. `1 +`, because a phase of 0 means that there is none.
 */
static hf_nsec renew_phase(const struct hf_electors *electors, hf_nsec retry_period) {
        uint64_t fraction = electors->first_phase + electors->n * UINT64_C(0x9e3779b97f4a7c15);

        return 1 + (hf_nsec)(fraction >> 57) * (retry_period / 128);
}

static uint64_t random_seed(const struct hf_clock *clock) {
        uint64_t seed;

        if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
                seed = (uint64_t)hf_now(clock); /* any seed is good enough for jitter */
        return seed;
}

/* Initialises the core and `info`, because hf_elector_info may be called before the first step.
 * heard_at starts at the current time, so that the health check does not fail before the Lease has
 * been read. */
static void init_core(struct hf_elector *elector, const struct hf_leader_timing *timing,
                      bool coordinated) {
        const struct hf_clock *clock = hf_host_clock(elector->electors->host);
        assert(elector->identity && timing->retry_period > 0);
        struct hf__core_config core = {.timing = *timing, .coordinated = coordinated};

        core.seed = random_seed(clock);
        if (elector->electors->n == 0)
                elector->electors->first_phase = core.seed;
        core.renew_phase = renew_phase(elector->electors, timing->retry_period);
        core.identity = elector->identity;
        core.texts = &elector->electors->texts.port;
        hf__core_init(&elector->core, &core,
                      (struct hf__core_time){hf_now(clock),
                                             clock->real(clock->ctx) / HF_NSEC_PER_USEC});
        elector->info = (struct hf__elector_info){.state = HF_FOLLOWING,
                                                  .holder = "",
                                                  .since = hf_now(clock),
                                                  .heard_at = hf_now(clock),
                                                  .last_end = ""};
}

static int init_lock(struct hf_elector *elector, const struct hf_elector_config *config) {
        const struct hf_host *host = elector->electors->host;
        assert(!elector->lock);

        if (config->migrate_from)
                return hf__two_lease_lock_new(host, config,
                                              elector->core.config.timing.lease_duration,
                                              &elector->lock);
        return hf__lease_lock_new(host, config, elector->electors->watches,
                                  hf__holder_watch_process(elector->electors->holders),
                                  &elector->lock);
}

static int take_names(struct hf_electors *electors, const struct hf_elector *elector,
                      struct hf_status *reterr_status) {
        assert(elector->label && elector->ns && elector->name);
        const struct hf__names_of_elector names = {.label = elector->label,
                                                   .old_label = elector->old_label,
                                                   .cluster = elector->cluster,
                                                   .controllers = elector->controllers,
                                                   .n_controllers = elector->n_controllers};

        return hf__taken_names_take(&electors->names, &names, reterr_status);
}

/* Takes the names last, and only then registers the metrics, so that an elector that is refused
 * leaves no metrics. */
static int init_names(struct hf_electors *electors, struct hf_elector *elector,
                      struct hf_status *reterr_status) {
        HF__CLEANUP(hf__free_cleanup) struct hf__leader_metrics *metrics = NULL;
        if (electors->host->metrics && !(metrics = calloc(1, sizeof *metrics)))
                return -ENOMEM;
        int r = take_names(electors, elector, reterr_status);
        if (r != 0 || !metrics)
                return r;
        hf__leader_metrics_init(metrics, electors->host, elector->cluster, elector->ns,
                                elector->name);
        elector->metrics = HF__TAKE(metrics);
        return 0;
}

static int init_parts(struct hf_electors *electors, struct hf_elector *elector,
                      const struct hf_elector_config *config) {
        int r = init_lock(elector, config);
        if (r == 0 && config->events)
                r = hf__lease_events_new(electors->host, config->client, elector->ns, elector->name,
                                         elector->identity, &elector->events);
        if (r == 0 && config->events) {
                elector->announced_record = calloc(1, sizeof *elector->announced_record);
                r = elector->announced_record ? 0 : -ENOMEM;
        }
        if (r == 0) {
                elector->queue = hf__op_queues_get(&electors->queues, config->client);
                r = elector->queue ? 0 : -ENOMEM;
        }
        return r;
}

/* On failure the caller frees the incomplete elector with hf__elector_free. */
static int init_elector(struct hf_electors *electors, struct hf_elector *elector,
                        const struct hf_elector_config *config,
                        const struct hf_leader_timing *timing, struct hf_status *reterr_status) {
        elector->electors = electors;
        elector->metrics = &hf__leader_metrics_none;
        copy_config(elector, config);
        int r = copy_texts(elector, config);
        if (r == 0)
                r = hf__controller_set_copy(config->controllers, config->n_controllers,
                                            elector->label, &elector->controllers, reterr_status);
        if (r != 0)
                return r;
        elector->n_controllers = config->n_controllers;
        init_core(elector, timing, config->coordinated);
        r = init_parts(electors, elector, config);
        return r != 0 ? r : init_names(electors, elector, reterr_status);
}

int hf__elector_new(struct hf_electors *electors, const struct hf_elector_config *config,
                    struct hf_elector **ret_elector, struct hf_status *reterr_status) {
        struct hf_leader_timing timing;
        struct hf_status status = {0};
        assert(electors->state == HF__ELECTORS_NEW);
        int r = check_config(electors, config, &timing, reterr_status);
        if (r != 0)
                return r;
        struct hf_elector *elector = calloc(1, sizeof *elector);
        if (!elector)
                return hf_fail(reterr_status, -ENOMEM, "elector %s/%s: out of memory", config->ns,
                               config->name);
        r = init_elector(electors, elector, config, &timing, &status);
        if (r == 0) {
                *ret_elector = elector;
                return 0;
        }
        hf__elector_free(elector);
        /* Some functions return an error without a message, and the caller always gets one. */
        if (!status.message[0])
                (void)hf_fail(&status, r, "elector %s/%s: %s", config->ns, config->name,
                              hf_strerror(r));
        if (reterr_status)
                *reterr_status = status;
        return r;
}

/* ---- queries ---- */

static void read_info(struct hf_elector *elector, struct hf_leader_info *ret_info) {
        *ret_info = (struct hf_leader_info){.size = sizeof(struct hf_leader_info)};
        pthread_mutex_lock(&elector->electors->mu);
        struct hf__elector_info info = elector->info;
        copy_text(ret_info->holder, sizeof ret_info->holder, info.holder);
        pthread_mutex_unlock(&elector->electors->mu);
        info.holder = NULL; /* the loop may free it as soon as mu is unlocked */
        ret_info->state = info.state;
        ret_info->term = info.term;
        ret_info->n_terms = info.n_terms;
        ret_info->since = info.since;
        ret_info->heard_at = info.heard_at;
        ret_info->free_at = info.free_at;
        ret_info->identity_taken = info.identity_taken;
        copy_text(ret_info->ns, sizeof ret_info->ns, elector->ns);
        copy_text(ret_info->name, sizeof ret_info->name, elector->name);
        copy_text(ret_info->identity, sizeof ret_info->identity, elector->identity);
        copy_text(ret_info->last_end, sizeof ret_info->last_end, info.last_end);
        copy_text(ret_info->stuck_controller, sizeof ret_info->stuck_controller,
                  info.stuck_controller ? info.stuck_controller : "");
        /* The gate, not `info`, says until when this process may act: the gate may have been
         * extended or shut since `info` was written. valid_until is 0 before it is opened. */
        bool leads = ret_info->state == HF_LEADING || ret_info->state == HF_DRAINING;
        ret_info->valid_until = leads ? hf__gate_valid_until(&elector->gate) : 0;
}

int hf_elector_info(struct hf_elector *elector, struct hf_leader_info *ret_info) {
        static const struct hf__sized sized_info = HF__SIZED(struct hf_leader_info, holder);
        struct hf_leader_info info;

        read_info(elector, &info);
        return hf__sized_fill(&sized_info, ret_info, &info);
}

bool hf_elector_may_act(struct hf_elector *elector) {
        return hf__gate_may_act(&elector->gate, hf_now(hf_host_clock(elector->electors->host)));
}
