/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The decisions of ValidatingAdmissionPolicies about a request. Thread: owner only. Never blocks.
 */
#include "server/admission/policy/policy_case.h"
#include "server/admission/policy/policy_index.h"

/*
 * Evaluates all policies. Warnings and audit annotations go to the notes. 0: the request is
 * allowed; HF_E_FORBIDDEN: response is the refusal; or -ENOMEM. If the allowance of the case is
 * spent, the result means nothing.
 */
int hfd_policies_validate(struct hfd_policy_case *c, const struct hfd_policy_index *index,
                          struct hfd_admission_notes *notes, struct hfd_response *response);
