/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validates the approval of a CustomResourceDefinition. The groups k8s.io and kubernetes.io, and
 * all below them, belong to Kubernetes. A definition in one of them must have an annotation with
 * the URL of its approval, or with the reason why it is not approved.
 *
 * Invariant: an update that does not change the kind of approval is accepted, because the
 * definition may have been stored before this rule existed.
 */
#include <string.h>

#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/admission/webhook_url.h"
#include "server/resources/strategies/definition/definition_rules.h"

#define APPROVAL "api-approved.kubernetes.io"

enum approval { APPROVAL_INVALID, APPROVAL_URL, APPROVAL_BYPASSED, APPROVAL_MISSING };

static const char *approval_text(const struct hf__json *object) {
        const char *text = hf__json_text(
                hf__json_get(hf__json_path(object, "metadata.annotations"), APPROVAL));

        return text ? text : "";
}

static enum approval approval_of(const struct hf__json *object) {
        const char *text = approval_text(object);
        char error[HFD_URL_ERROR_MAX];
        struct hfd_url url;

        if (!*text)
                return APPROVAL_MISSING;
        if (strncmp(text, "unapproved", 10) == 0)
                return APPROVAL_BYPASSED;
        return hfd_url_parse(text, &url, error) && url.scheme.n > 0 && url.host.n > 0
                       ? APPROVAL_URL
                       : APPROVAL_INVALID;
}

static bool ends_with(const char *text, const char *end) {
        size_t n = strlen(text), n_end = strlen(end);

        return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

void hfd_definition_check_approval(const struct hf__json *object, const struct hf__json *old,
                                   struct hfd_causes *causes) {
        static const char field[] = "metadata.annotations[" APPROVAL "]";
        const char *group = hfd_definition_text(object, "spec.group");
        enum approval approval = approval_of(object);

        if (strcmp(group, "k8s.io") != 0 && !ends_with(group, ".k8s.io") &&
            strcmp(group, "kubernetes.io") != 0 && !ends_with(group, ".kubernetes.io"))
                return;
        if (old && approval_of(old) == approval)
                return;
        if (approval == APPROVAL_MISSING)
                hfd_cause_required(causes, field,
                                   "protected groups must have approval annotation \"" APPROVAL
                                   "\", see https://github.com/kubernetes/enhancements/pull/1111");
        else if (approval == APPROVAL_INVALID)
                hfd_cause_invalid_text(causes, field, approval_text(object),
                                       "protected groups must have approval annotation \"" APPROVAL
                                       "\" with either a URL or a reason starting with "
                                       "\"unapproved\", see "
                                       "https://github.com/kubernetes/enhancements/pull/1111");
}
