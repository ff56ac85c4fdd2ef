/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signs approved CertificateSigningRequests of the signer kubernetes.io/kube-apiserver-client, with
 * the CA in --cert-dir or, with --storage=memory, the one that this server has made in memory.
 * request_core.h decides which requests are signed.
 *
 * Invariants. The result is written at the resourceVersion for which it was decided, so a request
 * that is denied meanwhile gets no certificate. If this server has no key of the CA, the controller
 * leaves requests alone, because another program may sign them. A request that this server would
 * refuse, but that an earlier version or another program has stored, is marked as failed: it could
 * never be signed, and would be tried again for ever.
 */
#include "server/controllers/certificates/request_signer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/certificates/request_core.h"
#include "server/controllers/context/controller_context.h"
#include "server/controllers/context/reconcile_loop.h"

#define N_WORKERS 4 /* a worker mostly waits for responses */

static const struct hf_resource requests = {"certificates.k8s.io", "v1",
                                            "certificatesigningrequests"};

static int64_t now_of(struct hf_term *term) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));

        return clock->real(clock->ctx) / HF_NSEC_PER_SEC;
}

static int write_status(struct hf_term *term, const char *name, const struct hf__json *request) {
        return hfd_object_client_ignore_stale(
                hfd_object_client_update(term, &requests, NULL, name, "status", request));
}

static int write_certificate(struct hf_term *term, const char *name, struct hf__json *request,
                             const char *pem) {
        struct hf__strbuf text = {0};

        hf__base64_encode(&text, pem, strlen(pem));
        int r = text.error;
        if (r == 0)
                r = hf__json_set_string(request, "status.certificate", text.data);
        hf__strbuf_done(&text);
        return r == 0 ? write_status(term, name, request) : r;
}

/* Logs only once per process that requests are left alone, because the reason is always the same.
 */
static void report_no_key(struct hfd_controller_context *context, const char *why) {
        if (!atomic_exchange(&context->has_logged_no_key, true))
                hf_log(&context->host->log, HF_LOG_WARNING, HFD_REQUEST_SIGNER,
                       "certificate requests of " HFD_CLIENT_SIGNER " are left alone: %s", why);
}

static int fail_request(struct hf_term *term, struct hf__json *request, const char *name,
                        const char *why) {
        char now[HF__MICROTIME_MAX];

        hf__time_format(now_of(term), now);
        int r = hfd_request_fail(request, why, now);
        return r == 0 ? write_status(term, name, request) : r;
}

/* Signs a request and writes its status. text: the certificate request, n bytes of PEM. */
static int sign_text(struct hfd_controller_context *context, struct hf_term *term,
                     struct hf__json *request, const char *name, const char *text, size_t n) {
        const char *usages[HFD_REQUEST_USAGES_MAX];
        struct hfd_signing signing = {.request = text,
                                      .n_request = n,
                                      .usages = usages,
                                      .now = now_of(term),
                                      .seconds = hfd_request_seconds(request)};
        struct hf_status status = {0};
        char *pem = NULL;

        /* hfd_request_next has accepted the usages, so all are strings. */
        for (const struct hf__json *m = hf__json_first(hf__json_path(request, "spec.usages"));
             m && signing.n_usages < HFD_REQUEST_USAGES_MAX; m = hf__json_next(m))
                usages[signing.n_usages++] = hf__json_text(m);
        int r = context->ca.sign(context->ca.ctx, &signing, &pem, &status);
        if (r == HF_E_NOT_FOUND) {
                report_no_key(context, status.message);
                return 0;
        }
        if (r == HF_E_INVALID)
                return fail_request(term, request, name, status.message);
        if (r != 0) {
                hf_log(&context->host->log, HF_LOG_WARNING, HFD_REQUEST_SIGNER,
                       "cannot sign the certificate request %s: %s", name, status.message);
                return r;
        }
        r = write_certificate(term, name, request, pem);
        free(pem);
        return r;
}

static int sign_request(struct hfd_controller_context *context, struct hf_term *term,
                        struct hf__json *request, const char *name) {
        const char *text = hf__json_string(request, "spec.request");
        char *pem;
        size_t n;
        int r = text ? hf__base64_decode(text, strlen(text), &pem, &n) : HF_E_INVALID;

        if (r == HF_E_INVALID) {
                /* The API would refuse a body with this spec.request. A write of the status does
                 * not change the stored spec, so the member may be left out. */
                hf__json_remove(request, "spec.request");
                return fail_request(term, request, name, "spec.request is not base64");
        }
        if (r != 0)
                return r;
        r = sign_text(context, term, request, name, pem, n);
        free(pem);
        return r;
}

static int reconcile_request(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        struct hfd_controller_context *context = ctx;
        char why[HFD_REQUEST_WHY_MAX];
        struct hf__json *request;
        int r = hfd_object_client_get_cached(context->certificate_requests->informer, NULL, key,
                                             &request);

        if (r != 0)
                return r == HF_E_NOT_FOUND ? 0 : r;
        switch (hfd_request_next(request, why)) {
        case HFD_REQUEST_NOTHING: break;
        case HFD_REQUEST_SIGN: r = sign_request(context, term, request, key); break;
        case HFD_REQUEST_FAIL: r = fail_request(term, request, key, why); break;
        }
        hf__json_free(request);
        return r;
}

int hfd_request_signer_run(struct hf_term *term, void *ctx) {
        struct hfd_controller_context *context = ctx;
        assert(context->certificate_requests); /* controllers.c has created it */
        const struct hfd_reconcile_loop loop = {
                .name = HFD_REQUEST_SIGNER,
                .n_workers = N_WORKERS,
                .reconcile = reconcile_request,
                .ctx = context,
                .sources = {{hfd_needed_informer(context->certificate_requests)}},
        };

        return hfd_reconcile_loop_run(&loop, term);
}
