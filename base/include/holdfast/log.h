/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The log sink: the library writes no line of its own anywhere, it hands lines to the host's
 * callback.
 *
 * A line is one event: level, component ("elector", "etcd"), a message without newline. The
 * callback may run on any thread, concurrently, and must not block for long nor call back into the
 * library. Errors that a function returns are not logged as well.
 */
enum hf_log_level {
        HF_LOG_ERROR = 3,
        HF_LOG_WARNING = 4,
        HF_LOG_NOTICE = 5,
        HF_LOG_INFO = 6,
        HF_LOG_DEBUG = 7
}; /* syslog's numbers */

struct hf_log {
        void (*write)(void *ctx, enum hf_log_level level, const char *component,
                      const char *message); /* NULL = silent */
        void *ctx;
        enum hf_log_level max_level; /* lines above it are not even formatted; 0 = HF_LOG_INFO */
};

/* Formats (up to 1 KiB) and hands over. log may be NULL. Thread: any. */
void hf_log(const struct hf_log *log, enum hf_log_level level, const char *component,
            const char *format, ...) __attribute__((format(printf, 4, 5)));
