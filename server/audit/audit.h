/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The audit log: a policy and a writer. server/filters/audit.c asks it for each request.
 *
 * Threads: any, except for new and free. new, reload and read_policy block on files, and free waits
 * for the writer. Nothing else blocks. A lock guards the pointer to the policy.
 */
#include "server/audit/policy.h"
#include "server/audit/writer.h"

struct hfd_audit;

struct hfd_audit_config {
        const char *policy_file; /* copied */
        struct hfd_audit_file_config log;
};

/*
 * Reads the policy, opens the log and starts its thread. host outlives the object. HF_E_INVALID or
 * -errno: the message begins with the flag if the user must correct something.
 */
int hfd_audit_new(const struct hf_host *host, const struct hfd_audit_config *config,
                  struct hfd_audit **ret_audit, struct hf_status *reterr_status);
/* Writes what is queued. No record may be left. Accepts NULL, returns NULL. */
struct hfd_audit *hfd_audit_free(struct hfd_audit *audit);
/* Reads the policy, and makes the thread open the log again. After an error the previous policy
 * stays, but the log is opened again all the same. */
int hfd_audit_reload(struct hfd_audit *audit, struct hf_status *reterr_status);

/* Reads and parses a policy; as hfd_audit_new, which uses it. */
int hfd_audit_read_policy(const char *path, struct hfd_audit_policy **ret_policy,
                          struct hf_status *reterr_status);

/* A reference to the current policy, which the caller drops. */
struct hfd_audit_policy *hfd_audit_get_policy(struct hfd_audit *audit);
struct hfd_audit_writer *hfd_audit_get_writer(struct hfd_audit *audit);
/* Microseconds since 1970 UTC. */
int64_t hfd_audit_now(const struct hfd_audit *audit);

/* Queues an event of the record, now, unless the policy omits the stage. code, complete: as in
 * hfd_audit_event_new. Never blocks or fails; what cannot be queued counts as lost. */
void hfd_audit_add_event(struct hfd_audit *audit, struct hfd_audit_record *record,
                         enum hfd_audit_stage stage, int code, bool complete);

#define HFD_AUDIT_ID_MAX 37 /* bytes of an ID, with the NUL */
/* Writes an ID that no other request has, in the form of a UUID. */
void hfd_audit_make_id(struct hfd_audit *audit, char id[HFD_AUDIT_ID_MAX]);
/* Whether an ID that a client sends may be used: up to 64 visible characters of ASCII. Pure. */
bool hfd_audit_is_id(const char *text);
