/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The rules of a policy. policy_parse.c makes them, and audit_policy.c reads them. Private to
 * server/audit. Thread: any; nothing but `refs` changes once the policy is parsed.
 */
#include <stdatomic.h>
#include <stddef.h>

#include "server/audit/level.h"

struct hf__json;

struct hfd_audit_rule {
        struct hfd_audit_decision decision;
        /* Borrowed from the policy's JSON: arrays of strings; resources has objects. The types are
         * checked. NULL or empty = the rule does not restrict these. */
        const struct hf__json *users, *groups, *verbs, *namespaces, *resources, *urls;
};

struct hfd_audit_policy {
        atomic_int refs;
        struct hf__json *json; /* owned; the rules point into it */
        size_t n;              /* rules */
        struct hfd_audit_rule rules[];
};
