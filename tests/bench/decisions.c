/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a decision of RBAC with many bindings, and of building the index that it uses.
 *
 *      decisions [BINDINGS]
 *
 * There are two indexes. In the first, each binding gives one of 100 roles to a user of its own,
 * every second one in a namespace, and the asking user has a few bindings. In the second, all
 * bindings are of the asking user's group, each to a role of its own, so that a denial looks at all
 * of them. For each it prints the time of one decision, median and 99th percentile of single calls,
 * and the floor: two readings of the clock.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "server/rbac/decision.h"

#define N_CALLS 200000
#define N_ROLES 100

static double now_us(void) {
        struct timespec t;

        (void)clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b) {
        double left = *(const double *)a, right = *(const double *)b;

        return (left > right) - (left < right);
}

static void add(struct hfd_rbac_builder *builder, enum hfd_rbac_kind kind, const char *ns,
                const char *name, const char *text) {
        struct hf__json *json = NULL;

        if (hf__json_parse(text, strlen(text), &json, NULL) != 0 ||
            hfd_rbac_builder_add(builder, kind, ns, name, json) != 0)
                exit(1);
        hf__json_free(json);
}

static void add_role(struct hfd_rbac_builder *builder, int i) {
        char name[32], text[512];

        snprintf(name, sizeof name, "role-%d", i);
        snprintf(text, sizeof text,
                 "{\"rules\":[{\"verbs\":[\"get\",\"list\",\"watch\"],\"apiGroups\":[\"\","
                 "\"apps\"],\"resources\":[\"r%d\",\"r%d/status\"]},{\"verbs\":[\"create\","
                 "\"update\"],\"apiGroups\":[\"\"],\"resources\":[\"r%d\"]}]}",
                 i, i, i);
        add(builder, HFD_RBAC_CLUSTER_ROLE, "", name, text);
}

/* ns "" = everywhere. */
static void add_binding(struct hfd_rbac_builder *builder, int i, int role, const char *ns,
                        const char *kind, const char *subject) {
        char name[32], text[512];

        snprintf(name, sizeof name, "binding-%d", i);
        snprintf(text, sizeof text,
                 "{\"roleRef\":{\"kind\":\"ClusterRole\",\"name\":\"role-%d\"},\"subjects\":["
                 "{\"kind\":\"%s\",\"name\":\"%s\"}]}",
                 role, kind, subject);
        add(builder, *ns ? HFD_RBAC_ROLE_BINDING : HFD_RBAC_CLUSTER_ROLE_BINDING, ns, name, text);
}

static struct hfd_rbac_index *make_usual(int n) {
        struct hfd_rbac_builder *builder = hfd_rbac_builder_new();
        char subject[32], ns[32];

        for (int i = 0; i < N_ROLES; i++)
                add_role(builder, i);
        for (int i = 0; i < n; i++) {
                snprintf(subject, sizeof subject, "user-%d", i < 8 ? 0 : i);
                snprintf(ns, sizeof ns, "ns-%d", i % 50);
                add_binding(builder, i, i % N_ROLES, i % 2 ? ns : "", "User", subject);
        }
        return hfd_rbac_builder_finish(builder);
}

static struct hfd_rbac_index *make_worst(int n) {
        struct hfd_rbac_builder *builder = hfd_rbac_builder_new();

        for (int i = 0; i < n; i++) {
                add_role(builder, i);
                add_binding(builder, i, i, "", "Group", "group-0");
        }
        return hfd_rbac_builder_finish(builder);
}

/* index NULL = only the clock. */
static void measure(const char *what, const struct hfd_rbac_index *index, const char *resource) {
        static const char *const groups[] = {"group-0", "group-1", "system:authenticated"};
        static double times[N_CALLS];
        const struct hfd_subject subject = {.name = "user-0", .groups = groups, .n_groups = 3};
        const struct hfd_attributes attributes = {.verb = "update",
                                                  .group = "",
                                                  .resource = resource,
                                                  .subresource = "",
                                                  .ns = "ns-1",
                                                  .name = "x",
                                                  .path = "",
                                                  .is_resource = true};
        bool allowed = false;

        for (size_t i = 0; i < N_CALLS; i++) {
                double began = now_us();
                if (index)
                        allowed = hfd_rbac_allows(index, &subject, &attributes, NULL);
                times[i] = now_us() - began;
        }
        qsort(times, N_CALLS, sizeof times[0], compare);
        printf("%-32s %-8s median %7.2f us  p99 %7.2f us\n", what, allowed ? "allowed" : "",
               times[N_CALLS / 2], times[(size_t)N_CALLS * 99 / 100]);
}

int main(int argc, char **argv) {
        int n = argc > 1 ? atoi(argv[1]) : 1000;
        double began = now_us();
        struct hfd_rbac_index *usual = make_usual(n);
        double built = now_us();
        struct hfd_rbac_index *worst = make_worst(n);

        if (!usual || !worst)
                return 1;
        printf("%d bindings; the index is built in %.1f ms\n", n, (built - began) / 1e3);
        measure("the clock alone", NULL, "");
        measure("usual, allowed", usual, "r1");
        measure("usual, denied", usual, "secrets");
        measure("all bindings of one group, last", worst, "r999");
        measure("all bindings of one group, none", worst, "secrets");
        hfd_rbac_index_unref(usual);
        hfd_rbac_index_unref(worst);
        return 0;
}
