/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The decisions of ValidatingAdmissionPolicies about a request. Thread: owner only. Never blocks.
 */
#include "server/admission/policy/policy_case.h"
#include "server/admission/policy/policy_index.h"

/*
 * Evaluates all policies. Warnings and audit annotations go to notes. 0: no policy denies the
 * request; HF_E_FORBIDDEN: response is the refusal; -ENOMEM; -EAGAIN: a conversion is wanted
 * (hfd_admission_wants_form); or an error of hfd_policy_case_begin. After -EAGAIN, or if the
 * allowance of the case is spent, the result must be discarded.
 */
int hfd_policies_validate(struct hfd_policy_case *c, const struct hfd_policy_index *index,
                          struct hfd_admission_notes *notes, struct hfd_response *response);
