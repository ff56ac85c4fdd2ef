/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The response to a request, and the Status bodies of its failures. Where Kubernetes has the same
 * failure, code, reason, message and details are those of Kubernetes, because clients parse them
 * (metav1.Status). Thread: owner only.
 *
 * A struct hfd_response begins as {0}. The owner calls exactly one of the functions below that fill
 * it, and hfd_response_done at the end. The functions that fill it never fail: when memory runs
 * out, or a Status would exceed 64 KiB, body is NULL, and the client gets the code alone. Texts are
 * borrowed for the call.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/error.h>

#include "base/buf.h"
#include "server/resources/causes.h"
#include "server/resources/resource.h"

struct hfd_response {
        int code; /* HTTP status code */
        /* Owned; JSON, or protobuf for hfd_rest_respond_as_is; NULL = only the code is sent. */
        struct hf__buf *body;
        bool fence_compared; /* the write compared its fence; the response says so in a header */
        struct hf_status status; /* for callers in the process: the failure, or error 0 = success */
};
/* Drops the body. */
void hfd_response_done(struct hfd_response *response);
/* A copy for the caller, which shares the body. If response is NULL or its code is 0, memory ran
 * out before, and the copy is a 500. Returns NULL: out of memory. */
struct hfd_response *hfd_response_copy(const struct hfd_response *response);
/* Frees a copy. Accepts NULL, returns NULL. */
struct hfd_response *hfd_response_free(struct hfd_response *response);

/* A success; code is 2xx. Takes ownership of body. body NULL means that memory ran out: the
 * response becomes a 500. */
void hfd_response_ok(struct hfd_response *response, int code, struct hf__buf *body);

/* The details of a Status, and its metadata.continue. All are borrowed; NULL or 0 = absent. */
struct hfd_details {
        const char *name, *group;
        const char *kind;         /* the plural; the Kind in a 422 */
        const char *cause_reason; /* a single cause; "" = it has no reason; NULL = there is none,
                                   * and the next two members are ignored */
        const char *cause_text;
        const char *cause_field;
        const struct hfd_causes *causes; /* a list, which follows the single cause */
        uint32_t retry_after_s;
        const char *continue_token; /* metadata.continue of a 410 */
};

/* Any failure. error: HF_E_* or -errno, for callers in the process. reason "" = none. details may
 * be NULL. */
void hfd_response_status(struct hfd_response *response, int error, int code, const char *reason,
                         const char *message, const struct hfd_details *details);
/* 400; the message is cut to 1023 bytes. */
void hfd_response_bad_request(struct hfd_response *response, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
/* 403 `<resource> "<name>" is forbidden: <why>`. cause: only its cause_* members are used; NULL =
 * none. */
void hfd_response_forbidden(struct hfd_response *response, const struct hfd_resource *resource,
                            const char *name, const char *why, const struct hfd_details *cause);
/* 404 for a path that is not served. */
void hfd_response_no_such_resource(struct hfd_response *response);
/* 404 for an object. */
void hfd_response_not_found(struct hfd_response *response, const struct hfd_resource *resource,
                            const char *name);
/* 405. */
void hfd_response_not_allowed(struct hfd_response *response);
/* 409 for a create. generated: the name was made from generateName, so another attempt may
 * succeed. */
void hfd_response_exists(struct hfd_response *response, const struct hfd_resource *resource,
                         const char *name, bool generated);
/* 409 for a write whose precondition failed. why NULL = the object has been modified. */
void hfd_response_conflict(struct hfd_response *response, const struct hfd_resource *resource,
                           const char *name, const char *why);
/* 409 with the cause StaleLeaderTerm, for a fenced write whose leader term has ended. */
void hfd_response_stale_term(struct hfd_response *response, const struct hfd_resource *resource,
                             const char *name);
/* 422. There is at least one cause. */
void hfd_response_invalid(struct hfd_response *response, const struct hfd_resource *resource,
                          const char *name, const struct hfd_causes *causes);
/* 500. */
void hfd_response_no_memory(struct hfd_response *response);
/* 500: the value stored under the key is not a valid object. */
void hfd_response_unreadable(struct hfd_response *response, const char *key);
/* 500: the value stored under the key cannot be decrypted. */
void hfd_response_sealed(struct hfd_response *response, const char *key, const char *why);
/*
 * A failed operation of the store: 410, 413, 503, 504, or 500 for any other error. status has the
 * store's message, which all but 410 and 413 contain. If status is NULL or has no message, the
 * message of the error code takes its place.
 */
void hfd_response_store_error(struct hfd_response *response, int error,
                              const struct hf_status *status);
/* 200 with a Status of Success, for a deletion. name NULL = a collection was deleted. uid NULL or
 * "" is left out. */
void hfd_response_deleted(struct hfd_response *response, const struct hfd_resource *resource,
                          const char *name, const char *uid);
