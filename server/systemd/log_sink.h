/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the log lines of a process go: entries of systemd's journal, or lines on stderr.
 *
 * The journal is used when the service manager connected stderr to it (JOURNAL_STREAM). An entry
 * then has these fields:
 *
 *      MESSAGE             component and message, as they would stand on stderr
 *      PRIORITY            the level, a number as in syslog
 *      SYSLOG_IDENTIFIER   holdfastd
 *      HOLDFAST_COMPONENT  "elector", "etcd", the name of a controller
 *      HOLDFAST_INSTANCE   --instance
 *      HOLDFAST_LEASE      namespace/name of the Lease that this process contends for
 *      HOLDFAST_TERM       the term that this process leads, or still has work of
 *
 * With --leader-elect=false there is no HOLDFAST_LEASE, and between terms there is no
 * HOLDFAST_TERM. Lease and term are those of the process when the line is written, whichever
 * component writes it. Entries and lines are sent by one system call each, so that threads do not
 * mix them. The sink has no lock and allocates nothing.
 *
 * The sub-commands (release, status) send no entries. The journal asks the kernel for the unit of
 * an entry's sender, and a process that ends at once may be gone by then. What comes over the
 * stream of stderr belongs to the unit of that stream.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <holdfast/client.h>
#include <holdfast/log.h>

#include "server/config/config.h"

#define HFD_LOG_FIELDS_MAX 7

struct hfd_log_sink {
        /* immutable after init */
        bool is_stream;                         /* stderr is the journal's stream */
        bool sends_entries;                     /* lines become entries with fields */
        char instance[128];                     /* "HOLDFAST_INSTANCE=..." */
        char lease[16 + 2 * (HF_NAME_MAX + 1)]; /* "HOLDFAST_LEASE=..."; "" = no Lease */
        /* shared */
        _Atomic uint64_t term; /* 0 = none */
};

/* One entry: fields point into text, into the sink, and at constants. */
struct hfd_log_entry {
        struct iovec fields[HFD_LOG_FIELDS_MAX];
        size_t n;
        char text[1400];
};

/* Sets *ret_log to write to sink, which must outlive it. Before other threads start. */
void hfd_log_sink_init(struct hfd_log_sink *sink, const struct hfd_config *config,
                       struct hf_log *ret_log);
/* Lines from now on belong to that term; 0 = to none. Thread: any. */
void hfd_log_sink_set_term(struct hfd_log_sink *sink, uint64_t term);

/* The rest is for the sink itself and its test. */
/* Whether value, of the form of JOURNAL_STREAM ("device:inode", decimal), names the file behind fd.
 * NULL: false. */
bool hfd_log_is_stream(const char *value, int fd);
/* What is too long is cut. */
void hfd_log_encode(struct hfd_log_sink *sink, enum hf_log_level level, const char *component,
                    const char *message, struct hfd_log_entry *ret_entry);
