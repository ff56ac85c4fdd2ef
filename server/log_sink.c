/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines to stderr: one write(2) each, so that threads do not mix. Under systemd (JOURNAL_STREAM)
 * with the priority in front, which the journal takes off and stores; in a terminal or file with
 * time and level.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "server/server.h"

static bool to_journal;

static void write_line(void *ctx, enum hf_log_level level, const char *component,
                       const char *message) {
        static const char messages[] = "EEEEWNID";
        char line[1400], when[40] = "";
        int n;

        (void)ctx;
        if (to_journal) {
                n = snprintf(line, sizeof line, "<%d>%s: %s\n", (int)level, component, message);
        } else {
                struct timespec now;
                struct tm tm;
                (void)clock_gettime(CLOCK_REALTIME, &now);
                if (gmtime_r(&now.tv_sec, &tm))
                        (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
                n = snprintf(line, sizeof line, "%s.%06ldZ %c %s: %s\n", when, now.tv_nsec / 1000,
                             messages[level & 7], component, message);
        }
        if (n >= (int)sizeof line) {
                n = (int)sizeof line - 1;
                line[n - 1] = '\n';
        }
        /* A log nobody takes (a closed pipe, a full disk) must not stop the server. */
        ssize_t written = write(STDERR_FILENO, line, (size_t)n);
        (void)written;
}

void hfd_log_sink_init(struct hf_log *log, int verbosity) {
        to_journal = getenv("JOURNAL_STREAM") != NULL;
        *log = (struct hf_log){.write = write_line,
                               .max_level = verbosity >= 4   ? HF_LOG_DEBUG
                                            : verbosity >= 2 ? HF_LOG_INFO
                                                             : HF_LOG_NOTICE};
}
