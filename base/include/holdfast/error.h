/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The error convention of Holdfast.
 *
 * Every function that can fail for more than one reason returns an int:
 *
 *      0       done
 *      < 0     -errno: unexpected (out of memory, a system call failed, misuse = -EINVAL); hand it
 * on unchanged > 0     an hf_error: part of the function's contract, the caller decides
 *
 * Outputs named ret_x are set on success only, outputs named reterr_x on failure only. A function
 * that takes a callback and fails never calls it. The library never logs an error it returns, never
 * exits and never aborts.
 */
#include <stddef.h>
#include <stdint.h>

enum hf_error {
        HF_OK = 0,
        HF_E_CONFLICT = 1,     /* 409 Conflict: the object changed since it was read */
        HF_E_EXISTS = 2,       /* 409 AlreadyExists */
        HF_E_NOT_FOUND = 3,    /* 404 */
        HF_E_INVALID = 4,      /* 400, 422: what was sent is wrong, sending it again is useless */
        HF_E_UNAUTHORIZED = 5, /* 401 */
        HF_E_FORBIDDEN = 6,    /* 403 */
        HF_E_GONE = 7,         /* 410: the revision asked for is compacted, list again */
        HF_E_TOO_MANY = 8,     /* 429: try again after hf_status.retry_after_s */
        HF_E_UNAVAILABLE =
                9, /* 5xx or the peer refused the connection: nothing is known to be written */
        HF_E_TIMEOUT = 10, /* the deadline passed or the connection broke after sending: the outcome
                              is unknown */
        HF_E_CANCELED = 11, /* a token fired, or the client or store was stopped */
        HF_E_STALE_TERM =
                12, /* the fence refused: another term leads. Nothing was written. Never retry */
        HF_E_NOT_LEADER = 13, /* the gate refused: this process may not act now. Nothing was sent */
        HF_E_UNFENCED =
                14, /* the server did not echo the fence: the write may have been made without it */
        HF_E_STUCK =
                15, /* work ignored its tokens past its deadline; its threads are still alive */
        HF_E_TOO_LARGE = 16, /* a limit on size or count was met */
        HF_E_BUSY = 17,      /* somebody else holds it (a lock file, a port) */
        HF_E_CLOSED = 18,    /* registration closed, object already stopped */
        _HF_E_MAX
};

/* What went wrong, in words. Lives in the caller's memory so that the error path allocates nothing.
 */
struct hf_status {
        int error;              /* the hf_error or -errno this explains */
        int http_code;          /* the HTTP status it came from or maps to; 0 = none */
        uint32_t retry_after_s; /* 0 = not said */
        char reason[48];        /* the CamelCase reason of a Kubernetes Status: "Conflict",
                                   "AlreadyExists"; may be "" */
        char message[464]; /* one line that names the thing and, for a user's mistake, the fix */
};

/* The words for a code of either sign ("conflict", "no space left on device"). Thread: any. Static
 * storage. */
const char *hf_strerror(int error);

/*
 * Fills reterr_status (may be NULL) and returns error, so that a failing function ends in
 * `return hf_fail(reterr_status, HF_E_INVALID, "flag --%s ...", name);`. Truncates at the buffer.
 * Thread: any.
 */
int hf_fail(struct hf_status *reterr_status, int error, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
