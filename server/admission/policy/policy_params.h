/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The params of a policy with a binding, read from the cacher. Thread: owner only. Never blocks. */
#include <stddef.h>

#include "server/admission/policy/policy_case.h"

/* A policy is evaluated once for each of its params. A selector may select many objects, and each
 * evaluation has a budget of its own. Therefore there is a limit, which Kubernetes does not have.
 * A binding that selects more params fails, whatever the failurePolicy is: whoever may write
 * params must not be able to switch a policy off. */
#define HFD_POLICY_PARAMS_MAX 100

struct hfd_policy_params {
        size_t n;
        struct hf__json **items; /* owned; an item that is NULL stands for params = null */
};

/*
 * The params for a request. 0; -ENOMEM; -EAGAIN: a conversion webhook must convert them first
 * (hfd_admission_fetch_form), and then the caller starts over; HF_E_NOT_FOUND: the kind of the
 * params is not served, or not stored; HF_E_TOO_MANY: the binding selects too many params, or their
 * conversion exceeds a limit that Kubernetes does not have; HF_E_INVALID: it selects none where it
 * must, or cannot be used for another reason; HF_E_TOO_LARGE: the allowance of the case is spent.
 * reterr_message says why, except for -ENOMEM, -EAGAIN and HF_E_TOO_LARGE. The caller calls done in
 * any case.
 */
int hfd_policy_params_find(const struct hfd_policy_case *c, const struct hfd_policy *policy,
                           const struct hfd_policy_binding *binding,
                           struct hfd_policy_params *params, struct hf__strbuf *reterr_message);
void hfd_policy_params_done(struct hfd_policy_params *params);
/* 0: the kind of the policy's params is served and stored, or the policy has no params.
 * HF_E_NOT_FOUND: it is not, and reterr_message says so. */
int hfd_policy_params_check(const struct hfd_policy *policy, struct hfd_cacher *cacher,
                            struct hf__strbuf *reterr_message);
