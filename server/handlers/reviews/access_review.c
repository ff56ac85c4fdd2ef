/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Responds to reviews of access (SubjectAccessReview and its variants, SelfSubjectRulesReview).
 *
 * Invariant: hfd_access_review asks the function that authorizes requests, so a review and the
 * request that follows it get the same decision. The messages of refusals are those of
 * kube-apiserver, except the one about GROUPS_MAX.
 */
#include "server/handlers/reviews/access_review.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/rbac/rule_list.h"

/* Groups of the user in a SubjectAccessReview. Kubernetes has no such limit, but RBAC looks up each
 * group, so a review with a body full of groups would cost far more than other requests. */
#define GROUPS_MAX 200

/* ---- validation ---- */

static void reply_invalid(const struct hfd_review_context *context, struct hfd_causes *causes,
                          struct hfd_response *response) {
        hfd_response_invalid(response, context->resource, "", causes);
}

/* Prints the attributes as Go prints the struct, because Kubernetes' message does. */
static void print_path_attributes(const struct hf__json *attributes, char *out, size_t n) {
        (void)snprintf(out, n,
                       "authorization.NonResourceAttributes{Path:\"%.200s\", Verb:\"%.60s\"}",
                       hf__json_string_or_empty(attributes, "path"),
                       hf__json_string_or_empty(attributes, "verb"));
}

/* False: the spec is wrong, and response is filled (422). As in kube-apiserver, one response names
 * all faults of the spec. */
static bool check_spec(const struct hfd_review_context *context, struct hf__json *spec,
                       struct hfd_response *response) {
        const char *kind = context->resource->kind;
        struct hfd_causes causes;
        char text[400];

        hfd_causes_init(&causes);
        struct hf__json *resource = hf__json_get(spec, "resourceAttributes"),
                        *path = hf__json_get(spec, "nonResourceAttributes");
        if (path)
                print_path_attributes(path, text, sizeof text);
        if (resource && path)
                hfd_cause_invalid(&causes, "spec.nonResourceAttributes", text,
                                  "cannot be specified in combination with resourceAttributes");
        if (!resource && !path)
                hfd_cause_invalid(&causes, "spec.resourceAttributes", "null",
                                  "exactly one of nonResourceAttributes or resourceAttributes must "
                                  "be specified");
        if (strcmp(kind, "SelfSubjectAccessReview") != 0 &&
            !*hf__json_string_or_empty(spec, "user") &&
            hf__json_count(hf__json_get(spec, "groups")) == 0)
                hfd_cause_invalid_text(&causes, "spec.user", "",
                                       "at least one of user or group must be specified");
        if (context->resource->namespaced && path)
                hfd_cause_invalid(&causes, "spec.nonResourceAttributes", text,
                                  "disallowed on this kind of request");
        if (causes.n)
                reply_invalid(context, &causes, response);
        return causes.n == 0;
}

/* A LocalSubjectAccessReview asks about its own namespace only. False: response is filled. */
static bool check_namespace(const struct hfd_review_context *context, const struct hf__json *object,
                            struct hfd_response *response) {
        const char *own = hf__json_string(object, "metadata.namespace");
        const char *asked =
                hf__json_string_or_empty(hf__json_path(object, "spec.resourceAttributes"),
                                         "namespace");

        if (!context->resource->namespaced)
                return true;
        if (own && *own && strcmp(own, context->ns) != 0) {
                hfd_response_bad_request(response, "the namespace of the provided object does not "
                                                   "match the namespace sent on the request");
                return false;
        }
        if (strcmp(asked, context->ns) == 0)
                return true;
        hfd_response_bad_request(response,
                                 "spec.resourceAttributes.namespace must match namespace: %.253s",
                                 context->ns);
        return false;
}

/* ---- access ---- */

/* The version of the API that the spec may name is left out: no authorization mode looks at it. */
static struct hfd_attributes read_attributes(const struct hf__json *spec) {
        const struct hf__json *resource = hf__json_get(spec, "resourceAttributes"),
                              *path = hf__json_get(spec, "nonResourceAttributes");

        return (struct hfd_attributes){.verb = hf__json_string_or_empty(resource ? resource : path,
                                                                        "verb"),
                                       .group = hf__json_string_or_empty(resource, "group"),
                                       .resource = hf__json_string_or_empty(resource, "resource"),
                                       .subresource =
                                               hf__json_string_or_empty(resource, "subresource"),
                                       .ns = hf__json_string_or_empty(resource, "namespace"),
                                       .name = hf__json_string_or_empty(resource, "name"),
                                       .path = hf__json_string_or_empty(path, "path"),
                                       .is_resource = resource != NULL};
}

/* The user that is asked about. Self reviews ask about the requester, which is the impersonated
 * user if there is one: `kubectl auth can-i --as` depends on it. groups has room for GROUPS_MAX.
 * False: there are more groups. */
static bool read_subject(const struct hfd_review_context *context, const struct hf__json *spec,
                         const char **groups, struct hfd_subject *ret_subject) {
        size_t n = 0;

        *ret_subject = context->requester->subject;
        if (strcmp(context->resource->kind, "SelfSubjectAccessReview") == 0)
                return true;
        for (const struct hf__json *m = hf__json_first(hf__json_get(spec, "groups")); m;
             m = hf__json_next(m)) {
                if (n == GROUPS_MAX)
                        return false;
                groups[n++] = hf__json_text(m) ? hf__json_text(m) : "";
        }
        *ret_subject = (struct hfd_subject){.name = hf__json_string_or_empty(spec, "user"),
                                            .groups = groups,
                                            .n_groups = n};
        return true;
}

bool hfd_access_review(const struct hfd_review_context *context, struct hf__json *object,
                       struct hfd_response *response) {
        const char *groups[GROUPS_MAX];
        struct hf__strbuf reason = {0};
        struct hfd_subject subject;

        if (!hf__json_get(object, "spec") && hf__json_put(object, "spec", hf__json_object()) != 0) {
                hfd_response_no_memory(response);
                return false;
        }
        struct hf__json *spec = hf__json_get(object, "spec");
        if (!check_spec(context, spec, response) || !check_namespace(context, object, response))
                return false;
        if (!read_subject(context, spec, groups, &subject)) {
                hfd_response_bad_request(response, "spec.groups has more than %d groups",
                                         GROUPS_MAX);
                return false;
        }
        const struct hfd_attributes attributes = read_attributes(spec);
        /* status.denied is never set: it means that a mode forbids the request whatever other modes
         * say, and the modes of this server only allow. */
        bool allowed = hfd_authorizer_allows(context->authorizer, &subject, &attributes, &reason);
        int r = hf__json_set_bool(object, "status.allowed", allowed);
        if (r == 0 && reason.data)
                r = hf__json_set_string(object, "status.reason", reason.data);
        if (r != 0 || reason.error != 0)
                hfd_response_no_memory(response);
        bool good = r == 0 && reason.error == 0;
        hf__strbuf_done(&reason);
        return good;
}

/* ---- rules ---- */

/* Appends the rule that allows everything. key: "resources" or "nonResourceURLs". 0 or -ENOMEM. */
static int add_rule_for_all(struct hf__json *rules, const char *key) {
        struct hf__json *rule = hf__json_object();
        int r = rule ? hf__json_put(rule, "verbs", hf__json_array()) : -ENOMEM;

        if (r == 0)
                r = hf__json_append_string(hf__json_get(rule, "verbs"), "*");
        if (r == 0 && strcmp(key, "resources") == 0) {
                r = hf__json_put(rule, "apiGroups", hf__json_array());
                if (r == 0)
                        r = hf__json_append_string(hf__json_get(rule, "apiGroups"), "*");
        }
        if (r == 0)
                r = hf__json_put(rule, key, hf__json_array());
        if (r == 0)
                r = hf__json_append_string(hf__json_get(rule, key), "*");
        if (r == 0)
                return hf__json_append(rules, rule);
        hf__json_free(rule);
        return r;
}

/* Copies rules into the two lists of the status. A valid rule is for resources or for URLs. 0 or
 * -ENOMEM. */
static int split_rules(const struct hf__json *rules, struct hf__json *resource_rules,
                       struct hf__json *url_rules) {
        int r = 0;

        for (const struct hf__json *m = hf__json_first(rules); m && r == 0; m = hf__json_next(m)) {
                if (hf__json_get(m, "resources")) {
                        struct hf__json *copy = hf__json_dup(m);
                        if (copy)
                                hf__json_drop(copy, "nonResourceURLs");
                        r = hf__json_append(resource_rules, copy);
                }
                if (r == 0 && hf__json_get(m, "nonResourceURLs")) {
                        struct hf__json *copy = hf__json_object();
                        r = copy ? hf__json_put(copy, "verbs",
                                                hf__json_dup(hf__json_get(m, "verbs")))
                                 : -ENOMEM;
                        if (r == 0)
                                r = hf__json_put(copy, "nonResourceURLs",
                                                 hf__json_dup(hf__json_get(m, "nonResourceURLs")));
                        if (r == 0)
                                r = hf__json_append(url_rules, copy);
                        else
                                hf__json_free(copy);
                }
        }
        return r;
}

/* Collects what the authorization modes allow the client in the namespace. *ret_missing: why rules
 * are missing, which the caller frees; NULL = none are. 0 or -ENOMEM. */
static int collect_rules(const struct hfd_review_context *context, const char *ns,
                         struct hf__json *resource_rules, struct hf__json *url_rules,
                         char **ret_missing) {
        struct hfd_rbac_index *index = hfd_authorizer_index(context->authorizer);
        struct hf__json *rules = NULL;
        bool all = hfd_authorizer_always_allows(context->authorizer, &context->requester->subject);
        int r = all ? add_rule_for_all(resource_rules, "resources") : 0;

        if (r == 0 && all)
                r = add_rule_for_all(url_rules, "nonResourceURLs");
        if (r == 0 && index)
                r = hfd_rbac_index_rules_of(index, &context->requester->subject, ns, &rules,
                                            ret_missing);
        /* Until there is an index, RBAC allows nothing, but that is not what the roles say. */
        if (r == 0 && !index && hfd_authorizer_has_mode(context->authorizer, HFD_MODE_RBAC)) {
                *ret_missing = strdup("the roles are being read");
                r = *ret_missing ? 0 : -ENOMEM;
        }
        if (r == 0)
                r = split_rules(rules, resource_rules, url_rules);
        hf__json_free(rules);
        hfd_rbac_index_unref(index);
        return r;
}

bool hfd_rules_review(const struct hfd_review_context *context, struct hf__json *object,
                      struct hfd_response *response) {
        const char *ns = hf__json_string_or_empty(hf__json_get(object, "spec"), "namespace");
        char *missing = NULL;

        /* As in kube-apiserver: rules of all namespaces together would say nothing about any of
         * them. */
        if (!*ns) {
                hfd_response_bad_request(response, "no namespace on request");
                return false;
        }
        int r = hf__json_set(object, "status.resourceRules", hf__json_array());
        if (r == 0)
                r = hf__json_set(object, "status.nonResourceRules", hf__json_array());
        if (r == 0)
                r = collect_rules(context, ns, hf__json_path(object, "status.resourceRules"),
                                  hf__json_path(object, "status.nonResourceRules"), &missing);
        /* Neither an index that is not complete nor a binding to a role that does not exist is an
         * error of the request. The client learns that the lists may lack rules. */
        if (r == 0)
                r = hf__json_set_bool(object, "status.incomplete", missing != NULL);
        if (r == 0 && missing)
                r = hf__json_set_string(object, "status.evaluationError", missing);
        free(missing);
        if (r != 0)
                hfd_response_no_memory(response);
        return r == 0;
}
