/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks what a write of a pod's .../resize changes. It may change the amounts of cpu and memory of
 * the containers and of the whole pod. It must not remove an amount, and the QoS class must stay:
 * the node's kubelet has put the running pod into the cgroup of its class.
 *
 * The method: in a copy of the new spec, cpu and memory are replaced by the old amounts ("masked").
 * If the copy still differs from the old spec, the write has changed something else.
 *
 * Invariant: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them.
 */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/workloads.h"

static const char *const maps[] = {"requests", "limits"};
static const char *const lists[] = {"initContainers", "containers"};

/* ---- the order of containers ---- */

/* added, renamed: the texts for the two mistakes. */
static void validate_order_of(const struct hf__json *spec, const struct hf__json *old,
                              const char *list, const char *added, const char *renamed,
                              struct hfd_causes *causes) {
        const struct hf__json *m = hf__json_first(hf__json_get(spec, list)),
                              *was = hf__json_first(hf__json_get(old, list));
        char field[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX], name[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        hfd_field_path(field, "spec", list);
        if (hf__json_count(hf__json_get(spec, list)) != hf__json_count(hf__json_get(old, list))) {
                hfd_cause_forbidden(causes, field, added);
                return;
        }
        for (; m && was; m = hf__json_next(m), was = hf__json_next(was)) {
                hfd_field_index(path, field, i++);
                if (strcmp(hfd_text_of(m, "name"), hfd_text_of(was, "name")) != 0)
                        hfd_cause_forbidden(causes, hfd_field_path(name, path, "name"), renamed);
        }
}

/* Whether both specs have the same containers in the same order, so that they can be compared one
 * by one. Adds a cause for each difference. */
static bool validate_order(const struct hf__json *spec, const struct hf__json *old,
                           struct hfd_causes *causes) {
        size_t n = causes->n;

        validate_order_of(spec, old, "containers",
                          "containers may not be added or removed on "
                          "resize",
                          "containers may not be renamed or reordered on resize", causes);
        validate_order_of(spec, old, "initContainers",
                          "initContainers may not be added or removed on resize",
                          "initContainers may not be renamed or reordered on resize", causes);
        return causes->n == n;
}

/* ---- amounts ---- */

/* Whether the old map has a name that the new one does not have. */
static bool has_removed(const struct hf__json *amounts, const struct hf__json *old,
                        struct hfd_causes *causes) {
        struct hf__json_index names;
        bool removed = false;

        if (hfd_causes_check(causes, hf__json_index_init(&names, amounts, NULL)))
                for (const struct hf__json *m = hf__json_first(old); m && !removed;
                     m = hf__json_next(m))
                        removed = !hf__json_index_find(&names, hf__json_key(m));
        hf__json_index_done(&names);
        return removed;
}

/* field: the path of resources. why: the texts for removed requests and for removed limits. */
static void refuse_removed(const struct hf__json *resources, const struct hf__json *old,
                           const char *field, const char *const *why, struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        for (size_t i = 0; i < 2; i++)
                if (has_removed(hf__json_get(resources, maps[i]), hf__json_get(old, maps[i]),
                                causes))
                        hfd_cause_forbidden(causes, hfd_field_path(path, field, maps[i]), why[i]);
}

/* Replaces cpu and memory in a copy of resources by the old amounts, so that the copy differs from
 * the old resources only in what must not change. A map that becomes empty is dropped, because the
 * old resources do not have it either. (If they have it, with other amounts than cpu and memory,
 * the write has removed those, and the copy differs.) resources NULL: there is nothing to do. 0 or
 * -ENOMEM. */
static int mask_resources(struct hf__json *resources, const struct hf__json *old) {
        static const char *const names[] = {"cpu", "memory"};
        int r = 0;

        for (size_t i = 0; resources && i < 2; i++) {
                struct hf__json *amounts = hf__json_get(resources, maps[i]);
                const struct hf__json *had = hf__json_get(old, maps[i]);
                for (size_t k = 0; k < 2 && r == 0; k++) {
                        const struct hf__json *amount = hf__json_get(had, names[k]);
                        hf__json_drop(amounts, names[k]);
                        if (!amount)
                                continue;
                        if (!amounts) {
                                r = hf__json_put(resources, maps[i], hf__json_object());
                                amounts = hf__json_get(resources, maps[i]);
                        }
                        if (r == 0)
                                r = hf__json_put(amounts, names[k], hf__json_dup(amount));
                }
                if (amounts && !hf__json_first(amounts))
                        hf__json_drop(resources, maps[i]);
        }
        return r;
}

/* ---- the pod ---- */

static bool has_amounts(const struct hf__json *resources) {
        return hf__json_first(hf__json_get(resources, "requests")) ||
               hf__json_first(hf__json_get(resources, "limits"));
}

/* Checks spec.resources, the amounts for the whole pod. masked: a copy of the new spec, in which
 * this function masks spec.resources. 0 or -ENOMEM. */
static int validate_pod_level(struct hf__json *masked, const struct hf__json *spec,
                              const struct hf__json *old, struct hfd_causes *causes) {
        static const char *const why[] = {"pod-level resource requests cannot be removed",
                                          "pod-level resource limits cannot be removed"};
        const struct hf__json *resources = hf__json_get(spec, "resources"),
                              *had = hf__json_get(old, "resources");
        struct hf__json *rest = hf__json_get(masked, "resources");

        if (!has_amounts(resources) && !has_amounts(had))
                return 0;
        if (had && !resources) {
                hfd_cause_forbidden(causes, "spec.resources",
                                    "pod-level resources cannot be removed");
                return 0;
        }
        if (had)
                refuse_removed(resources, had, "spec.resources", why, causes);
        int r = mask_resources(rest, had);
        if (r == 0 && !had && !hf__json_first(rest)) {
                hf__json_drop(masked, "resources");
                rest = NULL;
        }
        if (r == 0 && !hfd_causes_equal(causes, rest, had))
                hfd_cause_forbidden(causes, "spec",
                                    "only cpu and memory resources are mutable at pod-level");
        return r;
}

/* ---- containers ---- */

/* Refuses amounts that are removed from containers. */
static void refuse_removed_of(const struct hf__json *spec, const struct hf__json *old,
                              struct hfd_causes *causes) {
        static const char *const why[] = {"resource requests cannot be removed",
                                          "resource limits cannot be removed"};
        char field[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX], of[HFD_FIELD_PATH_MAX];

        for (size_t k = 0; k < 2; k++) {
                const struct hf__json *m = hf__json_first(hf__json_get(spec, lists[k])),
                                      *was = hf__json_first(hf__json_get(old, lists[k]));
                size_t i = 0;
                hfd_field_path(field, "spec", lists[k]);
                for (; m && was; m = hf__json_next(m), was = hf__json_next(was)) {
                        hfd_field_index(path, field, i++);
                        refuse_removed(hf__json_get(m, "resources"), hf__json_get(was, "resources"),
                                       hfd_field_path(of, path, "resources"), why, causes);
                }
        }
}

/* Whether the container must be restarted to get other amounts. An init container that is not a
 * sidecar cannot be, because it runs once. */
static bool restarts_on_resize(const struct hf__json *container) {
        for (const struct hf__json *m = hf__json_first(hf__json_get(container, "resizePolicy")); m;
             m = hf__json_next(m))
                if (hf__json_has_text(m, "restartPolicy", "RestartContainer"))
                        return true;
        return false;
}

/* Checks a container, and masks it. container: in the copy of the new spec. init: the path of an
 * init container, "spec.initContainers[0]"; NULL = a regular container. 0 or -ENOMEM. */
static int validate_container(struct hf__json *container, const struct hf__json *old,
                              const char *init, struct hfd_causes *causes) {
        bool modified = !hfd_causes_equal(causes, container, old);
        struct hf__json *resources = hf__json_get(container, "resources");

        if (!modified)
                return 0;
        int r = mask_resources(resources, hf__json_get(old, "resources"));
        /* Kubernetes' masked copy has no claims, so a container that had claims differs from it and
         * cannot be resized. */
        hf__json_drop(resources, "claims");
        if (r == 0 && !hfd_causes_equal(causes, container, old))
                hfd_cause_forbidden(causes, init ? init : "spec",
                                    init ? "only cpu and memory resources for init or sidecar "
                                           "containers are mutable"
                                         : "only cpu and memory resources are mutable");
        if (r == 0 && init && !hf__json_has_text(container, "restartPolicy", "Always") &&
            restarts_on_resize(container))
                hfd_cause_forbidden(causes, init,
                                    "non-sidecar init containers with a resize policy of "
                                    "RestartContainer cannot be resized");
        return r;
}

/* Causes have Kubernetes' order: those for removed amounts first, then the others, of which those
 * of regular containers come before those of init containers. 0 or -ENOMEM. */
static int validate_containers(struct hf__json *masked, const struct hf__json *old,
                               struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];
        int r = 0;

        refuse_removed_of(masked, old, causes);
        for (size_t k = 2; k-- > 0 && r == 0;) {
                struct hf__json *m = hf__json_first(hf__json_get(masked, lists[k]));
                const struct hf__json *was = hf__json_first(hf__json_get(old, lists[k]));
                size_t i = 0;
                for (; m && was && r == 0; m = hf__json_next(m), was = hf__json_next(was)) {
                        hfd_field_index(path, "spec.initContainers", i++);
                        r = validate_container(m, was, k == 0 ? path : NULL, causes);
                }
        }
        return r;
}

/* ---- the whole pod ---- */

/* Whether the node's kubelet can resize. If so, it reports the resources of running containers in
 * the status. A pod that does not run yet gets the new amounts at its start, so any node will
 * do. */
static bool is_supported(const struct hf__json *pod) {
        for (const struct hf__json *m =
                     hf__json_first(hf__json_path(pod, "status.containerStatuses"));
             m; m = hf__json_next(m))
                if (hf__json_path(m, "state.running"))
                        return hf__json_get(m, "resources");
        return true;
}

/* Pods that were stored before they had status.qosClass get it from the old spec. */
static void validate_class(const struct hf__json *object, const struct hf__json *old,
                           struct hfd_causes *causes) {
        const char *class = hf__json_string(old, "status.qosClass");

        if (!class || !*class)
                class = hfd_pod_qos_class(hf__json_get(old, "spec"));
        if (strcmp(class, hfd_pod_qos_class(hf__json_get(object, "spec"))) != 0)
                hfd_cause_invalid_text(causes, "spec",
                                       hfd_text_of(hf__json_get(object, "status"), "qosClass"),
                                       "Pod QOS Class may not change as a result of resizing");
}

/* masked: a copy of the new spec, which is masked here. Containers are compared only if they are
 * the same ones; else their differences have been refused already. 0 or -ENOMEM. */
static int validate_masked(struct hf__json *masked, const struct hf__json *object,
                           const struct hf__json *old, struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec"),
                              *old_spec = hf__json_get(old, "spec");
        int r = validate_pod_level(masked, spec, old_spec, causes);

        if (hf__json_first(hf__json_path(old, "status.nodeAllocatableResourceClaimStatuses")))
                hfd_cause_forbidden(causes, "spec",
                                    "pods with node allocatable resource claims cannot be resized");
        if (r != 0 || !validate_order(spec, old_spec, causes))
                return r;
        r = validate_containers(masked, old_spec, causes);
        if (r == 0 && causes->n == 0 && !hfd_causes_equal(causes, masked, old_spec))
                hfd_cause_forbidden(causes, "spec", "only cpu and memory resources are mutable");
        return r;
}

void hfd_pod_validate_resize(const struct hf__json *object, const struct hf__json *old,
                             struct hfd_causes *causes) {
        const struct hf__json *old_spec = hf__json_get(old, "spec");

        if (hf__json_has_text(old_spec, "os.name", "windows")) {
                causes->n = 0; /* Kubernetes reports only this cause */
                hfd_cause_forbidden(causes, "[]", "windows pods cannot be resized");
                return;
        }
        validate_class(object, old, causes);
        if (!is_supported(old))
                hfd_cause_forbidden(causes, "spec",
                                    "Pod running on node without support for resize");
        struct hf__json *masked = hf__json_dup(hf__json_get(object, "spec"));
        (void)hfd_causes_check(causes,
                               masked ? validate_masked(masked, object, old, causes) : -ENOMEM);
        hf__json_free(masked);
}
