/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The REST client talks to any Kubernetes API server over HTTP, through one HTTP engine. This file
 * creates the client: from a configuration, from kubeconfig files, or from the service account of a
 * pod. It also contains the code that requests and watches share. rest.h documents ownership and
 * threads.
 *
 * Invariant: apart from the atomic servers.current, nothing in struct hf__rest changes once the
 * client is made, so there is no lock.
 */
#include "client/rest.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/host.h"
#include "base/http/engine.h"
#include "base/http/head_text.h"
#include "base/http/http_tls.h"
#include "base/sized_struct.h"
#include "client/bearer.h"
#include "client/file_text.h"
#include "client/kubeconfig.h"
#include "client/rest_request.h"
#include "client/rest_watch.h"

#define DEFAULT_TIMEOUT     (30 * HF_NSEC_PER_SEC)
#define SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

static const struct hf__sized sized_config = HF__SIZED(struct hf_rest_config, server);
static const struct hf__sized sized_in_cluster = HF__SIZED(struct hf_in_cluster_config, size);

static struct hf__rest *rest_of(struct hf_client *client) { return (struct hf__rest *)client; }

/* ---- shared by requests and watches ---- */

int hf__rest_fail(const struct hf__http_result *result, const char *what,
                  struct hf_status *ret_status) {
        const char *reason = result->error_text && result->error_text[0]
                                     ? result->error_text
                                     : hf_strerror(result->outcome);

        assert(result->outcome != 0);
        return hf_fail(ret_status, result->outcome, "%s: %s", what, reason);
}

void hf__rest_init_request(const struct hf__rest *rest, enum hf_lane lane,
                           const struct hf__token *token, const char **headers,
                           struct hf__http_request *ret_request) {
        size_t n = 0;

        headers[n++] = "Accept: application/json";
        headers[n++] = rest->user_agent;
        if (token)
                headers[n++] = hf__token_header(token);
        *ret_request = (struct hf__http_request){
                .method = "GET",
                .headers = headers,
                .n_headers = n,
                .version = HF__HTTP_ANY,
                .tls = rest->tls,
                .lane = (unsigned)lane,
        };
}

/* Requests and watches are both requests of the engine, so this cancels either. */
static void rest_cancel(struct hf_client *client, uint64_t id) {
        hf__http_cancel(rest_of(client)->engine, id);
}

/* ---- the client ---- */

/* Also frees a client that is only partly constructed. Frees the engine first: that ends the
 * requests under way, which use the other members. */
static void rest_free(struct hf_client *client) {
        struct hf__rest *rest = rest_of(client);

        (void)hf__http_engine_free(rest->engine);
        (void)hf__http_tls_unref(rest->tls);
        (void)hf__bearer_free(rest->bearer);
        free(rest->user_agent);
        hf__rest_servers_done(&rest->servers);
        free(rest);
}

static void release_rest(struct hf__rest *rest) { rest_free(&rest->base); }
HF__CLEANUP_DEFINE(rest_cleanup, struct hf__rest *, release_rest)

static const struct hf_client_ops rest_ops = {
        .size = sizeof rest_ops,
        .request = hf__rest_request,
        .cancel = rest_cancel,
        .watch = hf__rest_watch,
        .watch_cancel = rest_cancel,
        .free = rest_free,
};

/* Rejects invalid settings. Rejects contradictory ones too, so that no connection is less secure
 * than the caller expects. */
static int check_config(const struct hf_rest_config *config, struct hf_status *reterr_status) {
        if (!config->cert_pem != !config->key_pem)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "a client certificate and its key must be given together");
        if (config->insecure && config->ca_pem)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "ca_pem and insecure are both set: set only one");
        if (config->user_agent && !hf__http_is_head_text(config->user_agent, 256))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "the user agent is empty, too long or has control characters");
        if (config->timeout < 0)
                return hf_fail(reterr_status, HF_E_INVALID, "the timeout is negative");
        return 0;
}

/* Creates the parts that report no message of their own. The engine is created last, so that no
 * thread is started if another part fails. The User-Agent header is formatted once, because every
 * request has it. */
static int create_parts(struct hf__rest *rest, const struct hf_rest_config *config) {
        int r = 0;

        if (asprintf(&rest->user_agent, "User-Agent: %s",
                     config->user_agent ? config->user_agent : "holdfast") < 0) {
                rest->user_agent = NULL;
                r = -ENOMEM;
        }
        if (r == 0 && rest->servers.over_tls) {
                const struct hf__http_tls_config tls = {
                        .ca_pem = config->ca_pem,
                        .cert_pem = config->cert_pem,
                        .key_pem = config->key_pem,
                        .server_name = config->server_name,
                        .insecure = config->insecure,
                };
                r = hf__http_tls_new(&tls, &rest->tls);
        }
        if (r == 0)
                r = hf__http_engine_new(rest->base.host, "hf-rest", &rest->engine);
        if (r == 0)
                hf__bearer_attach(rest->bearer, rest->engine);
        return r;
}

int hf_rest_client_new(const struct hf_host *host, const struct hf_rest_config *given,
                       struct hf_client **ret_client, struct hf_status *reterr_status) {
        struct hf_rest_config config;

        if (!host || !given || !ret_client)
                return hf_fail(reterr_status, -EINVAL,
                               "a REST client needs a host and a configuration");
        int r = hf__host_check(host, reterr_status);
        if (r == 0)
                r = hf__sized_copy(&sized_config, &config, given, reterr_status);
        if (r == 0)
                r = check_config(&config, reterr_status);
        if (r != 0)
                return r;
        HF__CLEANUP(rest_cleanup) struct hf__rest *rest = calloc(1, sizeof *rest);
        if (!rest)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        rest->base = (struct hf_client){.ops = &rest_ops, .host = host};
        rest->timeout = config.timeout ? config.timeout : DEFAULT_TIMEOUT;
        /* Separate from create_parts, because these two set a message that says more than the error
         * code. */
        r = hf__rest_servers_init(&rest->servers, config.server, config.other_servers,
                                  config.n_other_servers, reterr_status);
        if (r != 0)
                return r;
        r = hf__bearer_new(host, config.bearer_token, config.token_file, &rest->bearer,
                           reterr_status);
        if (r != 0)
                return r;
        r = create_parts(rest, &config);
        if (r != 0)
                return hf_fail(reterr_status, r, "cannot create a client for %.200s: %s",
                               config.server, hf_strerror(r));
        *ret_client = &HF__TAKE(rest)->base;
        return 0;
}

/* The client copies the configuration, so its secrets can be wiped as soon as the client exists. */
int hf_rest_client_from_kubeconfig(const struct hf_host *host, const char *path,
                                   struct hf_client **ret_client, struct hf_status *reterr_status) {
        struct hf__kubeconfig config;

        int r = hf__kubeconfig_load(path, &config, reterr_status);
        if (r != 0)
                return r;
        r = hf_rest_client_new(host, &config.rest, ret_client, reterr_status);
        hf__kubeconfig_done(&config);
        return r;
}

/* ---- in a cluster ---- */

/* Kubernetes sets both variables in every pod. An IPv6 address needs brackets in a URL. */
static int service_url(char **ret_url, struct hf_status *reterr_status) {
        const char *name = getenv("KUBERNETES_SERVICE_HOST"),
                   *port = getenv("KUBERNETES_SERVICE_PORT");

        if (!name || !name[0] || !port || !port[0])
                return hf_fail(reterr_status, HF_E_NOT_FOUND,
                               "this process does not run in a pod: KUBERNETES_SERVICE_HOST or "
                               "KUBERNETES_SERVICE_PORT is not set");
        bool bare_v6 = strchr(name, ':') && name[0] != '[';
        if (asprintf(ret_url, bare_v6 ? "https://[%s]:%s" : "https://%s:%s", name, port) < 0) {
                *ret_url = NULL;
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        }
        return 0;
}

/* Builds the path of a file of the service account, and reads the file if ret_text is not NULL. The
 * caller frees *ret_path, also on failure. For the token only the path is needed, because the
 * client reads that file, and reads it again after the kubelet has replaced the token. */
static int account_file(const char *dir, const char *name, char **ret_path, char **ret_text,
                        struct hf_status *reterr_status) {
        size_t n;

        if (asprintf(ret_path, "%s/%s", dir, name) < 0) {
                *ret_path = NULL;
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        }
        int r = ret_text ? hf__file_text(*ret_path, ret_text, &n) : 0;
        return r < 0 ? hf_fail(reterr_status, r, "cannot read %s of the service account: %s",
                               *ret_path, hf_strerror(r))
                     : r;
}

/* Reads the pod's namespace. Rejects text that cannot be a namespace's name: empty, too long, or
 * with white space or a slash. */
static int account_namespace(const char *dir, char *ret_ns, struct hf_status *reterr_status) {
        char *path = NULL, *text = NULL;

        int r = account_file(dir, "namespace", &path, &text, reterr_status);
        if (r == 0) {
                hf__trim_end(text);
                size_t n = strlen(text);
                if (n == 0 || n > HF_NAME_MAX || strpbrk(text, " /\t\r\n"))
                        r = hf_fail(reterr_status, HF_E_INVALID,
                                    "%s does not contain the name of a namespace", path);
                else
                        memcpy(ret_ns, text, n + 1);
        }
        free(text);
        free(path);
        return r;
}

int hf_rest_client_in_cluster(const struct hf_host *host, const struct hf_in_cluster_config *given,
                              struct hf_client **ret_client, char *ret_ns,
                              struct hf_status *reterr_status) {
        struct hf_in_cluster_config config = {.size = sizeof config};
        HF__CLEANUP(hf__free_cleanup) char *url = NULL;
        HF__CLEANUP(hf__free_cleanup) char *ca_path = NULL;
        HF__CLEANUP(hf__free_cleanup) char *ca = NULL;
        HF__CLEANUP(hf__free_cleanup) char *token_path = NULL;

        int r = given ? hf__sized_copy(&sized_in_cluster, &config, given, reterr_status) : 0;
        if (r != 0)
                return r;
        const char *dir = config.directory ? config.directory : SERVICE_ACCOUNT_DIR;
        r = service_url(&url, reterr_status);
        if (r == 0)
                r = account_file(dir, "ca.crt", &ca_path, &ca, reterr_status);
        if (r == 0)
                r = account_file(dir, "token", &token_path, NULL, reterr_status);
        if (r == 0 && ret_ns)
                r = account_namespace(dir, ret_ns, reterr_status);
        if (r != 0)
                return r;
        const struct hf_rest_config rest = {
                .size = sizeof rest,
                .server = url,
                .ca_pem = ca,
                .token_file = token_path,
                .user_agent = config.user_agent,
                .timeout = config.timeout,
        };
        return hf_rest_client_new(host, &rest, ret_client, reterr_status);
}
