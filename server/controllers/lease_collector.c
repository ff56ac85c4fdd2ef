/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector of dead identity Leases: an instance that ended without deleting its Lease is forgotten after the recorded
 * duration.
 *
 * What counts is how long *we* have seen no renewal (boot time of the last change of renewTime that this leader
 * observed), never the difference of two machines' clocks; so a new leader waits a full duration before it deletes.
 * The delete names uid and resourceVersion: a Lease that was renewed in between stays.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/reconciler.h>

#include "base/json.h"
#include "server/controllers/controllers.h"

#define MAX_SEEN 4096 /* identity Leases watched at a time; more are looked at when others are gone */

struct seen {
        char key[HF_NAME_MAX * 2 + 2];
        char renewed[40]; /* renewTime as it was written */
        hf_nsec at;       /* boot time when it last changed */
};

struct collector {
        struct hfd_controllers *controllers; /* borrowed */
        /* owner thread only */
        struct seen *seen; /* owned; n_seen of n_space */
        size_t n_seen, n_space;
};

static struct seen *find(struct collector *collector, const char *key) {
        for (size_t i = 0; i < collector->n_seen; i++)
                if (strcmp(collector->seen[i].key, key) == 0)
                        return &collector->seen[i];
        return NULL;
}

static struct seen *remember(struct collector *collector, const char *key) {
        if (collector->n_seen == collector->n_space) {
                size_t n = collector->n_space ? collector->n_space * 2 : 16;
                struct seen *grown = n <= MAX_SEEN ? realloc(collector->seen, n * sizeof *grown) : NULL;
                if (!grown)
                        return NULL;
                collector->seen = grown;
                collector->n_space = n;
        }
        struct seen *seen = &collector->seen[collector->n_seen++];
        *seen = (struct seen){0};
        (void)snprintf(seen->key, sizeof seen->key, "%s", key);
        return seen;
}

static void forget(struct collector *collector, const char *key) {
        struct seen *seen = find(collector, key);
        if (seen)
                *seen = collector->seen[--collector->n_seen];
}

static int delete_lease(struct hf_term *term, const struct hf__json *lease, const char *ns, const char *name) {
        static const struct hf_resource leases = {"coordination.k8s.io", "v1", "leases"};
        const char *uid = hf__json_string(lease, "metadata.uid"), *rv = hf__json_string(lease, "metadata.resourceVersion");
        char body[512];
        struct hf_status status;

        int n = snprintf(body, sizeof body,
                         "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"preconditions\":{\"uid\":\"%s\",\"resourceVersion\":\"%s\"}}",
                         uid ? uid : "", rv ? rv : "");
        if (n < 0 || (size_t)n >= sizeof body)
                return HF_E_INVALID;
        struct hf_call call = {.verb = HF_VERB_DELETE, .resource = leases, .ns = ns, .name = name, .body = body, .n_body = (size_t)n};
        int r = hf_client_do(hf_term_client(term), &call, hf_term_abort(term), NULL, NULL, &status);
        if (r == 0)
                hf_log(&hf_term_host(term)->log, HF_LOG_NOTICE, "identity-lease-collector",
                       "deleted the Lease %s/%s of an instance that is gone", ns, name);
        return r == HF_E_NOT_FOUND || r == HF_E_CONFLICT ? 0 : r; /* gone, or alive after all */
}

static int look_at(struct collector *collector, struct hf_term *term, const char *key, const struct hf__json *lease, hf_nsec *ret_again) {
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1];
        hf_nsec now = hf_now(hf_host_clock(hf_term_host(term)));
        const char *renewed = hf__json_string(lease, "spec.renewTime");
        int64_t seconds = 0;
        struct seen *seen = find(collector, key);

        if (!hf__json_i64(lease, "spec.leaseDurationSeconds", &seconds) || seconds <= 0 || seconds > 86400)
                seconds = HFD_IDENTITY_SECONDS;
        hf_nsec duration = seconds * HF_NSEC_PER_SEC;
        if (!seen && !(seen = remember(collector, key)))
                return -ENOMEM;
        if (seen->at == 0 || strcmp(seen->renewed, renewed ? renewed : "") != 0) {
                seen->at = now;
                (void)snprintf(seen->renewed, sizeof seen->renewed, "%s", renewed ? renewed : "");
        }
        if (now < seen->at + duration) {
                *ret_again = seen->at + duration - now + 50 * HF_NSEC_PER_MSEC;
                return 0;
        }
        int r = hf_key_split(key, ns, name);
        return r ? r : delete_lease(term, lease, ns, name);
}

static int reconcile(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        struct collector *collector = ctx;
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1];
        struct hf__json *lease;
        char *text;
        size_t n;

        int r = hf_key_split(key, ns, name);
        if (r == 0)
                r = hf_cache_get(collector->controllers->identity_leases, ns, name, &text, &n);
        if (r == HF_E_NOT_FOUND)
                forget(collector, key);
        if (r)
                return r == HF_E_NOT_FOUND ? 0 : r;
        r = hf__json_parse(text, n, &lease, NULL);
        free(text);
        if (r)
                return r;
        r = look_at(collector, term, key, lease, ret_again);
        hf__json_free(lease);
        return r;
}

int hfd_run_lease_collector(struct hf_term *term, void *ctx) {
        struct collector collector = {.controllers = ctx};
        const struct hf_reconciler_source source = {.cache = collector.controllers->identity_leases};
        const struct hf_reconciler reconciler = {
                .size = sizeof reconciler,
                .name = "identity-lease-collector",
                .sources = &source,
                .n_sources = 1,
                .reconcile = reconcile,
                .ctx = &collector,
        };
        int r = hf_reconciler_run(&reconciler, term);

        free(collector.seen);
        return r;
}
