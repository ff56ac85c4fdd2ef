/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats log lines.
 *
 * Invariant: a line contains no control characters of ASCII; spaces replace them. A line may quote
 * data from a peer. With control characters the peer could forge a second line, or send escape
 * sequences to a terminal.
 */
#include <holdfast/log.h>

#include <stdarg.h>
#include <stdio.h>

#include "base/log_request.h"

static _Thread_local const char *request_id; /* borrowed; NULL = no request */

void hf__log_set_request(const char *id) { request_id = id; }

const char *hf__log_request(void) { return request_id; }

void hf_log(const struct hf_log *log, enum hf_log_level level, const char *component,
            const char *format, ...) {
        char line[1024];
        va_list args;

        if (!log || !log->write || level > (log->max_level ? log->max_level : HF_LOG_INFO))
                return;
        va_start(args, format);
        int n = vsnprintf(line, sizeof line, format, args);
        va_end(args);
        if (n < 0)
                return;
        for (char *p = line; *p; p++)
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        *p = ' ';
        log->write(log->ctx, level, component, line);
}
