/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api-server-main DIR [ETCD-URL]: the API alone behind TLS on a free port of 127.0.0.1, over the
 * memory store or an etcd, for trying clients on it. Writes DIR/admin.kubeconfig, prints "ready
 * PORT", and runs until its standard input ends.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>

#include "server/auth/admin_kubeconfig.h"
#include "server/auth/pki.h"
#include "server/filters/filters.h"
#include "server/handlers/rest.h"
#include "server/registry/loopback.h"
#include "server/registry/registry.h"
#include "server/storage/etcd/store.h"
#include "server/storage/memory/store.h"

static void fail(const char *what, const struct hf_status *status) {
        (void)fprintf(stderr, "api-server-main: %s: %s\n", what, status->message);
        exit(1);
}

static void log_line(void *ctx, enum hf_log_level level, const char *component,
                     const char *message) {
        (void)fprintf(stderr, "%s: %s\n", component, message);
}

int main(int argc, char **argv) {
        static const char *const paths[] = {"/api", "/api/", "/apis", "/apis/", "/openapi/"};
        static const char *const names[] = {NULL};
        static const char *const system_namespaces[] = {"default", "kube-system"};
        struct hf_status status = {.message = "failed"};
        struct hf_host host = {.size = sizeof host, .log = {.write = log_line}};
        struct hfd_pki pki;
        struct hfd_auth *auth = NULL;
        struct hfd_store *store = NULL;
        struct hfd_cacher *cacher = NULL;
        struct hfd_registry *registry = NULL;
        struct hfd_router *router = NULL;
        struct hfd_filters *filters = NULL;
        struct hfd_http *http = NULL;
        struct hf_client *client = NULL;
        char path[512], url[64], byte;

        if (argc < 2)
                return 2;
        (void)signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_DEFAULT);
        if (hfd_pki_load_or_make(argv[1], names, hf_cancel_never(), &pki, &status) ||
            hfd_auth_new(&host, NULL, &auth, &status))
                fail("certificates", &status);
        const char *endpoints[] = {argc > 2 ? argv[2] : NULL, NULL};
        struct hfd_etcd_config etcd = {.endpoints = endpoints};
        if (argc > 2 ? hfd_etcd_store_new(&host, &etcd, &store, &status)
                     : hfd_memory_store_new(&host, &store))
                fail("store", &status);
        struct hfd_cacher_config config = {.store = store, .prefix = "/registry"};
        if (hfd_cacher_new(&host, &config, &cacher) || hfd_registry_new(&host, cacher, &registry) ||
            hfd_cacher_start(cacher) || hfd_router_new(&router))
                fail("api", &status);
        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
                if (hfd_router_add(router, paths[i], hfd_rest_handle, registry))
                        fail("router", &status);
        struct hfd_filters_config filter = {.router = router, .auth = auth};
        if (hfd_filters_new(&host, &filter, &filters))
                fail("filters", &status);
        struct hfd_http_config listen = {.bind_address = "127.0.0.1",
                                         .listen_fd = -1,
                                         .cert_pem = pki.server_cert_pem,
                                         .key_pem = pki.server_key_pem,
                                         .client_ca_pem = pki.ca_pem,
                                         .handler = hfd_filters_handle,
                                         .ctx = filters};
        if (hfd_http_new(&host, &listen, &http, &status) || hfd_http_start(http))
                fail("http", &status);
        (void)snprintf(path, sizeof path, "%s/admin.kubeconfig", argv[1]);
        (void)snprintf(url, sizeof url, "https://127.0.0.1:%u", hfd_http_port(http));
        if (hfd_admin_kubeconfig_write(&pki, path, url, &status))
                fail("kubeconfig", &status);
        struct hf_cancel *token;
        if (hf_cancel_new(NULL, hf_clock_system(), &token))
                return 1;
        hf_cancel_set_deadline(token, hf_now(hf_clock_system()) + 10 * HF_NSEC_PER_SEC);
        if (hfd_cacher_wait_synced(cacher, token, &status) || hfd_loopback_new(registry, &client))
                fail("cache", &status);
        for (size_t i = 0; i < sizeof system_namespaces / sizeof system_namespaces[0]; i++) {
                char body[100];
                struct hf_request request = {.verb = HF_VERB_CREATE,
                                             .resource = {"", "v1", "namespaces"},
                                             .body = body};
                request.n_body =
                        (size_t)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"%s\"}}",
                                         system_namespaces[i]);
                (void)hf_client_do(client, &request, token, NULL, NULL, NULL);
        }
        (void)printf("ready %u\n", hfd_http_port(http));
        (void)fflush(stdout);
        while (read(0, &byte, 1) > 0)
                continue;
        hf_client_free(client);
        hfd_cacher_end_watches(cacher);
        hfd_http_stop_accepting(http);
        hfd_http_free(http);
        hfd_filters_free(filters);
        hfd_router_free(router);
        hfd_registry_free(registry);
        hfd_cacher_free(cacher);
        store->ops->free(store);
        hfd_auth_free(auth);
        hfd_pki_done(&pki);
        hf_cancel_unref(token);
        curl_global_cleanup();
        return 0;
}
