/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The log sink of a process: it writes entries to systemd's journal, or lines to stderr.
 *
 * The journal is used when the service manager connected stderr to it (JOURNAL_STREAM). An entry
 * then has these fields:
 *
 *      MESSAGE             component and message, as on stderr
 *      PRIORITY            the level, as a syslog number
 *      SYSLOG_IDENTIFIER   holdfastd
 *      HOLDFAST_COMPONENT  "elector", "etcd", the name of a controller
 *      HOLDFAST_INSTANCE   --instance
 *      HOLDFAST_LEASE      namespace/name of the Lease that this process contends for
 *      HOLDFAST_TERM       the term that this process leads, or whose work has not ended yet
 *      HOLDFAST_REQUEST    the Audit-Id of the request that the line is about (base/log_request.h)
 *
 * With --leader-elect=false there is no HOLDFAST_LEASE, and between terms there is no
 * HOLDFAST_TERM. Without an audit log requests have no id. Lease and term are those of the process
 * at the time of the line, also for components that have nothing to do with the election. The sink
 * has no lock, and allocates nothing, except that the first entry loads libsystemd. One system call
 * writes each entry or line, so lines of different threads do not mix.
 *
 * The sub-commands always write to stderr. The journal finds the unit of an entry through its
 * sender's pid. A short process may have ended by then, and the entry would belong to no unit. For
 * lines on stderr the journal knows the unit from the start.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <holdfast/client.h>
#include <holdfast/log.h>

#include "server/config/config.h"

#define HFD_LOG_FIELDS_MAX 8

struct hfd_log_sink {
        /* immutable after init */
        bool stderr_is_journal;                 /* stderr is connected to the journal */
        bool uses_journal;                      /* lines are sent as entries with fields */
        char instance[128];                     /* "HOLDFAST_INSTANCE=..." */
        char lease[16 + 2 * (HF_NAME_MAX + 1)]; /* "HOLDFAST_LEASE=..."; "" = no Lease */
        /* shared */
        _Atomic uint64_t term; /* 0 = none */
};

/* One entry. It must not be copied: the fields point into text, into the sink and at constants. */
struct hfd_log_entry {
        struct iovec fields[HFD_LOG_FIELDS_MAX];
        size_t n;
        char text[1400]; /* room for the longest message of hf_log, and the other fields */
};

/* Fills sink, and sets *ret_log to write to it. sink must outlive *ret_log and must not move;
 * config is used during this call only. Reads the environment: call before other threads start. */
void hfd_log_sink_init(struct hfd_log_sink *sink, const struct hfd_config *config,
                       struct hf_log *ret_log);
/* Sets the term of all following lines; 0 = none. Thread: any. */
void hfd_log_sink_set_term(struct hfd_log_sink *sink, uint64_t term);

/* ---- for the sink and its test ---- */

/* Whether fd is the connection to the journal that `value` identifies. value: that of the
 * environment variable JOURNAL_STREAM ("device:inode", decimal); NULL = it is not set. */
bool hfd_log_is_journal_stream(const char *value, int fd);
/* Fills the entry for one line. A field that is too long is cut. */
void hfd_log_encode(struct hfd_log_sink *sink, enum hf_log_level level, const char *component,
                    const char *message, struct hfd_log_entry *ret_entry);
