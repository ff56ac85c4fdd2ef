/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deletes old CertificateSigningRequests: programs create new ones again and again, and read each
 * only once. request_core.h decides when a request is deleted.
 *
 * Invariant: the delete has the uid and the resourceVersion of the checked request as
 * preconditions. So a request that is approved at the last moment is kept.
 */
#include "server/controllers/certificates/request_cleaner.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/certificates/request_core.h"
#include "server/controllers/context/controller_context.h"
#include "server/controllers/context/reconcile_loop.h"

/* Seconds; the longest delay until the next check. A certificate may be valid for longer than
 * nanoseconds can express. */
#define DELAY_MAX (INT64_C(7) * 24 * 3600)

static const struct hf_resource requests = {"certificates.k8s.io", "v1",
                                            "certificatesigningrequests"};

/* When the request's certificate expires, in seconds since 1970; 0 = there is no certificate, or it
 * cannot be read. */
static int64_t valid_until(const struct hfd_controller_context *context,
                           const struct hf__json *request) {
        const char *text = hf__json_string(request, "status.certificate");
        char *pem;
        size_t n;

        if (!text || hf__base64_decode(text, strlen(text), &pem, &n) != 0)
                return 0;
        int64_t until = context->ca.valid_until(pem);
        free(pem);
        return until;
}

static int delete_request(struct hf_term *term, const struct hf__json *request, const char *name) {
        struct hfd_object_client_delete_options options =
                {.uid = hf__json_string(request, "metadata.uid"),
                 .resource_version = hf__json_string(request, "metadata.resourceVersion")};

        if (hf__json_string(request, "metadata.deletionTimestamp"))
                return 0;
        return hfd_object_client_ignore_stale(
                hfd_object_client_delete(term, &requests, NULL, name, &options));
}

static int reconcile_request(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        struct hfd_controller_context *context = ctx;
        const struct hf_clock *clock = hf_host_clock(context->host);
        struct hf__json *request;
        int r = hfd_object_client_get_cached(context->certificate_requests->informer, NULL, key,
                                             &request);

        if (r != 0)
                return r == HF_E_NOT_FOUND ? 0 : r;
        int64_t left = hfd_request_time_left(request, clock->real(clock->ctx) / HF_NSEC_PER_SEC,
                                             valid_until(context, request));
        if (left <= 0)
                r = delete_request(term, request, key);
        else if (left != HFD_REQUEST_KEPT)
                *ret_again = (left < DELAY_MAX ? left : DELAY_MAX) * HF_NSEC_PER_SEC;
        hf__json_free(request);
        return r;
}

int hfd_request_cleaner_run(struct hf_term *term, void *ctx) {
        struct hfd_controller_context *context = ctx;
        assert(context->certificate_requests); /* controllers.c has created it */
        const struct hfd_reconcile_loop loop = {
                .name = HFD_REQUEST_CLEANER,
                .n_workers = 1,
                .reconcile = reconcile_request,
                .ctx = context,
                .sources = {{hfd_needed_informer(context->certificate_requests)}},
        };

        return hfd_reconcile_loop_run(&loop, term);
}
