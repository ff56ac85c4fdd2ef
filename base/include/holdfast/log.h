/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The log: the library passes each line to a callback of the host. It has no log file and does not
 * write to stderr.
 *
 * A line is one event: a level, a component ("elector", "etcd") and a message without newline or
 * other ASCII control characters.
 */
#include <holdfast/api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The values are those of syslog. */
enum hf_log_level {
        HF_LOG_ERROR = 3,
        HF_LOG_WARNING = 4,
        HF_LOG_NOTICE = 5,
        HF_LOG_INFO = 6,
        HF_LOG_DEBUG = 7
};

/* Frozen: it is a part of struct hf_host, which grows at its own end. */
struct hf_log {
        /*
         * Writes one line; component and message are valid only during the call. NULL = no log.
         * Called on any thread, also on several at the same time. Must not block for long, and must
         * not call back into the library.
         */
        void (*write)(void *ctx, enum hf_log_level level, const char *component,
                      const char *message);
        void *ctx;
        enum hf_log_level max_level; /* lines of a higher value are dropped unformatted; 0 = INFO */
};

/* Formats a line, cuts it to 1023 bytes, and writes it to log, which may be NULL. Thread: any. */
void hf_log(const struct hf_log *log, enum hf_log_level level, const char *component,
            const char *format, ...) HF_PRINTF(4, 5);

#ifdef __cplusplus
}
#endif
