/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether a webhook or a policy applies to a request: rules, excluding rules, and the selectors of
 * namespaces and objects, with the results of Kubernetes. Compiled once, immutable. Thread: any.
 * Never blocks.
 */
#include "server/admission/admission.h"
#include "server/admission/matching/request_labels.h"
#include "server/admission/matching/rules.h"

struct hfd_matcher {
        struct hf__json *json;              /* owned; the selectors and rules point into it */
        struct hfd_rules *rules, *excluded; /* owned */
        const struct hf__json *ns_selector, *object_selector; /* NULL = empty */
        bool equivalent;                                      /* matchPolicy is not Exact */
        /* Whether a matcher without rules matches everything, as that of a policy does.
         * hfd_matcher_init sets this if json has no `rules`; webhook.c clears it, because a webhook
         * without rules matches nothing. */
        bool empty_matches;
};

/*
 * json: a webhook (with `rules`), or MatchResources of a policy or binding (with `resourceRules`
 * and `excludeResourceRules`); it is copied. NULL = an empty MatchResources. 0 or -ENOMEM.
 */
int hfd_matcher_init(struct hfd_matcher *matcher, const struct hf__json *json);
void hfd_matcher_done(struct hfd_matcher *matcher);

/* For `wants` of a plug-in (admission.h): whether the request may match, judged as by
 * hfd_rules_may_match; without rules, by empty_matches. */
bool hfd_matcher_may_match(const struct hfd_matcher *matcher,
                           const struct hfd_admission_attributes *of);

enum hfd_matcher_result {
        HFD_MATCHER_NO,
        HFD_MATCHER_YES,
        HFD_MATCHER_ERROR /* response is the error: the request's namespace does not exist, or
                             memory ran out */
};
/*
 * object: the new object; NULL = a delete. labels: those of the request's objects, which all
 * matchers that see the same objects share. *ret_as: the row that a rule has matched, in whose
 * version the webhook or policy sees the objects; without rules, of->resource. The row lives as
 * long as of->resource. *ret_as may be NULL if the result is not YES.
 */
enum hfd_matcher_result hfd_matcher_match(const struct hfd_matcher *matcher,
                                          const struct hfd_admission_attributes *of,
                                          const struct hf__json *object, struct hfd_cacher *cacher,
                                          struct hfd_request_labels *labels,
                                          const struct hfd_resource **ret_as,
                                          struct hfd_response *response);
/*
 * The Namespace of the request, of->ns, as JSON, which the caller frees. The Namespace is read from
 * the cacher, or is of->new_namespace if the cacher does not have it. *ret_namespace NULL: the
 * request has no namespace, or the Namespace does not exist. 0 or -ENOMEM.
 */
int hfd_matcher_namespace(const struct hfd_admission_attributes *of, struct hfd_cacher *cacher,
                          struct hf__json **ret_namespace);
