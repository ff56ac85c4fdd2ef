/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The audit policy: which requests are recorded, and how much of them. It has the structure of
 * audit.k8s.io/v1 Policy, as YAML or JSON. The first rule that matches a request decides; a request
 * that no rule matches is not recorded. Pure: no I/O, no clock.
 *
 * Thread: a policy is immutable, and any thread may ask it; the reference count is atomic.
 */
#include <stdbool.h>
#include <stddef.h>

#include "server/audit/level.h"
#include "server/rbac/attributes.h"

struct hf_status;
struct hfd_audit_policy;

/*
 * Parses n bytes of YAML or JSON. The caller owns one reference. HF_E_INVALID: the message names
 * the line or the field, "rules[2].level: ...". Or -ENOMEM.
 */
int hfd_audit_policy_parse(const char *text, size_t n, struct hfd_audit_policy **ret_policy,
                           struct hf_status *reterr_status);
struct hfd_audit_policy *hfd_audit_policy_ref(struct hfd_audit_policy *policy);
/* Accepts NULL, returns NULL. */
struct hfd_audit_policy *hfd_audit_policy_unref(struct hfd_audit_policy *policy);

/* user: the one who sent the request; NULL = it was not authenticated. */
struct hfd_audit_decision hfd_audit_policy_decide(const struct hfd_audit_policy *policy,
                                                  const struct hfd_subject *user,
                                                  const struct hfd_attributes *attributes);
