/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The QoS class of a pod. A node that runs out of memory stops pods in the order of their classes.
 * A pod is Guaranteed if all its containers have limits of cpu and memory, and its requests of both
 * equal the limits; BestEffort if it has neither requests nor limits of them; and else Burstable.
 *
 * Invariant: the result is that of kube-apiserver. Ephemeral containers do not count, and the
 * amounts of spec.resources count in place of those of the containers.
 */
#include <stdbool.h>

#include "base/json.h"
#include "server/resources/workloads/workloads.h"
#include "server/schema/values/quantity.h"

enum { CPU, MEMORY, N_NAMES };

static const char *const names[N_NAMES] = {"cpu", "memory"};

/* The sum of the requests, or of the limits, of all containers. */
struct sums {
        struct hfd_quantity of[N_NAMES];
};

/* Adds the amounts of cpu and memory in a map (requests or limits). Returns how many of the two
 * the map has; an amount that is 0 or negative counts as absent. */
static size_t add_amounts(struct sums *sums, const struct hf__json *amounts) {
        size_t n = 0;

        for (size_t i = 0; i < N_NAMES; i++) {
                const char *text = hf__json_text(hf__json_get(amounts, names[i]));
                struct hfd_quantity amount;
                if (!text || hfd_quantity_parse(text, &amount) || amount.negative ||
                    hfd_quantity_is_zero(&amount))
                        continue;
                hfd_quantity_add(&sums->of[i], &amount);
                n++;
        }
        return n;
}

static bool is_empty(const struct sums *sums) {
        return hfd_quantity_is_zero(&sums->of[CPU]) && hfd_quantity_is_zero(&sums->of[MEMORY]);
}

static bool are_equal(const struct sums *a, const struct sums *b) {
        return hfd_quantity_compare(&a->of[CPU], &b->of[CPU]) == 0 &&
               hfd_quantity_compare(&a->of[MEMORY], &b->of[MEMORY]) == 0;
}

const char *hfd_pod_qos_class(const struct hf__json *spec) {
        static const char *const lists[] = {"containers", "initContainers"};
        const struct hf__json *of_pod = hf__json_get(spec, "resources");
        struct sums requests = {0}, limits = {0};
        bool all_limited = true; /* each map of limits has both names */

        if (of_pod) {
                /* Without any limits, all_limited does not matter: the requests are zero as well
                 * (BestEffort), or differ from the limits (Burstable). */
                const struct hf__json *limit = hf__json_get(of_pod, "limits");
                (void)add_amounts(&requests, hf__json_get(of_pod, "requests"));
                all_limited = add_amounts(&limits, limit) == N_NAMES || !hf__json_first(limit);
        }
        for (size_t i = 0; i < 2 && !of_pod; i++)
                for (const struct hf__json *m = hf__json_first(hf__json_get(spec, lists[i])); m;
                     m = hf__json_next(m)) {
                        (void)add_amounts(&requests, hf__json_path(m, "resources.requests"));
                        if (add_amounts(&limits, hf__json_path(m, "resources.limits")) < N_NAMES)
                                all_limited = false;
                }
        if (is_empty(&requests) && is_empty(&limits))
                return "BestEffort";
        return all_limited && are_equal(&requests, &limits) ? "Guaranteed" : "Burstable";
}
