/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Health endpoints. All clients may read them, so the list of all checks shows which ones failed
 * but not why; the reasons are logged. Only the endpoint of a single check returns the reason.
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
#include "server/filters/query.h"
#include "server/filters/status_response.h"
#include "server/handlers/read_endpoint.h"

#define EXCLUDES_MAX 32
#define CHECK_MAX    256 /* bytes of a check's name, with the NUL */
#define LINES_MAX    ((size_t)256 << 10)

/* One of the three endpoints. It is the context of its routes. */
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
        bool added_ping; /* this object added "ping" and must remove it */
        struct probe probes[3];

        atomic_flag has_been_ready; /* the thread that sets it calls on_ready */
};

static bool always_healthy(void *ctx, char *reason, size_t max_reason) { return true; }

int hfd_healthz_new(const struct hf_host *host, void (*on_ready)(void *ctx), void *ctx,
                    struct hfd_healthz **ret_healthz) {
        struct hfd_healthz *healthz = calloc(1, sizeof *healthz);
        int r = 0;

        if (!healthz)
                return -ENOMEM;
        healthz->host = host;
        healthz->on_ready = on_ready;
        healthz->ctx = ctx;
        atomic_flag_clear(&healthz->has_been_ready);
        healthz->probes[0] = (struct probe){healthz, "healthz", HF_HEALTHZ};
        healthz->probes[1] = (struct probe){healthz, "livez", HF_LIVEZ};
        healthz->probes[2] = (struct probe){healthz, "readyz", HF_READYZ};
        if (host->health)
                r = hf_health_add(host->health, "ping", HF_HEALTHZ | HF_LIVEZ | HF_READYZ,
                                  always_healthy, NULL);
        if (r != 0 && r != HF_E_EXISTS) {
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
        free(healthz);
        return NULL;
}

/* ---- all checks of an endpoint ---- */

/* The values of ?exclude=, each once, and which of them matched a check. */
struct excludes {
        char names[EXCLUDES_MAX][CHECK_MAX];
        bool matched[EXCLUDES_MAX];
        size_t n;
};

/* The state of one request for all checks. On the heap, because it is too large for the stack of a
 * worker. */
struct round {
        const struct probe *probe;
        const struct hf_log *log;
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

/* False: the query has more values, or longer ones, than checks can have. */
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
static void add_check(void *ctx, const char *name, bool healthy, const char *reason) {
        struct round *round = ctx;
        size_t i = find_exclude(&round->excludes, name);

        round->n_checks++;
        if (i < round->excludes.n) {
                round->excludes.matched[i] = true;
                hf__strbuf_printf(&round->lines, "[+]%s excluded: ok\n", name);
                return;
        }
        if (healthy) {
                hf__strbuf_printf(&round->lines, "[+]%s ok\n", name);
                return;
        }
        round->n_failed++;
        hf__strbuf_printf(&round->lines, "[-]%s failed: reason withheld\n", name);
        hf_log(round->log, HF_LOG_INFO, "health", "%s check %s failed: %s", round->probe->name,
               name, reason);
}

/* Adds a warning for the values of ?exclude= that match no check. */
static void add_warning(struct round *round) {
        const char *separator = "warn: some health checks cannot be excluded: no matches for ";
        bool warned = false;

        for (size_t i = 0; i < round->excludes.n; i++) {
                if (round->excludes.matched[i])
                        continue;
                hf__strbuf_printf(&round->lines, "%s\"%s\"", separator, round->excludes.names[i]);
                separator = ",";
                warned = true;
        }
        if (warned)
                hf__strbuf_putc(&round->lines, '\n');
}

static void reply_round(struct hfd_http_request *request, struct round *round, const char *query) {
        char ignored[2];
        bool failed = round->n_failed > 0,
             verbose =
                     hfd_query_get(query, "verbose", ignored, sizeof ignored) != HF_E_NOT_FOUND;

        hf__strbuf_printf(&round->lines, "%s check %s\n", round->probe->name,
                          failed ? "failed" : "passed");
        if (round->lines.error != 0)
                hfd_read_endpoint_no_memory(request);
        else if (failed || verbose)
                hfd_status_response_text(request, failed ? 500 : 200, round->lines.data, 0, false);
        else
                hfd_status_response_text(request, 200, "ok", 0, false);
}

static void handle_all(struct probe *probe, struct hfd_http_request *request) {
        struct hfd_healthz *healthz = probe->healthz;
        const char *query = hfd_http_request_query(request);
        struct round *round = calloc(1, sizeof *round);

        if (!round) {
                hfd_read_endpoint_no_memory(request);
                return;
        }
        round->probe = probe;
        round->log = &healthz->host->log;
        round->lines.max = LINES_MAX;
        if (!read_excludes(query, &round->excludes)) {
                hfd_status_response_text(request, 400, "too many or too long values of exclude\n",
                                         0, false);
                free(round);
                return;
        }
        if (healthz->host->health)
                (void)hf_health_each(healthz->host->health, probe->endpoint, add_check, round);
        if (round->n_checks == 0)
                add_check(round, "ping", true, "");
        add_warning(round);
        reply_round(request, round, query);
        /* If the client excluded a check, success does not prove that the server is ready. */
        if (probe->endpoint == HF_READYZ && round->n_failed == 0 && round->excludes.n == 0 &&
            !atomic_flag_test_and_set(&healthz->has_been_ready) && healthz->on_ready)
                healthz->on_ready(healthz->ctx);
        hf__strbuf_done(&round->lines);
        free(round);
}

/* ---- one check ---- */

struct single {
        const char *name;
        bool found, healthy;
        char reason[600];
};

/* The callback of hf_health_each. It runs all checks, because there is no function to run one. */
static void pick_check(void *ctx, const char *name, bool healthy, const char *reason) {
        struct single *single = ctx;

        if (strcmp(name, single->name) != 0)
                return;
        single->found = true;
        single->healthy = healthy;
        (void)snprintf(single->reason, sizeof single->reason, "%s", reason ? reason : "");
}

static void handle_one(struct probe *probe, struct hfd_http_request *request, const char *name) {
        struct hf_health *health = probe->healthz->host->health;
        struct single single = {.name = name};
        char text[700];

        if (health)
                (void)hf_health_each(health, probe->endpoint, pick_check, &single);
        if (!single.found) {
                hfd_status_response_text(request, 404, "404 page not found\n", 0, false);
                return;
        }
        if (single.healthy) {
                hfd_status_response_text(request, 200, "ok", 0, false);
                return;
        }
        (void)snprintf(text, sizeof text, "internal server error: %s\n", single.reason);
        hfd_status_response_text(request, 500, text, 0, false);
}

/* ---- routes ---- */

/* The handler of "/readyz" and "/readyz/". */
static void handle_probe(void *ctx, struct hfd_http_request *request) {
        struct probe *probe = ctx;
        const char *path = hfd_http_request_path(request);
        size_t n_prefix = 1 + strlen(probe->name);

        assert(strlen(path) >= n_prefix); /* the router matched the prefix */
        if (hfd_read_endpoint_accepts(request)) {
                const char *rest = path + n_prefix; /* "", "/" or "/NAME" */
                if (rest[0] == '/' && rest[1])
                        handle_one(probe, request, rest + 1);
                else
                        handle_all(probe, request);
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
        return r;
}
