/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Health endpoints.
 *
 * Invariant: a response shows which checks failed but not why, because every client may read it
 * without authentication, and a reason may contain an address or an object's name. An endpoint with
 * all checks logs the reasons. The endpoint of a single check returns the reason, but only to
 * administrators.
 */
#include "server/handlers/healthz.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/strbuf.h"
#include "server/filters/request/query.h"
#include "server/filters/request_context.h"
#include "server/filters/status_response.h"
#include "server/handlers/health_slis.h"
#include "server/handlers/read_endpoint.h"

/* Limits for one request, because anonymous clients may send it, too. No server has nearly so many
 * checks. */
#define EXCLUDES_MAX 32                  /* different values of ?exclude= */
#define CHECK_MAX    256                 /* bytes of a check's name, with the NUL */
#define LINES_MAX    ((size_t)256 << 10) /* bytes of the verbose body */

/* One of the three endpoints: the ctx of its two routes. */
struct probe {
        struct hfd_healthz *healthz; /* borrowed: contains this */
        const char *name;            /* "readyz" */
        unsigned endpoint;           /* HF_READYZ */
};

struct hfd_healthz {
        /* immutable */
        const struct hf_host *host; /* borrowed */
        void (*on_ready)(void *ctx);
        void *ctx;
        struct hfd_health_slis *slis; /* owned */
        bool added_ping; /* this object added the check "ping", and removes it when it is freed */
        struct probe probes[3];

        atomic_flag has_been_ready; /* the thread that sets it calls on_ready */
};

static bool always_healthy(void *ctx, char *reason, size_t max_reason) { return true; }

int hfd_healthz_new(const struct hf_host *host, void (*on_ready)(void *ctx), void *ctx,
                    struct hfd_healthz **ret_healthz) {
        struct hfd_healthz *healthz = calloc(1, sizeof *healthz);
        int r;

        if (!healthz)
                return -ENOMEM;
        healthz->host = host;
        healthz->on_ready = on_ready;
        healthz->ctx = ctx;
        atomic_flag_clear(&healthz->has_been_ready);
        healthz->probes[0] = (struct probe){healthz, "healthz", HF_HEALTHZ};
        healthz->probes[1] = (struct probe){healthz, "livez", HF_LIVEZ};
        healthz->probes[2] = (struct probe){healthz, "readyz", HF_READYZ};
        r = hfd_health_slis_new(host, &healthz->slis);
        if (r != 0) {
                free(healthz);
                return r;
        }
        if (host->health)
                r = hf_health_add(host->health, "ping", HF_HEALTHZ | HF_LIVEZ | HF_READYZ,
                                  always_healthy, NULL);
        if (r != 0 && r != HF_E_EXISTS) {
                hfd_health_slis_free(healthz->slis);
                free(healthz);
                return r;
        }
        healthz->added_ping = host->health && r == 0;
        *ret_healthz = healthz;
        return 0;
}

struct hfd_healthz *hfd_healthz_free(struct hfd_healthz *healthz) {
        if (!healthz)
                return NULL;
        if (healthz->added_ping)
                hf_health_remove(healthz->host->health, "ping");
        hfd_health_slis_free(healthz->slis);
        free(healthz);
        return NULL;
}

/* ---- all checks of an endpoint ---- */

/* The different values of ?exclude=, and whether a check with that name exists. */
struct excludes {
        char names[EXCLUDES_MAX][CHECK_MAX];
        bool matched[EXCLUDES_MAX];
        size_t n;
};

/*
 * The result of all checks, for one request. It is allocated on the heap, because the excludes
 * would take too much of a worker's stack.
 */
struct report {
        const struct probe *probe; /* borrowed */
        const struct hf_log *log;  /* borrowed */
        struct excludes excludes;
        struct hf__strbuf lines; /* the verbose body */
        size_t n_checks, n_failed;
};

/* The index of name in excludes; excludes->n = not found. */
static size_t find_exclude(const struct excludes *excludes, const char *name) {
        size_t i = 0;

        while (i < excludes->n && strcmp(excludes->names[i], name) != 0)
                i++;
        return i;
}

/* False: the query has too many values, or one that is too long or cannot be decoded. */
static bool read_excludes(const char *query, struct excludes *excludes) {
        char name[CHECK_MAX];

        for (;;) {
                int r = hfd_query_next(&query, "exclude", name, sizeof name);
                if (r == HF_E_NOT_FOUND)
                        return true;
                if (r != 0)
                        return false;
                if (!name[0] || find_exclude(excludes, name) < excludes->n)
                        continue;
                if (excludes->n == EXCLUDES_MAX)
                        return false;
                memcpy(excludes->names[excludes->n++], name, sizeof name);
        }
}

/* The callback of hf_health_each. */
static void report_check(void *ctx, const char *name, bool healthy, const char *reason) {
        struct report *report = ctx;
        size_t i = find_exclude(&report->excludes, name);

        report->n_checks++;
        if (i < report->excludes.n) {
                report->excludes.matched[i] = true;
                hf__strbuf_printf(&report->lines, "[+]%s excluded: ok\n", name);
                return;
        }
        hfd_health_slis_observe(report->probe->healthz->slis, name, report->probe->name, healthy);
        if (healthy) {
                hf__strbuf_printf(&report->lines, "[+]%s ok\n", name);
                return;
        }
        report->n_failed++;
        hf__strbuf_printf(&report->lines, "[-]%s failed: reason withheld\n", name);
        hf_log(report->log, HF_LOG_INFO, "health", "%s check %s failed: %s", report->probe->name,
               name, reason);
}

/* Adds a warning for the values of ?exclude= that match no check. */
static void add_warning(struct report *report) {
        const char *separator = "warn: some health checks cannot be excluded: no matches for ";
        bool warned = false;

        for (size_t i = 0; i < report->excludes.n; i++) {
                if (report->excludes.matched[i])
                        continue;
                hf__strbuf_printf(&report->lines, "%s\"%s\"", separator, report->excludes.names[i]);
                separator = ",";
                warned = true;
        }
        if (warned)
                hf__strbuf_putc(&report->lines, '\n');
}

static void send_report(struct hfd_http_request *request, struct report *report,
                        const char *query) {
        char ignored[2];
        bool failed = report->n_failed > 0,
             verbose = hfd_query_get(query, "verbose", ignored, sizeof ignored) != HF_E_NOT_FOUND;

        hf__strbuf_printf(&report->lines, "%s check %s\n", report->probe->name,
                          failed ? "failed" : "passed");
        if (report->lines.error != 0)
                hfd_read_endpoint_no_memory(request);
        else if (failed || verbose)
                hfd_status_response_text(request, failed ? 500 : 200, report->lines.data, 0, false);
        else
                hfd_status_response_text(request, 200, "ok", 0, false);
}

static void handle_all_checks(struct probe *probe, struct hfd_http_request *request) {
        struct hfd_healthz *healthz = probe->healthz;
        const char *query = hfd_http_request_query(request);
        struct report *report = calloc(1, sizeof *report);

        if (!report) {
                hfd_read_endpoint_no_memory(request);
                return;
        }
        report->probe = probe;
        report->log = &healthz->host->log;
        report->lines.max = LINES_MAX;
        if (!read_excludes(query, &report->excludes)) {
                hfd_status_response_text(request, 400, "too many or too long values of exclude\n",
                                         0, false);
                free(report);
                return;
        }
        if (healthz->host->health)
                (void)hf_health_each(healthz->host->health, probe->endpoint, report_check, report);
        /* Without any check, the response still looks like that of Kubernetes. */
        if (report->n_checks == 0)
                report_check(report, "ping", true, "");
        add_warning(report);
        send_report(request, report, query);
        /* If the client excluded a check, success does not prove that the server is ready. */
        if (probe->endpoint == HF_READYZ && report->n_failed == 0 && report->excludes.n == 0 &&
            !atomic_flag_test_and_set(&healthz->has_been_ready) && healthz->on_ready)
                healthz->on_ready(healthz->ctx);
        hf__strbuf_done(&report->lines);
        free(report);
}

/* ---- one check ---- */

struct check_result {
        const char *name;
        bool found, healthy;
        char reason[600]; /* as long as a check's reason may be (base/health.c) */
};

/* The callback of hf_health_each. All checks of the endpoint run, because health.h has no function
 * that runs a single one. */
static void find_check(void *ctx, const char *name, bool healthy, const char *reason) {
        struct check_result *result = ctx;

        if (strcmp(name, result->name) != 0)
                return;
        result->found = true;
        result->healthy = healthy;
        (void)snprintf(result->reason, sizeof result->reason, "%s", reason ? reason : "");
}

static void handle_one_check(struct probe *probe, struct hfd_http_request *request,
                             const char *name) {
        struct hf_health *health = probe->healthz->host->health;
        struct check_result result = {.name = name};
        char text[700];

        if (health)
                (void)hf_health_each(health, probe->endpoint, find_check, &result);
        if (!result.found) {
                hfd_status_response_text(request, 404, "404 page not found\n", 0, false);
                return;
        }
        if (result.healthy) {
                hfd_status_response_text(request, 200, "ok", 0, false);
                return;
        }
        const struct hfd_request_context *context = hfd_request_context(request);
        bool may_see = context && context->is_admin;
        (void)snprintf(text, sizeof text, "internal server error: %s\n",
                       may_see ? result.reason : "reason withheld");
        hfd_status_response_text(request, 500, text, 0, false);
}

/* ---- routes ---- */

/* The handler of both routes of a probe, for example "/readyz" and "/readyz/". */
static void handle_probe(void *ctx, struct hfd_http_request *request) {
        struct probe *probe = ctx;
        const char *path = hfd_http_request_path(request);
        size_t n_prefix = 1 + strlen(probe->name);

        assert(strlen(path) >= n_prefix); /* the router matched the prefix */
        if (hfd_read_endpoint_accepts(request, true)) {
                const char *rest = path + n_prefix; /* "", "/" or "/NAME" */
                if (rest[0] == '/' && rest[1])
                        handle_one_check(probe, request, rest + 1);
                else
                        handle_all_checks(probe, request);
        }
        hfd_http_request_unref(request);
}

int hfd_healthz_install(struct hfd_healthz *healthz, struct hfd_router *router) {
        char path[32];
        int r = 0;

        for (size_t i = 0; i < sizeof healthz->probes / sizeof healthz->probes[0]; i++) {
                struct probe *probe = &healthz->probes[i];
                (void)snprintf(path, sizeof path, "/%s/", probe->name);
                if (r == 0)
                        r = hfd_router_add(router, path, handle_probe, probe);
                path[strlen(path) - 1] = '\0';
                if (r == 0)
                        r = hfd_router_add(router, path, handle_probe, probe);
        }
        if (r == 0)
                r = hfd_router_add(router, "/metrics/slis", hfd_health_slis_handle, healthz->slis);
        return r;
}
