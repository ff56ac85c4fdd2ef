/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which names of a definition are accepted, and sets its conditions. There is one key for
 * each definition. A change or deletion of a definition also enqueues the definitions of its group
 * that wait for a name, because the name may be free now.
 *
 * Invariants:
 *
 *  - One worker decides, one definition after the other, and after each write it waits until the
 *    informer has the result. Otherwise two definitions could both get the same name: the worker
 *    would decide the second one before the informer knows of the first.
 *  - A new leader begins when the informer has everything that was written before its term, so it
 *    knows the names that its predecessor has accepted. The fence refuses later writes of the
 *    predecessor.
 *  - A status is written with the resourceVersion that it was computed from. If another client has
 *    changed the definition, the event of that change leads to another decision.
 */
#include "server/controllers/definitions/definition_status.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/time_format.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/context/controller_context.h"
#include "server/controllers/context/reconcile_loop.h"
#include "server/controllers/kinds/definition_core.h"
#include "server/controllers/kinds/definition_index.h"

static const struct hf_resource definitions = {"apiextensions.k8s.io", "v1",
                                               "customresourcedefinitions"};

void hfd_definition_now(struct hf_term *term, char *text) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));

        hf__time_format(clock->real(clock->ctx) / HF_NSEC_PER_SEC, text);
}

int hfd_definition_write_status(struct hf_term *term, const struct hf__json *definition,
                                char ret_revision[HFD_DEFINITION_REVISION_MAX]) {
        const struct hf__json *status = hf__json_get(definition, "status");
        const struct hfd_object_client_change changes[] = {
                {"/metadata/finalizers", hf__json_path(definition, "metadata.finalizers")},
                {"/status/acceptedNames", hf__json_get(status, "acceptedNames")},
                {"/status/conditions", hf__json_get(status, "conditions")},
        };
        const char *name = hf__json_string(definition, "metadata.name"),
                   *revision = hf__json_string(definition, "metadata.resourceVersion");
        struct hf__json *written = NULL;

        if (!name || !revision)
                return HF_E_INVALID;
        int r = hfd_object_client_patch(term, &definitions, name, "status", revision, changes,
                                        sizeof changes / sizeof *changes, &written);
        if (r != 0)
                return r;
        revision = hf__json_string(written, "metadata.resourceVersion");
        if (ret_revision)
                (void)snprintf(ret_revision, HFD_DEFINITION_REVISION_MAX, "%s",
                               revision ? revision : "");
        hf__json_free(written);
        return 0;
}

static bool uses_resource(void *ctx, const char *group, const char *name) {
        return hfd_definition_uses_resource(ctx, group, name);
}

static bool uses_kind(void *ctx, const char *group, const char *name) {
        return hfd_definition_uses_kind(ctx, group, name);
}

static int reconcile_definition(void *ctx, struct hf_term *term, const char *key,
                                hf_nsec *ret_again) {
        const struct hfd_controller_context *context = ctx;
        struct hf_informer *informer = context->definitions->informer;
        const struct hfd_definition_uses uses = {uses_resource, uses_kind, informer};
        char now[HF__MICROTIME_MAX], revision[HFD_DEFINITION_REVISION_MAX] = "";
        struct hf__json *definition;
        bool changed;
        int r = hfd_object_client_get_cached(informer, NULL, key, &definition);

        if (r != 0)
                return r == HF_E_NOT_FOUND ? 0 : r;
        hfd_definition_now(term, now);
        r = hfd_definition_set_conditions(definition, &uses, now, &changed);
        if (r == 0 && changed) {
                r = hfd_definition_write_status(term, definition, revision);
                if (r == 0 && *revision)
                        r = hf_informer_wait(informer, revision, hf_term_abort(term));
                r = hfd_object_client_ignore_stale(r);
        }
        hf__json_free(definition);
        return r;
}

/* In the name of a definition the group follows the first dot. */
static int map_definition(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                          const char *ns, const char *name, const char *object, size_t n) {
        const struct hfd_controller_context *context = ctx;
        const char *dot = strchr(name, '.');
        int r = type != HF_EVENT_DELETED ? hf_workqueue_add(queue, name) : 0;

        if (r == 0 && type != HF_EVENT_ADDED && dot)
                r = hfd_definition_enqueue_waiting(context->definitions->informer, dot + 1, queue);
        return r;
}

int hfd_definition_status_run(struct hf_term *term, void *ctx) {
        struct hfd_controller_context *context = ctx;
        const struct hfd_reconcile_loop loop = {
                .name = HFD_DEFINITION_STATUS,
                .n_workers = 1,
                .reconcile = reconcile_definition,
                .ctx = context,
                .sources = {{hfd_needed_informer(context->definitions), map_definition}},
        };

        return hfd_reconcile_loop_run(&loop, term);
}
