/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps failed requests to the errors of the storage port.
 *
 * Invariant: HF_E_UNAVAILABLE promises that nothing was written, so callers repeat the write. An
 * error of a write that may break this promise must become another error, usually HF_E_TIMEOUT.
 */
#include "server/storage/etcd/grpc_status.h"

#include <errno.h>
#include <string.h>

/* The gRPC status codes that this file tells apart. */
enum {
        GRPC_OK = 0,
        GRPC_CANCELLED = 1,
        GRPC_UNKNOWN = 2,
        GRPC_INVALID_ARGUMENT = 3,
        GRPC_DEADLINE_EXCEEDED = 4,
        GRPC_RESOURCE_EXHAUSTED = 8,
        GRPC_OUT_OF_RANGE = 11,
        GRPC_UNAVAILABLE = 14,
};

/*
 * If etcd is unavailable, only the text of its error shows whether a proposal may still be applied.
 * etcd sends the texts below before it makes a proposal, or when raft has refused it. After another
 * text ("request timed out", "leader changed", "server stopped", a closed transport, or that of a
 * proxy in front of etcd) the write may still happen.
 */
static bool is_certainly_not_done(const char *text) {
        return strstr(text, "no leader") || strstr(text, "too many requests") ||
               strstr(text, "raft proposal dropped") || strstr(text, "not capable");
}

static int unavailable_error(const char *text, bool maybe_written) {
        return maybe_written && !is_certainly_not_done(text) ? HF_E_TIMEOUT : HF_E_UNAVAILABLE;
}

static int grpc_error(int status, const char *text, bool maybe_written) {
        switch (status) {
        case GRPC_INVALID_ARGUMENT:
                return strstr(text, "too large") ? HF_E_TOO_LARGE : HF_E_INVALID;
        case GRPC_DEADLINE_EXCEEDED:
        case GRPC_CANCELLED: return HF_E_TIMEOUT;
        case GRPC_OUT_OF_RANGE: return strstr(text, "compacted") ? HF_E_GONE : HF_E_INVALID;
        case GRPC_RESOURCE_EXHAUSTED:
                if (strstr(text, "space exceeded"))
                        return -ENOSPC;
                if (strstr(text, "larger than max"))
                        return HF_E_TOO_LARGE;
                return unavailable_error(text, maybe_written);
        case GRPC_UNAVAILABLE:
                return strstr(text, "timed out") ? HF_E_TIMEOUT
                                                 : unavailable_error(text, maybe_written);
        case GRPC_UNKNOWN:
                /* etcd's internal time limit expired while it waited for a quorum, or etcd gave the
                 * request up. The texts are those of Go's context package. */
                if (strstr(text, "context deadline exceeded") || strstr(text, "context canceled"))
                        return HF_E_TIMEOUT;
                return is_certainly_not_done(text) ? HF_E_UNAVAILABLE : -EIO;
        default: return -EIO;
        }
}

int hfd_grpc_status_error(const struct hfd_grpc_result *result, bool maybe_written,
                          const char *endpoint, struct hf_status *reterr_status) {
        const char *text = result->error_text ? result->error_text : "";

        /* Unless we have canceled, a gRPC status decides, even if etcd sent it before it had
         * received the whole request and then reset the stream. */
        if (result->status > GRPC_OK && result->outcome != HF_E_CANCELED) {
                int error = grpc_error(result->status, result->status_text, maybe_written);

                return hf_fail(reterr_status, error, "etcd %s: %s (grpc status %d)", endpoint,
                               result->status_text, result->status);
        }
        switch (result->outcome) {
        case 0: break;
        case HF_E_UNAUTHORIZED:
                /* etcd refuses a certificate before it reads a request. */
                return hf_fail(reterr_status, HF_E_UNAVAILABLE,
                               "etcd %s: TLS failed, check the certificates: %s", endpoint, text);
        case HF_E_UNAVAILABLE:
                return hf_fail(reterr_status, HF_E_UNAVAILABLE, "etcd %s is unreachable: %s",
                               endpoint, text);
        case HF_E_TIMEOUT:
                return hf_fail(reterr_status, HF_E_TIMEOUT, "etcd %s does not respond: %s",
                               endpoint, text);
        case HF_E_CANCELED: return hf_fail(reterr_status, HF_E_CANCELED, "the store is closing");
        default:
                return hf_fail(reterr_status, result->outcome, "etcd %s: %s %s", endpoint,
                               hf_strerror(result->outcome), text);
        }
        /* Codes that a proxy in front of etcd sends, perhaps after it has forwarded the request. */
        if (result->code == 429 || (result->code >= 502 && result->code <= 504))
                return hf_fail(reterr_status, maybe_written ? HF_E_TIMEOUT : HF_E_UNAVAILABLE,
                               "etcd %s: HTTP status %d", endpoint, result->code);
        if (result->code != 200)
                return hf_fail(reterr_status, -EIO,
                               "etcd %s: HTTP status %d; is this an etcd v3 endpoint?", endpoint,
                               result->code);
        /* There is no gRPC status, or etcd has ended the stream of a watch. */
        return hf_fail(reterr_status, maybe_written ? HF_E_TIMEOUT : HF_E_UNAVAILABLE,
                       "etcd %s: the response broke off", endpoint);
}
