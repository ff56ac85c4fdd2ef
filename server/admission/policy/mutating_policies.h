/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The changes of MutatingAdmissionPolicies to the object of a request. Thread: owner only. Never
 * blocks. */
#include "server/admission/policy/policy_case.h"
#include "server/admission/policy/policy_index.h"

/*
 * Evaluates all policies. If they change the object, the changed one replaces the object of the
 * admission, and is settled (hfd_admission_settle). 0; HF_E_FORBIDDEN or HF_E_INVALID: response is
 * a refusal; -ENOMEM: response is one if its code is not 0; -EAGAIN: a conversion is wanted
 * (hfd_admission_form); or an error of hfd_admission_turn_may_go_on. After -EAGAIN, or if the
 * allowance of the case is spent, nothing has changed.
 */
int hfd_policies_mutate(struct hfd_policy_case *c, const struct hfd_policy_index *index,
                        struct hfd_response *response);
