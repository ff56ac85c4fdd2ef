/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The servers of a REST client.
 *
 * A try that fails is followed by one at the next server, at once, in these cases:
 *
 *      the server certainly did not process it: the name has no    any request
 *      address, no connection came about or it broke before the
 *      request was sent, one side refused the other's
 *      certificate, or libcurl cannot use ours
 *      after the request was sent, the connection broke or memory  reads
 *      ran out, or a watch got no response head in time
 *      502 or 503                                                  reads
 *      429                                                         requests in HF_LANE_LEASE, as
 *                                                                  they do not wait for Retry-After
 *
 * Invariant: a write is sent to a second server only if the first certainly did not process it.
 *
 * A 503 alone does not prove that for a write: a proxy may send it after the server has processed
 * the request.
 */
#include "client/rest_servers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/http/engine.h"
#include "base/http/head_text.h"
#include "base/redact.h"

/* Checks a server's URL. No query or fragment, because request paths are appended; no user info,
 * because credentials are separate settings. */
static int check_url(const char *url, bool *ret_tls, struct hf_status *reterr_status) {
        const char *host = NULL;

        if (url && hf__http_is_head_text(url, 2048) && !strpbrk(url, " ?#@\\")) {
                if (strncmp(url, "https://", 8) == 0)
                        host = url + 8;
                else if (strncmp(url, "http://", 7) == 0)
                        host = url + 7;
        }
        if (!host || !host[0] || host[0] == '/' || host[0] == ':') {
                char shown[201];

                return hf_fail(reterr_status, HF_E_INVALID,
                               "server URL \"%s\" must be http[s]://host[:port][/prefix], "
                               "without user info, query or fragment",
                               hf__redact(url ? url : "", shown, sizeof shown));
        }
        *ret_tls = url[4] == 's'; /* "https" */
        return 0;
}

/* Checks and adds a URL, without slashes at its end, because every path begins with one. */
static int add_url(struct hf__rest_servers *servers, const char *url,
                   struct hf_status *reterr_status) {
        bool over_tls = false;

        int r = check_url(url, &over_tls, reterr_status);
        if (r != 0)
                return r;
        if (servers->n > 0 && over_tls != servers->over_tls)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "server URLs \"%.200s\" and \"%.200s\": use https for all servers "
                               "of a client, or http for all",
                               servers->urls[0], url);
        size_t n = strlen(url);
        while (url[n - 1] == '/') /* ends at the host, which is not empty */
                n--;
        servers->urls[servers->n] = strndup(url, n);
        if (!servers->urls[servers->n])
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        servers->n++;
        servers->over_tls = over_tls;
        if (n > servers->max_url)
                servers->max_url = n;
        return 0;
}

int hf__rest_servers_init(struct hf__rest_servers *servers, const char *first,
                          const char *const *others, size_t n_others,
                          struct hf_status *reterr_status) {
        if (n_others > HF_REST_SERVERS_MAX - 1 || (n_others > 0 && !others))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "a client can have up to %d servers, and %zu are given",
                               HF_REST_SERVERS_MAX, n_others + 1);
        servers->urls = calloc(n_others + 1, sizeof *servers->urls);
        if (!servers->urls)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        int r = add_url(servers, first, reterr_status);
        for (size_t i = 0; r == 0 && i < n_others; i++)
                r = add_url(servers, others[i], reterr_status);
        return r;
}

void hf__rest_servers_done(struct hf__rest_servers *servers) {
        for (size_t i = 0; i < servers->n; i++)
                free(servers->urls[i]);
        free(servers->urls);
}

/* ---- routes ---- */

static void go_to(struct hf__rest_route *route, size_t server) {
        route->at = server;
        route->tried |= 1u << server;
}

void hf__rest_route_begin(struct hf__rest_route *route, struct hf__rest_servers *servers) {
        route->tried = 0;
        go_to(route, atomic_load_explicit(&servers->current, memory_order_relaxed));
}

bool hf__rest_route_next(struct hf__rest_route *route, struct hf__rest_servers *servers) {
        size_t current = atomic_load_explicit(&servers->current, memory_order_relaxed);

        for (size_t i = 0; i < servers->n; i++) {
                size_t server = (current + i) % servers->n;
                if (!(route->tried & 1u << server)) {
                        go_to(route, server);
                        return true;
                }
        }
        return false;
}

hf_nsec hf__rest_route_connect_timeout(const struct hf__rest_route *route,
                                       const struct hf__rest_servers *servers, hf_nsec left) {
        size_t n_untried = servers->n - (size_t)__builtin_popcount(route->tried);

        /* This server and each untried one get an equal share. */
        return n_untried > 0 && left > 0 ? left / (hf_nsec)(n_untried + 1) : 0;
}

/* Whether the result shows that the server does not serve, or does not serve in time. */
static bool is_away(const struct hf__http_result *result) {
        switch (result->outcome) {
        case 0:
                return result->code == 429 || result->code == 502 || result->code == 503 ||
                       result->code == 504;
        case HF_E_UNAVAILABLE:
        case HF_E_UNAUTHORIZED: return true;
        case HF_E_TIMEOUT: return result->code == 0;
        default: return false;
        }
}

/* Not after a 504: this server has waited already, and another one would wait as long. Only later
 * requests begin at another server (is_away). */
static bool may_go_on(const struct hf__http_result *result, bool is_write, enum hf_lane lane) {
        switch (result->outcome) {
        case 0:
                return (result->code == 429 && lane == HF_LANE_LEASE) ||
                       ((result->code == 502 || result->code == 503) && !is_write);
        case HF_E_UNAVAILABLE:
        case HF_E_UNAUTHORIZED: return true;
        case HF_E_TIMEOUT: return !is_write;
        default: return false;
        }
}

bool hf__rest_route_failed(const struct hf__rest_route *route, struct hf__rest_servers *servers,
                           const struct hf__http_result *result, bool is_write, enum hf_lane lane,
                           hf_nsec left) {
        size_t at = route->at;

        /* Compared, because another request may already have moved `current` for this failure. */
        if (is_away(result))
                (void)atomic_compare_exchange_strong_explicit(&servers->current, &at,
                                                              (at + 1) % servers->n,
                                                              memory_order_relaxed,
                                                              memory_order_relaxed);
        return left > 0 && may_go_on(result, is_write, lane);
}

void hf__rest_route_print(const struct hf__rest_route *route,
                          const struct hf__rest_servers *servers, const char *method,
                          const char *path, char *what) {
        what = stpcpy(what, method);
        *what++ = ' ';
        what = stpcpy(what, servers->urls[route->at]);
        (void)strcpy(what, path);
}
