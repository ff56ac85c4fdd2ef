/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The ConversionReview (apiextensions.k8s.io/v1) that a conversion webhook gets, and the check of
 * its response. Rules and texts are those of Kubernetes, except that a response has limits, and
 * some texts about malformed responses. Pure. Thread: any.
 *
 * A webhook may change everything but kind, name, namespace and uid; of the metadata, only labels
 * and annotations are taken from the response.
 */
#include "base/strbuf.h"
#include "server/resources/objects/object.h"

/* Appends the request: uid, the desired version, the objects. */
void hfd_conversion_review_put(struct hf__strbuf *s, const char *uid,
                               const struct hfd_resource *row, struct hfd_object *const *objects,
                               size_t n);
/* The largest response, in bytes, that a webhook may send for these objects. */
size_t hfd_conversion_review_max_response(struct hfd_object *const *objects, size_t n);
/*
 * Reads the response of n_response bytes. 0: converted[i] is a new reference, the object that the
 * webhook has made of objects[i], in the version of row. HF_E_INVALID: the response is not valid,
 * or it says that the conversion failed; `why` gets what follows "conversion webhook for ... ":
 * "failed: ...", "returned 1 objects, expected 2", cut to 4096 bytes. Or -ENOMEM. The caller passes
 * n NULLs in converted; after an error they are NULL again. Takes time in proportion to the
 * response and the objects, and memory in proportion to the objects.
 */
int hfd_conversion_review_read(const void *review, size_t n_response, const char *uid,
                               const struct hfd_resource *row, struct hfd_object *const *objects,
                               size_t n, struct hfd_object **converted, struct hf__strbuf *why);
