/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The queue of audit events, and the thread that writes them. A thread that adds an event never
 * waits for the file. If the budget or the memory is used up, or the file cannot be written, events
 * are lost. They are counted in apiserver_audit_error_total, and a log message says how many, at
 * most once a minute and at the end.
 *
 * Threads: any; but new and free run while no other function does. Lock: mu guards the queue. It is
 * not held while an event is printed or written.
 */
#include "server/audit/log_file.h"
#include "server/audit/record.h"

struct hfd_audit_writer;

/* Opens the file and starts the thread. host outlives the writer. 0, an error of
 * hfd_audit_file_new, or another -errno. */
int hfd_audit_writer_new(const struct hf_host *host, const struct hfd_audit_file_config *config,
                         struct hfd_audit_writer **ret_writer, struct hf_status *reterr_status);
/*
 * Writes the queued events, and joins the thread. Blocks meanwhile. After two seconds, the thread
 * gives up the events that it writes to a pipe, and those that it has not yet taken from the queue;
 * they count as lost. Nothing but the queued events may still refer to a record of the budget.
 * Accepts NULL, returns NULL.
 */
struct hfd_audit_writer *hfd_audit_writer_free(struct hfd_audit_writer *writer);

/* The budget for the records of this log. Borrowed; it lives as long as the writer. */
struct hfd_audit_budget *hfd_audit_writer_budget(struct hfd_audit_writer *writer);
/* Takes ownership of the event. NULL counts as a lost event. Does not block. */
void hfd_audit_writer_put(struct hfd_audit_writer *writer, struct hfd_audit_event *event);
/* Counts a lost event: one that could not be made, because the budget or the memory is used up. */
void hfd_audit_writer_lose(struct hfd_audit_writer *writer);
/* Makes the thread open the file again, once it has written the events that it has already taken
 * from the queue. Does not block. */
void hfd_audit_writer_reopen(struct hfd_audit_writer *writer);
