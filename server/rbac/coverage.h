/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether a user holds all rights that given rules grant: nobody may grant a right that they do not
 * hold. Pure. Thread: any.
 */
#include "server/rbac/index.h"

struct hf__strbuf;

/*
 * rules: a list of PolicyRules. The rights that the user has in the namespace ns count; "" = only
 * cluster-wide rights count. If *ret_covered is false, missing gets sorted lines, at most 200, in
 * the words of Kubernetes: one for each resource, or each name of one, with the verbs that the user
 * lacks, and one for each verb of a URL. Where the rules are very many, some of their rights count
 * as missing although the user holds them (coverage.c has the limits). 0 or -ENOMEM.
 */
int hfd_rbac_covers(const struct hfd_rbac_index *index, const struct hfd_subject *subject,
                    const char *ns, const struct hf__json *rules, bool *ret_covered,
                    struct hf__strbuf *missing);
