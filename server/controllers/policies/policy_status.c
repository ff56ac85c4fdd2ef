/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the types in the expressions of ValidatingAdmissionPolicies. A key of the reconciler is
 * the name of a policy.
 *
 * Invariant: a policy is checked only until its status says that its generation was checked. A
 * later change of a kind's schema causes no new check, as in Kubernetes.
 */
#include "server/controllers/policies/policy_status.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <holdfast/reconciler.h>

#include "base/json.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/context/controller_context.h"

static const struct hf_resource policies = {"admissionregistration.k8s.io", "v1",
                                            "validatingadmissionpolicies"};

/* Whether the status says that the policy's generation was checked. *ret_generation: that
 * generation; 0 = the policy has none, and counts as checked. */
static bool is_checked(const struct hf__json *policy, int64_t *ret_generation) {
        int64_t observed = 0;

        *ret_generation = 0;
        (void)hf__json_i64(policy, "metadata.generation", ret_generation);
        (void)hf__json_i64(policy, "status.observedGeneration", &observed);
        return *ret_generation <= observed;
}

/* Makes the new status. Conditions that other clients have set stay. */
static int make_status(const struct hfd_controller_context *context, const struct hf__json *policy,
                       int64_t generation, struct hf__json **ret_status) {
        const struct hf__json *old = hf__json_get(policy, "status");
        struct hf__json *status = old ? hf__json_dup(old) : hf__json_object();
        struct hf__json *checking = NULL;
        int r = status ? 0 : -ENOMEM;

        if (r == 0)
                r = context->policy_checks.check(context->policy_checks.ctx, policy, &checking);
        if (r == 0)
                r = hf__json_put(status, "typeChecking", checking);
        if (r == 0)
                r = hf__json_set_i64(status, "observedGeneration", generation);
        if (r != 0)
                status = hf__json_free(status);
        *ret_status = status;
        return r;
}

static int reconcile_policy(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        const struct hfd_controller_context *context = ctx;
        struct hf__json *written = NULL;
        struct hf__json *status = NULL;
        struct hf__json *policy;
        const char *revision;
        int64_t generation;
        int r = hfd_object_client_get_cached(context->policies->informer, NULL, key, &policy);

        if (r != 0)
                return r == HF_E_NOT_FOUND ? 0 : r;
        revision = hf__json_string(policy, "metadata.resourceVersion");
        if (!is_checked(policy, &generation) && revision) {
                r = make_status(context, policy, generation, &status);
                if (r == 0) {
                        const struct hfd_object_client_change change = {"/status", status};

                        r = hfd_object_client_patch(term, &policies, key, "status", revision,
                                                    &change, 1, &written);
                        r = hfd_object_client_ignore_stale(r);
                }
        }
        hf__json_free(written);
        hf__json_free(status);
        hf__json_free(policy);
        return r;
}

static int map_policy(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                      const char *ns, const char *name, const char *object, size_t n) {
        return type != HF_EVENT_DELETED ? hf_workqueue_add(queue, name) : 0;
}

int hfd_policy_status_run(struct hf_term *term, void *ctx) {
        struct hfd_controller_context *context = ctx;
        assert(context->policies && context->policy_checks.check); /* controllers.c has set them */
        const struct hf_reconciler_source source = {.size = sizeof source,
                                                    .informer = context->policies->informer,
                                                    .map = map_policy};
        const struct hf_reconciler reconciler = {
                .size = sizeof reconciler,
                .name = HFD_POLICY_STATUS,
                .sources = &source,
                .n_sources = 1,
                .n_workers = 1,
                .reconcile = reconcile_policy,
                .ctx = context,
        };

        return hf_reconciler_run(&reconciler, term);
}
