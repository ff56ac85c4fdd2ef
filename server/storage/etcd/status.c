/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "server/storage/etcd/etcd.h"

/* gRPC's status codes, as far as etcd is known to send them. */
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
 * etcd says by its words only whether a proposal may still be applied. Those listed are answered
 * before a proposal is made, or when raft refused it; all others ("request timed out", "leader
 * changed", "server stopped", a transport that closes) leave it open.
 */
static bool certainly_not_done(const char *text) {
        return strstr(text, "no leader") || strstr(text, "too many requests") ||
               strstr(text, "raft proposal dropped") || strstr(text, "not capable");
}

static int grpc_error(int status, const char *text, bool unknown) {
        switch (status) {
        case GRPC_INVALID_ARGUMENT:
                return strstr(text, "too large") ? HF_E_TOO_LARGE : HF_E_INVALID;
        case GRPC_DEADLINE_EXCEEDED:
        case GRPC_CANCELLED: return HF_E_TIMEOUT;
        case GRPC_OUT_OF_RANGE: return strstr(text, "compacted") ? HF_E_GONE : HF_E_INVALID;
        case GRPC_RESOURCE_EXHAUSTED:
                if (strstr(text, "space exceeded"))
                        return -ENOSPC;
                return strstr(text, "larger than max") ? HF_E_TOO_LARGE : HF_E_UNAVAILABLE;
        case GRPC_UNAVAILABLE:
                if (strstr(text, "timed out"))
                        return HF_E_TIMEOUT;
                return unknown && !certainly_not_done(text) ? HF_E_TIMEOUT : HF_E_UNAVAILABLE;
        case GRPC_UNKNOWN:
                /* Its own time limit ran out while it waited for a quorum: the bare words of a Go
                 * context. */
                if (strstr(text, "context deadline exceeded") || strstr(text, "context canceled"))
                        return HF_E_TIMEOUT;
                return certainly_not_done(text) ? HF_E_UNAVAILABLE : -EIO;
        default: return -EIO;
        }
}

int hfd_etcd_error(const struct hf__http_result *result, bool unknown, const char *endpoint,
                   struct hf_status *reterr_status) {
        const char *text = result->error_text ? result->error_text : "";

        /* A status is etcd's last word, even if it came before all of the request was sent and the
         * stream then broke. */
        if (result->grpc_status > GRPC_OK && result->outcome != HF_E_CANCELED) {
                int error = grpc_error(result->grpc_status, result->grpc_message, unknown);

                return hf_fail(reterr_status, error, "etcd %s: %s (grpc status %d)", endpoint,
                               result->grpc_message, result->grpc_status);
        }
        switch (result->outcome) {
        case 0: break;
        case HF_E_UNAUTHORIZED:
                /* No request goes out before the handshake is done. */
                return hf_fail(reterr_status, HF_E_UNAVAILABLE, "etcd %s: TLS refused: %s",
                               endpoint, text);
        case HF_E_UNAVAILABLE:
                return hf_fail(reterr_status, HF_E_UNAVAILABLE, "etcd %s: unreachable: %s",
                               endpoint, text);
        case HF_E_TIMEOUT:
                return hf_fail(reterr_status, HF_E_TIMEOUT, "etcd %s: no answer: %s", endpoint,
                               text);
        case HF_E_CANCELED: return hf_fail(reterr_status, HF_E_CANCELED, "the store is closing");
        default:
                return hf_fail(reterr_status, result->outcome, "etcd %s: %s %s", endpoint,
                               hf_strerror(result->outcome), text);
        }
        if (result->code != 200)
                return hf_fail(reterr_status, -EIO,
                               "etcd %s: answers HTTP %d: not an etcd v3 endpoint?", endpoint,
                               result->code);
        return hf_fail(reterr_status, unknown ? HF_E_TIMEOUT : HF_E_UNAVAILABLE,
                       "etcd %s: the answer broke off", endpoint);
}
