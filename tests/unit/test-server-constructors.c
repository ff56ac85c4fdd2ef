/* SPDX-License-Identifier: Apache-2.0 */
/* Constructors of the server that fail at each of their steps. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <holdfast/metrics.h>

#include "base/json.h"
#include "base/json_blocks.h"
#include "failing_constructor.h"
#include "failing_memory.h"
#include "server/admission/policy/compiled_policy.h"
#include "server/audit/audit.h"
#include "server/audit/record.h"
#include "server/auth/auth.h"
#include "server/auth/pki/pki.h"
#include "server/auth/pki/pki_cert.h"
#include "server/auth/write_file.h"
#include "server/cacher/cacher.h"
#include "server/config/config.h"
#include "server/controllers/api_services/api_service_core.h"
#include "server/controllers/kinds/kind_set.h"
#include "server/encryption/cipher.h"
#include "server/filters/filters.h"
#include "server/flow/flow_control.h"
#include "server/handlers/process_metrics.h"
#include "server/http/router.h"
#include "server/jwt/jwt.h"
#include "server/jwt/key.h"
#include "server/oidc/oidc.h"
#include "server/outbound/outbound.h"
#include "server/pool/work_pool.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/objects/object.h"
#include "server/resources/rows/resource_table.h"
#include "server/resources/selection/selector.h"
#include "server/resources/strategies/flow/flow_objects.h"
#include "server/resources/zones/zone.h"
#include "server/server.h"
#include "server/service_accounts/service_accounts.h"
#include "server/status/collector.h"
#include "server/storage/memory/store.h"

static struct hf_host host = {.size = sizeof host};
static char directory[64], tokens_path[128], policy_path[128], log_path[128], config_path[128];
/* What constructors refer to. */
static struct hfd_store *store;
static struct hfd_cacher *cacher;
static struct hfd_router *router;
static struct hfd_auth *no_tokens;

/* ---- the constructors ---- */

static int make_flow(void) {
        struct hfd_flow_control *flow = NULL;
        int r = hfd_flow_control_new(&host, 10, &flow);

        hfd_flow_control_free(flow);
        return r;
}

static int make_pool(void) {
        struct hfd_work_pool *pool = NULL;
        int r = hfd_work_pool_new(&host, 2, 0, &pool);

        hfd_work_pool_free(pool);
        return r;
}

static int make_oidc(void) {
        const struct hfd_oidc_config config = {.rules = {.issuer = "https://issuer.example"},
                                               .ca_pem = "x"};
        struct hfd_outbound *outbound = NULL;
        struct hfd_oidc *oidc = NULL;
        int r = hfd_outbound_new(&host, NULL, &outbound);

        if (r == 0)
                r = hfd_oidc_new(&host, outbound, &config, &oidc);
        hfd_oidc_free(oidc);
        hfd_outbound_free(outbound);
        return r;
}

static int make_accounts(void) {
        static const char *const issuers[] = {"https://issuer.example", NULL}, *const none[] = {
                                                                                       NULL};
        const struct hfd_service_accounts_config config = {.cacher = cacher,
                                                           .issuers = issuers,
                                                           .audiences = none};
        struct hfd_service_accounts *accounts = NULL;
        int r = hfd_service_accounts_new(&host, &config, &accounts);

        hfd_service_accounts_free(accounts);
        return r;
}

static int make_auth(void) {
        struct hf_status status = {0};
        struct hfd_auth *auth = NULL;
        int r = hfd_auth_new(&host, tokens_path, &auth, &status);

        hfd_auth_free(auth);
        return r;
}

static int make_audit(void) {
        const struct hfd_audit_config config = {.policy_file = policy_path,
                                                .log = {.path = log_path}};
        struct hf_status status = {0};
        struct hfd_audit *audit = NULL;
        int r = hfd_audit_new(&host, &config, &audit, &status);

        hfd_audit_free(audit);
        return r;
}

static int make_record(void) {
        static const struct hfd_attributes attributes = {.verb = "get",
                                                         .group = "",
                                                         .resource = "pods",
                                                         .subresource = "",
                                                         .ns = "",
                                                         .name = "",
                                                         .is_resource = true};
        static const struct hfd_user user = {.name = "ann"};
        static struct hfd_audit_budget budget = {.max = 1 << 20};
        const struct hfd_audit_head head = {.attributes = &attributes,
                                            .user = &user,
                                            .id = "1",
                                            .path = "/api/v1/pods",
                                            .query = "",
                                            .agent = "test",
                                            .source_ips = "",
                                            .attempts = "",
                                            .version = "v1"};
        struct hfd_audit_record *record = NULL;
        int r = hfd_audit_record_new(&budget, &head, &record);

        hfd_audit_record_unref(record);
        return r;
}

static int make_filters(void) {
        const struct hfd_filters_config config = {.router = router, .auth = no_tokens};
        struct hfd_filters *filters = NULL;
        int r = hfd_filters_new(&host, &config, &filters);

        hfd_filters_free(filters);
        return r;
}

static int make_process_metrics(void) {
        struct hf_host with_metrics = host;
        struct hfd_process_metrics *metrics = NULL;

        failing_memory_enter();
        assert_int_equal(hf_metrics_new(&with_metrics.metrics), 0);
        failing_memory_leave();
        int r = hfd_process_metrics_new(&with_metrics, &metrics);
        hfd_process_metrics_free(metrics);
        hf_metrics_free(with_metrics.metrics);
        return r;
}

static int make_collector(void) {
        struct hfd_status_collector *collector = NULL;
        struct hf_status status = {0};
        int r = hfd_status_collector_new(&host, config_path, &collector, &status);

        hfd_status_collector_free(collector);
        return r;
}

static int make_server(void) {
        static char instance[] = "test";
        static struct hfd_config config = {.instance = instance};
        static struct hfd_server server;
        int r = hfd_server_init(&server, &config, NULL);

        if (r == 0)
                hfd_server_done(&server);
        return r;
}

static int make_zone(void) {
        /* Two headers, of which the second has one type: UTC, called A. */
        uint8_t file[44 + 44 + 6 + 2 + 7] = {0};

        memcpy(file, "TZif2", 5);
        memcpy(file + 44, "TZif2", 5);
        file[44 + 39] = 1;
        file[44 + 43] = 2;
        memcpy(file + 94, "A", 2);
        memcpy(file + 96, "\nCET-1\n", 7);
        struct hfd_zone *zone = NULL;
        int r = hfd_zone_new(file, sizeof file, &zone);

        hfd_zone_free(zone);
        return r;
}

static int copy_selector(void) {
        struct hfd_selector selector, copy;
        char reason[200];

        failing_memory_enter();
        assert_int_equal(hfd_selector_parse("a in (b,c),d=e", false,
                                            hfd_resource_find("", "v1", "pods"), &selector, reason,
                                            sizeof reason),
                         0);
        failing_memory_leave();
        int r = hfd_selector_copy(&copy, &selector);
        assert_int_equal(copy.n, r == 0 ? 2 : 0);
        hfd_selector_done(&copy);
        hfd_selector_done(&selector);
        return r;
}

static int peek_token(void) {
        /* {"alg":"ES256","kid":"a"}, {"iss":"b"} */
        static const char token[] = "eyJhbGciOiJFUzI1NiIsImtpZCI6ImEifQ.eyJpc3MiOiJiIn0.AAAA";
        struct hf__json *claims = NULL;
        char *id = NULL;
        int r = hfd_jwt_peek(token, &claims, &id);

        assert_true(r == 0 ? claims && id : !claims && !id);
        hf__json_free(claims);
        free(id);
        return r;
}

static int make_pki(void) {
        char *key = NULL, *cert = NULL, *both = NULL;
        struct hf_status status = {0};
        struct hfd_pki_ca ca = {0};
        struct hfd_jwt_key *jwt_key = NULL;

        failing_memory_enter();
        assert_int_equal(hfd_pki_key_make(&key), 0);
        assert_int_equal(hfd_pki_ca_make(key, &cert), 0);
        assert_true(asprintf(&both, "%s%s", cert, key) > 0);
        failing_memory_leave();
        int r = hfd_pki_ca_parse(both, "test", &ca, &status);
        const char *at = key;
        if (r == 0)
                r = hfd_jwt_key_read(&at, &jwt_key, &status);
        hfd_jwt_key_free(jwt_key);
        hfd_pki_ca_done(&ca);
        free(both);
        free(cert);
        free(key);
        return r;
}

static int make_custom_kind(void) {
        static const char text[] =
                "{\"spec\":{\"group\":\"example.com\",\"scope\":\"Namespaced\",\"versions\":[{"
                "\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":"
                "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}}}]},"
                "\"status\":{\"acceptedNames\":{\"plural\":\"gadgets\",\"kind\":\"Gadget\","
                "\"listKind\":\"GadgetList\"}}}";
        static const struct hfd_resource slot = {.group = "example.com",
                                                 .plural = "gadgets",
                                                 .storage = "example.com/gadgets"};
        struct hfd_custom_kind *kind = NULL;
        struct hf__json *definition = NULL, *props = NULL;

        failing_memory_enter();
        struct hf__buf *bytes = hf__buf_copy(text, sizeof text - 1);
        assert_int_equal(hf__json_parse(text, sizeof text - 1, &definition, NULL), 0);
        failing_memory_leave();
        int r = hfd_custom_kind_new(definition, bytes, &slot, 1, &kind);
        if (r == 0)
                r = hfd_custom_version_props(kind->storage, &props);
        hf__json_free(props);
        hfd_custom_kind_unref(kind);
        hf__json_free(definition);
        hf__buf_unref(bytes);
        return r;
}

static int make_policy(void) {
        static const char text[] =
                "{\"kind\":\"ValidatingAdmissionPolicy\",\"apiVersion\":\"admissionregistration."
                "k8s.io/v1\",\"metadata\":{\"name\":\"a\"},\"spec\":{\"policyName\":\"a\","
                "\"validationActions\":[\"Deny\"],\"matchConditions\":[{\"name\":\"b\","
                "\"expression\":\"true\"}],\"validations\":[{\"expression\":\"true\"}]}}";
        const struct hfd_resource *row = hfd_resource_find("admissionregistration.k8s.io", "v1",
                                                           "validatingadmissionpolicies");
        struct hfd_policy *policy = NULL;
        struct hfd_policy_binding *binding = NULL;

        failing_memory_enter();
        struct hf__buf *bytes = hf__buf_copy(text, sizeof text - 1);
        failing_memory_leave();
        struct hfd_object *object = hfd_object_new(row, "a", 1, bytes);
        int r = object ? hfd_policy_new(object, false, &policy) : -ENOMEM;
        if (r == 0)
                r = hfd_policy_binding_new(object, &binding);
        /* With HF_E_INVALID the policy would be left out of the index. */
        assert_true(r == 0 || r == -ENOMEM);
        hfd_policy_binding_unref(binding);
        hfd_policy_unref(policy);
        hfd_object_unref(object);
        hf__buf_unref(bytes);
        return r;
}

static int make_kind_set(void) {
        struct hfd_kind_set *set = NULL;
        int r = hfd_kind_set_new(hf_clock_system(), NULL, 0, &set);

        hfd_kind_set_unref(set);
        return r;
}

static int seal_value(void) {
        static const uint8_t key[32], nonce[HFD_NONCE_MAX];
        struct hf__buf *sealed = NULL, *opened = NULL;
        struct hfd_cipher *cipher = NULL;
        const char *why = NULL;

        failing_memory_enter();
        struct hf__buf *plain = hf__buf_copy("plain", 5);
        failing_memory_leave();
        int r = hfd_cipher_new(HFD_AES_GCM, key, sizeof key, &cipher);
        if (r == 0)
                r = hfd_cipher_seal(cipher, nonce, "a", plain, "", 0, &sealed);
        if (r == 0)
                r = hfd_cipher_open(cipher, "a", sealed->data, sealed->n, &opened, &why);
        hf__buf_unref(opened);
        hf__buf_unref(sealed);
        hfd_cipher_free(cipher);
        hf__buf_unref(plain);
        return r;
}

static int make_objects(void) {
        static const struct hfd_api_version version = {.group = "apps", .version = "v1"};
        size_t n;
        struct hf__json *service = hfd_api_service_make(&version);
        struct hf__json *level = service ? hfd_flow_object_make(hfd_flow_objects(&n)) : NULL;
        int r = service && level ? 0 : -ENOMEM;

        hf__json_free(level);
        hf__json_free(service);
        return r;
}

/* ---- the tests ---- */

static void test_constructors_release_what_they_have_made(void **state) {
        static const failing_constructor_fn all[] = {
                make_flow,        make_pool,   make_oidc,     make_accounts,        make_auth,
                make_audit,       make_record, make_filters,  make_process_metrics, make_collector,
                make_server,      make_zone,   copy_selector, peek_token,           make_pki,
                make_custom_kind, make_policy, seal_value,    make_objects,         make_kind_set,
        };

        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
                failing_constructor_try_all(all[i]);
}

static int set_up(void **state) {
        static const char policy[] =
                "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n";
        static const char config[] =
                "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                "contexts:\n- name: c\n  context: {cluster: c, user: u}\n"
                "clusters:\n- name: c\n  cluster: {server: 'http://127.0.0.1:1'}\n"
                "users:\n- name: u\n  user: {token: secret}\n";

        (void)snprintf(directory, sizeof directory, "/tmp/test-constructors-XXXXXX");
        assert_non_null(mkdtemp(directory));
        (void)snprintf(tokens_path, sizeof tokens_path, "%s/tokens", directory);
        (void)snprintf(policy_path, sizeof policy_path, "%s/policy", directory);
        (void)snprintf(log_path, sizeof log_path, "%s/log", directory);
        (void)snprintf(config_path, sizeof config_path, "%s/kubeconfig", directory);
        struct hfd_cacher_config cache = {.prefix = "/registry"};

        assert_int_equal(hfd_memory_store_new(&host, &store), 0);
        cache.store = store;
        assert_int_equal(hfd_cacher_new(&host, &cache, &cacher), 0);
        assert_int_equal(hfd_router_new(&router), 0);
        assert_int_equal(hfd_auth_new(&host, NULL, &no_tokens, NULL), 0);
        return hfd_write_file(tokens_path, "t,ann,1,\"a,b\"\n", 0600, NULL) |
               hfd_write_file(policy_path, policy, 0600, NULL) |
               hfd_write_file(config_path, config, 0600, NULL);
}

static int tear_down(void **state) {
        hfd_auth_free(no_tokens);
        hfd_router_free(router);
        hfd_cacher_free(cacher);
        store->ops->free(store);
        return unlink(tokens_path) | unlink(policy_path) | unlink(log_path) | unlink(config_path) |
               rmdir(directory);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_constructors_release_what_they_have_made),
        };

        hf__json_blocks_init(); /* allocations of cJSON fail, too */
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
