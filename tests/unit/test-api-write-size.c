/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of whole writes grows as their input does: objects with many keys, labels, finalizers,
 * owners and so on are created, updated and patched, each as a dry run. Each input is doubled
 * several times; a doubled input may take 2.5 times the processor time at most.
 */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "api_fixture.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/controllers/roles/role_aggregation.h"
#include "server/resources/causes.h"
#include "server/resources/custom/schema/compile/effort.h"
#include "server/resources/custom/schema/structural.h"
#include "server/resources/rows/resource_table.h"
#include "server/resources/strategies/strategies.h"
#include "server/resources/workloads/workloads.h"

#define DOUBLINGS 5
#define REPEATS   2 /* the faster one counts */
#define RATIO_MAX 2.5
/* The smallest input fits into the processor's caches and the largest does not. Quadratic work
 * exceeds the bound all the same: it costs 1,024 times as much after five doublings. */
#define CACHES 4

static const struct hf_resource secrets = {"", "v1", "secrets"};

/* A part of an object with n elements. */
struct part {
        const char *name;
        const struct hf_resource *resource;
        const char *open;           /* from the name to the part */
        const char *before, *after; /* each element, around its number */
        const char *close;
        int result;
};

static char *make_body(const struct part *part, const char *name, size_t n, bool reversed) {
        struct hf__strbuf s = {0};

        hf__strbuf_printf(&s, "{\"metadata\":{\"name\":\"%s\"", name);
        hf__strbuf_puts(&s, part->open);
        for (size_t i = 0; i < n; i++)
                hf__strbuf_printf(&s, "%s%s%zu%s", i ? "," : "", part->before,
                                  reversed ? n - 1 - i : i, part->after);
        hf__strbuf_puts(&s, part->close);
        hf__strbuf_puts(&s, "}");
        assert_int_equal(s.error, 0);
        char *body = strdup(s.data);
        hf__strbuf_done(&s);
        return body;
}

static double cpu_now(void) {
        struct timespec t;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void expect_result(struct api_fixture *f, const struct part *part, const char *what, int r) {
        if (r != part->result)
                fail_msg("%s, %s: %d, %s", part->name, what, r, f->last.status.message);
}

/* Fails if the cost has grown too much over DOUBLINGS doublings of the input. */
static void judge(const char *name, size_t n, double first, double last) {
        double bound = CACHES;

        for (int k = 0; k < DOUBLINGS; k++)
                bound *= RATIO_MAX;
        print_message("%-16s n=%zu: %.1f ms; n=%zu: %.1f ms\n", name, n, first * 1e3,
                      n << DOUBLINGS, last * 1e3);
        if (last > bound * first)
                fail_msg("%s: %d doublings cost %.1f times the time, not %.1f", name, DOUBLINGS,
                         last / first, bound);
}

/* Creates, updates and patches as dry runs. Returns the processor seconds of the faster run. */
static double measure(struct api_fixture *f, const struct part *part, size_t n) {
        char *body = make_body(part, "x", n, false), *reversed = make_body(part, "x", n, true);
        char *new = make_body(part, "y", n, false);
        const char *dry = "dryRun=All&fieldValidation=Strict";
        double fastest = 1e9;

        assert_true(strlen(body) < (size_t)3 << 20);
        for (int i = 0; i < REPEATS; i++) {
                double began = cpu_now();
                expect_result(f, part, "create",
                              api_fixture_request(f, HF_VERB_CREATE, *part->resource, "default",
                                                  NULL, dry, new));
                expect_result(f, part, "update",
                              api_fixture_request(f, HF_VERB_UPDATE, *part->resource, "default",
                                                  "x", dry, reversed));
                if (part->result == 0)
                        expect_result(f, part, "patch",
                                      api_fixture_patch(f, *part->resource, "default", "x",
                                                        HFD_SUB_NONE, HFD_PATCH_STRATEGIC, dry,
                                                        body));
                double spent = cpu_now() - began;
                if (spent < fastest)
                        fastest = spent;
        }
        free(body);
        free(reversed);
        free(new);
        return fastest;
}

static void test_work_grows_as_the_input_does(void **state) {
        struct api_fixture *f = *state;
        static const struct part parts[] = {
                {"data", &api_configmaps, "},\"data\":{", "\"k", "\":\"\"", "}", 0},
                {"stringData", &secrets, "},\"data\":{\"a\":\"\"},\"stringData\":{", "\"k",
                 "\":\"\"", "}", 0},
                {"labels", &api_configmaps, ",\"labels\":{", "\"k", "\":\"v\"", "}}", 0},
                {"finalizers", &api_configmaps, ",\"finalizers\":[", "\"a.b/k", "\"", "]}", 0},
                {"ownerReferences", &api_configmaps, ",\"ownerReferences\":[",
                 "{\"apiVersion\":\"v1\",\"kind\":\"A\",\"name\":\"a\",\"uid\":\"", "\"}", "]}", 0},
                {"controllers", &api_configmaps, ",\"ownerReferences\":[",
                 "{\"apiVersion\":\"v1\",\"kind\":\"A\",\"name\":\"a\",\"controller\":true,\"uid\":"
                 "\"",
                 "\"}", "]}", HF_E_INVALID},
                {"managedFields", &api_configmaps, ",\"managedFields\":[", "{\"manager\":\"m",
                 "\"}", "]}", 0},
                {"duplicate keys", &api_configmaps, "},\"data\":{", "\"k", "\":\"\",\"same\":\"\"",
                 "}", HF_E_INVALID},
                {"invalid labels", &api_configmaps, ",\"labels\":{", "\"-", "\":\"\"", "}}",
                 HF_E_INVALID},
        };

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_configmaps, "default", NULL,
                                             NULL, "{\"metadata\":{\"name\":\"x\"}}"),
                         0);
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, secrets, "default", NULL, NULL,
                                             "{\"metadata\":{\"name\":\"x\"}}"),
                         0);
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
                /* As large as a body may be: 3 MiB. */
                size_t n_element = strlen(parts[i].before) + strlen(parts[i].after) + 8;
                size_t n = ((size_t)3 << 20) / n_element >> DOUBLINGS;
                double first = measure(f, &parts[i], n);
                judge(parts[i].name, n, first, measure(f, &parts[i], n << DOUBLINGS));
        }
}

/* ---- single rules ---- */

static void check_conditions(const struct hf__json *json) {
        static struct hfd_causes causes;

        hfd_causes_init(&causes);
        hfd_flow_validate_status(json, NULL, &causes);
        assert_int_equal(causes.n, 0);
}

static void check_keys(const struct hf__json *json) {
        static struct hfd_causes causes;
        struct hfd_schema_effort effort = {0};

        hfd_causes_init(&causes);
        hfd_structural_validate(json, "s", &effort, &causes);
        assert_int_equal(causes.n, HFD_CAUSES_MAX);
}

/* json: a pod. */
static void check_pod(const struct hf__json *json) {
        static struct hfd_causes causes;

        hfd_causes_init(&causes);
        hfd_pod_validate(json, NULL, &causes);
        assert_int_equal(causes.error, 0);
}

/* json: a pod with labels, which become terms of a spread constraint. */
static void merge_labels(const struct hf__json *json) {
        static const char text[] =
                "{\"spec\":{\"topologySpreadConstraints\":[{\"labelSelector\":{},"
                "\"matchLabelKeys\":[]}]}}";
        struct hf__json *pod, *constraint;

        assert_int_equal(hf__json_parse(text, sizeof text - 1, &pod, NULL), 0);
        assert_int_equal(hf__json_put(pod, "metadata",
                                      hf__json_dup(hf__json_get(json, "metadata"))),
                         0);
        constraint = hf__json_first(hf__json_path(pod, "spec.topologySpreadConstraints"));
        for (const struct hf__json *m = hf__json_first(hf__json_path(json, "metadata.labels")); m;
             m = hf__json_next(m))
                assert_int_equal(hf__json_append_string(hf__json_get(constraint, "matchLabelKeys"),
                                                        hf__json_key(m)),
                                 0);
        assert_int_equal(hfd_pod_complete(pod), 0);
        assert_int_equal(hf__json_count(hf__json_path(constraint, "labelSelector."
                                                                  "matchExpressions")),
                         hf__json_count(hf__json_path(json, "metadata.labels")));
        check_pod(pod);
        hf__json_free(pod);
}

/* json: a pod with a key that a list has many times. The pod has it as a label, and the selector
 * has as many terms of it, as if a client had written them. */
static void check_repeated_keys(const struct hf__json *json) {
        struct hf__json *pod = hf__json_dup(json), *keys, *terms;
        struct hf__json *constraint =
                hf__json_first(hf__json_path(pod, "spec.topologySpreadConstraints"));

        assert_int_equal(hf__json_set_string(pod, "metadata.labels.k", "v"), 0);
        terms = hf__json_path(constraint, "labelSelector.matchExpressions");
        keys = hf__json_get(constraint, "matchLabelKeys");
        assert_int_equal(hfd_pod_complete(pod), 0);
        assert_int_equal(hf__json_count(terms), 2);
        for (size_t n = hf__json_count(keys); n > 0; n--) {
                struct hf__json *term = hf__json_object();
                assert_int_equal(hf__json_add_string(term, "key", "k"), 0);
                assert_int_equal(hf__json_append(terms, term), 0);
        }
        check_pod(pod);
        hf__json_free(pod);
}

static void aggregate(const struct hf__json *json) {
        const char text[] = "{\"aggregationRule\":{\"clusterRoleSelectors\":[{}]}}";
        struct hf__json *role, *rules;

        assert_int_equal(hf__json_parse(text, sizeof text - 1, &role, NULL), 0);
        assert_int_equal(hfd_role_aggregation_rules(role, json, &rules), 0);
        assert_int_equal(hf__json_count(rules),
                         hf__json_count(hf__json_get(hf__json_first(json), "rules")));
        hf__json_free(rules);
        hf__json_free(role);
}

/* One rule of validation, and how an object with n elements is written for it. */
struct rule {
        const char *name;
        void (*check)(const struct hf__json *json);
        const char *open, *before, *after, *close;
};

static double measure_rule(const struct rule *rule, size_t n) {
        struct hf__strbuf s = {0};
        struct hf__json *json;
        double fastest = 1e9;

        hf__strbuf_puts(&s, rule->open);
        for (size_t i = 0; i < n; i++)
                hf__strbuf_printf(&s, "%s%s%zu%s", i ? "," : "", rule->before, i, rule->after);
        hf__strbuf_puts(&s, rule->close);
        assert_int_equal(s.error, 0);
        assert_int_equal(hf__json_parse(s.data, s.n, &json, NULL), 0);
        for (int i = 0; i < REPEATS; i++) {
                double began = cpu_now();
                rule->check(json);
                double spent = cpu_now() - began;
                if (spent < fastest)
                        fastest = spent;
        }
        hf__json_free(json);
        hf__strbuf_done(&s);
        return fastest;
}

static void test_rules_grow_as_their_lists_do(void **state) {
        static const struct rule rules[] = {
                {"conditions", check_conditions, "{\"status\":{\"conditions\":[", "{\"type\":\"t",
                 "\"}", "]}}"},
                {"keys of lists", check_keys,
                 "{\"type\":\"object\",\"properties\":{\"l\":{\"type\":\"array\",\"items\":{"
                 "\"type\":"
                 "\"object\",\"properties\":{}},\"x-kubernetes-list-type\":\"map\","
                 "\"x-kubernetes-list-map-keys\":[",
                 "\"k", "\"", "]}}}"},
                {"spread", check_pod, "{\"spec\":{\"topologySpreadConstraints\":[",
                 "{\"topologyKey\":\"k\",\"whenUnsatisfiable\":\"x\",\"maxSkew\":", "}", "]}}"},
                {"gates", check_pod, "{\"spec\":{\"schedulingGates\":[", "{\"name\":\"g", "\"}",
                 "]}}"},
                {"label keys", merge_labels, "{\"metadata\":{\"labels\":{", "\"k", "\":\"v\"",
                 "}}}"},
                {"repeated keys", check_repeated_keys,
                 "{\"spec\":{\"topologySpreadConstraints\":[{\"matchLabelKeys\":[", "\"k\",\"a",
                 "\"", "],\"labelSelector\":{\"matchExpressions\":[]}}]}}"},
                {"devices", check_pod, "{\"spec\":{\"resourceClaims\":[", "{\"name\":\"c", "\"}",
                 "]}}"},
                {"uses of devices", check_pod,
                 "{\"spec\":{\"resourceClaims\":[{\"name\":\"c\"}],\"containers\":[{\"resources\":{"
                 "\"claims\":[",
                 "{\"name\":\"c\",\"request\":\"", "\"}", "]}}]}}"},
                {"capabilities", check_pod,
                 "{\"spec\":{\"containers\":[{\"securityContext\":{\"allowPrivilegeEscalation\":"
                 "false,\"capabilities\":{\"add\":[",
                 "\"CAP_SYS_ADMIN\",\"", "\"", "]}}}]}}"},
                {"block devices", check_pod, "{\"spec\":{\"containers\":[{\"volumeDevices\":[",
                 "{\"name\":\"v\",\"devicePath\":\"/", "\"}", "]}]}}"},
                {"aggregated rules", aggregate, "[{\"metadata\":{\"name\":\"a\"},\"rules\":[",
                 "{\"verbs\":[\"v", "\"]}", "]}]"},
        };

        (void)state;
        for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
                double first = measure_rule(&rules[i], 1000);
                judge(rules[i].name, 1000, first, measure_rule(&rules[i], 1000 << DOUBLINGS));
        }
}

/* ---- the overhead of a pod ---- */

static const struct hf_resource pods = {"", "v1", "pods"},
                                classes = {"node.k8s.io", "v1", "runtimeclasses"},
                                accounts = {"", "v1", "serviceaccounts"};

static void put_amounts(struct hf__strbuf *s, size_t n, const char *amount) {
        for (size_t i = 0; i < n; i++)
                hf__strbuf_printf(s, "%s\"example.com/r%zu\":\"%s\"", i ? "," : "", i, amount);
}

/* The pod has the same amounts as its class, in another notation. */
static double measure_overhead(struct api_fixture *f, size_t n) {
        struct hf__strbuf class = {0}, pod = {0};
        double fastest = 1e9;

        hf__strbuf_printf(&class,
                          "{\"metadata\":{\"name\":\"c%zu\"},\"handler\":\"h\",\"overhead\":{"
                          "\"podFixed\":{",
                          n);
        put_amounts(&class, n, "1");
        hf__strbuf_puts(&class, "}}}");
        api_fixture_make(f, classes, NULL, class.data);
        hf__strbuf_printf(&pod,
                          "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"runtimeClassName\":\"c%zu\","
                          "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}],\"overhead\":{",
                          n);
        put_amounts(&pod, n, "1000m");
        hf__strbuf_puts(&pod, "}}}");
        for (int i = 0; i < REPEATS; i++) {
                double began = cpu_now();
                int r = api_fixture_request(f, HF_VERB_CREATE, pods, "default", NULL, "dryRun=All",
                                            pod.data);
                if (r != 0)
                        fail_msg("%d: %s", r, f->last.status.message);
                double spent = cpu_now() - began;
                if (spent < fastest)
                        fastest = spent;
        }
        hf__strbuf_done(&class);
        hf__strbuf_done(&pod);
        return fastest;
}

static void test_the_overhead_of_a_pod_is_compared_in_linear_time(void **state) {
        struct api_fixture *f = *state;

        api_fixture_make(f, accounts, "default", "{\"metadata\":{\"name\":\"default\"}}");
        double first = measure_overhead(f, 500);
        judge("overhead", 500, first, measure_overhead(f, 500 << DOUBLINGS));
}

int main(void) {
        hfd_resources_add_workloads();
        const struct CMUnitTest tests[] = {
                API_TEST(test_work_grows_as_the_input_does),
                cmocka_unit_test(test_rules_grow_as_their_lists_do),
                API_TEST(test_the_overhead_of_a_pod_is_compared_in_linear_time),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
