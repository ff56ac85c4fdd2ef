/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validates spec.conversion of a CustomResourceDefinition. server/registry/convert/ calls the
 * webhook that spec.conversion names.
 *
 * Invariants: rules and texts are those of kube-apiserver, because clients show them and tests
 * compare them. Rules that are newer than the kind do not apply to what was stored before.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/admission/webhook_client.h"
#include "server/resources/strategies/definition/definition_rules.h"
#include "server/resources/validation/names.h"

#define PATH        "spec.conversion."
#define CLIENT_PATH PATH "webhookClientConfig"

/* ---- the webhook ---- */

/* Whether a bundle of CA certificates, as base64, contains PEM. Its certificates are parsed only
 * when the webhook is called. If memory runs out, the causes say so, and the result is false. */
static bool is_pem(const char *base64, struct hfd_causes *causes) {
        char *data = NULL;
        size_t n = 0;
        bool found = false;

        int r = hf__base64_decode(base64, strlen(base64), &data, &n);
        if (r == -ENOMEM)
                hfd_causes_no_memory(causes);
        else if (r == 0)
                found = n > 0 && memmem(data, n, "-----BEGIN ", 11) != NULL;
        free(data);
        return found;
}

static bool is_known_review_version(const char *name) {
        return strcmp(name, "v1") == 0 || strcmp(name, "v1beta1") == 0;
}

static bool has_known_review_version(const struct hf__json *versions) {
        for (const struct hf__json *m = hf__json_first(versions); m; m = hf__json_next(m))
                if (is_known_review_version(hf__json_text_or_empty(m)))
                        return true;
        return false;
}

/* Whether an element before m has the same text. */
static bool occurs_before(const struct hf__json *list, const struct hf__json *m) {
        for (const struct hf__json *e = hf__json_first(list); e && e != m; e = hf__json_next(e))
                if (strcmp(hf__json_text(e), hf__json_text(m)) == 0)
                        return true;
        return false;
}

/* must_know: the list must have a version that kube-apiserver knows. */
static void check_review_versions(const struct hf__json *versions, bool must_know,
                                  struct hfd_causes *causes) {
        static const char path[] = PATH "conversionReviewVersions";
        char field[HFD_DEFINITION_PATH_MAX], list[300];
        size_t i = 0;

        if (!hf__json_first(versions)) {
                hfd_cause_required(causes, path, "");
                return;
        }
        /* Only two versions exist, so nobody needs a list of more than 64. Further ones are not
         * checked, because the comparison of each with all before it would be slow. */
        for (const struct hf__json *m = hf__json_first(versions); m && i < 64;
             m = hf__json_next(m), i++) {
                const char *name = hf__json_text_or_empty(m), *faults[HFD_LABEL_FAULTS_MAX];
                (void)snprintf(field, sizeof field, "%s[%zu]", path, i);
                if (occurs_before(versions, m))
                        hfd_cause_invalid_text(causes, field, name, "duplicate version");
                else
                        hfd_cause_invalid_each(causes, field, name, faults,
                                               hfd_dns1035_label_faults(name, faults));
        }
        if (!must_know || has_known_review_version(versions))
                return;
        hfd_quote_list(versions, list, sizeof list);
        hfd_cause_invalid(causes, path, list, "must include at least one of v1, v1beta1");
}

/* A bad caBundle is accepted if it does no harm yet (the definition is not established), or if the
 * stored one is bad as well. */
static void check_client(const struct hf__json *client, const struct hf__json *old,
                         bool established, struct hfd_causes *causes) {
        const struct hf__json *service = hf__json_get(client, "service");
        const char *url = hf__json_string(client, "url"),
                   *bundle = hfd_definition_text(client, "caBundle"),
                   *old_bundle = hfd_definition_text(old, "webhook.clientConfig.caBundle");
        bool may_be_bad = !established || (*old_bundle && !is_pem(old_bundle, causes));

        if (!client) {
                hfd_cause_required(causes, CLIENT_PATH, "required when strategy is set to Webhook");
                return;
        }
        if ((url != NULL) == (service != NULL))
                hfd_cause_required(causes, CLIENT_PATH,
                                   "exactly one of url or service is required");
        else if (url)
                hfd_webhook_url_validate(url, CLIENT_PATH ".url", causes);
        else
                hfd_webhook_service_validate(service, CLIENT_PATH ".service", causes);
        if (*bundle && !may_be_bad && !is_pem(bundle, causes))
                hfd_cause_invalid_text(causes, CLIENT_PATH ".caBundle", bundle,
                                       "unable to load root certificates: unable to parse bytes as "
                                       "PEM block");
}

void hfd_definition_check_conversion(const struct hf__json *conversion, const struct hf__json *old,
                                     bool established, struct hfd_causes *causes) {
        const char *strategy = hfd_definition_text(conversion, "strategy");
        const struct hf__json *client = hf__json_path(conversion, "webhook.clientConfig"),
                              *versions =
                                      hf__json_path(conversion, "webhook.conversionReviewVersions"),
                              *old_versions =
                                      hf__json_path(old, "webhook.conversionReviewVersions");

        if (!*strategy)
                hfd_cause_required(causes, PATH "strategy", "");
        else if (strcmp(strategy, "None") != 0 && strcmp(strategy, "Webhook") != 0)
                hfd_cause_unsupported_text(causes, PATH "strategy", strategy,
                                           "\"None\", \"Webhook\"");
        if (strcmp(strategy, "Webhook") == 0) {
                check_client(client, old, established, causes);
                check_review_versions(versions,
                                      !hf__json_first(old_versions) ||
                                              has_known_review_version(old_versions),
                                      causes);
                return;
        }
        if (client)
                hfd_cause_forbidden(causes, CLIENT_PATH,
                                    "should not be set when strategy is not set to Webhook");
        if (hf__json_first(versions))
                hfd_cause_forbidden(causes, PATH "conversionReviewVersions",
                                    "should not be set when strategy is not set to Webhook");
}
