/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The audit log: a policy and a writer. server/filters/audit.c asks the policy about a request,
 * and adds the request's events, except for the start of a watch, which server/filters/audited.c
 * adds.
 *
 * Threads: any; but new and free run while no other function does. new, reload and read_policy
 * block on files, and free waits for the writer. No other function blocks. A lock guards the
 * pointer to the policy.
 */
#include "server/audit/audit_policy.h"
#include "server/audit/audit_writer.h"

struct hfd_audit;

struct hfd_audit_config {
        const char *policy_file; /* copied */
        struct hfd_audit_file_config log;
};

/*
 * Reads the policy, opens the log and starts its thread. host outlives the object. 0, -errno, an
 * error of hfd_audit_read_policy, or HF_E_INVALID. If the policy or the log is the cause, the
 * message begins with its flag. reterr_status must not be NULL.
 */
int hfd_audit_new(const struct hf_host *host, const struct hfd_audit_config *config,
                  struct hfd_audit **ret_audit, struct hf_status *reterr_status);
/* Writes the events that are queued (hfd_audit_writer_free), and stops the thread. Nothing but the
 * queued events may still refer to a record. Accepts NULL, returns NULL. */
struct hfd_audit *hfd_audit_free(struct hfd_audit *audit);
/* Reads the policy again, and makes the thread open the log again. Errors as hfd_audit_read_policy:
 * then the previous policy stays, but the log is opened again all the same. */
int hfd_audit_reload(struct hfd_audit *audit, struct hf_status *reterr_status);

/* Reads and parses a policy. The caller owns one reference. 0, an error of hfd_read_file, or
 * HF_E_INVALID: the message has the path, and the line or the field. */
int hfd_audit_read_policy(const char *path, struct hfd_audit_policy **ret_policy,
                          struct hf_status *reterr_status);

/* A new reference to the current policy. */
struct hfd_audit_policy *hfd_audit_get_policy(struct hfd_audit *audit);
/* Borrowed; it lives as long as audit. */
struct hfd_audit_writer *hfd_audit_get_writer(struct hfd_audit *audit);
/* The time now, in microseconds since 1970 UTC. */
int64_t hfd_audit_now(const struct hfd_audit *audit);

/*
 * Queues an event of the record, unless the policy omits the stage. The event has the current time,
 * or, at the stage RequestReceived, the time when the request came. code, complete: as in
 * hfd_audit_event_new. Never waits for the log or fails; an event that cannot be queued counts as
 * lost.
 */
void hfd_audit_add_event(struct hfd_audit *audit, struct hfd_audit_record *record,
                         enum hfd_audit_stage stage, int code, bool complete);

#define HFD_AUDIT_ID_MAX 37 /* bytes of an ID, with the NUL */
/* Writes an ID in the form of a random UUID, so in practice no other request has it. */
void hfd_audit_make_id(struct hfd_audit *audit, char id[HFD_AUDIT_ID_MAX]);
/* Whether an ID that a client has sent may be used: 1 to 64 visible characters of ASCII. Pure. */
bool hfd_audit_is_id(const char *text);
