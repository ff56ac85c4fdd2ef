/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The audit policy: which requests are recorded, and how much of them. It has the structure of
 * audit.k8s.io/v1 Policy, as YAML or JSON. The first rule that matches a request decides. A request
 * that no rule matches is not recorded. No clock, and no I/O except that YAML may load libyaml.
 *
 * Thread: any. A policy is immutable, and its reference count is atomic.
 */
#include <stddef.h>

#include "server/audit/level.h"
#include "server/rbac/attributes.h"

struct hf_status;
struct hfd_audit_policy;

/*
 * Parses n bytes of YAML or JSON. 0: the caller owns one reference. HF_E_INVALID: the message names
 * the line or the field, if one is wrong: "rules[2].level: ...". Or -ENOMEM. YAML needs libyaml at
 * run time; without it, HF_E_INVALID, too.
 */
int hfd_audit_policy_parse(const char *text, size_t n, struct hfd_audit_policy **ret_policy,
                           struct hf_status *reterr_status);
/* Does not accept NULL. */
struct hfd_audit_policy *hfd_audit_policy_ref(struct hfd_audit_policy *policy);
/* Accepts NULL, returns NULL. */
struct hfd_audit_policy *hfd_audit_policy_unref(struct hfd_audit_policy *policy);

/* The decision about a request. user: the sender of the request; NULL = the request was not
 * authenticated. */
struct hfd_audit_decision hfd_audit_policy_decide(const struct hfd_audit_policy *policy,
                                                  const struct hfd_subject *user,
                                                  const struct hfd_attributes *attributes);
