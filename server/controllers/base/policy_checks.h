/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The type check of policies, which the server provides to the controller admission-policy-status.
 * Controllers are clients of the API, and know neither expressions nor the schemas of kinds.
 * Thread: any. */
struct hf__json;

struct hfd_policy_check_functions {
        /* Makes status.typeChecking of a policy; the caller owns the result. Never blocks. 0 or
         * -ENOMEM. check is NULL only if that controller does not run. */
        int (*check)(void *ctx, const struct hf__json *policy, struct hf__json **ret_checking);
        void *ctx;
};
