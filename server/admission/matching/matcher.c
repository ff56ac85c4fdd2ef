/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether a webhook or a policy applies to a request.
 *
 * Invariant: the namespaceSelector is checked last. The check may fail, for example because the
 * Namespace does not exist, and the request may then be refused. As in Kubernetes, a webhook whose
 * rules or objectSelector do not match a request must not make that request fail.
 */
#include "server/admission/matching/matcher.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/cacher/cacher.h"
#include "server/resources/label_selector.h"
#include "server/resources/rows/resource_table.h"

/* An empty selector selects everything, so it is as good as none, and then nothing is looked up. */
static const struct hf__json *selector_of(const struct hf__json *json, const char *key) {
        const struct hf__json *selector = hf__json_get(json, key);

        return hfd_label_selector_is_empty(selector) ? NULL : selector;
}

int hfd_matcher_init(struct hfd_matcher *matcher, const struct hf__json *json) {
        static const char *const keys[] = {"rules",
                                           "resourceRules",
                                           "excludeResourceRules",
                                           "namespaceSelector",
                                           "objectSelector",
                                           "matchPolicy"};
        int r;

        *matcher = (struct hfd_matcher){.json = hf__json_object()};
        r = matcher->json ? 0 : -ENOMEM;
        for (size_t i = 0; r == 0 && i < sizeof keys / sizeof keys[0]; i++) {
                const struct hf__json *value = hf__json_get(json, keys[i]);
                if (value)
                        r = hf__json_add(matcher->json, keys[i], hf__json_dup(value));
        }
        const struct hf__json *rules = hf__json_get(matcher->json, "rules");
        matcher->empty_matches = !rules;
        if (!rules)
                rules = hf__json_get(matcher->json, "resourceRules");
        if (r == 0)
                r = hfd_rules_new(rules, &matcher->rules);
        if (r == 0)
                r = hfd_rules_new(hf__json_get(matcher->json, "excludeResourceRules"),
                                  &matcher->excluded);
        if (r != 0) {
                hfd_matcher_done(matcher);
                return r;
        }
        matcher->ns_selector = selector_of(matcher->json, "namespaceSelector");
        matcher->object_selector = selector_of(matcher->json, "objectSelector");
        matcher->equivalent = !hf__json_has_text(matcher->json, "matchPolicy", "Exact");
        return 0;
}

void hfd_matcher_done(struct hfd_matcher *matcher) {
        free(matcher->rules);
        free(matcher->excluded);
        hf__json_free(matcher->json);
        *matcher = (struct hfd_matcher){0};
}

bool hfd_matcher_may_match(const struct hfd_matcher *matcher,
                           const struct hfd_admission_attributes *of) {
        assert(matcher->rules && of->resource);
        if (matcher->rules->n == 0)
                return matcher->empty_matches;
        return hfd_rules_may_match(matcher->rules, of, matcher->equivalent);
}

/* ---- namespaces ---- */

/* As in Kubernetes, the group does not matter: a custom kind with this plural counts, too. */
static bool is_namespace(const struct hfd_admission_attributes *of) {
        return strcmp(of->resource->plural, "namespaces") == 0;
}

/* A reference to the Namespace of the request, as hfd_matcher_namespace finds it. NULL: there is
 * none. */
static struct hfd_object *find_namespace(const struct hfd_admission_attributes *of,
                                         struct hfd_cacher *cacher) {
        struct hfd_object *object = NULL;
        bool synced;

        assert(cacher && of->ns);
        /* new_namespace was read from the store when the cacher did not have the Namespace. If the
         * cacher has it now, its object is as new or newer. */
        if (*of->ns)
                object = hfd_cacher_newest(cacher, hfd_resource_namespaces(), of->ns, &synced);
        if (object && object->bytes)
                return object;
        hfd_object_unref(object);
        return of->new_namespace ? hfd_object_ref(of->new_namespace) : NULL;
}

int hfd_matcher_namespace(const struct hfd_admission_attributes *of, struct hfd_cacher *cacher,
                          struct hf__json **ret_namespace) {
        struct hfd_object *object = find_namespace(of, cacher);

        *ret_namespace = NULL;
        if (!object)
                return 0;
        *ret_namespace = hfd_object_parse(object);
        hfd_object_unref(object);
        return *ret_namespace ? 0 : -ENOMEM;
}

static enum hfd_matcher_result select_labels(const struct hf__json *selector,
                                             const struct hfd_labels *labels) {
        return hfd_label_selector_selects(selector, labels) ? HFD_MATCHER_YES : HFD_MATCHER_NO;
}

/* Selects by the stored Namespace of the request. The whole Namespace is not parsed, because its
 * annotations may be large: its hfd_object keeps the labels, for which many selectors ask. */
static enum hfd_matcher_result select_stored(const struct hf__json *selector,
                                             const struct hfd_admission_attributes *of,
                                             struct hfd_cacher *cacher,
                                             struct hfd_request_labels *labels,
                                             struct hfd_response *response) {
        struct hfd_object *ns = find_namespace(of, cacher);
        enum hfd_matcher_result result = HFD_MATCHER_ERROR;
        const struct hfd_labels *kept;

        if (!ns) {
                hfd_response_not_found(response, hfd_resource_namespaces(), of->ns);
                return HFD_MATCHER_ERROR;
        }
        kept = hfd_request_labels_of_namespace(labels, ns);
        if (!kept)
                hfd_response_no_memory(response);
        else
                result = select_labels(selector, kept);
        hfd_object_unref(ns);
        return result;
}

static enum hfd_matcher_result
match_namespace(const struct hfd_matcher *matcher, const struct hfd_admission_attributes *of,
                const struct hf__json *object, struct hfd_cacher *cacher,
                struct hfd_request_labels *labels, struct hfd_response *response) {
        if (!matcher->ns_selector || (!*of->ns && !is_namespace(of)))
                return HFD_MATCHER_YES;
        /* If the request writes a Namespace, the selector sees the new labels. A delete has none,
         * and those in the body of a subresource do not count, as in Kubernetes: then the selector
         * sees the stored labels, those of `old` if the bodies of the request are Namespaces. */
        if (is_namespace(of) && !*of->subresource && object)
                return select_labels(matcher->ns_selector,
                                     hfd_request_labels_get(labels, HFD_LABELS_OBJECT, object));
        if (is_namespace(of) && of->old && of->kind == of->resource)
                return select_labels(matcher->ns_selector,
                                     hfd_request_labels_get(labels, HFD_LABELS_OLD, of->old));
        return select_stored(matcher->ns_selector, of, cacher, labels, response);
}

/* ---- the request ---- */

/* As in Kubernetes, the labels of either the new or the old object are enough: otherwise a user
 * could evade a webhook by a write that removes the label. */
static bool match_object(const struct hfd_matcher *matcher,
                         const struct hfd_admission_attributes *of, const struct hf__json *object,
                         struct hfd_request_labels *labels) {
        const struct hf__json *selector = matcher->object_selector;

        if (!selector)
                return true;
        if (object &&
            hfd_label_selector_selects(selector,
                                       hfd_request_labels_get(labels, HFD_LABELS_OBJECT, object)))
                return true;
        return of->old &&
               hfd_label_selector_selects(selector,
                                          hfd_request_labels_get(labels, HFD_LABELS_OLD, of->old));
}

static const struct hfd_resource *match_rules(const struct hfd_matcher *matcher,
                                              const struct hfd_admission_attributes *of) {
        if (hfd_rules_match(matcher->excluded, of, matcher->equivalent))
                return NULL;
        if (matcher->rules->n == 0)
                return matcher->empty_matches ? of->resource : NULL;
        return hfd_rules_match(matcher->rules, of, matcher->equivalent);
}

enum hfd_matcher_result hfd_matcher_match(const struct hfd_matcher *matcher,
                                          const struct hfd_admission_attributes *of,
                                          const struct hf__json *object, struct hfd_cacher *cacher,
                                          struct hfd_request_labels *labels,
                                          const struct hfd_resource **ret_as,
                                          struct hfd_response *response) {
        assert(matcher->json && of->resource && labels);
        *ret_as = match_rules(matcher, of);
        if (!*ret_as || !match_object(matcher, of, object, labels))
                return HFD_MATCHER_NO;
        return match_namespace(matcher, of, object, cacher, labels, response);
}
