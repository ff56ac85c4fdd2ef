/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API, without controllers and leader election, behind TLS on a free port of 127.0.0.1, over
 * the memory store or an etcd. It serves to try clients by hand.
 *
 *      api-server-main DIR [ETCD-URL]
 *
 * Writes DIR/admin.kubeconfig, prints "ready PORT", and runs until its standard input ends.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>

#include "server/auth/pki/admin_kubeconfig.h"
#include "server/auth/pki/pki.h"
#include "server/filters/filters.h"
#include "server/handlers/openapi/openapi_handler.h"
#include "server/handlers/rest/rest.h"
#include "server/registry/loopback.h"
#include "server/registry/registry.h"
#include "server/storage/etcd/store.h"
#include "server/storage/memory/store.h"

struct server {
        struct hf_host host;
        struct hfd_pki pki;
        struct hfd_auth *auth;
        struct hfd_store *store;
        struct hfd_cacher *cacher;
        struct hfd_registry *registry;
        struct hfd_openapi_handler *openapi;
        struct hfd_router *router;
        struct hfd_filters *filters;
        struct hfd_http *http;
        struct hf_client *client;
};

/* Ends the program with a message if r, the result of `what`, is an error. */
static void check(int r, const char *what, const struct hf_status *status) {
        if (r == 0)
                return;
        (void)fprintf(stderr, "api-server-main: %s: %s %s\n", what, hf_strerror(r),
                      status->message);
        exit(1);
}

static void log_line(void *ctx, enum hf_log_level level, const char *component,
                     const char *message) {
        (void)fprintf(stderr, "%s: %s\n", component, message);
}

static void start_store(struct server *server, const char *etcd_url) {
        const char *const endpoints[] = {etcd_url, NULL};
        const struct hfd_etcd_config config = {.endpoints = endpoints};
        struct hf_status status = {0};

        if (etcd_url)
                check(hfd_etcd_store_new(&server->host, &config, &server->store, &status), "etcd",
                      &status);
        else
                check(hfd_memory_store_new(&server->host, &server->store), "store", &status);
}

static void start_api(struct server *server) {
        static const char *const paths[] = {"/api", "/api/", "/apis", "/apis/"};
        const struct hfd_cacher_config config = {.store = server->store, .prefix = "/registry"};
        struct hf_status status = {0};

        check(hfd_cacher_new(&server->host, &config, &server->cacher), "api", &status);
        check(hfd_registry_new(&server->host, server->cacher, &server->registry), "api", &status);
        check(hfd_cacher_start(server->cacher), "api", &status);
        check(hfd_router_new(&server->router), "router", &status);
        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
                check(hfd_router_add(server->router, paths[i], hfd_rest_handle, server->registry),
                      "router", &status);
        check(hfd_openapi_handler_new(server->registry, &server->openapi), "openapi", &status);
        check(hfd_router_add(server->router, "/openapi/", hfd_openapi_handle, server->openapi),
              "router", &status);
}

static void start_http(struct server *server) {
        const struct hfd_filters_config filters = {.router = server->router, .auth = server->auth};
        struct hf_status status = {0};

        check(hfd_filters_new(&server->host, &filters, &server->filters), "filters", &status);
        const struct hfd_http_config config = {.bind_address = "127.0.0.1",
                                               .listen_fd = -1,
                                               .cert_pem = server->pki.server_cert_pem,
                                               .key_pem = server->pki.server_key_pem,
                                               .client_ca_pem = server->pki.ca_pem,
                                               .handler = hfd_filters_handle,
                                               .on_head = hfd_filters_head,
                                               .ctx = server->filters};
        check(hfd_http_new(&server->host, &config, &server->http, &status), "http", &status);
        check(hfd_http_start(server->http), "http", &status);
}

static void make_namespaces(struct server *server) {
        static const char *const names[] = {"default", "kube-system"};
        struct hf_status status = {0};
        struct hf_cancel *token;

        check(hf_cancel_new(NULL, hf_clock_system(), &token), "memory", &status);
        hf_cancel_set_deadline(token, hf_now(hf_clock_system()) + 10 * HF_NSEC_PER_SEC);
        check(hfd_cacher_wait_synced(server->cacher, token, &status), "cache", &status);
        check(hfd_loopback_new(server->registry, &server->client), "client", &status);
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                char body[100];
                int n = snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"%s\"}}", names[i]);
                const struct hf_request request = {.size = sizeof request,
                                                   .verb = HF_VERB_CREATE,
                                                   .resource = {"", "v1", "namespaces"},
                                                   .body = body,
                                                   .n_body = (size_t)n};
                /* An etcd may have this namespace already, so the result does not matter. */
                (void)hf_client_do(server->client, &request, token, NULL, NULL, NULL);
        }
        hf_cancel_unref(token);
}

static void stop(struct server *server) {
        hf_client_free(server->client);
        hfd_cacher_end_watches(server->cacher);
        hfd_http_stop_accepting(server->http);
        hfd_http_free(server->http);
        hfd_filters_free(server->filters);
        hfd_router_free(server->router);
        hfd_registry_free(server->registry);
        hfd_openapi_handler_free(server->openapi);
        hfd_cacher_free(server->cacher);
        server->store->ops->free(server->store);
        hfd_auth_free(server->auth);
        hfd_pki_done(&server->pki);
}

int main(int argc, char **argv) {
        static const char *const names[] = {NULL};
        struct server server = {.host = {.size = sizeof server.host, .log = {.write = log_line}}};
        struct hf_status status = {0};
        char path[512], url[64], byte;

        if (argc < 2)
                return 2;
        (void)signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_DEFAULT);
        check(hfd_pki_load_or_make(argv[1], names, hf_cancel_never(), &server.pki, &status),
              "certificates", &status);
        check(hfd_auth_new(&server.host, NULL, &server.auth, &status), "authentication", &status);
        start_store(&server, argc > 2 ? argv[2] : NULL);
        start_api(&server);
        start_http(&server);
        (void)snprintf(path, sizeof path, "%s/admin.kubeconfig", argv[1]);
        (void)snprintf(url, sizeof url, "https://127.0.0.1:%u", hfd_http_port(server.http));
        check(hfd_admin_kubeconfig_write(&server.pki, path, url, NULL, &status), "kubeconfig",
              &status);
        make_namespaces(&server);
        (void)printf("ready %u\n", hfd_http_port(server.http));
        (void)fflush(stdout);
        while (read(STDIN_FILENO, &byte, 1) > 0)
                continue;
        stop(&server);
        curl_global_cleanup();
        return 0;
}
