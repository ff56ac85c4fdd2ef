/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets spec.priority, spec.preemptionPolicy and, from the default class, spec.priorityClassName of
 * a new pod, as kube-apiserver's admission plug-in Priority does.
 *
 * Invariant: a pod gets the priority of its class and no other; only plug-ins of admission may then
 * change it. A class that the cache does not know may have been created on another instance a
 * moment ago, so before a refusal the write waits until the cache has all earlier writes.
 */
#include "server/registry/write/checks/pod_priority.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/quota/usage.h"
#include "server/registry/write/checks/priority_default.h"
#include "server/registry/write/reply.h"
#include "server/resources/rows/resource_table.h"

/* The priority that a pod gets, and its class. */
struct priority {
        char name[HF_NAME_MAX + 1]; /* "" = of no class */
        int64_t value;
        char policy[64]; /* "" = none */
};

static const struct hfd_resource *classes_resource(void) {
        return hfd_resource_find("scheduling.k8s.io", "v1", "priorityclasses");
}

/* 0, -ENOMEM, HF_E_NOT_FOUND, or HF_E_UNAVAILABLE: the cache is not filled. */
static int find_class(struct hfd_write *w, const char *name, struct priority *priority) {
        struct hf__json *json;
        int r = hfd_write_find_class(w, classes_resource(), name, &json);

        if (r != 0)
                return r;
        const char *policy = hf__json_string(json, "preemptionPolicy");
        (void)snprintf(priority->name, sizeof priority->name, "%s", name);
        (void)snprintf(priority->policy, sizeof priority->policy, "%s", policy ? policy : "");
        priority->value = 0;
        (void)hf__json_i64(json, "value", &priority->value);
        hf__json_free(json);
        return 0;
}

/* Finds the default class. If there is none, the priority is 0. Results as of find_class, but never
 * HF_E_NOT_FOUND. */
static int find_default(struct hfd_write *w, struct priority *priority) {
        char name[HF_NAME_MAX + 1];
        int r = hfd_write_default_class(w, classes_resource(), name);

        *priority = (struct priority){.policy = "PreemptLowerPriority"};
        if (r == 0 && *name)
                r = find_class(w, name, priority);
        return r == HF_E_NOT_FOUND ? 0 : r; /* it was deleted just now */
}

/* A pod may name the priority that it gets, and no other. False: the response was sent. */
static bool agrees_with_class(struct hfd_write *w, const struct priority *priority) {
        const char *policy = hf__json_string(w->object, "spec.preemptionPolicy");
        char why[400];
        int64_t value;

        if (hf__json_i64(w->object, "spec.priority", &value) && value != priority->value) {
                (void)snprintf(why, sizeof why,
                               "the integer value of priority (%" PRId64
                               ") must not be provided in pod spec; priority admission controller "
                               "computed %" PRId64 " from the given PriorityClass name",
                               value, priority->value);
                hfd_write_reply_forbidden(w, why);
                return false;
        }
        if (!policy || !*priority->policy || strcmp(policy, priority->policy) == 0)
                return true;
        (void)snprintf(why, sizeof why,
                       "the string value of PreemptionPolicy (%.60s) must not be provided in pod "
                       "spec; priority admission controller computed %s from the given "
                       "PriorityClass name",
                       policy, priority->policy);
        hfd_write_reply_forbidden(w, why);
        return false;
}

static int set_priority(struct hf__json *pod, const struct priority *priority) {
        int r = hf__json_set_i64(pod, "spec.priority", priority->value);

        if (r == 0 && *priority->name)
                r = hf__json_set_string(pod, "spec.priorityClassName", priority->name);
        if (r == 0 && *priority->policy)
                r = hf__json_set_string(pod, "spec.preemptionPolicy", priority->policy);
        return r;
}

bool hfd_write_prioritize(struct hfd_write *w) {
        const struct hfd_resource *resource = w->request->resource;
        const char *name = hf__json_string(w->object, "spec.priorityClassName");
        struct priority priority = {0};
        char why[HF_NAME_MAX + 80];
        int r;

        if (!w->created || w->request->subresource != HFD_SUB_NONE ||
            hfd_quota_kind(resource->group, resource->plural) != HFD_QUOTA_PODS)
                return true;
        r = name && *name ? find_class(w, name, &priority) : find_default(w, &priority);
        if (r == HF_E_NOT_FOUND && !w->knows_classes) {
                hfd_write_await_classes(w, false);
                return false;
        }
        if (r == HF_E_NOT_FOUND) {
                (void)snprintf(why, sizeof why, "no PriorityClass with name %.253s was found",
                               name);
                hfd_write_reply_forbidden(w, why);
                return false;
        }
        if (r == 0 && !agrees_with_class(w, &priority))
                return false;
        if (r == 0)
                r = set_priority(w->object, &priority);
        if (r != 0)
                hfd_write_reply_store_error(w, r, NULL);
        return r == 0;
}
