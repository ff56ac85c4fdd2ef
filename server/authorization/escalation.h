/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Nobody may grant more rights than they hold. A user who writes a role must hold its rules, or
 * have the right to the verb escalate on it. A user who writes a binding must hold the rules of the
 * role, or have the right to the verb bind on it. Thread: any. Never blocks.
 */
#include "server/auth/user.h"
#include "server/authorization/authorizer.h"

struct hf__json;
struct hf__strbuf;
struct hfd_resource;

/* A write that is to be checked. All members are borrowed. */
struct hfd_escalation {
        struct hfd_authorizer *authorizer; /* NULL = only system:masters may grant rights */
        const struct hfd_subject *subject;
        const struct hfd_resource *resource; /* of the request */
        const char *ns, *name;               /* of the request; "" = none */
        const struct hf__json *object;       /* as it will be stored */
        const struct hf__json *old;          /* NULL = a create */
};

/* Whether writes of the resource are checked. */
bool hfd_escalation_concerns(const struct hfd_resource *resource);
/*
 * 0; -ENOMEM; HF_E_FORBIDDEN: `why` says which rights are missing, in the words of Kubernetes;
 * HF_E_NOT_FOUND: the role of a binding does not exist, and `why` has its resource and name. The
 * message is cut to the limit of `why`, if it has one, which must have room for the user's groups
 * and 8 KiB.
 */
int hfd_escalation_check(const struct hfd_escalation *escalation, struct hf__strbuf *why);
