/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* AdmissionReview of admission.k8s.io/v1: the request to a webhook, and its response. Pure. Thread:
 * owner only. */
#include <stdbool.h>

#include "server/admission/admission.h"

struct hf__json;
struct hf__strbuf;

/* Appends the review of a request. as: the resource, in the version that the webhook's rules have
 * matched. object and old have this version, unless they are bodies of another kind, such as Scale.
 * object, old and options may be NULL. */
void hfd_admission_review_print(struct hf__strbuf *out, const char *uid,
                                const struct hfd_admission_attributes *of,
                                const struct hfd_resource *as, const struct hf__json *object,
                                const struct hf__json *old, const struct hf__json *options);

/* The response of a webhook. Everything is borrowed from json, except patch. A borrowed member
 * may also be a JSON null instead of NULL, which means the same. */
struct hfd_admission_review_response {
        struct hf__json *json; /* owned */
        bool allowed;
        const struct hf__json *status;      /* of a refusal; NULL = none */
        const struct hf__json *warnings;    /* a list of texts; NULL = none */
        const struct hf__json *annotations; /* a map of texts; NULL = none */
        struct hf__json *patch;             /* owned; a JSON patch; NULL = none */
};

#define HFD_ADMISSION_REVIEW_WHY_MAX 400

/*
 * Reads the response to the review with the uid. 0: the caller calls
 * hfd_admission_review_response_done. -ENOMEM, or HF_E_INVALID: why is a message like Kubernetes',
 * such as `failed to call webhook: ...` or `received invalid webhook response: expected
 * response.uid=...`.
 */
int hfd_admission_review_read(const void *body, size_t n, const char *uid, bool mutating,
                              struct hfd_admission_review_response *ret_response,
                              char why[HFD_ADMISSION_REVIEW_WHY_MAX]);
void hfd_admission_review_response_done(struct hfd_admission_review_response *review);
