/* SPDX-License-Identifier: Apache-2.0 */
#include "server/handlers/healthz.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/filters/query.h"
#include "server/filters/status_response.h"
#include "server/handlers/process_metrics.h"
#include "server/handlers/version.h"

#define MAX_EXCLUDES 32
#define MAX_CHECK    256 /* bytes of a check's name, with the NUL */

/* One of the three health endpoints. */
struct probe {
        struct hfd_healthz *healthz; /* borrowed: contains this */
        const char *name;            /* "readyz" */
        unsigned bit;                /* of health.h */
};

struct hfd_healthz {
        const struct hf_host *host; /* borrowed */
        void (*on_ready)(void *ctx);
        void *ctx;
        atomic_flag has_been_ready;
        bool added_ping;
        struct probe probes[3];
        struct hfd_process_metrics *process; /* owned */
};

static bool always_healthy(void *ctx, char *reason, size_t max_reason) { return true; }

int hfd_healthz_new(const struct hf_host *host, void (*on_ready)(void *ctx), void *ctx,
                    struct hfd_healthz **ret_endpoints) {
        struct hfd_healthz *healthz = calloc(1, sizeof *healthz);
        if (!healthz)
                return -ENOMEM;
        healthz->host = host;
        healthz->on_ready = on_ready;
        healthz->ctx = ctx;
        atomic_flag_clear(&healthz->has_been_ready);
        healthz->probes[0] = (struct probe){healthz, "healthz", HF_HEALTHZ};
        healthz->probes[1] = (struct probe){healthz, "livez", HF_LIVEZ};
        healthz->probes[2] = (struct probe){healthz, "readyz", HF_READYZ};
        int r = host->health
                        ? hf_health_add(host->health, "ping", HF_HEALTHZ | HF_LIVEZ | HF_READYZ,
                                        always_healthy, NULL)
                        : 0;
        healthz->added_ping = host->health && r == 0;
        if (r == 0 || r == HF_E_EXISTS)
                r = hfd_process_metrics_new(host, &healthz->process);
        if (r != 0) {
                hfd_healthz_free(healthz);
                return r;
        }
        *ret_endpoints = healthz;
        return 0;
}

struct hfd_healthz *hfd_healthz_free(struct hfd_healthz *healthz) {
        if (!healthz)
                return NULL;
        if (healthz->added_ping)
                hf_health_remove(healthz->host->health, "ping");
        hfd_process_metrics_free(healthz->process);
        free(healthz);
        return NULL;
}

/* ---- health ---- */

/* What ?exclude= says, and which of it met a check. */
struct excludes {
        char names[MAX_EXCLUDES][MAX_CHECK];
        bool met[MAX_EXCLUDES];
        size_t n;
};

/* One round over the checks of an endpoint. */
struct round {
        const struct probe *probe;
        const struct hf_log *log;
        struct excludes excludes;
        struct hf__strbuf lines;
        size_t n_checks, n_failed;
};

static bool exclude(struct excludes *excludes, const char *name) {
        bool found = false;
        for (size_t i = 0; i < excludes->n; i++)
                if (strcmp(excludes->names[i], name) == 0)
                        found = excludes->met[i] = true;
        return found;
}

static void add_check(void *ctx, const char *name, bool healthy, const char *reason) {
        struct round *round = ctx;
        round->n_checks++;
        if (exclude(&round->excludes, name)) {
                hf__strbuf_printf(&round->lines, "[+]%s excluded: ok\n", name);
                return;
        }
        if (healthy) {
                hf__strbuf_printf(&round->lines, "[+]%s ok\n", name);
                return;
        }
        /* The endpoint is public: the reason is for the log. */
        round->n_failed++;
        hf__strbuf_printf(&round->lines, "[-]%s failed: reason withheld\n", name);
        hf_log(round->log, HF_LOG_INFO, "health", "%s check %s failed: %s", round->probe->name,
               name, reason);
}

static void add_unmet(struct round *round) {
        bool first = true;
        for (size_t i = 0; i < round->excludes.n; i++) {
                if (round->excludes.met[i])
                        continue;
                hf__strbuf_puts(&round->lines, first ? "warn: some health checks cannot be "
                                                       "excluded: no matches for "
                                                     : ",");
                hf__strbuf_printf(&round->lines, "\"%s\"", round->excludes.names[i]);
                first = false;
        }
        if (!first)
                hf__strbuf_putc(&round->lines, '\n');
}

/* False: more, or longer ones, than any caller means. A name given twice counts once. */
static bool read_excludes(const char *query, struct excludes *excludes) {
        char name[MAX_CHECK];
        for (size_t i = 0;; i++) {
                int r = hfd_query_get(query, "exclude", i, name, sizeof name);
                if (r == HF_E_NOT_FOUND)
                        return true;
                if (r != 0)
                        return false;
                if (!name[0] || exclude(excludes, name)) /* marks it met: undone below */
                        continue;
                if (excludes->n == MAX_EXCLUDES)
                        return false;
                memcpy(excludes->names[excludes->n++], name, sizeof name);
        }
}

static void answer_round(struct hfd_http_request *request, struct round *round, const char *query) {
        const char *name = round->probe->name;
        char ignored[2];
        bool verbose =
                hfd_query_get(query, "verbose", 0, ignored, sizeof ignored) != HF_E_NOT_FOUND;
        hf__strbuf_printf(&round->lines, "%s check %s\n", name,
                          round->n_failed > 0 ? "failed" : "passed");
        const char *text = round->n_failed == 0 && !verbose ? "ok" : round->lines.data;
        if (round->lines.error || !text)
                hfd_status_response_text(request, 500, "internal server error: out of memory\n", 0,
                                         false);
        else
                hfd_status_response_text(request, round->n_failed > 0 ? 500 : 200, text, 0, false);
}

static void handle_probe(struct probe *probe, struct hfd_http_request *request) {
        struct hfd_healthz *healthz = probe->healthz;
        const char *query = hfd_http_request_query(request);
        struct round *round = calloc(1, sizeof *round);
        if (!round) {
                hfd_status_response_text(request, 500, "internal server error: out of memory\n", 0,
                                         false);
                return;
        }
        round->probe = probe;
        round->log = &healthz->host->log;
        round->lines.max = 256 * 1024;
        if (!read_excludes(query, &round->excludes)) {
                hfd_status_response_text(request, 400, "too many or too long values of exclude\n",
                                         0, false);
                free(round);
                return;
        }
        memset(round->excludes.met, 0, sizeof round->excludes.met);
        if (healthz->host->health)
                (void)hf_health_each(healthz->host->health, probe->bit, add_check, round);
        if (round->n_checks == 0)
                add_check(round, "ping", true, "");
        add_unmet(round);
        answer_round(request, round, query);
        /* A round with checks left out proves nothing. */
        if (probe->bit == HF_READYZ && round->n_failed == 0 && round->excludes.n == 0 &&
            !atomic_flag_test_and_set(&healthz->has_been_ready) && healthz->on_ready)
                healthz->on_ready(healthz->ctx);
        hf__strbuf_done(&round->lines);
        free(round);
}

/* A look at one check. */
struct single {
        const char *name;
        bool found, healthy;
        char reason[600];
};

static void pick_check(void *ctx, const char *name, bool healthy, const char *reason) {
        struct single *single = ctx;
        if (strcmp(name, single->name) != 0)
                return;
        single->found = true;
        single->healthy = healthy;
        (void)snprintf(single->reason, sizeof single->reason, "%s", reason ? reason : "");
}

static void handle_single(struct probe *probe, struct hfd_http_request *request, const char *name) {
        struct single single = {.name = name};
        char text[700];
        if (probe->healthz->host->health)
                (void)hf_health_each(probe->healthz->host->health, probe->bit, pick_check, &single);
        if (!single.found) {
                hfd_status_response_text(request, 404, "404 page not found\n", 0, false);
                return;
        }
        (void)snprintf(text, sizeof text, "internal server error: %s\n", single.reason);
        hfd_status_response_text(request, single.healthy ? 200 : 500, single.healthy ? "ok" : text,
                                 0, false);
}

/* ---- handlers: each consumes the request's reference ---- */

static bool is_read(struct hfd_http_request *request) {
        const char *method = hfd_http_request_method(request);
        if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)
                return true;
        const struct hf_status status =
                {.http_code = 405,
                 .message = "the server does not allow this method on the requested resource"};
        hfd_status_response(request, &status);
        return false;
}

static void on_health(void *ctx, struct hfd_http_request *request) {
        struct probe *probe = ctx;
        const char *rest =
                hfd_http_request_path(request) + 1 + strlen(probe->name); /* "" or "/..." */
        if (is_read(request)) {
                if (rest[0] == '/' && rest[1])
                        handle_single(probe, request, rest + 1);
                else
                        handle_probe(probe, request);
        }
        hfd_http_request_unref(request);
}

static void reply_body(struct hfd_http_request *request, const char *content_type,
                       struct hf__strbuf *body) {
        struct hf__buf *buf = hf__strbuf_to_buf(body);
        if (buf)
                hfd_http_request_reply(request, 200, content_type,
                                       &(struct hfd_header){"cache-control", "no-cache, private"},
                                       1, buf);
        else
                hfd_status_response_text(request, 500, "internal server error: out of memory\n", 0,
                                         false);
        hf__buf_unref(buf);
}

static void on_version(void *ctx, struct hfd_http_request *request) {
        struct hf__strbuf body = {0};
        if (is_read(request)) {
                hf__strbuf_puts(&body, "{\n  \"major\": \"" HFD_KUBERNETES_MAJOR
                                       "\",\n  \"minor\": \"" HFD_KUBERNETES_MINOR
                                       "\",\n  \"gitVersion\": \"" HFD_GIT_VERSION
                                       "\",\n  \"gitCommit\": \"\",\n  \"gitTreeState\": \"\",\n"
                                       "  \"buildDate\": \"1970-01-01T00:00:00Z\",\n  "
                                       "\"goVersion\": \"none\",\n  \"compiler\": \"" __VERSION__
                                       "\",\n  \"platform\": \"linux\"\n}\n");
                reply_body(request, "application/json", &body);
        }
        hf__strbuf_done(&body);
        hfd_http_request_unref(request);
}

static void add_text(void *ctx, const char *text, size_t n) { hf__strbuf_add(ctx, text, n); }

static void on_metrics(void *ctx, struct hfd_http_request *request) {
        const struct hfd_healthz *healthz = ctx;
        struct hf__strbuf body = {.max = (size_t)16 << 20};
        if (is_read(request)) {
                hf__strbuf_puts(&body, "");
                if (healthz->host->metrics)
                        hf_metrics_write(healthz->host->metrics, add_text, &body);
                reply_body(request, "text/plain; version=0.0.4; charset=utf-8", &body);
        }
        hf__strbuf_done(&body);
        hfd_http_request_unref(request);
}

int hfd_healthz_install(struct hfd_healthz *healthz, struct hfd_router *router) {
        char path[32];
        int r = hfd_router_add(router, "/version", on_version, healthz);
        if (r == 0)
                r = hfd_router_add(router, "/metrics", on_metrics, healthz);
        for (size_t i = 0; r == 0 && i < sizeof healthz->probes / sizeof healthz->probes[0]; i++) {
                (void)snprintf(path, sizeof path, "/%s/", healthz->probes[i].name);
                r = hfd_router_add(router, path, on_health, &healthz->probes[i]);
                path[strlen(path) - 1] = '\0';
                if (r == 0)
                        r = hfd_router_add(router, path, on_health, &healthz->probes[i]);
        }
        return r;
}
