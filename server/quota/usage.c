/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of the resources that pods, claims and services use, and how much an object uses of
 * each.
 *
 * Invariant: hfd_usage_get knows only names that hfd_quota_kind_tracks accepts.
 */
#include "server/quota/usage.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

/* Parts of the names of resources in a quota, as Kubernetes has them. */
#define REQUESTS      "requests."
#define LIMITS        "limits."
#define HUGE_PAGES    "hugepages-"
#define DEVICE_CLASS  "deviceclass.resource.kubernetes.io/"
#define CLAIMS        "persistentvolumeclaims"
#define STORAGE       "requests.storage"
#define STORAGE_CLASS ".storageclass.storage.k8s.io/"

/* ---- names ---- */

/* Whether the resource is one of Kubernetes' own: its name has no domain, or one of Kubernetes. */
static bool is_native(const char *name) {
        return !strchr(name, '/') || strstr(name, "kubernetes.io/");
}

/* Whether this name in a quota counts pods, or what they use. */
static bool is_of_pods(const char *name) {
        static const char *const names[] = {"pods",
                                            "count/pods",
                                            "cpu",
                                            "memory",
                                            "ephemeral-storage",
                                            "requests.cpu",
                                            "requests.memory",
                                            "requests.ephemeral-storage",
                                            "limits.cpu",
                                            "limits.memory",
                                            "limits.ephemeral-storage",
                                            NULL};

        return hf__text_is_one_of(name, names) || hf__text_begins_with(name, HUGE_PAGES) ||
               hf__text_begins_with(name, REQUESTS HUGE_PAGES) ||
               hf__text_begins_with(name, REQUESTS DEVICE_CLASS) ||
               (hf__text_begins_with(name, REQUESTS) && !is_native(name));
}

/* Splits "gold.storageclass.storage.k8s.io/requests.storage": returns the resource of the class,
 * and the length of the name of the class. NULL: the name is of no class. The last STORAGE_CLASS in
 * the name counts, because Kubernetes looks at how the name ends. */
static const char *of_class(const char *name, size_t *ret_n) {
        const char *end = NULL;

        for (const char *at = strstr(name, STORAGE_CLASS); at; at = strstr(at + 1, STORAGE_CLASS))
                end = at;
        if (!end)
                return NULL;
        *ret_n = (size_t)(end - name);
        return end + strlen(STORAGE_CLASS);
}

/* Whether this name in a quota counts volume claims or their storage, of all classes or of one. */
static bool is_of_claims(const char *name) {
        static const char *const names[] = {CLAIMS, STORAGE, NULL};
        size_t n;
        const char *resource = of_class(name, &n);

        return strcmp(name, "count/" CLAIMS) == 0 ||
               hf__text_is_one_of(resource ? resource : name, names);
}

bool hfd_quota_kind_tracks(enum hfd_quota_kind kind, const char *name) {
        static const char *const of_services[] = {"services", "count/services",
                                                  "services.nodeports", "services.loadbalancers",
                                                  NULL};

        switch (kind) {
        case HFD_QUOTA_PODS: return is_of_pods(name);
        case HFD_QUOTA_CLAIMS: return is_of_claims(name);
        case HFD_QUOTA_SERVICES: return hf__text_is_one_of(name, of_services);
        case HFD_QUOTA_OBJECTS: break;
        }
        return false;
}

/* ---- measuring ---- */

/* Reads an amount of bytes, and rounds it up to a whole number, as Kubernetes does. False: there is
 * no quantity. A negative one becomes zero. */
static bool read_storage(const struct hf__json *object, const char *path,
                         struct hfd_quantity *ret_quantity, bool *ret_negative) {
        const char *text = hf__json_string(object, path);

        if (!text || hfd_quantity_parse(text, ret_quantity) != NULL)
                return false;
        *ret_negative = ret_quantity->negative;
        if (ret_quantity->negative)
                *ret_quantity = hfd_quantity_of(0);
        hfd_quantity_round_up(ret_quantity);
        return true;
}

/* A claim uses the storage that it requests, or the allocated storage if that is more. */
static void measure_claim(struct hfd_usage *usage, const struct hf__json *claim) {
        const struct hf__json *meta = hf__json_get(claim, "metadata");
        const char *class = hf__json_text(hf__json_get(hf__json_get(meta, "annotations"),
                                                       "volume.beta.kubernetes.io/storage-class"));
        struct hfd_quantity given;
        bool negative;

        if (!class)
                class = hf__json_string(claim, "spec.storageClassName");
        usage->storage_class = class && *class ? class : NULL;
        usage->has_storage = read_storage(claim, "spec.resources.requests.storage", &usage->storage,
                                          &usage->negative_storage);
        if (usage->has_storage &&
            read_storage(claim, "status.allocatedResources.storage", &given, &negative) &&
            hfd_quantity_compare(&given, &usage->storage) > 0)
                usage->storage = given;
}

static uint64_t count_node_ports(const struct hf__json *ports) {
        uint64_t n = 0;
        int64_t port;

        for (const struct hf__json *m = hf__json_first(ports); m; m = hf__json_next(m))
                n += hf__json_i64(m, "nodePort", &port) && port != 0;
        return n;
}

/* The node ports of a load balancer count before they are allocated, unless none will be. */
static void measure_service(struct hfd_usage *usage, const struct hf__json *service) {
        const struct hf__json *spec = hf__json_get(service, "spec"),
                              *ports = hf__json_get(spec, "ports");
        bool balanced = hf__json_has_text(spec, "type", "LoadBalancer");

        usage->load_balancers = balanced;
        if (balanced && !hf__json_bool(spec, "allocateLoadBalancerNodePorts", true))
                usage->node_ports = count_node_ports(ports);
        else if (balanced || hf__json_has_text(spec, "type", "NodePort"))
                usage->node_ports = hf__json_count(ports);
}

int hfd_usage_init(struct hfd_usage *usage, enum hfd_quota_kind kind, const struct hf__json *object,
                   int64_t now_s) {
        const struct hf__json *spec = hf__json_get(object, "spec");
        int r = 0;

        assert(kind != HFD_QUOTA_OBJECTS);
        *usage = (struct hfd_usage){.kind = kind};
        if (kind == HFD_QUOTA_CLAIMS)
                measure_claim(usage, object);
        if (kind == HFD_QUOTA_SERVICES)
                measure_service(usage, object);
        if (kind == HFD_QUOTA_PODS)
                usage->ended = hfd_pod_has_ended(object, now_s);
        if (kind != HFD_QUOTA_PODS || usage->ended)
                return 0;
        r = hfd_pod_sums_init(&usage->requests, spec, "requests");
        return r == 0 ? hfd_pod_sums_init(&usage->limits, spec, "limits") : r;
}

void hfd_usage_done(struct hfd_usage *usage) {
        hfd_pod_sums_done(&usage->requests);
        hfd_pod_sums_done(&usage->limits);
}

/* ---- the use ---- */

/* The sum that a name in a quota means: "cpu" and "requests.cpu" are the same. NULL: the pod has no
 * such resource. */
static const struct hfd_pod_sum *sum_of(const struct hfd_usage *usage, const char *name) {
        static const char *const basic[] = {"cpu", "memory", "ephemeral-storage", NULL};
        bool requests = hf__text_begins_with(name, REQUESTS);

        if (hf__text_begins_with(name, LIMITS))
                return hf__text_is_one_of(name + strlen(LIMITS), basic)
                               ? hfd_pod_sums_find(&usage->limits, name + strlen(LIMITS))
                               : NULL;
        if (requests)
                name += strlen(REQUESTS);
        if (hf__text_is_one_of(name, basic) || hf__text_begins_with(name, HUGE_PAGES) ||
            (requests && (hf__text_begins_with(name, DEVICE_CLASS) ||
                          (!is_native(name) && !hf__text_begins_with(name, REQUESTS)))))
                return hfd_pod_sums_find(&usage->requests, name);
        return NULL;
}

/* A pod that has ended uses nothing any more, but its object still counts. */
static bool get_of_pod(const struct hfd_usage *usage, const char *name,
                       struct hfd_quantity *ret_quantity) {
        const struct hfd_pod_sum *sum;

        *ret_quantity = hfd_quantity_of(1);
        if (strcmp(name, "count/pods") == 0)
                return true;
        if (usage->ended)
                return false;
        if (strcmp(name, "pods") == 0)
                return true;
        sum = sum_of(usage, name);
        if (sum)
                *ret_quantity = sum->total;
        return sum != NULL;
}

/* A name with a class counts only the claims of that class. */
static bool get_of_claim(const struct hfd_usage *usage, const char *name,
                         struct hfd_quantity *ret_quantity) {
        size_t n = 0;
        const char *resource = of_class(name, &n);

        if (resource && (!usage->storage_class || strlen(usage->storage_class) != n ||
                         strncmp(usage->storage_class, name, n) != 0))
                return false;
        if (!resource)
                resource = name;
        if (strcmp(resource, STORAGE) == 0) {
                *ret_quantity = usage->storage;
                return usage->has_storage;
        }
        *ret_quantity = hfd_quantity_of(1);
        return true; /* the claim itself */
}

static struct hfd_quantity get_of_service(const struct hfd_usage *usage, const char *name) {
        if (strcmp(name, "services.nodeports") == 0)
                return hfd_quantity_of(usage->node_ports);
        if (strcmp(name, "services.loadbalancers") == 0)
                return hfd_quantity_of(usage->load_balancers);
        return hfd_quantity_of(1);
}

bool hfd_usage_get(const struct hfd_usage *usage, const char *name,
                   struct hfd_quantity *ret_quantity) {
        if (!hfd_quota_kind_tracks(usage->kind, name))
                return false;
        if (usage->kind == HFD_QUOTA_PODS)
                return get_of_pod(usage, name, ret_quantity);
        if (usage->kind == HFD_QUOTA_CLAIMS)
                return get_of_claim(usage, name, ret_quantity);
        *ret_quantity = get_of_service(usage, name);
        return true;
}

bool hfd_usage_is_negative(const struct hfd_usage *usage, const char *name) {
        const struct hfd_pod_sum *sum = usage->kind == HFD_QUOTA_PODS ? sum_of(usage, name) : NULL;
        struct hfd_quantity ignored;
        size_t n = strlen(name);

        if (usage->kind == HFD_QUOTA_CLAIMS)
                return usage->negative_storage && n >= strlen(STORAGE) &&
                       strcmp(name + n - strlen(STORAGE), STORAGE) == 0 &&
                       get_of_claim(usage, name, &ignored);
        return sum && sum->negative;
}
