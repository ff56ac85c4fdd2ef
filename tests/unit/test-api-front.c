/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates, HTTP server, filters and endpoints together over real TLS, as kubectl uses them. */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <holdfast/health.h>
#include <holdfast/metrics.h>

#include "base/http/engine.h"
#include "base/http/global.h"
#include "base/http/http_tls.h"
#include "patience.h"
#include "server/auth/pki/admin_kubeconfig.h"
#include "server/auth/pki/pki.h"
#include "server/filters/filters.h"
#include "server/handlers/healthz.h"
#include "server/handlers/metrics_handler.h"
#include "server/handlers/version_handler.h"

static struct hf_host host = {.size = sizeof host};
static struct hfd_pki pki;
static struct hfd_auth *auth;
static struct hfd_router *router;
static struct hfd_healthz *healthz;
static struct hfd_metrics_handler *metrics;
static struct hfd_filters *filters;
static struct hfd_http *http;
static struct hf__http_engine *engine;
static char dir[64];

static int set_up(void **state) {
        strcpy(dir, "/tmp/front-XXXXXX");
        signal(SIGPIPE, SIG_IGN);
        assert(hf__http_global_init() == 0);
        assert(mkdtemp(dir));
        assert(hf_metrics_new(&host.metrics) == 0 && hf_health_new(&host.health) == 0);
        assert(hfd_pki_load_or_make(dir, NULL, hf_cancel_never(), &pki, NULL) == 0);
        assert(hfd_auth_new(&host, NULL, &auth, NULL) == 0 && hfd_router_new(&router) == 0);
        assert(hfd_healthz_new(&host, NULL, NULL, &healthz) == 0 &&
               hfd_healthz_install(healthz, router) == 0);
        assert(hfd_metrics_handler_new(&host, NULL, &metrics) == 0 &&
               hfd_router_add(router, "/metrics", hfd_metrics_handle, metrics) == 0 &&
               hfd_router_add(router, "/version", hfd_version_handle, NULL) == 0);
        const struct hfd_filters_config chain = {.router = router,
                                                 .auth = auth,
                                                 .send_retry_after = true};
        assert(hfd_filters_new(&host, &chain, &filters) == 0);
        const struct hfd_http_config config = {.bind_address = "127.0.0.1",
                                               .listen_fd = -1,
                                               .cert_pem = pki.server_cert_pem,
                                               .key_pem = pki.server_key_pem,
                                               .client_ca_pem = pki.ca_pem,
                                               .handler = hfd_filters_handle,
                                               .on_head = hfd_filters_head,
                                               .ctx = filters};
        assert(hfd_http_new(&host, &config, &http, NULL) == 0 && hfd_http_start(http) == 0);
        assert(hf__http_engine_new(&host, "test-http", &engine) == 0);
        return 0;
}

static int tear_down(void **state) {
        char command[128];
        engine = hf__http_engine_free(engine);
        http = hfd_http_free(http);
        filters = hfd_filters_free(filters);
        healthz = hfd_healthz_free(healthz);
        metrics = hfd_metrics_handler_free(metrics);
        router = hfd_router_free(router);
        auth = hfd_auth_free(auth);
        hfd_pki_done(&pki);
        host.health = hf_health_free(host.health);
        host.metrics = hf_metrics_free(host.metrics);
        snprintf(command, sizeof command, "rm -rf '%s'", dir);
        return system(command);
}

struct response {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool done;
        int outcome, code;
        char body[65536];
};

static void on_done(void *ctx, const struct hf__http_result *result) {
        struct response *response = ctx;
        pthread_mutex_lock(&response->mu);
        size_t n =
                result->n_body < sizeof response->body ? result->n_body : sizeof response->body - 1;
        if (n > 0)
                memcpy(response->body, result->body, n);
        response->body[n] = '\0';
        response->outcome = result->outcome;
        response->code = result->code;
        response->done = true;
        pthread_cond_signal(&response->cond);
        pthread_mutex_unlock(&response->mu);
}

/* Makes one GET. Each user has a lane, so that no user gets the connection of another one. */
static void get(const char *path, bool admin, enum hf__http_version version,
                struct response *ret_response) {
        const struct hf__http_tls_config tls_config = {.ca_pem = pki.ca_pem,
                                                       .cert_pem =
                                                               admin ? pki.admin_cert_pem : NULL,
                                                       .key_pem = admin ? pki.admin_key_pem : NULL};
        struct hf__http_tls *tls = NULL;
        char url[256];
        snprintf(url, sizeof url, "https://localhost:%u%s", hfd_http_port(http), path);
        *ret_response = (struct response){.mu = PTHREAD_MUTEX_INITIALIZER,
                                          .cond = PTHREAD_COND_INITIALIZER};
        assert(hf__http_tls_new(&tls_config, &tls) == 0);
        const struct hf__http_request request = {.method = "GET",
                                                 .url = url,
                                                 .version = version,
                                                 .tls = tls,
                                                 .lane = admin ? 1 : 0,
                                                 .deadline = hf_now(hf_clock_system()) +
                                                             20 * HF_NSEC_PER_SEC,
                                                 .on_done = on_done,
                                                 .ctx = ret_response};
        assert(hf__http_submit(engine, &request, NULL) == 0);
        pthread_mutex_lock(&ret_response->mu);
        PATIENCE_AWAIT_LOCKED(&ret_response->cond, &ret_response->mu, ret_response->done);
        pthread_mutex_unlock(&ret_response->mu);
        hf__http_tls_unref(tls);
        assert_int_equal(ret_response->outcome, 0);
}

static void test_anonymous_users_reach_less_than_the_admin(void **state) {
        static const enum hf__http_version versions[] = {HF__HTTP_1_1, HF__HTTP_ANY};
        static struct response response;
        for (size_t i = 0; i < 2; i++) {
                get("/readyz", false, versions[i], &response);
                assert_int_equal(response.code, 200);
                assert_string_equal(response.body, "ok");
                get("/metrics", false, versions[i], &response);
                assert_int_equal(response.code, 403);
                assert_non_null(strstr(response.body, "\"reason\":\"Forbidden\""));
                get("/metrics", true, versions[i], &response);
                assert_int_equal(response.code, 200);
                assert_non_null(strstr(response.body, "process_start_time_seconds"));
                get("/api/v1/configmaps", true, versions[i], &response);
                assert_int_equal(response.code, 404);
        }
        assert_int_equal(hfd_filters_wait_drained(filters,
                                                  hf_now(hf_clock_system()) + 20 * HF_NSEC_PER_SEC),
                         0);
}

static void test_kubectl_authenticates_with_the_admin_kubeconfig(void **state) {
        char path[128], url[64], command[512];
        if (system("command -v kubectl >/dev/null") != 0)
                skip();
        snprintf(path, sizeof path, "%s/admin.kubeconfig", dir);
        snprintf(url, sizeof url, "https://127.0.0.1:%u", hfd_http_port(http));
        assert_int_equal(hfd_admin_kubeconfig_write(&pki, path, url, NULL, NULL), 0);
        snprintf(command, sizeof command,
                 "kubectl --kubeconfig='%s' --request-timeout=20s get --raw /metrics | grep -q "
                 "process_open_fds",
                 path);
        assert_int_equal(system(command), 0);
}

static void test_requests_are_refused_during_shutdown_over_http2(void **state) {
        static struct response response;
        hfd_filters_refuse(filters);
        get("/version", false, HF__HTTP_ANY, &response);
        assert_int_equal(response.code, 200);
        get("/api/v1/configmaps", true, HF__HTTP_ANY, &response);
        assert_int_equal(response.code, 429);
        assert_string_equal(response.body,
                            "The apiserver is shutting down, please try again later.\n");
        get("/api/v1/configmaps", true, HF__HTTP_1_1, &response);
        assert_int_equal(response.code, 429);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_anonymous_users_reach_less_than_the_admin),
                cmocka_unit_test(test_kubectl_authenticates_with_the_admin_kubeconfig),
                cmocka_unit_test(test_requests_are_refused_during_shutdown_over_http2),
        };
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
