/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The error convention of Holdfast.
 *
 * A function that reports why it failed returns an int:
 *
 *      0       success
 *      < 0     -errno: unexpected (out of memory, a failed system call; misuse is -EINVAL).
 *              Return it unchanged to your caller.
 *      > 0     an enum hf_error: part of the function's contract. The caller decides what to do.
 *
 * The two signs let a function return both without a translation: numbers of errno differ between
 * systems and would collide with ours. `r < 0` asks whether this process is in trouble, `r > 0`
 * whether the function ended in one of the failures that its contract names.
 *
 * A few functions return something else above 0, such as a length; their comments say so. Unless a
 * function's comment says otherwise, outputs named ret_x are valid on success only, and outputs
 * named reterr_x on failure only. The caller logs an error that the library returns, if it wants
 * to. The library does not end the process. Only a failed assert aborts: it means a bug in the
 * library, or a call against its contract.
 */
#include <stddef.h>
#include <stdint.h>

#include <holdfast/api.h>

#ifdef __cplusplus
extern "C" {
#endif

enum hf_error {
        HF_OK = 0,
        /* 409 that is neither AlreadyExists nor HF_E_STALE_TERM. Mostly the object changed since it
         * was read. */
        HF_E_CONFLICT = 1,
        /* 409 AlreadyExists, or a name that must be unique is taken. */
        HF_E_EXISTS = 2,
        /* 404 NotFound, or something else that the function looked for does not exist. */
        HF_E_NOT_FOUND = 3,
        /* 400, 422 or another code below 500 that no other error names: the request is wrong. Do
         * not send it again unchanged. Also a mistake in data that somebody wrote: a configuration,
         * a file, a manifest, a name. */
        HF_E_INVALID = 4,
        /* 401 Unauthorized, or a TLS certificate was refused. */
        HF_E_UNAUTHORIZED = 5,
        /* 403 Forbidden. */
        HF_E_FORBIDDEN = 6,
        /* 410 Gone, or the reason Expired: the requested revision is compacted. List again. */
        HF_E_GONE = 7,
        /* 429 TooManyRequests: try again after hf_status.retry_after_s. */
        HF_E_TOO_MANY = 8,
        /* There was no connection, or holdfastd did not process the request: nothing was written.
         * For a read, any 5xx but 504. Also: a library that is loaded on demand is missing. */
        HF_E_UNAVAILABLE = 9,
        /* The deadline passed, the connection broke after the request was sent, or the response was
         * 504, 408 or, to a write, a 5xx that proves nothing. It is unknown whether the server
         * processed the request. */
        HF_E_TIMEOUT = 10,
        /* A token fired, or the client or the store was stopped. A write that was under way may
         * have been applied, or may still be, unless hf_response.not_sent is set. */
        HF_E_CANCELED = 11,
        /* The fence (<holdfast/fence.h>) rejected the write, because its leader term is not in
         * force. Nothing was written. Never retry. */
        HF_E_STALE_TERM = 12,
        /* The gate (<holdfast/leader.h>) rejected the write, because this process is not allowed to
         * act as leader now. Nothing was sent. */
        HF_E_NOT_LEADER = 13,
        /* The server did not echo the fence, so it may have applied the write without comparing
         * the fence. */
        HF_E_UNFENCED = 14,
        /* A controller or a hook did not stop by its deadline. Its threads still run. */
        HF_E_STUCK = 15,
        /* 413, or another limit on size or count was reached. If the response of a write was too
         * long, the write may have been done. */
        HF_E_TOO_LARGE = 16,
        /* Another process holds the resource (a lock file, a port), or what was begun is not over
         * yet (hf_electors_stop_poll). */
        HF_E_BUSY = 17,
        /* Registration is closed, or the object was started or stopped already. */
        HF_E_CLOSED = 18,
        _HF_E_MAX
};

/* An error with its explanation. The caller provides the memory, so that reporting an error
 * allocates nothing. Frozen: it has no `size`, because a program sets nothing before a call, and
 * the library overwrites all of it. */
struct hf_status {
        int error;              /* the hf_error or -errno that this struct explains */
        int http_code;          /* the HTTP status that the error came from or maps to; 0 = none */
        uint32_t retry_after_s; /* 0 = the server gave none */
        /* The `reason` of a Kubernetes Status, for example "Conflict"; may be "". */
        char reason[48];
        /* One line that names the object and, for a user's mistake, how to correct it. */
        char message[464];
};

/* Describes a code of either sign ("already exists", "No space left on device"). Static storage.
 * Thread: any. */
const char *hf_strerror(int error);

/*
 * Fills reterr_status (may be NULL) with a formatted message and returns error, so that a failing
 * function ends in `return hf_fail(reterr_status, HF_E_INVALID, "flag --%s ...", name);`. A message
 * that is longer than the buffer is cut. Thread: any.
 */
int hf_fail(struct hf_status *reterr_status, int error, const char *format, ...) HF_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
