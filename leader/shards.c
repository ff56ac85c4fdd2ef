/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shards: an elector for each shard, an elector without leader-only work for the Lease that
 * announces this instance, and a balancer. The balancer is a controller of every instance. It
 * watches the group's Leases and carries out what shards_core.c decides: which electors take a free
 * Lease at once and which hold back, and which shard is handed over to whom.
 *
 * Without the balancer the electors still elect a holder for each shard, after their hold-back.
 * Only the balance is lost.
 *
 * The balancer's map function (on_lease) runs on the informer's thread, its reconcile function on
 * the reconciler's worker. There is one worker at a time, because n_workers is 0 (= 1). `mu`
 * guards the observations. The decisions belong to the worker.
 */
#include <holdfast/shards.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/informer.h>
#include <holdfast/reconciler.h>
#include <holdfast/workqueue.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/sized_struct.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "leader/electors.h"
#include "leader/lease_record.h"
#include "leader/shards_core.h"

/* LEASE_NAME has room for the group's name, "-member-", 16 digits and the NUL. */
#define LABEL      "holdfast.dev/shards" /* selects the Leases of the group in a watch */
#define MEMBER     "member-"
#define KEY        "shards" /* the only key of the balancer's queue */
#define LEASE_NAME (HF_SHARDS_NAME_MAX + 32)
/* The time for which a free shard is left to the instance whose turn it is. An instance that is
 * alive takes the shard long before. */
#define HOLD_BACK(t) (3 * (t)->retry_period)

struct shard {
        struct hf_elector *elector; /* borrowed */
        bool contends;              /* it was told not to hold back; only the reconciler's worker */
};

/* One controller of one shard. */
struct runner {
        int (*run)(struct hf_term *term, unsigned shard, void *ctx);
        void *ctx; /* borrowed */
        unsigned shard;
};

struct hf_shards {
        struct hf__electors_part part; /* first: the electors own the shards */
        /* immutable after hf_shards_add */
        char ns[HF_NAME_MAX + 1], name[HF_SHARDS_NAME_MAX + 1];
        struct hf_leader_timing timing;
        struct shard *list; /* owned */
        unsigned n;
        struct runner *runners; /* owned */

        pthread_mutex_t mu;
        struct hf__shards_core core; /* its observations are guarded by mu */
};

static const struct hf_resource leases = {"coordination.k8s.io", "v1", "leases"};

unsigned hf_shard_of(const char *key, unsigned n_shards) {
        return (unsigned)(hf__shards_key(key) % n_shards);
}

struct hf_elector *hf_shards_elector(struct hf_shards *shards, unsigned shard) {
        return shard < shards->n ? shards->list[shard].elector : NULL;
}

static void free_shards(struct hf__electors_part *part) {
        struct hf_shards *shards = (struct hf_shards *)part;

        hf__shards_core_done(&shards->core);
        pthread_mutex_destroy(&shards->mu);
        free(shards->runners);
        free(shards->list);
        free(shards);
}

/* ---- observations ---- */

/* Reads all of text as a number of this base, written as printf would. So "01" or "+1" is not the
 * name of shard 1, and two Leases never stand for one shard. */
static bool read_number(const char *text, int base, uint64_t *ret_number) {
        char *end, again[32];

        if (!*text || strspn(text, "0123456789abcdef") != strlen(text))
                return false;
        errno = 0;
        *ret_number = strtoull(text, &end, base);
        (void)snprintf(again, sizeof again, base == 16 ? "%016" PRIx64 : "%" PRIu64, *ret_number);
        return errno == 0 && *end == '\0' && strcmp(again, text) == 0;
}

/* Passes the content of one Lease to the core. suffix: the part of its name after "<name>-". record
 * NULL: the Lease was deleted. True: decide again. */
static bool observe_lease(struct hf_shards *shards, const char *suffix,
                          const struct hf__record *record, hf_nsec now) {
        struct hf__shards_core *core = &shards->core;
        uint64_t number = 0;
        bool changes = false;

        pthread_mutex_lock(&shards->mu);
        if (strncmp(suffix, MEMBER, strlen(MEMBER)) == 0) {
                if (!read_number(suffix + strlen(MEMBER), 16, &number)) {
                        /* not one of ours */
                } else if (!record) {
                        changes = hf__shards_core_lost_member(core, number);
                } else if (!record->holder[0] || hf__shards_key(record->holder) == number) {
                        changes = hf__shards_core_saw_member(core, number, record, now);
                }
        } else if (read_number(suffix, 10, &number) && number < shards->n) {
                changes = hf__shards_core_saw_shard(core, number, record ? record->holder : "",
                                                    record ? record->successor : "");
        }
        pthread_mutex_unlock(&shards->mu);
        return changes;
}

struct balance {
        struct hf_shards *shards;
        const struct hf_host *host;
        bool must_decide; /* a decision is due, and KEY could not be put into the queue yet; only
                             the informer's thread */
};

/* The reconciler's map function. It is called again with the event after -ENOMEM. A Lease that
 * cannot be read counts as not seen: the next renewal comes soon. */
static int on_lease(void *ctx, struct hf_workqueue *queue, enum hf_event_type type, const char *ns,
                    const char *name, const char *object, size_t n) {
        struct balance *balance = ctx;
        struct hf_shards *shards = balance->shards;
        size_t n_name = strlen(shards->name);
        struct hf__json *lease = NULL;
        struct hf__record record;

        if (strncmp(name, shards->name, n_name) != 0 || name[n_name] != '-')
                return 0;
        bool exists = type != HF_EVENT_DELETED;
        int r = exists ? hf__json_parse(object, n, &lease, NULL) : 0;
        if (r != 0)
                return r;
        if ((!exists || hf__lease_read(lease, &record) == 0) &&
            observe_lease(shards, name + n_name + 1, exists ? &record : NULL,
                          hf_now(hf_host_clock(balance->host))))
                balance->must_decide = true;
        hf__json_free(lease);
        r = balance->must_decide ? hf_workqueue_add(queue, KEY) : 0;
        if (r == 0)
                balance->must_decide = false;
        return r;
}

/* ---- actions ---- */

/* Tells the elector of a shard whether to hold back, if that has changed, and to whom to hand the
 * shard over, if to anyone. 0, or an error, after which the reconciler calls again. */
static int apply_decision(struct hf_shards *shards, unsigned i) {
        const struct hf__shards_shard *decided = &shards->core.shards[i];
        struct shard *shard = &shards->list[i];
        int r = 0;

        if (decided->contends != shard->contends)
                r = hf__elector_hold_back(shard->elector,
                                          decided->contends ? 0 : HOLD_BACK(&shards->timing));
        if (r == 0)
                shard->contends = decided->contends;
        if (r == 0 && decided->hand_over_to[0])
                r = hf_elector_hand_over(shard->elector, decided->hand_over_to);
        /* The term may have ended since the Lease was observed. And whoever may write the Lease of
         * a member chooses its holder, which need not be an identity (-EINVAL): then the shard
         * stays here, and the others are divided. */
        return r == HF_E_NOT_LEADER || r == -EINVAL ? 0 : r;
}

/* A Lease to delete: its name, and the resourceVersion that was seen. */
struct garbage {
        char name[LEASE_NAME], rv[HF__REVISION_MAX];
};

static bool find_garbage(struct hf_shards *shards, hf_nsec now, struct garbage *ret_garbage) {
        pthread_mutex_lock(&shards->mu);
        const struct hf__shards_member *member = hf__shards_core_find_garbage(&shards->core, now);
        if (member) {
                (void)snprintf(ret_garbage->name, sizeof ret_garbage->name, "%s-" MEMBER "%s",
                               shards->name, member->name);
                memcpy(ret_garbage->rv, member->rv, sizeof ret_garbage->rv);
        }
        pthread_mutex_unlock(&shards->mu);
        return member != NULL;
}

/* The precondition keeps the Lease if its instance has come back and acquired it meanwhile. */
static int print_options(const char *rv, struct hf__strbuf *out) {
        HF__CLEANUP(hf__json_cleanup) struct hf__json *options = hf__json_object();
        int r = options ? 0 : -ENOMEM;

        if (r == 0)
                r = hf__json_set_string(options, "preconditions.resourceVersion", rv);
        if (r != 0)
                return r;
        hf__json_print(options, out);
        return out->error;
}

static int delete_lease(struct balance *balance, struct hf_term *term,
                        const struct garbage *garbage, hf_nsec deadline) {
        struct hf__strbuf options = {0};
        int r = print_options(garbage->rv, &options);
        const struct hf_request request = {.size = sizeof request,
                                           .verb = HF_VERB_DELETE,
                                           .resource = leases,
                                           .ns = balance->shards->ns,
                                           .name = garbage->name,
                                           .body = options.data,
                                           .n_body = options.n,
                                           .deadline = deadline};

        if (r == 0)
                r = hf_client_do(hf_term_ungated_client(term), &request, hf_term_drain(term), NULL,
                                 NULL, NULL);
        hf__strbuf_done(&options);
        return r;
}

/* Deletes the Leases of instances that ended long ago. Takes a retry period at most, because the
 * balancer decides nothing meanwhile. After a failure a later balance tries again. The core forgets
 * a member when the watch reports that its Lease is gone. */
static void delete_garbage(struct balance *balance, struct hf_term *term) {
        struct hf_shards *shards = balance->shards;
        hf_nsec now = hf_now(hf_host_clock(balance->host));
        struct garbage garbage;
        int r = 0;

        while ((r == 0 || r == HF_E_NOT_FOUND || r == HF_E_CONFLICT) &&
               find_garbage(shards, now, &garbage))
                r = delete_lease(balance, term, &garbage, now + shards->timing.retry_period);
}

static int reconcile_shard(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        struct balance *balance = ctx;
        struct hf_shards *shards = balance->shards;
        hf_nsec now = hf_now(hf_host_clock(balance->host));
        int r = 0;

        pthread_mutex_lock(&shards->mu);
        hf_nsec again_at = hf__shards_core_decide(&shards->core, now);
        pthread_mutex_unlock(&shards->mu);
        for (unsigned i = 0; i < shards->n && r == 0; i++)
                r = apply_decision(shards, i);
        if (r != 0)
                return r;
        delete_garbage(balance, term);
        *ret_again = again_at > now ? again_at - now : 1; /* 0 would mean never */
        return 0;
}

/* Runs the balancer. Every instance has one, also an instance that holds no Lease
 * (HF_EVERY_INSTANCE). */
static int run_balancer(struct hf_term *term, void *ctx) {
        struct hf_shards *shards = ctx;
        struct balance balance = {.shards = shards, .host = hf_term_host(term)};
        struct hf_informer *informer = NULL;
        char query[HF_SHARDS_NAME_MAX + 64];
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .client = hf_term_ungated_client(term),
                                                  .resource = leases,
                                                  .ns = shards->ns,
                                                  .query = query};

        (void)snprintf(query, sizeof query, "labelSelector=holdfast.dev%%2Fshards%%3D%s",
                       shards->name);
        int r = hf_informer_new(balance.host, &config, &informer);
        if (r != 0)
                return r;
        const struct hf_reconciler_source source = {.size = sizeof source,
                                                    .informer = informer,
                                                    .map = on_lease};
        const struct hf_reconciler reconciler = {.size = sizeof reconciler,
                                                 .name = shards->name,
                                                 .sources = &source,
                                                 .n_sources = 1,
                                                 .reconcile = reconcile_shard,
                                                 .ctx = &balance};
        r = hf_informer_start(informer);
        if (r == 0)
                r = hf_reconciler_run(&reconciler, term);
        hf_informer_free(informer);
        return r;
}

/* ---- adding ---- */

static const struct hf__sized sized_config = HF__SIZED(struct hf_shards_config, n_controllers);
static const struct hf__sized sized_controller = HF__SIZED(struct hf_shard_controller, run);

static int run_shard(struct hf_term *term, void *ctx) {
        const struct runner *runner = ctx;

        return runner->run(term, runner->shard, runner->ctx);
}

static int add_shard(struct hf_electors *electors, struct hf_shards *shards,
                     const struct hf_shards_config *config, struct hf_elector_config elector,
                     unsigned i, struct hf_status *reterr_status) {
        struct hf_controller *controllers = calloc(config->n_controllers, sizeof *controllers);
        char name[LEASE_NAME];
        int r = controllers ? 0 : -ENOMEM;

        (void)snprintf(name, sizeof name, "%s-%u", shards->name, i);
        for (size_t k = 0; k < config->n_controllers && r == 0; k++) {
                struct hf_shard_controller from;
                struct runner *runner = &shards->runners[i * config->n_controllers + k];
                char *text = NULL;

                r = hf__sized_copy_at(&sized_controller, &from, config->controllers, k, NULL);
                assert(r == 0); /* check_config has copied the same struct */
                *runner = (struct runner){.run = from.run, .ctx = from.ctx, .shard = i};
                if (asprintf(&text, "%s-%u", from.name, i) < 0) {
                        r = -ENOMEM;
                        break;
                }
                controllers[k] = (struct hf_controller){.size = sizeof(struct hf_controller),
                                                        .name = text,
                                                        .run = run_shard,
                                                        .ctx = runner};
        }
        elector.name = name;
        elector.controllers = controllers;
        elector.n_controllers = config->n_controllers;
        if (r == 0)
                r = hf_electors_add(electors, &elector, &shards->list[i].elector, reterr_status);
        else
                r = hf_fail(reterr_status, r, "shards %s: out of memory", shards->name);
        /* The electors do not run yet, so the core needs no event. */
        if (r == 0)
                shards->list[i].elector->core.hold_back = HOLD_BACK(&shards->timing);
        for (size_t k = 0; controllers && k < config->n_controllers; k++)
                free((char *)controllers[k].name);
        free(controllers);
        return r;
}

/* Adds the elector of the Lease that announces this instance. Its controller is the balancer. */
static int add_member(struct hf_electors *electors, struct hf_shards *shards,
                      struct hf_elector_config elector, struct hf_status *reterr_status) {
        char name[LEASE_NAME], controller_name[LEASE_NAME];
        const struct hf_controller controller = {.size = sizeof controller,
                                                 .name = controller_name,
                                                 .runs = HF_EVERY_INSTANCE,
                                                 .run = run_balancer,
                                                 .ctx = shards};

        (void)snprintf(name, sizeof name, "%s-" MEMBER "%016" PRIx64, shards->name,
                       hf__shards_key(elector.identity));
        (void)snprintf(controller_name, sizeof controller_name, "%s-balancer", shards->name);
        elector.name = name;
        elector.controllers = &controller;
        elector.n_controllers = 1;
        elector.events = false;
        elector.on_change = NULL;
        elector.loop = NULL;
        return hf_electors_add(electors, &elector, NULL, reterr_status);
}

static int check_config(const struct hf_shards_config *config,
                        const struct hf_elector_config *elector, struct hf_status *reterr_status) {
        const char *wrong = NULL;

        if (!elector->name || !*elector->name || strlen(elector->name) > HF_SHARDS_NAME_MAX)
                wrong = "the name must have 1 to 63 bytes";
        else if (!elector->identity || !elector->ns)
                wrong = "there is no identity or no namespace";
        else if (strlen(elector->ns) > HF_NAME_MAX)
                wrong = "the namespace is too long";
        else if (config->n_shards < 1 || config->n_shards > HF_SHARDS_MAX)
                wrong = "there must be 1 to 1024 shards";
        else if (elector->controllers || elector->migrate_from || elector->coordinated)
                wrong = "the elector's configuration sets controllers, migrate_from or coordinated";
        else if (config->n_controllers == 0 || !config->controllers)
                wrong = "there are no controllers";
        for (size_t i = 0; !wrong && i < config->n_controllers; i++) {
                struct hf_shard_controller controller;
                int r = hf__sized_copy_at(&sized_controller, &controller, config->controllers, i,
                                          reterr_status);
                if (r != 0)
                        return r;
                if (!controller.name || !controller.run)
                        wrong = "a controller has no name or no run function";
        }
        if (wrong)
                return hf_fail(reterr_status, HF_E_INVALID, "shards %.100s: %s",
                               elector->name ? elector->name : "", wrong);
        /* The electors check this too, but the core of the shards is made before them. */
        struct hf_leader_timing timing = elector->timing;
        hf_leader_timing_defaults(&timing);
        return hf_leader_timing_check(&timing, reterr_status);
}

/* Gives the shards to the electors, which own them also after a failure. */
static int make_shards(struct hf_electors *electors, const struct hf_shards_config *config,
                       const struct hf_elector_config *elector, struct hf_shards **ret_shards) {
        struct hf_shards *shards = calloc(1, sizeof *shards);
        if (!shards)
                return -ENOMEM;
        int r = hf__mutex_init(&shards->mu);
        if (r != 0) {
                free(shards);
                return r;
        }
        shards->part = (struct hf__electors_part){.next = electors->parts, .free = free_shards};
        electors->parts = &shards->part;
        (void)snprintf(shards->ns, sizeof shards->ns, "%s", elector->ns);
        (void)snprintf(shards->name, sizeof shards->name, "%s", elector->name);
        shards->timing = elector->timing;
        hf_leader_timing_defaults(&shards->timing);
        shards->n = config->n_shards;
        shards->list = calloc(shards->n, sizeof *shards->list);
        shards->runners = calloc(shards->n * config->n_controllers, sizeof *shards->runners);
        if (!shards->list || !shards->runners)
                return -ENOMEM;
        *ret_shards = shards;
        return hf__shards_core_init(&shards->core, elector->identity, shards->n,
                                    shards->timing.lease_duration, shards->timing.retry_period);
}

int hf_shards_add(struct hf_electors *electors, const struct hf_shards_config *given,
                  struct hf_shards **ret_shards, struct hf_status *reterr_status) {
        struct hf_shards_config config;
        struct hf_elector_config elector;
        struct hf_shards *shards = NULL;
        char label[sizeof LABEL + 1 + HF_SHARDS_NAME_MAX];

        int r = hf__sized_copy(&sized_config, &config, given, reterr_status);
        if (r == 0)
                r = hf__sized_copy(&hf__sized_elector_config, &elector, config.elector,
                                   reterr_status);
        if (r == 0)
                r = check_config(&config, &elector, reterr_status);
        if (r != 0)
                return r;
        HF__CLEANUP(hf__free_cleanup)
        const char **labels = calloc(elector.n_labels + 1, sizeof(char *));
        r = labels ? make_shards(electors, &config, &elector, &shards) : -ENOMEM;
        if (r != 0)
                return hf_fail(reterr_status, r, "shards %s: %s", elector.name, hf_strerror(r));
        (void)snprintf(label, sizeof label, LABEL "=%s", shards->name);
        for (size_t i = 0; i < elector.n_labels; i++)
                labels[i] = elector.labels[i];
        labels[elector.n_labels++] = label;
        elector.labels = labels;
        r = add_member(electors, shards, elector, reterr_status);
        for (unsigned i = 0; i < shards->n && r == 0; i++)
                r = add_shard(electors, shards, &config, elector, i, reterr_status);
        if (r == 0 && ret_shards)
                *ret_shards = shards;
        return r;
}
