/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* An HTTP request for a resource, shared by the files of this folder. */
#include "base/strbuf.h"
#include "server/auth/impersonation_rights.h"
#include "server/auth/user.h"
#include "server/authorization/authorizer.h"
#include "server/http/http.h"
#include "server/pool/work_pool.h"
#include "server/registry/base/request.h"
#include "server/registry/registry.h"

struct hfd_account_watches;
struct hfd_credential;
struct hfd_requester;
struct hfd_rest_list;
struct hfd_unsent;

/*
 * A larger body is never indented: parsing and printing it would need many times its memory, and
 * would block a thread that serves other requests. Bytes.
 */
#define HFD_REST_PRETTY_MAX ((size_t)4 << 20)

/*
 * One HTTP request for a resource, until its whole response was passed to the HTTP server. The
 * struct's memory is freed with the HTTP request (hfd_http_request_allocate), or when the stream of
 * a watch opens. The struct belongs to one thread at a time, like the struct hfd_request in it
 * (registry.h).
 */
struct hfd_rest_request {
        /* must be first: the done callback casts its pointer to this struct */
        struct hfd_request request;
        struct hfd_registry *registry;         /* borrowed */
        struct hfd_http_request *http_request; /* owned reference; the HTTP request owns the body */
        struct hfd_unsent *unsent;             /* borrowed; NULL = a watch is not charged */
        const char *user;                      /* borrowed from the HTTP request; for unsent */
        /*
         * The attributes that the user must be authorized for. While a watch runs, the authorizer
         * tracks whether the user still has this right; if request.requester is NULL, the user
         * cannot lose it.
         */
        struct hfd_attributes attributes; /* borrowed from the HTTP request */
        /* Only for a watch by impersonation, as in struct hfd_request_context. Borrowed. */
        const struct hfd_requester *sender;
        size_t n_named_groups;
        enum hfd_impersonation_mode impersonation_mode;
        /* Only for a watch: the expiry and the objects on which the token of its sender depends,
         * and the list of such watches. Both are borrowed; NULL = the sender has no such token. */
        const struct hfd_credential *credential;
        struct hfd_account_watches *account_watches;
        struct hf_fence *fence;       /* owned; request.fence; NULL = none */
        struct hf__strbuf translated; /* owned; the body, if it was not JSON or admission made it */
        struct hfd_http_call call;    /* of a get: continues reads on the worker */
        struct hfd_work_task task;    /* for a large body: decodes and serves it */
        struct hfd_rest_list *list;   /* owned by the HTTP request; NULL = no list, or a report */
};
/* The warning that responses of a deprecated version carry. Borrowed; NULL = none, also if request
 * is NULL. */
const char *hfd_rest_deprecation(const struct hfd_request *request);
/* Bytes of one header, with the NUL: enough for a deprecationWarning of 256 bytes, each of which
 * may need a backslash, and for the usual text with the longest group, version and kind. */
#define HFD_REST_WARNING_MAX 528
/* The same as a header, whose text is in `text`. Returns how many there are: 0 or 1. */
size_t hfd_rest_deprecation_header(const struct hfd_request *request,
                                   char text[HFD_REST_WARNING_MAX], struct hfd_header *ret_header);
/* Frees what rest owns, and drops its reference to the HTTP request, which owns rest. */
void hfd_rest_free(struct hfd_rest_request *rest);
/*
 * Sends response, whose body is JSON, in the form that the client gets. request: was negotiated; it
 * determines the form of a success, and its warnings are sent, too. It may be NULL for a failure.
 * mistakes: one line for each Warning header, of which the first few are sent; NULL = none. The
 * caller keeps response and its reference to http_request. Thread: any.
 */
void hfd_rest_respond(struct hfd_http_request *http_request, const struct hfd_request *request,
                      const struct hfd_response *response, const char *mistakes);
/* The same for a success whose body already has the form that the client gets. request is not NULL.
 */
void hfd_rest_respond_as_is(struct hfd_http_request *http_request,
                            const struct hfd_request *request, const struct hfd_response *response);
/* The Content-Type of a success whose body has the negotiated form: a watch, or a list in pieces.
 * hfd_rest_respond may fall back to JSON, and chooses the type itself. */
const char *hfd_rest_content_type(const struct hfd_request *request);
