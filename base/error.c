/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error codes as text, and the function that fills a struct hf_status.
 *
 * Invariant: every member of enum hf_error has a text here, because the table is indexed by the
 * code; hf_strerror never returns NULL.
 */
#include <holdfast/error.h>

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *hf_strerror(int error) {
        static const char *const texts[_HF_E_MAX] = {
                [HF_OK] = "done",
                [HF_E_CONFLICT] = "conflict: the object changed since it was read",
                [HF_E_EXISTS] = "already exists",
                [HF_E_NOT_FOUND] = "not found",
                [HF_E_INVALID] = "invalid",
                [HF_E_UNAUTHORIZED] = "unauthorized",
                [HF_E_FORBIDDEN] = "forbidden",
                [HF_E_GONE] = "the revision is no longer available",
                [HF_E_TOO_MANY] = "too many requests",
                [HF_E_UNAVAILABLE] = "unavailable",
                [HF_E_TIMEOUT] = "timed out, the outcome is unknown",
                [HF_E_CANCELED] = "canceled",
                [HF_E_STALE_TERM] = "stale leader term",
                [HF_E_NOT_LEADER] = "not the leader",
                [HF_E_UNFENCED] = "the server did not echo the fence",
                [HF_E_STUCK] = "a controller or a hook did not stop in time",
                [HF_E_TOO_LARGE] = "too large",
                [HF_E_BUSY] = "busy",
                [HF_E_CLOSED] = "closed",
        };

        if (error >= 0)
                return error < _HF_E_MAX ? texts[error] : "unknown error";
        /* Unlike strerror, this is thread-safe and ignores the locale. */
        const char *text = error > INT_MIN ? strerrordesc_np(-error) : NULL;
        return text ? text : "unknown system error";
}

int hf_fail(struct hf_status *reterr_status, int error, const char *format, ...) {
        if (reterr_status) {
                va_list args;
                *reterr_status = (struct hf_status){.error = error};
                va_start(args, format);
                (void)vsnprintf(reterr_status->message, sizeof reterr_status->message, format,
                                args);
                va_end(args);
        }
        return error;
}
