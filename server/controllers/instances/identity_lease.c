/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity Lease shows that this incarnation of an instance is alive, and its URL. Every
 * instance has one, leading or not. It is created at the start, renewed every
 * HFD_IDENTITY_RENEW_SECONDS, and deleted on a clean stop. If this process was paused for long, the
 * leader's identity-lease-collector may have deleted the Lease; then it is created again.
 *
 * It is deleted as soon as the process begins to stop, before the leader's work drains; see
 * hfd_controllers_leave for the reason.
 *
 * Invariants:
 *
 *  - Each update is based on the object that the server returned last, so a renewal is one PUT with
 *    that resourceVersion. After an error the object is dropped. The next attempt then tries a
 *    create, and reads and updates the Lease if it exists.
 *  - Another client may have changed the Lease, and clients use the address in it. So each write
 *    sets again everything that the Lease says about this instance, except acquireTime. Members
 *    that other clients have added stay.
 *  - Each request has its own deadline: a store that does not respond must not delay the shutdown.
 *  - Requests use the ungated client, which also writes while this instance does not lead.
 */
#include "server/controllers/instances/identity_lease.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"
#include "server/controllers/context/controller_context.h"
#include "server/controllers/instances/identity.h"
#include "server/controllers/instances/peers.h"

#define RETRY_PERIOD    (1 * HF_NSEC_PER_SEC)
#define REQUEST_TIMEOUT (3 * HF_NSEC_PER_SEC)
#define DELETE_TIMEOUT  (500 * HF_NSEC_PER_MSEC) /* limit of hfd_identity_lease_wait_deleted */

static const struct hf_resource leases = {"coordination.k8s.io", "v1", "leases"};

static hf_nsec request_deadline(struct hf_term *term) {
        return hf_now(hf_host_clock(hf_term_host(term))) + REQUEST_TIMEOUT;
}

static void format_now(struct hf_term *term, char *text) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));
        hf__microtime_format(clock->real(clock->ctx) / 1000, text);
}

/* Makes the Lease to create; send_lease sets the rest. NULL = out of memory. */
static struct hf__json *new_lease(struct hf_term *term, const struct hfd_identity *identity) {
        struct hf__json *lease = hf__json_object();
        char now[HF__MICROTIME_MAX];
        int r = lease ? 0 : -ENOMEM;

        format_now(term, now);
        if (r == 0)
                r = hf__json_set_string(lease, "kind", "Lease");
        if (r == 0)
                r = hf__json_set_string(lease, "apiVersion", "coordination.k8s.io/v1");
        if (r == 0)
                r = hf__json_set_string(lease, "metadata.name", identity->lease_name);
        if (r == 0)
                r = hf__json_set_string(lease, "metadata.namespace", HFD_SYSTEM_NAMESPACE);
        if (r == 0)
                r = hf__json_set_string(lease, "spec.acquireTime", now);
        return r == 0 ? lease : hf__json_free(lease);
}

/* Finds or creates the object at the path. The caller sets labels and annotations in it by key,
 * because their keys contain dots, which hf__json_set would take for separators. */
static int get_object(struct hf__json *lease, const char *path, struct hf__json **ret_object) {
        int r = 0;

        if (!hf__json_is_object(hf__json_path(lease, path)))
                r = hf__json_set(lease, path, hf__json_object());
        *ret_object = hf__json_path(lease, path);
        return r;
}

/* A reload may have changed the CA since the last renewal. */
static int set_ca(struct hfd_peers *peers, struct hf__json *annotations) {
        char ca[HFD_PEERS_CA_MAX];

        hfd_peers_own_ca(peers, ca);
        if (ca[0])
                return hf__json_put_string(annotations, HFD_PEERS_ANNOTATION, ca);
        hf__json_drop(annotations, HFD_PEERS_ANNOTATION);
        return 0;
}

/* Sets everything that the Lease says about this instance, except the times. */
static int set_own_members(struct hf__json *lease, const struct hfd_controller_context *context) {
        const struct hfd_identity *identity = context->identity;
        struct hf__json *labels, *annotations;
        int r = get_object(lease, "metadata.labels", &labels);

        if (r == 0)
                r = get_object(lease, "metadata.annotations", &annotations);
        if (r == 0)
                r = hf__json_put_string(labels, HFD_IDENTITY_LABEL, HFD_IDENTITY_VALUE);
        if (r == 0)
                r = hf__json_put_string(annotations, "holdfast.dev/endpoint", identity->endpoint);
        if (r == 0)
                r = hf__json_put_string(annotations, "holdfast.dev/instance", identity->instance);
        if (r == 0)
                r = hf__json_put_string(annotations, "holdfast.dev/host", identity->host);
        if (r == 0)
                r = set_ca(context->peers, annotations);
        if (r == 0)
                r = hf__json_set_string(lease, "spec.holderIdentity", identity->identity);
        return r == 0 ? hf__json_set_i64(lease, "spec.leaseDurationSeconds", HFD_IDENTITY_SECONDS)
                      : r;
}

/*
 * Sets a new renewTime and the members about this instance, then creates or updates the Lease.
 * Replaces *lease by the object that the server returns. On failure *lease is NULL.
 */
static int send_lease(struct hf_term *term, const struct hfd_controller_context *context,
                      enum hf_verb verb, struct hf__json **lease) {
        const struct hfd_identity *identity = context->identity;
        struct hf__strbuf body = {0};
        char now[HF__MICROTIME_MAX], *response = NULL;
        struct hf_status status;
        size_t n = 0;

        assert(*lease && (verb == HF_VERB_CREATE || verb == HF_VERB_UPDATE));
        format_now(term, now);
        int r = hf__json_set_string(*lease, "spec.renewTime", now);
        if (r == 0)
                r = set_own_members(*lease, context);
        if (r == 0) {
                hf__json_print(*lease, &body);
                r = body.error;
        }
        if (r == 0) {
                struct hf_request request = {.size = sizeof request,
                                             .verb = verb,
                                             .resource = leases,
                                             .ns = HFD_SYSTEM_NAMESPACE,
                                             .name = verb == HF_VERB_UPDATE ? identity->lease_name
                                                                            : NULL,
                                             .deadline = request_deadline(term),
                                             .body = body.data,
                                             .n_body = body.n};
                r = hf_client_do(hf_term_ungated_client(term), &request, hf_term_abort(term),
                                 &response, &n, &status);
        }
        hf__strbuf_done(&body);
        *lease = hf__json_free(*lease);
        if (r == 0)
                r = hf__json_parse(response, n, lease, NULL);
        free(response);
        return r;
}

static int read_lease(struct hf_term *term, const struct hfd_identity *identity,
                      struct hf__json **lease) {
        struct hf_request request = {.size = sizeof request,
                                     .verb = HF_VERB_GET,
                                     .resource = leases,
                                     .ns = HFD_SYSTEM_NAMESPACE,
                                     .name = identity->lease_name,
                                     .deadline = request_deadline(term)};
        struct hf_status status;
        char *response = NULL;
        size_t n = 0;
        int r = hf_client_do(hf_term_ungated_client(term), &request, hf_term_abort(term), &response,
                             &n, &status);

        if (r == 0)
                r = hf__json_parse(response, n, lease, NULL);
        free(response);
        return r;
}

/* One attempt to renew or create the Lease. */
static int renew_lease(struct hf_term *term, const struct hfd_controller_context *context,
                       struct hf__json **lease) {
        if (*lease)
                return send_lease(term, context, HF_VERB_UPDATE, lease);
        *lease = new_lease(term, context->identity);
        if (!*lease)
                return -ENOMEM;
        int r = send_lease(term, context, HF_VERB_CREATE, lease);
        if (r != HF_E_EXISTS)
                return r;
        r = read_lease(term, context->identity, lease);
        return r == 0 ? send_lease(term, context, HF_VERB_UPDATE, lease) : r;
}

static void delete_lease(struct hf_term *term, const struct hfd_identity *identity) {
        struct hf_request request = {.size = sizeof request,
                                     .verb = HF_VERB_DELETE,
                                     .resource = leases,
                                     .ns = HFD_SYSTEM_NAMESPACE,
                                     .name = identity->lease_name,
                                     .deadline = request_deadline(term)};
        struct hf_status status;

        /* If the store does not respond, the Lease stays, and the leader's identity-lease-collector
         * deletes it when it has expired. */
        (void)hf_client_do(hf_term_ungated_client(term), &request, hf_term_abort(term), NULL, NULL,
                           &status);
}

/*
 * Renews the Lease until leave fires, then deletes it, also if no write has succeeded: the outcome
 * of a failed one may be unknown. After an abort of the term no request is sent, so the Lease
 * remains and expires.
 */
static void keep_lease(struct hf_term *term, const struct hfd_controller_context *context,
                       struct hf_cancel *leave) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));
        struct hf__json *lease = NULL;
        hf_nsec wait;

        do {
                int r = renew_lease(term, context, &lease);
                wait = r == 0 ? HFD_IDENTITY_RENEW_SECONDS * HF_NSEC_PER_SEC : RETRY_PERIOD;
                if (r != 0 && r != HF_E_CANCELED)
                        hf_log(&hf_term_host(term)->log, HF_LOG_WARNING, HFD_IDENTITY_LEASE,
                               "cannot write the identity Lease %s/%s: %s; trying again",
                               HFD_SYSTEM_NAMESPACE, context->identity->lease_name, hf_strerror(r));
        } while (hf_cancel_wait(leave, hf_now(clock) + wait) == HF_E_TIMEOUT);
        if (!hf_cancel_fired(hf_term_abort(term)))
                delete_lease(term, context->identity);
        hf__json_free(lease);
}

static void on_stopping(void *leave) { hf_cancel_fire(leave, HF_CANCEL_STOPPING); }

int hfd_identity_lease_run(struct hf_term *term, void *ctx) {
        struct hfd_controller_context *context = ctx;
        struct hf_cancel_waker waker;
        struct hf_cancel *leave; /* fires when this controller drains or the process stops */
        int r = hf_cancel_new(hf_term_drain(term), hf_host_clock(hf_term_host(term)), &leave);

        if (r != 0)
                return r;
        atomic_store(&context->has_identity_lease, true);
        hf_cancel_add_waker(context->stopping, &waker, on_stopping, leave);
        keep_lease(term, context, leave);
        hf_cancel_remove_waker(&waker);
        hf_cancel_unref(leave);
        hf_cancel_fire(context->identity_deleted, HF_CANCEL_STOPPING);
        return 0;
}

void hfd_identity_lease_wait_deleted(struct hfd_controller_context *context) {
        if (atomic_load(&context->has_identity_lease) && hf_cancel_fired(context->stopping))
                (void)hf_cancel_wait(context->identity_deleted,
                                     hf_now(hf_host_clock(context->host)) + DELETE_TIMEOUT);
}
