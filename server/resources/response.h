/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The answer to a call, and the Status bodies of the field (apiserver.md 3.4): code, reason and
 * message are what clients parse. Thread: owner only.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/error.h>

#include "base/buf.h"
#include "server/resources/resource.h"

#define HFD_CAUSES_MAX 16

struct hfd_cause {
        const char *reason; /* static: "FieldValueInvalid" */
        char field[160];
        char text[760]; /* "Invalid value: 0: must be greater than 0" */
};
/* What validation found; the seventeenth and further ones are dropped. */
struct hfd_causes {
        size_t n;
        struct hfd_cause items[HFD_CAUSES_MAX];
};
/* value: as Go would print it ("\"x\"", "0"). */
void hfd_cause_invalid(struct hfd_causes *causes, const char *field, const char *value,
                       const char *detail);
void hfd_cause_required(struct hfd_causes *causes, const char *field, const char *detail);
void hfd_cause_forbidden(struct hfd_causes *causes, const char *field, const char *detail);
void hfd_cause_too_long(struct hfd_causes *causes, const char *field, const char *detail);
void hfd_cause_unsupported(struct hfd_causes *causes, const char *field, const char *value,
                           const char *supported);

struct hfd_response {
        int code;             /* HTTP */
        struct hf__buf *body; /* owned; JSON; NULL only when memory ran out */
        bool fence_compared;  /* the transaction compared the call's fence: echo it */
        struct hf_status
                status; /* error 0 = success; else what the body says, for callers in process */
};
void hfd_response_done(struct hfd_response *response);

/* Takes body (NULL = out of memory, which makes it a 500). */
void hfd_response_ok(struct hfd_response *response, int code, struct hf__buf *body);

/* Failures. resource and name may be NULL where there is none. Each fills all of answer. */
struct hfd_details {
        const char *name, *group, *kind; /* kind: the plural for most, the Kind for Invalid */
        const char *cause_reason;        /* one cause; NULL = none */
        const char *cause_text;
        const char *cause_field; /* NULL = none */
        const struct hfd_causes *causes;
        uint32_t retry_after_s;
        const char *continue_token; /* status.metadata.continue of a 410 */
};
void hfd_response_status(struct hfd_response *response, int error, int code, const char *reason,
                         const char *message, const struct hfd_details *details);
void hfd_response_bad_request(struct hfd_response *response, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
/* 404 for a path, 405 for a verb on it. */
void hfd_response_no_such_resource(struct hfd_response *response);
void hfd_response_not_allowed(struct hfd_response *response);
void hfd_response_not_found(struct hfd_response *response, const struct hfd_resource *resource,
                            const char *name);
void hfd_response_exists(struct hfd_response *response, const struct hfd_resource *resource,
                         const char *name, bool generated);
void hfd_response_conflict(struct hfd_response *response, const struct hfd_resource *resource,
                           const char *name, const char *why);
/* 403 `<resource> "<name>" is forbidden: <why>`; with one cause when details has one. */
void hfd_response_forbidden(struct hfd_response *response, const struct hfd_resource *resource,
                            const char *name, const char *why, const struct hfd_details *cause);
void hfd_response_stale_term(struct hfd_response *response, const struct hfd_resource *resource,
                             const char *name);
void hfd_response_invalid(struct hfd_response *response, const struct hfd_resource *resource,
                          const char *name, const struct hfd_causes *causes);
void hfd_response_no_memory(struct hfd_response *response);
/* What the store answered: 504, 503, 410, 413, 500. */
void hfd_response_store_error(struct hfd_response *response, int error,
                              const struct hf_status *status);
/* 200 Status Success of a deletion; name NULL: of many. */
void hfd_response_deleted(struct hfd_response *response, const struct hfd_resource *resource,
                          const char *name, const char *uid);
