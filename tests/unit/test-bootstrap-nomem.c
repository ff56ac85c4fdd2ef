/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation of the pure parts of bootstrap fails once: a result that reports success is
 * complete, because an incomplete record or hash would be trusted for ever. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/bootstrap.h>
#include <holdfast/health.h>
#include <holdfast/metrics.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "bootstrap/content.h"
#include "bootstrap/ledger.h"
#include "bootstrap/step_body.h"
#include "failing_memory.h"

static const char content[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\",\"labels\":{"
        "\"x\":\"y\"}},\"data\":{\"c\":\"d\",\"b\":[1,{\"e\":null}]}}";

/* Asserts that r reports whether an allocation has failed since `failing_memory_arm`. */
static void assert_honest(int r) {
        failing_memory_disarm();
        if (failing_memory_hit())
                assert_true(is_shortage(r));
        else
                assert_int_equal(r, 0);
}

static struct hf__json *parse(const char *text) {
        struct hf__json *json;
        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

static void config_life(int n) {
        static const char yaml[] =
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n---\n"
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: b}\n";
        static const char json[] = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
                                   "\"name\":\"c\",\"namespace\":\"b\"}}";
        static const struct hf_bootstrap_kind kinds[] = {{"v1", "ConfigMap", "configmaps", true},
                                                         {"rbac.authorization.k8s.io/v1",
                                                          "ClusterRole", "clusterroles", false}};
        const struct hf_bootstrap_manifest manifests[] = {{"a.yaml", yaml, sizeof yaml - 1},
                                                          {"c.json", json, sizeof json - 1}};
        const struct hf_bootstrap_phase phases[] = {{.size = sizeof(struct hf_bootstrap_phase),
                                                     .name = "zero",
                                                     .manifests = manifests,
                                                     .n_manifests = 2},
                                                    {.size = sizeof(struct hf_bootstrap_phase),
                                                     .name = "one"}};
        const struct hf_bootstrap_config config = {.size = sizeof config,
                                                   .version = "1",
                                                   .kinds = kinds,
                                                   .n_kinds = 2,
                                                   .phases = phases,
                                                   .n_phases = 2};
        struct hf_host host = {.size = sizeof host};
        struct hf_bootstrap *bootstrap = NULL;
        struct hf_status status = {0};

        assert_int_equal(hf_health_new(&host.health), 0);
        failing_memory_arm(n);
        int r = hf_bootstrap_new(&host, &config, &bootstrap, &status);
        assert_honest(r);
        assert_true((r == 0) == (bootstrap != NULL));
        assert_true((r == 0) == (status.message[0] == '\0'));
        hf_bootstrap_free(bootstrap);
        hf_health_free(host.health);
}

static void hash_life(int n) {
        struct hf__json *json = parse(content);
        hf__hash hash;

        failing_memory_arm(n);
        assert_honest(hf__content_hash(json, hash));
        hf__json_free(json);
}

static void inspect_life(int n) {
        struct hf__content_seen seen;

        failing_memory_arm(n);
        assert_honest(hf__content_inspect(content, sizeof content - 1, &seen));
}

static const struct hf__step step = {.content = (char *)content,
                                     .n_content = sizeof content - 1,
                                     .hash = "0123456789abcdef0123456789abcdef"};

static void body_life(int n) {
        struct hf__strbuf body = {0};

        failing_memory_arm(n);
        assert_honest(hf__step_body_new(&step, &body));
        hf__strbuf_done(&body);
}

static void replacement_life(int n) {
        struct hf__strbuf body = {0};

        failing_memory_arm(n);
        assert_honest(hf__step_body_replacement(&step, content, sizeof content - 1, &body));
        hf__strbuf_done(&body);
}

static struct hf__ledger_entry entry_of(const char *name) {
        return (struct hf__ledger_entry){.step = (char *)name,
                                         .phase = "zero",
                                         .version = "1",
                                         .hash = "0123456789abcdef0123456789abcdef"};
}

static void ledger_life(int n) {
        const char *const phases[] = {"zero"};
        struct hf__ledger_entry a = entry_of("a"), b = entry_of("b");
        struct hf__ledger ledger = {0}, back = {0};
        struct hf_status status = {0};
        struct hf__strbuf text = {0};
        struct hf__json *json = NULL;

        failing_memory_arm(n);
        int r = hf__ledger_add(&ledger, &a);
        r = r != 0 ? r : hf__ledger_add(&ledger, &b);
        r = r != 0 ? r : hf__ledger_complete(&ledger, "zero", "1", "now");
        r = r != 0 ? r : hf__ledger_write(&ledger, NULL, "n", "l", &text);
        r = r != 0 ? r : hf__json_parse(text.data, text.n, &json, NULL);
        r = r != 0 ? r : hf__ledger_read(json, phases, 1, &back, &status);
        assert_honest(r);
        assert_true(!json || (r == 0) == (status.message[0] == '\0'));
        assert_true(r != 0 || (back.n_entries == 2 && back.n_completed == 1));
        hf__json_free(json);
        hf__strbuf_done(&text);
        hf__ledger_done(&ledger);
        hf__ledger_done(&back);
}

static void manifests_life(int n) {
        static const char yaml[] =
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n---\n"
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: b, annotations: "
                "{x: y}}\n";
        static const struct hf_bootstrap_kind kinds[] = {{"v1", "ConfigMap", "configmaps", true}};
        const struct hf_bootstrap_manifest manifest = {"a.yaml", yaml, sizeof yaml - 1};
        const struct hf_bootstrap_phase phases[] = {{.size = sizeof(struct hf_bootstrap_phase),
                                                     .name = "zero",
                                                     .manifests = &manifest,
                                                     .n_manifests = 1},
                                                    {.size = sizeof(struct hf_bootstrap_phase),
                                                     .name = "one"}};
        const struct hf_bootstrap_config config = {.size = sizeof config,
                                                   .version = "1",
                                                   .kinds = kinds,
                                                   .n_kinds = 1,
                                                   .phases = phases,
                                                   .n_phases = 2};
        const struct hf_host host = {.size = sizeof host};
        struct hf_bootstrap *bootstrap = NULL;
        struct hf_status status = {0};

        failing_memory_arm(n);
        int r = hf_bootstrap_new(&host, &config, &bootstrap, &status);
        failing_memory_disarm();
        assert_true(r == 0 || is_shortage(r));
        assert_true((r == 0) == (bootstrap != NULL));
        assert_true(r == 0 || status.message[0]);
        hf_bootstrap_free(bootstrap);
}

static void ledger_and_body_life(int n) {
        struct hf__ledger_entry entry = entry_of("a");
        const char *const phases[] = {"zero"};
        struct hf__ledger ledger = {0}, back = {0};
        struct hf__strbuf text = {0}, body = {0};
        struct hf__content_seen seen;
        struct hf__json *json = NULL;

        failing_memory_arm(n);
        int r = hf__ledger_add(&ledger, &entry);
        r = r != 0 ? r : hf__ledger_complete(&ledger, "zero", "1", "now");
        r = r != 0 ? r : hf__ledger_write(&ledger, NULL, "n", "l", &text);
        r = r != 0 ? r : hf__json_parse(text.data, text.n, &json, NULL);
        r = r != 0 ? r : hf__ledger_read(json, phases, 1, &back, NULL);
        r = r != 0 ? r : hf__content_inspect(content, sizeof content - 1, &seen);
        r = r != 0 ? r : hf__step_body_replacement(&step, content, sizeof content - 1, &body);
        failing_memory_disarm();
        assert_true(r == 0 || is_shortage(r));
        assert_true(r != 0 || (back.n_entries == 1 && back.n_completed == 1));
        hf__json_free(json);
        hf__strbuf_done(&text);
        hf__strbuf_done(&body);
        hf__ledger_done(&ledger);
        hf__ledger_done(&back);
}

static void test_a_configuration_is_read_whole_or_refused(void **state) {
        failing_memory_try_all(config_life, 20);
}
static void test_hashes_and_bodies_are_whole_or_refused(void **state) {
        failing_memory_try_all(hash_life, 0);
        failing_memory_try_all(inspect_life, 0);
        failing_memory_try_all(body_life, 0);
        failing_memory_try_all(replacement_life, 0);
}
static void test_a_ledger_is_written_and_read_whole_or_refused(void **state) {
        failing_memory_try_all(ledger_life, 5);
}

static void test_a_bootstrap_is_read_whole_or_not_at_all(void **state) {
        failing_memory_try_all(manifests_life, 20);
        failing_memory_try_all(ledger_and_body_life, 5);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_configuration_is_read_whole_or_refused),
                cmocka_unit_test(test_hashes_and_bodies_are_whole_or_refused),
                cmocka_unit_test(test_a_ledger_is_written_and_read_whole_or_refused),
                cmocka_unit_test(test_a_bootstrap_is_read_whole_or_not_at_all),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
