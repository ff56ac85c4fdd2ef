/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The queue of audit events, and the thread that writes them. Adding an event never waits for the
 * file. If the queue is full, or the file cannot be written, events are lost: they are counted in
 * apiserver_audit_error_total, and the log says so once a minute at most.
 *
 * Threads: any, except for new and free. Lock: mu guards the queue; it is not held while an event
 * is printed or written.
 */
#include "server/audit/log_file.h"
#include "server/audit/record.h"

struct hfd_audit_writer;

/* Opens the file and starts the thread. host outlives the writer. Errors of hfd_audit_file_new. */
int hfd_audit_writer_new(const struct hf_host *host, const struct hfd_audit_file_config *config,
                         struct hfd_audit_writer **ret_writer, struct hf_status *reterr_status);
/*
 * Writes what is queued, for two seconds at most, and joins the thread. All records of the budget
 * must be gone, except for those of queued events. Accepts NULL, returns NULL.
 */
struct hfd_audit_writer *hfd_audit_writer_free(struct hfd_audit_writer *writer);

/* What the records of this log count against. */
struct hfd_audit_budget *hfd_audit_writer_budget(struct hfd_audit_writer *writer);
/* Takes over the event; NULL counts as lost. Never blocks. */
void hfd_audit_writer_put(struct hfd_audit_writer *writer, struct hfd_audit_event *event);
/* Counts an event that could not be made, because the budget or the memory is used up. */
void hfd_audit_writer_lose(struct hfd_audit_writer *writer);
/* The thread opens the file anew before its next write. Never blocks. */
void hfd_audit_writer_reopen(struct hfd_audit_writer *writer);
