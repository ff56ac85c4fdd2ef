/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The changes of MutatingAdmissionPolicies to the object of a request. Thread: owner only. Never
 * blocks. */
#include "server/admission/policy/policy_case.h"
#include "server/admission/policy/policy_index.h"

/*
 * Evaluates all policies. If they change the object, the admission's object is replaced, and
 * settled. 0; HF_E_FORBIDDEN: response is a refusal; or -ENOMEM. If the allowance of the case is
 * spent, nothing has changed.
 */
int hfd_policies_mutate(struct hfd_policy_case *c, const struct hfd_policy_index *index,
                        struct hfd_response *response);
