/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operator, which is a controller of one kind (<holdfast/operator.h>): its informers, its
 * election, and the order in which it works.
 *
 * Invariants:
 *  - If the operator has a finalizer, an object has it before reconcile sees the object, and keeps
 *    it until finalize has returned 0. So finalize can always remove what reconcile has made.
 *  - Informers live from hf_operator_new to hf_operator_free, the recorder and the reconciler for
 *    one call of run_operator. So a standby has its caches filled already when it begins to lead.
 */
#include <holdfast/operator.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/definition.h>
#include <holdfast/finalizer.h>
#include <holdfast/owner.h>
#include <holdfast/reconciler.h>

#include "base/host.h"
#include "base/sized_struct.h"
#include "leader/operator_work.h"

static const struct hf__sized sized_config = HF__SIZED(struct hf_operator_config, reconcile);
static const struct hf__sized sized_owned = HF__SIZED(struct hf_operator_owned, resource);

/* The state that the functions of one term share. */
struct term_work {
        struct hf_operator *op;
        struct hf_recorder *recorder;
};

/* Queues the owner of a changed object: an object of the kind in the same namespace, because an
 * operator makes the owned objects there (hf_operator_upsert). */
static int map_owned(void *ctx, struct hf_workqueue *queue, enum hf_event_type type, const char *ns,
                     const char *name, const char *object, size_t n) {
        const struct term_work *w = ctx;
        const struct hf_operator_config *config = &w->op->config;
        char owner[HF_NAME_MAX + 1];
        char key[HF_KEY_MAX];

        int r = hf_owner_name(object, n, config->resource.group, config->kind, owner);
        if (r != 0)
                return r;
        (void)snprintf(key, sizeof key, "%s%s%s", ns ? ns : "", ns && ns[0] ? "/" : "", owner);
        return hf_workqueue_add(queue, key);
}

/* Works on one object. If it is being deleted, finalizes it if it has the finalizer. Otherwise adds
 * the finalizer if it is missing, and returns: the event of that update leads here again. If it has
 * the finalizer, or none is configured, reconciles the object. */
static int process_object(struct hf_operator_work *work, hf_nsec *ret_again) {
        const struct hf_operator_config *config = &work->op->config;
        bool has = false;
        bool is_deleted = false;

        int r = hf_finalizer_check(work->object, work->n,
                                   config->finalizer ? config->finalizer : "", &has, &is_deleted);
        if (r != 0)
                return r;
        if (!is_deleted)
                return config->finalizer && !has ? hf__operator_put_finalizer(work, true)
                                                 : config->reconcile(config->ctx, work, ret_again);
        if (!has)
                return 0;
        r = config->finalize(config->ctx, work);
        return r == 0 ? hf__operator_put_finalizer(work, false) : r;
}

/* Thread: one of the reconciler's workers. The key of an object that is gone needs no work. */
static int reconcile_key(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        const struct term_work *w = ctx;
        struct hf_operator_work work = {.op = w->op, .term = term, .recorder = w->recorder};

        int r = hf_key_split(key, work.ns, work.name);
        if (r == 0)
                r = hf_informer_get(w->op->objects, work.ns, work.name, &work.object, &work.n);
        if (r == 0)
                r = process_object(&work, ret_again);
        else if (r == HF_E_NOT_FOUND)
                r = 0;
        free(work.object);
        return r;
}

/* Reconciles until the term ends. An event of the operator's kind queues the key of its object, an
 * event of an owned kind the key of the owner. */
static int reconcile_term(struct term_work *w, struct hf_term *term) {
        struct hf_reconciler_source sources[1 + HF_OPERATOR_OWNED_MAX];
        const struct hf_reconciler reconciler = {.size = sizeof reconciler,
                                                 .name = w->op->config.name,
                                                 .sources = sources,
                                                 .n_sources = 1 + w->op->config.n_owned,
                                                 .n_workers = w->op->config.n_workers,
                                                 .reconcile = reconcile_key,
                                                 .ctx = w};

        sources[0] = (struct hf_reconciler_source){.size = sizeof sources[0],
                                                   .informer = w->op->objects};
        for (size_t i = 0; i < w->op->config.n_owned; i++)
                sources[1 + i] = (struct hf_reconciler_source){.size = sizeof sources[0],
                                                               .informer = w->op->informers[i],
                                                               .map = map_owned};
        return hf_reconciler_run(&reconciler, term);
}

/* The controller's run(): establishes the definition if there is one, then works until the
 * term ends. */
static int run_operator(struct hf_term *term, void *ctx) {
        struct term_work w = {.op = ctx};
        const struct hf_operator_config *config = &w.op->config;
        const struct hf_recorder_config recorded = {.size = sizeof recorded,
                                                    .client = hf_term_client(term),
                                                    .component = config->name,
                                                    .instance = config->identity};
        struct hf_status status = {0};
        int r = 0;

        if (config->definition)
                r = hf_definition_establish(hf_term_client(term), config->definition,
                                            strlen(config->definition), hf_term_drain(term),
                                            &status);
        if (r == HF_E_CANCELED)
                return 0;
        if (r != 0) {
                hf_log(&w.op->host->log, HF_LOG_WARNING, "operator",
                       "%s: cannot establish the definition: %s", config->name, status.message);
                return r;
        }
        r = hf_recorder_new(hf_term_host(term), &recorded, &w.recorder);
        if (r == 0)
                r = reconcile_term(&w, term);
        hf_recorder_free(w.recorder);
        return r;
}

/* ---- the operator ---- */

static int check_config(const struct hf_operator_config *config, struct hf_status *status) {
        if (!config->name || !config->ns || !config->identity || !config->client ||
            !config->resource.group || !config->resource.version || !config->resource.plural ||
            !config->kind || !config->reconcile)
                return hf_fail(status, -EINVAL, "an operator lacks a required member");
        if (config->finalizer && !config->finalize)
                return hf_fail(status, -EINVAL, "%s: finalizer is set, and finalize is not",
                               config->name);
        if (config->n_owned > HF_OPERATOR_OWNED_MAX)
                return hf_fail(status, -EINVAL, "%s: more than %d owned collections", config->name,
                               HF_OPERATOR_OWNED_MAX);
        return 0;
}

static int new_informer(const struct hf_operator *op, struct hf_resource resource,
                        const char *query, struct hf_informer **ret_informer) {
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .client = op->config.client,
                                                  .resource = resource,
                                                  .query = query};

        return hf_informer_new(op->host, &config, ret_informer);
}

/* The elector has one controller, and its Lease, the controller and the Events share a name. */
static int add_elector(struct hf_operator *op, struct hf_status *status) {
        const struct hf_operator_config *config = &op->config;
        const struct hf_controller controller = {.size = sizeof controller,
                                                 .name = config->name,
                                                 .run = run_operator,
                                                 .ctx = op};
        const struct hf_elector_config elector = {.size = sizeof elector,
                                                  .client = config->client,
                                                  .ns = config->ns,
                                                  .name = config->name,
                                                  .identity = config->identity,
                                                  .unfenced = config->unfenced,
                                                  .timing = config->timing,
                                                  .controllers = &controller,
                                                  .n_controllers = 1};

        int r = hf_electors_new(op->host, &op->electors);
        return r == 0 ? hf_electors_add(op->electors, &elector, NULL, status) : r;
}

static int init_operator(struct hf_operator *op, const struct hf_operator_config *given,
                         struct hf_status *status) {
        struct hf_operator_config *config = &op->config;

        int r = hf__sized_copy(&sized_config, config, given, status);
        if (r == 0)
                r = check_config(config, status);
        for (size_t i = 0; r == 0 && i < config->n_owned; i++)
                r = hf__sized_copy_at(&sized_owned, &op->owned[i], config->owned, i, status);
        if (r == 0)
                r = new_informer(op, config->resource, NULL, &op->objects);
        for (size_t i = 0; r == 0 && i < config->n_owned; i++)
                r = new_informer(op, op->owned[i].resource, op->owned[i].query, &op->informers[i]);
        return r == 0 ? add_elector(op, status) : r;
}

int hf_operator_new(const struct hf_host *host, const struct hf_operator_config *config,
                    struct hf_operator **ret_operator, struct hf_status *reterr_status) {
        struct hf_operator *op;

        if (!ret_operator || hf__host_check(host, reterr_status) != 0)
                return -EINVAL;
        op = calloc(1, sizeof *op);
        if (!op)
                return -ENOMEM;
        op->host = host;
        int r = init_operator(op, config, reterr_status);
        if (r == 0)
                *ret_operator = op;
        else
                hf_operator_free(op);
        return r;
}

int hf_operator_start(struct hf_operator *op, struct hf_status *reterr_status) {
        int r = hf_informer_start(op->objects);

        for (size_t i = 0; r == 0 && i < op->config.n_owned; i++)
                r = hf_informer_start(op->informers[i]);
        return r == 0 ? hf_electors_start(op->electors, reterr_status) : r;
}

int hf_operator_stop(struct hf_operator *op, struct hf_status *reterr_status) {
        return hf_electors_stop(op->electors, reterr_status);
}

struct hf_operator *hf_operator_free(struct hf_operator *op) {
        if (!op)
                return NULL;
        hf_electors_free(op->electors);
        for (size_t i = 0; i < HF_OPERATOR_OWNED_MAX; i++)
                hf_informer_free(op->informers[i]);
        hf_informer_free(op->objects);
        free(op);
        return NULL;
}
