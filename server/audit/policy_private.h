/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A policy as policy_parse.c makes it and policy.c reads it. */
#include <stdatomic.h>
#include <stddef.h>

#include "server/audit/level.h"

struct hf__json;

struct hfd_audit_rule {
        struct hfd_audit_decision decision;
        /* Arrays in the policy's JSON, checked. NULL or empty = the rule is for all of them. */
        const struct hf__json *users, *groups, *verbs, *namespaces, *resources, *urls;
};

struct hfd_audit_policy {
        atomic_int refs;
        struct hf__json *json; /* owned; what the rules refer to */
        size_t n;
        struct hfd_audit_rule rules[];
};
