/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the controller of policies needs of the server, which knows expressions and the schemas of
 * kinds: controllers are clients of the API and know neither. Thread: any.
 */
struct hf__json;

struct hfd_policy_check_functions {
        /* Makes status.typeChecking of a policy; the caller owns the result. Never blocks. 0 or
         * -ENOMEM. NULL = types are not checked. */
        int (*check)(void *ctx, const struct hf__json *policy, struct hf__json **ret_checking);
        void *ctx;
};
