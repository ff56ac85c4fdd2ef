/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums up the requests or the limits of a pod. Its containers and sidecars run at the same time,
 * its other init containers one after another before them. So the pod needs the sum of the former,
 * or the most that one of the latter needs, whichever is more. Sidecars are the init containers
 * that are always restarted: each also runs beside the init containers after it.
 *
 * Invariant: the work is in proportion to n log n. The names are collected and sorted first, so a
 * sum is found by a binary search.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/time_format.h"
#include "server/quota/usage.h"

#define HUGE_PAGES "hugepages-"

static bool is_sidecar(const struct hf__json *container) {
        return hf__json_has_text(container, "restartPolicy", "Always");
}

/* Whether a pod itself, and not only its containers, may ask for the resource. */
static bool is_own_resource(const char *name) {
        return strcmp(name, "cpu") == 0 || strcmp(name, "memory") == 0 ||
               strncmp(name, HUGE_PAGES, strlen(HUGE_PAGES)) == 0;
}

static bool has_own(const struct hf__json *map) {
        for (const struct hf__json *m = hf__json_first(map); m; m = hf__json_next(m))
                if (is_own_resource(hf__json_key(m)))
                        return true;
        return false;
}

bool hfd_pod_has_own_resources(const struct hf__json *spec) {
        return has_own(hf__json_path(spec, "resources.requests")) ||
               has_own(hf__json_path(spec, "resources.limits"));
}

/* ---- the names ---- */

static const struct hf__json *map_of(const struct hf__json *container, const char *which) {
        return hf__json_get(hf__json_get(container, "resources"), which);
}

/* Adds the names of a map to sums, or only counts them if sums has no memory yet. */
static void add_names(struct hfd_pod_sums *sums, const struct hf__json *map) {
        for (const struct hf__json *m = hf__json_first(map); m; m = hf__json_next(m)) {
                if (sums->of)
                        sums->of[sums->n] = (struct hfd_pod_sum){.name = hf__json_key(m)};
                sums->n++;
        }
}

static void collect_names(struct hfd_pod_sums *sums, const struct hfd_pod_parts *parts,
                          const char *which) {
        const struct hf__json *const lists[] = {parts->containers, parts->init_containers};

        sums->n = 0;
        for (size_t i = 0; i < 2; i++)
                for (const struct hf__json *m = hf__json_first(lists[i]); m; m = hf__json_next(m))
                        add_names(sums, map_of(m, which));
        add_names(sums, map_of(parts->itself, which));
        add_names(sums, parts->overhead);
}

static int compare_sums(const void *a, const void *b) {
        return strcmp(((const struct hfd_pod_sum *)a)->name, ((const struct hfd_pod_sum *)b)->name);
}

static void drop_repeated(struct hfd_pod_sums *sums) {
        size_t n = 0;

        for (size_t i = 0; i < sums->n; i++)
                if (n == 0 || strcmp(sums->of[n - 1].name, sums->of[i].name) != 0)
                        sums->of[n++] = sums->of[i];
        sums->n = n;
}

static struct hfd_pod_sum *find_sum(const struct hfd_pod_sums *sums, const char *name) {
        const struct hfd_pod_sum key = {.name = name};

        return sums->n > 0 ? bsearch(&key, sums->of, sums->n, sizeof *sums->of, compare_sums)
                           : NULL;
}

const struct hfd_pod_sum *hfd_pod_sums_find(const struct hfd_pod_sums *sums, const char *name) {
        const struct hfd_pod_sum *sum = find_sum(sums, name);

        return sum && sum->present ? sum : NULL;
}

/* ---- the sums ---- */

/* Finds the sum that a member belongs to, and reads its value. A negative value counts as zero.
 * NULL: it is no quantity. */
static struct hfd_pod_sum *read_member(struct hfd_pod_sums *sums, const struct hf__json *m,
                                       struct hfd_quantity *ret_value) {
        const char *text = hf__json_text(m);
        struct hfd_pod_sum *sum = find_sum(sums, hf__json_key(m));

        if (!sum || !text || hfd_quantity_parse(text, ret_value) != NULL)
                return NULL;
        sum->present = true;
        sum->negative = sum->negative || ret_value->negative;
        if (ret_value->negative)
                *ret_value = hfd_quantity_of(0);
        return sum;
}

static void raise_to(struct hfd_quantity *at_least, const struct hfd_quantity *value) {
        if (hfd_quantity_compare(value, at_least) > 0)
                *at_least = *value;
}

static void add_container(struct hfd_pod_sums *sums, const struct hf__json *map) {
        struct hfd_quantity value;

        for (const struct hf__json *m = hf__json_first(map); m; m = hf__json_next(m)) {
                struct hfd_pod_sum *sum = read_member(sums, m, &value);
                if (sum)
                        hfd_quantity_add(&sum->total, &value);
        }
}

/* Adds an init container. A sidecar runs from now on. Any other one runs beside the sidecars that
 * came before it, and ends before the next one begins. */
static void add_init_container(struct hfd_pod_sums *sums, const struct hf__json *map,
                               bool sidecar) {
        struct hfd_quantity value;

        for (const struct hf__json *m = hf__json_first(map); m; m = hf__json_next(m)) {
                struct hfd_pod_sum *sum = read_member(sums, m, &value);
                if (!sum)
                        continue;
                if (sidecar) {
                        hfd_quantity_add(&sum->total, &value);
                        hfd_quantity_add(&sum->sidecars, &value);
                        value = sum->sidecars;
                } else {
                        hfd_quantity_add(&value, &sum->sidecars);
                }
                raise_to(&sum->init, &value);
        }
}

static void replace_by_own(struct hfd_pod_sums *sums, const struct hf__json *map) {
        struct hfd_quantity value;

        for (const struct hf__json *m = hf__json_first(map); m; m = hf__json_next(m)) {
                struct hfd_pod_sum *sum =
                        is_own_resource(hf__json_key(m)) ? read_member(sums, m, &value) : NULL;
                if (sum)
                        sum->total = value;
        }
}

/* only_limited: the overhead is added only to resources whose limit so far is not zero. */
static void add_overhead(struct hfd_pod_sums *sums, const struct hf__json *map, bool only_limited) {
        struct hfd_quantity value;

        for (const struct hf__json *m = hf__json_first(map); m; m = hf__json_next(m)) {
                struct hfd_pod_sum *sum = find_sum(sums, hf__json_key(m));
                bool limited = sum && sum->present && !hfd_quantity_is_zero(&sum->total);
                if (sum && (limited || !only_limited) && read_member(sums, m, &value))
                        hfd_quantity_add(&sum->total, &value);
        }
}

/* Sums up the parts. The names of their resources are already in `sums`. */
static void add_parts(struct hfd_pod_sums *sums, const struct hfd_pod_parts *parts,
                      const char *which) {
        for (const struct hf__json *m = hf__json_first(parts->containers); m; m = hf__json_next(m))
                add_container(sums, map_of(m, which));
        for (const struct hf__json *m = hf__json_first(parts->init_containers); m;
             m = hf__json_next(m))
                add_init_container(sums, map_of(m, which), is_sidecar(m));
        for (size_t i = 0; i < sums->n; i++)
                raise_to(&sums->of[i].total, &sums->of[i].init);
        if (parts->containers)
                replace_by_own(sums, map_of(parts->itself, which));
        else
                add_container(sums, map_of(parts->itself, which));
        add_overhead(sums, parts->overhead, strcmp(which, "limits") == 0);
}

int hfd_pod_sums_of(struct hfd_pod_sums *sums, const struct hfd_pod_parts *parts,
                    const char *which) {
        *sums = (struct hfd_pod_sums){0};
        collect_names(sums, parts, which);
        if (sums->n == 0)
                return 0;
        sums->of = calloc(sums->n, sizeof *sums->of);
        if (!sums->of) {
                sums->n = 0;
                return -ENOMEM;
        }
        collect_names(sums, parts, which);
        qsort(sums->of, sums->n, sizeof *sums->of, compare_sums);
        drop_repeated(sums);
        add_parts(sums, parts, which);
        return 0;
}

int hfd_pod_sums_init(struct hfd_pod_sums *sums, const struct hf__json *spec, const char *which) {
        const struct hfd_pod_parts parts = {.containers = hf__json_get(spec, "containers"),
                                            .init_containers = hf__json_get(spec, "initContainers"),
                                            .itself = spec,
                                            .overhead = hf__json_get(spec, "overhead")};

        return hfd_pod_sums_of(sums, &parts, which);
}

void hfd_pod_sums_done(struct hfd_pod_sums *sums) {
        free(sums->of);
        *sums = (struct hfd_pod_sums){0};
}

/* ---- the end of a pod ---- */

bool hfd_pod_has_ended(const struct hf__json *pod, int64_t now_s) {
        const char *phase = hf__json_string(pod, "status.phase"),
                   *deleted = hf__json_string(pod, "metadata.deletionTimestamp");
        int64_t at, grace;

        if (phase && (strcmp(phase, "Failed") == 0 || strcmp(phase, "Succeeded") == 0))
                return true;
        return deleted && hf__time_parse(deleted, &at) == 0 &&
               hf__json_i64(pod, "metadata.deletionGracePeriodSeconds", &grace) &&
               now_s - at > grace;
}
