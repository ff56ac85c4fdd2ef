/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity Lease: says that this incarnation of an instance is alive, and where it serves.
 * Every instance keeps one, leading or not: created, renewed every HFD_IDENTITY_RENEW_SECONDS,
 * deleted on a clean stop. Losing it to a collector (after a long pause) is mended by creating it
 * again.
 *
 * It is deleted as soon as the process begins to stop, before the leader's work drains
 * (hfd_controllers_leave).
 *
 * The object as last answered by the server is kept, so that a renewal is one PUT; after any doubt
 * it is dropped and the next round begins with a create, or with a read where that says it exists.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"
#include "server/controllers/controllers.h"

#define RETRY (1 * HF_NSEC_PER_SEC)
#define PATIENCE                                                                                   \
        (3 * HF_NSEC_PER_SEC) /* for one call: a store that hangs must not hold the shutdown for   \
                                 longer */

static const struct hf_resource leases = {"coordination.k8s.io", "v1", "leases"};

static hf_nsec patience(struct hf_term *term) {
        return hf_now(hf_host_clock(hf_term_host(term))) + PATIENCE;
}

static void now_text(struct hf_term *term, char *text) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));
        hf__microtime_format(clock->real(clock->ctx) / 1000, text);
}

/* The Lease as it is first created. NULL = out of memory. */
static struct hf__json *new_lease(struct hf_term *term, const struct hfd_identity *me) {
        struct hf__json *lease = hf__json_object(), *labels = hf__json_object(),
                        *annotations = hf__json_object();
        char now[HF__MICROTIME_MAX];
        int r = lease && labels && annotations ? 0 : -ENOMEM;

        now_text(term, now);
        /* Keys with dots are members of their own, so these two objects are filled before they are
         * hung in. */
        if (r == 0)
                r = hf__json_set_key(labels, HFD_IDENTITY_LABEL, HFD_IDENTITY_VALUE);
        if (r == 0)
                r = hf__json_set_key(annotations, "holdfast.dev/endpoint", me->endpoint);
        if (r == 0)
                r = hf__json_set_key(annotations, "holdfast.dev/instance", me->instance);
        if (r == 0)
                r = hf__json_set_key(annotations, "holdfast.dev/host", me->host);
        if (r == 0)
                r = hf__json_set_string(lease, "kind", "Lease");
        if (r == 0)
                r = hf__json_set_string(lease, "apiVersion", "coordination.k8s.io/v1");
        if (r == 0)
                r = hf__json_set_string(lease, "metadata.name", me->lease_name);
        if (r == 0)
                r = hf__json_set_string(lease, "metadata.namespace", HFD_SYSTEM_NAMESPACE);
        if (r == 0) {
                r = hf__json_set(lease, "metadata.labels", labels);
                labels = NULL; /* consumed */
        }
        if (r == 0) {
                r = hf__json_set(lease, "metadata.annotations", annotations);
                annotations = NULL; /* consumed */
        }
        if (r == 0)
                r = hf__json_set_string(lease, "spec.holderIdentity", me->identity);
        if (r == 0)
                r = hf__json_set_i64(lease, "spec.leaseDurationSeconds", HFD_IDENTITY_SECONDS);
        if (r == 0)
                r = hf__json_set_string(lease, "spec.acquireTime", now);
        hf__json_free(labels);
        hf__json_free(annotations);
        return r == 0 ? lease : hf__json_free(lease);
}

/* Sends lease (create or update) and puts the server's answer in its place; on failure *lease is
 * dropped. */
static int send_lease(struct hf_term *term, const struct hfd_identity *me, enum hf_verb verb,
                      struct hf__json **lease) {
        struct hf__strbuf body = {0};
        char now[HF__MICROTIME_MAX], *response = NULL;
        struct hf_status status;
        size_t n = 0;

        now_text(term, now);
        int r = hf__json_set_string(*lease, "spec.renewTime", now);
        if (r == 0) {
                hf__json_print(*lease, &body);
                r = body.error;
        }
        if (r == 0) {
                struct hf_request request = {.verb = verb,
                                             .resource = leases,
                                             .ns = HFD_SYSTEM_NAMESPACE,
                                             .name = verb == HF_VERB_UPDATE ? me->lease_name : NULL,
                                             .deadline = patience(term),
                                             .body = body.data,
                                             .n_body = body.n};
                r = hf_client_do(hf_term_client(term), &request, hf_term_abort(term), &response, &n,
                                 &status);
        }
        hf__strbuf_done(&body);
        *lease = hf__json_free(*lease);
        if (r == 0)
                r = hf__json_parse(response, n, lease, NULL);
        free(response);
        return r;
}

static int read_lease(struct hf_term *term, const struct hfd_identity *me,
                      struct hf__json **lease) {
        struct hf_request request = {.verb = HF_VERB_GET,
                                     .resource = leases,
                                     .ns = HFD_SYSTEM_NAMESPACE,
                                     .name = me->lease_name,
                                     .deadline = patience(term)};
        struct hf_status status;
        char *response = NULL;
        size_t n = 0;
        int r = hf_client_do(hf_term_client(term), &request, hf_term_abort(term), &response, &n,
                             &status);

        if (r == 0)
                r = hf__json_parse(response, n, lease, NULL);
        free(response);
        return r;
}

static int keep(struct hf_term *term, const struct hfd_identity *me, struct hf__json **lease) {
        if (*lease)
                return send_lease(term, me, HF_VERB_UPDATE, lease);
        *lease = new_lease(term, me);
        if (!*lease)
                return -ENOMEM;
        int r = send_lease(term, me, HF_VERB_CREATE, lease);
        return r == HF_E_EXISTS ? read_lease(term, me, lease) : r;
}

static void delete_lease(struct hf_term *term, const struct hfd_identity *me) {
        struct hf_request request = {.verb = HF_VERB_DELETE,
                                     .resource = leases,
                                     .ns = HFD_SYSTEM_NAMESPACE,
                                     .name = me->lease_name,
                                     .deadline = patience(term)};
        struct hf_status status;

        /* A store that is gone keeps the Lease: the collector of the next leader deletes it. */
        (void)hf_client_do(hf_term_client(term), &request, hf_term_abort(term), NULL, NULL,
                           &status);
}

/* Renews until leave fires, then deletes. */
static void keep_until(struct hf_term *term, const struct hfd_controllers *controllers,
                       struct hf_cancel *leave) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));
        struct hf__json *lease = NULL;
        bool made = false;
        hf_nsec wait;

        do {
                int r = keep(term, controllers->identity, &lease);
                made = made || r == 0;
                wait = r == 0 ? HFD_IDENTITY_RENEW_SECONDS * HF_NSEC_PER_SEC : RETRY;
                if (r != 0 && r != HF_E_CANCELED)
                        hf_log(&hf_term_host(term)->log, HF_LOG_WARNING, "identity-lease",
                               "%s/%s: %s; will be tried again", HFD_SYSTEM_NAMESPACE,
                               controllers->identity->lease_name, hf_strerror(r));
        } while (hf_cancel_wait(leave, hf_now(clock) + wait) == HF_E_TIMEOUT);
        if (made && !hf_cancel_fired(hf_term_abort(term)))
                delete_lease(term, controllers->identity);
        hf__json_free(lease);
}

static void on_stopping(void *leave) { hf_cancel_fire(leave, HF_CANCEL_STOPPING); }

int hfd_run_identity_lease(struct hf_term *term, void *ctx) {
        struct hfd_controllers *controllers = ctx;
        struct hf_cancel_waker waker;
        struct hf_cancel *leave;
        int r = hf_cancel_new(hf_term_drain(term), hf_host_clock(hf_term_host(term)), &leave);

        if (r != 0)
                return r;
        atomic_store(&controllers->keeps_identity, true);
        hf_cancel_add_waker(controllers->stopping, &waker, on_stopping, leave);
        keep_until(term, controllers, leave);
        hf_cancel_remove_waker(&waker);
        hf_cancel_unref(leave);
        hf_cancel_fire(controllers->left, HF_CANCEL_STOPPING);
        return 0;
}
