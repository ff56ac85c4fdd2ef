/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The REST client: any Kubernetes API server over HTTP, through one HTTP engine.
 *
 * The client itself has no state that changes. A call is a struct of its own from the moment it is submitted until the
 * engine reports its end, on the engine's thread; cancelling goes by the engine's request id. So there is no lock here,
 * and freeing the engine answers everything that is left.
 */
#include "client/rest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/http_engine.h"
#include "base/strbuf.h"
#include "client/kubeconfig.h"
#include "client/resource_path.h"
#include "client/status.h"

#define DEFAULT_TIMEOUT (30 * HF_NSEC_PER_SEC)
#define MAX_OBJECT      ((size_t)8 << 20)
#define MAX_LIST        ((size_t)256 << 20)
#define MAX_URL         ((size_t)16 << 10)
#define MAX_CREDENTIAL  ((size_t)64 << 10)

static struct hf__rest *rest_of(struct hf_client *client) { return (struct hf__rest *)client; }

/* ---- one call ---- */

struct rest_call {
        hf_reply_fn done;
        void *ctx;
        enum hf_verb verb;
        char fence[HF_FENCE_MAX]; /* as sent; "" = none */
        char what[];              /* "PUT https://...", for messages */
};

static const char *method_of(enum hf_verb verb) {
        switch (verb) {
        case HF_VERB_GET:
        case HF_VERB_LIST: return "GET";
        case HF_VERB_CREATE: return "POST";
        case HF_VERB_UPDATE: return "PUT";
        case HF_VERB_DELETE:
        case HF_VERB_DELETE_COLLECTION: return "DELETE";
        }
        return NULL;
}

static bool is_write(enum hf_verb verb) { return verb != HF_VERB_GET && verb != HF_VERB_LIST; }

int hf__rest_failure(const struct hf__http_result *result, const char *what, struct hf_status *ret_status) {
        const char *words = result->error_text && result->error_text[0] ? result->error_text : hf_strerror(result->outcome);
        return hf_fail(ret_status, result->outcome, "%s: %s", what, words);
}

static void call_done(void *ctx, const struct hf__http_result *result) {
        struct rest_call *call = ctx; /* owned; this is its end */
        struct hf_reply reply = {.body = result->body, .n_body = result->body ? result->n_body : 0};

        reply.fence_echoed = call->fence[0] && result->fence_echo && strcmp(result->fence_echo, call->fence) == 0;
        if (result->outcome != 0) {
                reply.error = hf__rest_failure(result, call->what, &reply.status);
        } else if (result->code < 200 || result->code >= 300) {
                const struct hf__status_context context = {
                        .is_write = is_write(call->verb),
                        .retry_after_s = result->retry_after_s,
                        .what = call->what,
                };
                reply.error = hf__status_from_reply(result->code, reply.body, reply.n_body, &context, &reply.status);
        }
        call->done(call->ctx, &reply);
        free(call);
}

void hf__rest_prepare(const struct hf__rest *rest, enum hf_lane lane, const char **headers, struct hf__http_request *ret_request) {
        size_t n = 0;

        headers[n++] = "Accept: application/json";
        headers[n++] = rest->user_agent;
        if (rest->authorization)
                headers[n++] = rest->authorization;
        *ret_request = (struct hf__http_request){
                .method = "GET",
                .headers = headers,
                .n_headers = n,
                .version = HF__HTTP_ANY,
                .tls = rest->tls,
                .lane = (unsigned)lane,
        };
}

/* "PUT https://..." in *out: the URL is what follows the method. */
static int call_what(const struct hf__rest *rest, const struct hf_call *call, struct hf__strbuf *out) {
        struct hf_call addressed = *call;

        if (call->verb == HF_VERB_CREATE || call->verb == HF_VERB_LIST || call->verb == HF_VERB_DELETE_COLLECTION)
                addressed.name = NULL;
        hf__strbuf_printf(out, "%s %s", method_of(call->verb), rest->server);
        hf__resource_path(out, &addressed);
        return out->error ? (out->error < 0 ? out->error : -EINVAL) : 0;
}

static int call_submit(struct hf__rest *rest, const struct hf_call *call, struct rest_call *mine, uint64_t *ret_id) {
        const char *headers[HF__REST_N_HEADERS];
        struct hf__http_request request;
        char fence_line[sizeof HF_FENCE_HEADER + 2 + HF_FENCE_MAX];

        hf__rest_prepare(rest, call->lane, headers, &request);
        request.method = method_of(call->verb);
        request.url = mine->what + strlen(request.method) + 1;
        if (call->n_body > 0) {
                headers[request.n_headers++] = "Content-Type: application/json";
                request.body = call->body;
                request.n_body = call->n_body;
        }
        if (mine->fence[0]) {
                (void)snprintf(fence_line, sizeof fence_line, "%s: %s", HF_FENCE_HEADER, mine->fence);
                headers[request.n_headers++] = fence_line;
        }
        request.deadline = call->deadline ? call->deadline : hf_now(hf_host_clock(rest->base.host)) + rest->timeout;
        request.max_body = call->verb == HF_VERB_LIST ? MAX_LIST : MAX_OBJECT;
        request.on_done = call_done;
        request.ctx = mine;
        return hf__http_submit(rest->engine, &request, ret_id);
}

static int rest_call(struct hf_client *client, const struct hf_call *call, hf_reply_fn done, void *ctx, uint64_t *ret_id) {
        struct hf__rest *rest = rest_of(client);
        struct hf__strbuf what = {.max = MAX_URL};
        struct rest_call *mine = NULL;

        int r = call_what(rest, call, &what);
        if (r == 0 && !(mine = malloc(sizeof *mine + what.n + 1)))
                r = -ENOMEM;
        if (r == 0) {
                *mine = (struct rest_call){.done = done, .ctx = ctx, .verb = call->verb};
                memcpy(mine->what, what.data, what.n + 1);
                if (call->fence && is_write(call->verb)) {
                        int n = hf_fence_format(call->fence, mine->fence, sizeof mine->fence);
                        r = n < 0 ? -EINVAL : 0; /* an unfenced write in its place would be worse */
                }
        }
        hf__strbuf_done(&what);
        if (r == 0)
                r = call_submit(rest, call, mine, ret_id);
        if (r != 0)
                free(mine);
        return r;
}

static void rest_cancel(struct hf_client *client, uint64_t id) { hf__http_cancel(rest_of(client)->engine, id); }

/* ---- the client ---- */

static void rest_free(struct hf_client *client) {
        struct hf__rest *rest = rest_of(client);

        (void)hf__http_engine_free(rest->engine);
        (void)hf__http_tls_unref(rest->tls);
        if (rest->authorization)
                explicit_bzero(rest->authorization, strlen(rest->authorization));
        free(rest->authorization);
        free(rest->user_agent);
        free(rest->server);
        free(rest);
}

static const struct hf_client_ops rest_ops = {
        .call = rest_call,
        .cancel = rest_cancel,
        .watch = hf__rest_watch,
        .watch_cancel = rest_cancel,
        .free = rest_free,
};

static bool line_ok(const char *text, size_t max) {
        size_t n = strnlen(text, max + 1);

        if (n == 0 || n > max)
                return false;
        for (size_t i = 0; i < n; i++)
                if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
                        return false;
        return true;
}

static int check_server(const char *server, bool *ret_tls, struct hf_status *reterr_status) {
        const char *host = NULL;

        if (!server || !line_ok(server, 2048) || strpbrk(server, " ?#@\\"))
                return hf_fail(reterr_status, HF_E_INVALID, "server URL \"%.200s\" is not of the form https://host:port",
                               server ? server : "");
        if (strncmp(server, "https://", 8) == 0)
                host = server + 8;
        else if (strncmp(server, "http://", 7) == 0)
                host = server + 7;
        if (!host || !host[0] || host[0] == '/' || host[0] == ':')
                return hf_fail(reterr_status, HF_E_INVALID, "server URL \"%.200s\" is not of the form https://host:port", server);
        *ret_tls = server[4] == 's';
        return 0;
}

static int check_config(const struct hf_rest_config *config, bool *ret_tls, struct hf_status *reterr_status) {
        int r = check_server(config->server, ret_tls, reterr_status);
        if (r != 0)
                return r;
        if (!config->cert_pem != !config->key_pem)
                return hf_fail(reterr_status, HF_E_INVALID, "a client certificate needs its key, and a key its certificate");
        if (config->insecure && config->ca_pem)
                return hf_fail(reterr_status, HF_E_INVALID, "a CA together with skipping verification contradict each other");
        if (config->bearer_token && !line_ok(config->bearer_token, MAX_CREDENTIAL))
                return hf_fail(reterr_status, HF_E_INVALID, "the bearer token is empty, too long or has control characters");
        if (config->user_agent && !line_ok(config->user_agent, 256))
                return hf_fail(reterr_status, HF_E_INVALID, "the user agent is empty, too long or has control characters");
        if (config->timeout < 0)
                return hf_fail(reterr_status, HF_E_INVALID, "the timeout is negative");
        return 0;
}

static int copy_texts(struct hf__rest *rest, const struct hf_rest_config *config) {
        size_t n = strlen(config->server);

        while (n > 0 && config->server[n - 1] == '/')
                n--;
        rest->server = strndup(config->server, n);
        if (asprintf(&rest->user_agent, "User-Agent: %s", config->user_agent ? config->user_agent : "holdfast") < 0)
                rest->user_agent = NULL;
        if (!rest->server || !rest->user_agent)
                return -ENOMEM;
        if (config->bearer_token && asprintf(&rest->authorization, "Authorization: Bearer %s", config->bearer_token) < 0) {
                rest->authorization = NULL;
                return -ENOMEM;
        }
        return 0;
}

int hf_rest_client_new(const struct hf_host *host, const struct hf_rest_config *config, struct hf_client **ret_client,
                       struct hf_status *reterr_status) {
        bool over_tls = false;

        if (!host || !config || !ret_client)
                return hf_fail(reterr_status, -EINVAL, "a REST client needs a host and a configuration");
        int r = check_config(config, &over_tls, reterr_status);
        if (r != 0)
                return r;
        struct hf__rest *rest = calloc(1, sizeof *rest);
        if (!rest)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        rest->base = (struct hf_client){.ops = &rest_ops, .host = host};
        rest->timeout = config->timeout ? config->timeout : DEFAULT_TIMEOUT;
        r = copy_texts(rest, config);
        if (r == 0 && over_tls) {
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
                r = hf__http_engine_new(host, "hf-rest", &rest->engine);
        if (r != 0) {
                rest_free(&rest->base);
                return hf_fail(reterr_status, r, "the client for %.200s could not be made: %s", config->server, hf_strerror(r));
        }
        *ret_client = &rest->base;
        return 0;
}

int hf_rest_client_from_kubeconfig(const struct hf_host *host, const char *path, struct hf_client **ret_client,
                                   struct hf_status *reterr_status) {
        struct hf__kubeconfig config;

        int r = hf__kubeconfig_load(path, &config, reterr_status);
        if (r != 0)
                return r;
        r = hf_rest_client_new(host, &config.rest, ret_client, reterr_status);
        hf__kubeconfig_done(&config);
        return r;
}
