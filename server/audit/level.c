/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of levels and stages. Policies and audit events contain them, so they are those of
 * audit.k8s.io/v1.
 *
 * Invariant: each table has a name for every member of its enum, in the enum's order, because it is
 * indexed by the member.
 */
#include "server/audit/level.h"

#include <assert.h>

const char *hfd_audit_level_name(enum hfd_audit_level level) {
        static const char *const names[] = {"None", "Metadata", "Request", "RequestResponse"};

        assert((unsigned)level < sizeof names / sizeof names[0]);
        return names[level];
}

const char *hfd_audit_stage_name(enum hfd_audit_stage stage) {
        static const char *const names[] = {"RequestReceived", "ResponseStarted",
                                            "ResponseComplete", "Panic"};

        assert((unsigned)stage < sizeof names / sizeof names[0]);
        return names[stage];
}
