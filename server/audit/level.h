/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The levels and stages of the audit log: how much of a request is recorded, and when. Pure.
 * Thread: any. */
#include <stdbool.h>

/* Each level records all that the levels before it record, and more. */
enum hfd_audit_level {
        HFD_AUDIT_NONE,
        HFD_AUDIT_METADATA,
        HFD_AUDIT_REQUEST,
        HFD_AUDIT_REQUEST_RESPONSE,
};

enum hfd_audit_stage {
        HFD_AUDIT_REQUEST_RECEIVED,
        HFD_AUDIT_RESPONSE_STARTED, /* of watches, and of requests that are not authenticated */
        HFD_AUDIT_RESPONSE_COMPLETE,
        HFD_AUDIT_PANIC, /* a policy may name it, but it is never recorded */
};

struct hfd_audit_decision {
        enum hfd_audit_level level;
        unsigned omitted;         /* 1 << stage: this stage is not recorded */
        bool omit_managed_fields; /* of the objects in the events */
};

/* The names in the policy and in events. Static. */
const char *hfd_audit_level_name(enum hfd_audit_level level);
const char *hfd_audit_stage_name(enum hfd_audit_stage stage);
