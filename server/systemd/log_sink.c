/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes log lines to the journal, with fields (log_sink.h), or to stderr.
 *
 * Invariants: a line that the journal does not accept is written to stderr, so that it is not lost.
 * A failed write is ignored, because a full disk or a closed pipe must not stop the server.
 *
 * A line on stderr begins with its priority ("<5>") if stderr is connected to the journal, which
 * stores the priority and removes it from the text. Otherwise the line begins with time and level.
 */
#include "server/systemd/log_sink.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log_request.h"
#include "server/systemd/journal.h"

#define FIELD_MAX 128 /* bytes of a field in hfd_log_entry.text; not of MESSAGE */

bool hfd_log_is_journal_stream(const char *value, int fd) {
        unsigned long long device, inode;
        struct stat st;
        int end = 0;

        if (!value || sscanf(value, "%llu:%llu%n", &device, &inode, &end) != 2 ||
            value[end] != '\0')
                return false;
        return fstat(fd, &st) == 0 && st.st_dev == (dev_t)device && st.st_ino == (ino_t)inode;
}

static void add_field(struct hfd_log_entry *entry, const char *text, size_t n) {
        assert(entry->n < HFD_LOG_FIELDS_MAX);
        entry->fields[entry->n++] =
                (struct iovec){.iov_base = (char *)(uintptr_t)text, .iov_len = n};
}

/* Appends a field of at most max bytes, including the NUL, to the entry. *used is the number of
 * bytes of entry->text that are in use. */
static void format_field(struct hfd_log_entry *entry, size_t *used, size_t max, const char *format,
                         ...) __attribute__((format(printf, 4, 5)));

static void format_field(struct hfd_log_entry *entry, size_t *used, size_t max, const char *format,
                         ...) {
        char *text = entry->text + *used;
        size_t left = sizeof entry->text - *used;
        va_list args;

        if (max > left)
                max = left;
        va_start(args, format);
        int n = vsnprintf(text, max, format, args);
        va_end(args);
        if (n < 0)
                return;
        size_t length = (size_t)n < max ? (size_t)n : max - 1;
        add_field(entry, text, length);
        *used += length + 1;
}

void hfd_log_encode(struct hfd_log_sink *sink, enum hf_log_level level, const char *component,
                    const char *message, struct hfd_log_entry *ret_entry) {
        static const char identifier[] = "SYSLOG_IDENTIFIER=holdfastd";
        uint64_t term = atomic_load(&sink->term);
        const char *request = hf__log_request();
        size_t used = 0;

        ret_entry->n = 0;
        format_field(ret_entry, &used, FIELD_MAX, "PRIORITY=%d", (int)level);
        add_field(ret_entry, identifier, sizeof identifier - 1);
        format_field(ret_entry, &used, FIELD_MAX, "HOLDFAST_COMPONENT=%s", component);
        add_field(ret_entry, sink->instance, strlen(sink->instance));
        if (sink->lease[0])
                add_field(ret_entry, sink->lease, strlen(sink->lease));
        if (term != 0)
                format_field(ret_entry, &used, FIELD_MAX, "HOLDFAST_TERM=%" PRIu64, term);
        if (request)
                format_field(ret_entry, &used, FIELD_MAX, "HOLDFAST_REQUEST=%s", request);
        format_field(ret_entry, &used, sizeof ret_entry->text, "MESSAGE=%s: %s", component,
                     message);
}

/* A message has no line breaks: hf_log has replaced its control characters. */
static void write_stderr(const struct hfd_log_sink *sink, enum hf_log_level level,
                         const char *component, const char *message) {
        /* Indexed by syslog level: error and worse, warning, notice, information, debug. */
        static const char letters[] = "EEEEWNID";
        char line[1400], when[40] = "";
        int n;

        if (sink->stderr_is_journal) {
                n = snprintf(line, sizeof line, "<%d>%s: %s\n", (int)level, component, message);
        } else {
                struct timespec now;
                struct tm tm;
                (void)clock_gettime(CLOCK_REALTIME, &now);
                if (gmtime_r(&now.tv_sec, &tm))
                        (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
                n = snprintf(line, sizeof line, "%s.%06ldZ %c %s: %s\n", when, now.tv_nsec / 1000,
                             letters[level & 7], component, message);
        }
        if (n < 0) /* the C library cannot format it */
                return;
        if (n >= (int)sizeof line) { /* too long: cut it, but keep the line break */
                n = (int)sizeof line - 1;
                line[n - 1] = '\n';
        }
        ssize_t written = write(STDERR_FILENO, line, (size_t)n);
        (void)written;
}

static bool send_to_journal(struct hfd_log_sink *sink, enum hf_log_level level,
                            const char *component, const char *message) {
        struct hfd_log_entry entry;

        hfd_log_encode(sink, level, component, message, &entry);
        return hfd_journal_send(entry.fields, entry.n);
}

static void write_line(void *ctx, enum hf_log_level level, const char *component,
                       const char *message) {
        struct hfd_log_sink *sink = ctx;

        if (!sink->uses_journal || !send_to_journal(sink, level, component, message))
                write_stderr(sink, level, component, message);
}

/* The log level for --v. As in Kubernetes, a higher --v logs more. */
static enum hf_log_level level_for_verbosity(int64_t verbosity) {
        if (verbosity >= 4)
                return HF_LOG_DEBUG;
        return verbosity >= 2 ? HF_LOG_INFO : HF_LOG_NOTICE;
}

void hfd_log_sink_init(struct hfd_log_sink *sink, const struct hfd_config *config,
                       struct hf_log *ret_log) {
        bool stderr_is_journal = hfd_log_is_journal_stream(getenv("JOURNAL_STREAM"), STDERR_FILENO);

        *sink = (struct hfd_log_sink){.stderr_is_journal = stderr_is_journal,
                                      .uses_journal = stderr_is_journal &&
                                                      config->command == HFD_COMMAND_SERVE};
        (void)snprintf(sink->instance, sizeof sink->instance, "HOLDFAST_INSTANCE=%s",
                       config->instance);
        if (config->leader_elect)
                (void)snprintf(sink->lease, sizeof sink->lease, "HOLDFAST_LEASE=%s/%s",
                               config->lease_ns, config->lease_name);
        *ret_log = (struct hf_log){.write = write_line,
                                   .ctx = sink,
                                   .max_level = level_for_verbosity(config->v)};
}

/* No lock: a thread that is writing a line at the same time may still use the previous term. */
void hfd_log_sink_set_term(struct hfd_log_sink *sink, uint64_t term) {
        atomic_store(&sink->term, term);
}
